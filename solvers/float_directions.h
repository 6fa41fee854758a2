/* SPDX-License-Identifier: BSD-3-Clause */
/* float_directions.h - search directions P of block CG in single precision,
 * where M returns that (multigrid).
 *
 * P is rounded to single precision and kept, and X += P a is postponed: when X
 * is needed, the sum over up to SPS_FLOATS_KEPT steps is formed in one pass,
 * from half the bytes.  This is done as long as residuals fall.  Q is A times
 * the rounded P, so R is the residual of X up to rounding in double precision,
 * whatever P is.  The columns of P are not normalised: the step does not depend
 * on their lengths.  P is widened to double precision only where an operation
 * needs that: a product whose kernel does not take floats, a new basis, the
 * first step after a sum, whose P would share memory with the next one. */
#ifndef SPS_FLOAT_DIRECTIONS_H
#define SPS_FLOAT_DIRECTIONS_H

#include "driver/linear.h"

enum { SPS_FLOATS_KEPT = 12 };   /* largest number of directions kept */

typedef struct sps_float_directions {
    sps_basis *kept;    /* P of past steps in single precision, followed by the
                           P of this step; NULL if there is no memory for it or
                           it is not used */
    sps_small *H;       /* the coefficients a of these steps, stacked by rows */
    int count;          /* number of kept steps that have not been added to X */
    bool zero;          /* X is 0 */
    bool on;            /* P is kept: from the start until a residual rises */
    sps_block single;   /* if so, P in single precision, in `kept` */
    bool behind;        /* if so, the block of P in double precision does not
                           have its values */
} sps_float_directions;

/* Allocates the directions to be kept.  Without device memory for them X is
 * updated by each step. */
sps_status spsi_floats_set_up(sps_linear *s, sps_float_directions *d);
/* Sets d->on: whether P is kept from this start on. */
void spsi_floats_open(const sps_linear *s, sps_float_directions *d);
/* P = M R and S = P'P. */
sps_status spsi_floats_start(sps_linear *s, sps_float_directions *d,
                             sps_small *S);
/* Sets *view to the single-precision storage of this step's P, r columns. */
void spsi_floats_view(const sps_linear *s, sps_float_directions *d, int r,
                      sps_block *view);
/* The same for the step after this one; count must be below SPS_FLOATS_KEPT -
 * 1, so that there is no sum between them. */
void spsi_floats_next(const sps_linear *s, sps_float_directions *d, int r,
                      sps_block *view);
/* Gives the block P, in double precision, the values of d->single. */
sps_status spsi_floats_widen(sps_float_directions *d, sps_block *P);
/* Rounds a new basis of P to single precision. */
sps_status spsi_floats_round(const sps_linear *s, sps_float_directions *d,
                             sps_block *P);
/* Q = A P, for P in either precision. */
sps_status spsi_floats_multiply(sps_linear *s, sps_float_directions *d,
                                sps_block *P, sps_block *Q);
/* P = Z + P b and S = P'P, for Z in a view. */
sps_status spsi_floats_add(sps_linear *s, sps_float_directions *d,
                           sps_block *Z, const sps_small *b,
                           sps_block *P, sps_small *S);
/* Records the coefficients a of the step X += P a, whose P is kept already:
 * spsi_floats_settle adds it to X later. */
sps_status spsi_floats_put_off(sps_linear *s, sps_float_directions *d,
                               const sps_small *a);
/* Adds to X the sum of P a over the steps that have not been added. */
sps_status spsi_floats_settle(sps_linear *s, sps_float_directions *d);
/* Called when a residual rises and X must be stored before the step.  The P of
 * this step is kept after the steps of the sum that has been added, not where
 * the next sum begins.  Until the next start each step updates X, since more
 * residuals will rise. */
sps_status spsi_floats_end(sps_linear *s, sps_float_directions *d,
                           sps_block *P);

#endif
