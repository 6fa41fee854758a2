/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_precond.c - the preconditioner of an eigensolver.  T approximates (A -
 * sigma M)^-1 with sigma below the lowest eigenvalue, so that it is positive
 * definite and amplifies the lowest pairs (Knyazev, SIAM J. Sci. Comput. 23(2),
 * 2001, section 4).  For the largest pairs read -A for A in this file; the Ritz
 * values are then -theta.
 *
 *   A positive definite    sigma = 0
 *   known null vectors     sigma = -TINY ||A|| / ||M||: factors exist, and
 *                          components along null vectors are projected out
 *   A indefinite           sigma = theta_0 - d, theta_0 the lowest Ritz value,
 *                          d the larger of the block's spread and 3 ||r_0||
 *
 * An indefinite A is recognised by some Lanczos steps, whose lower bound is the
 * first sigma, or by a negative Ritz value.  In the second case a few
 * iterations are made without T, until the Ritz values have settled.  Then
 * sigma follows them, at most MOVES times: it moves down when theta_0 comes
 * near to sigma, and up when d has decreased to a tenth.  Where d is at least 1
 * / EASY of the width of the spectrum, a polynomial is as good as factors.
 *
 * Where A is definite and T is its inverse, or nearly so, but SLOW iterations
 * have not sufficed, the pairs are close together relative to their distance
 * from zero: the relative gaps of A^-1 are (theta_j - theta_0) / theta_0.  Then
 * sigma moves by the same rule. */
#include "eigen_policy.h"

#include <math.h>
#include <string.h>

#include "core/deadline.h"

#define TINY 1e-8
#define SETTLE 5       /* iterations between two moves of sigma */
#define MOVES 6        /* largest number of moves of sigma */
#define SLOW 40        /* iterations that usually suffice if T is an inverse */
#define EASY 1e3
#define FEW 512        /* largest number of rows for which T is the inverse */
#define DENSE 2000     /* largest number of rows for the inverse where sparse
                          factors may fail */
#define WHOLE 20000    /* largest number of rows for which factors drop almost
                          nothing */
#define PASSES 60      /* reads and writes of a block in a step of lobpcg */

static bool automatic(const sps_eigen_precond *t)
{
    return !strcmp(t->opt->precond, "auto");
}

/* Returns whether factors with a drop tolerance of 1e-5 cost little: on the
 * host, for meshes that are nearly planar and networks without hubs. */
bool spsi_eigen_fills_little(const sps_deflation *d)
{
    const sps_pencil *p = d->pencil;
    const sps_features *f = &p->A->f;

    return p->ctx->backend->place == SPS_HOST && p->n <= 200000 &&
           !d->shared && f->mean_length <= 8 &&
           (double)f->max_length <= 20 * f->mean_length;
}

/* Decides whether T is the dense inverse, which costs n^3 operations: for small
 * matrices, and up to DENSE rows where the magnitudes of the diagonal spread
 * more than sparse factors can represent (supports modelled by penalties). */
static sps_status wants_inverse(const sps_operator *op, bool *yes)
{
    sps_status st = SPS_OK;
    double *d = NULL, least = INFINITY, most = 0;

    *yes = op->n <= FEW;
    if (*yes || op->n > DENSE) return SPS_OK;
    SPS_TRY(SPS_NEW(op->ctx, op->n, &d));
    SPS_TRY(spsi_matrix_diagonal(op, d));
    for (int64_t i = 0; i < op->n; i++) {
        least = fmin(least, fabs(d[i]));
        most = fmax(most, fabs(d[i]));
    }
    *yes = !(most <= 1e14 * least);
fail:
    spsi_free(op->ctx, d);
    return st;
}

/* Returns the cost of an iteration in passes over a block, which decides what
 * degree of a polynomial pays off.  With a null space the condition on its
 * complement is not known, and a lower cost is returned to get a lower degree:
 * graphs with hubs have their first eigenvalue far from zero, where high
 * degrees gain nothing (7.3 s with degree 25, 4.5 s with 11 on a graph of 95
 * 000 vertices). */
static int passes(const sps_eigen_precond *t)
{
    return t->space->deflation->nulls ? SPS_PASSES_LINEAR : PASSES;
}

/* Preconditioner auto: makes the best approximation of the inverse of op at an
 * acceptable cost.  The spectrum of op begins about `least` above zero (0: not
 * known).  Factors may fail, for example if A is singular; then the next choice
 * is tried.  A polynomial is always possible. */
