/* SPDX-License-Identifier: BSD-3-Clause */
/* segments_device.h - builds kernels/formats/segments.h on the device: the same
 * lists as on the host. */
#ifndef SPS_CUDA_SEGMENTS_H
#define SPS_CUDA_SEGMENTS_H

#include "formats/segments.h"

/* s: zeroed; arrays in device memory, to be released by
 * spsi_cuda_segments_clear even on failure.  *bytes: their size.  For planning:
 * allocates memory and synchronises. */
sps_status spsi_cuda_segments(sps_context *ctx, const sps_csr_local *A,
                              sps_segments_limits limits, int64_t ranges,
                              sps_segments *s, size_t *bytes);
void spsi_cuda_segments_clear(sps_context *ctx, sps_segments *s);

#endif
