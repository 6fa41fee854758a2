/* SPDX-License-Identifier: BSD-3-Clause */
/* basis.c - products with a stack of blocks (lib/basis.h):
 *
 *     H(l, c) = V_l(:, c)' W(:, c),      W = a sum_l V_l diag(H(l, :)) [+ W].
 *
 * A stack of floats is widened strip by strip.  A strip of W stays in the
 * first-level cache while the same strips of all blocks pass by.  Bytes: the
 * count blocks once, W once (read, or written as well); two operations a number
 * read: bound by memory. */
#include "rows.h"

#include "lib/basis.h"

/* m rows of block l from row i on, of the columns in use. */
static const double *strip_of(const sps_basis *V, int l, int64_t i, int64_t m,
                              double *room, int64_t *ld)
{
    sps_block all = *V->all;

    all.k = V->k;
    return spsi_cpu_strip_in(&all, l * V->rows + i, m, room, ld);
}

static int64_t rows_at_once(const sps_basis *V, int k)
{
    return V->all->dtype == SPS_F64 ? strip_rows(k) : single_rows(k);
}

sps_status spsi_cpu_basis_dots(const sps_basis *V, int count,
                               const sps_block *W, sps_small *H)
{
    sps_status st;
    int k = W->k, threads = W->ctx->threads;
    int64_t items = (int64_t)count * k, step = rows_at_once(V, k);
    chunks c = chunks_of(W->n, items);
    double *partial;

    SPS_TRY(spsi_cpu_scratch(W->ctx, c.count * items, &partial));
#pragma omp parallel for num_threads(threads) schedule(static)                 \
    if (c.count > 1 && pays(c.n, items))
    for (int64_t t = 0; t < c.count; t++) {
        double *sum = partial + t * items, room[SINGLE_ROOM];
        int64_t ld;

        memset(sum, 0, (size_t)items * sizeof *sum);
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i += step) {
            int64_t left = chunk_end(c, t) - i, m = left < step ? left : step;

            for (int l = 0; l < count; l++) {
                const double *v = strip_of(V, l, i, m, room, &ld);

                spsi_cpu_strip_dots(m, v, ld, row_of(W, i), W->ld, k,
                                    sum + l * k);
            }
        }
    }
    spsi_cpu_sum_chunks(threads, c.count, items, partial);
    for (int l = 0; l < count; l++)
        for (int j = 0; j < k; j++)
            *spsi_small_at(H, l, j) = partial[l * k + j];
    return SPS_OK;

fail:
    return st;
}

/* One strip of W; row holds a H by rows, one holds ones. */
static void update_strip(int64_t m, int64_t i, const sps_basis *V, int count,
                         const double *row, const double *one, bool add,
                         sps_block *W)
{
    double room[SINGLE_ROOM];
    int64_t ld;

    for (int l = 0; l < count; l++) {
        const double *v = strip_of(V, l, i, m, room, &ld);

        spsi_cpu_strip_axpby_cols(m, W->k, row + l * W->k, v, ld,
                                  add || l > 0 ? one : NULL, row_of(W, i),
                                  W->ld);
    }
}

sps_status spsi_cpu_basis_update(double a, const sps_basis *V, int count,
                                 const sps_small *H, bool add, sps_block *W,
                                 double *norm2)
{
    sps_status st;
    int k = W->k, threads = W->ctx->threads;
    int64_t items = (int64_t)count * k, step = rows_at_once(V, k);
    chunks c = chunks_of(W->n, k);
    double *row, *one, *partial;

    SPS_TRY(spsi_cpu_scratch(W->ctx, items + k + c.count * k, &row));
    one = row + items;
    partial = one + k;
    for (int j = 0; j < k; j++) {
        one[j] = 1;
        for (int l = 0; l < count; l++)
            row[l * k + j] = a * *spsi_small_at(H, l, j);
    }
#pragma omp parallel for num_threads(threads) schedule(static)                 \
    if (c.count > 1 && pays(c.n, items))
    for (int64_t t = 0; t < c.count; t++) {
        double *sum = partial + t * k;

        memset(sum, 0, (size_t)k * sizeof *sum);
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i += step) {
            int64_t left = chunk_end(c, t) - i, m = left < step ? left : step;

            update_strip(m, i, V, count, row, one, add, W);
            if (norm2)
                spsi_cpu_strip_dots(m, row_of(W, i), W->ld, row_of(W, i),
                                    W->ld, k, sum);
        }
    }
    if (!norm2) return SPS_OK;
    spsi_cpu_sum_chunks(threads, c.count, k, partial);
    memcpy(norm2, partial, (size_t)k * sizeof *norm2);
    return SPS_OK;

fail:
    return st;
}
