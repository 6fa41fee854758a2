/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_precond.c - the preconditioner of an eigensolver: T is about
 * (A - sigma M)^-1, sigma below the lowest eigenvalue, so that it is positive
 * definite and pulls towards the lowest pairs (Knyazev, SIAM J. Sci. Comput.
 * 23(2), 2001, section 4).  The largest pairs are the lowest of -A, which is
 * what A stands for here then, with Ritz values -theta.
 *
 *   A positive definite    sigma = 0
 *   known null vectors     sigma = -TINY ||A|| / ||M||: factors exist, and what
 *                          T makes of the null vectors is projected away
 *   A indefinite           sigma = theta_0 - d, theta_0 the lowest Ritz value,
 *                          d the larger of the block's spread and 3 ||r_0||
 *
 * That A is indefinite is seen by some Lanczos steps, whose lower end is the
 * first sigma, or once a Ritz value is negative; then a few steps are made
 * without T, until Ritz values mean something.  T follows them, MOVES times at
 * most: down when theta_0 comes near to sigma, up when d has become a tenth.
 * At a distance of 1 / EASY of the whole spectrum a polynomial does as well as
 * factors.
 *
 * Where A is definite and T is its inverse, or all but, CRAWL iterations are
 * many: the pairs stand close together beside their distance from zero, and
 * A^-1 makes (theta_j - theta_0) / theta_0 of their differences.  Then T moves
 * to sigma by the same rule. */
#include "eigen.h"

#include <math.h>
#include <string.h>

#define TINY 1e-8
#define SETTLE 5       /* iterations between two looks */
#define MOVES 6
#define CRAWL 40       /* iterations that a whole inverse should not take */
#define EASY 1e3
#define FEW 512        /* rows: the inverse */
#define DENSE 2000     /* rows: where it must be */
#define WHOLE 20000    /* rows: factors that drop next to nothing */
#define PASSES 60      /* reads and writes of a block in a step of lobpcg */

static bool automatic(const sps_eigen *e)
{
    return !strcmp(e->opt.precond, "auto");
}

/* Plane-like meshes and networks without hubs: factors at 1e-5 cost little on
 * the host. */
bool spsi_eigen_fills_little(const sps_eigen *e)
{
    const sps_features *f = &e->A->f;

    return e->ctx->backend->place == SPS_HOST && e->n <= 200000 &&
           !e->blind && f->mean_length <= 8 &&
           (double)f->max_length <= 20 * f->mean_length;
}

/* Small ones by the whole inverse, which costs n^3; up to DENSE rows so where
 * the diagonal spans more than sparse factors can bear (supports by penalty). */
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

/* What a polynomial's degree is weighed against.  Beside a null space, whose
 * Ritz value is nothing, the condition is not seen; graphs with hubs have their
 * first eigenvalue far from zero, and high degrees are lost on them (7.3 s at
 * 25, 4.5 at 11 on a graph of 95 000 vertices). */
static int passes(const sps_eigen *e)
{
    return e->nulls ? SPS_PASSES_LINEAR : PASSES;
}

/* auto: what is nearest to the inverse of op, whose spectrum begins about d
 * (0: not known) above zero, at a bearable price.  It may fail to be made, of
 * a singular A for example: then the next.  A polynomial is always there. */
static sps_status choose(sps_eigen *e, const sps_operator *op, double d)
{
    sps_options o = e->opt;
    int64_t nnz = op->A->nnz > 0 ? op->A->nnz : 1;
    bool all = e->n <= WHOLE && e->nulls == 0;
    bool hard = d == 0 || spsi_eigen_unit(e) > EASY * d;
    bool inverse;
    sps_status st;

    SPS_TRY(wants_inverse(op, &inverse));
    st = SPS_EUNFIT;
    if (hard && inverse && e->nulls == 0) {
        o.precond = "dense";
        st = spsi_precond_create_beside(op, e->width, &o, passes(e),
                                        &e->T);
    }
    if (st != SPS_OK && hard && (all || spsi_eigen_fills_little(e))) {
        o.precond = "ilut";
        o.droptol = fmin(o.droptol, all ? 1e-12 : 1e-5);
        o.fill = fmax(o.fill, all ? fmin(100, 3e7 / (double)nnz) : 30);
        st = spsi_precond_create_beside(op, e->width, &o, passes(e),
                                        &e->T);
    }
    if (st != SPS_OK) {
        o.precond = "chebyshev";
        st = spsi_precond_create_beside(op, e->width, &o, passes(e),
                                        &e->T);
    }
fail:
    return st;
}

