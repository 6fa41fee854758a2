/* SPDX-License-Identifier: BSD-3-Clause */
/* packed_plan.h - the plan of spmv.packed: windows of rows, their columns in 16
 * bits (kernels/formats/packed.h), and the values in single precision if that
 * is exact; built on the device. */
#ifndef SPS_CUDA_PACKED_PLAN_H
#define SPS_CUDA_PACKED_PLAN_H

#include "formats/packed.h"
#include "cuda/plan/row_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The plan of spmv.packed; its arrays are in device memory. */
typedef struct sps_packed_plan {
    sps_row_plan rows;
    sps_packed packed;
    float *single;           /* values in single precision,
                                spsi_packed_room(nnz) numbers; or NULL */
    bool exact;              /* `single` equals the values exactly */
} sps_packed_plan;

/* Builds the windows by plan->rows.rule and their packed columns, with the same
 * result as spsi_packed_make.  Complete on return. */
sps_status spsi_cuda_packed_columns(sps_packed_plan *plan);
/* If plan->single is allocated, converts the values of plan->rows.super.A to
 * single precision; plan->exact: whether that changes none of them. */
sps_status spsi_cuda_packed_values(sps_packed_plan *plan);
/* Allocates and fills plan->single; releases it unless all values are exact. */
sps_status spsi_cuda_packed_singles(sps_packed_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
