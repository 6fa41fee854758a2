/* SPDX-License-Identifier: BSD-3-Clause */
/* owned.h - blocks, stacks of blocks and small matrices that an owner
 * (core/owner.h) releases. */
#ifndef SPS_OWNED_H
#define SPS_OWNED_H

#include "block/basis.h"
#include "core/owner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a block of doubles; the owner releases it, as it does the results of
 * all functions here. */
sps_status spsi_own_block(sps_owner *o, int64_t n, int k, sps_block **X_p);
/* Creates a block of doubles that is seldom used and whose memory is allocated
 * last: if afterwards the device would not have as much memory left
 * again, the block lies in page-locked host memory (sps_backend.share), where
 * kernels of the GPU read and write it over the link; a note says so.  Without
 * such memory it lies on the device as far as that has room. */
sps_status spsi_own_block_or_host(sps_owner *o, int64_t n, int k,
                                  sps_block **X_p);
/* Creates a block in such memory; `what` is for the note. */
sps_status spsi_own_block_on_host(sps_owner *o, int64_t n, int k,
                                  const char *what, sps_block **X_p);
/* *room: whether the device has twice this memory left, so that something else
 * of that size fits as well. */
sps_status spsi_has_room(sps_context *ctx, size_t bytes, bool *room);
sps_status spsi_own_block_of(sps_owner *o, int64_t n, int k, sps_dtype dtype,
                             sps_block **X_p);
sps_status spsi_own_basis(sps_owner *o, int64_t n, int k, int count,
                          sps_dtype dtype, sps_basis **V_p);
sps_status spsi_own_small(sps_owner *o, int max_rows, int max_cols,
                          sps_small **C_p);

#ifdef __cplusplus
}
#endif
#endif
