/* SPDX-License-Identifier: BSD-3-Clause */
/* step_data.h - integer data in blocks of doubles or floats, their products on
 * the host, and the arrays of the device-side iteration, whose steps are queued
 * without host synchronisation (driver/fused_cg.h). */
#ifndef SPS_TEST_STEP_DATA_H
#define SPS_TEST_STEP_DATA_H

#include <math.h>

#include "block/single.h"
#include "core/backend.h"
#include "driver/fused_cg.h"
#include "tests/problems/zoo.h"
#include "tests/support/fixture.h"
/* Small integers in a block of type dtype; for odd k the padding column behind
 * the last one holds NaN. x (ld k) gets the same numbers. */
static inline sps_block *integers(sps_context *ctx, sps_dtype dtype, int64_t n, int k,
                           uint64_t seed, double **x_p)
{
    double *x = zoo_block(n, k, k, seed, ZOO_SMALL);
    sps_block *X = NULL, *D = fixture_block(ctx, n, k, x, k);
    sps_block *none = fixture_block(ctx, n, k + k % 2, NULL, 0);

    OK(ctx, spsi_reserve(ctx, n, 32));
    OK(ctx, spsi_block_create(ctx, n, k + k % 2, dtype, &X));
    OK(ctx, spsi_fill(none, NAN));
    OK(ctx, spsi_copy(none, X));
    X->k = k;
    if (k > 1) X->width = k;
    OK(ctx, spsi_copy(D, X));
    sps_block_destroy(&none);
    sps_block_destroy(&D);
    *x_p = x;
    return X;
}

static inline void equals(const sps_block *X, const double *x, const char *what)
{
    double *y = malloc((size_t)(X->n * X->k) * sizeof *y);
    sps_block *D = fixture_block(X->ctx, X->n, X->k, NULL, 0);

    OK(X->ctx, spsi_copy(X, D));
    OK(X->ctx, sps_block_get(D, 0, X->k, y, X->k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t t = 0; t < X->n * X->k; t++)
        ck_assert_msg(y[t] == x[t], "%s: n %ld, k %d, row %ld column %d: %g, "
                      "not %g", what, (long)X->n, X->k, (long)(t / X->k),
                      (int)(t % X->k), y[t], x[t]);
    sps_block_destroy(&D);
    free(y);
}

/* Checks that C = X'Y exactly. */
static inline void is_gram(const sps_small *C, int64_t n, const double *x, int kx,
                    const double *y, int ky, const char *what)
{
    for (int a = 0; a < kx; a++)
        for (int b = 0; b < ky; b++) {
            double sum = 0;

            for (int64_t i = 0; i < n; i++) sum += x[i * kx + a] *
                                                   y[i * ky + b];
            ck_assert_msg(*spsi_small_at(C, a, b) == sum, "%s: n %ld, %d x %d "
                          "at (%d, %d): %g, not %g", what, (long)n, kx, ky, a,
                          b, *spsi_small_at(C, a, b), sum);
        }
}

/* y = alpha x C + beta y with C column-major. */
static inline void times_small(int64_t n, double alpha, const double *x, int kx,
                        const sps_small *C, double beta, double *y, int ky)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < ky; j++) {
            double sum = 0;

            for (int l = 0; l < kx; l++)
                sum += x[i * kx + l] * *spsi_small_at(C, l, j);
            y[i * ky + j] = alpha * sum + (beta != 0 ? beta * y[i * ky + j]
                                                     : 0);
        }
}

/* Integers from -2 to 2. */
static inline void fill_small(sps_small *C, int rows, int cols, int seed)
{
    spsi_small_shape(C, rows, cols);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            *spsi_small_at(C, i, j) = (i * 3 + j * 5 + seed) % 5 - 2;
}

/* Stores sign C in the first of the partial sums at `to`, which have `each`
 * numbers, and zeros in the other parts. */
static inline void send(sps_fused_cg *w, double *to, double sign, const sps_small *C,
                 int parts, int each)
{
    double *all = calloc((size_t)(parts * each), sizeof *all);

    for (int e = 0; e < C->rows * C->cols; e++) all[e] = sign * C->v[e];
    OK(w->ctx, w->ctx->backend->upload(w->ctx, to, all, (size_t)(parts * each) *
                                                        sizeof *all));
    free(all);
}

/* Sum over the parts of the numbers that begin at offset `skip` of each
 * part. */
static inline void fetch(sps_fused_cg *w, const double *from, int parts, int each,
                  int skip, int rows, int cols, sps_small *C)
{
    double *all = calloc((size_t)(parts * each), sizeof *all);

    spsi_small_shape(C, rows, cols);
    spsi_small_clear(C);
    OK(w->ctx, w->ctx->backend->download(w->ctx, all, from,
                                         (size_t)(parts * each) *
                                         sizeof *all));
    for (int p = 0; p < parts; p++)
        for (int e = 0; e < rows * cols; e++)
            C->v[e] += all[p * each + skip + e];
    free(all);
}

/* Sets G = I and C = a, so that the step's coefficients equal a, and W = S = 0;
 * the small matrix C is scratch. */
static inline void prepare(sps_fused_cg *w, const sps_small *a, sps_small *C)
{
    const sps_fused_cg_state state = { .given = 1 };

    spsi_small_shape(C, w->r, w->r);
    spsi_small_clear(C);
    for (int i = 0; i < w->r; i++) *spsi_small_at(C, i, i) = 1;
    send(w, w->G, 1, C, w->most_parts, w->r * w->r);
    send(w, w->C, 1, a, 1, w->r * w->k);
    spsi_small_shape(C, w->r, w->k);
    spsi_small_clear(C);
    send(w, w->W, 1, C, w->most_parts, (w->r + 1) * w->k);
    spsi_small_shape(C, w->k, w->k);
    spsi_small_clear(C);
    send(w, w->S, 1, C, w->most_parts, 2 * w->k * w->k);
    OK(w->ctx, w->ctx->backend->upload(w->ctx, w->state, &state,
                                       sizeof state));
}

/* A diagonal of powers of two as a block; d gets the n numbers. */
static inline sps_block *diagonal(sps_context *ctx, int64_t n, double *d)
{
    for (int64_t i = 0; i < n; i++) d[i] = (double)(1 << (i * 5 % 3));
    return fixture_block(ctx, n, 1, d, 1);
}

#endif
