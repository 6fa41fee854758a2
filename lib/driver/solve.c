/* SPDX-License-Identifier: BSD-3-Clause */
/* solve.c - the driver loop: test, monitor, step.
 *
 * The iteration works on scaled columns, x_j' = d_j x_j with d_j the power of
 * two that brings ||b_j|| near 1: exact, and dot products do not overflow
 * whatever the units of b.  Inside the loop all arrays are indexed by position;
 * s->at.column[p] is the right-hand side at position p, the first s->k
 * positions are active (columns.c permutes them).
 *
 * The recurrence residual of a method is not trusted.  A column is converged
 * when the true residual, recomputed from A, B and X, is below its threshold;
 * otherwise the residual is replaced and the iteration continues, at most
 * SPS_REPLACEMENTS times (after van der Vorst and Ye, SIAM J. Sci. Comput. 22,
 * 2000).  The best columns at such checks are stored. */
#include "core/abi.h"
#include "driver/columns.h"
#include "core/comm.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/timer.h"

#define SPS_REPLACEMENTS 3

/* ---------------------------------------------------------- tests by column */

/* An infinite residual is not below any threshold, even if the threshold of
 * norm backward has overflowed as well. */
static bool reached(const sps_linear *s, int p, double aim)
{
    const double level = spsi_least_level(s, p);

    return isfinite(level) &&
           level <= aim * s->rhs.threshold[s->at.column[p]];
}

/* Marks the columns whose recurrence residual is below SPS_LINEAR_AIM times the
 * threshold; *open counts the others.  Returns false if a norm is NaN or
 * infinite. */
static bool test_columns(sps_linear *s, int *open)
{
    bool finite = true;

    *open = 0;
    for (int p = 0; p < s->k; p++) {
        s->at.done[p] = reached(s, p, SPS_LINEAR_AIM);
        if (!isfinite(s->resnorm[p])) finite = false;
        if (!s->at.done[p]) ++*open;
    }
    return finite;
}

static bool report(sps_linear *s)
{
    sps_progress g = { .iteration = s->course.iteration, .k = s->columns,
                       .struct_size = sizeof g };
    double reference;

    for (int p = 0; p < s->k; p++) {
        reference = spsi_columns_reference(s, s->at.column[p]);
        s->rhs.relative[s->at.column[p]] =
            reference > 0 ? spsi_least_level(s, p) / reference : 0;
    }
    if (!s->opt.monitor)
        return spsi_agreed_monitor(s->ctx, NULL, NULL, NULL);
    memcpy(s->scratch.numbers, s->rhs.relative,
           (size_t)s->columns * sizeof(double));
    spsi_columns_sort(s->scratch.numbers, s->columns);
    g.residual = s->rhs.relative;
    g.worst = s->scratch.numbers[s->columns - 1];
    g.median = s->scratch.numbers[s->columns / 2];
    g.converged = s->columns - s->k;
    for (int p = 0; p < s->k; p++) g.converged += s->at.done[p];
    g.width = s->width;
    g.seconds = spsi_agreed_now(s->ctx) - s->course.started;
    g.event = s->course.event;
    s->course.event = NULL;
    if (s->made.owned) return s->opt.monitor(&g, s->opt.monitor_data);
    return spsi_agreed_monitor(s->ctx, s->opt.monitor, s->opt.monitor_data, &g);
}

/* ----------------------------------------------------------- true residuals */

/* Sets gained and halved by comparing the true residuals in resnorm with the
 * lowest ones before, and updates these. */
static void measure_gain(sps_linear *s)
{
    s->course.gained = s->course.halved = false;
    for (int p = 0; p < s->k; p++) {
        double *checked = &s->best.checked[s->at.column[p]];
        const double level = spsi_least_level(s, p);

        if (level < 0.99 * *checked) s->course.gained = true;
        if (level < 0.5 * *checked && !reached(s, p, 1 - 1e-9))
            s->course.halved = true;
        *checked = fmin(*checked, level);
    }
}

/* Returns whether all columns are converged by true residuals: then the loop
 * ends, and X is the answer without a copy of it.  (A threshold may be
 * infinite, with norm START and a guess that overflows.) */
static bool all_done(const sps_linear *s, const double *true_norm)
{
    if (s->least.T || s->opt.norm == SPS_NORM_BACKWARD) return false;
    for (int p = 0; p < s->k; p++)
        if (s->result.column[s->at.column[p]] < 0 ||
            !isfinite(true_norm[p]) ||
            !(true_norm[p] <=
              (1 - 1e-9) * s->rhs.threshold[s->at.column[p]]))
            return false;
    return true;
}