/* T of A - sigma M, in place of what there was, which goes first. */
static sps_status make(sps_eigen *e, double sigma, double d)
{
    const sps_operator *op = e->A;
    sps_status st = SPS_OK;

    sps_precond_destroy(&e->T);
    spsi_eigen_unshift(e);
    if (sigma != 0 || e->sign < 0) {
        SPS_TRY(spsi_eigen_subtract(e, sigma, &e->shift));
        SPS_TRY(sps_operator_csr(e->ctx, e->shift, e->width, NULL,
                                 &e->shifted));
        op = e->shifted;
    }
    if (automatic(e)) SPS_TRY(choose(e, op, d));
    else SPS_TRY(spsi_precond_create_beside(op, e->width, &e->opt, passes(e),
                                            &e->T));
    e->own_T = true;
    e->T_sigma = sigma;
fail:
    return st;
}

static sps_status check(const sps_eigen *e, const sps_precond *T)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(e->ctx, T->ctx == e->ctx, SPS_EINVAL,
                "matrix and preconditioner belong to different contexts");
    SPS_REQUIRE(e->ctx, T->n == e->n, SPS_ESHAPE,
                "the preconditioner has %lld rows, the matrix %lld",
                (long long)T->n, (long long)e->n);
    SPS_REQUIRE(e->ctx, !T->A || T->width >= e->width, SPS_ESHAPE,
                "the preconditioner was made for blocks of %d columns, "
                "this eigensolver works with %d", T->width, e->width);
fail:
    return st;
}

/* Whether A - sigma M can be had as a matrix. */
static bool shiftable(const sps_eigen *e)
{
    return e->A->A && (!e->M || e->M->A);
}

/* *sigma below the spectrum by about *d where Lanczos steps find A indefinite;
 * with M a guess that will be mended: for the largest pairs ||A|| / ||M|| says
 * nearly nothing, and T waits for Ritz values. */
static sps_status probe(sps_eigen *e, double *sigma, double *d)
{
    sps_status st = SPS_OK;
    sps_small *T = NULL;
    double low, high, past;

    if (e->sign > 0 && e->A->props & SPS_SPD) return SPS_OK;
    SPS_TRY(spsi_small_create(e->ctx, SPS_EIGEN_LANCZOS, SPS_EIGEN_LANCZOS,
                              &T));
    SPS_TRY(spsi_eigen_ends(e, T, &low, &high, &past));
    if (low >= -1e-10 * e->norm_A) goto fail;
    *d = past / e->norm_M;
    *sigma = low / e->norm_M - *d;
    e->T_left = e->sign < 0 && e->M;
fail:
    spsi_small_destroy(&T);
    return st;
}

/* The first one. */
static sps_status begin(sps_eigen *e)
{
    const char *name = e->opt.precond;
    bool factors = automatic(e) ? spsi_eigen_fills_little(e)
                                : strcmp(name, "chebyshev") != 0;
    double sigma = 0, d = 0;
    sps_status st = SPS_OK;

    if (shiftable(e)) SPS_TRY(probe(e, &sigma, &d));
    if (sigma < 0 && e->sign > 0)
        spsi_note(e->ctx, "A has an eigenvalue of at most %.3g: the "
                  "preconditioner is that of A - sigma%s, sigma below it",
                  (sigma + d) * e->norm_M, e->M ? " M" : "");
    else if (sigma < 0)
        spsi_note(e->ctx, "largest: the preconditioner is that of sigma%s - A,"
                  " sigma above the spectrum", e->M ? " M" : "");
    else if (e->nulls && factors && shiftable(e))
        sigma = -TINY * spsi_eigen_unit(e);
    SPS_TRY(make(e, sigma, d));
    if (automatic(e))
        spsi_note(e->ctx, "preconditioner auto: %s, for %lld rows%s",
                  sps_precond_name(e->T), (long long)e->n,
                  e->nulls ? " and a null space" : "");
fail:
    return st;
}

