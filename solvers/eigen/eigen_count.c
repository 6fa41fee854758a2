/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_count.c - checks whether pairs were missed.
 *
 * Where factors are possible, eigenvalues are counted by Sylvester's law of
 * inertia: A - t M = L D L' has as many negative pivots as the pencil has
 * eigenvalues below t.
 * With at least SPARSE rows the factors are sparse, if the factor module is
 * installed and they are predicted to take at most SECONDS; else, with up to
 * LARGEST rows, they are dense.
 *
 * Elsewhere a second search starts from another random block in the complement
 * of the pairs found.  Its Ritz values lie within the spectrum, so a Ritz value
 * between the pairs found proves that a pair was missed; near a shift inside
 * the spectrum a Ritz value alone proves nothing, and its residual must show an
 * eigenvalue there.  If the search finds nothing, that is not a proof, but a
 * missed pair would have to escape two searches. */
#include "core/comm.h"
#include "eigen_policy.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/timer.h"
#include "operator/direct.h"

#define SPARSE 500
#define SECONDS 60
#define LARGEST 5000
#define ITERATIONS 200  /* largest number of iterations of the second search */

/* Returns the distance from lambda_i at which a count may begin or end: twice
 * the error bound of the pair; where the pair is limited by rounding, at least
 * twice the error of a factorisation. */
static double margin_of(const sps_proof *q, int i)
{
    const sps_pencil *p = q->space->pencil;
    double wrong =
        4 * sqrt((double)p->rows) * DBL_EPSILON * spsi_pencil_unit(p);

    return 2 * (q->pair[i] == SPS_STOP_ROUNDING ? fmax(q->bound[i], wrong)
                                                : q->bound[i]);
}

/* Returns the number of pairs before the last gap that is wider than the error
 * bounds; *t is the far end of that gap, just before the next pair, so that a
 * pair missed within the gap is counted.  Returns 0 if there is no gap; *t then
 * lies before all pairs. */
static int before_gap(const sps_proof *q, double *t)
{
    for (int i = q->count - 1; i > 0; i--) {
        double low = spsi_selection_rank(q->wanted, q->lambda[i - 1]);
        double high = spsi_selection_rank(q->wanted, q->lambda[i]);

        *t = high - margin_of(q, i) - 1e-9 * fabs(high);
        if (*t > low + margin_of(q, i - 1)) return i;
    }
    *t = spsi_selection_rank(q->wanted, q->lambda[0]);
    *t -= margin_of(q, 0) + 1e-9 * fabs(*t);
    return 0;
}

/* Makes A regular where A and M share null vectors: for each of them one row
 * and column of A, d->fixing_rows[t], is replaced by that of the identity. */
static void fix_rows(const sps_deflation *d, sps_small *A)
{
    for (int t = 0; d->fixing_rows && t < d->columns; t++) {
        int g = (int)d->fixing_rows[t];

        for (int i = 0; i < A->rows; i++)
            *spsi_small_at(A, i, g) = *spsi_small_at(A, g, i) = i == g;
    }
}

/* Counts the eigenvalues of the pencil below t, by dense factors. */
static sps_status below(sps_subspace *s, sps_small *A, sps_small *M, double t,
                        int *count)
{
    sps_status st = SPS_OK;
    const sps_pencil *p = s->pencil;
    int n = (int)p->n;

    SPS_TRY(spsi_eigen_densify(s, p->A, A));
    if (p->M) SPS_TRY(spsi_eigen_densify(s, p->M, M));
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            *spsi_small_at(A, i, j) -=
                t * (p->M ? *spsi_small_at(M, i, j) : i == j);
    fix_rows(s->deflation, A);
    SPS_TRY(spsi_small_inertia(A, count));
fail:
    return st;
}

/* Counts the eigenvalues of the pencil below t by sparse factors; A and M must
 * not share null vectors.  Returns SPS_EUNFIT if a pivot is zero up to rounding
 * or the factors would take too long. */
