/* SPDX-License-Identifier: BSD-3-Clause */
/* block.c - the n x k block: creation, shape, and transfer of its elements.
 * Arguments are checked here; the operations of solvers are in block_ops.c. */
#include <assert.h>
#include <stddef.h>

#include "core/backend.h"
#include "core/comm.h"
#include "block/chunk_sums.h"
#include "block/single.h"

static_assert(offsetof(sps_block, ctx) == 0, "core/options.c reads it");

/* Allocated bytes of a block: whole rows, rounded up to the alignment, so that
 * the memory can be cleared as doubles whatever its type. */
static size_t bytes_of(int64_t n, int64_t ld, sps_dtype dtype)
{
    size_t item = dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    size_t row = (size_t)ld * item;

    if (n == 0) return 64;
    if ((uint64_t)n > (SIZE_MAX / 2) / row) return 0;
    return ((size_t)n * row + 63) & ~(size_t)63;
}

/* Rows are padded to cache lines of 128 bytes (16 doubles), with exceptions
 * that save memory, bandwidth and cache (doc/log/block-rows.md).
 *
 * With 1 to 4 columns beyond 16, 32 or 48 three quarters of the last line would
 * be padding: such rows are padded to a sector of 32 bytes (20, 36, 52).  21 to
 * 24 columns would leave half a line or more: they are padded to half a line
 * (24).  Wherever such a row begins, it has parts in no more lines than with
 * padding to whole lines.  9 to 12 columns are padded to 12; a row may then
 * have parts in two lines instead of one. */
int64_t spsi_block_ld(int k)
{
    const int rest = k % 16;

    if (k > 16 && k < 64 && rest >= 1 && rest <= 4) return k - rest + 4;
    if (k > 16 && k <= 24) return 24;
    if (k > 12) return ((int64_t)k + 15) & ~(int64_t)15;
    if (k > 8) return 12;
    return k > 4 ? 8 : k > 2 ? 4 : k > 1 ? 2 : 1;
}

sps_status spsi_reserve(sps_context *ctx, int64_t n, int k)
{
    return ctx->backend->reserve(ctx, n, k);
}

void spsi_block_narrow(sps_block *X, int k)
{
    assert(k >= 0 && k <= X->width);
    X->k = k;
}

void spsi_block_view(const sps_block *X, int first, int k, sps_block *view)
{
    size_t item = X->dtype == SPS_F64 ? sizeof(double) : sizeof(float);

    assert(first >= 0 && k >= 0 && first + k <= X->width);
    *view = *X;
    view->k = view->width = k;
    view->data = (char *)X->data + (size_t)first * item;
    view->bytes = 0;
}

static sps_status check_alive(sps_context *ctx)
{
    if (!ctx->dead) return SPS_OK;
    return spsi_fail(ctx, SPS_EDEVICE, "the GPU failed before; this context "
                     "can only be destroyed");
}

static sps_status check_shape(sps_context *ctx, int64_t n, int k)
{
    sps_status st;

    SPS_TRY(check_alive(ctx));
    SPS_REQUIRE(ctx, n >= 0, SPS_ESHAPE, "a block cannot have %lld rows",
                (long long)n);
    SPS_REQUIRE(ctx, k >= 1 && k <= SPS_BLOCK_MAX, SPS_ESHAPE,
                "a block of %d columns: 1 to %d are possible", k,
                SPS_BLOCK_MAX);
fail:
    return st;
}

/* Checks that the bytes of rows x ld doubles do not exceed INT64_MAX. */
static sps_status check_span(sps_context *ctx, int64_t rows, int64_t ld)
{
    if (rows <= 1 || ld <= INT64_MAX / (int64_t)sizeof(double) / rows)
        return SPS_OK;
    return spsi_fail(ctx, SPS_ESHAPE, "%lld rows, or columns, with ld %lld: "
                     "this exceeds the address space", (long long)rows,
                     (long long)ld);
}

/* Fills the memory as one column of doubles, whatever the type: 0.0 has all
 * bits zero. */
sps_status spsi_block_clear(const sps_block *X)
{
    sps_block all = *X;

    all.dtype = SPS_F64;
    all.n = (int64_t)(X->bytes / sizeof(double));
    all.k = all.width = 1;
    all.ld = 1;
    return X->ctx->backend->fill(&all, 0.0);
}

