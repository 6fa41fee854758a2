/* SPDX-License-Identifier: BSD-3-Clause */
/* block.c - the n x k handle: life, shape, and numbers in and out.  Arguments
 * are checked here; what solvers do with blocks is in block_ops.c. */
#include <assert.h>

#include "backend.h"
#include "single.h"

/* Bytes of memory behind a block: whole rows, up to the alignment, so that it
 * can be cleared as doubles whatever it holds. */
static size_t bytes_of(int64_t n, int64_t ld, sps_dtype dtype)
{
    size_t item = dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    size_t row = (size_t)ld * item;

    if (n == 0) return 64;
    if ((uint64_t)n > (SIZE_MAX / 2) / row) return 0;
    return ((size_t)n * row + 63) & ~(size_t)63;
}

/* Lines of 128 bytes.  But 9 to 12 columns would leave a quarter of theirs
 * empty, and up to 4 behind one to three sixteens three quarters of the last
 * one, in memory and in every cache (doc/benchmarks.md, "No cliff"): such rows
 * end with their sector, where the next begins, and 21 to 24 columns, which
 * leave half a line, with the half.  But for 9 to 12 none has a part in more
 * lines than before. */
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
    SPS_REQUIRE(ctx, n >= 0, SPS_ESHAPE, "a block of %lld rows", (long long)n);
    SPS_REQUIRE(ctx, k >= 1 && k <= SPS_BLOCK_MAX, SPS_ESHAPE,
                "a block of %d columns: 1 to %d can be", k, SPS_BLOCK_MAX);
fail:
    return st;
}

/* All bits zero are 0.0 in both types: cleared as one long column. */
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
    sps_status st;

    SPS_REQUIRE(ctx, bytes, ctx->opt.place == SPS_CUDA ? SPS_EDEVMEM
                                                       : SPS_ENOMEM,
                "a block of %lld x %d is more than an address can hold",
                (long long)n, k);
    SPS_TRY(SPS_NEW(ctx, 1, &X));
    *X = (sps_block){.ctx = ctx, .n = n, .k = k, .ld = ld, .dtype = dtype,
                     .width = k};
    ctx->live++;
    SPS_TRY(ctx->backend->alloc(ctx, bytes, &X->data));
    X->bytes = bytes;
    SPS_TRY(spsi_block_clear(X));
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

    if (!ctx) return SPS_EINVAL;
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

    if (!ctx) return SPS_EINVAL;
    SPS_REQUIRE(ctx, X_p, SPS_EINVAL, "X_p is NULL");
    SPS_TRY(check_shape(ctx, n, k));
    SPS_REQUIRE(ctx, data || n == 0, SPS_EINVAL, "data is NULL");
    SPS_REQUIRE(ctx, (uintptr_t)data % sizeof(double) == 0, SPS_EINVAL,
                "data is not aligned to %zu bytes", sizeof(double));
    SPS_REQUIRE(ctx, ld >= k, SPS_ESHAPE,
                "ld is %lld; rows of %d columns need at least that",
                (long long)ld, k);
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

/* Columns first .. first+k-1 of X, and an array of the caller that is to hold
 * as many numbers. */
static sps_status check_transfer(const sps_block *X, int first, int k,
                                 const double *data, int64_t ld,
                                 sps_order order, sps_place place)
{
    sps_context *ctx = X->ctx;
    int64_t least = order == SPS_ROW_MAJOR ? k : X->n;
    sps_status st;

    SPS_TRY(check_alive(ctx));
    SPS_REQUIRE(ctx, first >= 0 && k >= 1 && first <= X->k - k, SPS_ESHAPE,
                "columns %d .. %lld of a block of %d", first,
                (long long)first + k - 1, X->k);
    SPS_REQUIRE(ctx, order == SPS_ROW_MAJOR || order == SPS_COL_MAJOR,
                SPS_EINVAL, "order %d is none of SPS_ROW_MAJOR, SPS_COL_MAJOR",
                (int)order);
    SPS_REQUIRE(ctx, place == SPS_HOST || place == SPS_CUDA, SPS_EINVAL,
                "place %d is none of SPS_HOST, SPS_CUDA", (int)place);
    SPS_REQUIRE(ctx, place == SPS_HOST || ctx->opt.place == SPS_CUDA,
                SPS_EINVAL, "data on a GPU for a context on the host");
    SPS_REQUIRE(ctx, data || X->n == 0, SPS_EINVAL, "data is NULL");
    SPS_REQUIRE(ctx, ld >= least, SPS_ESHAPE,
                "ld is %lld, at least %lld is needed", (long long)ld,
                (long long)least);
fail:
    return st;
}

sps_status sps_block_set(sps_block *X, int first, int k, const double *data,
                         int64_t ld, sps_order order, sps_place place)
{
    sps_block part;
    sps_status st;

    if (!X) return SPS_EINVAL;
    SPS_TRY(check_transfer(X, first, k, data, ld, order, place));
    if (X->n == 0) return SPS_OK;
    spsi_block_view(X, first, k, &part);
    SPS_TRY(X->ctx->backend->set(&part, data, ld, order, place));
fail:
    return st;
}

sps_status sps_block_get(const sps_block *X, int first, int k, double *data,
                         int64_t ld, sps_order order, sps_place place)
{
    sps_block part;
    sps_status st;

    if (!X) return SPS_EINVAL;
    SPS_TRY(check_transfer(X, first, k, data, ld, order, place));
    if (X->n == 0) return SPS_OK;
    spsi_block_view(X, first, k, &part);
    SPS_TRY(X->ctx->backend->get(&part, data, ld, order, place));
fail:
    return st;
}

sps_status sps_block_random(sps_block *X, uint64_t seed)
{
    sps_status st;

    if (!X) return SPS_EINVAL;
    SPS_TRY(check_alive(X->ctx));
    if (X->n > 0) SPS_TRY(X->ctx->backend->random(X, seed));
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
