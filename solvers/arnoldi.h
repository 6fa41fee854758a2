/* SPDX-License-Identifier: BSD-3-Clause */
/* arnoldi.h - block Arnoldi with deflation: an orthonormal basis in one wide
 * row-major block, extended by up to k columns a time.
 *
 *     twice: h = V'W, W -= V h;     V_next S = orth(W).
 *
 * orth reveals the rank through the Gram matrix of W with unit columns (SVQB,
 * small.h): directions below rank_tolerance, and columns that are rounding
 * alone, are left out (Robbe and Sadkane, Linear Algebra Appl. 419, 2006).
 * V'W and W - V h are matrix products over all of the basis.
 *
 * The basis may be stored in floats, half the bytes: P is then what was stored,
 * so that A M P = V h + V_next S holds up to the rounding of V_next alone.  A
 * start takes it in doubles once V was given their room and s->floats is
 * false. */
#ifndef SPS_ARNOLDI_H
#define SPS_ARNOLDI_H

#include "least_squares.h"

typedef struct sps_arnoldi {
    sps_block *V;        /* the basis: columns first .. last - 1 */
    int first, last;
    sps_small *h;        /* V'W of the last W: (last - first) x its columns */
    sps_small *S;        /* V_next'W: rank x its columns */
    /* scratch */
    sps_small *again, *G, *T;
    double *before;      /* norms of W before it was made orthogonal */
    double *begun;       /* k: norms of what start was given */
} sps_arnoldi;

/* Room for so many columns, taken in steps of up to s->columns; s->single
 * stays where `single` is and the width allows a basis in floats. */
sps_status spsi_arnoldi_open(sps_solver *s, int columns, bool single,
                             sps_arnoldi *a);
void spsi_arnoldi_close(sps_solver *s, sps_arnoldi *a);
/* The basis is columns first .. last - 1, which the caller has filled; the
 * first block is orth(R) = P, S = P'R. */
sps_status spsi_arnoldi_start(sps_solver *s, sps_arnoldi *a, int first,
                              int last, const sps_block *R, sps_block *P);
/* Appends P, an orthonormal basis of what W (destroyed) adds; P has no column
 * when that is rounding.  s->stop is set when a number is not finite; nothing
 * was appended then. */
sps_status spsi_arnoldi_extend(sps_solver *s, sps_arnoldi *a, sps_block *W,
                               sps_block *P);
/* After a step: norms of the residuals, and s->renew when the cycle is over,
 * full, at the end of an invariant space (rank 0), or where the rounding of a
 * basis in floats would show.  Such a space that does not hold the solution says
 * that A is singular. */
void spsi_arnoldi_look_round(sps_solver *s, const sps_arnoldi *a,
                             const sps_least_squares *q, int rank, bool full);

#endif
