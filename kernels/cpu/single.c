/* SPDX-License-Identifier: BSD-3-Clause */
/* single.c - blocks of floats: half the bytes, the same sums.  A strip is
 * widened to doubles on its way into the first-level cache, worked on there
 * like any other, and rounded on its way out.  (Blocks of doubles pass the
 * same functions as they are.) */
#include "lib/single.h"
#include "rows.h"

CLONES void spsi_cpu_widen(int64_t m, int k, const float *x, int64_t ldx,
                           double *y);
CLONES void spsi_cpu_round(int64_t m, int k, const double *x, int64_t ldx,
                           float *y, int64_t ldy);

CLONES void spsi_cpu_widen(int64_t m, int k, const float *x, int64_t ldx,
                           double *y)
{
    const int64_t row = ldx == k ? m * k : k;   /* no gaps: one long row */

    for (int64_t i = 0; i * row < m * k; i++)
#pragma omp simd
        for (int64_t j = 0; j < row; j++) y[i * row + j] = x[i * ldx + j];
}

CLONES void spsi_cpu_round(int64_t m, int k, const double *x, int64_t ldx,
                           float *y, int64_t ldy)
{
    const int64_t row = ldx == k && ldy == k ? m * k : k;

    for (int64_t i = 0; i * row < m * k; i++)
#pragma omp simd
        for (int64_t j = 0; j < row; j++)
            y[i * ldy + j] = (float)x[i * ldx + j];
}

static float *floats_of(const sps_block *X, int64_t i)
{
    return (float *)X->data + i * X->ld;
}

double *spsi_cpu_strip_in(const sps_block *X, int64_t i, int64_t m,
                          double *room, int64_t *ld)
{
    *ld = X->dtype == SPS_F64 ? X->ld : X->k;
    if (X->dtype == SPS_F64) return row_of(X, i);
    spsi_cpu_widen(m, X->k, floats_of(X, i), X->ld, room);
    return room;
}

void spsi_cpu_strip_out(sps_block *X, int64_t i, int64_t m,
                        const double *rows, int64_t ld)
{
    if (X->dtype == SPS_F32)
        spsi_cpu_round(m, X->k, rows, ld, floats_of(X, i), X->ld);
}

/* ------------------------------------------------------------------- slots */

/* Rows first .. last-1 of Y = a X + b Y. */
static void chunk_axpby(double a, const sps_block *X, double b, sps_block *Y,
                        int64_t first, int64_t last)
{
    double xs[SINGLE_ROOM], ys[SINGLE_ROOM];
    int64_t step = single_rows(Y->k), ldx, ldy;

    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        const double *x = spsi_cpu_strip_in(X, i, m, xs, &ldx);
        double *y = b == 0 && Y->dtype == SPS_F32
                        ? (ldy = Y->k, ys)
                        : spsi_cpu_strip_in(Y, i, m, ys, &ldy);

        spsi_cpu_strip_axpby(m, Y->k, a, x, ldx, b, y, ldy);
        spsi_cpu_strip_out(Y, i, m, y, ldy);
    }
}

sps_status spsi_cpu_single_axpby(double a, const sps_block *X, double b,
                                 sps_block *Y)
{
    chunks c = chunks_of(Y->n, 1);

#pragma omp parallel for num_threads(Y->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, Y->k))
    for (int64_t t = 0; t < c.count; t++)
        chunk_axpby(a, X, b, Y, t * c.rows, chunk_end(c, t));
    return SPS_OK;
}

/* Of X, columns a0 .. in a view; a strip has room for so many. */
static void panel_of(const sps_block *X, int a0, sps_block *panel)
{
    const int left = X->k - a0;

    spsi_block_view(X, a0, left < SPS_SINGLE_WIDEST ? left : SPS_SINGLE_WIDEST,
                    panel);
}

/* The partial sums of X'Y of rows first .. last-1 for a panel of X. */
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

/* All panels, one behind the other in sum. */
static void chunk_grams(const sps_block *X, const sps_block *Y, int64_t first,
                        int64_t last, double *sum)
{
    sps_block panel;

    for (int a0 = 0; a0 < X->k; a0 += SPS_SINGLE_WIDEST) {
        panel_of(X, a0, &panel);
        chunk_gram(&panel, Y, first, last, sum + (int64_t)a0 * Y->k);
    }
}

sps_status spsi_cpu_single_gram(const sps_block *X, const sps_block *Y,
                                sps_small *C)
{
    int64_t items = (int64_t)X->k * Y->k;
    chunks c = chunks_of(X->n, items);
    int threads = X->ctx->threads;
    double *partial;
    sps_status st;

    SPS_TRY(spsi_cpu_scratch(X->ctx, c.count * items, &partial));
#pragma omp parallel for num_threads(threads) schedule(static)                 \
    if (c.count > 1 && pays(c.n, items))
    for (int64_t t = 0; t < c.count; t++)
        chunk_grams(X, Y, t * c.rows, chunk_end(c, t), partial + t * items);
    spsi_cpu_sum_chunks(threads, c.count, items, partial);
    spsi_cpu_unpack(partial, C);
    return SPS_OK;

fail:
    return st;
}

/* Y = X c + b Y for a panel of X, c packed. */
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

static void chunk_muls(const sps_block *X, const double *c, double b,
                       sps_block *Y, int64_t first, int64_t last)
{
    sps_block panel;

    for (int a0 = 0; a0 < X->k; a0 += SPS_SINGLE_WIDEST) {
        panel_of(X, a0, &panel);
        chunk_mul(&panel, c + a0 * packed_cols(Y->k), a0 ? 1.0 : b, Y, first,
                  last);
    }
}

sps_status spsi_cpu_single_mul_small(double a, const sps_block *X,
                                     const sps_small *C, double b,
                                     sps_block *Y)
{
    chunks c = chunks_of(X->n, 1);
    double *packed;
    sps_status st;

    SPS_TRY(spsi_cpu_scratch(X->ctx, X->k * packed_cols(Y->k), &packed));
    spsi_cpu_pack(a, C, packed);
#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, (int64_t)X->k * Y->k))
    for (int64_t t = 0; t < c.count; t++)
        chunk_muls(X, packed, b, Y, t * c.rows, chunk_end(c, t));
    return SPS_OK;

fail:
    return st;
}
