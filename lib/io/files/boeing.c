/* SPDX-License-Identifier: BSD-3-Clause */
/* boeing.c - assembled matrices of the Harwell-Boeing collection (Duff, Grimes
 * and Lewis, RAL-92-086) and of its successor, the Rutherford-Boeing format
 * (RAL-TR-97-031), which has no right-hand sides in the file of the matrix.
 *
 *   1  title, key
 *   2  lines: of all, of pointers, indices, values, and right-hand sides
 *   3  type, rows, columns, entries
 *   4  Fortran formats of pointers (columns 1-16), indices (17-32), values
 *      (33-52) and right-hand sides (53-72)
 *   5  of right-hand sides: type, how many, entries  (if line 2 counts some)
 *      pointers, row indices by columns from 1, values, right-hand sides
 *
 * A type is three letters: R, I or P (real, integer, pattern); U, R, S or Z (no
 * symmetry, rectangular, symmetric, skew-symmetric); A (assembled).  As a block
 * the right-hand sides are read, or the matrix if there are none. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/files/boeing_format.h"

typedef struct boeing {
    spsi_lines l;
    char type[4];
    int64_t lines_of_rhs;
    spsi_fortran pointers, indices, values, sides;
    char side_type[4];
    int64_t side_count, side_entries;
    int64_t *start;
    int32_t *row;
    double *val;               /* NULL for a pattern */
} boeing;

/* ----------------------------------------------------------------- header */

static const char *next_line(const char *p, const char *end)
{
    const char *newline = memchr(p, '\n', (size_t)(end - p));

    return newline ? newline + 1 : end;
}

static bool recognise(const spsi_file *f, const char *head, size_t length)
{
    const char *end = head + length;
    const char *type = next_line(next_line(head, end), end);
    const char *format = next_line(type, end);

    (void)f;
    while (format < end && *format == ' ') format++;
    return end - format >= 2 && *format == '(' && format - type >= 14 &&
           strchr("RCIPQrcipq", type[0]) && strchr("SUHZRsuhzr", type[1]) &&
           strchr("AEae", type[2]) && type[3] == ' ' && type[0] && type[1] &&
           type[2];
}

/* Reads up to `most` integers separated by blanks; missing ones are 0. */
static sps_status read_integers(boeing *h, const char *p, size_t length,
                                int most, int64_t *to)
{
    sps_status st = SPS_OK;
    size_t at = 0;

    memset(to, 0, (size_t)most * sizeof *to);
    for (int i = 0; i < most; i++) {
        size_t n = 0;

        while (at < length && (p[at] == ' ' || p[at] == '\t')) at++;
        while (at + n < length && p[at + n] != ' ' && p[at + n] != '\t') n++;
        if (n == 0) break;
        SPS_TRY(spsi_lines_whole(&h->l, p + at, n, &to[i]));
        at += n;
    }
fail:
    return st;
}

static sps_status refuse(const boeing *h, const char *what)
{
    return spsi_fail(h->l.b.f->ctx, SPS_EPARSE, "%s:3: a Harwell-Boeing or "
                     "Rutherford-Boeing matrix of type %s is not supported: %s",
                     h->l.b.name, h->type, what);
}

static sps_status check_type(const boeing *h)
{
    if (h->type[2] != 'A')
        return refuse(h, "its elements are not assembled (the third letter of "
                      "the type must be A)");
    if (h->type[0] == 'C' || h->type[1] == 'H')
        return refuse(h, "complex matrices are read only from Matrix Market "
                      "files, which collections offer of the same matrix");
    if (h->type[0] == 'Q')
        return refuse(h, "its values are in another file; collections offer "
                      "the same matrix as a Matrix Market file");
    return SPS_OK;
}

