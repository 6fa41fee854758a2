/* SPDX-License-Identifier: BSD-3-Clause */
/* chain.c - the fallback chain of solver auto.
 *
 * chain_plan.c chooses its steps, chain_pace.c judges their convergence, and
 * chain_report.c makes one result of theirs.
 *
 * A step is abandoned when its method stops before the tolerance is reached,
 * when its share of the remaining time is used up, or when its convergence so
 * far (logarithm of the residual, extrapolated linearly) predicts more
 * iterations than its `patience`; the last step may use all the remaining time.
 *
 * X never becomes worse: each step starts from the best X of the steps before
 * it.  The exception is ilut after factors.  Factors leave X equal to A^-1 B
 * but for rounding.  Where that rounding alone is above the tolerance (x large,
 * b small), no correction of X gains anything, but a method that minimises
 * ||r|| and starts from zero passes smaller residuals on its way; the better of
 * the two X is kept.
 *
 * The limits of time and iterations apply to all steps together.  A later solve
 * starts with the step that succeeded last, or with the first one if none has:
 * a failure says nothing about the next right-hand side. */
#include "core/abi.h"
#include "solvers/auto/chain.h"

#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "core/comm.h"
#include "core/timer.h"
#include "driver/columns.h"

/* Basis columns per cycle of gmres with factors: a few steps correct the
 * rounding errors of the factors, and a larger basis would need memory. */
enum { FACTOR_RESTART = 10 };

/* ----------------------------------------------------------------- solvers */

static bool time_over(const sps_chain *l)
{
    return l->opt.max_seconds > 0 && spsi_chain_spent(l) >= l->opt.max_seconds;
}

/* Returns the seconds that step `at` may use; 0: no limit. */
static double seconds_left(const sps_chain *l, int at, bool last)
{
    const double left = l->opt.max_seconds - spsi_chain_spent(l);

    if (l->opt.max_seconds <= 0) return 0;
    return fmax(1e-3, last ? left : left * l->step[at].share);
}

/* Limits the basis of gmres to half of the free memory; for a small basis the
 * query is not worth its cost. */
static int restart(const sps_chain *l)
{
    const double block = 8.0 * (double)l->A->n *
                         (double)spsi_block_ld(l->k) + 1;
    size_t free_bytes = 0, total = 0;

    if (block * l->opt.restart < 1 << 26 || spsi_comm_many(l->ctx))
        return l->opt.restart;
    if (l->ctx->backend->memory(l->ctx, &free_bytes, &total) != SPS_OK)
        return l->opt.restart;
    return (int)fmax(2, fmin(l->opt.restart,
                             0.5 * (double)free_bytes / block - 4));
}

static bool monitor_step(const sps_progress *p, void *data);

/* Returns whether step `at` uses the same preconditioner as the current one. */
static bool same_precond(const sps_chain *l, int at)
{
    const sps_step *a = &l->step[l->at], *b = &l->step[at];

    return l->now && l->now->made.own_M && !strcmp(a->precond, b->precond) &&
           a->droptol == b->droptol && a->fill == b->fill;
}

/* Returns the seconds that the factors of step `at` may take; 0 if the step has
 * no factors. */
static double worth(const sps_chain *l, int at)
{
    const sps_chain_factors *f = &l->factors;

    return strcmp(l->step[at].precond, "factor") ? 0
                                                 : f->worth[at >= f->early];
}

sps_status spsi_chain_conjugate(const sps_linear_args *a, sps_linear **s_p)
{
    sps_linear_args chosen = *a;

    chosen.type = spsi_linear_type(a->k > 1 ? "block_cg" : "cg");
    chosen.fallback = a->k > 1 ? spsi_linear_type("cg") : NULL;
    chosen.mixed = true;
    spsi_note(a->A->ctx, a->k > 1
              ? "solver auto: block_cg, since %d right-hand sides can share "
                "their search directions; cg is the fallback"
              : "solver auto: cg, since there is %d right-hand side", a->k);
    return spsi_linear_create(&chosen, s_p);
}

