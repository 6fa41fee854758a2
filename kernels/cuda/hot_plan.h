/* SPDX-License-Identifier: BSD-3-Clause */
/* hot_plan.h - what spmv.hot plans: columns by use, marks on the first entries
 * of rows, and even ranges of entries. */
#ifndef SPS_CUDA_HOT_PLAN_H
#define SPS_CUDA_HOT_PLAN_H

#include "column_plan.h"
#include "kernel.h"
#include "kernels/formats/row_heads.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays on the device. */
typedef struct sps_hot_plan {
    sps_plan super;
    sps_column_plan columns;
    sps_row_heads rows;
    int64_t reach;           /* entries of a range, a multiple of 64 */
    int32_t ranges;
    int32_t *first;          /* of each range: rows begun before it, less 1:
                                the row that is open where it begins */
    int32_t *open;           /* the row that is open where it ends, or -1 */
    void *lead, *trail;      /* numbers: what it has of the row of `first`, and
                                of the row of `open` */
    void *sum;               /* nrow numbers: of the rows with entries */
    void *packed;            /* ncol numbers: x in the order of use */
    unsigned *done;          /* blocks of threads; 0 between runs */
    int near;                /* numbers in shared memory */
    size_t number;           /* bytes of one */
} sps_hot_plan;

/* All but columns and near, for `workers` warps. */
sps_status spsi_cuda_hot_rows(sps_hot_plan *h, int64_t step, int64_t workers);
void spsi_cuda_hot_clear(sps_hot_plan *h);

#ifdef __cplusplus
}
#endif
#endif
