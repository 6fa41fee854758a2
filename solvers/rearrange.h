/* SPDX-License-Identifier: BSD-3-Clause */
/* rearrange.h - permutes the blocks and arrays of a method (its `permute`):
 * position p receives what was at position from[p], for p < count. */
#ifndef SPS_REARRANGE_H
#define SPS_REARRANGE_H

#include "block/basis.h"
#include "driver/linear.h"

/* room: scratch block, which is narrowed to `count` columns. */
static inline sps_status spsi_rearrange_block(sps_block *X, const int *from,
                                          sps_block *room)
{
    sps_block to = *X;
    sps_status st = SPS_OK;

    to.k = room->k;
    SPS_TRY(spsi_gather(X, from, room));
    SPS_TRY(spsi_copy(room, &to));
fail:
    return st;
}

static inline sps_status spsi_rearrange_basis(sps_basis *V, const int *from,
                                          sps_block *room)
{
    sps_status st = SPS_OK;
    sps_block x;

    for (int l = 0; l < V->count; l++) {
        spsi_basis_block(V, l, &x);
        SPS_TRY(spsi_rearrange_block(&x, from, room));
    }
    spsi_basis_narrow(V, room->k);
fail:
    return st;
}

/* room: scratch of `count` elements. */
static inline void spsi_rearrange_numbers(double *v, const int *from, int count,
                                      double *room)
{
    for (int p = 0; p < count; p++) room[p] = v[from[p]];
    for (int p = 0; p < count; p++) v[p] = room[p];
}

#endif
