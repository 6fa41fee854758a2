/* SPDX-License-Identifier: BSD-3-Clause */
/* arnoldi.h - block Arnoldi with deflation: an orthonormal basis in one wide
 * row-major block, extended by up to k columns at a time.
 *
 *     twice: h = V'W, W -= V h;     V_next S = orth(W).
 *
 * orth determines the rank from the Gram matrix of W with unit columns (SVQB,
 * small.h): directions below rank_tolerance, and columns at rounding level, are
 * dropped (Robbe and Sadkane, Linear Algebra Appl. 419, 2006).  V'W and W - V h
 * are matrix products over the whole basis.
 *
 * The basis may be stored in single precision, half the bytes.  The product
 * W = A M P then uses the stored (rounded) last block P of the basis, so that
 * A M P = V h + V_next S holds up to the rounding of V_next only.
 * spsi_arnoldi_start changes the basis to double precision when V has been
 * reallocated for it and s->method.floats is false. */
#ifndef SPS_ARNOLDI_H
#define SPS_ARNOLDI_H

#include "solvers/small_least_squares.h"

typedef struct sps_arnoldi {
    sps_block *V;        /* the basis: columns first .. last - 1 */
    int first, last;
    sps_small *h;        /* V'W of the last W: (last - first) x its columns */
    sps_small *S;        /* V_next'W: rank x its columns */
    /* scratch memory */
    sps_small *again, *G, *T;
    double *before;      /* norms of W before orthogonalisation */
    double *begun;       /* k: norms at the start of the cycle */
} sps_arnoldi;

/* Allocates a basis of `columns` columns, to be extended by up to s->columns at
 * a time.  It is in single precision, and s->method.single is set, if `single`
 * is true and s->columns suits such blocks. */
sps_status spsi_arnoldi_open(sps_linear *s, int columns, bool single,
                             sps_arnoldi *a);
/* Starts a cycle.  Columns first .. last - 1 of V, filled by the caller, are
 * the beginning of the basis; P, an orthonormal basis of the span of R
 * orthogonal to them, is appended, and S = P'R. */
sps_status spsi_arnoldi_start(sps_linear *s, sps_arnoldi *a, int first,
                              int last, const sps_block *R, sps_block *P);
/* Appends P, an orthonormal basis of the new directions of W (destroyed); P has
 * no columns if these are rounding errors.  s->stop is set if a number is not
 * finite; nothing is appended then. */
sps_status spsi_arnoldi_extend(sps_linear *s, sps_arnoldi *a, sps_block *W,
                               sps_block *P);
/* After a step: sets the residual norms, and s->renew if the cycle is over: it
 * is full, the space is invariant (rank 0), or the rounding of a basis in
 * single precision would affect the residual.  If an invariant space does not
 * contain the solution, A is singular. */
void spsi_arnoldi_finish_step(sps_linear *s, const sps_arnoldi *a,
                              const sps_least_squares *q, int rank, bool full);

#endif
