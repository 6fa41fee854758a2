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
    const int64_t *rowptr;    /* may be NULL on a GPU if rowptr32 is not */
    const int32_t *rowptr32;  /* the same, if nnz < 2^31; NULL on the host */
    const int32_t *col;
    const void *val;
    sps_dtype dtype;
    bool far;                 /* on a GPU: the arrays are in host memory,
                                 because device memory is too small for them,
                                 and kernels read them over the link */
} sps_csr_local;

/* Rows grouped by connected component of the pattern of A + A', only for
 * components with a null vector.  The arrays are in the backend's memory.  The
 * rows of component c are row[start[c]] .. row[start[c+1]-1], ascending. */
typedef struct sps_components {
    sps_context *ctx;
    int64_t count, rows;      /* number of components, and of rows in them */
    int64_t *start;           /* count + 1 */
    int32_t *row;             /* rows */
    int64_t *host_start;      /* copy of start in host memory */
    size_t bytes_start, bytes_row;
} sps_components;

/* Finds the components whose row and column sums are all below tol times the
 * sum of their |a_ij|: the indicator vector of each is a null vector of A and
 * of A'.  If `all`, finds every component of the pattern, whatever its sums. */
sps_status spsi_components_find(sps_context *ctx, const sps_csr *A, double tol,
                                bool all, sps_components **c_p);
void spsi_components_destroy(sps_components **c_p);
/* Returns whether the sum of some row is below tol times the sum of its |a_ij|;
 * otherwise spsi_components_find would find nothing.  Allocates nothing. */
bool spsi_components_possible(sps_context *ctx, const sps_csr *A, double tol);
/* Counts the edges of the graph of A + A', for a sorted square A, that close a
 * loop: none in a forest.  Elimination fills a row with at most that many
 * entries, if leaves are eliminated first. */
sps_status spsi_loops_count(sps_context *ctx, const sps_csr *A, int64_t *count);

/* Returns EINVAL if sizes of the csr are out of range or an array is missing.
 * `call` is the name of the public function, for the text. */
sps_status spsi_csr_complete(sps_context *ctx, const char *call,
                             const sps_csr *A);
/* Checks offsets and columns of a csr in host memory (EMATRIX names the first
 * bad row).  *sorted: whether the columns of every row increase strictly, so
 * that there are no duplicates. */
sps_status spsi_csr_inspect(sps_context *ctx, const sps_csr *A, bool *sorted);
/* Creates a sorted copy of an inspected csr in host memory, with duplicates
 * summed and a note about them.  (*order_p)[p], an array to be freed by
 * spsi_free, is the entry of the copy that contains entry p of A.  order_p may
 * be NULL. */
sps_status spsi_csr_sorted(sps_context *ctx, const sps_csr *A, sps_csr **B_p,
                           int64_t **order_p);
/* Sorts the rows of a csr in host memory in place and sums duplicates, without
 * a note, as sps_csr_check does.  *sorted: they were so before.  The other
 * function adds the note, for a matrix with `summed` duplicates. */
sps_status spsi_csr_order(sps_context *ctx, sps_csr *A, bool *sorted);
void spsi_csr_order_note(sps_context *ctx, int64_t summed);
/* Returns the number of entry (i, j) of a sorted csr in host memory, or -1 if
 * it is not stored. */
int64_t spsi_csr_find(const sps_csr *A, int64_t i, int32_t j);
/* Returns whether entries a and b differ by at most tol times the largest of
 * |a|, |b| and scale.  *worst becomes the maximum of itself and the difference;
 * the difference from a NaN is infinite. */
bool spsi_csr_alike(double a, double b, double scale, double tol,
                    double *worst);
/* Creates the transpose of a sorted csr, in the memory where A is stored. */
sps_status spsi_csr_transpose(sps_context *ctx, const sps_csr *A,
                              sps_csr **T_p);
/* Creates a copy in host memory of a csr on the GPU of ctx, and, the other
 * function, a copy there of a csr in host memory.  Neither is checked; the
 * caller destroys the copy. */
sps_status spsi_csr_download(sps_context *ctx, const sps_csr *A, sps_csr **B_p);
sps_status spsi_csr_upload(sps_context *ctx, const sps_csr *A, sps_csr **B_p);
/* Copies values within the memory of a GPU; both matrices have the same number
 * of entries and the same type. */
sps_status spsi_csr_copy_values(sps_context *ctx, const sps_csr *from,
                                sps_csr *to);
/* Returns value i of a csr in host memory as double. */
static inline double spsi_csr_value(const sps_csr *A, int64_t i)
{
    return A->dtype == SPS_F64 ? ((const double *)A->val)[i]
                               : (double)((const float *)A->val)[i];
}

#ifdef __cplusplus
}
#endif
#endif
