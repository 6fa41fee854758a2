/* SPDX-License-Identifier: BSD-3-Clause */
/* joined.c - see joined.h. */
#include "block/joined.h"

#include <assert.h>
#include <string.h>

#include "core/backend.h"
#include "core/comm.h"

static void release(sps_context *ctx, void *place)
{
    sps_joined **j_p = place, *j = *j_p;

    *j_p = NULL;
    if (!j) return;
    spsi_free(ctx, j->sums);
    spsi_free(ctx, j);
}

sps_status spsi_own_joined(sps_owner *o, int64_t most, sps_joined **j_p)
{
    sps_status st;

    *j_p = NULL;
    if (!spsi_comm_many(o->ctx) || spsi_comm_ordered(o->ctx) ||
        o->ctx->backend->place != SPS_HOST)
        return SPS_OK;
    SPS_TRY(spsi_own(o, release, j_p));
    SPS_TRY(SPS_NEW(o->ctx, 1, j_p));
    **j_p = (sps_joined){ .ctx = o->ctx, .most = most };
    SPS_TRY(SPS_NEW(o->ctx, most, &(*j_p)->sums));
fail:
    return st;
}

void spsi_joined_open(sps_joined *j)
{
    j->used = 0;
}

sps_small spsi_joined_small(sps_joined *j, int rows, int cols)
{
    sps_small C = { .ctx = j->ctx, .place = SPS_JOINED, .rows = rows,
                    .cols = cols, .max_rows = rows, .max_cols = cols,
                    .v = j->sums + j->used };

    j->used += (int64_t)rows * cols;
    assert(j->used <= j->most);
    return C;
}

sps_status spsi_joined_sum(sps_joined *j)
{
    return spsi_reduce_long(j->ctx, j->sums, j->used);
}

void spsi_joined_take(const sps_small *from, sps_small *to)
{
    spsi_small_shape(to, from->rows, from->cols);
    memcpy(to->v, from->v, (size_t)from->rows * (size_t)from->cols *
                           sizeof *to->v);
}
