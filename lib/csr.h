/* SPDX-License-Identifier: BSD-3-Clause */
/* csr.h - internal view of sparse matrices: the copy in the place of the
 * context, and the connected components of a pattern. */
#ifndef SPS_CSR_H
#define SPS_CSR_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The matrix where the kernels run.  On the host it points at the arrays of
 * the csr; on a GPU it is the one upload that all kernels share. */
typedef struct sps_csr_local {
    int64_t nrow, ncol, nnz;
    const int64_t *rowptr;    /* on a GPU NULL may stand here when rowptr32
                                 is there */
    const int32_t *rowptr32;  /* the same, when nnz < 2^31; NULL on the host */
    const int32_t *col;
    const void *val;
    sps_dtype dtype;
} sps_csr_local;

/* Rows grouped by connected component of the pattern of A + A', only those
 * components that carry a null vector.  Arrays in the place of the context;
 * rows of component c: row[start[c]] .. row[start[c+1]-1], ascending. */
typedef struct sps_components {
    sps_context *ctx;
    int64_t count, rows;      /* components, rows they hold */
    int64_t *start;           /* count + 1 */
    int32_t *row;             /* rows */
    int64_t *host_start;      /* start again, on the host */
    size_t bytes_start, bytes_row;
} sps_components;

/* Components whose every row sum is below tol * (row's sum of |a_ij|):
 * the indicator of each is a null vector of a symmetric A.  all = true: every
 * component of the pattern, row sums not asked. */
sps_status spsi_components_find(sps_context *ctx, const sps_csr *A, double tol,
                                bool all, sps_components **c_p);
void spsi_components_destroy(sps_components **c_p);
/* Whether any row sum is that small: without one there is nothing to find.
 * Allocates nothing. */
bool spsi_components_possible(const sps_context *ctx, const sps_csr *A,
                              double tol);

/* Checks offsets and columns of a host csr (EMATRIX names the first bad row);
 * *sorted: rows rise strictly, so there are no duplicates. */
sps_status spsi_csr_inspect(sps_context *ctx, const sps_csr *A, bool *sorted);
/* A sorted copy of an inspected host csr, duplicates summed, with a note;
 * (*order_p)[p], freed by spsi_free: entry of the copy that entry p of A is
 * part of.  order_p may be NULL. */
sps_status spsi_csr_sorted(sps_context *ctx, const sps_csr *A, sps_csr **B_p,
                           int64_t **order_p);
/* Host csr: the transpose as an own host csr. */
sps_status spsi_csr_transpose(sps_context *ctx, const sps_csr *A,
                              sps_csr **T_p);
/* Host value i of A as double. */
static inline double spsi_csr_value(const sps_csr *A, int64_t i)
{
    return A->dtype == SPS_F64 ? ((const double *)A->val)[i]
                               : (double)((const float *)A->val)[i];
}

#ifdef __cplusplus
}
#endif
#endif
