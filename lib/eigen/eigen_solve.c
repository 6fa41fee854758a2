/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_solve.c - the driver loop of eigenproblems: test, monitor, step, lock,
 * verify.
 *
 * The block X has more columns than pairs are wanted; the last `guard` of them
 * need not converge.  Columns whose residual is below the tolerance make no
 * more search directions (soft locking).  Once all wanted columns have
 * converged, A X and M X are computed anew and the residuals are formed in
 * twice the working precision, as verification will do.  Columns that pass are
 * locked: they move to `fixed`, random columns take their place in X, and the
 * search goes on in the orthogonal complement (hard locking), until all pairs
 * are found.
 *
 * Columns of `fixed` behind the locked ones hold the best X so far of the
 * pairs still wanted; a solve that ends early returns these. */
#include "eigen/eigen.h"

#include <math.h>
#include <string.h>

#include "core/comm.h"
#include "core/timer.h"

#define RESTARTS 20     /* how often new products may contradict updated ones */
#define SNAPSHOT 10     /* iterations between two updates of the best X */
#define SWEEPS 2        /* steps of a refinement; the second often gains too */
#define IDLE 10         /* iterations without a gain before a refinement */

/* The progress since pairs were last locked. */
typedef struct course {
    double best;         /* excess (eigen_ritz.h) of the X that is stored */
    double ratio;        /* largest of residual / tolerance, wanted pairs */
    double least;        /* smallest value of ratio so far */
    int leading;         /* largest number of leading columns that had
                            converged */
    int since;           /* iteration of the last gain */
    int failures;        /* times only updated products showed convergence */
    bool fresh;          /* A X and M X are new products, not updated ones */
    bool confirmed;      /* residuals are in twice the working precision */
    bool refined;        /* refined since the last gain */
    bool exhausted;      /* all residuals above tolerance are rounding errors */
} course;

/* Marks the columns that have converged; returns how many leading ones have, or
 * 0 while wanted pairs may be missing from the block.  *ratio is the largest
 * ratio of a wanted residual to its tolerance. */
static int mark(sps_eigen *e, double *ratio)
{
    sps_ritz *r = &e->ritz;
    int leading = 0, target = spsi_subspace_target(&e->space);

    *ratio = 0;
    for (int j = 0; j < e->space.m; j++) {
        double limit = spsi_ritz_tolerance(r, j);

        r->done[j] = r->resnorm[j] <= limit;
        if (r->done[j] && leading == j) leading++;
        if (j < target && !r->done[j])
            *ratio = fmax(*ratio, limit > 0 ? r->resnorm[j] / limit : HUGE_VAL);
    }
    if (!spsi_transform_hides(&e->transform, r)) return leading;
    e->transform.waited += leading >= target;
    return 0;
}

static sps_status start(sps_eigen *e, course *c)
{
    sps_status st = e->type->start(e, e->method);

    c->fresh = true;
    c->confirmed = false;
    e->space.directions = 0;
    return st;
}

/* Stores X if it is better than what was stored since pairs were last locked,
 * unless its rank is too small; with shift and invert it stores (A - sigma
 * M)^-1 M X, to which the residuals belong. */
static sps_status snapshot(sps_eigen *e, double *best)
{
    double now = spsi_ritz_excess(&e->ritz);

    if (!(now < *best) || e->space.X.k < spsi_subspace_wanted(&e->space))
        return SPS_OK;
    *best = now;
    return spsi_subspace_keep(&e->space, e->transform.inverted ? &e->space.AX
                                                               : &e->space.X);
}

/* Starts from X after pairs were locked or the shift has moved. */
static sps_status begin(sps_eigen *e, course *c)
{
    *c = (course){ .best = HUGE_VAL, .least = HUGE_VAL,
                   .since = e->search.iteration };
    return start(e, c);
}

/* Recomputes A X and M X; with shift and invert X first becomes (A - sigma
 * M)^-1 M X, to which the residuals belong. */
static sps_status renew(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (e->transform.inverted) SPS_TRY(spsi_copy(&e->space.AX, &e->space.X));
    SPS_TRY(start(e, c));
fail:
    return st;
}

/* --------------------------------------------------- residuals and rounding */



/* Returns whether rounding may explain the residuals of all wanted columns that
 * have not converged, by a bound from norms; for matrices of mixed units ||A||
 * gives a bound far above the actual rounding errors. */
