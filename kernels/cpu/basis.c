/* SPDX-License-Identifier: BSD-3-Clause */
/* basis.c - products with a stack of blocks (lib/basis.h):
 *
 *     H(l, c) = V_l(:, c)' W(:, c),      W = a sum_l V_l diag(H(l, :)) [+ W].
 *
 * A strip of W stays in the first-level cache while the same strips of all
 * blocks pass by.  Bytes: the count blocks once, W once (read, or written as
 * well); two operations a number read: bound by memory. */
#include "rows.h"

#include "lib/basis.h"

static const double *strip_of(const sps_basis *V, int l, int64_t i)
{
    return (const double *)V->all->data + (l * V->rows + i) * V->all->ld;
}

sps_status spsi_cpu_basis_dots(const sps_basis *V, int count,
                               const sps_block *W, sps_small *H)
{
    sps_status st;
    int k = W->k, threads = W->ctx->threads;
    int64_t items = (int64_t)count * k, step = strip_rows(k);
    chunks c = chunks_of(W->n, items);
    double *partial;

    SPS_TRY(spsi_cpu_scratch(W->ctx, c.count * items, &partial));
#pragma omp parallel for num_threads(threads) schedule(static)                 \
    if (c.count > 1 && pays(c.n, items))
    for (int64_t t = 0; t < c.count; t++) {
        double *sum = partial + t * items;

        memset(sum, 0, (size_t)items * sizeof *sum);
        for (int64_t i = t * c.rows; i < chunk_end(c, t); i += step) {
            int64_t left = chunk_end(c, t) - i, m = left < step ? left : step;

            for (int l = 0; l < count; l++)
                spsi_cpu_strip_dots(m, strip_of(V, l, i), V->all->ld,
                                    row_of(W, i), W->ld, k, sum + l * k);
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
    for (int l = 0; l < count; l++)
        spsi_cpu_strip_axpby_cols(m, W->k, row + l * W->k, strip_of(V, l, i),
                                  V->all->ld, add || l > 0 ? one : NULL,
                                  row_of(W, i), W->ld);
}

sps_status spsi_cpu_basis_update(double a, const sps_basis *V, int count,
                                 const sps_small *H, bool add, sps_block *W,
                                 double *norm2)
{
    sps_status st;
    int k = W->k, threads = W->ctx->threads;
    int64_t items = (int64_t)count * k, step = strip_rows(k);
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
