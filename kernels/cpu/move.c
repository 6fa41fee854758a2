/* SPDX-License-Identifier: BSD-3-Clause */
/* move.c - numbers into, out of, and between blocks.  Every element is
 * written once, by the thread that owns its chunk of rows. */
#include "kernels/philox.h"
#include "rows.h"

/* A block without padding is one long row of numbers. */
static bool dense(const sps_block *X)
{
    return X->ld == X->k;
}

sps_status spsi_cpu_fill(sps_block *X, double value)
{
    int64_t n = dense(X) ? X->n * X->k : X->n;
    int k = dense(X) ? 1 : X->k;
    int64_t ld = dense(X) ? 1 : X->ld;
    chunks c = chunks_of(n, 1);
    double *data = X->data;

#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(n, k))
    for (int64_t t = 0; t < c.count; t++)
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i++)
            for (int j = 0; j < k; j++) data[i * ld + j] = value;
    return SPS_OK;
}

sps_status spsi_cpu_random(sps_block *X, uint64_t seed)
{
    chunks c = chunks_of(X->n, 1);

#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++)
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i++) {
            double *x = row_of(X, i);

            for (int j = 0; j + 1 < X->k; j += 2)
                spsi_philox_pair(seed, i, j / 2, &x[j], &x[j + 1]);
            if (X->k % 2) x[X->k - 1] = spsi_philox_at(seed, i, X->k - 1);
        }
    return SPS_OK;
}

static sps_status check_place(sps_context *ctx, sps_place place)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, place != SPS_CUDA, SPS_EINVAL,
                "device memory was given to a context of the host: copy it to "
                "the host first, or make the context with SPS_CUDA");
fail:
    return st;
}

/* Rows first .. last-1 of the column-major data, in squares of 16 x 16 so
 * that each cache line is used whole. */
static void set_columns(const sps_block *X, const double *data, int64_t ld,
                        int64_t first, int64_t last)
{
    for (int64_t i0 = first; i0 < last; i0 += 16) {
        int64_t i1 = i0 + 16 < last ? i0 + 16 : last;

        for (int j0 = 0; j0 < X->k; j0 += 16) {
            int j1 = j0 + 16 < X->k ? j0 + 16 : X->k;

            for (int64_t i = i0; i < i1; i++)
                for (int j = j0; j < j1; j++)
                    row_of(X, i)[j] = data[j * ld + i];
        }
    }
}

static void get_columns(const sps_block *X, double *data, int64_t ld,
                        int64_t first, int64_t last)
{
    for (int64_t i0 = first; i0 < last; i0 += 16) {
        int64_t i1 = i0 + 16 < last ? i0 + 16 : last;

        for (int j = 0; j < X->k; j++)
            for (int64_t i = i0; i < i1; i++)
                data[j * ld + i] = row_of(X, i)[j];
    }
}

sps_status spsi_cpu_set(sps_block *X, const double *data, int64_t ld,
                        sps_order order, sps_place place)
{
    sps_status st;
    chunks c = chunks_of(X->n, 1);

    SPS_TRY(check_place(X->ctx, place));
#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++) {
        if (order == SPS_COL_MAJOR) {
            set_columns(X, data, ld, t * c.rows, chunk_end(c, t));
            continue;
        }
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i++)
            memcpy(row_of(X, i), data + i * ld,
                   (size_t)X->k * sizeof(double));
    }
    return SPS_OK;

fail:
    return st;
}

sps_status spsi_cpu_get(const sps_block *X, double *data, int64_t ld,
                        sps_order order, sps_place place)
{
    sps_status st;
    chunks c = chunks_of(X->n, 1);

    SPS_TRY(check_place(X->ctx, place));
#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++) {
        if (order == SPS_COL_MAJOR) {
            get_columns(X, data, ld, t * c.rows, chunk_end(c, t));
            continue;
        }
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i++)
            memcpy(data + i * ld, row_of(X, i),
                   (size_t)X->k * sizeof(double));
    }
    return SPS_OK;

fail:
    return st;
}

sps_status spsi_cpu_gather(const sps_block *X, const int *index, sps_block *Y)
{
    chunks c = chunks_of(X->n, 1);

#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, Y->k))
    for (int64_t t = 0; t < c.count; t++)
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i++)
            for (int j = 0; j < Y->k; j++)
                row_of(Y, i)[j] = row_of(X, i)[index[j]];
    return SPS_OK;
}

sps_status spsi_cpu_scatter(const sps_block *X, const int *index, sps_block *Y)
{
    chunks c = chunks_of(X->n, 1);

#pragma omp parallel for num_threads(X->ctx->threads) schedule(static)         \
    if (c.count > 1 && pays(c.n, X->k))
    for (int64_t t = 0; t < c.count; t++)
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i++)
            for (int j = 0; j < X->k; j++)
                row_of(Y, i)[index[j]] = row_of(X, i)[j];
    return SPS_OK;
}
