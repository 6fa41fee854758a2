/* SPDX-License-Identifier: BSD-3-Clause */
/* small.h - k x k matrices of doubles, on the host or in the place of the
 * context, packed column by column: element (i, j) is v[j * rows + i].
 *
 * Block operations (block.h) read and write both kinds.  A result that goes to
 * the host is waited for; one that stays near the blocks is not, so that a
 * method whose small matrices are all near never waits.  The dense work on the
 * host is LAPACKE's; what is said to be "host" takes no other kind. */
#ifndef SPS_SMALL_H
#define SPS_SMALL_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_small {
    sps_context *ctx;
    sps_place place;        /* of v */
    int rows, cols;         /* in use */
    int max_rows, max_cols; /* allocated */
    double *v;
} sps_small;

sps_status spsi_small_create(sps_context *ctx, int max_rows, int max_cols,
                             sps_small **C_p);     /* host */
/* In the place of the context; on the host where sums go through the caller's
 * reduction, which takes host memory. */
sps_status spsi_small_create_near(sps_context *ctx, int max_rows,
                                  int max_cols, sps_small **C_p);
void spsi_small_destroy(sps_small **C_p);
void spsi_small_shape(sps_small *C, int rows, int cols);  /* contents lost */
/* Host. */
static inline double *spsi_small_at(const sps_small *C, int i, int j)
{
    return &C->v[(size_t)j * (size_t)C->rows + (size_t)i];
}
void spsi_small_clear(sps_small *C);        /* host */
bool spsi_small_finite(const sps_small *C); /* host */
/* B = A, from any place to any; complete on return unless both are near. */
sps_status spsi_small_copy(const sps_small *A, sps_small *B);

/* From here on all are host. */

/* A = (A + A') / 2. */
void spsi_small_symmetrise(sps_small *A);
/* C = a op(A) op(B) + b C. */
sps_status spsi_small_mul(double a, const sps_small *A, bool trans_A,
                          const sps_small *B, bool trans_B, double b,
                          sps_small *C);
/* Eigenvalues (ascending) and vectors (in place of A) of a symmetric A:
 * LAPACKE_dsyevd.  w: A->rows numbers. */
sps_status spsi_small_eigen(sps_small *A, double *w);
/* Eigenvalues (ascending, left = A->rows - D->cols of them) and M-orthonormal
 * vectors (leading columns of A) of A x = lambda M x on the complement of the
 * columns of D, D'x = 0: a QR factorisation of D, then LAPACKE_dsygvd.  M may
 * be NULL; all are destroyed.  *info > 0: the order of a minor of M that is
 * not positive; < 0: not finite, or no convergence. */
sps_status spsi_small_eigen_pencil(sps_small *A, sps_small *M, sps_small *D,
                                   double *w, int *info);
/* How many eigenvalues of the symmetric A (upper half, destroyed) are
 * negative, by the signs of D in A = U D U': LAPACKE_dsytrf. */
sps_status spsi_small_inertia(sps_small *A, int *negative);
/* Solves A X = C for SPD A (destroyed), C in place: LAPACKE_dposv after
 * scaling A to a unit diagonal.  *info = 0, or the order of the first minor
 * that is not positive. */
sps_status spsi_small_solve_spd(sps_small *A, sps_small *C, int *info);
/* A = A^-1 by LU with row pivoting: LAPACKE_dgetrf and _dgetri.  *info = 0, or
 * the pivot that is zero or not finite (A is then undefined). */
sps_status spsi_small_invert(sps_small *A, int *info);
/* From the Gram matrix G = P'P: T (rows of G x rank) such that P T has
 * orthonormal columns, directions with relative singular value below
 * tolerance left out; G is scaled to unit diagonal first (SVQB).
 * *condition: ratio of the largest to the smallest kept singular value of the
 * scaled block.  rank 0 when G = 0.  G is destroyed. */
sps_status spsi_small_orthonormaliser(sps_small *G, double tolerance,
                                      sps_small *T, int *rank,
                                      double *condition);
/* The first of two passes: what the rounding of G hides, singular values below
 * spsi_small_visible() of the largest, is not left out but scaled as if it had
 * that one.  Columns of P T are of length 1, but those from number *sure on of
 * length (singular value / largest) / spsi_small_visible(). */
sps_status spsi_small_uncover(sps_small *G, double tolerance, sps_small *T,
                              int *rank, int *sure, double *condition);
/* sqrt(m eps), for a Gram matrix of m columns. */
double spsi_small_visible(int m);

#ifdef __cplusplus
}
#endif
#endif