static sps_status choose(sps_eigen_precond *t, const sps_operator *op,
                         double least)
{
    const sps_pencil *p = t->space->pencil;
    const sps_deflation *d = t->space->deflation;
    sps_options o = *t->opt;
    int64_t nnz = op->A->nnz > 0 ? op->A->nnz : 1;
    bool all = p->n <= WHOLE && d->nulls == 0;
    bool hard = least == 0 || spsi_pencil_unit(p) > EASY * least;
    bool inverse;
    sps_status st;

    SPS_TRY(wants_inverse(op, &inverse));
    st = SPS_EUNFIT;
    if (hard && inverse && d->nulls == 0) {
        o.precond = "dense";
        st = spsi_precond_create(op, t->space->width, &o, false, passes(t),
                                 &t->T);
    }
    if (st != SPS_OK && op == p->A)
        st = spsi_eigen_multigrid(t, op, passes(t));
    if (st != SPS_OK && hard && (all || spsi_eigen_fills_little(d))) {
        o.precond = "ilut";
        o.droptol = fmin(o.droptol, all ? 1e-12 : 1e-5);
        o.fill = fmax(o.fill, all ? fmin(100, 3e7 / (double)nnz) : 30);
        st = spsi_precond_create(op, t->space->width, &o, false, passes(t),
                                 &t->T);
    }
    if (st != SPS_OK) {
        o.precond = "chebyshev";
        st = spsi_precond_create(op, t->space->width, &o, false, passes(t),
                                 &t->T);
    }
fail:
    return st;
}

/* Destroys the previous T and makes one for A - sigma M; d: about how far sigma
 * lies below the lowest eigenvalue. */
static sps_status make(sps_eigen_precond *t, double sigma, double d)
{
    const sps_pencil *p = t->space->pencil;
    const sps_operator *op = p->A;
    sps_status st = SPS_OK;

    sps_precond_destroy(&t->T);
    sps_operator_destroy(&t->shifted);
    if (t->matrix) sps_csr_destroy(p->ctx, &t->matrix);
    if (sigma != 0 || t->wanted->sign < 0) {
        SPS_TRY(spsi_pencil_combine(p, t->wanted->sign, sigma, &t->matrix));
        SPS_TRY(sps_operator_csr(p->ctx, t->matrix, t->space->width, NULL,
                                 &t->shifted));
        op = t->shifted;
    }
    if (automatic(t)) SPS_TRY(choose(t, op, d));
    else
        SPS_TRY(spsi_precond_create(op, t->space->width, t->opt, false,
                                    passes(t), &t->T));
    t->own = true;
    t->sigma = sigma;
fail:
    return st;
}

static sps_status check(const sps_eigen_precond *t, const sps_precond *T)
{
    const sps_pencil *p = t->space->pencil;
    sps_status st = SPS_OK;

    SPS_REQUIRE(p->ctx, T->ctx == p->ctx, SPS_EINVAL,
                "matrix and preconditioner belong to different contexts");
    SPS_REQUIRE(p->ctx, T->n == p->n, SPS_ESHAPE,
                "the preconditioner has %lld rows, the matrix %lld",
                (long long)T->n, (long long)p->n);
    SPS_REQUIRE(p->ctx, !T->A || T->width >= t->space->width, SPS_ESHAPE,
                "the preconditioner was made for blocks of %d columns, "
                "this eigensolver works with %d", T->width, t->space->width);
fail:
    return st;
}

/* Returns whether A - sigma M can be formed as a matrix. */
static bool shiftable(const sps_eigen_precond *t)
{
    return spsi_pencil_entries(t->space->pencil);
}

/* Where Lanczos steps with A find it indefinite, sets *sigma to about *d below
 * the spectrum; else leaves both as they are.  With M both are divided by
 * ||M||, a first guess that is moved later.  For the largest pairs this is a
 * poor guess, and T is not used until there are Ritz values. */
