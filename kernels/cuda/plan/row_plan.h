/* SPDX-License-Identifier: BSD-3-Clause */
/* row_plan.h - row blocks (kernels/formats/row_blocks.h) in device memory,
 * built there: a loop over the offsets on the host would cost more than the
 * products that use the blocks. */
#ifndef SPS_CUDA_ROW_PLAN_H
#define SPS_CUDA_ROW_PLAN_H

#include "plan/kernel.h"
#include "formats/row_blocks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A plan with row blocks; it is the first member of the plans of the kernels
 * that use them. */
typedef struct sps_row_plan {
    sps_plan super;
    sps_row_rule rule;
    sps_row_blocks blocks;   /* arrays in device memory */
    void *partial;           /* `parts` elements: partial sums of the warps
                                that share long rows */
    unsigned *arrived;       /* `longs` counters of warps that have finished;
                                0 between runs */
} sps_row_plan;

/* Builds plan->blocks by plan->rule, with the same contents as
 * spsi_row_blocks_make on the host. */
sps_status spsi_cuda_row_plan_fill(sps_row_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
