/* SPDX-License-Identifier: BSD-3-Clause */
/* ladder.c - solver auto.
 *
 * ladder_plan.c says which steps there are.
 *
 * A step is left when its method ends short of the tolerance, when its share
 * of the time that is left is over, or when its progress so far predicts more
 * iterations than its patience (logarithms of residuals, a straight line);
 * the last has all that is left.  X never gets worse: each step begins with
 * the best X of those before.  Limits of time and iterations hold for all
 * steps together.  A later solve begins with the step that worked last, with
 * the first while none has: where a solve failed says nothing of the next. */
#include "ladder.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "backend.h"
#include "timer.h"

/* ----------------------------------------------------------------- solvers */

static double spent(const sps_ladder *l) { return spsi_now() - l->started; }

/* Seconds that step number at may take; 0: no limit. */
static double seconds_left(const sps_ladder *l, int at, bool last)
{
    const double left = l->opt.max_seconds - spent(l);

    if (l->opt.max_seconds <= 0) return 0;
    return fmax(1e-3, last ? left : left * l->step[at].share);
}

/* A cycle of gmres takes no more than half of the free memory; a small one is
 * not worth the question. */
static int restart(const sps_ladder *l)
{
    const double block = 8.0 * (double)l->A->n *
                         (double)spsi_block_ld(l->k) + 1;
    size_t free_bytes = 0, total = 0;

    if (block * l->opt.restart < 1 << 26) return l->opt.restart;
    if (l->ctx->backend->memory(l->ctx, &free_bytes, &total) != SPS_OK)
        return l->opt.restart;
    return (int)fmax(2, fmin(l->opt.restart,
                             0.5 * (double)free_bytes / block - 4));
}

static bool watch(const sps_progress *p, void *data);

/* Whether step at wants the preconditioner that the step at work made. */
static bool same_precond(const sps_ladder *l, int at)
{
    const sps_step *a = &l->step[l->at], *b = &l->step[at];

    return l->now && l->now->own_M && !strcmp(a->precond, b->precond) &&
           a->droptol == b->droptol && a->fill == b->fill;
}

static sps_status make_solver(sps_ladder *l, int at, sps_solver **s_p,
                              int64_t *live)
{
    const sps_step *step = &l->step[at];
    const int64_t before = l->ctx->live;
    sps_options o = l->opt;
    sps_status st;

    o.solver = step->solver;
    o.precond = step->precond;
    o.monitor = watch;
    o.monitor_data = l;
    o.restart = restart(l);
    if (step->fill > 0) {
        o.droptol = step->droptol;
        o.fill = step->fill;
    }
    o.max_seconds = seconds_left(l, at, false);
    SPS_TRY(spsi_solver_create_step(l->A, same_precond(l, at) ? l->now->M
                                                              : l->M,
                                    l->k, &o, s_p));
    *live = l->ctx->live - before;
fail:
    l->ctx->live = before;        /* the handle of the caller is one */
    return st;
}

static void drop_solver(sps_ladder *l)
{
    if (!l->now) return;
    l->ctx->live += l->live;
    sps_solver_destroy(&l->now);
}

/* s takes over the preconditioner of the step before where it uses it. */
static void take_solver(sps_ladder *l, int at, sps_solver *s, int64_t live)
{
    const int64_t before = l->ctx->live;

    if (l->now && l->now->own_M && s->M == l->now->M) {
        s->own_M = true;
        l->now->own_M = false;
    }
    drop_solver(l);
    l->now = s;
    l->live = live + l->ctx->live - before;
    l->ctx->live = before;
    l->at = at;
}

/* How much memory was free is in the error, not here: a note that is other
 * each time would be kept each time. */
static void tell_none(const sps_ladder *l, int at, sps_status why)
{
    const bool memory = why == SPS_ENOMEM || why == SPS_EDEVMEM;

    spsi_note(l->ctx, "auto: no step %d, %s with %s: %s", at + 1,
              l->step[at].solver, l->step[at].precond,
              memory ? sps_status_string(why) : sps_context_error(l->ctx));
}

/* Reasons to do without a step. */
static bool declined(sps_status st)
{
    return st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EDEVMEM;
}

/* Goes to the first step from `at` on that can be made: one may not fit the
 * matrix or be too large.  *climbed: there was one; else st is the last
 * reason. */
