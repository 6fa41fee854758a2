/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.h - prefix sums on the device, for builders of plans: how many items a
 * row makes, where they begin, then one pass that writes them. */
#ifndef SPS_CUDA_SCAN_H
#define SPS_CUDA_SCAN_H

#include "backend.h"

/* offset[i] = count[0] + .. + count[i-1] for i = 0 .. n, in 64 bits; the total
 * is offset[n].  Device arrays of n and n + 1, n = 0 is legal.  Complete on
 * return: for planning only, since it takes memory and waits. */
sps_status spsi_cuda_scan(sps_context *ctx, const int32_t *count, int64_t n,
                          int64_t *offset);

#endif