/* Creates refinement with factors, and adds a note that says why. */
static sps_status make_direct(sps_chain *l, int at, const sps_linear_args *a,
                              sps_linear **s_p)
{
    const char *fallback = spsi_chain_method(l, at);
    sps_status st;

    l->A->cache->worth = l->step[at].complete
                             ? fmax(l->factors.complete, 1e-9) : 0;
    st = spsi_chain_direct(a, fallback, s_p);
    l->A->cache->worth = 0;
    if (st == SPS_OK && l->step[at].complete)
        spsi_note(l->ctx, "auto: direct, complete factors and refinement, "
                  "since their time is predicted to be less than that of "
                  "other methods; %s is the fallback", fallback);
    if (st == SPS_OK && worth(l, at) > 0)
        spsi_note(l->ctx, "auto: direct, factors and refinement, since %s; %s "
                  "is the fallback", at < l->factors.early
                  ? "their time is predicted to be less than that of iterations"
                  : "cheaper methods did not converge", fallback);
    return st;
}

static sps_status make_solver(sps_chain *l, int at, sps_linear **s_p)
{
    const sps_step *step = &l->step[at];
    sps_options o = l->opt;
    sps_linear_args a = {
        .A = l->A, .M = same_precond(l, at) ? l->now->M : l->M, .k = l->k,
        .opt = &o, .owned = true };
    sps_status st;

    o.solver = step->solver;
    o.precond = step->precond;
    o.monitor = monitor_step;
    o.monitor_data = (void *)l;
    o.restart = restart(l);
    if (step->fill > 0) {
        o.droptol = step->droptol;
        o.fill = step->fill;
    }
    o.max_seconds = seconds_left(l, at, false);
    if (!strcmp(step->precond, "factor") && o.restart > FACTOR_RESTART)
        o.restart = FACTOR_RESTART;
    if (worth(l, at) > 0 && !same_precond(l, at)) {
        const double before = spsi_deadline_begin(l->ctx, o.max_seconds);

        st = spsi_chain_weigh(l, worth(l, at));
        spsi_deadline_end(l->ctx, before);
        if (st != SPS_OK) return st;
    }
    if (spsi_chain_has_factors(l, at)) return make_direct(l, at, &a, s_p);
    l->A->cache->worth = at == l->factors.deep ? l->factors.deep_worth : 0;
    st = strcmp(step->solver, "auto") ? spsi_linear_named(&a, step->solver, s_p)
                                      : spsi_chain_conjugate(&a, s_p);
    l->A->cache->worth = 0;
    return st;
}

/* Returns whether a step with factors need not be tried: factors were refused
 * because of their predicted time or for the values of A, or an earlier step
 * had them. */
static bool hopeless(const sps_chain *l, int at)
{
    const sps_chain_factors *f = &l->factors;

    return worth(l, at) > 0 && (worth(l, at) <= f->refused || f->completed ||
                                f->unfit || (f->factored && at >= f->early));
}

/* Returns whether only rounding limits X, and step `at` would start from it. */
static bool exhausted(const sps_chain *l, int at)
{
    return l->solve.limited && at + 1 < l->count &&
           strcmp(l->step[at].precond, "ilut") != 0;
}

/* Makes s the current solver.  If s uses the preconditioner of the previous
 * solver, s becomes its owner. */
static void take_solver(sps_chain *l, int at, sps_linear *s)
{
    if (l->now && l->now->made.own_M && s->M == l->now->M) {
        s->made.own_M = true;
        l->now->made.own_M = false;
    }
    spsi_linear_destroy(&l->now);
    l->now = s;
    l->at = at;
    l->factors.factored = l->factors.factored || worth(l, at) > 0;
    l->factors.completed = l->factors.completed || l->step[at].complete;
}

/* The note omits the number of free bytes that the error text contains: a text
 * that differs each time would be stored as a new note each time. */
