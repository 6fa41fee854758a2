/* SPDX-License-Identifier: BSD-3-Clause */
/* inverse.h - last rows and columns of dense inverses, for sparse approximate
 * inverses. */
#ifndef SPS_INVERSE_H
#define SPS_INVERSE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the last row (unless `row` is NULL) and the last column of D^-1, m
 * values each, by LAPACKE_dgetrf and _dgetrs.  D is m x m, column-major, and
 * destroyed; pivot is scratch memory of m integers.  Returns false if D is not
 * finite or is singular to working precision.  May run in any number of
 * threads, each with its own arrays, between spsi_blas_begin and spsi_blas_end
 * of the caller. */
bool spsi_inverse_end(double *D, int m, int *pivot, double *row,
                      double *column);

#ifdef __cplusplus
}
#endif
#endif
