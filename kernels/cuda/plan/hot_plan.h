/* SPDX-License-Identifier: BSD-3-Clause */
/* hot_plan.h - the plan of spmv.hot: columns ordered by number of entries,
 * marks on the first entries of rows, and equal ranges of entries. */
#ifndef SPS_CUDA_HOT_PLAN_H
#define SPS_CUDA_HOT_PLAN_H

#include "cuda/plan/column_plan.h"
#include "plan/kernel.h"
#include "formats/row_heads.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The plan of spmv.hot; its arrays are in device memory. */
typedef struct sps_hot_plan {
    sps_plan super;
    sps_column_plan columns;
    sps_row_heads rows;
    int64_t reach;           /* entries of a range, a multiple of 64 */
    int32_t ranges;
    int32_t *first;          /* for each range: the index of the row that is
                                open at its beginning, that is the number of
                                rows begun before it, minus 1 */
    int32_t *open;           /* for each range: the row open at its end, or
                                -1 */
    void *lead, *trail;      /* for each range: partial sums of the row
                                `first` and of the row `open` */
    void *sum;               /* nrow elements: sums of the rows with entries */
    void *packed;            /* ncol elements: x ordered by use */
    unsigned *done;          /* counter of finished thread blocks; 0 between
                                runs */
    int near;                /* number of entries of x held in shared memory */
    size_t number;           /* bytes of an element of lead, trail, sum and
                                packed */
} sps_hot_plan;

/* Allocates and fills the arrays of h->rows and those from `first` to `done`:
 * at most `workers` ranges, each of a multiple of `step` entries except for the
 * last.  super and number must be set; the caller owns columns and near. */
sps_status spsi_cuda_hot_rows(sps_hot_plan *h, int64_t step, int64_t workers);

#ifdef __cplusplus
}
#endif
#endif
