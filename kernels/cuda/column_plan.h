/* SPDX-License-Identifier: BSD-3-Clause */
/* column_plan.h - columns by falling use (kernels/formats/column_order.h) in
 * device memory, and the columns of a matrix renumbered so. */
#ifndef SPS_CUDA_COLUMN_PLAN_H
#define SPS_CUDA_COLUMN_PLAN_H

#include "csr.h"
#include "kernels/formats/column_order.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_column_plan {
    int64_t ncol, nnz;
    int64_t room;        /* of col: nnz, then zeros to whole 1024 */
    int32_t *column;     /* ncol: the column that stands at each place */
    int32_t *col;        /* room: places of the matrix's columns */
    int64_t near;        /* places before which `held` entries point */
    int64_t held;
    size_t bytes;
} sps_column_plan;

/* Equal to what spsi_column_order_make gives; `near` places are counted.
 * Complete on return. */
sps_status spsi_cuda_column_plan_make(sps_context *ctx, const sps_csr_local *A,
                                      int64_t near, sps_column_plan *c);
void spsi_cuda_column_plan_clear(sps_context *ctx, sps_column_plan *c);

#ifdef __cplusplus
}
#endif
#endif