/* Returns whether rounding errors of residuals in doubles, about eps ||A||
 * ||x||, are too small to matter to the test of convergence. */
static bool rounds_little(const sps_linear *s, const double *norm_x)
{
    for (int p = 0; p < s->k; p++)
        if (!(16 * DBL_EPSILON * s->made.norm_A * norm_x[p] <=
              1e-3 * s->rhs.threshold[s->at.column[p]]))
            return false;
    return true;
}

/* *shown: whether residuals in doubles show that all columns are converged.
 * The verdict on the returned X is in twice the working precision in any
 * case. */
static sps_status show_end(sps_linear *s, bool *shown)
{
    double *norm = s->scratch.numbers, *norm_x = norm + s->columns;
    sps_status st = SPS_OK;

    *shown = false;
    if (s->least.T || s->A->callback.apply || s->A->dtype != SPS_F64 ||
        s->opt.norm == SPS_NORM_BACKWARD)
        return SPS_OK;
    SPS_TRY(spsi_norms(&s->X, norm_x));
    if (!rounds_little(s, norm_x)) return SPS_OK;
    SPS_TRY(spsi_columns_residual(s, &s->R, false));
    SPS_TRY(spsi_least_norms(s, &s->X, &s->R, norm));
    for (int p = 0; p < s->k; p++) norm[p] /= 0.98;
    *shown = all_done(s, norm);
fail:
    return st;
}

/* R = the true residual of all columns, with its norms in resnorm; improved
 * columns are stored, unless all are converged.  *open is the number of columns
 * above their threshold.  X is projected first, as at the end, because the
 * projection rounds.  `last`: the end of the loop is expected, where R is not
 * needed if residuals in doubles suffice. */
static sps_status check_all(sps_linear *s, bool last, int *open)
{
    sps_status st = SPS_OK;
    double *true_norm = s->scratch.numbers;
    bool shown = false;

    *open = 0;
    SPS_TRY(spsi_linear_flush(s));
    spsi_columns_widen(s);
    SPS_TRY(spsi_nullspace_project(s->made.null, &s->X));
    if (last) SPS_TRY(show_end(s, &shown));
    if (shown) return SPS_OK;
    SPS_TRY(spsi_columns_residual(s, &s->R, true));
    SPS_TRY(spsi_least_norms(s, &s->X, &s->R, true_norm));
    if (!all_done(s, true_norm)) SPS_TRY(spsi_best_check(s, true_norm));
    if (s->least.T)
        SPS_TRY(spsi_least_normal(s, &s->X, NULL, &s->R, s->least.normal));
    for (int p = 0; p < s->k; p++) {
        s->resnorm[p] = true_norm[p];
        s->best.gap[s->at.column[p]] = 0;   /* R is the true residual now */
    }
    SPS_TRY(spsi_columns_thresholds(s));
    measure_gain(s);
    for (int p = 0; p < s->k; p++) {
        s->at.done[p] = s->result.column[s->at.column[p]] < 0 ||
                     reached(s, p, 1 - 1e-9);
        if (!s->at.done[p]) ++*open;
    }
fail:
    return st;
}

/* Restarts the open columns from their true residual, which is in R.  Where the
 * attainable accuracy of a residual in doubles was reached, this refines X as
 * LAPACK's xGERFSX does (Demmel et al., ACM TOMS 32, 2006).  The part of R in
 * the null space is rounding error that no search direction can reduce; near
 * convergence it would determine the sign of r'M r. */
static sps_status restart(sps_linear *s, const char *event)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_columns_compact(s, true));
    SPS_TRY(spsi_nullspace_project(s->made.null, &s->R));
    s->course.event = event;
    s->renew = false;
    s->course.begun = s->course.iteration;
    s->course.from_zero = s->course.zero;
    s->course.zero = false;
    SPS_TRY(s->method.type->start(s, s->method.data));
fail:
    return st;
}

/* Compares the residual of the recurrence with the true one, once in
 * true_residual_every iterations.  *replace: whether in some open column the
 * true residual is above the threshold and above 10 times that of the
 * recurrence, which it must then replace. */
static sps_status compare(sps_linear *s, int *replace)
{
    sps_status st = SPS_OK;
    double *true_norm = s->scratch.numbers;
    sps_block T;

    *replace = 0;
    SPS_TRY(spsi_linear_flush(s));
    spsi_linear_room(s, 1, s->least.nrow, s->k, &T);
    SPS_TRY(spsi_columns_true_norms(s, &T, true_norm));
    if (s->opt.norm == SPS_NORM_BACKWARD) SPS_TRY(spsi_columns_thresholds(s));
    SPS_TRY(spsi_best_check(s, true_norm));
    for (int p = 0; p < s->k; p++)
        if (!s->at.done[p] && true_norm[p] > 10 * s->resnorm[p] &&
            true_norm[p] > s->rhs.threshold[s->at.column[p]])
            *replace = 1;
fail:
    return st;
}

