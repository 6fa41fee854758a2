/* SPDX-License-Identifier: BSD-3-Clause */
/* column_plan.h - the columns ordered by decreasing number of entries
 * (kernels/formats/column_order.h) in device memory, and the matrix's column
 * indices renumbered in that order. */
#ifndef SPS_CUDA_COLUMN_PLAN_H
#define SPS_CUDA_COLUMN_PLAN_H

#include "plan/kernel.h"
#include "formats/column_order.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_column_plan {
    int64_t room;        /* length of col: nnz, padded with zeros to a multiple
                            of 1024 */
    int32_t *column;     /* ncol: the column at each position */
    int32_t *col;        /* room: positions of the matrix's columns */
    int64_t near;        /* `held` entries have positions below near */
    int64_t held;
} sps_column_plan;

/* Same result as spsi_column_order_make for plan->A; the arrays belong to the
 * plan.  near: the entries with positions below it are counted in c->held.
 * Complete on return. */
sps_status spsi_cuda_column_plan_make(sps_plan *plan, int64_t near,
                                      sps_column_plan *c);

#ifdef __cplusplus
}
#endif
#endif
