/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_count.c - whether pairs were missed.
 *
 * Up to LARGEST rows by Sylvester's law of inertia: A - t M = L D L' has as
 * many negative pivots as the pencil has eigenvalues below t.  Otherwise a
 * second random block is sent out in the complement of what was found: its
 * Ritz values never lie outside the spectrum, so one that comes to lie between
 * the pairs found proves that one is missing; near a shift inside the spectrum
 * anything may be a Ritz value, and its residual has to say that an eigenvalue
 * lies there.  (That none does proves nothing, but a missed pair would have to
 * escape two searches.) */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "timer.h"

#define LARGEST 5000
#define RATE 3e9        /* n^3 of a factorisation in a second */
#define HUNT 200        /* iterations of the second search, at most */

static double rank_of(const sps_eigen *e, double lambda)
{
    return e->nearest ? fabs(lambda - e->opt.sigma) : e->sign * lambda;
}

/* How far from lambda_i a count may begin or end: the pair's bound, and of one
 * that is rounding no less than a factorisation is wrong by. */
static double margin_of(const sps_eigen *e, int i)
{
    double wrong = 4 * sqrt((double)e->n) * DBL_EPSILON * spsi_eigen_unit(e);

    return 2 * (e->pair[i] == SPS_STOP_ROUNDING ? fmax(e->bound[i], wrong)
                                                : e->bound[i]);
}

/* How many pairs lie before the last gap that bounds do not close, and in *t
 * the far end of it, just before the next pair: what was missed anywhere in the
 * gap counts.  0 pairs: before all of them. */
static int before_gap(const sps_eigen *e, double *t)
{
    for (int i = e->count - 1; i > 0; i--) {
        double low = rank_of(e, e->lambda[i - 1]);
        double high = rank_of(e, e->lambda[i]);

        *t = high - margin_of(e, i) - 1e-9 * fabs(high);
        if (*t > low + margin_of(e, i - 1)) return i;
    }
    *t = rank_of(e, e->lambda[0]);
    *t -= margin_of(e, 0) + 1e-9 * fabs(*t);
    return 0;
}

/* Rows and columns that hold shared null vectors, out of the way. */
static void ground(const sps_eigen *e, sps_small *A)
{
    for (int t = 0; e->ground && t < e->null_columns; t++) {
        int g = (int)e->ground[t];

        for (int i = 0; i < A->rows; i++)
            *spsi_small_at(A, i, g) = *spsi_small_at(A, g, i) = i == g;
    }
}

/* Eigenvalues of the pencil below t. */
static sps_status below(sps_eigen *e, sps_small *A, sps_small *M, double t,
                        int *count)
{
    sps_status st = SPS_OK;
    int n = (int)e->n;

    SPS_TRY(spsi_eigen_densify(e, e->A, A));
    if (e->M) SPS_TRY(spsi_eigen_densify(e, e->M, M));
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            *spsi_small_at(A, i, j) -=
                t * (e->M ? *spsi_small_at(M, i, j) : i == j);
    ground(e, A);
    SPS_TRY(spsi_small_inertia(A, count));
fail:
    return st;
}

/* Null vectors deflated are eigenvalues 0 that were not to be found; those that
 * A and M share are none. */
static int known_zeros(const sps_eigen *e, double t)
{
    return !e->blind && rank_of(e, 0) < t ? e->nulls : 0;
}

static sps_status by_inertia(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_small *A = NULL, *M = NULL;
    int n = (int)e->n, found, above = 0, inside = 0;
    double t;

    found = before_gap(e, &t);
    e->missed = 0;
    if (e->nearest && t <= 0) return SPS_OK;
    SPS_TRY(spsi_small_create(e->ctx, n, n, &A));
    if (e->M) SPS_TRY(spsi_small_create(e->ctx, n, n, &M));
    if (e->nearest) {
        SPS_TRY(below(e, A, M, e->opt.sigma - t, &above));
        SPS_TRY(below(e, A, M, e->opt.sigma + t, &inside));
        inside -= above;
    } else {
        SPS_TRY(below(e, A, M, e->sign * t, &inside));
        if (e->sign < 0) inside = n - inside - (e->blind ? e->null_columns : 0);
    }
    e->missed = inside - known_zeros(e, t) - found;
    if (e->missed < 0) e->missed = 0;   /* rounding at the edge of a gap */
fail:
    spsi_small_destroy(&A);
    spsi_small_destroy(&M);
    return st;
}

