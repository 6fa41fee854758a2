/* SPDX-License-Identifier: BSD-3-Clause */
/* incomplete_rows.h - arguments and results of an incomplete factorisation with
 * a drop tolerance. */
#ifndef SPS_INCOMPLETE_ROWS_H
#define SPS_INCOMPLETE_ROWS_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_ilut_options {
    double drop;              /* entries below this fraction of their row's
                                 norm are dropped */
    int64_t most;             /* entries kept in a row of L, and of U */
    double pivot;             /* columns are swapped if the diagonal entry is
                                 below this fraction of the largest one; 0
                                 for never */
} sps_ilut_options;

/* B with permuted columns = (L + I) (U + D), L and U strictly triangular. */
typedef struct sps_ilut_result {
    sps_csr *L, *U;           /* created by the call; NULL if the time limit
                                 was reached.  Rows of U are not sorted */
    double *inverse;          /* array of the caller, n: D^-1 */
    int32_t *column;          /* array of the caller, n: column[i] of B
                                 becomes column i */
    int64_t rows;             /* completed rows: fewer than n after the time
                                 limit */
    int64_t replaced;         /* pivots that vanished and were replaced */
} sps_ilut_result;

#ifdef __cplusplus
}
#endif
#endif
