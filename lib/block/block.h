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

#define SPS_BLOCK_MAX 1024 /* largest number of columns of a block */

struct sps_block {
    sps_context *ctx;
    int64_t n;
    int k;
    int64_t ld;
    sps_dtype dtype;
    void *data;      /* in host or device memory, by the context's place */
    size_t bytes;    /* allocated for it; 0 if the memory is borrowed or it
                        is a view */
    int width;       /* number of columns allocated; k may be smaller */
};

/* Sets the number of leading columns in use, 0 <= k <= width: dropping columns
 * costs nothing; memory and ld are unchanged. */
void spsi_block_narrow(sps_block *X, int k);
/* Makes *view, a struct of the caller, a view of columns first .. first+k-1 of
 * X. */
void spsi_block_view(const sps_block *X, int first, int k, sps_block *view);
/* Creates a zeroed block (sps_block_create) with elements of type dtype. */
sps_status spsi_block_create(sps_context *ctx, int64_t n, int k,
                             sps_dtype dtype, sps_block **X_p);
/* Returns the ld of a block of k columns that the library allocates. */
int64_t spsi_block_ld(int k);
/* Changes the type of X to dtype and clears it, in the same memory; does
 * nothing if X has that type.  The memory must suffice: a block created in
 * double precision can hold either type; one created in single precision is
 * enlarged by spsi_block_widen (single.h). */
sps_status spsi_block_retype(sps_block *X, sps_dtype dtype);

/* Allocates the backend's scratch memory for operations on blocks of up to n x
 * k, so that none of them allocates.  Solvers do this themselves. */
sps_status spsi_reserve(sps_context *ctx, int64_t n, int k);

/* Block operations check shapes by assert and call the backend.  Unless
 * single.h says otherwise, all blocks hold doubles, and all blocks of a call
 * have the same number of rows n.  A result may overwrite an operand only where
 * that is stated.  Results in a "host array" are complete on return. */

sps_status spsi_fill(sps_block *X, double value);
sps_status spsi_copy(const sps_block *X, sps_block *Y);        /* Y = X */
/* Y(:, j) = X(:, index[j]) for j < Y->k; X and Y must differ. */
sps_status spsi_gather(const sps_block *X, const int *index, sps_block *Y);
/* Y(:, index[j]) = X(:, j) for j < X->k; X and Y must differ, and index has no
 * repeats. */
sps_status spsi_scatter(const sps_block *X, const int *index, sps_block *Y);
/* Y(i, :) = X(index[i], :) for i < Y->n; X and Y must differ. */
sps_status spsi_take_rows(const sps_block *X, const int32_t *index,
                          sps_block *Y);
/* Y(index[i], :) = X(i, :) for i < X->n; X and Y must differ, and index has no
 * repeats. */
sps_status spsi_put_rows(const sps_block *X, const int32_t *index,
                         sps_block *Y);
/* Y = a X + b Y; Y is not read if b = 0. */
sps_status spsi_axpby(double a, const sps_block *X, double b, sps_block *Y);
/* Y_j = a[j] X_j + b[j] Y_j for each column; a and b are host arrays.  If b is
 * NULL, Y is not read and Y_j = a[j] X_j.  Y may be X. */
sps_status spsi_axpby_cols(const double *a, const sps_block *X,
                           const double *b, sps_block *Y);
/* Y = diag(d) X, where d is n x 1; Y may be X. */
sps_status spsi_scale_rows(const sps_block *d, const sps_block *X,
                           sps_block *Y);
/* out[j] = X_j' Y_j, summed over processes, in a host array. */
sps_status spsi_dots(const sps_block *X, const sps_block *Y, double *out);
/* out[j] = ||X_j|| in a host array, without over- or underflow of the
 * squares. */
sps_status spsi_norms(const sps_block *X, double *out);
/* out[j] = max_i |x_ij| in a host array, or NaN if the column has one.  With
 * several processes it is the sum of their maxima, an upper bound. */
sps_status spsi_largest(const sps_block *X, double *out);
/* C = X' Y, of shape X->k x Y->k.  Small matrices, here and below, are in host
 * memory or in the memory of the blocks (small.h). */
sps_status spsi_gram(const sps_block *X, const sps_block *Y, sps_small *C);
/* Y = a X C + b Y, where C is X->k x Y->k; Y is not read if b = 0.  Y may be X
 * if C is square, or a view of leading columns of X (each row is read before it
 * is written). */
sps_status spsi_mul_small(double a, const sps_block *X, const sps_small *C,
                          double b, sps_block *Y);

sps_status spsi_small_reduce(sps_small *C);

/* Fused operations take one pass over memory where the backend has them;
 * otherwise they are composed of the operations above, with the same result up
 * to rounding. */

/* G = P'Q and C = P'R, reading three blocks. */
sps_status spsi_gram_pair(const sps_block *P, const sps_block *Q,
                          const sps_block *R, sps_small *G, sps_small *C);
/* R -= Q a, reading two blocks and writing one.  Q is n x r, a is r x k and R
 * is n x k.  If S is 1 x k it receives the squared norms of the columns of the
 * new R; if it is k x k, R'R. */
sps_status spsi_subtract(const sps_block *Q, const sps_small *a, sps_block *R,
                         sps_small *S);
/* R_j -= a[j] Q_j and norm2[j] = ||R_j||^2 for each column j; a and norm2 are
 * host arrays. */
sps_status spsi_subtract_cols(const sps_block *Q, const double *a,
                              sps_block *R, double *norm2);
/* P = Z + P b, and then G = P'P unless G is NULL, reading two blocks and
 * writing one.  On entry P has r columns, and b is r x k with k = Z->k <=
 * P->width; on return P has k columns. */
sps_status spsi_combine(const sps_block *Z, const sps_small *b, sps_block *P,
                        sps_small *G);
/* Z += P b, and then G = Z'Z unless G is NULL, for a Z and a P in single
 * precision, which is read only. */
sps_status spsi_combine_single(sps_block *Z, const sps_small *b,
                               const sps_block *P, sps_small *G);

#ifdef __cplusplus
}
#endif
#endif
