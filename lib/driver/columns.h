/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.h - the right-hand sides during a solve: scaling, order, thresholds,
 * and the set of active columns. */
#ifndef SPS_COLUMNS_H
#define SPS_COLUMNS_H

#include "driver/linear.h"

/* rhs.c: scales the right-hand sides by powers of two that bring ||b|| near 1;
 * all norms and thresholds of a solve are those of the scaled columns.
 * Computes the norms of B, and projects the null space out of it. */
sps_status spsi_rhs_open(sps_linear *s, const sps_block *B);
/* Returns the power of two, within 2^-1000 .. 2^1000, that scales `norm` into
 * [1/2, 1) or nearest to it; 1 if norm is not positive or not finite. */
double spsi_columns_unit(double norm);
/* Returns the threshold for ||P b - A x||, the residual of the solve. */
double spsi_columns_threshold(const sps_linear *s, int j, double norm_x);
/* Returns the threshold for ||b - A x|| with the caller's b. */
double spsi_columns_own_threshold(const sps_linear *s, int j, double norm_x);
/* Returns whether ||b - P b|| by itself exceeds 0.99 of that threshold: then
 * the system is inconsistent, and X can only be a least-squares solution. */
bool spsi_columns_inconsistent(const sps_linear *s, int j, double norm_x);
/* Returns the denominator of the relative residual of right-hand side j. */
double spsi_columns_reference(const sps_linear *s, int j);
/* Updates the thresholds; those of norm backward depend on ||x||. */
sps_status spsi_columns_thresholds(sps_linear *s);
/* Sorts k values, ascending. */
void spsi_columns_sort(double *x, int k);
/* Clears column j of X. */
sps_status spsi_columns_zero(sps_block *X, int j);
/* Computes norms, projects B, scales X, and zeroes columns that are not
 * iterated on. */
sps_status spsi_columns_open(sps_linear *s, const sps_block *B, sps_block *X);
/* Restores the best columns, and the caller's order and units, and projects X.
 * If `failed`, the operator cannot be applied any more, and recorded norms
 * decide which columns are best. */
sps_status spsi_columns_close(sps_linear *s, sps_block *X, bool failed);
/* R = B - A X for the active columns, scaled.  If `twofold`, it is formed in
 * twice the working precision and then rounded (work[1] is overwritten). */
sps_status spsi_columns_residual(sps_linear *s, sps_block *R, bool twofold);
/* Computes R and its norms; in twice the working precision where the rounding
 * error of doubles, eps ||A|| ||x||, may affect them. */
sps_status spsi_columns_true_norms(sps_linear *s, sps_block *R, double *norm);

/* Returns whether iterations are bound by latency: small blocks on a GPU. */
bool spsi_columns_latency(const sps_linear *s);
/* Returns the number of open columns at or below which converged ones are
 * deflated: three quarters of the active ones; a quarter where narrower blocks
 * need nearly as long; 0 for methods that deflate at the end of a cycle
 * only. */
int spsi_columns_few(const sps_linear *s);
/* Must be called with the number of open columns after each iteration. */
void spsi_columns_track(sps_linear *s, int open);
/* Returns the number of iterations by which deflation is still to be delayed
 * although few columns are open; it is not delayed if this is not positive. */
int spsi_columns_delay(const sps_linear *s);
/* Deflates converged columns by moving the open ones to the front: always if
 * `forced`, otherwise only if few columns are open and deflation is not
 * delayed. */
sps_status spsi_columns_compact(sps_linear *s, bool forced);
/* Makes all columns active again. */
void spsi_columns_widen(sps_linear *s);
/* Stores the initial guess X, for a fallback that starts from it. */
sps_status spsi_columns_keep_guess(sps_linear *s);
/* Restores that guess to X and makes all columns active. */
sps_status spsi_columns_guess(sps_linear *s);

/* --- normal.c, where r and S are defined.  Returns an estimate of ||S||. */
double spsi_least_size(const sps_linear *s);
/* Returns the residual norm at position p by which convergence is judged:
 * resnorm, or, if it is smaller, the value that is the same fraction of its
 * threshold as `normal` is of the threshold of the second rule. */
double spsi_least_level(const sps_linear *s, int p);
/* Computes norm = ||r|| from R = b - A X. */
sps_status spsi_least_norms(const sps_linear *s, const sps_block *X,
                            const sps_block *R, double *norm);
/* Computes norm = ||S'r||, with A'R in twice the working precision.  by[j]
 * times column j of X is in the units of R; `by` may be NULL for ones.  work[1]
 * is overwritten. */
sps_status spsi_least_normal(sps_linear *s, const sps_block *X,
                             const double *by, const sps_block *R,
                             double *norm);
bool spsi_least_rounding(const sps_linear *s, double normal, double x,
                         double b);

/* --- best.c.  Initialises s->best, with nothing stored. */
void spsi_best_open(sps_linear *s);
/* Stores the columns that have improved by the true residual norms of the
 * active columns, and records how far resnorm deviates from these. */
sps_status spsi_best_check(sps_linear *s, const double *true_norm);
/* Makes each column of X the better, by true residuals, of the current and the
 * stored iterate, and resnorm its norm.  If `failed`, the operator cannot be
 * applied any more, and resnorm and the norms of the stored iterates decide.  X
 * is finite afterwards. */
sps_status spsi_best_restore(sps_linear *s, bool failed);
/* fit[p] = whether the active column at position p is finite in the caller's
 * units. */
sps_status spsi_best_fits(sps_linear *s, const sps_block *X, bool *fit);

/* verdict.c: sets the stop reasons of s and of each column from the residuals
 * of X, which is in the caller's order and units. */
sps_status spsi_columns_verdict(sps_linear *s, const sps_block *X);
/* Returns whether x is accurate although its column has not converged: a
 * backward error of at most 1e3 eps and a residual of at most 1e-8. */
bool spsi_columns_accurate(const sps_linear *s, int j);
/* Fills in the result afterwards. */
void spsi_linear_result(const sps_linear *s, double solve_seconds,
                        double verify_seconds, sps_result *r);

#endif
