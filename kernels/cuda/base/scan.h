/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.h - prefix sums on the device, for building plans: a first pass counts
 * the items of each row, the prefix sums are their offsets, and a second pass
 * writes them. */
#ifndef SPS_CUDA_SCAN_H
#define SPS_CUDA_SCAN_H

#include "core/backend.h"

/* Computes offset[i] = count[0] + .. + count[i-1] for i = 0 .. n, in 64 bits;
 * the total is offset[n].  The arrays are in device memory and have n and n + 1
 * elements; n may be 0.  The work is only queued.  Not for use during solves,
 * since it overwrites the scratch memory. */
sps_status spsi_cuda_scan(sps_context *ctx, const int32_t *count, int64_t n,
                          int64_t *offset);

#endif
