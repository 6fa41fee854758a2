/* SPDX-License-Identifier: BSD-3-Clause */
/* upper.h - triangular systems that may be singular, as least-squares problems
 * leave them. */
#ifndef SPS_UPPER_H
#define SPS_UPPER_H

#include "context.h"

/* x = R^-1 b for the upper triangle of R (n columns, ld apart) and k columns b
 * and x, ldb and ldx apart.  With t = max(16, n) eps: where a pivot is below
 * t max |r_jj|, or x so long that t max |r_jj| max |x_j| > max |b_j|, the
 * shortest of the x that are best when what R does below t ||R|| is left out
 * (LAPACKE_dgelsy) stands beside it, and is taken unless R^-1 b leaves less
 * than half of its
 *     max |b - R x| + eps max |r_jj| max |x_j|.
 * x, apart from b, is NaN where a number of R or of its b is not finite. */
sps_status spsi_small_solve_upper(sps_context *ctx, const double *R, int n,
                                  int ld, int k, const double *b, int ldb,
                                  double *x, int ldx);

#endif
