/* SPDX-License-Identifier: BSD-3-Clause */
/* block.h - the n x k handle, and block operations as called by solvers.
 *
 * Layout: row-major; the k numbers of a row are contiguous, rows are ld apart.
 * Blocks allocated by the library: ld = 1, 2, 4, 8, 12 for k up to that; 20,
 * 36, 52 for up to 4 columns beyond 16, 32, 48; 24 for k = 21 to 24; otherwise
 * the next multiple of 16 (a cache line); 256-byte aligned.  Padding affects no
 * result; a backend may write it in blocks of full width.
 *
 *        j = 0   1  ...  k-1 | padding to ld
 *   i=0  [ x00 x01 ...       | .. ]
 *   i=1  [ x10 ...           | .. ]
 */
#ifndef SPS_BLOCK_H
#define SPS_BLOCK_H

#include "block/small.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_BLOCK_MAX 1024 /* columns of a block, at most */

struct sps_block {
    sps_context *ctx;
    int64_t n;
    int k;
    int64_t ld;
    sps_dtype dtype;
    void *data;      /* host or device memory, as the context's place */
    size_t bytes;    /* owned; 0: borrowed or a view */
    int width;       /* columns allocated; k may be lower */
};

/* Sets the number of leading columns in use, 0 <= k <= width: dropping columns
 * costs nothing; memory and ld are unchanged. */
void spsi_block_narrow(sps_block *X, int k);
/* *view, in the caller's memory: columns first .. first+k-1 of X. */
void spsi_block_view(const sps_block *X, int first, int k, sps_block *view);
/* As sps_block_create, with numbers of dtype. */
sps_status spsi_block_create(sps_context *ctx, int64_t n, int k,
                             sps_dtype dtype, sps_block **X_p);
/* ld of a block of k columns that the library allocates. */
int64_t spsi_block_ld(int k);
/* Changes X to dtype and clears it, in the same memory; nothing if X has that
 * type.  The memory must suffice: a block created in double precision may hold
 * either; one created in single precision is enlarged by spsi_block_widen
 * (single.h). */
sps_status spsi_block_retype(sps_block *X, sps_dtype dtype);

/* Allocates the backend's scratch for operations on blocks up to n x k, so that
 * none of them allocates.  For computations outside a solver. */
sps_status spsi_reserve(sps_context *ctx, int64_t n, int k);

/* Block operations: shapes checked by assert, otherwise passed to the backend.
 * All blocks are double and have the same n.  In-place use is allowed only
 * where stated.  "host array" results are complete on return. */

sps_status spsi_fill(sps_block *X, double value);
sps_status spsi_copy(const sps_block *X, sps_block *Y);        /* Y = X */
/* Y(:, j) = X(:, index[j]), j < Y->k; X != Y. */
sps_status spsi_gather(const sps_block *X, const int *index, sps_block *Y);
/* Y(:, index[j]) = X(:, j), j < X->k; X != Y; index without repeats. */
sps_status spsi_scatter(const sps_block *X, const int *index, sps_block *Y);
/* Y(i, :) = X(index[i], :), i < Y->n; X != Y. */
sps_status spsi_take_rows(const sps_block *X, const int32_t *index,
                          sps_block *Y);
/* Y(index[i], :) = X(i, :), i < X->n; X != Y; index without repeats. */
sps_status spsi_put_rows(const sps_block *X, const int32_t *index,
                         sps_block *Y);
/* Y = a X + b Y; b = 0 does not read Y. */
sps_status spsi_axpby(double a, const sps_block *X, double b, sps_block *Y);
/* Y_j = a[j] X_j + b[j] Y_j (host arrays); b == NULL means zero, not read; Y
 * may be X. */
sps_status spsi_axpby_cols(const double *a, const sps_block *X,
                           const double *b, sps_block *Y);
/* Y = diag(d) X; d is n x 1; Y may be X. */
sps_status spsi_scale_rows(const sps_block *d, const sps_block *X,
                           sps_block *Y);
/* out[j] = X_j' Y_j, host array; reduced over processes. */
sps_status spsi_dots(const sps_block *X, const sps_block *Y, double *out);
/* out[j] = ||X_j||, host array, safe against over- and underflow. */
sps_status spsi_norms(const sps_block *X, double *out);
/* out[j] = max_i |x_ij|, NaN if there is one; for several processes the sum of
 * their maxima.  Host array. */
sps_status spsi_largest(const sps_block *X, double *out);
/* C = X' Y (X->k x Y->k).  Small matrices, here and below, are in host memory
 * or in the memory of the blocks (small.h). */
sps_status spsi_gram(const sps_block *X, const sps_block *Y, sps_small *C);
/* Y = a X C + b Y; C is X->k x Y->k; b = 0 does not read Y; Y may be X if C is
 * square, or X narrowed (each row is read before it is written). */
sps_status spsi_mul_small(double a, const sps_block *X, const sps_small *C,
                          double b, sps_block *Y);

sps_status spsi_small_reduce(sps_small *C);

/* Fused operations: one pass over memory where the backend has them, otherwise
 * composed of the above.  The results agree up to rounding. */

/* G = P'Q, C = P'R: 3 reads. */
sps_status spsi_gram_pair(const sps_block *P, const sps_block *Q,
                          const sps_block *R, sps_small *G, sps_small *C);
/* R -= Q a: 2 reads, 1 write.  Q is n x r, a is r x k, R is n x k.  The shape
 * of S selects what is computed of the new R: 1 x k the squared norms of its
 * columns, k x k R'R. */
sps_status spsi_subtract(const sps_block *Q, const sps_small *a, sps_block *R,
                         sps_small *S);
/* The same with scalars by column, a[j] for column j, norm2[j] = ||R_j||^2
 * (host arrays). */
sps_status spsi_subtract_cols(const sps_block *Q, const double *a,
                              sps_block *R, double *norm2);
/* P = Z + P b, then G = P'P (G may be NULL): 2 reads, 1 write.  P has r columns
 * on entry (b is r x k) and Z->k <= P->width on return. */
sps_status spsi_combine(const sps_block *Z, const sps_small *b, sps_block *P,
                        sps_small *G);

#ifdef __cplusplus
}
#endif
#endif
