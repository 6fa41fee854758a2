/* SPDX-License-Identifier: BSD-3-Clause */
/* sequence.h - several products at once, by kernels that need not read A for
 * each of them. */
#ifndef SPS_SEQUENCE_H
#define SPS_SEQUENCE_H

#include "plan/kernel.h"

/* In sps_kernel.gives, not a guarantee: plans of the kernel begin with an
 * sps_sequence_plan. */
enum { SPS_SEQUENCES = 128 };

/* sequence computes `count` products in order, each with the Y of the one
 * before as its X; A is square, and all have two blocks as their X and Y, by
 * turns, and an epilogue.  passes returns how many times A is copied for them,
 * with k columns: less than once for a single product of which the host
 * multiplies a part. */
typedef struct sps_sequence_plan {
    sps_plan super;
    sps_status (*sequence)(const sps_plan *plan, const sps_spmm_args *args,
                           int count);
    double (*passes)(const sps_plan *plan, int k, int count);
} sps_sequence_plan;

#endif
