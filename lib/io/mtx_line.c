/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_line.c - the lines of a Matrix Market file, after the header.
 *
 *   coordinate   row column [value [imaginary]]
 *   array        value [imaginary]
 *
 * One entry per line; blanks are spaces and tabs; blank lines and lines that
 * begin with % have no entry.  A piece ends with a newline, and bytes behind it
 * are readable (number.h), so that within a line the end of the piece need not
 * be checked.  Parsing of a piece ends at its first error. */
#include <string.h>

#include "io/mtx.h"
#include "io/number/number.h"

#define LONGEST_TOKEN 400

typedef struct cursor {
    const char *p;             /* next byte */
    spsi_mtx_error error;
} cursor;

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline const char *skip_blanks(const char *p)
{
    while (is_blank(*p)) p++;
    return p;
}

static inline bool ends_line(const char *p)
{
    return *p == '\n' || (*p == '\r' && p[1] == '\n');
}

/* Returns whether a line has no entry: it is blank or a comment. */
static inline bool is_idle(const char *p)
{
    return ends_line(p) || *p == '%';
}

static inline const char *next_line(const char *p, const char *end)
{
    return (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
}

/* Counts the newlines among 8 n bytes, n <= 255: byte l of `sum` counts those
 * at positions l modulo 8. */
static int64_t count_words(const char *p, int n)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
    const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t sum = 0;

    for (int i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, p + 8 * i, 8);
        v ^= UINT64_C(0x0a0a0a0a0a0a0a0a);   /* 0 at newlines */
        v = ((v & low) + low) | v | low;     /* high bit: 0 at newlines only */
        sum += ~v >> 7;
    }
    sum = (sum & even) + (sum >> 8 & even);
    return (int64_t)(sum * UINT64_C(0x0001000100010001) >> 48);
}

void spsi_mtx_count_lines(spsi_mtx_piece *piece)
{
    const char *p = piece->begin;
    int64_t lines = 0;

    for (; piece->end - p >= 8 * 255; p += 8 * 255)
        lines += count_words(p, 255);
    for (; p < piece->end; p++) lines += *p == '\n';
    piece->lines = lines;
}

int64_t spsi_mtx_least(const spsi_mtx_header *h)
{
    int64_t numbers = h->array ? 0 : h->vector ? 1 : 2;

    numbers += h->field == SPSI_MTX_PATTERN ? 0
             : h->field == SPSI_MTX_COMPLEX ? 2 : 1;
    return 2 * numbers;        /* a digit and a blank or newline for each */
}

/* Returns the number with the digits from p to end, or, if it exceeds
 * UINT32_MAX, some number above that.  Used for numbers of so many digits that
 * plain summation may have wrapped around. */
