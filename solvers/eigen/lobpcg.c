/* SPDX-License-Identifier: BSD-3-Clause */
/* lobpcg.c - locally optimal block preconditioned conjugate gradients for A x =
 * lambda M x (Knyazev, SIAM J. Sci. Comput. 23(2), 2001), in the basis of
 * Hetmaniuk and Lehoucq (J. Comput. Phys. 218, 2006) and Duersch, Shao, Yang
 * and Gu (SIAM J. Sci. Comput. 40(5), 2018).
 *
 * S = [X P W] is kept M-orthonormal, where W = orth(T R) for the columns that
 * have not converged, so that Rayleigh-Ritz is one symmetric eigenproblem of H
 * = S'AS:
 *
 *     H V = V diag(theta);  X = S V1;  P = S V2 B,
 *
 * with V1 the wanted eigenvectors, V2 the others, and B an orthonormal basis of
 * V2'[0; V1 without the rows of X]: the new directions P are orthogonal to the
 * new X by their coefficients only, without an inner product of blocks.  Then
 * X'AX = diag(theta1), X'AP = 0 and P'AP = B'diag(theta2)B, so only the columns
 * of W are multiplied by A; A S and M S are updated with the same coefficients
 * as X and P, and compared with new products from time to time.
 *
 * Where residuals are far above rounding W stays as it is, and S Z takes its
 * place in H and in the coefficients of X and P: Z makes [Q S Z] orthonormal
 * for Q = [X P] (spsi_subspace_join).  That Q is orthonormal is assumed, and
 * errors of it grow with Z from step to step.  Before they are visible all
 * inner products of S are formed anew, and Z is of all columns.
 *
 * Cost of an iteration in passes over n x m blocks, with w = m columns of W and
 * M the identity: residual 5, S'W and S'A W 4, update of S and AS 10, in
 * addition to W = T R and A W; S'S and S'A S every few steps 9, and W made
 * orthonormal in memory 20.
 *
 * Where more eigenvalues than the block has columns lie close together, it has
 * to resolve their eigenvectors by iterations.  If that is slow, S is extended
 * (lobpcg_extend.c) and keeps all directions: P = S V2 times an orthonormal
 * matrix, so that S Q with Householder reflectors Q is the new [X P].  When S
 * is full, it becomes X, the next Ritz vectors and P as above (the restart GD+k
 * of Stathopoulos, SIAM J. Sci. Comput. 29(2), 2007).  With q columns in S an
 * iteration passes over some 10 q / m blocks instead of 40. */
#include "lobpcg.h"

#include <math.h>

#define BASIS 480     /* columns of the extended S */
#define NEAR 1e2      /* residual to tolerance at which guards may rest */
#define AMPLIFIED 1e4 /* factor by which errors may grow above rounding */

static sps_status setup(sps_eigen *e, void *method)
{
    lobpcg *l = method;
    sps_status st = SPS_OK;
    int m = e->space.width, s = SPS_LOBPCG_STACK * m;

    SPS_TRY(SPS_OWN(&e->own, m, &l->active));
    SPS_TRY(SPS_OWN(&e->own, e->space.longest, &l->w));
    SPS_TRY(spsi_own_small(&e->own, 2 * m, 2 * m, &l->F));
    SPS_TRY(spsi_own_small(&e->own, s, 2 * m, &l->K));
    SPS_TRY(spsi_own_small(&e->own, s, s, &l->B));
    SPS_TRY(spsi_own_small(&e->own, s, s, &l->N));
    SPS_TRY(spsi_own_small(&e->own, s, s, &l->G));
    SPS_TRY(spsi_own_small(&e->own, m, m, &l->T));
    SPS_TRY(spsi_own_small(&e->own, s, s, &l->Z));
fail:
    return st;
}

sps_status spsi_lobpcg_begin(sps_eigen *e, lobpcg *l)
{
    sps_status st = SPS_OK;
    int m = e->space.m;

    l->p = 0;
    l->amplified = l->factor = 1;
    spsi_small_shape(l->Z, 0, 0);
    SPS_TRY(spsi_eigen_begin(e, l->w));
    spsi_small_shape(l->F, m, m);
    spsi_small_clear(l->F);
    for (int j = 0; j < m; j++) *spsi_small_at(l->F, j, j) = e->ritz.value[j];
fail:
    return st;
}