static void note_skipped(const sps_chain *l, int at, sps_status why)
{
    const bool memory = why == SPS_ENOMEM || why == SPS_EDEVMEM;

    spsi_note(l->ctx, "auto: %s with %s is skipped: %s",
              spsi_chain_name(l, at), l->step[at].precond,
              memory ? sps_status_string(why) : sps_context_error(l->ctx));
}

/* Returns whether a step that failed with this status is skipped. */
static bool declined(sps_status st)
{
    return st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EDEVMEM ||
           st == SPS_EABSENT;
}

/* Returns whether the caller has chosen the preconditioner. */
static bool chosen(const sps_chain *l)
{
    return l->M || strcmp(l->opt.precond, "auto");
}

static bool is_multigrid(const sps_chain *l, int at)
{
    return !l->M && !strcmp(l->step[at].precond, "amg") &&
           strcmp(l->opt.precond, "amg");
}

/* Moves to the first step from `at` on that can be created: a step may not fit
 * the matrix or need too much memory.  After the time limit no step is created,
 * except the last one if there is no solver yet.  *created is set if a step was
 * created; if not, the status of the last failure is returned. */
static sps_status escalate(sps_chain *l, int at, bool *created)
{
    const char *expired = NULL;   /* a preconditioner that exceeded its time */
    sps_status st = SPS_OK;

    *created = false;
    for (; at < l->count && !*created; at++) {
        const double allowed = seconds_left(l, at, false);
        const double began = spsi_agreed_now(l->ctx);
        sps_linear *s = NULL;

        if (l->now && time_over(l)) break;
        if (time_over(l) && at + 1 < l->count) continue;
        if (l->step[at].definite == (l->indefinite ? 1 : -1)) continue;
        if (expired && !strcmp(expired, l->step[at].precond)) continue;
        if (hopeless(l, at) || exhausted(l, at)) continue;
        st = make_solver(l, at, &s);
        if (st == SPS_OK && is_multigrid(l, at))
            st = spsi_chain_keeps(l, s->M);
        if (st != SPS_OK) spsi_linear_destroy(&s);
        *created = st == SPS_OK;
        if (*created) take_solver(l, at, s);
        else if (!declined(st) || (st == SPS_EABSENT && chosen(l))) return st;
        else note_skipped(l, at, st);
        if (!*created && allowed > 0 &&
            spsi_agreed_now(l->ctx) - began > allowed)
            expired = l->step[at].precond;
    }
    return st;
}

/* Creates the first step that can be set up; gmres with jacobi if no step of
 * the plan can. */
static sps_status first_step(sps_chain *l)
{
    const int planned = l->count;
    bool made;
    sps_status st;

    l->step[l->count++] = (sps_step){ "gmres", "jacobi", 0, 0, 20, 200, 1, 0,
                                      false };
    spsi_linear_destroy(&l->now);
    st = escalate(l, 0, &made);
    if (l->at < planned) l->count = planned;
    else if (made && chosen(l) && !l->M)
        spsi_note(l->ctx, "auto: gmres with jacobi, since no method could be "
                  "set up with preconditioner %s", l->opt.precond);
    l->last_good = l->at;
    l->failed = !made;
    return st;
}

/* Returns to the step that succeeded last.  If its solver can no longer be
 * created, a later step is taken, or else the current one is kept. */
static sps_status reuse_last_good(sps_chain *l)
{
    bool made = l->now && l->at == l->last_good;
    sps_status st = SPS_OK;

    if (!made) {
        if (!same_precond(l, l->last_good)) spsi_linear_destroy(&l->now);
        st = escalate(l, l->last_good, &made);
    }
    return made || (l->now && declined(st)) ? SPS_OK : st;
}

/* ---------------------------------------------------------------- monitor */

/* The monitor of each step.  The caller's monitor sees all steps as one
 * solve. */