sps_status spsi_block_create(sps_context *ctx, int64_t n, int k,
                             sps_dtype dtype, sps_block **X_p)
{
    sps_block *X = NULL;
    int64_t ld = spsi_block_ld(k);
    size_t bytes = bytes_of(n, ld, dtype);
    const bool clears = ctx->backend->alloc_clear;
    sps_status st;

    SPS_REQUIRE(ctx, bytes, ctx->opt.place == SPS_CUDA ? SPS_EDEVMEM
                                                       : SPS_ENOMEM,
                "a block of %lld x %d exceeds the address space",
                (long long)n, k);
    SPS_TRY(SPS_NEW(ctx, 1, &X));
    *X = (sps_block){.ctx = ctx, .n = n, .k = k, .ld = ld, .dtype = dtype,
                     .width = k};
    ctx->live++;
    SPS_TRY((clears ? ctx->backend->alloc_clear
                    : ctx->backend->alloc)(ctx, bytes, &X->data));
    X->bytes = bytes;
    if (!clears) SPS_TRY(spsi_block_clear(X));
    *X_p = X;
    return SPS_OK;
fail:
    sps_block_destroy(&X);
    return st;
}

sps_status spsi_block_retype(sps_block *X, sps_dtype dtype)
{
    assert(bytes_of(X->n, X->ld, dtype) <= X->bytes);
    if (X->dtype == dtype) return SPS_OK;
    X->dtype = dtype;
    return spsi_block_clear(X);
}

sps_status spsi_block_widen(sps_block *X)
{
    const size_t bytes = spsi_block_bytes(X);
    sps_context *ctx = X->ctx;
    void *data = NULL;
    sps_status st = SPS_OK;

    if (X->bytes < bytes) {
        SPS_TRY(ctx->backend->alloc(ctx, bytes, &data));
        ctx->backend->release(ctx, X->data, X->bytes);
        X->data = data;
        X->bytes = bytes;
        X->dtype = SPS_F64;
        SPS_TRY(spsi_block_clear(X));
    }
    SPS_TRY(spsi_block_retype(X, SPS_F64));
fail:
    return st;
}

size_t spsi_block_bytes(const sps_block *X)
{
    return bytes_of(X->n, X->ld, SPS_F64);
}

sps_status sps_block_create(sps_context *ctx, int64_t n, int k,
                            sps_block **X_p)
{
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, X_p, SPS_EINVAL, "X_p is NULL");
    SPS_TRY(check_shape(ctx, n, k));
    SPS_TRY(spsi_block_create(ctx, n, k, SPS_F64, X_p));
fail:
    return st;
}

sps_status sps_block_wrap(sps_context *ctx, int64_t n, int k, double *data,
                          int64_t ld, sps_block **X_p)
{
    sps_block *X = NULL;
    sps_status st;

    SPS_HANDLE(ctx);
    SPS_REQUIRE(ctx, X_p, SPS_EINVAL, "X_p is NULL");
    SPS_TRY(check_shape(ctx, n, k));
    SPS_REQUIRE(ctx, data || n == 0, SPS_EINVAL, "data is NULL");
    SPS_REQUIRE(ctx, (uintptr_t)data % sizeof(double) == 0, SPS_EINVAL,
                "data is not aligned to %zu bytes", sizeof(double));
    SPS_REQUIRE(ctx, ld >= k, SPS_ESHAPE,
                "ld is %lld; rows of %d columns need at least that",
                (long long)ld, k);
    SPS_TRY(check_span(ctx, n, ld));
    SPS_TRY(SPS_NEW(ctx, 1, &X));
    *X = (sps_block){.ctx = ctx, .n = n, .k = k, .ld = ld, .data = data,
                     .width = k};
    ctx->live++;
    *X_p = X;
fail:
    return st;
}

void sps_block_destroy(sps_block **X_p)
{
    sps_block *X = X_p ? *X_p : NULL;

    if (!X) return;
    *X_p = NULL;
    if (X->bytes) X->ctx->backend->release(X->ctx, X->data, X->bytes);
    X->ctx->live--;
    spsi_free(X->ctx, X);
}

/* Checks that X has columns first .. first+k-1, and the arguments of the
 * caller's n x k array. */
