/* SPDX-License-Identifier: BSD-3-Clause */
/* cholesky.h - solves A X = C for small symmetric positive definite
 * matrices. */
#ifndef SPS_CHOLESKY_H
#define SPS_CHOLESKY_H

#include "block/small.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_CHOLESKY_MOST 32     /* largest number of rows, and of columns of
                                    C */

/* Factors A = U'U in the upper triangle of A and computes C = A^-1 C.  Returns
 * 0, or the order of the first leading minor that is not positive. */
int spsi_cholesky_solve(sps_small *A, sps_small *C);

#ifdef __cplusplus
}
#endif
#endif
