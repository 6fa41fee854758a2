/* SPDX-License-Identifier: BSD-3-Clause */
/* basis.h - a stack of n x k blocks, the Krylov bases of k systems side by
 * side: column c of block l is vector l of system c.
 *
 * The blocks lie one behind the other, each like a block of its own, so that
 * sparse products read and write them as they are; the operations below
 * stream through all of them row by row. */
#ifndef SPS_BASIS_H
#define SPS_BASIS_H

#include "block.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_basis sps_basis;

struct sps_basis {
    sps_block *all;      /* count * rows x width */
    int64_t n, rows;     /* rows of a block, and with the gap behind it */
    int k, count;        /* columns in use, blocks there are */
};

/* count zeroed blocks n x k, and scratch for the operations on them.  dtype:
 * of the stack alone; in floats it moves half the bytes, and the operations
 * sum in doubles all the same. */
sps_status spsi_basis_create(sps_context *ctx, int64_t n, int k, int count,
                             sps_dtype dtype, sps_basis **V_p);
void spsi_basis_destroy(sps_basis **V_p);
/* How many leading columns take part. */
void spsi_basis_narrow(sps_basis *V, int k);
/* Block l as a view. */
void spsi_basis_block(const sps_basis *V, int l, sps_block *view);

/* The blocks first, first + 1, ... as a stack of their own, on the caller's
 * stack; all holds what view points to. */
void spsi_basis_view(const sps_basis *V, int first, sps_block *all,
                     sps_basis *view);

/* H(l, c) = column c of block l times column c of W, l < count: count + 1
 * reads of a block.  H: count x k. */
sps_status spsi_basis_dots(const sps_basis *V, int count, const sps_block *W,
                           sps_small *H);
/* W = a sum over l < count of V_l diag(H(l, :)), plus W if add; norm2[c] = sum
 * of squares of column c of W (host array, or NULL).  count reads, and a read
 * and a write of W. */
sps_status spsi_basis_update(double a, const sps_basis *V, int count,
                             const sps_small *H, bool add, sps_block *W,
                             double *norm2);

#ifdef __cplusplus
}
#endif
#endif
