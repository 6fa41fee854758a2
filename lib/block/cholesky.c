/* SPDX-License-Identifier: BSD-3-Clause */
/* cholesky.c - replaces LAPACK's dposv for few rows and columns, where its
 * calls take longer than the arithmetic, r^3 / 3 + 2 r^2 k operations, while a
 * device waits.  The bits do not depend on the BLAS. */
#include "block/cholesky.h"

#include <math.h>

static int factor(sps_small *A)
{
    for (int j = 0; j < A->cols; j++) {
        double *u = spsi_small_at(A, 0, j);

        for (int i = 0; i <= j; i++) {
            const double *v = spsi_small_at(A, 0, i);
            double a = u[i];

            for (int k = 0; k < i; k++) a -= v[k] * u[k];
            if (i == j && !(a > 0)) return j + 1;
            u[i] = i == j ? sqrt(a) : a / v[i];
        }
    }
    return 0;
}

/* The rows of C, stored so that a step of all columns is one loop. */
typedef double rows[SPS_CHOLESKY_MOST][SPS_CHOLESKY_MOST];

/* Subtracts u times row k of W from row i. */
static void subtract(rows W, int i, int k, double u)
{
#pragma omp simd
    for (int c = 0; c < SPS_CHOLESKY_MOST; c++) W[i][c] -= u * W[k][c];
}

static void divide(rows W, int i, double u)
{
    for (int c = 0; c < SPS_CHOLESKY_MOST; c++) W[i][c] /= u;
}

int spsi_cholesky_solve(sps_small *A, sps_small *C)
{
    const int r = A->rows, failed = factor(A);
    rows W = { { 0 } };

    if (failed) return failed;
    for (int c = 0; c < C->cols; c++)
        for (int i = 0; i < r; i++) W[i][c] = *spsi_small_at(C, i, c);
    for (int i = 0; i < r; i++) {
        for (int k = 0; k < i; k++) subtract(W, i, k, *spsi_small_at(A, k, i));
        divide(W, i, *spsi_small_at(A, i, i));
    }
    for (int i = r - 1; i >= 0; i--) {
        for (int k = i + 1; k < r; k++)
            subtract(W, i, k, *spsi_small_at(A, i, k));
        divide(W, i, *spsi_small_at(A, i, i));
    }
    for (int c = 0; c < C->cols; c++)
        for (int i = 0; i < r; i++) *spsi_small_at(C, i, c) = W[i][c];
    return 0;
}
