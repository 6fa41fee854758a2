/* SPDX-License-Identifier: BSD-3-Clause */
/* block_single.c - operations on single-precision blocks: half the bytes, sums
 * in double precision.  A strip of rows is converted to double precision into a
 * buffer in the L1 cache, processed there like a strip of a double-precision
 * block, and rounded when it is stored.  (Double-precision blocks pass through
 * the same functions without a copy.) */
#include "block/single.h"
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

/* -------------------------------------------------------------- operations */

/* Makes a panel of X: a view of as many columns from a0 on as the buffer of a
 * strip can hold. */
static void panel_of(const sps_block *X, int a0, sps_block *panel)
{
    const int left = X->k - a0;

    spsi_block_view(X, a0, left < SPS_SINGLE_WIDEST ? left : SPS_SINGLE_WIDEST,
                    panel);
}

/* Adds X'Y over rows first .. last-1, for a panel of X. */
static void chunk_gram(const sps_block *X, const sps_block *Y, int64_t first,
                       int64_t last, double *sum)
{
    double xs[SINGLE_ROOM], ys[SINGLE_ROOM];
    int64_t step = strip_rows(X->k > Y->k ? X->k : Y->k), ldx, ldy;

    memset(sum, 0, (size_t)(X->k * Y->k) * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        const double *x = spsi_cpu_strip_in(X, i, m, xs, &ldx);
        const double *y = spsi_cpu_strip_in(Y, i, m, ys, &ldy);

        spsi_cpu_strip_gram(m, x, ldx, X->k, y, ldy, Y->k, sum, Y->k);
    }
}

void spsi_cpu_single_grams(void *data, int64_t first, int64_t last)
{
    const gram_job *j = data;
    double *sum = j->partial + first / j->c.rows * j->items;
    sps_block panel;

    for (int a0 = 0; a0 < j->X->k; a0 += SPS_SINGLE_WIDEST) {
        panel_of(j->X, a0, &panel);
        chunk_gram(&panel, j->Y, first, last, sum + (int64_t)a0 * j->Y->k);
    }
}

/* Y = X c + b Y for X or a panel of it; c is packed (spsi_cpu_pack). */
static void chunk_mul(const sps_block *X, const double *c, double b,
                      sps_block *Y, int64_t first, int64_t last)
{
    double xs[SINGLE_ROOM], ys[SINGLE_ROOM];
    int64_t step = strip_rows(X->k > Y->k ? X->k : Y->k), ldx, ldy;

    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        const double *x = spsi_cpu_strip_in(X, i, m, xs, &ldx);
        double *y = spsi_cpu_strip_in(Y, i, m, ys, &ldy);

        spsi_cpu_strip_mul(m, x, ldx, X->k, c, Y->k, b, y, ldy, y, ldy);
        spsi_cpu_strip_out(Y, i, m, y, ldy);
    }
}

void spsi_cpu_chunk_mul(void *data, int64_t first, int64_t last)
{
    const mul_job *j = data;
    sps_block panel;

    if (j->X->dtype == SPS_F64) {
        chunk_mul(j->X, j->packed, j->b, j->Y, first, last);
        return;
    }
    for (int a0 = 0; a0 < j->X->k; a0 += SPS_SINGLE_WIDEST) {
        panel_of(j->X, a0, &panel);
        chunk_mul(&panel, j->packed + a0 * packed_cols(j->Y->k),
                  a0 ? 1.0 : j->b, j->Y, first, last);
    }
}
