/* SPDX-License-Identifier: BSD-3-Clause */
/* row_plan.h - row blocks (kernels/formats/row_blocks.h) in device memory,
 * grouped there: a walk over the offsets by the host would cost more than
 * the products that it serves. */
#ifndef SPS_CUDA_ROW_PLAN_H
#define SPS_CUDA_ROW_PLAN_H

#include "kernel.h"
#include "kernels/formats/row_blocks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first member of plans over row blocks. */
typedef struct sps_row_plan {
    sps_plan super;
    sps_row_rule rule;
    sps_row_blocks blocks;   /* arrays on the device */
    void *partial;           /* parts numbers: sums of the workers */
    unsigned *arrived;       /* longs: workers that are done; 0 between runs */
} sps_row_plan;

/* Equal to what spsi_row_blocks_make gives. */
sps_status spsi_cuda_row_plan_fill(sps_row_plan *plan);
void spsi_cuda_row_plan_clear(sps_row_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
