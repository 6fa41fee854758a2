/* SPDX-License-Identifier: BSD-3-Clause */
/* ilut.h - what an incomplete factorisation by threshold is asked for, and
 * gives. */
#ifndef SPS_ILUT_H
#define SPS_ILUT_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_ilut_options {
    double drop;              /* entries below this part of their row go */
    int64_t most;             /* entries of a row of L, and of U, that stay */
    double pivot;             /* columns swap where the diagonal is below this
                                 part of the largest; 0: never */
    double deadline;          /* of spsi_now(), 0: none */
} sps_ilut_options;

/* B with columns swapped = (L + I) (U + D), L and U strict. */
typedef struct sps_ilut_result {
    sps_csr *L, *U;           /* made; NULL when it stopped early.  Rows of U
                                 are not sorted */
    double *inverse;          /* the caller's, n: D^-1 */
    int32_t *column;          /* the caller's, n: column[i] of B is column i */
    int64_t rows;             /* finished: below n at the deadline */
    int64_t replaced;         /* pivots that vanished */
} sps_ilut_result;

#ifdef __cplusplus
}
#endif
#endif
