/* SPDX-License-Identifier: BSD-3-Clause */
/* arnoldi.h - block Arnoldi with deflation: an orthonormal basis in one wide
 * row-major block, extended by up to k columns at a time.
 *
 *     twice: h = V'W, W -= V h;     V_next S = orth(W).
 *
 * orth determines the rank from the Gram matrix of W, scaled to unit columns
 * (SVQB, small.h): directions below rank_tolerance, and columns at rounding
 * level, are dropped (Robbe and Sadkane, Linear Algebra Appl. 419, 2006).  V'W
 * and W - V h are matrix products over the whole basis.
 *
 * The basis may be stored in single precision, in half the bytes.  The product
 * W = A M P then uses the stored (rounded) last block P of the basis, so that A
 * M P = V h + V_next S holds up to the rounding of V_next only.
 * spsi_arnoldi_start sets the precision of the basis by s->method.floats; V
 * must have been reallocated before it changes to double precision. */
#ifndef SPS_ARNOLDI_H
#define SPS_ARNOLDI_H

#include "solvers/small_least_squares.h"

typedef struct sps_arnoldi {
    sps_block *V;        /* the basis is its columns first .. last - 1 */
    int first, last;
    sps_small *h;        /* V'W of the last W: (last - first) x its columns */
    sps_small *S;        /* V_next'W: rank x its columns */
    /* scratch memory */
    sps_small *again, *G, *T;
    double *before;      /* column norms of W before orthogonalisation */
    double *begun;       /* k elements: column norms of R at the start of the
                            cycle */
} sps_arnoldi;

/* Allocates a basis of `columns` columns, which is extended by up to s->columns
 * at a time.  The basis is in single precision, and s->method.single is set, if
 * `single` is true and single precision supports s->columns right-hand
 * sides. */
sps_status spsi_arnoldi_open(sps_linear *s, int columns, bool single,
                             sps_arnoldi *a);
/* Starts a cycle.  Columns first .. last - 1 of V, filled by the caller, are
 * the beginning of the basis; P, an orthonormal basis of the span of R
 * orthogonal to them, is appended, and S = P'R. */
sps_status spsi_arnoldi_start(sps_linear *s, sps_arnoldi *a, int first,
                              int last, const sps_block *R, sps_block *P);
/* Appends P, an orthonormal basis of the new directions of W, and destroys W. P
 * has no columns if the new directions are only rounding errors.  If a value is
 * not finite, s->stop is set and nothing is appended. */
sps_status spsi_arnoldi_extend(sps_linear *s, sps_arnoldi *a, sps_block *W,
                               sps_block *P);
/* Called after a step: sets the residual norms of the columns, and sets
 * s->renew if the cycle is over because it is full, the space is invariant
 * (rank 0), or the rounding of a basis in single precision would affect the
 * residual.  If an invariant space does not contain the solution, A is
 * singular. */
void spsi_arnoldi_finish_step(sps_linear *s, const sps_arnoldi *a,
                              const sps_least_squares *q, int rank, bool full);

#endif
