/* SPDX-License-Identifier: BSD-3-Clause */
/* boeing_format.c - reads fields of fixed width by formats of Fortran.  In a
 * number without a decimal point the last d digits are decimals, and kP divides
 * a number without exponent by 10^k (ISO 1539, "Numeric editing"). */
#include <stdio.h>
#include <string.h>

#include "io/files/boeing_format.h"

enum { WIDEST = 400, MOST = 1000 };

static sps_status not_understood(const spsi_lines *l, const char *text)
{
    return spsi_fail(l->b.f->ctx, SPS_EPARSE, "%s:%lld: the format \"%s\" is "
                     "not understood (one like (26I3) or (1P,5E16.8) is)",
                     l->b.name, (long long)l->number, text);
}

/* Returns a number of at most 5 digits at *p, or `none` if there is no
 * digit. */
static int take_number(const char **p, int none)
{
    int v = 0, digits = 0;

    for (; **p >= '0' && **p <= '9' && digits < 5; ++*p, digits++)
        v = 10 * v + (**p - '0');
    return digits ? v : none;
}

/* Parses [kP[,]] [r] [(] letter w [.d [Ee]], without blanks. */
static bool parse(const char *p, const char *kinds, spsi_fortran *f)
{
    bool minus;
    int n;

    p += strspn(p, "(");
    minus = *p == '-';
    if (minus || *p == '+') p++;
    n = take_number(&p, 1);
    if (*p == 'P') {
        f->scale = minus ? -n : n;
        p++;
        if (*p == ',') p++;
        n = take_number(&p, 1);
    }
    p += strspn(p, "(");
    f->repeat = n;
    if (!*p || !strchr(kinds, *p)) return false;
    f->kind = *p++;
    f->width = take_number(&p, 0);
    if (*p == '.') {
        p++;
        f->decimals = take_number(&p, 0);
    }
    if (*p == 'E') {
        p++;
        (void)take_number(&p, 0);
    }
    return *p == ')' && f->width >= 1 && f->width <= WIDEST &&
           f->repeat >= 1 && f->repeat <= MOST && f->decimals < f->width &&
           f->scale <= 99 && f->scale >= -99;
}

sps_status spsi_fortran_read(const spsi_lines *l, size_t from, size_t to,
                             const char *kinds, spsi_fortran *format)
{
    char text[32] = "";
    size_t n = 0;

    *format = (spsi_fortran){0};
    for (size_t i = from; i < to && i < l->length; i++) {
        const char c = l->p[i];

        if (c == ' ' || c == '\t') continue;
        text[n++] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A')
                  : c > ' ' && c < 127 ? c : '?';
    }
    if (!parse(text, kinds, format)) return not_understood(l, text);
    return SPS_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Returns where the next word of the line begins, from `at` on, and its
 * length. */
static size_t word(const spsi_lines *l, size_t at, size_t *length)
{
    while (at < l->length && is_blank(l->p[at])) at++;
    for (*length = 0; at + *length < l->length; ++*length)
        if (is_blank(l->p[at + *length])) break;
    return at;
}

static sps_status next_line(spsi_fields *s)
{
    const int64_t wanted = s->left < s->format->repeat ? s->left
                                                       : s->format->repeat;
    int64_t words = 0;
    size_t n = 0;
    sps_status st;

    SPS_TRY(spsi_lines_need(s->l, s->what));
    for (size_t at = word(s->l, 0, &n); n > 0; at = word(s->l, at + n, &n))
        words++;
    s->words = words == wanted;
    s->next = 0;
fail:
    return st;
}

/* Sets *p and *length to the next field, in this line or the next. */
static sps_status field(spsi_fields *s, const char **p, size_t *length)
{
    const size_t width = (size_t)s->format->width;
    size_t from = (size_t)s->at * width, n = width;
    sps_status st = SPS_OK;

    if (s->at == 0) SPS_TRY(next_line(s));
    if (s->words) {
        from = word(s->l, s->next, &n);
        s->next = from + n;
    }
    SPS_REQUIRE(s->l->b.f->ctx, from < s->l->length, SPS_EPARSE, "%s:%lld: "
                "the line has %zu bytes, but field %d of %s begins after "
                "them (was the line cut off?)", s->l->b.name,
                (long long)s->l->number, s->l->length, s->at + 1, s->what);
    *p = s->l->p + from;
    *length = s->l->length - from < n ? s->l->length - from : n;
    s->at = (s->at + 1) % s->format->repeat;
    s->left--;
fail:
    return st;
}

sps_status spsi_fields_whole(spsi_fields *s, int64_t *x)
{
    const char *p = NULL;
    size_t length = 0;
    sps_status st;

    SPS_TRY(field(s, &p, &length));
    SPS_TRY(spsi_lines_whole(s->l, p, length, x));
fail:
    return st;
}

sps_status spsi_fields_real(spsi_fields *s, double *x)
{
    const spsi_fortran *f = s->format;
    const char *p = NULL;
    size_t length = 0;
    sps_status st;

    SPS_TRY(field(s, &p, &length));
    SPS_TRY(spsi_lines_real(s->l, p, length, f->kind == 'I' ? 0 : f->decimals,
                            f->kind == 'I' ? 0 : f->scale, x));
fail:
    return st;
}
