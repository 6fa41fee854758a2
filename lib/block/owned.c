/* SPDX-License-Identifier: BSD-3-Clause */
/* owned.c - see owned.h. */
#include "block/owned.h"

#include <stdio.h>

#include "block/single.h"
#include "core/backend.h"

static void release_block(sps_context *ctx, void *place)
{
    (void)ctx;
    sps_block_destroy(place);
}

static void release_basis(sps_context *ctx, void *place)
{
    (void)ctx;
    spsi_basis_destroy(place);
}

static void release_small(sps_context *ctx, void *place)
{
    (void)ctx;
    spsi_small_destroy(place);
}

sps_status spsi_own_block_of(sps_owner *o, int64_t n, int k, sps_dtype dtype,
                             sps_block **X_p)
{
    const sps_status st = spsi_own(o, release_block, X_p);

    return st ? st : spsi_block_create(o->ctx, n, k, dtype, X_p);
}

sps_status spsi_own_block(sps_owner *o, int64_t n, int k, sps_block **X_p)
{
    const sps_status st = spsi_own(o, release_block, X_p);

    return st ? st : sps_block_create(o->ctx, n, k, X_p);
}

/* ------------------------------- blocks in host memory if the GPU is full */

/* A block in host memory is wrapped, so sps_block.bytes is 0. */
static void release_or_host(sps_context *ctx, void *place)
{
    sps_block *X = *(sps_block **)place;

    if (X && X->bytes == 0)
        ctx->backend->unshare(ctx, X->data, spsi_block_bytes(X));
    sps_block_destroy(place);
}

/* Blocks of fewer bytes are assumed to fit without asking the driver how much
 * memory is free, unless max_device_bytes is set. */
static const size_t SMALL = (size_t)64 << 20;

sps_status spsi_has_room(sps_context *ctx, size_t bytes, bool *room)
{
    size_t unused = 0, total = 0;
    sps_status st;

    *room = true;
    if (!ctx->backend->share ||
        (bytes < SMALL && ctx->opt.max_device_bytes == 0))
        return SPS_OK;
    st = ctx->backend->memory(ctx, &unused, &total);
    *room = unused / 2 >= bytes;
    return st;
}

static sps_status clear(sps_context *ctx, double *data, size_t bytes)
{
    sps_block all = { .ctx = ctx, .n = (int64_t)(bytes / sizeof *data),
                      .k = 1, .ld = 1, .width = 1, .data = data };

    return ctx->backend->fill(&all, 0.0);
}

static sps_status on_host(sps_context *ctx, int64_t n, int k, const char *what,
                          sps_block **X_p)
{
    const int64_t ld = spsi_block_ld(k);
    const size_t bytes = spsi_block_bytes(&(sps_block){ .n = n, .ld = ld });
    sps_block *X = NULL;
    void *data = NULL;
    sps_status st;

    SPS_TRY(ctx->backend->share(ctx, bytes, &data));
    SPS_TRY(clear(ctx, data, bytes));
    SPS_TRY(sps_block_wrap(ctx, n, k, data, ld, &X));
    spsi_note(ctx, "%s, %zu bytes, is kept in host memory: the GPU has no room "
              "for it", what, bytes);
    *X_p = X;
    return SPS_OK;
fail:
    ctx->backend->unshare(ctx, data, bytes);
    return st;
}

sps_status spsi_own_block_on_host(sps_owner *o, int64_t n, int k,
                                  const char *what, sps_block **X_p)
{
    const sps_status st = spsi_own(o, release_or_host, X_p);

    return st ? st : on_host(o->ctx, n, k, what, X_p);
}

sps_status spsi_own_block_or_host(sps_owner *o, int64_t n, int k,
                                  sps_block **X_p)
{
    const size_t bytes = spsi_block_bytes(
        &(sps_block){ .n = n, .ld = spsi_block_ld(k) });
    char why[256];
    sps_status st;
    bool room;

    SPS_TRY(spsi_has_room(o->ctx, bytes, &room));
    if (room) return spsi_own_block(o, n, k, X_p);
    st = spsi_own_block_on_host(o, n, k, "the best iterate", X_p);
    if (st != SPS_ENOMEM) return st;
    snprintf(why, sizeof why, "%s", sps_context_error(o->ctx));
    st = spsi_own_block(o, n, k, X_p);
    if (st == SPS_EDEVMEM)
        st = spsi_fail(o->ctx, st, "the best iterate, %zu bytes, fits neither "
                       "on the GPU nor in host memory: %s", bytes, why);
fail:
    return st;
}

sps_status spsi_own_basis(sps_owner *o, int64_t n, int k, int count,
                          sps_dtype dtype, sps_basis **V_p)
{
    const sps_status st = spsi_own(o, release_basis, V_p);

    return st ? st : spsi_basis_create(o->ctx, n, k, count, dtype, V_p);
}

sps_status spsi_own_small(sps_owner *o, int max_rows, int max_cols,
                          sps_small **C_p)
{
    const sps_status st = spsi_own(o, release_small, C_p);

    return st ? st : spsi_small_create(o->ctx, max_rows, max_cols, C_p);
}