static sps_status probe(sps_eigen_precond *t, double *sigma, double *d)
{
    const sps_pencil *p = t->space->pencil;
    sps_status st = SPS_OK;
    sps_small *T = NULL;
    double low, high, residual;

    if (t->wanted->sign > 0 && p->A->props & SPS_SPD) return SPS_OK;
    SPS_TRY(spsi_small_create(p->ctx, SPS_EIGEN_LANCZOS, SPS_EIGEN_LANCZOS,
                              &T));
    SPS_TRY(spsi_subspace_bounds(t->space, t->wanted->sign, T, &low, &high,
                                 &residual));
    if (low >= -1e-10 * p->norm_A) goto fail;
    *d = residual / p->norm_M;
    *sigma = low / p->norm_M - *d;
    t->suspended = t->wanted->sign < 0 && p->M;
fail:
    spsi_small_destroy(&T);
    return st;
}

/* Makes the first T.  One that is not complete within the time limit is
 * replaced by a cheap one, so that some iterations can be made. */
static sps_status make_first(sps_eigen_precond *t, double sigma, double d)
{
    sps_context *ctx = t->space->pencil->ctx;
    const double before = spsi_deadline_begin(ctx, t->opt->max_seconds);
    const char *cheap = spsi_precond_always()->name;
    sps_status st = make(t, sigma, d);

    if (st == SPS_EUNFIT && spsi_expired(ctx)) {
        spsi_note(ctx, "%s; %s is used instead", sps_context_error(ctx),
                  cheap);
        st = spsi_precond_named(t->shifted ? t->shifted : t->space->pencil->A,
                                t->space->width, cheap, t->opt, passes(t),
                                &t->T);
        t->own = st == SPS_OK;
        t->sigma = t->shifted ? sigma : 0;
    }
    spsi_deadline_end(ctx, before);
    return st;
}

static sps_status begin(sps_eigen_precond *t)
{
    const sps_pencil *p = t->space->pencil;
    const char *name = t->opt->precond;
    bool factors = automatic(t) ? spsi_eigen_fills_little(t->space->deflation)
                                : strcmp(name, "chebyshev") != 0;
    double sigma = 0, d = 0;
    sps_status st = SPS_OK;

    if (shiftable(t)) SPS_TRY(probe(t, &sigma, &d));
    if (sigma < 0 && t->wanted->sign > 0)
        spsi_note(p->ctx, "A has an eigenvalue of at most %.3g: the "
                  "preconditioner is made of A - sigma%s, with sigma below it",
                  (sigma + d) * p->norm_M, p->M ? " M" : "");
    else if (sigma < 0)
        spsi_note(p->ctx, "which=largest: the preconditioner is made of "
                  "sigma%s - A, with sigma above the spectrum",
                  p->M ? " M" : "");
    else if (t->space->deflation->nulls && factors && shiftable(t))
        sigma = -TINY * spsi_pencil_unit(p);
    SPS_TRY(make_first(t, sigma, d));
    if (automatic(t))
        spsi_note(p->ctx, "preconditioner auto: %s, for %lld rows%s",
                  sps_precond_name(t->T), (long long)p->n,
                  t->space->deflation->nulls ? " and a null space" : "");
fail:
    return st;
}

sps_status spsi_eigen_take_precond(sps_eigen_precond *t, sps_precond *given,
                                   bool used)
{
    const sps_pencil *p = t->space->pencil;
    const char *name = t->opt->precond;

    t->T = t->wanted->nearest ? NULL : given;
    if (given && t->wanted->nearest)
        spsi_note(p->ctx, "which=nearest uses no preconditioner: the given one "
                          "is ignored");
    if (given) return check(t, given);
    if (!used || t->wanted->nearest) return SPS_OK;
    if (!strcmp(name, "none") || (automatic(t) && !p->A->A))
        return SPS_OK;
    if (t->wanted->sign > 0 || shiftable(t)) return begin(t);
    /* T would amplify the other end of the spectrum. */
    if (!automatic(t))
        spsi_note(p->ctx, "preconditioner %s is not used: it approximates the "
                  "inverse of A, which does not help for the largest "
                  "eigenvalues", name);
    return SPS_OK;
}

/* Returns the distance of sigma from theta_0, whose error is at most `error`:
 * the spread of the block, and enough for sigma to lie below the eigenvalue to
 * which theta_0 converges. */
static double distance(const sps_eigen_precond *t, const sps_ritz *r,
                       double error)
{
    const sps_pencil *p = t->space->pencil;
    double spread = fabs(r->theta[t->space->m - 1] - r->theta[0]);
    double lowest = t->wanted->sign * r->theta[0],
           least = 1e-9 * spsi_pencil_unit(p);

    if (lowest > 0) least = fmin(least, 1e-6 * lowest);
    return fmax(fmax(spread, 3 * error), least);
}

