/* SPDX-License-Identifier: BSD-3-Clause */
/* basis.h - a stack of n x k blocks: the Krylov bases of k systems at once;
 * column c of block l is vector l of system c.
 *
 * The blocks are contiguous, each laid out as a single block, so that sparse
 * products read and write them directly; the operations below process all of
 * them row by row. */
#ifndef SPS_BASIS_H
#define SPS_BASIS_H

#include "block/block.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_basis sps_basis;

struct sps_basis {
    sps_block *all;      /* count * rows x width */
    int64_t n, rows;     /* rows of a block; the same with padding */
    int k, count;        /* columns in use, number of blocks */
    bool square;         /* set by spsi_basis_square: spsi_basis_update
                            multiplies by matrices */
    sps_small *part;     /* of square stacks: a copy of one matrix of H */
};

/* Creates count zeroed blocks n x k in the memory of the backend, and scratch
 * for the operations on them.  dtype applies to the stack only; single
 * precision halves its traffic, and sums are formed in double precision all the
 * same. */
sps_status spsi_basis_create(sps_context *ctx, int64_t n, int k, int count,
                             sps_dtype dtype, sps_basis **V_p);
/* From now on spsi_basis_update multiplies each block by a k x k matrix. */
sps_status spsi_basis_square(sps_basis *V);
void spsi_basis_destroy(sps_basis **V_p);
/* Sets the number of columns in use of every block, the leading ones. */
void spsi_basis_narrow(sps_basis *V, int k);
/* Makes *view a view of block l. */
void spsi_basis_block(const sps_basis *V, int l, sps_block *view);

/* Makes *view the stack of the blocks first, first + 1, ... of V, in the memory
 * of V.  view->all points to *all; the caller provides both structs. */
void spsi_basis_view(const sps_basis *V, int first, sps_block *all,
                     sps_basis *view);

/* H(l, c) = V_l(:, c)' W(:, c) for l < count and all columns c; H is count x k.
 * Reads count + 1 blocks. */
sps_status spsi_basis_dots(const sps_basis *V, int count, const sps_block *W,
                           sps_small *H);
/* W = a sum over l < count of V_l diag(H(l, :)), plus W if `add`.  norm2, a
 * host array or NULL, receives the squared norms of the columns of W.  Reads
 * `count` blocks, and reads and writes W.
 *
 * After spsi_basis_square (V of floats with 2 to SPS_SINGLE_WIDEST columns, W
 * of doubles, norm2 NULL): W = a sum of V_l H_l, plus W if `add`, where H_l is
 * the k x k matrix in rows l k to l k + k - 1 of H; further rows of H are not
 * read. */
sps_status spsi_basis_update(double a, const sps_basis *V, int count,
                             const sps_small *H, bool add, sps_block *W,
                             double *norm2);

#ifdef __cplusplus
}
#endif
#endif
