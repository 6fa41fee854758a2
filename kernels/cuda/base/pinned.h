/* SPDX-License-Identifier: BSD-3-Clause */
/* pinned.h - page-locked host memory, whose bytes the caller counts. */
#ifndef SPS_CUDA_PINNED_H
#define SPS_CUDA_PINNED_H

#include "cuda/base/state.h"

/* ENOMEM names the bytes. */
sps_status spsi_cuda_pin(sps_context *ctx, size_t bytes, void **p_p);
/* bytes: as for spsi_cuda_pin. */
void spsi_cuda_unpin(void *p, size_t bytes);

#endif
