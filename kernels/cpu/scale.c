/* SPDX-License-Identifier: BSD-3-Clause */
/* scale.c - element-wise sums and scalings of blocks.
 *
 *     Y = a X + b Y,   Y_j = a_j X_j + b_j Y_j,   Y = diag(d) X
 *
 * X and Y may be in double or single precision.  Bytes: each block once. */
#include "cpu/rows.h"

/* y = a x + b y over a row; y is not read if b = 0.  The branch is outside of
 * the loops.  The loops may be vectorised because Y either is X or does not
 * overlap with it. */
INLINE void row_axpby(int64_t k, double a, const double *x, double b,
                      double *y)
{
    if (b == 0) {
#pragma omp simd
        for (int64_t j = 0; j < k; j++) y[j] = a * x[j];
    } else if (b == 1) {
#pragma omp simd
        for (int64_t j = 0; j < k; j++) y[j] += a * x[j];
    } else {
#pragma omp simd
        for (int64_t j = 0; j < k; j++) y[j] = a * x[j] + b * y[j];
    }
}

INLINE void spsi_cpu_strip_axpby_of(int64_t m, int64_t k, double a,
                                    const double *x, int64_t ldx, double b,
                                    double *y, int64_t ldy)
{
    if (ldx == k && ldy == k) {   /* without padding all rows are one long
                                     row */
        k *= m;
        m = 1;
    }
    for (int64_t i = 0; i < m; i++)
        row_axpby(k, a, x + i * ldx, b, y + i * ldy);
}
CLONED(, spsi_cpu_strip_axpby,
       (int64_t m, int64_t k, double a, const double *x, int64_t ldx, double b,
        double *y, int64_t ldy),
       (m, k, a, x, ldx, b, y, ldy))

/* Computes Y = b Y for a = 0: X is not read and may contain anything, as in
 * BLAS. */
static void scale_only(int64_t m, int k, double b, double *y, int64_t ldy)
{
    for (int64_t i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            y[i * ldy + j] = b == 0 ? 0 : b * y[i * ldy + j];
}

typedef struct axpby_job {
    double a, b;
    const double *cols_a, *cols_b;     /* for axpby_cols, else NULL */
    const sps_block *d, *X;
    sps_block *Y;
} axpby_job;

INLINE void rows_axpby_cols(int64_t m, int k, const double *a, const double *x,
                            int64_t ldx, const double *b, double *y,
                            int64_t ldy)
{
    for (int64_t i = 0; i < m; i++) {
        const double *xi = x + i * ldx;
        double *yi = y + i * ldy;

        if (b) {
#pragma omp simd
            for (int j = 0; j < k; j++) yi[j] = a[j] * xi[j] + b[j] * yi[j];
        } else {
#pragma omp simd
            for (int j = 0; j < k; j++) yi[j] = a[j] * xi[j];
        }
    }
}

INLINE void spsi_cpu_strip_axpby_cols_of(int64_t m, int k, const double *a,
                                         const double *x, int64_t ldx,
                                         const double *b, double *y,
                                         int64_t ldy)
{
    int fold = fold_rows(k, ldx, ldy);
    int64_t done = 0;

    if (fold) {
        double a8[8], b8[8];

        fold_scalars(k, a, a8);
        if (b) fold_scalars(k, b, b8);
        done = m / fold * fold;
        rows_axpby_cols(m / fold, 8, a8, x, 8, b ? b8 : NULL, y, 8);
    }
    rows_axpby_cols(m - done, k, a, x + done * ldx, ldx, b, y + done * ldy,
                    ldy);
}
CLONED(, spsi_cpu_strip_axpby_cols,
       (int64_t m, int k, const double *a, const double *x, int64_t ldx,
        const double *b, double *y, int64_t ldy),
       (m, k, a, x, ldx, b, y, ldy))

INLINE void strip_scale_rows_of(int64_t m, int k, const double *d, int64_t ldd,
                                const double *x, int64_t ldx, double *y,
                                int64_t ldy)
{
    for (int64_t i = 0; i < m; i++)
#pragma omp simd
        for (int j = 0; j < k; j++)
            y[i * ldy + j] = d[i * ldd] * x[i * ldx + j];
}
CLONED(static, strip_scale_rows,
       (int64_t m, int k, const double *d, int64_t ldd, const double *x,
        int64_t ldx, double *y, int64_t ldy),
       (m, k, d, ldd, x, ldx, y, ldy))

/* ------------------------------------- blocks in double or single precision */

static void strip_of(const axpby_job *j, int64_t i, int64_t m, const double *x,
                     int64_t ldx, double *y, int64_t ldy)
{
    const int k = j->Y->k;

    if (j->d)
        strip_scale_rows(m, k, row_of(j->d, i), j->d->ld, x, ldx, y, ldy);
    else if (j->cols_a)
        spsi_cpu_strip_axpby_cols(m, k, j->cols_a, x, ldx, j->cols_b, y, ldy);
    else if (j->a == 0)
        scale_only(m, k, j->b, y, ldy);
    else
        spsi_cpu_strip_axpby(m, k, j->a, x, ldx, j->b, y, ldy);
}

static void chunk_double(void *data, int64_t first, int64_t last)
{
    const axpby_job *j = data;

    strip_of(j, first, last - first, row_of(j->X, first), j->X->ld,
             row_of(j->Y, first), j->Y->ld);
}

/* Processes blocks of which one or both are in single precision, as strips in
 * double precision. */
static void chunk_single(void *data, int64_t first, int64_t last)
{
    const axpby_job *j = data;
    const bool reads = j->b != 0 || j->cols_b;
    sps_block *Y = j->Y;
    double xs[SINGLE_ROOM], ys[SINGLE_ROOM];
    int64_t step = single_rows(Y->k), ldx, ldy = Y->k;

    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        const double *x = spsi_cpu_strip_in(j->X, i, m, xs, &ldx);
        double *y = !reads && Y->dtype == SPS_F32
                        ? ys : spsi_cpu_strip_in(Y, i, m, ys, &ldy);

        strip_of(j, i, m, x, ldx, y, ldy);
        spsi_cpu_strip_out(Y, i, m, y, ldy);
    }
}

static sps_status run(axpby_job *j)
{
    const sps_block *X = j->X, *Y = j->Y;
    const bool single = X->dtype == SPS_F32 || Y->dtype == SPS_F32;

    spsi_cpu_over_chunks(X->ctx, chunks_of(X->n, 1),
                         work_ns(X->n, 2 * X->k, 0),
                         single ? chunk_single : chunk_double, j);
    return SPS_OK;
}

sps_status spsi_cpu_axpby(double a, const sps_block *X, double b, sps_block *Y)
{
    return run(&(axpby_job){ .a = a, .b = b, .X = X, .Y = Y });
}

sps_status spsi_cpu_axpby_cols(const double *a, const sps_block *X,
                               const double *b, sps_block *Y)
{
    return run(&(axpby_job){ .cols_a = a, .X = X, .cols_b = b, .Y = Y });
}

sps_status spsi_cpu_scale_rows(const sps_block *d, const sps_block *X,
                               sps_block *Y)
{
    return run(&(axpby_job){ .d = d, .X = X, .Y = Y });
}