static sps_status start(sps_eigen *e, void *method)
{
    lobpcg *l = method;

    l->steps = 0;
    l->joins = true;
    l->excess = HUGE_VAL;
    return spsi_lobpcg_begin(e, l);
}

/* Returns whether guard columns need no directions of their own any more: the
 * wanted pairs are within NEAR of their tolerances, so that a pair which the
 * guards are to reveal would have shown itself. */
static bool near(const sps_eigen *e)
{
    const sps_ritz *r = &e->ritz;

    for (int j = 0; j < spsi_subspace_target(&e->space); j++)
        if (r->resnorm[j] > NEAR * spsi_ritz_tolerance(r, j)) return false;
    return !e->transform.inverted && !spsi_ritz_converged(r);
}

/* Chooses the columns that produce directions: those that have not converged,
 * near the end only wanted ones.  Others, whose directions do no harm, are
 * added to make a multiple of 4, so that rows within S stay aligned. */
static int choose_active(const sps_eigen *e, int *active)
{
    const sps_ritz *r = &e->ritz;
    int m = e->space.m, target = near(e) ? spsi_subspace_target(&e->space) : m;
    int count = 0, all = 0;

    for (int j = 0; j < target; j++) all += !r->done[j];
    all = (all + 3) / 4 * 4;
    for (int pass = 0; pass < 3; pass++)
        for (int j = 0; j < m && count < all; j++)
            if ((r->done[j] ? 2 : j >= target) == pass) active[count++] = j;
    return count;
}

/* Returns whether W need not be orthonormal in memory: residuals are so far
 * above rounding that AMPLIFIED as a factor of rounding errors does not
 * show. */
static bool may_join(const sps_eigen *e, const lobpcg *l)
{
    const sps_deflation *d = &e->deflation;
    const sps_ritz *r = &e->ritz;

    if (!l->joins || e->transform.inverted ||
        spsi_lobpcg_extended(&e->space) || d->given + d->locked > 0 || d->means)
        return false;
    for (int j = 0; j < spsi_subspace_wanted(&e->space); j++)
        if (AMPLIFIED * spsi_pencil_attainable(&e->pencil, r->theta[j],
                                               r->xnorm[j]) >
            spsi_ritz_tolerance(r, j))
            return false;
    return true;
}

/* Computes A W, M W, l->Z and, in l->G, what spsi_lobpcg_assemble needs, for
 * the W = T R in memory. */
static sps_status join(sps_eigen *e, lobpcg *l, const sps_block *W)
{
    sps_status st = SPS_OK;
    int q = e->space.m + l->p, w = W->k;
    bool whole = l->amplified * l->factor > AMPLIFIED;
    sps_block AW, MW;

    spsi_block_view(e->space.AS, q, w, &AW);
    spsi_block_view(e->space.MS, q, w, &MW);
    if (e->pencil.M) SPS_TRY(spsi_pencil_mass(&e->pencil, W, &MW));
    SPS_TRY(spsi_transform_apply(&e->transform, W, &AW, &e->search));
    SPS_TRY(spsi_subspace_join(&e->space, q, w, whole, l->G, l->Z,
                               &l->factor));
    if (!whole && l->amplified * l->factor > AMPLIFIED) {
        whole = true;
        SPS_TRY(spsi_subspace_join(&e->space, q, w, true, l->G, l->Z,
                                   &l->factor));
    }
    l->amplified = whole ? l->factor : l->amplified * l->factor;
    l->joins = l->Z->cols > 0 && l->factor * l->factor <= AMPLIFIED;
    if (!l->joins) spsi_small_shape(l->Z, 0, 0);
fail:
    return st;
}