static sps_status read_formats(boeing *h)
{
    sps_status st;

    SPS_TRY(spsi_lines_need(&h->l, "its formats"));
    SPS_TRY(spsi_fortran_read(&h->l, 0, 16, "I", &h->pointers));
    SPS_TRY(spsi_fortran_read(&h->l, 16, 32, "I", &h->indices));
    if (h->type[0] != 'P')
        SPS_TRY(spsi_fortran_read(&h->l, 32, 52, "EDFGI", &h->values));
    if (h->lines_of_rhs > 0) {
        SPS_TRY(spsi_fortran_read(&h->l, 52, 72, "EDFGI", &h->sides));
        SPS_TRY(spsi_lines_need(&h->l, "the type of its right-hand sides"));
        memcpy(h->side_type, h->l.p, h->l.length < 3 ? h->l.length : 3);
        int64_t n[2];
        SPS_TRY(read_integers(h, h->l.p + (h->l.length < 3 ? 0 : 3),
                              h->l.length < 3 ? 0 : h->l.length - 3, 2, n));
        h->side_count = n[0];
        h->side_entries = n[1];
    }
fail:
    return st;
}

static sps_status read_header(boeing *h, spsi_content *c)
{
    const spsi_file *f = h->l.b.f;
    int64_t n[5];
    sps_status st;

    SPS_TRY(spsi_lines_need(&h->l, "its title"));
    SPS_TRY(spsi_lines_need(&h->l, "its numbers of lines"));
    SPS_TRY(read_integers(h, h->l.p, h->l.length, 5, n));
    h->lines_of_rhs = n[4];
    SPS_TRY(spsi_lines_need(&h->l, "its type"));
    for (int i = 0; i < 3; i++)      /* recognise() checked the three letters */
        h->type[i] = (char)(h->l.p[i] & ~('a' ^ 'A'));
    SPS_TRY(check_type(h));
    SPS_TRY(read_integers(h, h->l.p + 3, h->l.length - 3, 3, n));
    c->nrow = n[0];
    c->ncol = n[1];
    c->count = n[2];
    SPS_REQUIRE(f->ctx, c->nrow == c->ncol || !strchr("SZ", h->type[1]),
                SPS_EPARSE, "%s:3: a matrix of type %s must be square, but "
                "this one has %lld rows and %lld columns", f->name, h->type,
                (long long)c->nrow, (long long)c->ncol);
    SPS_TRY(read_formats(h));
fail:
    return st;
}

/* ----------------------------------------------------------------- matrix */

/* Checks `count` against the bytes of the file: each value takes at least
 * one. */
static sps_status expect(const boeing *h, int64_t count, const char *what)
{
    return spsi_bytes_expect(&h->l.b, (spsi_binary){.size = 1}, count, what);
}

static sps_status read_pointers(boeing *h, const spsi_content *c)
{
    const spsi_file *f = h->l.b.f;
    spsi_fields s = {&h->l, &h->pointers, c->ncol + 1,
                     .what = "the pointers of columns"};
    sps_status st;

    SPS_TRY(expect(h, c->ncol + 1, "pointers"));
    SPS_TRY(SPS_NEW(f->ctx, c->ncol + 1, &h->start));
    for (int64_t j = 0; j <= c->ncol; j++) {
        SPS_TRY(spsi_fields_whole(&s, &h->start[j]));
        h->start[j]--;
        SPS_REQUIRE(f->ctx, h->start[j] >= 0 && h->start[j] <= c->count,
                    SPS_EPARSE, "%s:%lld: pointer %lld of column %lld is "
                    "not a position among the %lld entries, counted from 1",
                    f->name, (long long)h->l.number,
                    (long long)h->start[j] + 1, (long long)j + 1,
                    (long long)c->count);
    }
    SPS_TRY(spsi_entries_check(f, "the list of pointers", h->start, c->ncol,
                               c->count, 1));
fail:
    return st;
}

