/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.h - the right-hand sides during a solve: units, order, thresholds,
 * and which of them are at work. */
#ifndef SPS_COLUMNS_H
#define SPS_COLUMNS_H

#include "solver.h"

/* The power of two that brings norm into [1/2, 1), or near to it; 1 for what is
 * not positive or not finite. */
double spsi_columns_unit(double norm);
/* Projects B, scales X, zeroes what must be zero, measures norms. */
sps_status spsi_columns_open(sps_solver *s, const sps_block *B, sps_block *X);
/* Best columns, user's order, user's units, projected.  failed: the operator
 * cannot be asked any more, the snapshot is taken as it is. */
sps_status spsi_columns_close(sps_solver *s, sps_block *X, bool failed);
/* R = B - A X for the columns at work, scaled; plain: by the plain kernel. */
sps_status spsi_columns_residual(sps_solver *s, sps_block *R, bool plain);
/* Threshold of right-hand side j in the caller's units. */
double spsi_columns_threshold(const sps_solver *s, int j, double norm_x);
/* What relative residuals of right-hand side j are relative to, scaled. */
double spsi_columns_reference(const sps_solver *s, int j);
/* Thresholds anew (scaled); those of norm backward follow ||x||. */
sps_status spsi_columns_thresholds(sps_solver *s);
/* Keeps the columns at work whose norm is the lowest so far. */
sps_status spsi_columns_snapshot(sps_solver *s, const double *norm);
/* Whether iterations wait longer than they move: small blocks on a GPU. */
bool spsi_columns_wait(const sps_solver *s);
/* Open columns at or below which the others leave: three quarters; a quarter
 * where narrower blocks take nearly as long. */
int spsi_columns_few(const sps_solver *s);
/* So many columns are open after this iteration. */
void spsi_columns_watch(sps_solver *s, int open);
/* Iterations for which the others stay though few are open, from this one on;
 * not positive: none. */
int spsi_columns_stay(const sps_solver *s);
/* Moves undone columns to the front and lets the others leave; unless forced,
 * only when few are undone, and nobody stays. */
sps_status spsi_columns_compact(sps_solver *s, bool forced);
/* All columns at work again. */
void spsi_columns_widen(sps_solver *s);
/* Keeps the guess for a fallback that begins afresh, and puts it into X again;
 * all columns are at work. */
sps_status spsi_columns_keep_guess(sps_solver *s);
sps_status spsi_columns_guess(sps_solver *s);
/* Puts the snapshot back where it is better than what X holds now. */
sps_status spsi_columns_restore(sps_solver *s, bool failed);
/* verdict.c: residuals of X, which is in the caller's order and units, and the
 * reasons of s and of each column by them; then all of it as the result. */
sps_status spsi_columns_verdict(sps_solver *s, const sps_block *X);
void spsi_solver_result(const sps_solver *s, double solve_seconds,
                        double verify_seconds, sps_result *r);

#endif
