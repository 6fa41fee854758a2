/* SPDX-License-Identifier: BSD-3-Clause */
/* block.h - the n x k handle, and block operations as solvers call them.
 *
 * Layout: row-major; the k numbers of a row lie side by side, rows are ld
 * apart.  Own blocks: ld = 1, 2, 4, 8, 12 for k up to that, 20, 36, 52 for the
 * 4 behind a sixteen below, 24 for 21 to 24, else whole ones (lines); 256-byte
 * aligned.  Padding reaches no result; a backend may write that of own blocks
 * at full width.
 *
 *        j = 0   1  ...  k-1 | padding to ld
 *   i=0  [ x00 x01 ...       | .. ]
 *   i=1  [ x10 ...           | .. ]
 */
#ifndef SPS_BLOCK_H
#define SPS_BLOCK_H

#include "small.h"

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
    void *data;      /* in the context's place */
    size_t bytes;    /* owned; 0: borrowed or a view */
    int width;       /* columns that were allocated: k may be set below it */
};

/* Sets how many leading columns take part, 0 <= k <= width: dropping columns
 * costs nothing, the memory and ld stay. */
void spsi_block_narrow(sps_block *X, int k);
/* A view of columns first .. first+k-1 of X in *view, on the caller's stack. */
void spsi_block_view(const sps_block *X, int first, int k, sps_block *view);
/* As sps_block_create, for any dtype. */
sps_status spsi_block_create(sps_context *ctx, int64_t n, int k,
                             sps_dtype dtype, sps_block **X_p);
/* ld of an own block of k columns. */
int64_t spsi_block_ld(int k);
/* The same memory, cleared, as a block of dtype; nothing where it is one.  Its
 * memory must hold that: doubles, or floats in the first part of it; what was
 * created in floats gets the room of doubles by spsi_block_widen (single.h). */
sps_status spsi_block_retype(sps_block *X, sps_dtype dtype);

/* Takes the scratch of the place for operations on blocks up to n x k, so that
 * none of them allocates.  For whoever computes outside a solver. */
sps_status spsi_reserve(sps_context *ctx, int64_t n, int k);

/* Block operations: thin, checked by assert, straight to the backend.  All
 * blocks double, of the same n.  In-place use is allowed exactly where said.
 * "host array" results are complete on return. */

sps_status spsi_fill(sps_block *X, double value);
sps_status spsi_copy(const sps_block *X, sps_block *Y);        /* Y = X */
/* Y(:, j) = X(:, index[j]), j < Y->k; X != Y. */
sps_status spsi_gather(const sps_block *X, const int *index, sps_block *Y);
/* Y(:, index[j]) = X(:, j), j < X->k; X != Y; index without repeats. */
sps_status spsi_scatter(const sps_block *X, const int *index, sps_block *Y);
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
/* C = X' Y (X->k x Y->k).  Small matrices, here and below, are on the host or
 * near (small.h). */
sps_status spsi_gram(const sps_block *X, const sps_block *Y, sps_small *C);
/* Y = a X C + b Y; C is X->k x Y->k; b = 0 does not read Y; Y may be X when C
 * is square or Y is X narrowed (each row is read before it is written). */
sps_status spsi_mul_small(double a, const sps_block *X, const sps_small *C,
                          double b, sps_block *Y);
/* X = X C^-1, C upper triangular (what is below is not read): substitution,
 * eight columns at a time, with the inverses of the 8 x 8 blocks of the
 * diagonal; a zero there divides as doubles do.  A NaN in X reaches only its
 * row, there the columns of its group of 8 and those behind it. */
sps_status spsi_solve_small(const sps_small *C, sps_block *X);

/* Sums over processes: every dot product and Gram matrix passes here. */
sps_status spsi_reduce(sps_context *ctx, double *values, int count);
sps_status spsi_small_reduce(sps_small *C);

/* Fused forms: one pass over memory where the backend has them, composed from
 * the above where not.  Same result up to rounding. */

/* G = P'Q, C = P'R: 3 reads. */
sps_status spsi_gram_pair(const sps_block *P, const sps_block *Q,
                          const sps_block *R, sps_small *G, sps_small *C);
/* X += P a, R -= Q a: 4 reads, 2 writes.  P, Q are n x r, a is r x k, X and R
 * are n x k.  S says by its shape what is wanted of the new R: 1 x k the
 * squares of the norms of its columns, k x k R'R. */
sps_status spsi_update_pair(const sps_block *P, const sps_block *Q,
                            const sps_small *a, sps_block *X, sps_block *R,
                            sps_small *S);
/* The same with own scalars, a[j] for column j, norm2[j] = ||R_j||^2 (host
 * arrays). */
sps_status spsi_update_pair_cols(const sps_block *P, const sps_block *Q,
                                 const double *a, sps_block *X, sps_block *R,
                                 double *norm2);
/* P = Z + P b, then G = P'P (G may be NULL): 2 reads, 1 write.  P enters with
 * r columns (b is r x k) and leaves with Z->k <= P->width. */
sps_status spsi_combine(const sps_block *Z, const sps_small *b, sps_block *P,
                        sps_small *G);

#ifdef __cplusplus
}
#endif
#endif
