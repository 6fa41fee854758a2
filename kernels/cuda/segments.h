/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.h - kernels/formats/segments.h built on the device: the same lists,
 * item by item, as the host makes. */
#ifndef SPS_CUDA_SEGMENTS_H
#define SPS_CUDA_SEGMENTS_H

#include "kernels/formats/segments.h"

/* s: zeroed; arrays on the device, to be given back by
 * spsi_cuda_segments_clear even on failure.  *bytes: what they take.  For
 * planning: takes memory and waits. */
sps_status spsi_cuda_segments(sps_context *ctx, const sps_csr_local *A,
                              sps_segments_limits limits, int64_t ranges,
                              sps_segments *s, size_t *bytes);
void spsi_cuda_segments_clear(sps_context *ctx, sps_segments *s);

#endif
