/* SPDX-License-Identifier: BSD-3-Clause */
/* block_basis.c - products with a stack of blocks (lib/block/basis.h):
 *
 *     H(l, c) = V_l(:, c)' W(:, c),      W = a sum_l V_l diag(H(l, :)) [+ W].
 *
 * A single-precision stack is converted one strip of rows at a time (rows.h).
 * A strip of W stays in the L1 cache while the same strips of all blocks are
 * processed.  Bytes: each block once, W once (read, or read and written).  With
 * two operations per element read, both products are memory-bound. */
#include "cpu/rows.h"

#include "block/basis.h"

/* Returns rows i .. i + m - 1 of block l, with the columns in use, in double
 * precision; *ld is their stride.  room: buffer for converted rows. */
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

typedef struct dots_job {
    chunks c;
    const sps_basis *V;
    int count;
    const sps_block *W;
    double *partial;
} dots_job;

static void chunk_dots(void *data, int64_t first, int64_t last)
{
    const dots_job *j = data;
    const int64_t items = (int64_t)j->count * j->W->k;
    const int64_t step = rows_at_once(j->V, j->W->k);
    double *sum = j->partial + first / j->c.rows * items, room[SINGLE_ROOM];
    int64_t ld;

    memset(sum, 0, (size_t)items * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;

        for (int l = 0; l < j->count; l++) {
            const double *v = strip_of(j->V, l, i, m, room, &ld);

            spsi_cpu_strip_dots(m, v, ld, row_of(j->W, i), j->W->ld, j->W->k,
                                sum + l * j->W->k);
        }
    }
}

sps_status spsi_cpu_basis_dots(const sps_basis *V, int count,
                               const sps_block *W, sps_small *H)
{
    sps_status st;
    int k = W->k;
    int64_t items = (int64_t)count * k;
    chunks c = chunks_of(W->n, items);
    double *partial;

    SPS_TRY(spsi_cpu_scratch(W->ctx, c.count * items, &partial));
    spsi_cpu_over_chunks(W->ctx, c, work_ns(c.n, items, items), chunk_dots,
                         &(dots_job){ c, V, count, W, partial });
    spsi_cpu_sum_chunks(W->ctx, c.count, items, partial);
    for (int l = 0; l < count; l++)
        for (int j = 0; j < k; j++)
            *spsi_small_at(H, l, j) = partial[l * k + j];
    return SPS_OK;

fail:
    return st;
}

/* W = [W +] sum over l of V_l diag(row l of a H), for one strip of m rows from
 * row i on.  row: the matrix a H, row-major; one: k ones. */
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

typedef struct update_job {
    chunks c;
    const sps_basis *V;
    int count;
    const double *row, *one;
    bool add;
    sps_block *W;
    double *partial;         /* sums of squares of each chunk, or NULL if not
                                wanted */
} update_job;

static void chunk_update(void *data, int64_t first, int64_t last)
{
    const update_job *j = data;
    const sps_block *W = j->W;
    const int64_t step = rows_at_once(j->V, W->k);
    double *sum = j->partial ? j->partial + first / j->c.rows * W->k : NULL;

    if (sum) memset(sum, 0, (size_t)W->k * sizeof *sum);
    for (int64_t i = first; i < last; i += step) {
        int64_t m = last - i < step ? last - i : step;
        double *w = row_of(W, i);

        update_strip(m, i, j->V, j->count, j->row, j->one, j->add, j->W);
        if (sum) spsi_cpu_strip_dots(m, w, W->ld, w, W->ld, W->k, sum);
    }
}

sps_status spsi_cpu_basis_update(double a, const sps_basis *V, int count,
                                 const sps_small *H, bool add, sps_block *W,
                                 double *norm2)
{
    sps_status st;
    int k = W->k;
    int64_t items = (int64_t)count * k;
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
    spsi_cpu_over_chunks(W->ctx, c, work_ns(c.n, items, items), chunk_update,
                         &(update_job){ c, V, count, row, one, add, W,
                                        norm2 ? partial : NULL });
    if (!norm2) return SPS_OK;
    spsi_cpu_sum_chunks(W->ctx, c.count, k, partial);
    memcpy(norm2, partial, (size_t)k * sizeof *norm2);
    return SPS_OK;

fail:
    return st;
}