sps_status spsi_eigen_take_precond(sps_eigen *e, sps_precond *T)
{
    const char *name = e->opt.precond;

    e->T = e->nearest ? NULL : T;
    if (T && e->nearest)
        spsi_note(e->ctx, "which=nearest takes no preconditioner: left out");
    if (T) return check(e, T);
    if (!e->type->preconditioned || e->nearest) return SPS_OK;
    if (!strcmp(name, "none") || (automatic(e) && !e->A->A)) return SPS_OK;
    if (e->sign > 0 || shiftable(e)) return begin(e);
    if (!automatic(e))   /* it would pull towards the other end */
        spsi_note(e->ctx, "preconditioner %s is about the inverse of A and no "
                  "help for the largest eigenvalues: left out", name);
    return SPS_OK;
}

/* How far below theta_0 sigma is to lie: at the distance of the pairs wanted
 * from each other, and where theta_0 is still on its way, below its end. */
static double distance(const sps_eigen *e)
{
    double spread = fabs(e->theta[e->m - 1] - e->theta[0]);
    double error = 3 * e->resnorm[0] / e->mnorm[0];

    double lowest = e->sign * e->theta[0], least = 1e-9 * spsi_eigen_unit(e);

    if (lowest > 0) least = fmin(least, 1e-6 * lowest);
    return fmax(fmax(spread, error), least);
}

/* A is indefinite: about its inverse, T would pull towards zero. */
static void leave(sps_eigen *e)
{
    e->T_left = true;
    e->T_moves = 0;
    e->event = "A is indefinite: preconditioner left out";
    spsi_note(e->ctx, "A has an eigenvalue of at most %.3g: the "
              "preconditioner, about its inverse, %s", e->theta[0],
              shiftable(e) ? "moves below it" : "is left out");
}

/* T is a whole inverse made here and has not led to the end in CRAWL steps. */
static bool crawls(const sps_eigen *e)
{
    const char *name = e->T ? sps_precond_name(e->T) : "";

    if (!automatic(e) || e->nulls || e->iteration % CRAWL) return false;
    return !strcmp(name, "dense") || (!strcmp(name, "ilut") && e->n <= WHOLE);
}

/* Down from where it is near, or up; above zero it is never too near. */
static sps_status move(sps_eigen *e, double lowest)
{
    double d = distance(e), above = lowest - e->T_sigma;
    bool near = lowest < 0 && above <= 0.1 * d;
    sps_status st;

    if (!e->T_left && !near && above < 10 * d) return SPS_OK;
    e->T_moves++;
    e->T_left = false;
    e->event = "preconditioner moved";
    st = make(e, lowest - d, d);
    if (st != SPS_EUNFIT) return st;
    e->T_moves = MOVES;   /* singular there, perhaps: on without */
    e->T_left = true;
    return SPS_OK;
}

sps_status spsi_eigen_move_precond(sps_eigen *e)
{
    double lowest = e->sign * e->theta[0];
    bool below = lowest < -1e-10 * spsi_eigen_unit(e);

    if (!e->own_T || e->locked || e->iteration == 0) return SPS_OK;
    if (!below && !crawls(e)) return SPS_OK;
    if (below && !e->T_left && e->T_sigma >= -TINY * spsi_eigen_unit(e)) {
        leave(e);
        return SPS_OK;
    }
    if (!shiftable(e) || e->iteration % SETTLE || e->T_moves == MOVES)
        return SPS_OK;
    return move(e, lowest);
}
