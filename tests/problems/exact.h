/* SPDX-License-Identifier: BSD-3-Clause */
/* exact.h - residuals nearly as accurate as in exact arithmetic, for suites
 * that check the residuals that the library reports.
 *
 * A product of two doubles is four products of their halves of 26 and 27 bits,
 * each exact in a long double of 64 bits, whose range also holds the products
 * and squares of the largest and the smallest double.  A sum of m terms t_i is
 * computed in twice the working precision (Sum2 of Ogita, Rump and Oishi, SIAM
 * J. Sci. Comput. 26(6), 2005, proposition 4.5): with u = 2^-64
 *
 *     |sum - exact| <= u |exact| + (m u)^2 / (1 - m u)^2 sum |t_i|.
 *
 * With m = 4 * 1000 the second term is 5e-32 of |A||x| + |b|: where x is as
 * large as a condition of 1e16 makes it, 5e-16 of a tolerance of 1e-14 ||b||.
 * The suites do not rely on this a priori bound: exact_doubt() bounds the error
 * of each sum by the rounding errors of its additions (0 if there were none),
 * and a residual within this bound of a threshold counts neither as above nor
 * as below.
 *
 * Where long double is no wider than double exact_possible() is false. */
#ifndef SPS_TEST_EXACT_H
#define SPS_TEST_EXACT_H

#include <float.h>

#include "spsolve.h"

/* The sum is high + low; lost: accumulated rounding errors of the additions to
 * low. */
typedef struct exact_sum {
    long double high, low, lost;
} exact_sum;

static inline bool exact_possible(void)
{
    return LDBL_MANT_DIG >= 64 && LDBL_MAX_EXP >= 16384;
}

void exact_add(exact_sum *s, long double term);
void exact_add_product(exact_sum *s, double a, double b);
long double exact_value(const exact_sum *s);
long double exact_doubt(const exact_sum *s);

/* 2-norms of column j: of b - A x, of its error bound, of b, of x.  Blocks are
 * row-major with leading dimension ld; an entry that is not finite makes the
 * residual infinite. */
typedef struct exact_norms {
    long double residual, doubt, b, x;
} exact_norms;

exact_norms exact_residual(const sps_csr *A, const double *b, const double *x,
                           int64_t ld, int j);

/* Of an eigenpair: ||A x - lambda M x||, its error bound, ||M x||, ||x||; M may
 * be NULL. */
typedef struct exact_pair {
    long double residual, doubt, mass, x;
} exact_pair;

exact_pair exact_eigen(const sps_csr *A, const sps_csr *M, double lambda,
                       const double *x, int64_t ld, int j);

#endif
