/* SPDX-License-Identifier: BSD-3-Clause */
/* inverse.c - see inverse.h. */
#include "block/inverse.h"

#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

/* Returns max |v[t]|, or NaN if a value is not finite. */
static double largest_of(const double *v, size_t count)
{
    double largest = 0;

    for (size_t t = 0; t < count; t++) {
        if (!isfinite(v[t])) return NAN;
        largest = fmax(largest, fabs(v[t]));
    }
    return largest;
}

static void last_of(const double *D, int m, const lapack_int *pivot, char trans,
                    double *x)
{
    memset(x, 0, (size_t)m * sizeof *x);
    x[m - 1] = 1;
    (void)LAPACKE_dgetrs_work(LAPACK_COL_MAJOR, trans, m, 1, D, m, pivot, x,
                              m);
}

bool spsi_inverse_end(double *D, int m, int *pivot, double *row,
                      double *column)
{
    const double largest = largest_of(D, (size_t)m * (size_t)m);
    const double least = DBL_EPSILON * largest;

    if (!isfinite(largest)) return false;
    if (LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, m, m, D, m, pivot) != 0)
        return false;
    for (int i = 0; i < m; i++)
        if (!(fabs(D[i * m + i]) > least)) return false;
    if (row) last_of(D, m, pivot, 'T', row);
    last_of(D, m, pivot, 'N', column);
    return true;
}