static sps_status check_transfer(const sps_block *X, int first, int k,
                                 const double *data, int64_t ld,
                                 sps_order order, sps_place place)
{
    sps_context *ctx = X->ctx;
    int64_t least = order == SPS_ROW_MAJOR ? k : X->n;
    sps_status st;

    SPS_TRY(check_alive(ctx));
    SPS_REQUIRE(ctx, first >= 0 && k >= 1 && first <= X->k - k, SPS_ESHAPE,
                "columns %d .. %lld, counted from 0: the block has %d", first,
                (long long)first + k - 1, X->k);
    SPS_REQUIRE(ctx, order == SPS_ROW_MAJOR || order == SPS_COL_MAJOR,
                SPS_EINVAL, "order %d is none of SPS_ROW_MAJOR, SPS_COL_MAJOR",
                (int)order);
    SPS_REQUIRE(ctx, place == SPS_HOST || place == SPS_CUDA, SPS_EINVAL,
                "place %d is none of SPS_HOST, SPS_CUDA", (int)place);
    SPS_REQUIRE(ctx, place == SPS_HOST || ctx->opt.place == SPS_CUDA,
                SPS_EINVAL, "the data are on a GPU (SPS_CUDA), but the context "
                "is on the host");
    SPS_REQUIRE(ctx, data || X->n == 0, SPS_EINVAL, "data is NULL");
    SPS_REQUIRE(ctx, ld >= least, SPS_ESHAPE,
                "ld is %lld, at least %lld is needed", (long long)ld,
                (long long)least);
    SPS_TRY(check_span(ctx, order == SPS_ROW_MAJOR ? X->n : k, ld));
fail:
    return st;
}

/* Copies the array `from` to the columns, or, if it is NULL, the columns to
 * `to`. */
static sps_status transfer(const sps_block *X, int first, int k,
                           const double *from, double *to, int64_t ld,
                           sps_order order, sps_place place)
{
    sps_block part;
    sps_status st;

    SPS_HANDLE(X);
    SPS_TRY(check_transfer(X, first, k, from ? from : to, ld, order, place));
    if (X->n == 0) return SPS_OK;
    spsi_block_view(X, first, k, &part);
    SPS_TRY(from ? X->ctx->backend->set(&part, from, ld, order, place)
                 : X->ctx->backend->get(&part, to, ld, order, place));
fail:
    return st;
}

sps_status sps_block_set(sps_block *X, int first, int k, const double *data,
                         int64_t ld, sps_order order, sps_place place)
{
    return transfer(X, first, k, data, NULL, ld, order, place);
}

sps_status sps_block_get(const sps_block *X, int first, int k, double *data,
                         int64_t ld, sps_order order, sps_place place)
{
    return transfer(X, first, k, NULL, data, ld, order, place);
}

sps_status sps_block_random(sps_block *X, uint64_t seed)
{
    sps_status st;

    int64_t first = 0;

    SPS_HANDLE(X);
    SPS_TRY(check_alive(X->ctx));
    /* Each process numbers its rows 0 .. n-1: seeds must differ, since vectors
     * equal on all processes span an invariant subspace of a periodic
     * operator. */
    if (spsi_comm_ordered(X->ctx))
        SPS_TRY(spsi_chunk_first(X->ctx, X->n, &first));
    else
        seed += (uint64_t)spsi_comm_rank(X->ctx) *
                UINT64_C(0x9e3779b97f4a7c15);
    if (X->n > 0) SPS_TRY(X->ctx->backend->random(X, seed, first));
fail:
    return st;
}

sps_status sps_block_random_rows(sps_block *X, uint64_t seed, int64_t first)
{
    sps_status st;

    SPS_HANDLE(X);
    SPS_TRY(check_alive(X->ctx));
    SPS_REQUIRE(X->ctx, first >= 0 && first <= INT64_MAX - X->n, SPS_EINVAL,
                "sps_block_random_rows: rows from %lld on are out of range",
                (long long)first);
    if (X->n > 0) SPS_TRY(X->ctx->backend->random(X, seed, first));
fail:
    return st;
}

void sps_block_shape(const sps_block *X, int64_t *n, int *k)
{
    if (n) *n = X ? X->n : 0;
    if (k) *k = X ? X->k : 0;
}

double *sps_block_data(const sps_block *X, int64_t *ld)
{
    if (ld) *ld = X ? X->ld : 0;
    return X ? X->data : NULL;
}
