/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.c - see columns.h. */
#include "columns.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "steps.h"

/* ------------------------------------------------------ units and thresholds */

double spsi_columns_threshold(const sps_solver *s, int j, double norm_x)
{
    double t = 0, r = s->opt.rtol;

    switch (s->opt.norm) {
    case SPS_NORM_RHS: t = r * s->norm_b[j]; break;
    case SPS_NORM_BACKWARD:   /* r first: ||A|| ||x|| alone may overflow */
        t = r * s->norm_A * norm_x + r * s->norm_b[j];
        break;
    case SPS_NORM_START: t = r * s->norm_start[j]; break;
    case SPS_NORM_ABSOLUTE: break;
    }
    return fmax(t, s->opt.atol);
}

double spsi_columns_reference(const sps_solver *s, int j)
{
    switch (s->opt.norm) {
    case SPS_NORM_RHS: return s->scale[j] * s->norm_b[j];
    case SPS_NORM_BACKWARD:
        return s->scale[j] * (s->norm_A * s->norm_x[j] + s->norm_b[j]);
    case SPS_NORM_START: return s->scale[j] * s->norm_start[j];
    default: return s->scale[j];
    }
}

sps_status spsi_columns_thresholds(sps_solver *s)
{
    sps_status st = SPS_OK;
    double *norm = s->scratch + s->columns;
    int j;

    if (s->opt.norm == SPS_NORM_BACKWARD) SPS_TRY(spsi_norms(&s->X, norm));
    for (int p = 0; p < s->k; p++) {
        j = s->column[p];
        if (s->opt.norm == SPS_NORM_BACKWARD)
            s->norm_x[j] = norm[p] / s->scale[j];
        s->threshold[j] =
            s->scale[j] * spsi_columns_threshold(s, j, s->norm_x[j]);
    }
fail:
    return st;
}

double spsi_columns_unit(double norm)
{
    int e = 0;

    if (!(norm > 0) || !isfinite(norm)) return 1.0;
    (void)frexp(norm, &e);
    if (e > 1000) e = 1000;
    if (e < -1000) e = -1000;
    return ldexp(1.0, -e);
}

static sps_status zero_column(sps_block *X, int j)
{
    sps_block view;

    spsi_block_view(X, j, 1, &view);
    return spsi_fill(&view, 0.0);
}

/* -------------------------------------------------------------------- opening */

/* B projected, and how much of it that took away.  Projected twice: where
 * little of b is left, the rounding of the first time is large beside it and
 * would make the system inconsistent.  What is left below the rounding of b
 * itself is zero. */
static sps_status project_rhs(sps_solver *s, const sps_block *B)
{
    sps_status st = SPS_OK;
    double part = 0, whole = 0, *left = s->scratch;

    s->rhs = B;
    if (!s->null) return SPS_OK;
    SPS_TRY(spsi_copy(B, s->projected));
    for (int pass = 0; pass < 2; pass++)
        SPS_TRY(spsi_nullspace_project(s->null, s->projected));
    SPS_TRY(spsi_norms(s->projected, left));
    for (int j = 0; j < s->columns; j++)
        if (left[j] <= 8 * DBL_EPSILON * s->norm_b[j])
            SPS_TRY(zero_column(s->projected, j));
    SPS_TRY(spsi_copy(B, s->residual));
    SPS_TRY(spsi_axpby(-1.0, s->projected, 1.0, s->residual));
    SPS_TRY(spsi_norms(s->residual, s->scratch));
    for (int j = 0; j < s->columns; j++) {
        part = hypot(part, s->scratch[j]);
        whole = hypot(whole, s->norm_b[j]);
    }
    s->removed = whole > 0 ? part / whole : 0;
    s->rhs = s->projected;
    SPS_TRY(spsi_norms(s->projected, s->norm_b));
fail:
    return st;
}

/* Columns that cannot or need not be worked on: b not finite, b = 0; and a
 * guess that is not finite is replaced by zero. */