static bool near_rounding(const sps_ritz *r)
{
    const sps_subspace *s = r->space;

    for (int j = 0; j < spsi_subspace_target(s); j++)
        if (!r->done[j] &&
            r->resnorm[j] > 100 * spsi_pencil_attainable(
                                      s->pencil, r->theta[j], r->xnorm[j]))
            return false;
    return true;
}

/* Sets c->exhausted to whether rounding (eigen_rounding.c) explains all
 * residuals of target columns, from new products, that are above the
 * tolerance. */
static sps_status test_rounding(const sps_ritz *r, course *c)
{
    const sps_subspace *s = r->space;
    sps_status st = SPS_OK;
    double least, most;

    c->exhausted = true;
    for (int j = 0; j < spsi_subspace_target(s) && c->exhausted; j++) {
        double limit = spsi_ritz_tolerance(r, j);

        if (r->resnorm[j] <= limit) continue;
        SPS_TRY(spsi_pencil_rounding(s->pencil, &s->X, j, r->theta[j], &least,
                                     &most));
        c->exhausted = limit < least && r->resnorm[j] <= most;
    }
fail:
    return st;
}

/* Sets X -= sign T R and makes new products; with shift and invert X becomes
 * (A - sigma M)^-1 M X instead (renew). */
static sps_status correct(sps_eigen *e, course *c)
{
    sps_subspace *s = &e->space;
    sps_status st = SPS_OK;

    if (!e->transform.inverted) {
        spsi_block_narrow(s->R, s->m);
        spsi_block_narrow(s->work, s->m);
        SPS_TRY(spsi_eigen_precondition(&e->precond, s->R, NULL, s->work));
        SPS_TRY(spsi_axpby(-e->wanted.sign, s->work, 1, &s->X));
    }
    SPS_TRY(renew(e, c));
fail:
    return st;
}

/* Restores X to the best one that was stored. */
static sps_status undo(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_subspace_restore(&e->space));
    SPS_TRY(start(e, c));
fail:
    return st;
}

/* Refinement by steps of inverse iteration, exact if T is an inverse.
 * Rayleigh-Ritz does not see components along eigenvectors of huge lambda that
 * change x'A x by less than its rounding error, though they dominate the
 * residual, and each new direction brings such components back; T damps them.
 * Where a poor T makes X worse the previous X is restored. */
static sps_status refine(sps_eigen *e, course *c)
{
    bool able = e->transform.inverted || spsi_eigen_preconditioned(&e->precond);
    sps_stop *stop = &e->search.stop;
    sps_status st = SPS_OK;

    e->search.event = "polished";
    c->refined = true;
    c->best = HUGE_VAL;   /* of updated products, not comparable */
    SPS_TRY(renew(e, c));
    if (!*stop) SPS_TRY(snapshot(e, &c->best));
    for (int sweep = 0; able && sweep < SWEEPS && !*stop; sweep++) {
        SPS_TRY(correct(e, c));
        if (*stop) break;
        able = spsi_ritz_excess(&e->ritz) <= c->best;
        SPS_TRY(able ? snapshot(e, &c->best) : undo(e, c));
    }
    if (!*stop) SPS_TRY(test_rounding(&e->ritz, c));
fail:
    return st;
}

/* Recomputes the leading residuals in twice the working precision.  With shift
 * and invert space.R is the residual of another operator, and AS has free
 * columns after X right after a start. */
static sps_status confirm(sps_ritz *r, int count, bool inverted)
{
    sps_subspace *s = r->space;
    sps_block R;

    if (inverted) spsi_block_view(s->AS, s->m, count, &R);
    else spsi_block_view(s->R, 0, count, &R);
    return spsi_ritz_confirm(r, count, &R);
}

/* Called before columns are locked.  The first call makes new products; the
 * next one, if X is still converged, computes residuals in twice the working
 * precision: `start` has rotated X, and in pencils of mixed units the rounding
 * errors of that may raise residuals. */
static sps_status check_again(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (!c->fresh) return renew(e, c);
    SPS_TRY(confirm(&e->ritz, spsi_subspace_target(&e->space),
                    e->transform.inverted));
    c->confirmed = true;
fail:
    return st;
}

/* ------------------------------------------------------------------ locking */



/* Locks the leading columns and replaces them by random ones. */
static sps_status lock(sps_eigen *e, int leading)
{
    uint64_t seed;
    sps_status st = SPS_OK;
    sps_block fresh;

    SPS_TRY(spsi_subspace_lock(&e->space, leading, &fresh));
    if (e->deflation.locked == e->count) return SPS_OK;
    seed = e->ctx->opt.seed + (uint64_t)e->deflation.locked;
    SPS_TRY(spsi_eigen_draw(&e->precond, &fresh, seed));
fail:
    return st;
}

