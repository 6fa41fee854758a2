/* SPDX-License-Identifier: BSD-3-Clause */
/* solve.c - the one driver loop: test, monitor, step.
 *
 * The unknown is solved for in scaled columns, x_j' = d_j x_j with d_j the
 * power of two that brings ||b_j|| near 1: exact, and it keeps dots away from
 * overflow whatever the units of b.  Inside the loop everything is indexed by
 * position; s->column[p] is the right-hand side at position p, the first s->k
 * positions are at work (columns.c moves them).
 *
 * Truth: the recurrence of a method only proposes.  A column counts as
 * converged when the residual recomputed from A, B and X is below its
 * threshold; where it is not, the residual is replaced and the work goes on,
 * at most SPS_REPLACEMENTS times (van der Vorst and Ye, SIAM J. Sci. Comput.
 * 22, 2000, for the idea).  The best columns seen at such checks are kept. */
#include "columns.h"
#include "ladder.h"
#include "reorder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timer.h"

#define SPS_REPLACEMENTS 3

/* ---------------------------------------------------------- tests by column */

/* An infinite residual has reached nothing, even where the threshold of norm
 * backward has overflowed as well. */
static bool reached(const sps_solver *s, int p, double aim)
{
    return isfinite(s->resnorm[p]) &&
           s->resnorm[p] <= aim * s->threshold[s->column[p]];
}

/* Marks done columns at work by the recurrence; false when a norm is NaN. */
static bool test_columns(sps_solver *s, int *open)
{
    bool finite = true;

    *open = 0;
    for (int p = 0; p < s->k; p++) {
        s->done[p] = reached(s, p, SPS_SOLVER_AIM);
        if (!isfinite(s->resnorm[p])) finite = false;
        if (!s->done[p]) ++*open;
    }
    return finite;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static bool report(sps_solver *s)
{
    sps_progress g = { .iteration = s->iteration, .k = s->columns };
    double reference;

    for (int p = 0; p < s->k; p++) {
        reference = spsi_columns_reference(s, s->column[p]);
        s->relative[s->column[p]] =
            reference > 0 ? s->resnorm[p] / reference : 0;
    }
    if (!s->opt.monitor) return true;
    memcpy(s->scratch, s->relative, (size_t)s->columns * sizeof(double));
    qsort(s->scratch, (size_t)s->columns, sizeof(double), by_value);
    g.residual = s->relative;
    g.worst = s->scratch[s->columns - 1];
    g.median = s->scratch[s->columns / 2];
    g.converged = s->columns - s->k;
    for (int p = 0; p < s->k; p++) g.converged += s->done[p];
    g.width = s->width;
    g.seconds = spsi_now() - s->started;
    g.event = s->event;
    s->event = NULL;
    return s->opt.monitor(&g, s->opt.monitor_data);
}

/* ------------------------------------------------------------ true residuals */

static sps_status flush(sps_solver *s)
{
    return s->type->flush ? s->type->flush(s, s->method) : SPS_OK;
}

/* R = true residual of all columns, norms in resnorm; better columns go to
 * the snapshot.  *worse: some column still at work is above its threshold. */
static sps_status judge_all(sps_solver *s, int *open)
{
    sps_status st = SPS_OK;

    SPS_TRY(flush(s));
    spsi_columns_widen(s);
    SPS_TRY(spsi_columns_residual(s, &s->R, true));
    SPS_TRY(spsi_norms(&s->R, s->resnorm));
    SPS_TRY(spsi_columns_thresholds(s));
    s->gained = false;
    for (int p = 0; p < s->k; p++)
        if (s->resnorm[p] < 0.99 * s->best_norm[s->column[p]])
            s->gained = true;
    SPS_TRY(spsi_columns_snapshot(s, s->resnorm));
    *open = 0;
    for (int p = 0; p < s->k; p++) {
        s->done[p] = s->result_column[s->column[p]] < 0 ||
                     reached(s, p, 1 - 1e-9);
        if (!s->done[p]) ++*open;
    }
fail:
    return st;
}

/* Sets the open columns to work from their true residual, which is in R.  The
 * part of it in the null space is rounding that no direction can take away;
 * near the end r'M r would get its sign from it. */
static sps_status restart(sps_solver *s, const char *event)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_columns_compact(s, true));
    SPS_TRY(spsi_nullspace_project(s->null, &s->R));
    s->event = event;
    s->renew = false;
    s->begun = s->iteration;
    SPS_TRY(s->type->start(s, s->method));
