/* SPDX-License-Identifier: BSD-3-Clause */
/* solve_small.c - X = X C^-1 with an upper triangular C, by substitution:
 *
 *     x_j = (x_j - sum over l < j of x_l c_lj) / c_jj
 *
 * Eight rows at a time stand transposed in a buffer, so that a vector holds
 * one column of them; divisions are products with reciprocals.
 *
 * Bytes: X once in, once out; n k (k + 1) / 2 multiply-adds. */
#include "rows.h"

/* t[j] is column j of eight rows; c is packed, reciprocals on its diagonal. */
INLINE void substitute(int k, const double *c, int64_t ldc, v8 *t)
{
    for (int j = 0; j < k; j++) {
        v8 a = t[j], b = {0};
        int l = 0;

        for (; l + 2 <= j; l += 2) {
            a -= c[l * ldc + j] * t[l];
            b -= c[(l + 1) * ldc + j] * t[l + 1];
        }
        if (l < j) a -= c[l * ldc + j] * t[l];
        t[j] = (a + b) * c[j * ldc + j];
    }
}

CLONES void spsi_cpu_strip_solve(int64_t m, int k, const double *c, double *x,
                                 int64_t ldx);

CLONES void spsi_cpu_strip_solve(int64_t m, int k, const double *c, double *x,
                                 int64_t ldx)
{
    v8 t[SPS_BLOCK_MAX] __attribute__((aligned(64)));

    for (int64_t i = 0; i < m; i += 8, x += 8 * ldx) {
        int rows = m - i < 8 ? (int)(m - i) : 8;

        for (int j = 0; j < k; j++) t[j] = (v8){0};
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < k; j++) t[j][r] = x[r * ldx + j];
        substitute(k, c, packed_cols(k), t);
        for (int r = 0; r < rows; r++)
            for (int j = 0; j < k; j++) x[r * ldx + j] = t[j][r];
    }
}

sps_status spsi_cpu_solve_small(const sps_small *C, sps_block *X)
{
    sps_status st;
    chunks c = chunks_of(X->n, 1);
    int64_t ld = packed_cols(X->k);
    double *packed;

    SPS_TRY(spsi_cpu_scratch(X->ctx, X->k * ld, &packed));
    spsi_cpu_pack(1.0, C, packed);
    for (int j = 0; j < X->k; j++)
        packed[j * ld + j] = 1 / packed[j * ld + j];
#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, (int64_t)X->k * X->k / 2))
    for (int64_t i = 0; i < c.count; i++)
        spsi_cpu_strip_solve(chunk_end(c, i) - i * c.rows, X->k, packed,
                             row_of(X, i * c.rows), X->ld);
    return SPS_OK;

fail:
    return st;
}
