/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.h - reads of a few numbers from device memory, for which the host
 * waits. */
#ifndef SPS_CUDA_WATCH_H
#define SPS_CUDA_WATCH_H

#include "cuda/base/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers in device memory, and where the host wants them. */
typedef struct sps_cuda_piece {
    const void *from;
    void *to;
    size_t bytes;
} sps_cuda_piece;

enum {
    SPS_CUDA_PIECES = 4, SPS_CUDA_READ_MOST = 1024,
    SPS_CUDA_ARRIVED = 8     /* bytes behind `down` for what the host watches */
};

/* Copies up to SPS_CUDA_PIECES pieces, together up to SPS_CUDA_READ_MOST bytes,
 * each a multiple of 4 bytes at a multiple of 4, when all work that has been
 * queued is done.  A kernel writes them to page-locked memory and the host
 * watches for them, which takes less time than a copy and a
 * synchronisation; `up` is not emptied, and phases are added up only when half
 * of their ring is taken. */
sps_status spsi_cuda_read(sps_context *ctx, const sps_cuda_piece *piece,
                          int pieces);

#ifdef __cplusplus
}
#endif
#endif