static uint64_t saturated(const char *p, const char *end)
{
    uint64_t v = 0;

    for (; p < end && v <= UINT32_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    return v;
}

/* Reads an index from 1 to limit and the blanks after it; returns index - 1.
 * `none`, `zero` and `range` are the errors for a missing, zero or too large
 * index, which differ for rows and columns. */
static inline int32_t take_index(cursor *c, int64_t limit, spsi_mtx_error none,
                                 spsi_mtx_error zero, spsi_mtx_error range)
{
    const char *p = c->p;
    uint64_t v = 0, digit;

    for (; (digit = (uint64_t)(unsigned char)(*p - '0')) <= 9; p++)
        v = v * 10 + digit;
    if (p - c->p > 18) v = saturated(c->p, p);
    if (p == c->p)
        c->error = none;
    else if (v == 0)
        c->error = zero;
    else if (v > (uint64_t)limit)
        c->error = range;
    else if (!is_blank(*p) && !ends_line(p))
        c->error = *p == '\r' ? SPSI_MTX_CARRIAGE : none;
    else
        c->p = skip_blanks(p);
    return (int32_t)(v - 1);
}

/* Checks that the text at c->p is an integer (sign and digits); one that a
 * double cannot represent (beyond 2^53) is counted in piece->rounded. */
static bool check_integer(const spsi_mtx *m, cursor *c, spsi_mtx_piece *piece)
{
    const char *p = c->p + (*c->p == '-' || *c->p == '+');
    const char *stop;
    int64_t exact;

    c->error = SPSI_MTX_INTEGER_VALUE;
    if (*c->p == '-' && m->header.field == SPSI_MTX_UNSIGNED)
        c->error = SPSI_MTX_UNSIGNED_VALUE;
    else if (*p >= '0' && *p <= '9') {
        stop = spsi_number_integer(p, &exact);
        if (stop == NULL || (exact > INT64_C(1) << 53 &&
                             ((double)exact >= 0x1p63 ||
                              (int64_t)(double)exact != exact)))
            piece->rounded++;
        for (stop = p; (unsigned char)(*stop - '0') <= 9;) stop++;
        if (is_blank(*stop) || ends_line(stop)) c->error = SPSI_MTX_FINE;
    }
    return c->error == SPSI_MTX_FINE;
}

static inline double take_value(const spsi_mtx *m, cursor *c,
                                spsi_mtx_piece *piece)
{
    spsi_number kind;
    double x = 0;
    const char *p = spsi_number_double(c->p, &x, &kind);

    if (kind == SPSI_NUMBER_NONE || (!is_blank(*p) && !ends_line(p)))
        c->error = *p == '\r' ? SPSI_MTX_CARRIAGE : SPSI_MTX_VALUE;
    else if (p - c->p > LONGEST_TOKEN)
        c->error = SPSI_MTX_LONG;
    else if (kind != SPSI_NUMBER_FINE) {
        if (kind == SPSI_NUMBER_TINY)
            piece->tiny++;
        else if (!m->options.allow_nonfinite)
            c->error = kind == SPSI_NUMBER_HUGE ? SPSI_MTX_HUGE_VALUE
                                                : SPSI_MTX_NOT_FINITE;
    }
    if (c->error == SPSI_MTX_FINE) c->p = skip_blanks(p);
    return x;
}

static inline void take_entry_value(const spsi_mtx *m, cursor *c, double *val,
                                    spsi_mtx_piece *piece)
{
    spsi_mtx_field field = m->header.field;

    if (ends_line(c->p)) {
        c->error = SPSI_MTX_NO_VALUE;
        return;
    }
    if ((field == SPSI_MTX_INTEGER || field == SPSI_MTX_UNSIGNED) &&
        !check_integer(m, c, piece))
        return;
    val[0] = take_value(m, c, piece);
    if (field != SPSI_MTX_COMPLEX || c->error != SPSI_MTX_FINE) return;
    if (ends_line(c->p))
        c->error = SPSI_MTX_NO_IMAGINARY;
    else
        val[1] = take_value(m, c, piece);
}

static inline void check_end(const spsi_mtx *m, cursor *c)
{
    if (c->error != SPSI_MTX_FINE || ends_line(c->p)) return;
    c->error = *c->p == '\r' ? SPSI_MTX_CARRIAGE
             : m->header.field == SPSI_MTX_PATTERN ? SPSI_MTX_EXTRA_PATTERN
                                                   : SPSI_MTX_EXTRA;
}

/* Updates the piece's bounds of rows and columns by entry (i, j) and, if the
 * file has a symmetry, its number of diagonal entries and first line of each
 * triangle; a value that this symmetry excludes from the diagonal is an error.
 */
static inline void survey(const spsi_mtx *m, cursor *c, int32_t i, int32_t j,
                          const double *val, int64_t line,
                          spsi_mtx_piece *piece)
{
    if (i < piece->row_low) piece->row_low = i;
    if (i > piece->row_high) piece->row_high = i;
    if (j < piece->col_low) piece->col_low = j;
    if (j > piece->col_high) piece->col_high = j;
    if (m->header.symmetry == SPSI_MTX_GENERAL) return;
    if (i > j) {
        if (piece->lower == 0) piece->lower = line;
    } else if (i < j) {
        if (piece->upper == 0) piece->upper = line;
    } else {
        piece->diagonal++;
        if (m->header.symmetry == SPSI_MTX_SKEW &&
            (val[0] != 0 || (m->words == 2 && val[1] != 0)))
            c->error = SPSI_MTX_SKEW_DIAGONAL;
        if (m->header.symmetry == SPSI_MTX_HERMITIAN && m->words == 2 &&
            val[1] != 0)
            c->error = SPSI_MTX_REAL_DIAGONAL;
    }
}

static inline void take_coordinates(const spsi_mtx *m, cursor *c, int32_t *i,
                                    int32_t *j)
{
    *i = take_index(c, m->header.nrow, SPSI_MTX_ROW, SPSI_MTX_ROW_ZERO,
                    SPSI_MTX_ROW_RANGE);
    *j = 0;
    if (c->error != SPSI_MTX_FINE || m->header.vector) return;
    if (ends_line(c->p))
        c->error = SPSI_MTX_NO_COLUMN;
    else
        *j = take_index(c, m->header.ncol, SPSI_MTX_COLUMN,
                        SPSI_MTX_COLUMN_ZERO, SPSI_MTX_COLUMN_RANGE);
}

void spsi_mtx_parse(const spsi_mtx *m, const spsi_mtx_segment *s,
                    spsi_mtx_piece *piece)
{
    spsi_mtx_piece mine = *piece;     /* a copy: no cache line is shared */
    int64_t line = mine.first_line, at = mine.at;
    double val[2] = {1, 0};

    mine.row_low = mine.col_low = INT32_MAX;
    for (const char *p = mine.begin; p < mine.end; line++) {
        cursor c = {skip_blanks(p), SPSI_MTX_FINE};
        int32_t i = 0, j = 0;

        if (is_idle(c.p)) {
            p = next_line(c.p, mine.end);
            continue;
        }
        if (!m->header.array) take_coordinates(m, &c, &i, &j);
        if (m->words > 0 && c.error == SPSI_MTX_FINE)
            take_entry_value(m, &c, val, &mine);
        check_end(m, &c);
        if (!m->header.array && c.error == SPSI_MTX_FINE)
            survey(m, &c, i, j, val, line, &mine);
        if (c.error != SPSI_MTX_FINE) {
            mine.error = c.error;
            mine.where = c.p;
            mine.error_line = line;
            break;
        }
        if (!m->header.array) {
            s->row[at] = i;
            s->col[at] = j;
        }
        for (int w = 0; w < m->words; w++) s->val[m->words * at + w] = val[w];
        at++;
        p = c.p + 1 + (*c.p == '\r');
    }
    mine.count = at - mine.at;
    *piece = mine;
}

void spsi_mtx_find_lines(const spsi_mtx_piece *piece, int64_t count,
                         int32_t *line)
{
    int32_t number = 0;
    int64_t at = 0;

    for (const char *p = piece->begin; at < count; number++) {
        p = skip_blanks(p);
        if (!is_idle(p)) line[at++] = number;
        p = next_line(p, piece->end);
    }
}