sps_status spsi_lobpcg_orthonormalise(sps_eigen *e, lobpcg *l, sps_block *W)
{
    sps_status st = SPS_OK;
    int q = e->space.m + l->p;
    sps_block Q, MQ, AW, MW;

    spsi_block_view(e->space.MS, q, W->k, &MW);
    spsi_block_view(e->space.S, 0, q, &Q);
    spsi_block_view(e->space.MS, 0, q, &MQ);
    SPS_TRY(spsi_subspace_orth(&e->space, e->pencil.M, &Q, &MQ, W, &MW,
                               &e->search.stop));
    if (e->search.stop || W->k == 0) return st;
    spsi_block_view(e->space.AS, q, W->k, &AW);
    SPS_TRY(spsi_transform_apply(&e->transform, W, &AW, &e->search));
fail:
    return st;
}

/* W = T R, stored after X and P, with A W and M W: orthonormal, or standing for
 * S Z, which is. */
static sps_status directions(sps_eigen *e, lobpcg *l, int a,
                             sps_block *W)
{
    sps_status st = SPS_OK;
    sps_block *R = e->space.R;

    spsi_block_view(e->space.S, e->space.m + l->p, a, W);
    for (int j = 0; j < a; j++) l->w[j] = e->ritz.resnorm[l->active[j]];
    if (a < e->space.m) {
        R = e->space.work;
        spsi_block_narrow(R, a);
        SPS_TRY(spsi_gather(e->space.R, l->active, R));
    }
    SPS_TRY(spsi_eigen_precondition(&e->precond, R, l->w, W));
    spsi_small_shape(l->Z, 0, 0);
    if (may_join(e, l)) SPS_TRY(join(e, l, W));
    if (l->Z->cols == 0) SPS_TRY(spsi_lobpcg_orthonormalise(e, l, W));
fail:
    return st;
}

/* Compares A X as updated with a new product.  Where the difference is visible
 * in a residual, or X is no longer orthonormal, the method starts again from
 * X. */
static sps_status check_drift(sps_eigen *e, lobpcg *l)
{
    sps_status st = SPS_OK;
    bool drifted = false;

    spsi_block_narrow(e->space.work, e->space.m);
    SPS_TRY(spsi_transform_apply(&e->transform, &e->space.X, e->space.work,
                                 &e->search));
    SPS_TRY(spsi_axpby(-1.0, &e->space.AX, 1.0, e->space.work));
    SPS_TRY(spsi_norms(e->space.work, l->w));
    SPS_TRY(spsi_gram(&e->space.X, &e->space.MX, l->G));
    for (int j = 0; j < e->space.m; j++) {
        if (l->w[j] > 0.1 * e->ritz.resnorm[j] &&
            l->w[j] > spsi_pencil_attainable(&e->pencil, e->ritz.theta[j],
                                             e->ritz.xnorm[j]))
            drifted = true;
        for (int i = 0; i < e->space.m; i++)
            if (fabs(*spsi_small_at(l->G, i, j) - (i == j)) > 1e-10)
                drifted = true;
    }
    if (!drifted) return SPS_OK;
    e->search.restarts++;
    e->search.event = "products renewed";
    SPS_TRY(start(e, l));
fail:
    return st;
}

static sps_status step(sps_eigen *e, void *method)
{
    lobpcg *l = method;
    sps_status st = SPS_OK;
    int a = choose_active(e, l->active);
    sps_block W;

    SPS_TRY(directions(e, l, a, &W));
    e->space.directions = W.k;
    if (W.k == 0 && !e->search.stop) e->search.stop = SPS_STOP_STAGNATED;
    if (e->search.stop) return st;
    SPS_TRY(spsi_lobpcg_assemble(e, l, W.k));
    SPS_TRY(spsi_lobpcg_ritz(e, l, a));
    if (e->search.stop) return st;
    if (++l->steps % SPS_LOBPCG_CHECK == 0) SPS_TRY(spsi_lobpcg_extend(e, l));
    if (!e->transform.inverted && l->steps % e->opt.true_residual_every == 0)
        SPS_TRY(check_drift(e, l));
fail:
    return st;
}

SPS_DEFINE(sps_eigen_type, spsi_eigen_lobpcg) = {
    .name = "lobpcg",
    .size = sizeof(lobpcg),
    .stack = SPS_LOBPCG_STACK,
    .longest = BASIS,
    .preconditioned = true,
    .setup = setup,
    .start = start,
    .step = step,
};