static bool monitor_step(const sps_progress *p, void *data)
{
    sps_chain *l = data;
    sps_progress whole = *p;

    whole.iteration += l->solve.iterations;
    whole.seconds = spsi_chain_spent(l);
    if (p->iteration == 0 && l->solve.iterations > 0) whole.event = "next step";
    if (!spsi_agreed_monitor(l->ctx, l->opt.monitor, l->opt.monitor_data,
                             &whole))
        l->solve.stopped = true;
    else
        l->pace.slow = spsi_chain_too_slow(l, p);
    return !l->solve.stopped && !l->pace.slow;
}

/* ------------------------------------------------------------------ solve */

static bool over(const sps_chain *l)
{
    return l->solve.iterations >= l->opt.max_iterations || time_over(l);
}

static sps_status run_step(sps_chain *l, const sps_block *B, sps_block *X,
                           bool last, sps_result *sum)
{
    sps_result r = { .struct_size = sizeof r };
    const double begun = spsi_agreed_now(l->ctx);
    sps_status st;

    l->pace.may_abandon = !last;
    l->pace.slow = false;
    l->pace.begun = begun;
    l->pace.allowed = seconds_left(l, l->at, last);
    l->now->opt.max_seconds = seconds_left(l, l->at, true);
    l->now->opt.max_iterations = l->opt.max_iterations - l->solve.iterations;
    l->now->course.afresh = l->solve.rounded &&
                            !strcmp(l->step[l->at].precond, "ilut");
    l->solve.tried++;
    SPS_TRY(spsi_linear_solve(l->now, B, X, &r));
    l->solve.limited = spsi_chain_limited(l);
    if (spsi_chain_has_factors(l, l->at))
        l->solve.rounded = r.stop == SPS_STOP_STAGNATED ||
                           r.stop == SPS_STOP_ROUNDING ||
                           r.stop == SPS_STOP_SINGULAR;
    spsi_chain_record_range(l);
    l->solve.iterations += r.iterations;
    if (l->pace.slow && r.stop == SPS_STOP_INTERRUPTED)
        spsi_chain_replace_stop(l, &r,
                                l->solve.iterations >= l->opt.max_iterations
                                ? SPS_STOP_MAX_ITERATIONS : SPS_STOP_MAX_TIME);
    if (l->count > 1 && (!spsi_chain_worked(l) || l->at > 0))
        spsi_note(l->ctx, "auto: step %d, %s with %s: %d iteration%s, %.2f s, "
                  "residual %.2e, %s", l->solve.tried, r.solver, r.precond,
                  r.iterations, r.iterations == 1 ? "" : "s",
                  spsi_agreed_now(l->ctx) - begun, r.worst_residual,
                  l->pace.slow && r.stop < 0 ? "too slow"
                                             : sps_stop_string(r.stop));
    spsi_chain_add_up(sum, &r);
    if (r.stop == SPS_STOP_INDEFINITE) l->indefinite = true;
fail:
    return st;
}

/* Returns whether the solve ends without trying another step: all columns have
 * converged, no step can do better (A has an entry that is not finite), the
 * solve was stopped, or a limit is reached. */
static bool finished(const sps_chain *l, const sps_result *r)
{
    return spsi_chain_worked(l) || l->solve.stopped ||
           spsi_agreed_cancel(l->ctx) || over(l) ||
           (r->stop == SPS_STOP_NOT_FINITE && !l->finite) ||
           l->opt.norm == SPS_NORM_START;
}

/* Refreshes the current step after new values of A.  If it does not fit them,
 * the chain moves to a later step. */
static sps_status follow(sps_chain *l)
{
    bool made = true;
    sps_status st;

    if (!l->now) return SPS_OK;
    l->now->opt.max_seconds = seconds_left(l, l->at, false);
    l->factors.factored = worth(l, l->at) > 0;
    l->factors.completed = l->step[l->at].complete;
    st = spsi_linear_refresh(l->now);
    if (st == SPS_OK && is_multigrid(l, l->at) && l->now->M->rate > 0)
        st = spsi_chain_keeps(l, l->now->M);
    if (!declined(st) || chosen(l)) return st;
    note_skipped(l, l->at, st);
    spsi_linear_destroy(&l->now);
    /* If no other step can be created either, the next solve tries again. */
    l->failed = true;
    l->last_good = l->at + 1;
    st = escalate(l, l->last_good, &made);
    if (made) l->last_good = l->at;
    return made ? SPS_OK : st;
}

