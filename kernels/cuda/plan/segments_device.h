/* SPDX-License-Identifier: BSD-3-Clause */
/* segments_device.h - builds the lists of kernels/formats/segments.h on the
 * device, the same as on the host. */
#ifndef SPS_CUDA_SEGMENTS_H
#define SPS_CUDA_SEGMENTS_H

#include "formats/segments.h"
#include "plan/kernel.h"

/* Finds the segments of the rows of plan->A.  s is zeroed on entry; its arrays
 * belong to the plan.  Only for planning: allocates memory and synchronises. */
sps_status spsi_cuda_segments(sps_plan *plan, sps_segments_limits limits,
                              int64_t ranges, sps_segments *s);
/* Finds the segments as spsi_cuda_segments does; but if in more than 1/8 of the
 * groups of rows the columns are not identical, rows are processed one by
 * one. */
sps_status spsi_cuda_segments_alike(sps_plan *plan, sps_segments_limits limits,
                                    int64_t ranges, sps_segments *s);
/* Writes what was found to the plan's detail. */
void spsi_cuda_segments_tell(sps_plan *plan, const sps_segments *s);

#endif
