/* SPDX-License-Identifier: BSD-3-Clause */
/* bidiagonal.h - Golub-Kahan bidiagonalisation of k systems at once, the part
 * that lsqr and lsmr share.  Products work on blocks, scalars belong to
 * columns.
 *
 * With S = [A; d I] (d the option damp) and a diagonal D, the scaling of
 * columns, or D = I:
 *
 *     beta_1 u_1 = [b; 0] - S x_0,    alpha_1 v_1 = D S'u_1,
 *     beta_(i+1) u_(i+1)   = S D v_i - alpha_i u_i,
 *     alpha_(i+1) v_(i+1)  = D S'u_(i+1) - beta_(i+1) v_i.
 *
 * Vectors are not normalised: u is stored with norm nu and v with norm mu, and
 * the next combination divides by these, so that no pass over a block is needed
 * to normalise.  Stored are
 *
 *     U  = nu u, upper part: s->R, nrow x k;  low = its lower part, if d > 0
 *     Z  = mu D^-1 v; its norms give ||S'r|| in the caller's units, with D also
 *     T  = D^2 Z = mu D v, the direction in the units of x; Z itself if D = I.
 *
 * With mu = nu / alpha the next U is S T - U for all columns alike, which the
 * product computes in place; to scale Z for that takes a pass over ncol rows
 * and saves three over nrow rows.  Where both products are made in one pass
 * (s->least.both), that pass applies the factors to T.  nu then changes by the
 * factor beta / alpha in each step, and U is scaled back to norm about 1 when
 * nu is far from 1.
 *
 * A column that the driver has found converged is frozen: its vectors become
 * zero.  Passes of a step over blocks with D = I and d = 0: U 3, Y 2 and Z 6;
 * in one pass: U 2, Z 2 and the slots (matrix/two_way.h). */
#ifndef SPS_BIDIAGONAL_H
#define SPS_BIDIAGONAL_H

#include "solvers/rearrange.h"

typedef struct spsi_bidiagonal {
    sps_block *Z, *scaled, *low;   /* T and the lower part of U, or NULL where
                                      not needed */
    double *alpha, *beta;          /* one for each position in the block, as in
                                      all arrays below */
    double *nu, *mu;               /* norms of U and of D Z = mu v as they are
                                      stored */
    double *normal;                /* ||alpha D^-1 v|| */
    double *c;                     /* factors with which T enters U */
    double *a, *b, *one;           /* coefficients of a linear combination */
} spsi_bidiagonal;

sps_status spsi_bidiagonal_create(sps_linear *s, spsi_bidiagonal *g);
/* Returns T, the direction D v scaled by mu (see above). */
static inline const sps_block *spsi_bidiagonal_direction(
    const spsi_bidiagonal *g)
{
    return g->scaled ? g->scaled : g->Z;
}
/* Starts the bidiagonalisation from s->R, the residual of s->X. */
sps_status spsi_bidiagonal_start(sps_linear *s, spsi_bidiagonal *g);
/* Computes the next beta and u, then the next alpha and v.  s->stop is set if
 * one of them is not finite. */
sps_status spsi_bidiagonal_step(sps_linear *s, spsi_bidiagonal *g);
/* W = T diag(1 / mu) + W diag(c): the next directions, along which X is
 * changed. */
sps_status spsi_bidiagonal_turn(sps_linear *s, spsi_bidiagonal *g,
                                const double *c, sps_block *W);
/* s->X += W diag(c). */
sps_status spsi_bidiagonal_move(sps_linear *s, spsi_bidiagonal *g,
                                const double *c, const sps_block *W);
/* Permutes the columns of the state as the driver has reordered them, and with
 * them the caller's n x k blocks and arrays, given as lists that end in
 * NULL. */
sps_status spsi_bidiagonal_permute(sps_linear *s, spsi_bidiagonal *g,
                                   const int *from, int count,
                                   sps_block *const *blocks,
                                   double *const *arrays);

#endif
