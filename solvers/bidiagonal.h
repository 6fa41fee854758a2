/* SPDX-License-Identifier: BSD-3-Clause */
/* bidiagonal.h - Golub-Kahan bidiagonalisation of k systems at once, the part
 * that lsqr and lsmr share: products of blocks, scalars by column.
 *
 * With S = [A; d I] (d the option damp) and a diagonal D, the scaling of
 * columns, or D = I:
 *
 *     beta_1 u_1 = [b; 0] - S x_0,    alpha_1 v_1 = D S'u_1,
 *     beta_(i+1) u_(i+1)   = S D v_i - alpha_i u_i,
 *     alpha_(i+1) v_(i+1)  = D S'u_(i+1) - beta_(i+1) v_i.
 *
 * Vectors are stored with norms of their own, nu for u and mu for v, which
 * are divided out by the next combination: no pass normalises.  Stored are
 *
 *     U  = nu u, upper part: s->R, nrow x k;  low = its lower part, if d > 0
 *     Z  = mu D^-1 v, whose norms show ||S'r|| as it is in the caller's units,
 *          also with D
 *     T  = D^2 Z = mu D v, the direction in the units of x; Z itself if D = I.
 *
 * With mu = nu / alpha the next U is S T - U for all columns alike, which the
 * product does in place; the scaling of Z for that is a pass over ncol rows
 * where it saves three over nrow.  nu then drifts, by beta / alpha in each
 * step, and U is brought back to norm 1 when that is far away.
 *
 * A column that the driver has found converged is frozen: its vectors become
 * zero.  Passes of a step over blocks, D = I, d = 0: U 3, Y 2 and Z 6. */
#ifndef SPS_BIDIAGONAL_H
#define SPS_BIDIAGONAL_H

#include "solvers/rearrange.h"

typedef struct spsi_bidiagonal {
    sps_block *Z, *scaled, *low;   /* the last two NULL if not needed */
    double *alpha, *beta;          /* by position, as all arrays */
    double *nu, *mu;               /* norms of U and of D Z as stored */
    double *normal;                /* ||alpha D^-1 v|| */
    double *a, *b, *one;           /* coefficients of a combination */
} spsi_bidiagonal;

sps_status spsi_bidiagonal_create(sps_linear *s, spsi_bidiagonal *g);
/* T, above. */
static inline const sps_block *spsi_bidiagonal_direction(
    const spsi_bidiagonal *g)
{
    return g->scaled ? g->scaled : g->Z;
}
/* From s->R, the residual of s->X. */
sps_status spsi_bidiagonal_start(sps_linear *s, spsi_bidiagonal *g);
/* The next beta and u, then the next alpha and v.  s->stop is set if one of
 * them is not finite. */
sps_status spsi_bidiagonal_step(sps_linear *s, spsi_bidiagonal *g);
/* W = T / mu + c W by columns: the next direction in the units of x. */
sps_status spsi_bidiagonal_turn(sps_linear *s, spsi_bidiagonal *g,
                                const double *c, sps_block *W);
/* X += W diag(c). */
sps_status spsi_bidiagonal_move(sps_linear *s, spsi_bidiagonal *g,
                                const double *c, const sps_block *W);
/* Columns were reordered; the n x k blocks and the arrays of the caller, lists
 * that end in NULL, are taken along. */
sps_status spsi_bidiagonal_permute(sps_linear *s, spsi_bidiagonal *g,
                                   const int *from, int count,
                                   sps_block *const *blocks,
                                   double *const *arrays);

#endif
