/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_solve.c - the one driver loop of eigenproblems: test, monitor, step,
 * lock, and the proof.
 *
 * The block X holds more columns than pairs are wanted; the last `guard` need
 * not converge.  Columns whose residual is below the limit stop making
 * directions (soft locking).  Once all that the block is to find have
 * converged, X is started again from fresh products; what stands that test is
 * locked: it moves to `fixed`, X is filled up with random columns and the
 * search goes on in the complement (hard locking), until all are found.
 *
 * Columns of fixed behind the locked ones hold the best X seen of those still
 * wanted, so that a solve that ends early hands out its best. */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "timer.h"

#define RESTARTS 20     /* fresh products that disagreed, at most */
#define SNAPSHOT 10     /* iterations from one look for the best to the next */

static int wanted(const sps_eigen *e)
{
    int left = e->count - e->locked;

    return left < e->m ? left : e->m;
}

/* Columns of X that are no guards. */
static int unguarded(const sps_eigen *e)
{
    int64_t all = e->n - e->given - e->locked - (e->means ? e->nulls : 0);
    int most = e->m == all ? e->m : e->m - e->guard;

    return most < 1 ? 1 : most;
}

/* How many leading columns are to converge before they are locked, and how
 * many may be: guards that have converged too stay, and guard the rest. */
static int target(const sps_eigen *e)
{
    int most = unguarded(e), left = wanted(e);

    return left < most ? left : most;
}

static double limit_of(const sps_eigen *e, int j)
{
    return SPS_SOLVER_AIM * spsi_eigen_limit(e, e->theta[j], e->xnorm[j],
                                             e->mnorm[j]);
}

/* Marks what is done; how many leading columns are, and in *ratio how far the
 * worst wanted one is from its limit. */
