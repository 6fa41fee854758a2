/* SPDX-License-Identifier: BSD-3-Clause */
/* owned.c - see owned.h. */
#include "block/owned.h"

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