/* -------------------------------------------------------------- why to stop */

/* Returns whether the largest residual / threshold of the open columns has not
 * decreased by 1 % over a window of iterations.  Residuals of conjugate
 * gradients may stagnate for long on ill-conditioned systems, so the window is
 * wide. */
static bool stalled(sps_linear *s, double *best, int *since)
{
    double worst = 0, ratio;
    const int64_t n = s->rows;
    const int64_t window = n < 400 ? 2000 : n < 4000 ? 5 * n : 20000;

    for (int p = 0; p < s->k; p++) {
        ratio = spsi_least_level(s, p) /
                fmax(s->rhs.threshold[s->at.column[p]], 1e-300);
        if (!s->at.done[p] && ratio > worst) worst = ratio;
    }
    if (worst < 0.99 * *best) {
        *best = worst;
        *since = s->course.iteration;
    }
    return s->course.iteration - *since > window;
}

static sps_stop limit(const sps_linear *s)
{
    const sps_linear_course *c = &s->course;

    if (spsi_agreed_cancel(s->ctx)) return SPS_STOP_INTERRUPTED;
    if (c->iteration >= s->opt.max_iterations) return SPS_STOP_MAX_ITERATIONS;
    if (s->opt.max_seconds > 0 && c->iteration > 0 &&
        s->made.setup + spsi_agreed_now(s->ctx) - c->started >=
            s->opt.max_seconds)
        return SPS_STOP_MAX_TIME;
    return SPS_STOP_RUNNING;
}

/* ----------------------------------------------------------------- the loop */

/* If a basis in single precision makes no progress, replaces it by one in
 * double precision, if there is memory for it.  *done: whether it was
 * replaced. */
static sps_status promote(sps_linear *s, bool *done)
{
    sps_status st;

    *done = false;
    if (!s->method.floats) return SPS_OK;
    st = s->method.type->widen(s, s->method.data);
    if (st == SPS_ENOMEM || st == SPS_EDEVMEM) {
        spsi_note(s->ctx, "%s: the basis in single precision makes no "
                  "progress, and there is no memory for one in double "
                  "precision",
                  s->method.type->name);
        return SPS_OK;
    }
    if (st != SPS_OK) return st;
    *done = true;
    s->method.floats = false;
    s->course.replacements = 0;
    spsi_note(s->ctx, "%s: the basis in single precision makes no progress; "
              "double precision from iteration %d", s->method.type->name,
              s->course.iteration);
    return SPS_OK;
}

/* Called when all active columns are below their threshold by the recurrence,
 * or a cycle of a method is complete: recomputes the true residual.  A cycle
 * that improved it is not counted as stagnation, nor is a restart after the
 * true residual has halved. */
static sps_status check_progress(sps_linear *s)
{
    sps_linear_course *c = &s->course;
    sps_status st = SPS_OK;
    bool promoted = false, forward;
    int open;

    SPS_TRY(check_all(s, !s->renew, &open));
    forward = c->halved || (s->method.type->flush && c->gained);
    if (open && !forward) SPS_TRY(promote(s, &promoted));
    if (!open) {
        s->stop = SPS_STOP_CONVERGED;
    } else if (promoted) {
        SPS_TRY(restart(s, "basis in doubles"));
    } else if (forward) {
        c->replacements = 0;
        c->replaced += !s->renew;
        SPS_TRY(restart(s, s->renew ? NULL : "residual replaced"));
    } else if (c->replacements >= SPS_REPLACEMENTS) {
        s->stop = SPS_STOP_STAGNATED;
    } else {
        c->replacements++;
        c->replaced++;
        SPS_TRY(restart(s, "residual replaced"));
    }
fail:
    return st;
}

/* Accumulated rounding in a recurrence may change the sign of a curvature.
 * Such a stop reason counts only if it is met again from a true residual, and
 * never with a basis in single precision.  (A breakdown goes to the fallback,
 * if there is one.) */
static bool doubtful(const sps_linear *s)
{
    bool blamed = s->stop == SPS_STOP_SINGULAR ||
                  s->stop == SPS_STOP_PRECOND_INDEFINITE ||
                  (s->stop == SPS_STOP_BREAKDOWN && !s->method.fallback);

    if (s->method.floats) return blamed;
    return blamed && s->course.iteration - s->course.begun > 1 &&
           s->course.replacements < SPS_REPLACEMENTS;
}