static sps_status clear_columns(sps_solver *s, sps_block *X)
{
    sps_status st = SPS_OK;
    double *norm_x = s->scratch;
    bool bad_b, bad_x;

    SPS_TRY(spsi_norms(X, norm_x));
    for (int j = 0; j < s->columns; j++) {
        bad_b = !isfinite(s->norm_b[j]);
        bad_x = !isfinite(norm_x[j]);
        s->result_column[j] = bad_b ? SPS_STOP_NOT_FINITE : SPS_STOP_RUNNING;
        if (bad_b)
            spsi_note(s->ctx, "right-hand side %d is not finite; x = 0 is "
                      "returned for it", j + 1);
        else if (bad_x)
            spsi_note(s->ctx, "the guess of column %d is not finite; zero was "
                      "used", j + 1);
        if (bad_b || bad_x || s->norm_b[j] == 0) {
            SPS_TRY(zero_column(X, j));
            norm_x[j] = 0;
        }
        s->norm_x[j] = norm_x[j];
    }
fail:
    return st;
}

sps_status spsi_columns_open(sps_solver *s, const sps_block *B, sps_block *X)
{
    sps_status st = SPS_OK;

    s->k = s->columns;
    for (int j = 0; j < s->columns; j++) {
        s->column[j] = j;
        s->best_norm[j] = INFINITY;
        s->relative[j] = 0;
        s->scale[j] = 1;
        s->threshold[j] = 0;
        s->done[j] = false;
    }
    spsi_block_view(X, 0, s->columns, &s->X);
    spsi_block_view(s->residual, 0, s->columns, &s->R);
    for (int i = 0; i < 2; i++) spsi_block_narrow(s->work[i], s->columns);
    SPS_TRY(spsi_norm_estimate(s->A, s->work[0], s->work[1], s->scratch,
                               &s->norm_A));
    SPS_TRY(spsi_norms(B, s->norm_b));
    SPS_TRY(project_rhs(s, B));
    SPS_TRY(clear_columns(s, X));
    for (int j = 0; j < s->columns; j++)
        s->scale[j] = spsi_columns_unit(s->norm_b[j]);
    SPS_TRY(spsi_axpby_cols(s->scale, X, NULL, X));
    if (s->opt.norm == SPS_NORM_START) {
        SPS_TRY(spsi_columns_residual(s, &s->R, true));
        SPS_TRY(spsi_norms(&s->R, s->norm_start));
        for (int j = 0; j < s->columns; j++) s->norm_start[j] /= s->scale[j];
    }
    SPS_TRY(spsi_columns_thresholds(s));
fail:
    return st;
}

/* ------------------------------------------------------------------ residuals */

sps_status spsi_columns_residual(sps_solver *s, sps_block *R, bool plain)
{
    sps_status st = SPS_OK;
    double *scale = s->scratch;
    bool straight = s->k == s->columns;
    int j;

    for (int p = 0; p < s->k; p++) {
        scale[p] = s->scale[s->column[p]];
        straight = straight && s->column[p] == p;
    }
    if (straight) {
        SPS_TRY(spsi_axpby_cols(scale, s->rhs, NULL, R));
    } else {
        SPS_TRY(spsi_gather(s->rhs, s->column, R));
        SPS_TRY(spsi_axpby_cols(scale, R, NULL, R));
    }
    for (int p = 0; p < s->k; p++) {
        j = s->column[p];
        if (s->result_column[j] == SPS_STOP_NOT_FINITE)
            SPS_TRY(zero_column(R, p));
    }
    SPS_TRY(plain ? spsi_operator_apply_plain(s->A, -1.0, &s->X, 1.0, R)
                  : sps_operator_apply(s->A, -1.0, &s->X, 1.0, R));
    s->applies_A++;
fail:
    return st;
}

/* ------------------------------------------------------------------- snapshot */

