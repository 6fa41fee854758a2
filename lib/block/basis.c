/* SPDX-License-Identifier: BSD-3-Clause */
/* basis.c - see basis.h.  Operations that a backend lacks are composed of those
 * on single blocks. */
#include "block/basis.h"
#include "block/chunk_sums.h"

#include <assert.h>
#include <math.h>

#include "core/backend.h"
#include "core/comm.h"

/* Blocks of the stack have a multiple of ROWS rows, so that they begin at
 * multiples of 256 bytes (in single precision with one column: 128). */
#define ROWS 32

sps_status spsi_basis_create(sps_context *ctx, int64_t n, int k, int count,
                             sps_dtype dtype, sps_basis **V_p)
{
    sps_basis *V = NULL;
    int wide = (int)ceil(sqrt((double)count * k));
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &V));
    V->n = n;
    V->rows = (n + ROWS - 1) / ROWS * ROWS;
    V->k = k;
    V->count = count;
    SPS_TRY(spsi_reserve(ctx, n, wide < k ? k : wide));
    SPS_TRY(spsi_block_create(ctx, count * V->rows, k, dtype, &V->all));
    *V_p = V;
    return SPS_OK;

fail:
    spsi_free(ctx, V);
    return st;
}

sps_status spsi_basis_square(sps_basis *V)
{
    V->square = true;
    return spsi_small_create(V->all->ctx, V->k, V->k, &V->part);
}

void spsi_basis_destroy(sps_basis **V_p)
{
    sps_basis *V = *V_p;
    sps_context *ctx;

    *V_p = NULL;
    if (!V) return;
    ctx = V->all->ctx;
    sps_block_destroy(&V->all);
    spsi_small_destroy(&V->part);
    spsi_free(ctx, V);
}

void spsi_basis_narrow(sps_basis *V, int k)
{
    assert(k >= 0 && k <= V->all->width);
    V->k = k;
}

/* Returns the address of block l. */
static void *begin_of(const sps_basis *V, int l)
{
    const int64_t item = V->all->dtype == SPS_F64 ? (int64_t)sizeof(double)
                                                  : (int64_t)sizeof(float);

    return (char *)V->all->data + l * V->rows * V->all->ld * item;
}

void spsi_basis_block(const sps_basis *V, int l, sps_block *view)
{
    assert(l >= 0 && l < V->count);
    *view = *V->all;
    view->n = V->n;
    view->k = V->k;
    view->data = begin_of(V, l);
    view->bytes = 0;
}

void spsi_basis_view(const sps_basis *V, int first, sps_block *all,
                     sps_basis *view)
{
    assert(first >= 0 && first < V->count);
    *view = *V;
    *all = *V->all;
    all->data = begin_of(V, first);
    view->all = all;
    view->count -= first;
}

/* ---------------------------------------------------------------- products */

static sps_status dots_one_by_one(const sps_basis *V, int count,
                                  const sps_block *W, sps_small *H)
{
    double row[SPS_BLOCK_MAX];
    sps_status st = SPS_OK;
    sps_block v;

    for (int l = 0; l < count; l++) {
        spsi_basis_block(V, l, &v);
        if (spsi_comm_ordered(W->ctx)) SPS_TRY(spsi_chunk_dots(&v, W, row));
        else SPS_TRY(W->ctx->backend->dots(&v, W, row));
        for (int c = 0; c < W->k; c++) *spsi_small_at(H, l, c) = row[c];
    }
fail:
    return st;
}

sps_status spsi_basis_dots(const sps_basis *V, int count, const sps_block *W,
                           sps_small *H)
{
    const sps_backend *place = W->ctx->backend;
    sps_status st;

    assert(V->n == W->n && V->k == W->k && count <= V->count);
    spsi_small_shape(H, count, W->k);
    if (spsi_comm_ordered(W->ctx)) return dots_one_by_one(V, count, W, H);
    if (W->n == 0 || W->k == 0 || count == 0)
        spsi_small_clear(H);
    else
        SPS_TRY(place->basis_dots ? place->basis_dots(V, count, W, H)
                                  : dots_one_by_one(V, count, W, H));
    SPS_TRY(spsi_small_reduce(H));
fail:
    return st;
}

static sps_status update_one_by_one(double a, const sps_basis *V, int count,
                                    const sps_small *H, bool add,
                                    sps_block *W)
{
    double row[SPS_BLOCK_MAX], one[SPS_BLOCK_MAX];
    sps_status st = SPS_OK;
    sps_block v;

    for (int c = 0; c < W->k; c++) one[c] = 1;
    for (int l = 0; l < count; l++) {
        spsi_basis_block(V, l, &v);
        for (int c = 0; c < W->k; c++) row[c] = a * *spsi_small_at(H, l, c);
        SPS_TRY(spsi_axpby_cols(row, &v, add || l > 0 ? one : NULL, W));
    }
fail:
    return st;
}

/* Computes W = a sum of V_l H_l (spsi_basis_square), plus W if `add`, one block
 * of the stack after another. */
static sps_status multiply_one_by_one(double a, const sps_basis *V, int count,
                                      const sps_small *H, bool add,
                                      sps_block *W)
{
    const int k = W->k;
    sps_small *C = V->part;
    sps_status st = SPS_OK;
    sps_block v;

    spsi_small_shape(C, k, k);
    for (int l = 0; l < count; l++) {
        spsi_basis_block(V, l, &v);
        for (int j = 0; j < k; j++)
            for (int i = 0; i < k; i++)
                *spsi_small_at(C, i, j) = *spsi_small_at(H, l * k + i, j);
        SPS_TRY(spsi_mul_small(a, &v, C, add || l > 0 ? 1.0 : 0.0, W));
    }
fail:
    return st;
}

sps_status spsi_basis_update(double a, const sps_basis *V, int count,
                             const sps_small *H, bool add, sps_block *W,
                             double *norm2)
{
    const sps_backend *place = W->ctx->backend;
    sps_status st = SPS_OK;

    assert(V->n == W->n && V->k == W->k && count <= V->count);
    assert(count > 0 && H->rows >= count && H->cols == W->k);
    if (V->square && place->place == SPS_HOST)
        return multiply_one_by_one(a, V, count, H, add, W);
    if (W->n == 0 || W->k == 0 || !place->basis_update ||
        spsi_comm_ordered(W->ctx)) {
        SPS_TRY(update_one_by_one(a, V, count, H, add, W));
        if (norm2) SPS_TRY(spsi_dots(W, W, norm2));
        return st;
    }
    SPS_TRY(place->basis_update(a, V, count, H, add, W, norm2));
    if (norm2) SPS_TRY(spsi_reduce(W->ctx, norm2, W->k));
fail:
    return st;
}