static sps_status below_by_factors(const sps_pencil *p, double t, int *count)
{
    sps_csr *C = NULL;
    sps_operator *op = NULL;
    sps_direct *d = NULL;
    sps_status st;

    SPS_TRY(spsi_pencil_combine(p, 1, t, &C));
    SPS_TRY(sps_operator_csr(p->ctx, C, 1, NULL, &op));
    SPS_TRY(spsi_direct_analyse(op, spsi_direct_operations(p->ctx, SECONDS),
                                &d));
    SPS_REQUIRE(p->ctx, spsi_direct_factor_seconds(d) <= SECONDS, SPS_EUNFIT,
                "verify-count: factors of %.2g operations would take longer "
                "than %d s", d->facts.flops, SECONDS);
    SPS_TRY(spsi_direct_factor(d, 0));
    SPS_REQUIRE(p->ctx, !d->found.zero, SPS_EUNFIT, "verify-count: A - t M has "
                "pivots that are zero up to rounding, so t may be an "
                "eigenvalue; eigenvalues below t cannot be counted");
    *count = (int)d->found.negative;
fail:
    spsi_direct_destroy(&d);
    sps_operator_destroy(&op);
    if (C) sps_csr_destroy(p->ctx, &C);
    return st;
}

/* Counts the eigenvalues below t; by sparse factors if A is NULL. */
static sps_status count_below(sps_subspace *s, sps_small *A, sps_small *M,
                              double t, int *count)
{
    return A ? below(s, A, M, t, count)
             : below_by_factors(s->pencil, t, count);
}

/* Returns how many deflated null vectors count as eigenvalues 0 below t; null
 * vectors that A and M share are not eigenvectors. */
static int known_zeros(const sps_deflation *d, const sps_selection *wanted,
                       double t)
{
    return !d->shared && spsi_selection_rank(wanted, 0) < t ? d->nulls : 0;
}

static sps_status by_inertia(sps_proof *q, bool dense)
{
    const sps_selection *wanted = q->wanted;
    const sps_deflation *d = q->space->deflation;
    const sps_pencil *p = d->pencil;
    sps_status st = SPS_OK;
    sps_small *A = NULL, *M = NULL;
    int n = (int)p->n, found, before = 0, inside = 0;
    double t;

    found = before_gap(q, &t);
    q->missed = 0;
    if (wanted->nearest && t <= 0) return SPS_OK;
    if (dense) SPS_TRY(spsi_small_create(p->ctx, n, n, &A));
    if (dense && p->M) SPS_TRY(spsi_small_create(p->ctx, n, n, &M));
    if (wanted->nearest) {
        SPS_TRY(count_below(q->space, A, M, wanted->sigma - t, &before));
        SPS_TRY(count_below(q->space, A, M, wanted->sigma + t, &inside));
        inside -= before;
    } else {
        SPS_TRY(count_below(q->space, A, M, wanted->sign * t, &inside));
        if (wanted->sign < 0)
            inside = n - inside - (d->shared ? d->columns : 0);
    }
    q->missed = inside - known_zeros(d, wanted, t) - found;
    /* Rounding at the end of a gap can make the count too low. */
    if (q->missed < 0) q->missed = 0;
fail:
    spsi_small_destroy(&A);
    spsi_small_destroy(&M);
    return st;
}

/* Returns whether at least `seconds` remain until the time limit. */
static bool in_time(const sps_eigen *e, double seconds)
{
    return !(e->opt.max_seconds > 0) ||
           spsi_agreed_now(e->ctx) - e->search.started + seconds <
               e->opt.max_seconds;
}

static bool counts(const sps_eigen *e)
{
    return !spsi_comm_many(e->ctx) && !e->opt.constraints && e->type->step;
}

static bool small_enough(const sps_eigen *e)
{
    return e->pencil.n <= LARGEST && counts(e);
}

static bool sparse_enough(const sps_eigen *e)
{
    return e->pencil.n >= SPARSE && counts(e) && !e->deflation.shared &&
           strcmp(e->opt.factors, "never") != 0 &&
           spsi_pencil_entries(&e->pencil) && spsi_direct_possible();
}

/* Counts by sparse factors within the time limit; *done is set if they gave a
 * count. */
static sps_status by_factors(sps_eigen *e, bool *done)
{
    const double limit = e->opt.max_seconds;
    const double left = limit - (spsi_agreed_now(e->ctx) - e->search.started);
    double before;
    sps_status st;

    if (!sparse_enough(e) || !in_time(e, 0)) return SPS_OK;
    before = spsi_deadline_begin(e->ctx, limit > 0 ? left : 0);
    st = by_inertia(&e->proof, false);
    spsi_deadline_end(e->ctx, before);
    *done = st == SPS_OK;
    if (!*done) e->proof.missed = -1;
    return st == SPS_EUNFIT || st == SPS_ENOMEM || st == SPS_EABSENT ? SPS_OK
                                                                     : st;
}

