/* SPDX-License-Identifier: BSD-3-Clause */
/* inverse.h - ends of dense inverses, for sparse approximate ones. */
#ifndef SPS_INVERSE_H
#define SPS_INVERSE_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The last row and the last column of D^-1, m numbers each, row NULL where it
 * is not wanted: LAPACKE_dgetrf and _dgetrs.  D is m x m, column by
 * column, destroyed; pivot: m numbers of room.  False where D is not finite or
 * singular to working precision.  Any number of threads, each with its own
 * arrays. */
bool spsi_inverse_end(double *D, int m, int *pivot, double *row,
                      double *column);

#ifdef __cplusplus
}
#endif
#endif