static sps_status read_rows(boeing *h, const spsi_content *c)
{
    const spsi_file *f = h->l.b.f;
    spsi_fields s = {&h->l, &h->indices, c->count, .what = "the row indices"};
    sps_status st;

    SPS_TRY(expect(h, c->count, "row indices"));
    SPS_TRY(SPS_NEW(f->ctx, c->count, &h->row));
    for (int64_t p = 0; p < c->count; p++) {
        int64_t i = 0;

        SPS_TRY(spsi_fields_whole(&s, &i));
        SPS_REQUIRE(f->ctx, i >= 1 && i <= c->nrow, SPS_EPARSE, "%s:%lld: row "
                    "%lld, but the matrix has rows 1 to %lld", f->name,
                    (long long)h->l.number, (long long)i, (long long)c->nrow);
        h->row[p] = (int32_t)(i - 1);
    }
fail:
    return st;
}

static sps_status read_values(boeing *h, spsi_fortran *format, int64_t count,
                              const char *what, double **val)
{
    spsi_fields s = {&h->l, format, count, .what = what};
    sps_status st;

    SPS_TRY(expect(h, count, what));
    SPS_TRY(SPS_NEW(h->l.b.f->ctx, count, val));
    for (int64_t p = 0; p < count; p++)
        SPS_TRY(spsi_fields_real(&s, &(*val)[p]));
fail:
    return st;
}

/* Finds the factor of mirror images, 1 or -1; 0 without symmetry, or if both
 * triangles are stored, which lenient reading allows if they agree. */
static sps_status find_sign(const boeing *h, const spsi_content *c,
                            double *sign)
{
    const spsi_file *f = h->l.b.f;
    int64_t lower = 0, upper = 0;
    sps_status st = SPS_OK;

    *sign = h->type[1] == 'S' ? 1 : h->type[1] == 'Z' ? -1 : 0;
    if (*sign == 0) return SPS_OK;
    for (int64_t j = 0; j < c->ncol; j++)
        for (int64_t p = h->start[j]; p < h->start[j + 1]; p++) {
            lower += h->row[p] > j;
            upper += h->row[p] < j;
            SPS_REQUIRE(f->ctx, *sign > 0 || h->row[p] != j ||
                        (h->val && h->val[p] == 0), SPS_EPARSE, "%s: the "
                        "diagonal entry (%lld, %lld) of a skew-symmetric "
                        "matrix is not zero", f->name, (long long)j + 1,
                        (long long)j + 1);
        }
    if (lower == 0 || upper == 0) return SPS_OK;
    SPS_REQUIRE(f->ctx, f->options.lenient && *sign > 0, SPS_EPARSE, "%s: "
                "type %s stores one triangle, but %lld entries are below the "
                "diagonal and %lld above%s", f->name, h->type,
                (long long)lower, (long long)upper, *sign > 0 ? " (lenient "
                "reading accepts both if they agree)" : "");
    *sign = 0;
fail:
    return st;
}

static sps_status make_csr(boeing *h, spsi_content *c)
{
    const spsi_file *f = h->l.b.f;
    bool symmetric = true;
    double sign;
    sps_status st;

    SPS_TRY(find_sign(h, c, &sign));
    SPS_TRY(spsi_entries_csc(f, c, h->start, h->row, h->val, sign, &c->A));
    if (h->type[1] != 'S' || sign != 0) return SPS_OK;
    SPS_TRY(sps_csr_check(f->ctx, c->A));
    SPS_TRY(sps_csr_symmetric(f->ctx, c->A, 0, &symmetric, NULL));
    SPS_REQUIRE(f->ctx, symmetric, SPS_EPARSE, "%s: the two triangles of a "
                "matrix of type %s differ", f->name, h->type);
    c->A->props |= SPS_SYMMETRIC;
fail:
    return st;
}

static sps_status read_matrix(boeing *h, spsi_content *c)
{
    sps_status st;

    SPS_TRY(spsi_format_check(h->l.b.f, c, h->type[1] != 'U',
                              h->l.b.bound));
    if (h->l.b.f->peek) return SPS_OK;
    SPS_TRY(read_pointers(h, c));
    SPS_TRY(read_rows(h, c));
    if (h->type[0] != 'P')
        SPS_TRY(read_values(h, &h->values, c->count, "the values", &h->val));
    SPS_TRY(make_csr(h, c));
fail:
    return st;
}