static int mark(sps_eigen *e, double *ratio)
{
    int leading = 0;

    *ratio = 0;
    for (int j = 0; j < e->m; j++) {
        double limit = limit_of(e, j);

        e->done[j] = e->resnorm[j] <= limit;
        if (e->done[j] && leading == j) leading++;
        if (j < target(e) && !e->done[j])
            *ratio = fmax(*ratio, limit > 0 ? e->resnorm[j] / limit
                                            : HUGE_VAL);
    }
    return leading;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Residuals in units of the tolerance's reference; true: go on. */
static bool report(sps_eigen *e)
{
    sps_progress g = { .iteration = e->iteration, .k = e->count };
    double unit = e->opt.rtol > 0 ? e->opt.rtol : 1;

    if (!e->opt.monitor) return true;
    for (int j = 0; j < wanted(e); j++) {
        double limit = spsi_eigen_limit(e, e->theta[j], e->xnorm[j],
                                        e->mnorm[j]);

        e->relative[e->locked + j] =
            e->resnorm[j] == 0 ? 0 : unit * e->resnorm[j] / limit;
        g.converged += e->done[j];
    }
    memcpy(e->scratch, e->relative, (size_t)e->count * sizeof(double));
    qsort(e->scratch, (size_t)e->count, sizeof(double), by_value);
    g.residual = e->relative;
    g.worst = e->scratch[e->count - 1];
    g.median = e->scratch[e->count / 2];
    g.converged += e->locked;
    g.width = e->directions;
    g.seconds = spsi_now() - e->started;
    g.event = e->event;
    e->event = NULL;
    return e->opt.monitor(&g, e->opt.monitor_data);
}

static sps_stop limit(const sps_eigen *e)
{
    if (spsi_cancelled(e->ctx)) return SPS_STOP_INTERRUPTED;
    if (e->iteration >= e->opt.max_iterations) return SPS_STOP_MAX_ITERATIONS;
    if (e->opt.max_seconds > 0 &&
        spsi_now() - e->started >= e->opt.max_seconds)
        return SPS_STOP_MAX_TIME;
    return SPS_STOP_RUNNING;
}

/* ------------------------------------------------------------------ blocks */

static void set_columns(sps_eigen *e, int m)
{
    e->m = m;
    spsi_block_view(e->S, 0, m, &e->X);
    spsi_block_view(e->AS, 0, m, &e->AX);
    spsi_block_view(e->MS, 0, m, &e->MX);
}

static void set_locked(sps_eigen *e, int locked)
{
    e->locked = locked;
    spsi_block_narrow(e->fixed, e->given + locked);
    spsi_block_narrow(e->dual, e->given + locked);
}

/* X(:, 0 .. m-1): guesses of the caller, those that are there, else random.
 * Guards stay random: eigenvectors of other pairs as a guess would be all that
 * is ever seen. */
static sps_status draw(sps_eigen *e, const sps_block *guess)
{
    sps_status st = SPS_OK;
    int most = unguarded(e), k = guess->k < most ? guess->k : most;
    sps_block from, to;

    SPS_TRY(spsi_eigen_draw(e, &e->X, e->ctx->opt.seed));
    SPS_TRY(spsi_norms(guess, e->scratch));
    for (int j = 0; j < k; j++) {
        if (!(e->scratch[j] > 0) || !isfinite(e->scratch[j])) continue;
        spsi_block_view(guess, j, 1, &from);
        spsi_block_view(&e->X, j, 1, &to);
        SPS_TRY(spsi_copy(&from, &to));
    }
fail:
    return st;
}

/* Leading columns of X go to fixed; the rest move up, random ones follow. */
static sps_status lock(sps_eigen *e, int leading)
{
    sps_status st = SPS_OK;
    int k = leading < target(e) ? leading : target(e);
    int64_t left = e->n - e->given - e->locked - k -
                   (e->means ? e->nulls : 0);
    int rest = e->m - k, m = e->width < left ? e->width : (int)left;
    sps_block from, to;

    spsi_block_view(&e->X, 0, k, &from);
    spsi_block_view(e->fixed, e->given + e->locked, k, &to);
    SPS_TRY(spsi_copy(&from, &to));
    if (e->M) {
        spsi_block_view(&e->MX, 0, k, &from);
        spsi_block_view(e->dual, e->given + e->locked, k, &to);
        SPS_TRY(spsi_copy(&from, &to));
    }
    set_locked(e, e->locked + k);
    if (e->locked == e->count) return SPS_OK;
    spsi_block_narrow(e->room, rest);
    spsi_block_view(&e->X, k, rest, &from);
    SPS_TRY(spsi_copy(&from, e->room));
    set_columns(e, m);
    if (rest > m) rest = m;
    spsi_block_narrow(e->room, rest);
    spsi_block_view(&e->X, 0, rest, &to);
    SPS_TRY(spsi_copy(e->room, &to));
    spsi_block_view(&e->X, rest, m - rest, &to);
    SPS_TRY(spsi_eigen_draw(e, &to, e->ctx->opt.seed + (uint64_t)e->locked));
fail:
    return st;
}

/* How good X is as a whole: the wanted residuals in units of their limits, on
 * a logarithmic scale so that each counts. */
static double badness(const sps_eigen *e)
{
    double sum = 0;

    for (int j = 0; j < wanted(e); j++) {
        double limit = limit_of(e, j);

        if (!isfinite(e->resnorm[j])) return HUGE_VAL;
        if (e->resnorm[j] > limit)
            sum += limit > 0 ? log(e->resnorm[j] / limit) : 1e3;
    }
    return sum;
}

/* Keeps X where it is better than what was kept since the last locking. */
static sps_status snapshot(sps_eigen *e, double *best)
{
    sps_status st = SPS_OK;
    double now = badness(e);
    sps_block from, to;

    if (!(now < *best)) return SPS_OK;
    *best = now;
    spsi_block_view(&e->X, 0, wanted(e), &from);
    spsi_block_view(e->fixed, e->given + e->locked, wanted(e), &to);
    SPS_TRY(spsi_copy(&from, &to));
fail:
    return st;
}

/* ----------------------------------------------------------------- the loop */

typedef struct course {
    double best, ratio, least;   /* badness kept; worst ratio, the least yet */
    int leading, since;          /* iteration of the last progress */
    int failures;                /* fresh products disagreed, since locking */
    bool fresh;                  /* nothing but start since the products */
} course;

static sps_status start(sps_eigen *e, course *c)
{
    sps_status st = e->type->start(e, e->method);

    c->fresh = true;
    e->directions = 0;
    return st;
}

/* Whether rounding explains the residuals of all pairs that are still open.
 * It may reach lower: ||A|| says little of a matrix of mixed units. */
static bool at_rounding(const sps_eigen *e)
{
    for (int j = 0; j < target(e); j++)
        if (!e->done[j] && e->resnorm[j] >
            100 * spsi_eigen_floor(e, e->theta[j], e->xnorm[j]))
            return false;
    return true;
}

/* No gain of one per cent for that long is too long: near rounding a few
 * iterations are, far from it LOBPCG without a good preconditioner may stand
 * still. */
static int patience(const sps_eigen *e)
{
    return at_rounding(e) ? 20 : e->n < 1000 ? 500 : 2000;
}

/* Iterations since the last gain. */
static int idle(const sps_eigen *e, course *c, int leading)
{
    if (c->ratio < 0.99 * c->least || leading > c->leading) {
        c->least = fmin(c->ratio, c->least);
        c->leading = leading > c->leading ? leading : c->leading;
        c->since = e->iteration;
    }
    return e->iteration - c->since;
}

/* The block has what it was to find; true, it is locked. */
static sps_status harvest(sps_eigen *e, course *c, int leading)
{
    sps_status st = SPS_OK;

    if (!c->fresh) return start(e, c);
    SPS_TRY(lock(e, leading));
    if (e->locked == e->count) {
        e->stop = SPS_STOP_CONVERGED;
        return SPS_OK;
    }
    e->event = "pairs locked";
    *c = (course){ .best = HUGE_VAL, .least = HUGE_VAL,
                   .since = e->iteration };
    SPS_TRY(start(e, c));
    if (!e->stop) SPS_TRY(snapshot(e, &c->best));
fail:
    return st;
}

static int converged(const sps_eigen *e)
{
    int count = 0;

    for (int j = 0; j < target(e); j++) count += e->done[j];
    return count;
}

/* X with the converged ones of the wanted first; MX too. */
static sps_status converged_first(sps_eigen *e)
{
    sps_block *block[2] = { &e->X, &e->MX };
    sps_status st = SPS_OK;
    int k = 0, wanted_now = target(e);

    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < e->m; j++)
            if ((j < wanted_now && e->done[j]) == !pass) e->order[k++] = j;
    spsi_block_narrow(e->room, e->m);
    for (int i = 0; i < (e->M ? 2 : 1); i++) {
        SPS_TRY(spsi_gather(block[i], e->order, e->room));
        SPS_TRY(spsi_copy(e->room, block[i]));
    }
fail:
    return st;
}