/* The first count columns of a work block, as a view. */
static void scratch_block(sps_solver *s, int count, sps_block *T)
{
    spsi_block_narrow(s->work[1], s->columns);
    spsi_block_view(s->work[1], 0, count, T);
}

sps_status spsi_columns_snapshot(sps_solver *s, const double *norm)
{
    sps_status st = SPS_OK;
    int *from = s->order + s->columns, *to = from + s->columns, m = 0, j;
    sps_block T;

    for (int p = 0; p < s->k; p++) {
        j = s->column[p];
        if (!(norm[p] < s->best_norm[j])) continue;
        s->best_norm[j] = norm[p];
        from[m] = p;
        to[m++] = j;
    }
    if (m == 0) return SPS_OK;
    if (m == s->k) return spsi_scatter(&s->X, to, s->best);
    scratch_block(s, m, &T);
    SPS_TRY(spsi_gather(&s->X, from, &T));
    SPS_TRY(spsi_scatter(&T, to, s->best));
fail:
    return st;
}

sps_status spsi_columns_restore(sps_solver *s, bool failed)
{
    sps_status st = SPS_OK;
    int *from = s->order + s->columns, *to = from + s->columns, m = 0, j;
    sps_block T;

    spsi_columns_widen(s);
    if (!failed) {
        SPS_TRY(spsi_columns_residual(s, &s->R, true));
        SPS_TRY(spsi_norms(&s->R, s->resnorm));
    }
    for (int p = 0; p < s->k; p++) {
        j = s->column[p];
        if (!isfinite(s->best_norm[j])) continue;
        if (!failed && s->resnorm[p] <= s->best_norm[j]) continue;
        from[m] = j;
        to[m++] = p;
    }
    if (m == 0) return SPS_OK;
    scratch_block(s, m, &T);
    SPS_TRY(spsi_gather(s->best, from, &T));
    SPS_TRY(spsi_scatter(&T, to, &s->X));
fail:
    return st;
}

/* Nothing has been moved yet: positions are right-hand sides. */
sps_status spsi_columns_keep_guess(sps_solver *s)
{
    sps_block *guess = s->work[SPS_SOLVER_GUESS];

    spsi_block_narrow(guess, s->columns);
    return spsi_copy(&s->X, guess);
}

sps_status spsi_columns_guess(sps_solver *s)
{
    spsi_columns_widen(s);
    return spsi_gather(s->work[SPS_SOLVER_GUESS], s->column, &s->X);
}

/* ---------------------------------------------------------------------- order */

/* X(:, p) = X(:, from[p]) over the columns at work. */
static sps_status reorder(sps_solver *s, const int *from, sps_block *X)
{
    sps_status st = SPS_OK;
    sps_block T;

    scratch_block(s, X->k, &T);
    SPS_TRY(spsi_gather(X, from, &T));
    SPS_TRY(spsi_copy(&T, X));
fail:
    return st;
}

/* The same for the arrays kept by position. */
static void reorder_arrays(sps_solver *s, const int *from)
{
    int *column = s->order + s->columns;
    double *norm = s->scratch;
    bool *done = (bool *)(s->order + 2 * s->columns);

    for (int p = 0; p < s->k; p++) {
        column[p] = s->column[from[p]];
        norm[p] = s->resnorm[from[p]];
        done[p] = s->done[from[p]];
    }
    memcpy(s->column, column, (size_t)s->k * sizeof *column);
    memcpy(s->resnorm, norm, (size_t)s->k * sizeof *norm);
    memcpy(s->done, done, (size_t)s->k * sizeof *done);
}

/* Numbers of a block up to which a GPU waits, in iterations that the host does
 * not wait for (steps.h).  Of one of block CG on an H200 some 30 us are launches
 * and sums that wait for each other, whatever the width; its 12 block passes take
 * as long at 1.3 million numbers (4.2 TB/s).  Columns that leave cost some 0.4 ms
 * there: they are moved, and a step of that width is recorded.  So they stay for
 * PATIENCE more iterations, in which most systems end: the bytes that they would
 * have spared take 0.2 ms with 2^20 numbers and twice that with WAITING, and
 * whoever pays as much as leaving costs before he leaves pays at most twice what
 * he had to (skis rented or bought: Karlin et al., Algorithmica 3, 1988). */
