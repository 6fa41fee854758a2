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
    int64_t room;        /* length of col: nnz rounded up to a multiple of
                            1024; the rest is zero */
    int32_t *column;     /* ncol numbers: the column at each position of the
                            order */
    int32_t *col;        /* for each entry of A, the position of its column in
                            the order */
    int64_t near;        /* entries whose column has one of the first `near`
                            positions are counted in `held` */
    int64_t held;
} sps_column_plan;

/* Orders the columns of plan->A, with the result of spsi_column_order_make on
 * the host; the arrays belong to the plan.  Entries at positions below `near`
 * are counted in c->held.  Complete on return. */
sps_status spsi_cuda_column_plan_make(sps_plan *plan, int64_t near,
                                      sps_column_plan *c);

#ifdef __cplusplus
}
#endif
#endif