fail:
    return st;
}

/* Every so often the recurrence is compared with the truth; far apart (a
 * factor 10, above the threshold) it is replaced. */
static sps_status compare(sps_solver *s, int *replace)
{
    sps_status st = SPS_OK;
    double *truth = s->scratch;
    sps_block T;

    *replace = 0;
    SPS_TRY(flush(s));
    spsi_block_view(s->work[1], 0, s->k, &T);
    SPS_TRY(spsi_columns_residual(s, &T, false));
    SPS_TRY(spsi_norms(&T, truth));
    if (s->opt.norm == SPS_NORM_BACKWARD) SPS_TRY(spsi_columns_thresholds(s));
    SPS_TRY(spsi_columns_snapshot(s, truth));
    for (int p = 0; p < s->k; p++)
        if (!s->done[p] && truth[p] > 10 * s->resnorm[p] &&
            truth[p] > s->threshold[s->column[p]])
            *replace = 1;
fail:
    return st;
}

/* -------------------------------------------------------------- why to stop */

/* No gain of 1 % in the worst ratio over so many iterations: CG may stand
 * still for a long time on ill-conditioned systems, so the window is wide. */
static bool stalled(sps_solver *s, double *best, int *since)
{
    double worst = 0, ratio;
    int64_t window = s->n < 400 ? 2000 : s->n < 4000 ? 5 * s->n : 20000;

    for (int p = 0; p < s->k; p++) {
        ratio = s->resnorm[p] / fmax(s->threshold[s->column[p]], 1e-300);
        if (!s->done[p] && ratio > worst) worst = ratio;
    }
    if (worst < 0.99 * *best) {
        *best = worst;
        *since = s->iteration;
    }
    return s->iteration - *since > window;
}

static sps_stop limit(const sps_solver *s)
{
    if (s->ctx->cancelled) return SPS_STOP_INTERRUPTED;
    if (s->iteration >= s->opt.max_iterations) return SPS_STOP_MAX_ITERATIONS;
    if (s->opt.max_seconds > 0 &&
        spsi_now() - s->started >= s->opt.max_seconds)
        return SPS_STOP_MAX_TIME;
    return SPS_STOP_RUNNING;
}

/* ----------------------------------------------------------------- the loop */

/* A basis in floats that brings nothing gives way to one in doubles, if there
 * is memory for it.  *done: it has. */
static sps_status promote(sps_solver *s, bool *done)
{
    sps_status st;

    *done = false;
    if (!s->floats) return SPS_OK;
    st = s->type->widen(s, s->method);
    if (st == SPS_ENOMEM || st == SPS_EDEVMEM) {
        spsi_note(s->ctx, "%s: the basis in floats brings no progress, and "
                  "there is no memory for one in doubles", s->type->name);
        return SPS_OK;
    }
    if (st != SPS_OK) return st;
    *done = true;
    s->floats = false;
    s->replacements = 0;
    spsi_note(s->ctx, "%s: the basis in floats brings no progress; in doubles "
              "from iteration %d", s->type->name, s->iteration);
    return SPS_OK;
}

/* All columns at work look done, or a cycle of a method is over: the truth
 * decides.  Cycles that bring the truth forward are free. */
static sps_status settle(sps_solver *s)
{
    sps_status st = SPS_OK;
    bool promoted = false;
    int open;

    SPS_TRY(judge_all(s, &open));
    if (open && !(s->type->flush && s->gained))
        SPS_TRY(promote(s, &promoted));
    if (!open) {
        s->stop = SPS_STOP_CONVERGED;
    } else if (promoted) {
        SPS_TRY(restart(s, "basis in doubles"));
    } else if (s->type->flush && s->gained) {
        s->replacements = 0;
        SPS_TRY(restart(s, s->renew ? NULL : "residual replaced"));
    } else if (s->replacements >= SPS_REPLACEMENTS) {
        s->stop = SPS_STOP_STAGNATED;
    } else {
        s->replacements++;
        SPS_TRY(restart(s, "residual replaced"));
    }
fail:
    return st;
}

/* Rounding that a recurrence gathered may turn the sign of a curvature: such
 * a reason counts when it is met from a true residual as well, and never from
 * a basis in floats.  (A breakdown is the fallback's, where there is one.) */
