/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx_error.c - texts for errors in a line of a Matrix Market file: file:line:
 * what is wrong, and what to do. */
#include <string.h>

#include "io/mtx.h"

static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Copies the word at `where` in printable characters, cut after 40 bytes. */
static void quote(const char *where, char word[48])
{
    int n = 0;

    for (; n < 40 && !ends_word(where[n]); n++)
        word[n] = where[n] > ' ' && where[n] < 127 ? where[n] : '?';
    if (n == 40) {
        memcpy(word + n, "...", 3);
        n += 3;
    }
    word[n] = '\0';
}

static const char *describe(spsi_mtx_error error)
{
    switch (error) {
    case SPSI_MTX_ROW:
        return "is not a row number (it must have only digits)";
    case SPSI_MTX_COLUMN:
        return "is not a column number (it must have only digits)";
    case SPSI_MTX_VALUE:
        return "is not a number (decimal point, not comma; one entry a line)";
    case SPSI_MTX_INTEGER_VALUE:
        return "is not an integer, but the banner says integer (say real "
               "there)";
    case SPSI_MTX_UNSIGNED_VALUE:
        return "is negative, but the banner says unsigned-integer";
    case SPSI_MTX_HUGE_VALUE:
        return "is beyond the largest double, 1.8e308 (scale the system, or "
               "allow values that are not finite)";
    case SPSI_MTX_NOT_FINITE:
        return "is not finite (option allow-nonfinite reads such "
               "values)";
    case SPSI_MTX_EXTRA:
        return "follows a complete entry: one entry a line";
    case SPSI_MTX_EXTRA_PATTERN:
        return "follows a complete entry: the banner says pattern, so there "
               "are no values";
    case SPSI_MTX_LONG:
        return "is longer than 400 bytes";
    default:
        return "is not what belongs here";
    }
}

sps_status spsi_mtx_complain(const spsi_mtx *m, spsi_mtx_error error,
                             const char *where, int64_t line)
{
    const spsi_mtx_header *h = &m->header;
    long long n = line, nrow = h->nrow, ncol = h->ncol;
    char word[48];

    quote(where, word);
    switch (error) {
    case SPSI_MTX_ROW_ZERO:
    case SPSI_MTX_COLUMN_ZERO:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: %s 0: indices begin "
                         "at 1 (a 0-based file?)", m->name, n,
                         error == SPSI_MTX_ROW_ZERO ? "row" : "column");
    case SPSI_MTX_ROW_RANGE:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: row %s, but the size "
                         "line says %lld rows", m->name, n, word, nrow);
    case SPSI_MTX_COLUMN_RANGE:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: column %s, but the "
                         "size line says %lld columns", m->name, n, word,
                         ncol);
    case SPSI_MTX_NO_COLUMN:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: the column number is "
                         "missing (line cut off?)", m->name, n);
    case SPSI_MTX_NO_VALUE:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: the value is missing "
                         "(line cut off, or is it a pattern file?)", m->name,
                         n);
    case SPSI_MTX_NO_IMAGINARY:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: the imaginary part is "
                         "missing; the banner says complex", m->name, n);
    case SPSI_MTX_SKEW_DIAGONAL:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: a diagonal entry that "
                         "is not zero in a skew-symmetric matrix", m->name, n);
    case SPSI_MTX_REAL_DIAGONAL:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: a diagonal entry that "
                         "is not real in a hermitian matrix", m->name, n);
    case SPSI_MTX_CARRIAGE:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: a carriage return "
                         "inside a line (convert the line ends to newlines)",
                         m->name, n);
    case SPSI_MTX_TOO_MANY:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: too many entries: the "
                         "header says %lld", m->name, n, (long long)h->count);
    default:
        return spsi_fail(m->ctx, SPS_EPARSE, "%s:%lld: \"%s\" %s", m->name, n,
                         word, describe(error));
    }
}
