/* SPDX-License-Identifier: BSD-3-Clause */
/* plain.c - reads a block from plain text: a row of numbers in each line,
 * separated by blanks, or by commas or semicolons (CSV), whose first line may
 * name the columns.  Blank lines and lines that begin with # or % are ignored.
 * Not for matrices: lines of three numbers may be anything (mtx_foreign.c). */
#include <string.h>
#include <strings.h>

#include "io/files/plain.h"
#include "io/stream/lines.h"

/* ------------------------------------------------------------------- look */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

const char *spsi_plain_next(const char *p, const char *end)
{
    const char *newline = memchr(p, '\n', (size_t)(end - p));

    return newline ? newline + 1 : end;
}

const char *spsi_plain_first(const char *p, const char *end)
{
    if (end - p >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) p += 3;
    while (p < end && (is_blank(*p) || *p == '\n' || *p == '#'))
        p = *p == '#' ? spsi_plain_next(p, end) : p + 1;
    return p;
}

/* Returns the length of the number at p, or 0 if there is none. */
static size_t number_at(const char *p, const char *end, bool *whole)
{
    const size_t sign = p < end && (*p == '+' || *p == '-');
    size_t n = 0, digits = 0;

    if ((size_t)(end - p) >= sign + 3 &&
        (strncasecmp(p + sign, "nan", 3) == 0 ||
         strncasecmp(p + sign, "inf", 3) == 0)) {
        *whole = false;
        return sign + 3;
    }
    for (; p + n < end && p[n] && strchr("+-.eEdD0123456789", p[n]); n++)
        digits += p[n] >= '0' && p[n] <= '9';
    *whole = digits == n;
    return digits > 0 ? n : 0;
}

spsi_plain spsi_plain_look(const char *p, const char *end)
{
    spsi_plain c = {.whole = true, .separator = ' '};

    while (p < end && *p != '\n') {
        bool whole;
        size_t n;

        if (is_blank(*p)) {
            p++;
            continue;
        }
        if (*p == ',' || *p == ';') {
            c.separator = *p++;
            continue;
        }
        n = number_at(p, end, &whole);
        if (n == 0) return (spsi_plain){0};
        if (c.count++ < 2 && !whole) c.whole = false;
        p += n;
    }
    return c;
}

/* Returns whether a line of names is at p, and the next one has numbers between
 * commas or semicolons. */
static bool named(const char *p, const char *end)
{
    spsi_plain c = spsi_plain_look(spsi_plain_next(p, end), end);

    return spsi_plain_look(p, end).count == 0 && c.count > 1 &&
           c.separator != ' ';
}

static bool recognise(const spsi_file *f, const char *head, size_t length)
{
    const char *end = head + length, *p = spsi_plain_first(head, end);

    if (!f->block || p == end || memchr(head, '\0', length)) return false;
    return spsi_plain_look(p, end).count > 0 || named(p, end);
}

/* ------------------------------------------------------------------- read */

typedef struct table {
    spsi_lines l;
    int64_t room, values;      /* elements of x: allocated, read */
} table;

static sps_status add(table *t, spsi_content *c, double x)
{
    const spsi_file *f = t->l.b.f;
    sps_status st = SPS_OK;

    if (t->values == t->room) {
        t->room = t->room ? 2 * t->room : 1024;
        SPS_TRY(spsi_resize(f->ctx, (size_t)t->room * sizeof *c->x,
                            (void **)&c->x));
        if (c->ncol > 0) SPS_TRY(spsi_format_check(f, c, false, UINT64_MAX));
    }
    c->x[t->values++] = x;
fail:
    return st;
}

/* Appends the numbers of the line; *count is how many there are. */
static sps_status read_line(table *t, spsi_content *c, int64_t *count)
{
    const char *p = t->l.p, *end = p + t->l.length;
    sps_status st;
    double x = 0;

    SPS_REQUIRE(t->l.b.f->ctx, !memchr(p, ';', t->l.length) ||
                !memchr(p, ',', t->l.length), SPS_EPARSE, "%s:%lld: a comma "
                "and a semicolon in one line (decimal commas? write points)",
                t->l.b.name, (long long)t->l.number);
    for (*count = 0;; ++*count) {
        size_t n = 0;

        while (p < end && is_blank(*p)) p++;
        while (p + n < end && !is_blank(p[n]) && p[n] != ',' && p[n] != ';')
            n++;
        SPS_TRY(spsi_lines_real(&t->l, p, n, 0, 0, &x));
        SPS_TRY(add(t, c, x));
        p += n;
        while (p < end && is_blank(*p)) p++;
        if (p == end) break;
        if (*p == ',' || *p == ';') p++;
    }
    ++*count;
fail:
    return st;
}

static bool idle(const spsi_lines *l)
{
    size_t i = 0;

    while (i < l->length && is_blank(l->p[i])) i++;
    return i == l->length || l->p[i] == '#' || l->p[i] == '%';
}

/* Reads the row in this line. */
static sps_status read_row(table *t, spsi_content *c)
{
    int64_t count = 0;
    sps_status st;

    SPS_TRY(read_line(t, c, &count));
    SPS_REQUIRE(t->l.b.f->ctx, c->nrow == 0 || count == c->ncol, SPS_EPARSE,
                "%s:%lld: this line has %lld numbers, but the rows before "
                "have %lld",
                t->l.b.name, (long long)t->l.number, (long long)count,
                (long long)c->ncol);
    c->ncol = count;
    c->nrow++;
    c->count += count;
fail:
    return st;
}

static sps_status read_plain(const spsi_file *f, spsi_content *c)
{
    table t = {0};
    const char *head;
    size_t length;
    bool more, skip;
    sps_status st;

    SPS_TRY(spsi_text_peek(f->text, &head, &length));
    skip = named(spsi_plain_first(head, head + length), head + length);
    SPS_TRY(spsi_bytes_open(f, &t.l.b));
    if (length >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        SPS_TRY(spsi_bytes_skip(&t.l.b, 3, "a byte order mark"));
    c->order = SPS_ROW_MAJOR;
    for (;;) {
        SPS_TRY(spsi_lines_next(&t.l, &more));
        if (!more) break;
        if (idle(&t.l)) continue;
        if (!skip) SPS_TRY(read_row(&t, c));
        skip = false;
    }
    c->info.lines = t.l.number;
    SPS_TRY(spsi_format_check(f, c, false, UINT64_MAX));
    spsi_note(f->ctx, "%s: not a known kind of file; it was read as plain "
              "numbers: %lld rows, %lld columns", f->name, (long long)c->nrow,
              (long long)c->ncol);
fail:
    spsi_bytes_close(&t.l.b);
    return st;
}

SPS_DEFINE(spsi_format, spsi_format_plain) = {recognise, read_plain};
