/* SPDX-License-Identifier: BSD-3-Clause */
/* solve_small.c - X = X C^-1 with an upper triangular C, by substitution, eight
 * columns at a time:
 *
 *     X_j = (X_j - sum over i < j of X_i C_ij) C_jj^-1
 *
 * with the inverses of the 8 x 8 blocks of the diagonal, so that all of it is
 * products with small matrices.  A strip of rows goes through all columns while
 * it is in the caches.
 *
 * Bytes: X once in, once out; n k (k + 8) / 2 multiply-adds. */
#include "rows.h"

#define WIDTH 8

/* Panel j of the packed C: the rows above the block of the diagonal, turned in
 * sign, and its inverse; zeros fill up the last. */
static double *panel_of(double *packed, int j)
{
    return packed + (int64_t)WIDTH * (j / WIDTH) * (j + WIDTH) / 2;
}

static void invert(const sps_small *C, int first, int k, double *t)
{
    memset(t, 0, WIDTH * WIDTH * sizeof *t);
    for (int c = 0; c < k; c++)
        for (int i = c; i >= 0; i--) {
            double sum = i == c;

            for (int l = i + 1; l <= c; l++)
                sum -= *spsi_small_at(C, first + i, first + l) *
                       t[l * WIDTH + c];
            t[i * WIDTH + c] = sum / *spsi_small_at(C, first + i, first + i);
        }
}

static void pack(const sps_small *C, double *packed)
{
    for (int j = 0; j < C->cols; j += WIDTH) {
        int k = C->cols - j < WIDTH ? C->cols - j : WIDTH;
        double *panel = panel_of(packed, j);

        for (int l = 0; l < j; l++)
            for (int c = 0; c < WIDTH; c++)
                panel[l * WIDTH + c] =
                    c < k ? -*spsi_small_at(C, l, j + c) : 0;
        invert(C, j, k, panel + j * WIDTH);
    }
}

static void strip_solve(int64_t m, int k, double *packed, double *x,
                        int64_t ldx)
{
    for (int j = 0; j < k; j += WIDTH) {
        int kj = k - j < WIDTH ? k - j : WIDTH;
        const double *panel = panel_of(packed, j);
        double *xj = x + j;

        if (j > 0)
            spsi_cpu_strip_mul(m, x, ldx, j, panel, kj, 1.0, xj, ldx, xj, ldx);
        spsi_cpu_strip_mul(m, xj, ldx, kj, panel + j * WIDTH, kj, 0.0, xj, ldx,
                           xj, ldx);
    }
}

sps_status spsi_cpu_solve_small(const sps_small *C, sps_block *X)
{
    sps_status st;
    chunks c = chunks_of(X->n, 1);
    int64_t step = strip_rows(X->k);
    double *packed;

    SPS_TRY(spsi_cpu_scratch(X->ctx, (X->k + WIDTH) * packed_cols(X->k),
                             &packed));
    pack(C, packed);
#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, (int64_t)X->k * X->k / 2))
    for (int64_t t = 0; t < c.count; t++)
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i += step) {
            int64_t left = chunk_end(c, t) - i;

            strip_solve(left < step ? left : step, X->k, packed, row_of(X, i),
                        X->ld);
        }
    return SPS_OK;

fail:
    return st;
}