/* Some have converged, the others do not get on: in a cluster as wide as the
 * tolerance every vector that comes in changes places with one that had
 * converged.  Those that have are locked, so that the others can. */
static sps_status harvest_some(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;
    int count = converged(e);

    if (!c->fresh) return start(e, c);
    SPS_TRY(converged_first(e));
    SPS_TRY(harvest(e, c, count));
fail:
    return st;
}

/* Pairs that cannot get better are locked as they are: the proof will say of
 * each what it is. */
static sps_status give_up(sps_eigen *e, course *c)
{
    c->fresh = true;
    return harvest(e, c, target(e));
}

static sps_status iterate(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (e->iteration % SNAPSHOT == 0) SPS_TRY(snapshot(e, &c->best));
    e->stop = limit(e);
    if (e->stop) return SPS_OK;
    SPS_TRY(spsi_eigen_move_precond(e));
    SPS_TRY(e->type->step(e, e->method));
    e->iteration++;
    c->fresh = false;
fail:
    return st;
}

static sps_status run(sps_eigen *e)
{
    sps_status st = SPS_OK;
    course c = { .best = HUGE_VAL, .least = HUGE_VAL };
    int leading, waited, told = -1;

    SPS_TRY(start(e, &c));
    if (!e->stop) SPS_TRY(snapshot(e, &c.best));
    while (!e->stop) {
        leading = mark(e, &c.ratio);
        if (e->iteration > told && !report(e)) e->stop = SPS_STOP_INTERRUPTED;
        told = e->iteration;
        if (e->stop) break;
        waited = idle(e, &c, leading);
        if (leading >= target(e)) {
            if (!c.fresh) {
                e->restarts++;
                c.failures++;
            }
            SPS_TRY(harvest(e, &c, leading));
        } else if (waited > patience(e) / 5 && converged(e) &&
                   !at_rounding(e)) {
            SPS_TRY(harvest_some(e, &c));
        } else if (waited > patience(e) || c.failures > RESTARTS) {
            if (at_rounding(e)) SPS_TRY(give_up(e, &c));
            else e->stop = SPS_STOP_STAGNATED;
        } else {
            SPS_TRY(iterate(e, &c));
        }
    }
    if (e->stop < 0 && e->stop != SPS_STOP_NOT_FINITE &&
        e->stop != SPS_STOP_MASS_INDEFINITE)
        SPS_TRY(snapshot(e, &c.best));
fail:
    return st;
}

