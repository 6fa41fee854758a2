/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_triangle.c - T X = B by substitution on the host:
 *
 *   x_i = (b_i - sum of s_ij x_j) / d_i,  row by row, k columns side by side.
 *
 * There are two ways to use threads, with the same sums.  By slices of columns,
 * one per thread: each slice processes the rows in their natural order without
 * synchronisation, and the triangle is read once per slice.  Or by levels of
 * independent rows, with a parallel region for each level: if there are fewer
 * slices than threads, and levels contain enough work.
 *
 * Single-precision values are converted when they are read; sums are in double
 * precision.
 *
 * Bytes: 12 per entry (8 in single precision) for each slice, 16 k + 8 per row,
 * and the rows of X that the columns refer to, from cache if the pattern is
 * local. */
#include "matrix/triangle.h"
#include "cpu/rows.h"

enum {
    STRIP = 8,
    LEVEL_WORK = 1 << 18     /* multiply-adds of a level for which a parallel
                                region is worthwhile, even if its start must
                                wait for a core */
};

/* Solves one row for w columns from column j on; x contains the rows solved
 * before.  `single` is a constant after inlining. */
#define ROW(type)                                                              \
    do {                                                                       \
        type sum = *(const type *)(b + j);                                     \
        for (int64_t p = 0; p < count; p++)                                    \
            sum -= (single ? (double)f[p] : d[p]) *                            \
                   *(const type *)(x + col[p] * ldx + j);                      \
        *(type *)(out + j) = sum * scale;                                      \
    } while (0)

INLINE void solve_row(const sps_isa isa, const sps_triangle_parts *t,
                      bool single, int64_t i, const sps_block *B,
                      const sps_block *X, int j, int last)
{
    const int64_t p0 = t->S->rowptr[i], count = t->S->rowptr[i + 1] - p0;
    const int32_t *col = t->S->col + p0;
    const double *d = single ? NULL : (const double *)t->S->val + p0;
    const float *f = single ? (const float *)t->S->val + p0 : NULL;
    const double scale = t->inverse ? t->inverse[i] : 1.0;
    const double *b = row_of(B, t->from ? t->from[i] : i), *x = X->data;
    const int64_t ldx = X->ld;
    double *out = row_of(X, t->to ? t->to[i] : i);

    if (isa == SPS_ISA_AVX512)
        for (; j + 8 <= last; j += 8) ROW(v8);
    if (isa != SPS_ISA_PLAIN)
        for (; j + 4 <= last; j += 4) ROW(v4);
    for (; j + 2 <= last; j += 2) ROW(v2);
    if (j < last) ROW(v1);
}

INLINE void walk(const sps_isa isa, const sps_triangle *t, bool single,
                 const sps_block *B, const sps_block *X, int first, int last)
{
    if (t->part.upper)
        for (int64_t i = t->n - 1; i >= 0; i--)
            solve_row(isa, &t->part, single, i, B, X, first, last);
    else
        for (int64_t i = 0; i < t->n; i++)
            solve_row(isa, &t->part, single, i, B, X, first, last);
}

/* Solves all rows in the order of substitution, columns first .. last-1. */
INLINE void solve_strip_of(const sps_isa isa, const sps_triangle *t,
                           const sps_block *B, const sps_block *X, int first,
                           int last)
{
    if (t->part.S->dtype == SPS_F32) walk(isa, t, true, B, X, first, last);
    else walk(isa, t, false, B, X, first, last);
}
CLONED_BY_ISA(static, solve_strip,
       (const sps_triangle *t, const sps_block *B, const sps_block *X,
        int first, int last),
       (t, B, X, first, last))

INLINE void walk_level(const sps_isa isa, const sps_triangle *t, bool single,
                       const sps_block *B, const sps_block *X, int64_t first,
                       int64_t last)
{
    for (int64_t q = first; q < last; q++)
        solve_row(isa, &t->part, single, t->levels.row[q], B, X, 0, X->k);
}

/* Solves rows first .. last-1 of the level order, all columns. */
INLINE void solve_part_of(const sps_isa isa, const sps_triangle *t,
                          const sps_block *B, const sps_block *X, int64_t first,
                          int64_t last)
{
    if (t->part.S->dtype == SPS_F32) walk_level(isa, t, true, B, X, first, last);
    else walk_level(isa, t, false, B, X, first, last);
}
CLONED_BY_ISA(static, solve_part,
       (const sps_triangle *t, const sps_block *B, const sps_block *X,
        int64_t first, int64_t last),
       (t, B, X, first, last))

typedef struct job {
    const sps_triangle *t;
    const sps_block *B, *X;
    int64_t first;           /* position in the level order of work item 0 */
} job;

static void run_part(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    solve_part(j->t, j->B, j->X, j->first + first, j->first + last);
}

static void solve_levels(const sps_triangle *t, const sps_block *B,
                         const sps_block *X, int64_t row_ns)
{
    const sps_levels *l = &t->levels;

    for (int64_t v = 0; v < l->count; v++) {
        const int64_t rows = l->start[v + 1] - l->start[v];

        spsi_team_run(t->ctx, rows, rows * row_ns, run_part,
                      &(job){ t, B, X, l->start[v] });
    }
}

static void run_strips(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const int k = j->X->k;

    for (int s = (int)first; s < last; s++)
        solve_strip(j->t, j->B, j->X, s * STRIP,
                    (s + 1) * STRIP < k ? (s + 1) * STRIP : k);
}

sps_status spsi_cpu_triangle_solve(const sps_triangle *t, const sps_block *B,
                                   sps_block *X)
{
    const int strips = (X->k + STRIP - 1) / STRIP, threads = t->ctx->threads;
    const int64_t rows = t->levels.count ? t->n / t->levels.count : 0;
    const int64_t length = t->n ? t->part.S->nnz / t->n + 2 : 2;
    const int64_t row_ns = work_ns(1, length + 2 * X->k, length * X->k) + 1;

    if (strips < threads && rows * length * X->k >= LEVEL_WORK)
        solve_levels(t, B, X, row_ns);
    else
        spsi_team_run(t->ctx, strips, t->n * row_ns, run_strips,
                      &(job){ t, B, X, 0 });
    return SPS_OK;
}

/* There is nothing to prepare: the host arrays are used directly. */
sps_status spsi_cpu_triangle_open(sps_triangle *t)
{
    (void)t;
    return SPS_OK;
}
void spsi_cpu_triangle_close(sps_triangle *t)
{
    (void)t;
}