/* Stops using T when A is found to be indefinite: an approximation of its
 * inverse amplifies the pairs nearest to zero. */
static void suspend(sps_eigen_precond *t, const sps_ritz *r,
                    sps_search *search)
{
    const sps_pencil *p = t->space->pencil;
    t->suspended = true;
    t->moves = 0;
    search->event = "A is indefinite: preconditioner not used";
    spsi_note(p->ctx, "A has an eigenvalue of at most %.3g: the "
              "preconditioner, an approximate inverse of A, %s", r->theta[0],
              shiftable(t) ? "will be shifted below it" : "is not used");
}

/* Returns whether this file made T as an inverse, exact or nearly so. */
static bool whole(const sps_eigen_precond *t)
{
    const sps_pencil *p = t->space->pencil;
    const char *name = t->T ? sps_precond_name(t->T) : "";

    if (!automatic(t) || t->space->deflation->nulls) return false;
    return !strcmp(name, "dense") ||
           (!strcmp(name, "ilut") && p->n <= WHOLE);
}

/* Returns whether this file made T as multigrid where factors are possible as
 * well. */
static bool instead(const sps_eigen_precond *t)
{
    const sps_pencil *p = t->space->pencil;

    return automatic(t) && !t->space->deflation->nulls && p->n <= WHOLE &&
           t->T && !strcmp(sps_precond_name(t->T), "amg");
}

/* Returns whether it is time to reconsider T: it is an inverse or could be one,
 * and the number of iterations is a multiple of SLOW. */
static bool slow(const sps_eigen_precond *t, int iteration)
{
    return iteration % SLOW == 0 && (whole(t) || instead(t));
}

/* *error is a bound of the distance from theta_0, mu above sigma, to the
 * nearest eigenvalue.  ||r|| is one; where T = (A - sigma M)^-1 is positive
 * definite (mu r'T r)^(1/2) is another to first order (theorem 15.9.1 of
 * Parlett for the inverse).  It is never much larger, and much smaller where
 * stiff unknowns dominate ||r||. */
static sps_status error_of(sps_eigen_precond *t, double mu, double *error)
{
    sps_status st = SPS_OK;
    double *square = t->space->scratch;

    if (!whole(t) || t->suspended || !(mu > 0)) return SPS_OK;
    spsi_block_narrow(t->space->work, t->space->m);
    SPS_TRY(spsi_eigen_precondition(t, t->space->R, NULL,
                                    t->space->work));
    SPS_TRY(spsi_dots(t->space->R, t->space->work, square));
    if (square[0] > 0) *error = fmin(*error, sqrt(mu * square[0]));
fail:
    return st;
}

/* Moves sigma down where theta_0 < 0 has come near to it, or up where theta_0
 * lies at least 10 d above it. */
static sps_status move(sps_eigen_precond *t, const sps_ritz *r, double lowest,
                       sps_search *search)
{
    double error = r->resnorm[0] / r->mnorm[0], above = lowest - t->sigma;
    double d = distance(t, r, error);
    bool near = lowest < 0 && above <= 0.1 * d;
    sps_status st;

    if (!near) {
        SPS_TRY(error_of(t, above, &error));
        d = distance(t, r, error);
    }
    if (!t->suspended && !near && above < 10 * d) return SPS_OK;
    t->moves++;
    t->suspended = false;
    search->event = "preconditioner moved";
    st = make(t, lowest - d, d);
    if (st != SPS_EUNFIT) return st;
    /* A - sigma M may be singular: the search continues without T. */
    t->moves = MOVES;
    t->suspended = true;
    st = SPS_OK;
fail:
    return st;
}

sps_status spsi_eigen_move_precond(sps_eigen_precond *t, const sps_ritz *r,
                                   sps_search *search)
{
    double lowest = t->wanted->sign * r->theta[0];
    double unit = spsi_pencil_unit(t->space->pencil);
    bool below = lowest < -1e-10 * unit;

    if (!t->own || t->space->deflation->locked || search->iteration == 0)
        return SPS_OK;
    if (!below && !slow(t, search->iteration)) return SPS_OK;
    if (below && !t->suspended && t->sigma >= -TINY * unit) {
        suspend(t, r, search);
        return SPS_OK;
    }
    if (!shiftable(t) || search->iteration % SETTLE || t->moves == MOVES)
        return SPS_OK;
    return move(t, r, lowest, search);
}
