/* SPDX-License-Identifier: BSD-3-Clause */
/* small_first.h - the smallest eigenvalues of a small symmetric matrix. */
#ifndef SPS_SMALL_FIRST_H
#define SPS_SMALL_FIRST_H

#include "block/small.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes the Z->cols smallest eigenvalues (ascending) and their eigenvectors
 * Z of a symmetric, finite A, which is destroyed, by LAPACKE_dsyevr: some 4/3
 * n^3 + 2 n^2 m operations for m pairs, where all by dsyevd take about 5 n^3.  *made is false if it did not succeed. */
sps_status spsi_small_eigen_first(sps_small *A, double *w, sps_small *Z,
                                  bool *made);

#ifdef __cplusplus
}
#endif
#endif
