/* SPDX-License-Identifier: BSD-3-Clause */
/* small.h - k x k matrices of doubles, in host memory or in the memory of the
 * context's blocks, packed column by column: element (i, j) is v[j * rows + i].
 *
 * Block operations (block.h) read and write both kinds.  A result in host
 * memory requires host synchronisation; one in the memory of the blocks does
 * not, so a method whose small matrices are all there never synchronises.  The
 * dense linear algebra is LAPACKE's, on the host; functions marked "host"
 * accept only matrices in host memory. */
#ifndef SPS_SMALL_H
#define SPS_SMALL_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_small {
    sps_context *ctx;
    sps_place place;        /* memory of v */
    int rows, cols;         /* in use */
    int max_rows, max_cols; /* allocated */
    double *v;
} sps_small;

sps_status spsi_small_create(sps_context *ctx, int max_rows, int max_cols,
                             sps_small **C_p);     /* host */
/* Creates a matrix in the memory of the context's blocks (device memory on a
 * GPU); with several processes it is in host memory, where sums over processes
 * are formed. */
sps_status spsi_small_create_device(sps_context *ctx, int max_rows,
                                    int max_cols, sps_small **C_p);
void spsi_small_destroy(sps_small **C_p);
/* Gives *C_p, in host memory, room for so many rows and columns and keeps its
 * contents; SPS_ENOMEM leaves it as it is. */
sps_status spsi_small_enlarge(sps_small **C_p, int max_rows, int max_cols);
void spsi_small_shape(sps_small *C, int rows, int cols);  /* contents lost */
/* Returns the address of element (i, j) of a matrix in host memory. */
static inline double *spsi_small_at(const sps_small *C, int i, int j)
{
    return &C->v[(size_t)j * (size_t)C->rows + (size_t)i];
}
static inline bool spsi_small_on_host(const sps_small *C)
{
    return C->place == SPS_HOST;
}
/* Returns the scratch memory, 2 max_rows doubles, of a matrix in host
 * memory. */
static inline double *spsi_small_scratch(const sps_small *C)
{
    return C->v + (size_t)C->max_rows * (size_t)C->max_cols;
}
void spsi_small_clear(sps_small *C);        /* host */
bool spsi_small_finite(const sps_small *C); /* host */
/* B = A, from and to either memory; complete on return unless both are on a
 * device. */
sps_status spsi_small_copy(const sps_small *A, sps_small *B);

/* All functions below are for matrices in host memory. */

/* A = (A + A') / 2. */
void spsi_small_symmetrise(sps_small *A);
/* C = a op(A) op(B) + b C. */
sps_status spsi_small_mul(double a, const sps_small *A, bool trans_A,
                          const sps_small *B, bool trans_B, double b,
                          sps_small *C);
/* Computes eigenvalues (ascending) and eigenvectors (in place of A) of a
 * symmetric A by LAPACKE_dsyevd.  w has A->rows elements. */
sps_status spsi_small_eigen(sps_small *A, double *w);
/* Computes eigenvalues (ascending, A->rows - D->cols of them) and M-orthonormal
 * eigenvectors (in the leading columns of A) of A x = lambda M x on the
 * complement of the columns of D, D'x = 0, by a QR factorisation of D and
 * LAPACKE_dsygvd.  M may be NULL; all arguments are destroyed.  *info > 0 is
 * the order of a minor of M that is not positive; *info < 0 means that a value
 * is not finite, or no convergence. */
sps_status spsi_small_eigen_pencil(sps_small *A, sps_small *M, sps_small *D,
                                   double *w, int *info);
/* From the orthonormal columns of Y computes the Householder reflectors Q = I -
 * U T U', whose leading columns are those of Y up to signs: U, lower
 * trapezoidal with a unit diagonal, in place of Y, and T (LAPACKE_dgeqrf and
 * _dlarft). */
sps_status spsi_small_reflectors(sps_small *Y, sps_small *T);
/* A = Q'A Q for such a Q (LAPACKE_dlarfb). */
sps_status spsi_small_reflect(const sps_small *U, const sps_small *T,
                              sps_small *A);
/* Counts the negative eigenvalues of the symmetric A (upper half, destroyed),
 * from the signs of D in A = U D U' (LAPACKE_dsytrf). */
sps_status spsi_small_inertia(sps_small *A, int *negative);
/* Solves A X = C in place of C for an SPD A (destroyed), by Cholesky factors
 * after scaling A to unit diagonal; with more than SPS_CHOLESKY_MOST rows or
 * columns by LAPACKE_dposv.  *info is 0, or the order of the first minor that
 * is not positive. */
sps_status spsi_small_solve_spd(sps_small *A, sps_small *C, int *info);
/* A = A^-1 by LU with row pivoting (LAPACKE_dgetrf and _dgetri).  *info is 0,
 * or the number of a pivot that is zero or not finite, and then A is
 * undefined. */
sps_status spsi_small_invert(sps_small *A, int *info);
/* A = P L U in place (LAPACKE_dgetrf), with the row exchanges in pivot[0 ..
 * rows - 1].  *info as above. */
sps_status spsi_small_factor(sps_small *A, int32_t *pivot, int *info);
/* A = L L' in place of the lower half of a symmetric A (LAPACKE_dpotrf).  *info
 * is 0, or the number of a pivot that is not positive or not finite. */
sps_status spsi_small_cholesky(sps_small *A, int *info);
/* X := A^-1 X by the factors of spsi_small_factor, or by those of
 * spsi_small_cholesky if pivot is NULL; X is A->rows x k, column-major. */
sps_status spsi_small_solve(const sps_small *A, const int32_t *pivot,
                            double *X, int k);
/* Computes the shortest least-squares solution of A X = B by QR factors with
 * column pivoting (LAPACKE_dgelsy), in place of A and B; B has A->rows rows
 * before and A->cols after, with ld of at least both.  *rank is the order of the
 * largest leading factor of condition below 1 / `cut`, or below 1 /
 * (max(A->rows, A->cols) eps), what is left of A being taken for zero; it is
 * negative if a value is not finite.  order is scratch memory, A->cols long. */
sps_status spsi_small_least_squares(sps_small *A, double *B, int ld, int k,
                                    double cut, int32_t *order,
                                    int *rank);
/* From the Gram matrix G = P'P, which is destroyed, computes T (rows of G x
 * rank) such that P T has orthonormal columns (SVQB).  G is scaled to unit
 * diagonal first, and directions with a relative singular value below
 * `tolerance` are dropped.  *condition is the ratio of the largest to the
 * smallest remaining singular value of the scaled block.  *rank is 0 if G =
 * 0. */
sps_status spsi_small_orthonormaliser(sps_small *G, double tolerance,
                                      sps_small *T, int *rank,
                                      double *condition);
/* As spsi_small_orthonormaliser, for the first of two passes.  With
 * v = spsi_small_visible() above the tolerance, directions whose relative
 * singular values are below v, hidden by the rounding of G, are kept and scaled
 * as if the value were v: columns of P T from number *sure on have length
 * (relative singular value) / v, the others length 1. */
sps_status spsi_small_uncover(sps_small *G, double tolerance, sps_small *T,
                              int *rank, int *sure, double *condition);
/* Returns sqrt(m eps), the smallest relative singular value that the Gram
 * matrix of m columns resolves. */
double spsi_small_visible(int m);

#ifdef __cplusplus
}
#endif
#endif
