/* SPDX-License-Identifier: BSD-3-Clause */
/* csr.h - internal forms of sparse matrices: the copy in the backend's memory,
 * and the connected components of a pattern. */
#ifndef SPS_CSR_H
#define SPS_CSR_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The matrix in the memory of the kernels.  On the host it points to the arrays
 * of the csr; on a GPU it is the one upload that all kernels share. */
typedef struct sps_csr_local {
    int64_t nrow, ncol, nnz;
    const int64_t *rowptr;    /* on a GPU it may be NULL if rowptr32 is not */
    const int32_t *rowptr32;  /* the same, if nnz < 2^31; NULL on the host */
    const int32_t *col;
    const void *val;
    sps_dtype dtype;
    bool far;                 /* the arrays of a GPU's operator are in host
                                 memory, since device memory has no room for
                                 them; kernels read them over the link */
} sps_csr_local;

/* Rows grouped by connected component of the pattern of A + A', for components
 * with a null vector only.  Arrays in the backend's memory; rows of component
 * c: row[start[c]] .. row[start[c+1]-1], ascending. */
typedef struct sps_components {
    sps_context *ctx;
    int64_t count, rows;      /* number of components, of rows in them */
    int64_t *start;           /* count + 1 */
    int32_t *row;             /* rows */
    int64_t *host_start;      /* copy of start in host memory */
    size_t bytes_start, bytes_row;
} sps_components;

/* Components whose row and column sums are all below tol times the sum of their
 * |a_ij|: the indicator of each is a null vector of A and of A'.  all = true:
 * every component of the pattern, whatever its sums. */
sps_status spsi_components_find(sps_context *ctx, const sps_csr *A, double tol,
                                bool all, sps_components **c_p);
void spsi_components_destroy(sps_components **c_p);
/* Whether the sum of some row is below tol times the sum of its |a_ij|; if not,
 * spsi_components_find would find nothing.  Allocates nothing. */
bool spsi_components_possible(sps_context *ctx, const sps_csr *A, double tol);

/* EINVAL if sizes of the csr are out of range or an array is missing.  call:
 * the public function, for the text. */
sps_status spsi_csr_complete(sps_context *ctx, const char *call,
                             const sps_csr *A);
/* Checks offsets and columns of a host csr (EMATRIX names the first bad row);
 * *sorted: columns of each row ascend strictly, so there are no duplicates. */
sps_status spsi_csr_inspect(sps_context *ctx, const sps_csr *A, bool *sorted);
/* A sorted copy of an inspected host csr, duplicates summed, with a note.
 * (*order_p)[p], to be freed by spsi_free: the entry of the copy that contains
 * entry p of A.  order_p may be NULL. */
sps_status spsi_csr_sorted(sps_context *ctx, const sps_csr *A, sps_csr **B_p,
                           int64_t **order_p);
/* The number of entry (i, j) of a sorted host csr, -1 if it is not stored. */
int64_t spsi_csr_find(const sps_csr *A, int64_t i, int32_t j);
/* Whether entries a and b differ by at most tol times the largest of |a|, |b|
 * and scale.  *worst becomes the maximum of itself and the difference, which is
 * infinite from a NaN. */
bool spsi_csr_alike(double a, double b, double scale, double tol,
                    double *worst);
/* The transpose of a sorted csr as a new csr in its place. */
sps_status spsi_csr_transpose(sps_context *ctx, const sps_csr *A,
                              sps_csr **T_p);
/* A copy in host memory of a csr on the GPU of ctx, and a copy there of a host
 * csr, neither of them checked; to be destroyed. */
sps_status spsi_csr_download(sps_context *ctx, const sps_csr *A, sps_csr **B_p);
sps_status spsi_csr_upload(sps_context *ctx, const sps_csr *A, sps_csr **B_p);
/* Copies values within the memory of a GPU; equal entries and types. */
sps_status spsi_csr_copy_values(sps_context *ctx, const sps_csr *from,
                                sps_csr *to);
/* Value i of a host csr as double. */
static inline double spsi_csr_value(const sps_csr *A, int64_t i)
{
    return A->dtype == SPS_F64 ? ((const double *)A->val)[i]
                               : (double)((const float *)A->val)[i];
}

#ifdef __cplusplus
}
#endif
#endif