/* Returns whether all pairs have error bounds, which counts need. */
static bool bounded(const sps_proof *q)
{
    for (int i = 0; i < q->count; i++)
        if (!isfinite(q->bound[i])) return false;
    return true;
}

sps_status spsi_eigen_count_reserve(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_small *A = NULL, *M = NULL;
    /* Work memory of LAPACK's dsytrf; also holds columns of the identity. */
    double *work = NULL;
    int n = (int)e->pencil.n;

    if (!e->opt.verify_count || !small_enough(e)) return SPS_OK;
    SPS_TRY(spsi_small_create(e->ctx, n, n, &A));
    if (e->pencil.M) SPS_TRY(spsi_small_create(e->ctx, n, n, &M));
    SPS_TRY(SPS_NEW(e->ctx, (int64_t)n * (64 + e->space.width), &work));
fail:
    spsi_free(e->ctx, work);
    spsi_small_destroy(&A);
    spsi_small_destroy(&M);
    return st;
}

/* Returns a bound of the distance from theta_j to the nearest eigenvalue, by
 * the residual of column j.  It is 0 if eigenvalues at an end of the spectrum
 * are wanted: there the q-th Ritz value bounds the q-th eigenvalue whatever the
 * residual is (Courant-Fischer). */
static double margin(const sps_ritz *r, int j)
{
    if (!r->wanted->nearest) return 0;
    return (r->space->pencil->M ? 10 : 1) * r->resnorm[j] / r->mnorm[j];
}

/* The second search: X is random again, and all pairs found are locked. */
static sps_status by_search(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int last = e->count - 1, applied = 0;
    double lambda = e->proof.lambda[last];
    double edge = spsi_selection_rank(&e->wanted, lambda) -
                  2 * e->proof.bound[last] - 1e-10 * fabs(lambda);

    /* proof.missed remains -1 (unknown) until the first Ritz value has
     * converged. */
    spsi_deflation_set_locked(&e->deflation, e->count);
    e->search.stop = SPS_STOP_RUNNING;
    SPS_TRY(sps_block_random(&e->space.X, e->ctx->opt.seed + 4711));
    SPS_TRY(e->type->start(e, e->method));
    while (!e->search.stop && applied++ < ITERATIONS &&
           !spsi_agreed_cancel(e->ctx) && in_time(e, 0)) {
        double size = fabs(e->ritz.theta[0]) * e->ritz.mnorm[0];
        int before = 0;

        for (int j = 0; j < e->space.m; j++)
            before += spsi_selection_rank(&e->wanted, e->ritz.theta[j]) +
                          margin(&e->ritz, j) < edge;
        if (before || e->ritz.resnorm[0] <= 1e-3 * size) {
            e->proof.missed = before;
            break;
        }
        memset(e->ritz.done, 0, (size_t)e->space.m * sizeof *e->ritz.done);
        SPS_TRY(e->type->step(e, e->method));
    }
fail:
    return st;
}

sps_status spsi_eigen_count(sps_eigen *e)
{
    sps_status st = SPS_OK;
    double n = (double)e->pencil.n;
    int64_t left = spsi_deflation_complement(&e->deflation) - e->count;
    bool done = false;

    if (e->proof.verdict != SPS_STOP_CONVERGED &&
        e->proof.verdict != SPS_STOP_ROUNDING)
        /* Without pairs there is nothing to count. */
        return SPS_OK;
    if (!bounded(&e->proof)) return SPS_OK;
    if (e->type->step && left > 0) SPS_TRY(by_factors(e, &done));
    if (!e->type->step || left <= 0)
        /* All pairs were computed, so none was missed. */
        e->proof.missed = 0;
    else if (!done && small_enough(e) &&
             in_time(e, (e->wanted.nearest ? 2 : 1) * n * n * n /
                        e->pencil.ctx->machine.core.dense_factor))
        SPS_TRY(by_inertia(&e->proof, true));
    else if (!done && left >= e->space.m) SPS_TRY(by_search(e));
    if (e->proof.missed > 0 && e->proof.verdict == SPS_STOP_CONVERGED)
        e->proof.verdict = SPS_STOP_MISSED;
fail:
    return st;
}
