/* SPDX-License-Identifier: BSD-3-Clause */
/* operator_matrix.h - matrix operations for building preconditioners; results
 * in host memory.  They run on the backend if it has the function, otherwise on
 * the CPU. */
#ifndef SPS_OPERATOR_MATRIX_H
#define SPS_OPERATOR_MATRIX_H

#include "matrix/incomplete_rows.h"
#include "matrix/triangle.h"
#include "operator/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* diagonal[i] = a_ii, 0 where none is stored; n numbers. */
sps_status spsi_matrix_diagonal(const sps_operator *A, double *diagonal);
/* *some: in the memory of a GPU, the sum of each row of some component of the
 * square A is at most tol times the sum of its |a_ij|; on the host, that of some
 * row.  If not, spsi_components_find would find nothing (csr.h). */
sps_status spsi_matrix_cancels(const sps_operator *A, double tol, bool *some);
/* inverse[i] = 1 / |a_ii|, or 1 if that is not finite; *zero, *negative: number
 * of diagonal entries that are zero, negative. */
sps_status spsi_matrix_inverse_diagonal(const sps_operator *A, double *inverse,
                                        int64_t *zero, int64_t *negative);
/* inverse[j] = 1 / ||a_j||, a_j column j of A, 1 where it is zero; *zero: how
 * many are. */
sps_status spsi_matrix_inverse_columns(const sps_operator *A, double *inverse,
                                       int64_t *zero);
/* Inverses of the diagonal blocks of rows start[b] .. start[b+1]-1,
 * column-major, one after another; *bad: the first singular block, or -1 (its
 * inverse and those after it are undefined then). */
sps_status spsi_matrix_block_inverse(const sps_operator *A,
                                     const int64_t *start, int64_t blocks,
                                     double *inverse, int64_t *bad);
/* F becomes L + U - I, its incomplete factors in its pattern (backend.h). */
sps_status spsi_matrix_ilu0(sps_context *ctx, sps_csr *F,
                            const int64_t *diagonal, const sps_levels *levels,
                            bool positive, int64_t *bad);
/* G, v: values of a factored approximate inverse of A, both in the pattern of G
 * (backend.h). */
sps_status spsi_matrix_fsai(sps_context *ctx, const sps_csr *A, sps_csr *G,
                            double *v, bool symmetric, int64_t *bad);
/* Incomplete LU factors with a drop tolerance (ILUT).  The caller provides
 * r->inverse and r->column, and frees them. */
sps_status spsi_matrix_ilut(sps_context *ctx, const sps_csr *B,
                            const sps_ilut_options *o, sps_ilut_result *r);

/* *C_p = A B, a new csr in the place of A and B, whose rows are sorted without
 * duplicates (backend.h has the order of sums).  Its dtype is SPS_F32 if both
 * are, else SPS_F64.  ENOMEM, EDEVMEM; EUNFIT after a deadline. */
sps_status spsi_matrix_multiply(sps_context *ctx, const sps_csr *A,
                                const sps_csr *B, sps_csr **C_p);
/* C = A B for new values of A and B, on the pattern that C has from
 * spsi_matrix_multiply; the same bits as the product formed anew.  EMATRIX: the
 * patterns have changed. */
sps_status spsi_matrix_multiply_values(sps_context *ctx, const sps_csr *A,
                                       const sps_csr *B, sps_csr *C);

#ifdef __cplusplus
}
#endif
#endif