/* Sets the fallback up, if that was not done with the solver.  If it cannot be,
 * this solver has none from now on. */
static sps_status prepare_fallback(sps_linear *s, bool *ready)
{
    const sps_status st = spsi_linear_fallback(s);

    *ready = st == SPS_OK;
    if (st != SPS_ENOMEM && st != SPS_EDEVMEM && st != SPS_EUNFIT) return st;
    spsi_note(s->ctx, "method %s, which would continue after %s, is not used: "
              "%s", s->method.fallback->name, s->method.type->name,
              st == SPS_EUNFIT ? sps_context_error(s->ctx)
                               : sps_status_string(st));
    s->method.fallback = NULL;
    return SPS_OK;
}

/* Ends a method on trial that has made its iterations. */
static sps_status end_trial(sps_linear *s)
{
    const sps_linear_method *m = &s->method;
    sps_status st = SPS_OK;
    bool ready;

    if (s->stop || !m->trial || !m->fallback || m->type != m->chosen ||
        s->course.iteration < m->trial)
        return SPS_OK;
    SPS_TRY(prepare_fallback(s, &ready));
    if (ready) s->stop = SPS_STOP_MAX_ITERATIONS;
fail:
    return st;
}

/* Makes one pass of the loop: test, monitor, limits, step.  Sets s->stop to end
 * it. */
static sps_status iterate(sps_linear *s, double *best, int *since)
{
    sps_status st = SPS_OK;
    int open, replace = 0;

    if (!test_columns(s, &open)) {
        s->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    if (!report(s)) s->stop = SPS_STOP_INTERRUPTED;
    if (s->stop) return SPS_OK;
    if (!open) return check_progress(s);
    spsi_columns_track(s, open);
    s->stop = limit(s);
    if (!s->stop && stalled(s, best, since)) {
        SPS_TRY(promote(s, &s->renew));
        *since = s->course.iteration;
        if (!s->renew) s->stop = SPS_STOP_STAGNATED;
    }
    SPS_TRY(end_trial(s));
    if (s->stop) return SPS_OK;
    if (s->renew && s->queue.seen == s->queue.taken) SPS_TRY(check_progress(s));
    if (s->stop) return SPS_OK;
    if (!s->method.type->flush || s->method.type->permute) {
        const int at = s->course.iteration;

        if (at && at % s->opt.true_residual_every == 0)
            SPS_TRY(compare(s, &replace));
        if (replace) return check_progress(s);
        SPS_TRY(spsi_columns_compact(s, false));
    }
    SPS_TRY(spsi_linear_advance(s));
    if (s->width > 0 && s->width < s->course.min_width)
        s->course.min_width = s->width;
    /* sps_cancel may have made the application of M incomplete, and only that
     * the step stop. */
    if (s->stop < 0 && spsi_agreed_cancel(s->ctx))
        s->stop = SPS_STOP_INTERRUPTED;
    if (doubtful(s)) {
        s->stop = SPS_STOP_RUNNING;
        SPS_TRY(check_progress(s));
    }
fail:
    return st;
}

/* Returns whether the block method stopped where a simpler one may continue.
 * This includes values that are not finite: products of blocks may overflow
 * where norms do not (entries of A of 1e-170, hence of M R of 1e170), and the
 * limit of a method on trial. */
static bool falls_back(const sps_linear *s)
{
    return s->method.fallback && s->method.type != s->method.fallback &&
           (s->stop == SPS_STOP_BREAKDOWN || s->stop == SPS_STOP_STAGNATED ||
            s->stop == SPS_STOP_NOT_FINITE ||
            (s->stop == SPS_STOP_MAX_ITERATIONS &&
             s->course.iteration < s->opt.max_iterations));
}

static void swap_method(sps_linear *s)
{
    const sps_linear_type *type = s->method.type;
    void *method = s->method.data;

    s->method.type = s->method.fallback;
    s->method.fallback = type;
    s->method.data = s->method.fallback_data;
    s->method.fallback_data = method;
    s->course.begun = -1;
}

/* Iterates the current method from the state that check_all has left, until
 * s->stop is set. */
static sps_status loop(sps_linear *s, const char *event)
{
    double best = INFINITY;
    int since = s->course.iteration;
    sps_status st;

    SPS_TRY(restart(s, event));
    while (!s->stop) SPS_TRY(iterate(s, &best, &since));
    spsi_linear_drain(s);
fail:
    return st;
}

/* Continues with the fallback: from the best columns, or from the guess. */
static sps_status fall_back(sps_linear *s)
{
    const bool from_guess = s->method.type->from_guess &&
                            s->course.iteration > 0;
    sps_status st;
    int open;

    SPS_TRY(spsi_linear_flush(s));
    SPS_TRY(spsi_best_restore(s, false));
    if (from_guess) SPS_TRY(spsi_best_check(s, s->resnorm));
    if (from_guess) SPS_TRY(spsi_columns_guess(s));
    swap_method(s);
    if (s->course.iteration > 0 || s->stop == SPS_STOP_NOT_FINITE)
        spsi_note(s->ctx, "method %s stopped (%s) after %d iterations; %s with "
                  "method %s",
                  s->method.fallback->name, sps_stop_string(s->stop),
                  s->course.iteration,
                  from_guess ? "restarted from the guess" : "continued",
                  s->method.type->name);
    s->stop = SPS_STOP_RUNNING;
    s->course.replacements = 0;
    SPS_TRY(check_all(s, false, &open));
    if (open) return loop(s, "continued with the fallback method");
    s->stop = SPS_STOP_CONVERGED;
fail:
    return st;
}

/* Restarts the open columns from zero, and measures gains from there.  The
 * first check has stored X as the best iterate so far. */
static sps_status begin_afresh(sps_linear *s, int *open)
{
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++) {
        if (s->at.done[p]) continue;
        SPS_TRY(spsi_columns_zero(&s->X, p));
        s->best.checked[s->at.column[p]] = INFINITY;
    }
    s->course.zero = false;
    SPS_TRY(check_all(s, false, open));
fail:
    return st;
}

