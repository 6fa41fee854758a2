/* SPDX-License-Identifier: BSD-3-Clause */
/* upper.h - possibly singular triangular systems, from least-squares
 * problems. */
#ifndef SPS_UPPER_H
#define SPS_UPPER_H

#include "core/context.h"

/* x = R^-1 b for the upper triangle of R (n columns, ld apart) and k columns b
 * and x, ldb and ldx apart.  With t = max(16, n) eps: if a pivot is below t max
 * |r_jj|, or x so long that t max |r_jj| max |x_j| > max |b_j|, then the
 * shortest least-squares solution with R truncated at t ||R|| (LAPACKE_dgelsy)
 * is computed as well, and taken unless R^-1 b has less than half of its
 *     max |b - R x| + eps max |r_jj| max |x_j|.
 * x is NaN where R or its b is not finite; b and x must not overlap. */
sps_status spsi_small_solve_upper(sps_context *ctx, const double *R, int n,
                                  int ld, int k, const double *b, int ldb,
                                  double *x, int ldx);

/* Does the same for an R and b that were built step by step: columns with the
 * same step[j] belong together (each column is a step if `step` is NULL), and
 * rest[c] is the residual of column c of b that no x reduces.  Where eps max
 * |r_jj| ||x|| is not negligible relative to rest, x uses the number of steps
 * that minimises ||b - R x|| + eps max |r_jj| ||x||, and is zero for the
 * others.  `room` is scratch memory of 2 n doubles. */
sps_status spsi_small_solve_steps(sps_context *ctx, const double *R, int n,
                                  int ld, const int *step, const double *rest,
                                  int k, const double *b, int ldb, double *x,
                                  int ldx, double *room);

#endif
