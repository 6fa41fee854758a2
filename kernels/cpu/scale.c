/* SPDX-License-Identifier: BSD-3-Clause */
/* scale.c - sums and scalings of blocks, element by element.
 *
 *     Y = a X + b Y,   Y_j = a_j X_j + b_j Y_j,   Y = diag(d) X
 *
 * Bytes: each block once. */
#include "rows.h"

/* y = a x + b y over a row; b = 0 does not read y.  The branch is outside of
 * the loops; these are safe as vector code, because Y is X or apart from it. */
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

CLONES void spsi_cpu_strip_axpby(int64_t m, int64_t k, double a,
                                 const double *x, int64_t ldx, double b,
                                 double *y, int64_t ldy)
{
    if (ldx == k && ldy == k) {   /* no padding: one long row */
        k *= m;
        m = 1;
    }
    for (int64_t i = 0; i < m; i++)
        row_axpby(k, a, x + i * ldx, b, y + i * ldy);
}

/* a = 0 is a scaling of Y: X may hold anything then, as in BLAS. */
static void scale_only(int64_t m, int k, double b, double *y, int64_t ldy)
{
    for (int64_t i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            y[i * ldy + j] = b == 0 ? 0 : b * y[i * ldy + j];
}

sps_status spsi_cpu_axpby(double a, const sps_block *X, double b, sps_block *Y)
{
    chunks c = chunks_of(X->n, 1);

    if (X->dtype == SPS_F32 || Y->dtype == SPS_F32)
        return spsi_cpu_single_axpby(a, X, b, Y);
#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++) {
        int64_t i = t * c.rows, m = chunk_end(c, t) - i;

        if (a == 0)
            scale_only(m, X->k, b, row_of(Y, i), Y->ld);
        else
            spsi_cpu_strip_axpby(m, X->k, a, row_of(X, i), X->ld, b,
                                 row_of(Y, i), Y->ld);
    }
    return SPS_OK;
}

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

CLONES void spsi_cpu_strip_axpby_cols(int64_t m, int k, const double *a,
                                      const double *x, int64_t ldx,
                                      const double *b, double *y, int64_t ldy)
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

sps_status spsi_cpu_axpby_cols(const double *a, const sps_block *X,
                               const double *b, sps_block *Y)
{
    chunks c = chunks_of(X->n, 1);

#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++) {
        int64_t i = t * c.rows;

        spsi_cpu_strip_axpby_cols(chunk_end(c, t) - i, X->k, a, row_of(X, i),
                                  X->ld, b, row_of(Y, i), Y->ld);
    }
    return SPS_OK;
}

CLONES void spsi_cpu_strip_scale_rows(int64_t m, int k, const double *d,
                                      int64_t ldd, const double *x,
                                      int64_t ldx, double *y, int64_t ldy);

CLONES void spsi_cpu_strip_scale_rows(int64_t m, int k, const double *d,
                                      int64_t ldd, const double *x,
                                      int64_t ldx, double *y, int64_t ldy)
{
    for (int64_t i = 0; i < m; i++)
#pragma omp simd
        for (int j = 0; j < k; j++)
            y[i * ldy + j] = d[i * ldd] * x[i * ldx + j];
}

sps_status spsi_cpu_scale_rows(const sps_block *d, const sps_block *X,
                               sps_block *Y)
{
    chunks c = chunks_of(X->n, 1);

#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++) {
        int64_t i = t * c.rows;

        spsi_cpu_strip_scale_rows(chunk_end(c, t) - i, X->k, row_of(d, i),
                                  d->ld, row_of(X, i), X->ld, row_of(Y, i),
                                  Y->ld);
    }
    return SPS_OK;
}