static sps_status run(sps_linear *s)
{
    sps_status st = SPS_OK;
    bool ready = false;
    int open;

    SPS_TRY(check_all(s, false, &open));
    if (open && s->course.afresh) SPS_TRY(begin_afresh(s, &open));
    if (!open) {
        s->stop = SPS_STOP_CONVERGED;
        report(s);
        return SPS_OK;
    }
    if (s->method.type->from_guess) SPS_TRY(spsi_columns_keep_guess(s));
    SPS_TRY(loop(s, NULL));
    if (falls_back(s)) SPS_TRY(prepare_fallback(s, &ready));
    if (ready) SPS_TRY(fall_back(s));
    SPS_TRY(spsi_linear_flush(s));
fail:
    return st;
}

/* ------------------------------------------------------------------- solve */

/* Each solve begins with the first method, whatever the last solve fell back
 * to. */
static void reset(sps_linear *s)
{
    if (s->method.type != s->method.chosen) swap_method(s);
    s->stop = SPS_STOP_RUNNING;
    s->course.begun = -1;
    s->renew = false;
    s->method.floats = s->method.single && s->method.type->widen;
    s->course.event = NULL;
    s->course.applies_A = s->course.applies_M = 0;
    s->course.iteration = s->course.replacements = s->course.replaced = 0;
    s->queue.taken = s->queue.seen = 0;
    s->at.few_since = -1;
    s->queue.stride = spsi_columns_latency(s) || spsi_comm_many(s->ctx)
                    ? s->opt.check_every : 1;
    s->width = 0;
    s->course.min_width = s->columns;
    s->rhs.removed = 0;
}

static sps_status solve(sps_linear *s, const sps_block *B, sps_block *X,
                        sps_result *result)
{
    sps_status st, closed;
    double t0, t1;

    reset(s);
    t0 = spsi_now();
    spsi_phase_reset(s->ctx);
    st = spsi_columns_open(s, B, X);
    if (st == SPS_OK) st = run(s);
    s->made.setup = 0;
    /* This is done after a failure, too: X gets the best columns, in the
     * caller's order and units. */
    closed = spsi_columns_close(s, X, st != SPS_OK);
    if (st != SPS_OK || closed != SPS_OK) return st != SPS_OK ? st : closed;
    t1 = spsi_now();
    st = spsi_columns_verdict(s, X);
    if (st == SPS_OK && result)
        spsi_linear_result(s, t1 - t0, spsi_now() - t1, result);
    return st;
}

sps_status spsi_linear_solve(sps_linear *s, const sps_block *B, sps_block *X,
                             sps_result *result)
{
    bool steady;
    sps_status st, given;

    s->course.started = spsi_agreed_now(s->ctx);
    SPS_TRY(spsi_linear_refresh(s));
    SPS_TRY(spsi_residual_take(s, &B));
    steady = spsi_comm_steady(s->ctx, true);
    st = solve(s, B, X, result);
    (void)spsi_comm_steady(s->ctx, steady);
    given = spsi_residual_give(s);
    if (st == SPS_OK) st = given;
fail:
    return st;
}
