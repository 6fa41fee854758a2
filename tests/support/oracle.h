/* SPDX-License-Identifier: BSD-3-Clause */
/* oracle.h - reference results by plain loops in long double, and error bounds
 * for computed results.
 *
 * Blocks are host arrays, row-major, element (i, j) at x[i * ld + j]; small
 * matrices are column-major, element (i, j) at c[j * ldc + i].  Each routine
 * also returns in bound, one number for each result, the sum of |terms|; a
 * result may differ by c (length + 4) u * sum. bound may be NULL. */
#ifndef SPS_TEST_ORACLE_H
#define SPS_TEST_ORACLE_H

#include "spsolve.h"

/* Y = alpha A X + beta Y; beta = 0 does not read Y, alpha = 0 does not read A
 * and X. bound: nrow x k, row-major with ld k. */
void oracle_spmm(const sps_csr *A, double alpha, const double *X, int64_t ldx,
                 double beta, double *Y, int64_t ldy, int k, double *bound);
/* val = alpha (u_i . v_j) [a_ij] + beta val in double; bound: nnz. */
void oracle_sddmm(const sps_csr *A, double alpha, const double *U, int64_t ldu,
                  const double *V, int64_t ldv, int k, bool multiply,
                  double beta, double *val, double *bound);
/* C = X'Y, kx x ky; bound: the same shape and ldc. */
void oracle_gram(int64_t n, const double *X, int64_t ldx, int kx,
                 const double *Y, int64_t ldy, int ky, double *C, int ldc,
                 double *bound);
/* Y = a X C + b Y; C is kx x ky; bound: n x ky, row-major with ld ky. */
void oracle_mul_small(int64_t n, double a, const double *X, int64_t ldx,
                      int kx, const double *C, int ldc, int ky, double b,
                      double *Y, int64_t ldy, double *bound);

/* Longest row of A. */
int64_t oracle_longest(const sps_csr *A);
/* The first (i, j), as i * k + j, where the two arrays differ bitwise; NaN
 * equals NaN, 0 equals -0. -1: none. */
int64_t oracle_differs(int64_t n, int k, const double *x, int64_t ldx,
                       const double *y, int64_t ldy);
/* The largest |x - y| / (4 (length + 4) u bound) over all elements; accept <=
 * 1.  A difference where the bound is 0, or a NaN in one array only, counts as
 * infinite. */
double oracle_ratio(int64_t n, int k, const double *x, int64_t ldx,
                    const double *y, int64_t ldy, const double *bound,
                    int64_t length);
/* Checksum for large sizes, for Y = A X: the largest over the rows of |(Y t) -
 * (A (X t))| / (4 (row length + k + 4) u |A| |X| |t|), t random from seed.
 * Accept <= 1. */
double oracle_checksum(const sps_csr *A, const double *X, int64_t ldx,
                       const double *Y, int64_t ldy, int k, uint64_t seed);

#endif
