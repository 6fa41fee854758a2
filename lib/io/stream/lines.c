/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.c - lines of a text file, and conversion of the numbers in them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/stream/lines.h"
#include "io/number/number.h"

enum { LONGEST = 400 };          /* largest number of bytes of a number */

sps_status spsi_lines_next(spsi_lines *l, bool *more)
{
    const char *newline;
    size_t got;
    sps_status st;

    spsi_bytes_consume(&l->b, l->whole);
    l->whole = l->length = 0;
    SPS_TRY(spsi_bytes_peek(&l->b, SPSI_BYTES_PEEK, &l->p, &got));
    *more = got > 0;
    if (!*more) return SPS_OK;
    l->number++;
    newline = memchr(l->p, '\n', got);
    SPS_REQUIRE(l->b.f->ctx, newline || got < SPSI_BYTES_PEEK, SPS_EPARSE,
                "%s:%lld: a line of more than %d bytes", l->b.name,
                (long long)l->number, SPSI_BYTES_PEEK - 1);
    l->length = newline ? (size_t)(newline - l->p) : got;
    l->whole = l->length + (newline != NULL);
    if (l->length > 0 && l->p[l->length - 1] == '\r') l->length--;
fail:
    return st;
}

sps_status spsi_lines_need(spsi_lines *l, const char *what)
{
    bool more;
    sps_status st;

    SPS_TRY(spsi_lines_next(l, &more));
    SPS_REQUIRE(l->b.f->ctx, more, SPS_EPARSE, "%s:%lld: the file ends before "
                "%s (cut off?)", l->b.name, (long long)l->number, what);
fail:
    return st;
}

/* ---------------------------------------------------------------- numbers */

static sps_status complain(const spsi_lines *l, const char *p, size_t length,
                           const char *what)
{
    char word[44];
    size_t n = length < 40 ? length : 40;

    for (size_t i = 0; i < n; i++)
        word[i] = p[i] >= ' ' && p[i] < 127 ? p[i] : '?';
    word[n] = '\0';
    return spsi_fail(l->b.f->ctx, SPS_EPARSE, "%s:%lld: \"%s\"%s %s", l->b.name,
                     (long long)l->number, word, length > n ? "..." : "", what);
}

static void trim(const char **p, size_t *length)
{
    while (*length > 0 && (**p == ' ' || **p == '\t')) ++*p, --*length;
    while (*length > 0 && ((*p)[*length - 1] == ' ' ||
                           (*p)[*length - 1] == '\t'))
        --*length;
}

/* Copies a number, with a letter before its exponent, which Fortran may omit
 * ("1.5-3"), and a newline after it.  Reports which parts it has. */
static size_t copy(const char *p, size_t length, char *text, bool *point,
                   bool *exponent)
{
    size_t n = 0;

    *point = *exponent = false;
    for (size_t i = 0; i < length; i++) {
        const char c = p[i];

        if (c == '.') *point = true;
        if (strchr("eEdDqQ", c) && c) *exponent = true;
        if (i > 0 && (c == '+' || c == '-') && !*exponent &&
            ((p[i - 1] >= '0' && p[i - 1] <= '9') || p[i - 1] == '.')) {
            text[n++] = 'e';
            *exponent = true;
        }
        text[n++] = c == 'q' || c == 'Q' ? 'e' : c;
    }
    text[n] = '\n';
    return n;
}

sps_status spsi_lines_real(const spsi_lines *l, const char *p, size_t length,
                           int decimals, int scale, double *x)
{
    char text[LONGEST + 32] = "";
    bool point, exponent;
    spsi_number kind;
    size_t n;

    trim(&p, &length);
    if (length == 0) return complain(l, p, 0, "is blank where a number "
                                     "belongs");
    if (length > LONGEST) return complain(l, p, length, "is longer than 400 "
                                          "bytes");
    n = copy(p, length, text, &point, &exponent);
    const bool digits = text[n - 1] == '.' || (text[n - 1] >= '0' &&
                                               text[n - 1] <= '9');
    const int shift = digits ? (point ? 0 : decimals) + (exponent ? 0 : scale)
                             : 0;
    if (!exponent && shift != 0)     /* rounded once, with the digits */
        n += (size_t)snprintf(text + n, sizeof text - n, "e%d\n", -shift) - 1;
    if (spsi_number_double(text, x, &kind) != text + n ||
        kind == SPSI_NUMBER_NONE)
        return complain(l, p, length, "is not a number");
    if (kind == SPSI_NUMBER_HUGE && !l->b.f->options.allow_nonfinite)
        return complain(l, p, length, "is beyond the largest double, 1.8e308 "
                        "(scale the system, or allow values that are not "
                        "finite)");
    if (kind == SPSI_NUMBER_NOT_FINITE && !l->b.f->options.allow_nonfinite)
        return complain(l, p, length, "is not finite (option "
                        "allow-nonfinite reads such values)");
    if (exponent && shift != 0) *x /= pow(10, shift);
    return SPS_OK;
}

sps_status spsi_lines_whole(const spsi_lines *l, const char *p, size_t length,
                            int64_t *x)
{
    char text[LONGEST + 16] = "";
    const char *first = text;
    const char *end;

    trim(&p, &length);
    if (length == 0) return complain(l, p, 0, "is blank where an integer "
                                     "belongs");
    if (length > LONGEST) return complain(l, p, length, "is longer than 400 "
                                          "bytes");
    memcpy(text, p, length);
    text[length] = '\n';
    if (*first == '+' || *first == '-') first++;
    end = spsi_number_integer(first, x);
    if (!end) return complain(l, p, length, "is beyond 2^63");
    if (end == first || end != text + length)
        return complain(l, p, length, "is not an integer");
    if (*text == '-') *x = -*x;
    return SPS_OK;
}