/* The leading columns have converged: locks them once they are confirmed, and
 * continues with the others. */
static sps_status lock_leading(sps_eigen *e, course *c, int leading)
{
    sps_status st = SPS_OK;

    if (!c->confirmed) return check_again(e, c);
    SPS_TRY(lock(e, leading));
    if (e->deflation.locked == e->count) {
        e->search.stop = SPS_STOP_CONVERGED;
        return SPS_OK;
    }
    e->search.event = "pairs locked";
    e->transform.waited = 0;
    SPS_TRY(begin(e, c));
    if (!e->search.stop) SPS_TRY(snapshot(e, &c->best));
fail:
    return st;
}

/* Returns how many of the columns to be locked have converged, or 0 while
 * wanted pairs may be missing from the block. */
static int converged(const sps_transform *t, const sps_ritz *r)
{
    int count = 0;

    if (spsi_transform_hides(t, r)) return 0;
    for (int j = 0; j < spsi_subspace_target(r->space); j++)
        count += r->done[j];
    return count;
}

/* Handles columns that have converged while the others make no progress: in a
 * cluster as narrow as the tolerance every new vector changes places with a
 * converged one.  When the converged ones are locked, the others can
 * converge. */
static sps_status lock_converged(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;
    int count = converged(&e->transform, &e->ritz);

    if (!c->confirmed) return check_again(e, c);
    SPS_TRY(spsi_ritz_converged_first(&e->ritz));
    SPS_TRY(lock_leading(e, c, count));
fail:
    return st;
}

/* Returns whether what has converged should be locked now: with new products
 * and no refinement left, another iteration would undo what these gained. */
static bool settled(const course *c)
{
    return c->fresh && (c->refined || c->failures > 0);
}

/* Locks the target columns, refined, although they have not all converged,
 * since no iteration improves them: verification decides about each. */
static sps_status lock_unconverged(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;

    if (!settled(c)) SPS_TRY(refine(e, c));
    if (e->search.stop) return SPS_OK;
    c->confirmed = true;
    SPS_TRY(lock_leading(e, c, spsi_subspace_target(&e->space)));
fail:
    return st;
}

/* ----------------------------------------------------------------- the loop */

/* Returns how many iterations without a gain of one per cent are allowed: few
 * near rounding; many elsewhere, since a method without a good preconditioner
 * may stagnate for long; with shift and invert a better shift helps more than
 * many iterations. */
static int patience(const sps_eigen *e)
{
    if (e->transform.inverted) return 100;
    return near_rounding(&e->ritz) ? 50 : e->pencil.rows < 1000 ? 500 : 2000;
}

/* Returns whether converged columns are to be locked without the others: far
 * from rounding, after a fifth of the patience. */
static bool overdue(const sps_eigen *e, int idle)
{
    return idle > patience(e) / 5 && !near_rounding(&e->ritz);
}

/* Counts iterations since the last gain: 1 % of the worst ratio, or more
 * columns. */
static int count_idle(course *c, int leading, int iteration)
{
    if (c->ratio < 0.99 * c->least || leading > c->leading) {
        c->least = fmin(c->ratio, c->least);
        c->leading = leading > c->leading ? leading : c->leading;
        c->since = iteration;
        c->refined = c->exhausted = false;
    }
    return iteration - c->since;
}

/* Returns whether there are no directions because the block spans the whole
 * space; X may still gain from a refinement. */
static bool spans_all(const sps_eigen *e, const course *c)
{
    return e->search.stop == SPS_STOP_STAGNATED && e->space.directions == 0 &&
           !e->transform.inverted && !c->refined;
}

/* One step, which allocates nothing unless it solves with A - sigma M. */
static sps_status step(sps_eigen *e)
{
    const bool steady = spsi_comm_steady(e->ctx, !e->transform.inverted);
    const sps_status st = e->type->step(e, e->method);

    (void)spsi_comm_steady(e->ctx, steady);
    return st;
}

static sps_status iterate(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;
    sps_search *search = &e->search;

    if (search->iteration % SNAPSHOT == 0) SPS_TRY(snapshot(e, &c->best));
    search->stop = spsi_eigen_limit(e);
    if (search->stop) return SPS_OK;
    SPS_TRY(e->policy->move_precond(&e->precond, &e->ritz, search));
    SPS_TRY(step(e));
    search->iteration++;
    c->fresh = c->confirmed = false;
    if (!spans_all(e, c)) return SPS_OK;
    search->stop = SPS_STOP_RUNNING;
    SPS_TRY(refine(e, c));
fail:
    return st;
}

