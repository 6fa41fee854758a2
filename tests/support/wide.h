/* SPDX-License-Identifier: BSD-3-Clause */
/* wide.h - numbers with significands of at least 113 bits, and residuals
 * computed in them: sums of products of doubles without the cancellation errors
 * of double precision. */
#ifndef SPS_TEST_WIDE_H
#define SPS_TEST_WIDE_H

#include <float.h>
#include <math.h>

#include "spsolve.h"

#if LDBL_MANT_DIG >= 113
typedef long double wide;
#else
__extension__ typedef __float128 wide;
#endif

/* sqrt(a / b) for a, b >= 0; infinite where b = 0 and a > 0. */
static inline double wide_ratio(wide a, wide b)
{
    if (a == 0) return 0;
    return b > 0 ? sqrt((double)(a / b)) : INFINITY;
}

/* ||b - A x|| / ||b|| of column j; B and X row-major with k columns, A a host
 * csr of doubles. */
static inline double wide_residual(const sps_csr *A, const double *B,
                                   const double *X, int k, int j)
{
    const double *val = A->val;
    wide rr = 0, bb = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        wide r = B[i * k + j];

        bb += r * r;
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            r -= val[q] * (wide)X[(int64_t)A->col[q] * k + j];
        rr += r * r;
    }
    return wide_ratio(rr, bb);
}

#endif
