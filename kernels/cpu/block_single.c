/* SPDX-License-Identifier: BSD-3-Clause */
/* block_single.c - strips of single-precision blocks: half the bytes, sums in
 * double precision.  A strip of rows is converted to double precision into a
 * buffer in the L1 cache, processed there like a strip of a double-precision
 * block, and rounded when it is stored.  (Double-precision blocks pass through
 * the same functions without a copy.) */
#include "cpu/rows.h"

INLINE void widen_of(int64_t m, int k, const float *x, int64_t ldx, double *y)
{
    const int64_t row = ldx == k ? m * k : k;   /* without padding all rows are
                                                   one long row */

    for (int64_t i = 0; i * row < m * k; i++)
#pragma omp simd
        for (int64_t j = 0; j < row; j++) y[i * row + j] = x[i * ldx + j];
}
CLONED(static, widen,
       (int64_t m, int k, const float *x, int64_t ldx, double *y),
       (m, k, x, ldx, y))

INLINE void round_rows_of(int64_t m, int k, const double *x, int64_t ldx,
                          float *y, int64_t ldy)
{
    const int64_t row = ldx == k && ldy == k ? m * k : k;

    for (int64_t i = 0; i * row < m * k; i++)
#pragma omp simd
        for (int64_t j = 0; j < row; j++)
            y[i * ldy + j] = (float)x[i * ldx + j];
}
CLONED(static, round_rows,
       (int64_t m, int k, const double *x, int64_t ldx, float *y, int64_t ldy),
       (m, k, x, ldx, y, ldy))

static float *floats_of(const sps_block *X, int64_t i)
{
    return (float *)X->data + i * X->ld;
}

double *spsi_cpu_strip_in(const sps_block *X, int64_t i, int64_t m,
                          double *room, int64_t *ld)
{
    *ld = X->dtype == SPS_F64 ? X->ld : X->k;
    if (X->dtype == SPS_F64) return row_of(X, i);
    widen(m, X->k, floats_of(X, i), X->ld, room);
    return room;
}

void spsi_cpu_strip_out(sps_block *X, int64_t i, int64_t m,
                        const double *rows, int64_t ld)
{
    if (X->dtype == SPS_F32)
        round_rows(m, X->k, rows, ld, floats_of(X, i), X->ld);
}
