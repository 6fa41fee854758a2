/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_matrix.h - matrix operations for building preconditioners; results
 * in host memory.  They run on the backend if it has the function, otherwise on
 * the CPU. */
#ifndef SPS_OPERATOR_MATRIX_H
#define SPS_OPERATOR_MATRIX_H

#include "matrix/incomplete_rows.h"
#include "matrix/row_kinds.h"
#include "matrix/triangle.h"
#include "operator/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* diagonal[i] = a_ii, or 0 where none is stored; n elements. */
sps_status spsi_matrix_diagonal(const sps_operator *A, double *diagonal);
/* *some: for a matrix in the memory of a GPU, whether in some connected
 * component of the square A the sum of each row is at most tol times the sum of
 * its |a_ij|; for one on the host, whether this holds for some row.  If not,
 * spsi_components_find would find nothing (csr.h). */
sps_status spsi_matrix_cancels(const sps_operator *A, double tol, bool *some);
/* inverse[i] = 1 / |a_ii|, or 1 if that is not finite.  *zero and *negative
 * count the diagonal entries that are zero and negative. */
sps_status spsi_matrix_inverse_diagonal(const sps_operator *A, double *inverse,
                                        int64_t *zero, int64_t *negative);
/* examine.c: the same in a block of one column, in doubles; of a matrix on a
 * GPU the diagonal does not pass the host. */
sps_status spsi_matrix_inverse_block(const sps_operator *A, sps_block *inverse,
                                     sps_diagonal_kinds *k);
/* examine.c: spsi_row_kinds_count and spsi_rows_known where the matrix is
 * stored. */
sps_status spsi_matrix_kinds(const sps_operator *A, bool projected,
                             sps_row_kinds *k);
sps_status spsi_matrix_known(const sps_operator *A, int b, int64_t *known);
/* inverse[j] = 1 / ||a_j||, where a_j is column j of A, or 1 if the column is
 * zero; *zero counts these. */
sps_status spsi_matrix_inverse_columns(const sps_operator *A, double *inverse,
                                       int64_t *zero);
/* Inverts the diagonal blocks of rows start[b] .. start[b+1]-1; the inverses
 * are column-major, one after another.  *bad is the first singular block (its
 * inverse and those after it are undefined), or -1. */
sps_status spsi_matrix_block_inverse(const sps_operator *A,
                                     const int64_t *start, int64_t blocks,
                                     double *inverse, int64_t *bad);
/* Replaces F by L + U - I, its incomplete factors in its pattern
 * (backend.h). */
sps_status spsi_matrix_ilu0(sps_context *ctx, sps_csr *F,
                            const int64_t *diagonal, const sps_levels *levels,
                            bool positive, int64_t *bad);
/* Computes the values of a factored sparse approximate inverse of A, in G and
 * v, both in the pattern of G (backend.h). */
sps_status spsi_matrix_fsai(sps_context *ctx, const sps_csr *A, sps_csr *G,
                            double *v, bool symmetric, int64_t *bad);
/* Computes incomplete LU factors with a drop tolerance.  The caller provides
 * r->inverse and r->column, and frees all results. */
sps_status spsi_matrix_ilut(sps_context *ctx, const sps_csr *B,
                            const sps_ilut_options *o, sps_ilut_result *r);

/* Creates C = A B as a new csr in the memory where A and B are stored; their
 * rows are sorted without duplicates (backend.h gives the order of sums). Its
 * dtype is SPS_F32 if that of both is, else SPS_F64.  ENOMEM, EDEVMEM; EUNFIT
 * after a deadline. */
sps_status spsi_matrix_multiply(sps_context *ctx, const sps_csr *A,
                                const sps_csr *B, sps_csr **C_p);
/* Computes C = A B for new values of A and B, on the pattern that C has from
 * spsi_matrix_multiply, with the same bits as a new product.  EMATRIX if the
 * patterns have changed. */
sps_status spsi_matrix_multiply_values(sps_context *ctx, const sps_csr *A,
                                       const sps_csr *B, sps_csr *C);

#ifdef __cplusplus
}
#endif
#endif