/* Moves an unsuitable shift (eigen_transform_shift.c), even if it has just
 * stopped the search, which then continues from X. */
static sps_status move_shift(sps_eigen *e, course *c)
{
    sps_status st = SPS_OK;
    bool moved;

    SPS_TRY(spsi_transform_move(&e->transform, &e->ritz, &e->search, &moved));
    if (moved) SPS_TRY(begin(e, c));
fail:
    return st;
}

/* Decides what to do next, when the first `leading` columns have converged and
 * the last `idle` iterations have gained nothing. */
static sps_status advance(sps_eigen *e, course *c, int leading, int idle)
{
    if (leading >= spsi_subspace_target(&e->space)) {
        if (!c->fresh) {
            e->search.restarts++;
            c->failures++;
        }
        return lock_leading(e, c, leading);
    }
    if (converged(&e->transform, &e->ritz) &&
        (settled(c) || overdue(e, idle)))
        return lock_converged(e, c);
    if (near_rounding(&e->ritz) && idle > IDLE && !c->refined)
        return refine(e, c);
    if (c->exhausted || idle > patience(e) || c->failures > RESTARTS) {
        if (c->exhausted || near_rounding(&e->ritz))
            return lock_unconverged(e, c);
        e->search.stop = SPS_STOP_STAGNATED;
        return SPS_OK;
    }
    return iterate(e, c);
}

static sps_status run(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_search *search = &e->search;
    course c = { .best = HUGE_VAL, .least = HUGE_VAL };
    int leading, idle, reported = -1;

    SPS_TRY(start(e, &c));
    if (!search->stop) SPS_TRY(snapshot(e, &c.best));
    for (;;) {
        SPS_TRY(move_shift(e, &c));
        if (search->stop) break;
        leading = mark(e, &c.ratio);
        if (search->iteration > reported && !spsi_eigen_report(e))
            search->stop = SPS_STOP_INTERRUPTED;
        reported = search->iteration;
        if (search->stop) break;
        idle = count_idle(&c, leading, search->iteration);
        SPS_TRY(advance(e, &c, leading, idle));
    }
    if (search->stop < 0 && search->stop != SPS_STOP_NOT_FINITE &&
        search->stop != SPS_STOP_MASS_INDEFINITE)
        SPS_TRY(snapshot(e, &c.best));
fail:
    return st;
}

static void reset(sps_eigen *e)
{
    e->search.stop = SPS_STOP_RUNNING;
    e->search.event = NULL;
    e->pencil.applies_A = e->pencil.applies_M = 0;
    e->precond.applies = e->transform.inner_iterations = 0;
    e->search.iteration = e->search.restarts = e->space.directions = 0;
    e->proof.missed = -1;
    e->transform.failures = e->transform.waited = 0;
    spsi_deflation_set_locked(&e->deflation, 0);
    spsi_subspace_set_columns(&e->space, e->space.width);
    for (int j = 0; j < e->count; j++) e->relative[j] = 1;
}

sps_status spsi_eigen_solve(sps_eigen *e, sps_block *X, double *lambda,
                            sps_eigen_result *result)
{
    sps_status st = SPS_OK;
    const double *phase = e->ctx->phase_seconds;
    sps_seconds seconds = { 0 };
    double began, now;

    reset(e);
    e->search.started = spsi_agreed_now(e->ctx);
    began = spsi_now();
    spsi_phase_reset(e->ctx);
    if (e->type->step) {
        SPS_TRY(spsi_eigen_guess(e, X));
        SPS_TRY(run(e));
        SPS_TRY(spsi_subspace_complete(&e->space));
    } else {
        SPS_TRY(e->type->solve(e, e->method));
    }
    SPS_TRY(sps_context_sync(e->ctx));
    now = spsi_now();
    seconds = (sps_seconds){
        .solve = now - began, .spmm = phase[SPS_PHASE_SPMM],
        .precond = phase[SPS_PHASE_PRECOND], .gram = phase[SPS_PHASE_GRAM],
        .small = phase[SPS_PHASE_SMALL],
    };
    SPS_TRY(spsi_proof_make(&e->proof, e->search.stop, X));
    if (e->opt.verify_count) SPS_TRY(e->policy->count(e));
    seconds.verify = spsi_now() - now;
    if (lambda)
        memcpy(lambda, e->proof.lambda, (size_t)e->count * sizeof *lambda);
    if (result) spsi_eigen_result(e, &seconds, result);
fail:
    return st;
}
