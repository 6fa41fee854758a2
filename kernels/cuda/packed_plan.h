/* SPDX-License-Identifier: BSD-3-Clause */
/* packed_plan.h - what spmv.packed plans: windows of rows, their columns in 16
 * bits (kernels/formats/packed.h), and the values as floats where that loses
 * nothing; all made on the device. */
#ifndef SPS_CUDA_PACKED_PLAN_H
#define SPS_CUDA_PACKED_PLAN_H

#include "kernels/formats/packed.h"
#include "row_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays on the device. */
typedef struct sps_packed_plan {
    sps_row_plan rows;
    sps_packed packed;
    float *single;           /* spsi_packed_room(nnz), or NULL */
    bool exact;              /* they are the values */
} sps_packed_plan;

/* The windows by plan->rows.rule, and the columns in them; equal to what
 * spsi_packed_make gives.  Complete on return. */
sps_status spsi_cuda_packed_columns(sps_packed_plan *plan);
/* The values of plan->rows.super.A as floats, if there is room for them;
 * `exact` tells whether they are the same numbers. */
sps_status spsi_cuda_packed_values(sps_packed_plan *plan);
/* Makes room and fills it; gives it back unless all values are exact. */
sps_status spsi_cuda_packed_singles(sps_packed_plan *plan);
void spsi_cuda_packed_clear(sps_packed_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