/* After new values of A: plans again if its symmetry has changed. */
static sps_status replan(sps_chain *l)
{
    const bool was = l->symmetric;
    sps_chain_traits o;
    sps_status st = SPS_OK;

    if (l->version == l->A->version) return SPS_OK;
    SPS_TRY(spsi_chain_examine(l, &o));
    l->factors.factored = l->factors.unfit = l->factors.completed = false;
    l->condition = 0;
    if (l->symmetric == was) return follow(l);
    SPS_TRY(spsi_chain_plan(l, &o));
    spsi_chain_note(l, &o);
    st = first_step(l);
fail:
    return st;
}

sps_status spsi_chain_linear(sps_chain *l, const sps_block *B, sps_block *X,
                             sps_result *result)
{
    sps_result sum = { .struct_size = sizeof sum };
    double began;
    bool more = true, left = true;
    sps_status st;

    l->solve.started = spsi_agreed_now(l->ctx) - l->solve.setup;
    l->solve.setup = 0;
    l->solve.iterations = l->solve.tried = 0;
    l->solve.stopped = l->solve.rounded = l->solve.limited = false;
    memset(l->solve.ranged, 0, sizeof l->solve.ranged);
    SPS_TRY(replan(l));
    began = spsi_now();
    if (l->failed) SPS_TRY(reuse_last_good(l));
    l->failed = true;
    while (more) {
        left = more = l->at + 1 < l->count && l->opt.norm != SPS_NORM_START;
        SPS_TRY(run_step(l, B, X, !more, &sum));
        if (finished(l, &sum) || !more) break;
        st = escalate(l, l->at + 1, &more);
        if (st != SPS_OK && !declined(st)) return st;
        st = SPS_OK;
        if (!more && !over(l)) SPS_TRY(run_step(l, B, X, true, &sum));
    }
    if (left && over(l) && !spsi_chain_worked(l) &&
        sum.stop != SPS_STOP_INTERRUPTED)
        spsi_chain_report_limit(l, &sum);
    if (sum.stop == SPS_STOP_STAGNATED || sum.stop == SPS_STOP_SINGULAR)
        spsi_chain_report_range(l, &sum);
    sum.seconds.solve = spsi_now() - began - sum.seconds.verify;
    l->failed = !spsi_chain_worked(l) && sum.stop != SPS_STOP_INTERRUPTED;
    if (spsi_chain_worked(l)) l->last_good = l->at;
    if (result) spsi_abi_copy(&sum, result);
fail:
    return st;
}

/* ---------------------------------------------------- creation, destruction */

sps_status spsi_chain_create(const sps_linear_args *a, sps_chain **l_p)
{
    sps_context *ctx = a->A->ctx;
    sps_chain *l = NULL;
    const double before = spsi_deadline_begin(ctx, a->opt->max_seconds);
    sps_chain_traits o;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &l));
    l->ctx = ctx;
    l->A = a->A;
    l->M = a->M;
    l->k = a->k;
    l->opt = *a->opt;
    l->solve.started = spsi_agreed_now(ctx);
    SPS_TRY(spsi_chain_examine(l, &o));
    spsi_chain_precision(l, &o);
    SPS_TRY(spsi_chain_plan(l, &o));
    spsi_chain_note(l, &o);
    SPS_TRY(first_step(l));
    l->solve.setup = spsi_chain_spent(l);
    spsi_deadline_end(ctx, before);
    *l_p = l;
    return SPS_OK;

fail:
    spsi_deadline_end(ctx, before);
    spsi_chain_destroy(&l);
    return st;
}

void spsi_chain_destroy(sps_chain **l_p)
{
    sps_chain *l = *l_p;

    if (!l) return;
    spsi_linear_destroy(&l->now);
    spsi_free(l->ctx, l);
    *l_p = NULL;
}