/* Whether so many seconds are left. */
static bool in_time(const sps_eigen *e, double seconds)
{
    return !(e->opt.max_seconds > 0) ||
           spsi_now() - e->started + seconds < e->opt.max_seconds;
}

static bool small_enough(const sps_eigen *e)
{
    return e->n <= LARGEST && !e->opt.constraints && e->type->step;
}

/* Counts begin and end a bound away from pairs. */
static bool bounded(const sps_eigen *e)
{
    for (int i = 0; i < e->count; i++)
        if (!isfinite(e->bound[i])) return false;
    return true;
}

sps_status spsi_eigen_count_reserve(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_small *A = NULL, *M = NULL;
    double *work = NULL;      /* dsytrf's blocks, and the identity's columns */
    int n = (int)e->n;

    if (!e->opt.verify_count || !small_enough(e)) return SPS_OK;
    SPS_TRY(spsi_small_create(e->ctx, n, n, &A));
    if (e->M) SPS_TRY(spsi_small_create(e->ctx, n, n, &M));
    SPS_TRY(SPS_NEW(e->ctx, (int64_t)n * (64 + e->width), &work));
fail:
    spsi_free(e->ctx, work);
    spsi_small_destroy(&A);
    spsi_small_destroy(&M);
    return st;
}

/* How far from theta_j an eigenvalue may be. */
static double margin(const sps_eigen *e, int j)
{
    if (!e->nearest) return 0;
    return (e->M ? 10 : 1) * e->resnorm[j] / e->mnorm[j];
}

/* The second search: X is random again, all pairs found are fixed. */
static sps_status by_hunt(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int last = e->count - 1, applied = 0;
    double edge = rank_of(e, e->lambda[last]) - 2 * e->bound[last] -
                  1e-10 * fabs(e->lambda[last]);
    sps_stop stop = e->stop;

    /* Not known until the lowest Ritz value has settled. */
    e->stop = SPS_STOP_RUNNING;
    SPS_TRY(sps_block_random(&e->X, e->ctx->opt.seed + 4711));
    SPS_TRY(e->type->start(e, e->method));
    while (!e->stop && applied++ < HUNT && !spsi_cancelled(e->ctx) &&
           in_time(e, 0)) {
        double size = fabs(e->theta[0]) * e->mnorm[0];
        int before = 0;

        for (int j = 0; j < e->m; j++)
            before += rank_of(e, e->theta[j]) + margin(e, j) < edge;
        if (before || e->resnorm[0] <= 1e-3 * size) {
            e->missed = before;
            break;
        }
        memset(e->done, 0, (size_t)e->m * sizeof *e->done);
        SPS_TRY(e->type->step(e, e->method));
    }
    e->stop = stop;
fail:
    return st;
}

sps_status spsi_eigen_count(sps_eigen *e)
{
    sps_status st = SPS_OK;
    double n = (double)e->n;
    int64_t left = e->n - e->given - e->count - (e->means ? e->nulls : 0);

    if (e->stop != SPS_STOP_CONVERGED && e->stop != SPS_STOP_ROUNDING)
        return SPS_OK;   /* the count would be of nothing */
    if (!bounded(e)) return SPS_OK;
    if (!e->type->step || left <= 0) e->missed = 0;   /* there are no others */
    else if (small_enough(e) &&
             in_time(e, (e->nearest ? 2 : 1) * n * n * n / RATE))
        SPS_TRY(by_inertia(e));
    else if (left >= e->m) SPS_TRY(by_hunt(e));
    if (e->missed > 0 && e->stop == SPS_STOP_CONVERGED)
        e->stop = SPS_STOP_MISSED;
fail:
    return st;
}