/* Fewer columns than pairs were at work when it ended: random ones make up
 * the number, so that what is handed out has full rank. */
static sps_status complete(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int have = e->locked + wanted(e);
    sps_block none, W, MW;

    if (e->locked == e->count) return SPS_OK;
    spsi_block_view(e->fixed, 0, 0, &none);
    for (int from = e->locked; from < e->count; from += W.k) {
        int k = (from < have ? have : e->count) - from;
        sps_stop stop = e->stop;

        if (k > e->width) k = e->width;
        spsi_block_view(e->fixed, e->given + from, k, &W);
        spsi_block_view(e->dual, e->given + from, k, &MW);
        if (from >= have) SPS_TRY(sps_block_random(
                &W, e->ctx->opt.seed + 7 + (uint64_t)from));
        e->stop = SPS_STOP_RUNNING;
        SPS_TRY(spsi_eigen_orth(e, &none, &none, &W, &MW));
        e->stop = stop;
        if (W.k < k) break;   /* no pair of numbers can be made of it */
        set_locked(e, from + W.k);
    }
fail:
    return st;
}

static void reset(sps_eigen *e)
{
    e->stop = SPS_STOP_RUNNING;
    e->event = NULL;
    e->applies_A = e->applies_M = e->applies_T = 0;
    e->iteration = e->restarts = e->directions = 0;
    e->missed = -1;
    e->shift_failures = 0;
    set_locked(e, 0);
    set_columns(e, e->width);
    for (int j = 0; j < e->count; j++) e->relative[j] = 1;
}

sps_status spsi_eigen_solve(sps_eigen *e, sps_block *X, double *lambda,
                            sps_eigen_result *result)
{
    sps_status st = SPS_OK;
    const double *phase = e->ctx->phase_seconds;
    sps_seconds seconds = { 0 };
    double now;

    reset(e);
    e->started = spsi_now();
    spsi_phase_reset(e->ctx);
    if (e->type->step) {
        SPS_TRY(draw(e, X));
        SPS_TRY(run(e));
        SPS_TRY(complete(e));
    } else {
        SPS_TRY(spsi_eigen_dense(e));
    }
    SPS_TRY(sps_context_sync(e->ctx));
    now = spsi_now();
    seconds = (sps_seconds){
        .solve = now - e->started, .spmm = phase[SPS_PHASE_SPMM],
        .precond = phase[SPS_PHASE_PRECOND], .gram = phase[SPS_PHASE_GRAM],
        .small = phase[SPS_PHASE_SMALL],
    };
    SPS_TRY(spsi_eigen_prove(e, X));
    if (e->opt.verify_count) {
        set_locked(e, e->count);
        SPS_TRY(spsi_eigen_count(e));
        set_locked(e, 0);
    }
    seconds.verify = spsi_now() - now;
    if (lambda) memcpy(lambda, e->lambda, (size_t)e->count * sizeof *lambda);
    if (result) spsi_eigen_result(e, &seconds, result);
fail:
    return st;
}