/* -------------------------------------------------------- right-hand sides */

static sps_status skip(boeing *h, const spsi_fortran *format, int64_t count,
                       const char *what)
{
    sps_status st = SPS_OK;

    for (; count > 0; count -= format->repeat)
        SPS_TRY(spsi_lines_need(&h->l, what));
fail:
    return st;
}

/* Reads sparse right-hand sides: pointers, row indices and values in the
 * formats of the matrix. */
static sps_status read_sparse_sides(boeing *h, spsi_content *c)
{
    sps_status st;

    c->count = h->side_entries;
    SPS_TRY(spsi_format_check(h->l.b.f, c, false, h->l.b.bound));
    SPS_TRY(read_pointers(h, c));
    SPS_TRY(read_rows(h, c));
    SPS_TRY(read_values(h, &h->sides, c->count, "the right-hand sides",
                        &h->val));
    SPS_TRY(spsi_entries_csc(h->l.b.f, c, h->start, h->row, h->val, 0, &c->A));
fail:
    return st;
}

static sps_status read_sides(boeing *h, spsi_content *c)
{
    const spsi_file *f = h->l.b.f;
    sps_status st;

    SPS_REQUIRE(f->ctx, c->ncol >= 0 && c->count >= 0 && c->nrow >= 0 &&
                h->side_count > 0, SPS_EPARSE, "%s:5: the number of right-hand "
                "sides is %lld, or a size of the matrix is negative", f->name,
                (long long)h->side_count);
    SPS_TRY(skip(h, &h->pointers, c->ncol + 1, "the pointers of columns"));
    SPS_TRY(skip(h, &h->indices, c->count, "the row indices"));
    if (h->type[0] != 'P')
        SPS_TRY(skip(h, &h->values, c->count, "the values"));
    c->ncol = h->side_count;
    if ((h->side_type[0] | 32) == 'm') return read_sparse_sides(h, c);
    SPS_REQUIRE(f->ctx, (h->side_type[0] | 32) == 'f', SPS_EPARSE, "%s:5: "
                "right-hand sides of type \"%.3s\" are not supported, only F "
                "(full) and M (sparse, like the matrix)", f->name,
                h->side_type);
    c->order = SPS_COL_MAJOR;
    c->count = c->nrow <= INT32_MAX && c->ncol <= INT32_MAX
                   ? c->nrow * c->ncol : INT64_MAX;
    SPS_TRY(spsi_format_check(f, c, false, h->l.b.bound));
    SPS_TRY(read_values(h, &h->sides, c->count, "the right-hand sides",
                        &c->x));
fail:
    return st;
}

static sps_status read_boeing(const spsi_file *f, spsi_content *c)
{
    boeing h = {0};
    sps_status st;

    SPS_TRY(spsi_bytes_open(f, &h.l.b));
    SPS_TRY(read_header(&h, c));
    SPS_TRY(f->block && h.lines_of_rhs > 0 ? read_sides(&h, c)
                                           : read_matrix(&h, c));
    strcpy(c->info.field, h.type[0] == 'P' ? "pattern"
                          : h.type[0] == 'I' ? "integer" : "real");
    strcpy(c->info.symmetry, h.type[1] == 'S' ? "symmetric"
                             : h.type[1] == 'Z' ? "skew-symmetric" : "general");
    if (f->block && h.lines_of_rhs > 0) strcpy(c->info.field, "real");
    c->info.lines = h.l.number;
fail:
    spsi_free(f->ctx, h.start);
    spsi_free(f->ctx, h.row);
    spsi_free(f->ctx, h.val);
    spsi_bytes_close(&h.l.b);
    return st;
}

SPS_DEFINE(spsi_format, spsi_format_boeing) = {recognise, read_boeing};