static sps_status climb(sps_ladder *l, int at, bool *climbed)
{
    sps_status st = SPS_OK;

    *climbed = false;
    for (; at < l->count && !*climbed; at++) {
        sps_solver *s = NULL;
        int64_t live = 0;

        if (l->step[at].definite == (l->indefinite ? 1 : -1)) continue;
        st = make_solver(l, at, &s, &live);
        *climbed = st == SPS_OK;
        if (*climbed) take_solver(l, at, s, live);
        else if (declined(st)) tell_none(l, at, st);
        else return st;
    }
    return st;
}

/* gmres alone where no step of the plan can be made. */
static sps_status first_step(sps_ladder *l)
{
    const int planned = l->count;
    bool made;
    sps_status st;

    l->step[l->count++] = (sps_step){ "gmres", "jacobi", 0, 0, 20, 200, 1, 0 };
    drop_solver(l);
    st = climb(l, 0, &made);
    if (l->at < planned) l->count = planned;
    l->home = l->at;
    l->failed = !made;
    return st;
}

/* Back to the step that worked last; where it cannot be made any more one
 * behind it serves, or what is there. */
static sps_status go_home(sps_ladder *l)
{
    bool made = l->now && l->at == l->home;
    sps_status st = SPS_OK;

    if (!made) {
        if (!same_precond(l, l->home)) drop_solver(l);
        st = climb(l, l->home, &made);
    }
    return made || (l->now && declined(st)) ? SPS_OK : st;
}

/* ------------------------------------------------------------------ watch */

/* Iterations that the whole step would take, by the progress so far. */
static double predicted(const sps_ladder *l, int iteration)
{
    const double gain = log(l->first / l->best);
    const double want = log(l->first / fmax(l->opt.rtol, DBL_MIN));

    return gain > 0 ? iteration * want / gain : INFINITY;
}

/* A step beyond its share of the time goes on where its end is in sight. */
static bool ends_in_time(const sps_ladder *l, int iteration)
{
    const double each = (spsi_now() - l->begun) / iteration;

    return each * (predicted(l, iteration) - iteration) <
           0.5 * (l->opt.max_seconds - spent(l));
}

static bool too_slow(sps_ladder *l, const sps_progress *p)
{
    const sps_step *step = &l->step[l->at];
    const int degree = l->now->M ? l->now->M->products + 1 : 1;

    if (p->iteration == 0) l->first = l->best = p->worst;
    if (p->worst < l->best) l->best = p->worst;
    if (!l->watched || !step->patience || p->iteration < 1) return false;
    if (l->allowed > 0 && spsi_now() - l->begun > l->allowed)
        return !ends_in_time(l, p->iteration);
    /* A polynomial of A stands for as many iterations as it has degrees. */
    return p->iteration >= step->look / degree && p->iteration % 10 == 0 &&
           predicted(l, p->iteration) > (double)step->patience / degree;
}

/* The caller's monitor sees one solve. */
static bool watch(const sps_progress *p, void *data)
{
    sps_ladder *l = data;
    sps_progress whole = *p;

    whole.iteration += l->iterations;
    whole.seconds = spent(l);
    if (p->iteration == 0 && l->iterations > 0) whole.event = "next step";
    if (l->opt.monitor && !l->opt.monitor(&whole, l->opt.monitor_data))
        l->stopped = true;
    else
        l->slow = too_slow(l, p);
    return !l->stopped && !l->slow;
}

/* ------------------------------------------------------------------ solve */

static void add_up(sps_result *sum, const sps_result *r)
{
    const sps_result before = *sum;

    *sum = *r;
    sum->iterations += before.iterations;
    sum->restarts += before.restarts;
    sum->applies_A += before.applies_A;
    sum->applies_M += before.applies_M;
    sum->seconds.verify += before.seconds.verify;
    sum->seconds.spmm += before.seconds.spmm;
    sum->seconds.precond += before.seconds.precond;
    sum->seconds.gram += before.seconds.gram;
    sum->seconds.small += before.seconds.small;
}

/* A step that was given up was not interrupted by anybody. */
static void rename_stop(sps_ladder *l, sps_result *r, sps_stop stop)
{
    r->stop = stop;
    for (int j = 0; j < l->k; j++)
        if (l->now->result_column[j] == SPS_STOP_INTERRUPTED)
            l->now->result_column[j] = stop;
}

static bool over(const sps_ladder *l)
{
    return l->iterations >= l->opt.max_iterations ||
           (l->opt.max_seconds > 0 && spent(l) >= l->opt.max_seconds);
}

