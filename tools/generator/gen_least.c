/* SPDX-License-Identifier: BSD-3-Clause */
/* gen_least.c - sparse m x n matrices with known singular values, for least
 * squares:
 *
 *     A = Q G diag(d) H K,    d_j = cond^(-t / (r - 1)), t = 0 .. r - 1,
 *
 * r = min(m, n) - deficient, the other d_j are 0; t numbers the columns j in a
 * scattered order.  Q, H and K are orthogonal, made of reflections I - 2 v v' /
 * v'v of random v: Q mixes rows 2 s and 2 s + 1, H pairs of columns, and K
 * groups of four after a permutation.  G has orthonormal columns: row i has one
 * entry, in column i mod min(m, n), which is +-1 divided by the square root of
 * the number of entries of that column.
 *
 * So a row of A has at most 2 * 2 * 4 = 16 entries, and the singular values are
 * d up to rounding.  Everything is a function of (seed, row). */
#include "tools/generator/gen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { Q_PART, H_PART, K_PART, SIGN };   /* streams of random numbers */
enum { WIDEST = 16 };

static int64_t smaller(const gen_spec *s)
{
    return s->n[0] < s->n[1] ? s->n[0] : s->n[1];
}

static int64_t common(int64_t a, int64_t b)
{
    return b ? common(b, a % b) : a;
}

/* Returns a multiplier near 0.618 n without a common divisor with n. */
static int64_t scatter(int64_t n)
{
    int64_t a = (int64_t)(0.6180339887 * (double)n) + 1;

    while (common(a, n) != 1) a++;
    return a;
}

/* Computes row `at` of reflection number `which` of a part, for `size` rows. */
static void reflect(const gen_spec *s, int part, int64_t which, int at,
                    int size, double row[4])
{
    double v[4], norm2 = 0;

    for (int q = 0; q < size; q++) {
        v[q] = gen_uniform(s->seed, (uint64_t)(4 * which + q), (uint32_t)part);
        norm2 += v[q] * v[q];
    }
    for (int q = 0; q < size; q++)
        row[q] = (q == at) - (norm2 > 0 ? 2 * v[at] * v[q] / norm2 : 0);
}

/* Returns the number of rows of the group of `size` that begins at `first`, of
 * n rows in all. */
static int group(int64_t n, int64_t first, int size)
{
    return n - first < size ? (int)(n - first) : size;
}

static double singular(const gen_spec *s, int64_t j)
{
    const int64_t all = smaller(s), rank = all - s->deficient;
    const int64_t t = j * s->scatter[0] % all;   /* below 2^62 */

    if (t >= rank) return 0;
    return rank > 1 ? pow(s->cond, -(double)t / (double)(rank - 1)) : 1;
}

/* Appends x times row j of K, with the permutation of columns, to col and val;
 * returns the number of entries. */
static int64_t add_last(const gen_spec *s, int64_t j, double x, int32_t *col,
                        double *val)
{
    const int64_t n = s->n[1];
    const int64_t to = j * s->scatter[1] % n;
    const int64_t first = to - to % 4;
    const int size = group(n, first, 4);
    double row[4];

    reflect(s, K_PART, first / 4, (int)(to - first), size, row);
    for (int q = 0; q < size; q++) {
        col[q] = (int32_t)(first + q);
        val[q] = x * row[q];
    }
    return size;
}

/* Appends x times row i of G diag(d) H K to col and val; returns the number of
 * entries. */
static int64_t add_row(const gen_spec *s, int64_t i, double x, int32_t *col,
                       double *val)
{
    const int64_t all = smaller(s), j = i % all, first = j - j % 2;
    const int64_t entries = s->n[0] / all + (j < s->n[0] % all);
    const int size = group(s->n[1], first, 2);
    const double d = singular(s, j) / sqrt((double)entries);
    int64_t count = 0;
    double row[4];

    if (d == 0) return 0;
    if (gen_uniform(s->seed, (uint64_t)i, SIGN) < 0) x = -x;
    reflect(s, H_PART, first / 2, (int)(j - first), size, row);
    for (int q = 0; q < size; q++)
        count += add_last(s, first + q, x * d * row[q], col + count,
                          val + count);
    return count;
}

/* Sorts by column, sums duplicates and drops zeros. */
static int64_t tidy(int32_t *col, double *val, int64_t count)
{
    int64_t kept = 0;

    for (int64_t p = 1; p < count; p++)
        for (int64_t q = p; q > 0 && col[q - 1] > col[q]; q--) {
            const int32_t c = col[q];
            const double v = val[q];

            col[q] = col[q - 1], val[q] = val[q - 1];
            col[q - 1] = c, val[q - 1] = v;
        }
    for (int64_t p = 0; p < count; p++) {
        if (kept && col[kept - 1] == col[p]) {
            val[kept - 1] += val[p];
            continue;
        }
        kept -= kept && val[kept - 1] == 0;
        col[kept] = col[p], val[kept++] = val[p];
    }
    return kept - (kept && val[kept - 1] == 0);
}

int64_t gen_least_row(const gen *g, int64_t i, int32_t *col, double *val)
{
    const gen_spec *s = &g->spec;
    const int64_t first = i - i % 2;
    const int size = group(s->n[0], first, 2);
    /* col and val have space for the result only. */
    int32_t all_col[WIDEST];
    double all_val[WIDEST], row[4];
    int64_t count = 0;

    reflect(s, Q_PART, first / 2, (int)(i - first), size, row);
    for (int q = 0; q < size; q++)
        count += add_row(s, first + q, row[q], all_col + count,
                         all_val + count);
    count = tidy(all_col, all_val, count);
    memcpy(col, all_col, (size_t)count * sizeof *col);
    memcpy(val, all_val, (size_t)count * sizeof *val);
    return count;
}

int64_t gen_least_count(const gen *g, int64_t i)
{
    int32_t col[WIDEST];
    double val[WIDEST];

    return gen_least_row(g, i, col, val);
}

bool gen_least_open(gen *g, char error[160])
{
    gen_spec *s = &g->spec;
    int64_t nnz = 0, diagonal = 0;

    if (s->deficient >= smaller(s)) {
        snprintf(error, 160, "-deficient %lld: it must be below the smaller "
                 "size, %lld", (long long)s->deficient, (long long)smaller(s));
        return false;
    }
    s->scatter[0] = scatter(smaller(s));
    s->scatter[1] = scatter(s->n[1]);
    g->rows = s->n[0];
    g->columns = s->n[1];
    g->widest = WIDEST;
#pragma omp parallel for reduction(+ : nnz, diagonal)
    for (int64_t i = 0; i < g->rows; i++) {
        int32_t col[WIDEST];
        double val[WIDEST];
        const int64_t count = gen_least_row(g, i, col, val);

        nnz += count;
        for (int64_t p = 0; p < count; p++) diagonal += col[p] == i;
    }
    g->nnz = nnz;
    g->diagonal = diagonal;
    return true;
}
