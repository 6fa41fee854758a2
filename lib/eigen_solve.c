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
#define SWEEPS 2        /* of a polish: the second still gains as a rule */
#define GLOSS 10        /* iterations without a gain before one */

/* Marks what is done; how many leading columns are, and in *ratio how far the
 * worst wanted one is from its limit. */
static int mark(sps_eigen *e, double *ratio)
{
    int leading = 0;

    *ratio = 0;
    for (int j = 0; j < e->m; j++) {
        double limit = spsi_eigen_aim(e, j);

        e->done[j] = e->resnorm[j] <= limit;
        if (e->done[j] && leading == j) leading++;
        if (j < spsi_eigen_target(e) && !e->done[j])
            *ratio = fmax(*ratio, limit > 0 ? e->resnorm[j] / limit
                                            : HUGE_VAL);
    }
    if (!spsi_eigen_hides(e)) return leading;
    e->held += leading >= spsi_eigen_target(e);
    return 0;
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
    for (int j = 0; j < spsi_eigen_wanted(e); j++) {
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

/* ----------------------------------------------------------------- the loop */

typedef struct course {
    double best, ratio, least;   /* badness kept; worst ratio, the least yet */
    int leading, since;          /* iteration of the last progress */
    int failures;                /* fresh products disagreed, since locking */
    bool fresh;                  /* nothing but start since the products */
    bool polished, over;         /* since the last progress; no more to gain */
} course;

static sps_status start(sps_eigen *e, course *c)
{
    sps_status st = e->type->start(e, e->method);

    c->fresh = true;
    e->directions = 0;
    return st;
}

/* X again, from fresh products; behind a shift, (A - sigma M)^-1 M X in its
 * place, which is what residuals spoke of. */
static sps_status renew(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (e->inverted) SPS_TRY(spsi_copy(&e->AX, &e->X));
    SPS_TRY(start(e, c));
fail:
    return st;
}

/* Whether rounding may explain the residuals of all pairs that are still open,
 * by norms.  It reaches lower as a rule: ||A|| says little of a matrix of mixed
 * units. */
static bool near_rounding(const sps_eigen *e)
{
    for (int j = 0; j < spsi_eigen_target(e); j++)
        if (!e->done[j] && e->resnorm[j] >
            100 * spsi_eigen_floor(e, e->theta[j], e->xnorm[j]))
            return false;
    return true;
}

/* X becomes the best there was again. */
static sps_status undo(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_eigen_restore(e));
    SPS_TRY(start(e, c));
fail:
    return st;
}

/* Whether the residuals of fresh products are rounding for all that are still
 * open. */
static sps_status look_whether_over(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;
    double least, most;

    c->over = true;
    for (int j = 0; j < spsi_eigen_target(e) && c->over; j++) {
        double limit = spsi_eigen_aim(e, j);

        if (e->resnorm[j] <= limit) continue;
        SPS_TRY(spsi_eigen_rounding(e, &e->X, j, e->theta[j], &least, &most));
        c->over = limit < least && e->resnorm[j] <= most;
    }
fail:
    return st;
}

/* X - T R, and fresh products. */
static sps_status correct(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (!e->inverted) {
        spsi_block_narrow(e->R, e->m);
        spsi_block_narrow(e->room, e->m);
        SPS_TRY(spsi_eigen_precondition(e, e->R, e->room));
        SPS_TRY(spsi_axpby(-e->sign, e->room, 1, &e->X));
    }
    SPS_TRY(renew(e, c));
fail:
    return st;
}

/* Steps of inverse iteration as far as T is an inverse.  Rayleigh and Ritz do
 * not see parts along vectors of huge lambda that change x'A x by less than its
 * rounding, though they make up the residual, and leave such parts of each new
 * direction; T takes them away.  With a poor T what there was comes back. */
static sps_status polish(sps_eigen *e, course *c)
{
    bool able = e->inverted || (e->T && !e->T_left);
    sps_status st = SPS_OK;

    e->event = "polished";
    c->polished = true;
    c->best = HUGE_VAL;   /* it was of products carried along */
    SPS_TRY(renew(e, c));
    if (!e->stop) SPS_TRY(spsi_eigen_snapshot(e, &c->best));
    for (int sweep = 0; able && sweep < SWEEPS && !e->stop; sweep++) {
        SPS_TRY(correct(e, c));
        if (e->stop) break;
        able = spsi_eigen_badness(e) <= c->best;
        SPS_TRY(able ? spsi_eigen_snapshot(e, &c->best) : undo(e, c));
    }
    if (!e->stop) SPS_TRY(look_whether_over(e, c));
fail:
    return st;
}

/* No gain of one per cent for that long is too long: near rounding a few
 * iterations are, far from it LOBPCG without a good preconditioner may stand
 * still; behind a shift another shift is better than many iterations. */
static int patience(const sps_eigen *e)
{
    if (e->inverted) return 100;
    return near_rounding(e) ? 50 : e->n < 1000 ? 500 : 2000;
}

/* What has converged now will not stay so: an iteration brings back what
 * renewing took away. */
static bool settled(const course *c)
{
    return c->fresh && (c->polished || c->failures > 0);
}

/* Far from rounding, what has converged waits no longer for the rest. */
static bool late(const sps_eigen *e, int waited)
{
    return waited > patience(e) / 5 && !near_rounding(e);
}

/* Iterations since the last gain. */
static int idle(const sps_eigen *e, course *c, int leading)
{
    if (c->ratio < 0.99 * c->least || leading > c->leading) {
        c->least = fmin(c->ratio, c->least);
        c->leading = leading > c->leading ? leading : c->leading;
        c->since = e->iteration;
        c->polished = c->over = false;
    }
    return e->iteration - c->since;
}

/* The block has what it was to find; true, it is locked. */
static sps_status harvest(sps_eigen *e, course *c, int leading)
{
    sps_status st = SPS_OK;

    if (!c->fresh) return renew(e, c);
    SPS_TRY(spsi_eigen_lock(e, leading));
    if (e->locked == e->count) {
        e->stop = SPS_STOP_CONVERGED;
        return SPS_OK;
    }
    e->event = "pairs locked";
    e->held = 0;
    *c = (course){ .best = HUGE_VAL, .least = HUGE_VAL,
                   .since = e->iteration };
    SPS_TRY(start(e, c));
    if (!e->stop) SPS_TRY(spsi_eigen_snapshot(e, &c->best));
fail:
    return st;
}

static int converged(const sps_eigen *e)
{
    int count = 0;

    if (spsi_eigen_hides(e)) return 0;
    for (int j = 0; j < spsi_eigen_target(e); j++) count += e->done[j];
    return count;
}

/* Some have converged, the others do not get on: in a cluster as wide as the
 * tolerance every vector that comes in changes places with one that had
 * converged.  Those that have are locked, so that the others can. */
static sps_status harvest_some(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;
    int count = converged(e);

    if (!c->fresh) return renew(e, c);
    SPS_TRY(spsi_eigen_converged_first(e));
    SPS_TRY(harvest(e, c, count));
fail:
    return st;
}

/* Pairs that get no better are locked as they are, polished: the proof will say
 * of each what it is. */
static sps_status give_up(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (!settled(c)) SPS_TRY(polish(e, c));
    if (e->stop) return SPS_OK;
    c->fresh = true;
    SPS_TRY(harvest(e, c, spsi_eigen_target(e)));
fail:
    return st;
}

static sps_status iterate(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (e->iteration % SNAPSHOT == 0) SPS_TRY(spsi_eigen_snapshot(e, &c->best));
    e->stop = limit(e);
    if (e->stop) return SPS_OK;
    SPS_TRY(spsi_eigen_move_precond(e));
    SPS_TRY(e->type->step(e, e->method));
    e->iteration++;
    c->fresh = false;
fail:
    return st;
}

/* The block spans all there is, so there are no directions; X may gain yet. */
static bool spans_all(const sps_eigen *e, const course *c)
{
    return e->stop == SPS_STOP_STAGNATED && e->directions == 0 &&
           !e->inverted && !c->polished;
}

/* Whatever happened, a pole that was the cause is moved, and X goes on from
 * there. */
static sps_status replace_pole(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;
    bool moved;

    SPS_TRY(spsi_eigen_move_pole(e, &moved));
    if (!moved) return SPS_OK;
    *c = (course){ .best = HUGE_VAL, .least = HUGE_VAL,
                   .since = e->iteration };
    SPS_TRY(start(e, c));
fail:
    return st;
}

static sps_status run(sps_eigen *e)
{
    sps_status st = SPS_OK;
    course c = { .best = HUGE_VAL, .least = HUGE_VAL };
    int leading, waited, told = -1;

    SPS_TRY(start(e, &c));
    if (!e->stop) SPS_TRY(spsi_eigen_snapshot(e, &c.best));
    for (;;) {
        SPS_TRY(replace_pole(e, &c));
        if (e->stop) break;
        leading = mark(e, &c.ratio);
        if (e->iteration > told && !report(e)) e->stop = SPS_STOP_INTERRUPTED;
        told = e->iteration;
        if (e->stop) break;
        waited = idle(e, &c, leading);
        if (leading >= spsi_eigen_target(e)) {
            if (!c.fresh) {
                e->restarts++;
                c.failures++;
            }
            SPS_TRY(harvest(e, &c, leading));
        } else if (converged(e) && (settled(&c) || late(e, waited))) {
            SPS_TRY(harvest_some(e, &c));
        } else if (near_rounding(e) && waited > GLOSS && !c.polished) {
            SPS_TRY(polish(e, &c));
        } else if (c.over || waited > patience(e) ||
                   c.failures > RESTARTS) {
            if (c.over || near_rounding(e)) SPS_TRY(give_up(e, &c));
            else e->stop = SPS_STOP_STAGNATED;
        } else {
            SPS_TRY(iterate(e, &c));
            if (spans_all(e, &c)) {
                e->stop = SPS_STOP_RUNNING;
                SPS_TRY(polish(e, &c));
            }
        }
    }
    if (e->stop < 0 && e->stop != SPS_STOP_NOT_FINITE &&
        e->stop != SPS_STOP_MASS_INDEFINITE)
        SPS_TRY(spsi_eigen_snapshot(e, &c.best));
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
    e->shift_failures = e->held = 0;
    spsi_eigen_set_locked(e, 0);
    spsi_eigen_take_columns(e, e->width);
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
        SPS_TRY(spsi_eigen_guess(e, X));
        SPS_TRY(run(e));
        SPS_TRY(spsi_eigen_complete(e));
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
        spsi_eigen_set_locked(e, e->count);
        SPS_TRY(spsi_eigen_count(e));
        spsi_eigen_set_locked(e, 0);
    }
    seconds.verify = spsi_now() - now;
    if (lambda) memcpy(lambda, e->lambda, (size_t)e->count * sizeof *lambda);
    if (result) spsi_eigen_result(e, &seconds, result);
fail:
    return st;
}