#define WAITING (INT64_C(1) << 21)
#define PATIENCE 16

_Static_assert(PATIENCE >= SPS_SOLVER_AHEAD, "columns leave behind a stretch "
               "that ends there, not within the one that left few open");

bool spsi_columns_wait(const sps_solver *s)
{
    return s->ctx->backend->replay && s->type->ahead && !s->type->flush &&
           s->columns <= SPS_STEPS_WIDEST && s->n * s->columns <= WAITING;
}

int spsi_columns_few(const sps_solver *s)
{
    /* Columns leave when a cycle is over, and nobody looks before. */
    if (s->type->flush && !s->type->permute) return 0;
    return spsi_columns_wait(s) ? s->k / 4 : 3 * s->k / 4;
}

void spsi_columns_watch(sps_solver *s, int open)
{
    if (open == s->k || open > spsi_columns_few(s)) s->few_since = -1;
    else if (s->few_since < 0) s->few_since = s->iteration;
}

int spsi_columns_stay(const sps_solver *s)
{
    if (s->few_since < 0 || !spsi_columns_wait(s)) return 0;
    return s->few_since + PATIENCE - s->iteration;
}

sps_status spsi_columns_compact(sps_solver *s, bool forced)
{
    sps_status st = SPS_OK;
    int *from = s->order, open = 0, at;
    bool moved = false;

    for (int p = 0; p < s->k; p++) open += !s->done[p];
    if (open == s->k || open == 0) return SPS_OK;
    if (!forced && open > spsi_columns_few(s)) return SPS_OK;
    if (!forced && spsi_columns_stay(s) > 0) return SPS_OK;
    s->few_since = -1;
    if (!forced && s->type->flush) SPS_TRY(s->type->flush(s, s->method));
    at = open;
    open = 0;
    for (int p = 0; p < s->k; p++) from[s->done[p] ? at++ : open++] = p;
    for (int p = 0; p < s->k; p++) moved = moved || from[p] != p;
    if (moved) {
        SPS_TRY(reorder(s, from, &s->X));
        SPS_TRY(reorder(s, from, &s->R));
        reorder_arrays(s, from);
    }
    s->k = open;
    spsi_block_narrow(&s->X, open);
    spsi_block_narrow(&s->R, open);
    if (!forced && s->type->permute)
        SPS_TRY(s->type->permute(s, s->method, from, open));
fail:
    return st;
}

void spsi_columns_widen(sps_solver *s)
{
    s->k = s->columns;
    spsi_block_narrow(&s->X, s->columns);
    spsi_block_narrow(&s->R, s->columns);
}

/* -------------------------------------------------------------------- closing */

sps_status spsi_columns_close(sps_solver *s, sps_block *X, bool failed)
{
    sps_status st = SPS_OK, asked = SPS_OK;
    int *where = s->order;
    bool moved = false;

    /* The caller's functions may fail even now: the snapshot, order and units
     * do not need them. */
    if (s->stop != SPS_STOP_CONVERGED) asked = spsi_columns_restore(s, failed);
    if (asked != SPS_OK) SPS_TRY(spsi_columns_restore(s, true));
    spsi_columns_widen(s);
    for (int p = 0; p < s->k; p++) {
        where[s->column[p]] = p;
        moved = moved || s->column[p] != p;
    }
    if (moved) SPS_TRY(reorder(s, where, &s->X));
    for (int j = 0; j < s->columns; j++) s->scratch[j] = 1 / s->scale[j];
    SPS_TRY(spsi_axpby_cols(s->scratch, X, NULL, X));
    SPS_TRY(spsi_nullspace_project(s->null, X));
    return asked;

fail:
    return st;
}