static bool doubtful(const sps_solver *s)
{
    bool blamed = s->stop == SPS_STOP_SINGULAR ||
                  s->stop == SPS_STOP_PRECOND_INDEFINITE ||
                  (s->stop == SPS_STOP_BREAKDOWN && !s->fallback);

    if (s->floats) return blamed;
    return blamed && s->iteration - s->begun > 1 &&
           s->replacements < SPS_REPLACEMENTS;
}

/* One turn: test, monitor, limits, step.  Sets s->stop to end. */
static sps_status turn(sps_solver *s, double *best, int *since)
{
    sps_status st = SPS_OK;
    int open, replace = 0;

    if (!test_columns(s, &open)) {
        s->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    if (!report(s)) s->stop = SPS_STOP_INTERRUPTED;
    if (s->stop) return SPS_OK;
    if (!open) return settle(s);
    spsi_columns_watch(s, open);
    s->stop = limit(s);
    if (!s->stop && stalled(s, best, since)) {
        SPS_TRY(promote(s, &s->renew));
        *since = s->iteration;
        if (!s->renew) s->stop = SPS_STOP_STAGNATED;
    }
    if (s->stop) return SPS_OK;
    if (s->renew && s->ahead_seen == s->ahead) SPS_TRY(settle(s));
    if (s->stop) return SPS_OK;
    if (!s->type->flush || s->type->permute) {
        if (s->iteration && s->iteration % s->opt.true_residual_every == 0)
            SPS_TRY(compare(s, &replace));
        if (replace) return settle(s);
        SPS_TRY(spsi_columns_compact(s, false));
    }
    SPS_TRY(spsi_solver_advance(s));
    if (s->width > 0 && s->width < s->min_width) s->min_width = s->width;
    if (doubtful(s)) {
        s->stop = SPS_STOP_RUNNING;
        SPS_TRY(settle(s));
    }
fail:
    return st;
}

/* The block method gave up where a simpler one may still go on.  Not finite:
 * products of blocks leave the range of doubles where norms do not (entries of
 * A of 1e-170, hence of M R of 1e170). */
static bool falls_back(const sps_solver *s)
{
    return s->fallback && s->type != s->fallback &&
           (s->stop == SPS_STOP_BREAKDOWN || s->stop == SPS_STOP_STAGNATED ||
            s->stop == SPS_STOP_NOT_FINITE);
}

static void swap_method(sps_solver *s)
{
    const sps_solver_type *type = s->type;
    void *method = s->method;

    s->type = s->fallback;
    s->fallback = type;
    s->method = s->fallback_method;
    s->fallback_method = method;
}

/* Turns of the method at work from what judge_all left, until s->stop. */
static sps_status loop(sps_solver *s, const char *event)
{
    double best = INFINITY;
    int since = s->iteration;
    sps_status st;

    SPS_TRY(restart(s, event));
    while (!s->stop) SPS_TRY(turn(s, &best, &since));
    spsi_solver_catch_up(s);
fail:
    return st;
}

/* The fallback goes on: from the best columns, or afresh. */
static sps_status fall_back(sps_solver *s)
{
    const bool afresh = s->type->afresh && s->iteration > 0;
    sps_status st;
    int open;

    SPS_TRY(spsi_columns_restore(s, false));
    if (afresh) SPS_TRY(spsi_columns_guess(s));
    swap_method(s);
    if (s->iteration > 0 || s->stop == SPS_STOP_NOT_FINITE)
        spsi_note(s->ctx, "%s ended (%s) after %d iterations; %s with %s",
                  s->fallback->name, sps_stop_string(s->stop), s->iteration,
                  afresh ? "began again" : "went on", s->type->name);
    s->stop = SPS_STOP_RUNNING;
    s->replacements = 0;
    SPS_TRY(judge_all(s, &open));
    if (open) return loop(s, "went on with another method");
    s->stop = SPS_STOP_CONVERGED;
fail:
    return st;
}

static sps_status run(sps_solver *s)
{
    sps_status st = SPS_OK;
    int open;

    SPS_TRY(judge_all(s, &open));
    if (!open) {
        s->stop = SPS_STOP_CONVERGED;
        report(s);
        return SPS_OK;
    }
    if (s->type->afresh) SPS_TRY(spsi_columns_keep_guess(s));
    SPS_TRY(loop(s, NULL));
    if (falls_back(s)) SPS_TRY(fall_back(s));
    SPS_TRY(flush(s));
fail:
    return st;
}

/* ------------------------------------------------------------------- solve */

static sps_status check_arguments(sps_solver *s, const sps_block *B,
                                  sps_block *X, const sps_result *r)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(s->ctx, B && X, SPS_EINVAL, "B or X is NULL");
    SPS_REQUIRE(s->ctx, B->ctx == s->ctx && X->ctx == s->ctx, SPS_EINVAL,
                "B, X and the solver belong to different contexts");
    SPS_REQUIRE(s->ctx, B->n == s->n && X->n == s->n && B->k == s->columns &&
                X->k == s->columns, SPS_ESHAPE,
                "B is %lld x %d, X is %lld x %d; the solver was made for "
                "%lld x %d", (long long)B->n, B->k, (long long)X->n, X->k,
                (long long)s->n, s->columns);
    SPS_REQUIRE(s->ctx, !spsi_blocks_meet(B, X), SPS_EINVAL,
                "B and X share memory");
    SPS_REQUIRE(s->ctx, !r || r->struct_size == sizeof *r, SPS_EINVAL,
                "result->struct_size must be sizeof(sps_result)");
fail:
    return st;
}