static sps_status run_step(sps_ladder *l, const sps_block *B, sps_block *X,
                           bool last, sps_result *sum)
{
    sps_result r = { .struct_size = sizeof r };
    const double begun = spsi_now();
    sps_status st;

    l->watched = !last;
    l->slow = false;
    l->begun = begun;
    l->allowed = seconds_left(l, l->at, last);
    l->now->opt.max_seconds = seconds_left(l, l->at, true);
    l->now->opt.max_iterations = l->opt.max_iterations - l->iterations;
    SPS_TRY(sps_solver_linear(l->now, B, X, &r));
    l->iterations += r.iterations;
    if (l->slow)
        rename_stop(l, &r, l->iterations >= l->opt.max_iterations
                               ? SPS_STOP_MAX_ITERATIONS : SPS_STOP_MAX_TIME);
    if (l->count > 1 && (r.stop < 0 || l->at > 0))
        spsi_note(l->ctx, "auto: step %d, %s with %s: %d iteration%s, %.2f s, "
                  "residual %.2e, %s", l->at + 1, r.solver, r.precond,
                  r.iterations, r.iterations == 1 ? "" : "s",
                  spsi_now() - begun, r.worst_residual,
                  l->slow ? "too slow" : sps_stop_string(r.stop));
    add_up(sum, &r);
    if (r.stop == SPS_STOP_INDEFINITE) l->indefinite = true;
fail:
    return st;
}

/* All converged but right-hand sides that are not finite. */
static bool worked(const sps_ladder *l)
{
    for (int j = 0; j < l->k; j++)
        if (l->now->result_column[j] < 0 && isfinite(l->now->norm_b[j]))
            return false;
    return true;
}

/* Whether no other step could do better. */
static bool settled(const sps_ladder *l, const sps_result *r)
{
    return worked(l) || l->stopped || spsi_cancelled(l->ctx) || over(l) ||
           (r->stop == SPS_STOP_NOT_FINITE && l->at == 0) ||
           l->opt.norm == SPS_NORM_START;
}

/* New values: another plan where they ask for one. */
static sps_status follow(sps_ladder *l)
{
    const bool was = l->symmetric;
    sps_looks o;
    sps_status st = SPS_OK;

    if (l->version == l->A->version) return SPS_OK;
    SPS_TRY(spsi_ladder_look(l, &o));
    if (l->symmetric == was) return SPS_OK;
    spsi_ladder_plan(l, &o);
    spsi_ladder_tell(l, &o);
    st = first_step(l);
fail:
    return st;
}

sps_status spsi_ladder_linear(sps_ladder *l, const sps_block *B, sps_block *X,
                              sps_result *result)
{
    sps_result sum = { .struct_size = sizeof sum };
    const double now = spsi_now();
    bool more = true;
    sps_status st;

    l->started = now - l->setup;
    l->setup = 0;
    l->iterations = 0;
    l->stopped = false;
    SPS_TRY(follow(l));
    if (l->failed) SPS_TRY(go_home(l));
    l->failed = true;
    while (more) {
        more = l->at + 1 < l->count && l->opt.norm != SPS_NORM_START;
        SPS_TRY(run_step(l, B, X, !more, &sum));
        if (settled(l, &sum) || !more) break;
        st = climb(l, l->at + 1, &more);
        if (st != SPS_OK && !declined(st)) return st;
        if (!more) SPS_TRY(run_step(l, B, X, true, &sum));
    }
    sum.seconds.solve = spsi_now() - now - sum.seconds.verify;
    l->failed = !worked(l) && sum.stop != SPS_STOP_INTERRUPTED;
    if (worked(l)) l->home = l->at;
    if (result) *result = sum;
fail:
    return st;
}

/* ------------------------------------------------------------------- life */

sps_status spsi_ladder_create(const sps_operator *A, sps_precond *M, int k,
                              const sps_options *opt, sps_ladder **l_p)
{
    sps_status st;
    sps_ladder *l = NULL;
    sps_looks o;

    SPS_TRY(SPS_NEW(A->ctx, 1, &l));
    l->ctx = A->ctx;
    l->A = A;
    l->M = M;
    l->k = k;
    l->opt = *opt;
    SPS_TRY(spsi_ladder_look(l, &o));
    spsi_ladder_weigh(l, &o);
    spsi_ladder_plan(l, &o);
    spsi_ladder_tell(l, &o);
    l->started = spsi_now();
    SPS_TRY(first_step(l));
    l->setup = spent(l);
    *l_p = l;
    return SPS_OK;

fail:
    spsi_ladder_destroy(&l);
    return st;
}

void spsi_ladder_destroy(sps_ladder **l_p)
{
    sps_ladder *l = *l_p;

    if (!l) return;
    drop_solver(l);
    spsi_free(l->ctx, l);
    *l_p = NULL;
}
