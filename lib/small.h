/* SPDX-License-Identifier: BSD-3-Clause */
/* small.h - k x k matrices.  Column-major doubles on the host; the dense work
 * is LAPACKE's.  (A place on the device is to follow: solvers use only the
 * functions below and never see the numbers' address.) */
#ifndef SPS_SMALL_H
#define SPS_SMALL_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_small {
    sps_context *ctx;
    int rows, cols;         /* in use */
    int max_rows, max_cols; /* allocated; leading dimension is max_rows */
    double *v;              /* element (i, j) is v[j * max_rows + i] */
} sps_small;

sps_status spsi_small_create(sps_context *ctx, int max_rows, int max_cols,
                             sps_small **C_p);
void spsi_small_destroy(sps_small **C_p);
void spsi_small_shape(sps_small *C, int rows, int cols);  /* contents lost */
static inline double *spsi_small_at(const sps_small *C, int i, int j)
{
    return &C->v[(size_t)j * (size_t)C->max_rows + (size_t)i];
}
bool spsi_small_finite(const sps_small *C);
sps_status spsi_small_copy(const sps_small *A, sps_small *B);
/* A = (A + A') / 2. */
void spsi_small_symmetrise(sps_small *A);
/* C = a op(A) op(B) + b C. */
sps_status spsi_small_mul(double a, const sps_small *A, bool trans_A,
                          const sps_small *B, bool trans_B, double b,
                          sps_small *C);
/* Eigenvalues (ascending) and vectors (in place of A) of a symmetric A:
 * LAPACKE_dsyevd.  w: A->rows numbers. */
sps_status spsi_small_eigen(sps_small *A, double *w);
/* Solves A X = C for SPD A (destroyed), C in place: LAPACKE_dposv after
 * scaling A to a unit diagonal.  *info = 0, or the order of the first minor
 * that is not positive. */
sps_status spsi_small_solve_spd(sps_small *A, sps_small *C, int *info);
/* From the Gram matrix G = P'P: T (rows of G x rank) such that P T has
 * orthonormal columns, directions with relative singular value below
 * tolerance left out; G is scaled to unit diagonal first (SVQB).
 * *condition: ratio of the largest to the smallest kept singular value of the
 * scaled block.  rank 0 when G = 0.  G is destroyed. */
sps_status spsi_small_orthonormaliser(sps_small *G, double tolerance,
                                      sps_small *T, int *rank,
                                      double *condition);

#ifdef __cplusplus
}
#endif
#endif