/* The fallback of an earlier solve gives way to the first choice again. */
static void reset(sps_solver *s)
{
    if (s->type != s->chosen) swap_method(s);
    s->stop = SPS_STOP_RUNNING;
    s->renew = false;
    s->floats = s->single && s->type->widen;
    s->event = NULL;
    s->applies_A = s->applies_M = 0;
    s->iteration = s->replacements = 0;
    s->ahead = s->ahead_seen = 0;
    s->few_since = -1;
    s->stride = spsi_columns_wait(s) ? s->opt.check_every : 1;
    s->width = 0;
    s->min_width = s->columns;
    s->removed = 0;
}

static sps_status solve(sps_solver *s, const sps_block *B, sps_block *X,
                        sps_result *result)
{
    sps_status st, closed;
    double t0, t1;

    if (s->ladder) return spsi_ladder_linear(s->ladder, B, X, result);
    st = spsi_solver_follow(s);
    if (st != SPS_OK) return st;
    reset(s);
    s->started = t0 = spsi_now();
    spsi_phase_reset(s->ctx);
    st = spsi_columns_open(s, B, X);
    if (st == SPS_OK) st = run(s);
    /* Whatever happened: the best columns, in the caller's order and units. */
    closed = spsi_columns_close(s, X, st != SPS_OK);
    if (st != SPS_OK || closed != SPS_OK) return st != SPS_OK ? st : closed;
    t1 = spsi_now();
    st = spsi_columns_verdict(s, X);
    if (st == SPS_OK && result)
        spsi_solver_result(s, t1 - t0, spsi_now() - t1, result);
    return st;
}

sps_status spsi_solver_order_basis(sps_solver *s)
{
    if (!s->ordered_basis || s->basis_version == s->A->version) return SPS_OK;
    s->basis_version = s->A->version;
    return sps_operator_apply(s->reordering->forth, 1.0, s->basis, 0.0,
                              s->ordered_basis);
}

/* In the order of the operator's unknowns: x = P' (P A P')^-1 P b. */
static sps_status solve_reordered(sps_solver *s, const sps_block *B,
                                  sps_block *X, sps_result *result)
{
    const sps_reordering *r = s->reordering;
    sps_status st, back;

    SPS_TRY(spsi_solver_order_basis(s));
    SPS_TRY(sps_operator_apply(r->forth, 1.0, B, 0.0, s->ordered_B));
    SPS_TRY(sps_operator_apply(r->forth, 1.0, X, 0.0, s->ordered_X));
    st = solve(s, s->ordered_B, s->ordered_X, result);
    back = sps_operator_apply(r->back, 1.0, s->ordered_X, 0.0, X);
    if (st == SPS_OK) st = back;
fail:
    return st;
}

sps_status sps_solver_linear(sps_solver *s, const sps_block *B, sps_block *X,
                             sps_result *result)
{
    sps_status st;

    if (!s) return SPS_EINVAL;
    if (s->eigen)
        return spsi_fail(s->ctx, SPS_EINVAL, "this solver was made for "
                         "eigenvalues; use sps_solver_eigen");
    st = check_arguments(s, B, X, result);
    if (st != SPS_OK) return st;
    return (s->reordering ? solve_reordered : solve)(s, B, X, result);
}
