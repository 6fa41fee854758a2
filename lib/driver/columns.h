/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.h - the right-hand sides during a solve: scaling, order, thresholds,
 * and the set of active columns. */
#ifndef SPS_COLUMNS_H
#define SPS_COLUMNS_H

#include "driver/linear.h"

/* rhs.c: scales the right-hand sides by powers of two that bring ||b|| near 1;
 * all norms and thresholds of a solve are scaled so.  Computes the norms of B,
 * and projects the null space out of it. */
sps_status spsi_rhs_open(sps_linear *s, const sps_block *B);
/* The power of two, within 2^-1000 .. 2^1000, that scales norm into [1/2, 1) or
 * nearest to it; 1 if norm is not positive or not finite. */
double spsi_columns_unit(double norm);
/* The threshold of ||P b - A x||, the residual of the solve. */
double spsi_columns_threshold(const sps_linear *s, int j, double norm_x);
/* The threshold of ||b - A x|| with the caller's b. */
double spsi_columns_own_threshold(const sps_linear *s, int j, double norm_x);
/* Whether ||b - P b|| alone exceeds 0.99 of that threshold: the system is
 * inconsistent, and X can only be a least-squares solution. */
bool spsi_columns_inconsistent(const sps_linear *s, int j, double norm_x);
/* The denominator of the relative residual of right-hand side j. */
double spsi_columns_reference(const sps_linear *s, int j);
/* Updates the thresholds; those of norm backward depend on ||x||. */
sps_status spsi_columns_thresholds(sps_linear *s);
/* Sorts k numbers, ascending. */
void spsi_columns_sort(double *x, int k);
/* Column j of X = 0. */
sps_status spsi_columns_zero(sps_block *X, int j);
/* Computes norms, projects B, scales X, and zeroes columns that are not
 * iterated on. */
sps_status spsi_columns_open(sps_linear *s, const sps_block *B, sps_block *X);
/* Restores the best columns, the caller's order and units, and projects X.
 * failed: the operator cannot be applied any more; recorded norms decide. */
sps_status spsi_columns_close(sps_linear *s, sps_block *X, bool failed);
/* R = B - A X for the active columns, scaled; twofold: in twice the working
 * precision, then rounded (work[1] is overwritten). */
sps_status spsi_columns_residual(sps_linear *s, sps_block *R, bool twofold);
/* The same with its norms; in twice the working precision where rounding of
 * doubles, eps ||A|| ||x||, may affect them. */
sps_status spsi_columns_true_norms(sps_linear *s, sps_block *R, double *norm);

/* Whether iterations are bound by latency: small blocks on a GPU. */
bool spsi_columns_latency(const sps_linear *s);
/* Number of open columns at or below which converged ones are deflated: three
 * quarters of the active ones; a quarter where narrower blocks take nearly as
 * long; 0 for methods that deflate at the end of a cycle only. */
int spsi_columns_few(const sps_linear *s);
/* To be called with the number of open columns after each iteration. */
void spsi_columns_track(sps_linear *s, int open);
/* Iterations by which deflation is delayed from now on, though few columns are
 * open; not positive: none. */
int spsi_columns_delay(const sps_linear *s);
/* Deflates converged columns: moves the open ones to the front.  Unless forced,
 * only if few are open, and deflation is not delayed. */
sps_status spsi_columns_compact(sps_linear *s, bool forced);
/* Makes all columns active again. */
void spsi_columns_widen(sps_linear *s);
/* Stores X, the guess, for a fallback that starts from it. */
sps_status spsi_columns_keep_guess(sps_linear *s);
/* Restores it to X, with all columns active. */
sps_status spsi_columns_guess(sps_linear *s);

/* --- normal.c, where r and S are defined.  ||S||, estimated. */
double spsi_least_size(const sps_linear *s);
/* The residual norm at position p by which convergence is judged: resnorm, or
 * if it is smaller, what is the same fraction of its threshold as normal is of
 * that of the second rule. */
double spsi_least_level(const sps_linear *s, int p);
/* norm = ||r||, given R = b - A X. */
sps_status spsi_least_norms(const sps_linear *s, const sps_block *X,
                            const sps_block *R, double *norm);
/* norm = ||S'r||, A'R in twice the working precision; by[j] times column j of X
 * is in the units of R; NULL: 1.  work[1] is overwritten. */
sps_status spsi_least_normal(sps_linear *s, const sps_block *X,
                             const double *by, const sps_block *R,
                             double *norm);
bool spsi_least_rounding(const sps_linear *s, double normal, double x,
                         double b);

/* --- best.c.  Initialises s->best: nothing is stored. */
void spsi_best_open(sps_linear *s);
/* Given the true residual norms of the active columns: stores improved columns,
 * and records the deviation of resnorm. */
sps_status spsi_best_check(sps_linear *s, const double *true_norm);
/* For all columns: X is the better, by true residuals, of the current and the
 * stored iterate, resnorm its norm.  failed: the operator cannot be applied any
 * more; resnorm and the norms of the stored iterates decide.  X is finite
 * afterwards. */
sps_status spsi_best_restore(sps_linear *s, bool failed);
/* Whether the active columns of X are finite in the caller's units; by
 * position. */
sps_status spsi_best_fits(sps_linear *s, const sps_block *X, bool *fit);

/* verdict.c: sets the stop reasons of s and of each column from the residuals
 * of X, which is in the caller's order and units. */
sps_status spsi_columns_verdict(sps_linear *s, const sps_block *X);
/* Fills in the result after that. */
void spsi_linear_result(const sps_linear *s, double solve_seconds,
                        double verify_seconds, sps_result *r);

#endif
