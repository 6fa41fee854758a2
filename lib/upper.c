/* SPDX-License-Identifier: BSD-3-Clause */
/* upper.c - triangular systems of least squares problems, which may be singular
 * or nearly so.  A diagonal without pivoting does not tell the rank,
 * and two pivots of 1e-15 make an x of 1e30: so the length of x decides whether
 * it means anything, and where it does not a rank-revealing factorisation is
 * taken, whose cost of O(n^3) such cases alone pay. */
#include "upper.h"

#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* x = R^-1 b; false where that is no more than rounding, as upper.h says. */
static bool solve_regular(const double *R, int n, int ld, const double *b,
                          double tolerance, double *x)
{
    double largest = 0, below = 0, norm = 0;

    for (int j = 0; j < n; j++) {
        largest = fmax(largest, fabs(R[(int64_t)j * ld + j]));
        below = fmax(below, fabs(b[j]));
    }
    memcpy(x, b, (size_t)n * sizeof *x);
    for (int j = n - 1; j >= 0; j--) {
        const double *column = R + (int64_t)j * ld;

        if (!(fabs(column[j]) > tolerance * largest)) return false;
        x[j] /= column[j];
        for (int i = 0; i < j; i++) x[i] -= x[j] * column[i];
        norm = fmax(norm, fabs(x[j]));
    }
    return tolerance * largest * norm <= below;
}

sps_status spsi_small_solve_upper(sps_context *ctx, const double *R, int n,
                                  int ld, const double *b, double *x)
{
    const double tolerance = (n > 16 ? n : 16) * DBL_EPSILON;
    sps_status st = SPS_OK;
    double *copy = NULL;
    lapack_int *pivot = NULL, rank, info = 0;
    bool finite = true;

    if (n == 0 || solve_regular(R, n, ld, b, tolerance, x)) return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, (int64_t)n * n, &copy));
    SPS_TRY(SPS_NEW(ctx, n, &pivot));
    for (int j = 0; j < n; j++) {
        double *column = copy + (int64_t)j * n;

        memcpy(column, R + (int64_t)j * ld, (size_t)(j + 1) * sizeof *copy);
        for (int i = 0; i <= j; i++) finite = finite && isfinite(column[i]);
        finite = finite && isfinite(b[j]);
    }
    memcpy(x, b, (size_t)n * sizeof *x);
    if (finite)
        info = LAPACKE_dgelsy(LAPACK_COL_MAJOR, n, n, 1, copy, n, x, n, pivot,
                              tolerance, &rank);
    else
        for (int j = 0; j < n; j++) x[j] = NAN;
    SPS_REQUIRE(ctx, info != LAPACK_WORK_MEMORY_ERROR, SPS_ENOMEM,
                "no memory for least squares of order %d", n);
fail:
    spsi_free(ctx, copy);
    spsi_free(ctx, pivot);
    return st;
}
