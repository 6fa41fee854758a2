/* SPDX-License-Identifier: BSD-3-Clause */
/* lobpcg_extend.c - clusters of eigenvalues that are wider than the block.
 *
 * Where all Ritz values of X lie close together and the tolerance is far away,
 * S is extended.  [X P W] would have to resolve the cluster by the gaps within
 * it; S holds it as a whole instead, and Rayleigh-Ritz resolves it.
 *
 * A basis of the cluster comes from random columns by a filter.  For theta in
 * the cluster and T about A^-1, T (A - theta M) has eigenvalues near zero for
 * the cluster and near 1 - theta / lambda for the others, so that a Chebyshev
 * polynomial p with p(0) = 1 that is small on [LOW, HIGH] keeps the one and
 * damps the others.  The columns need no inner products for that: X first, then
 * columns are added until a part of the Ritz values lies beyond the cluster.
 *
 * Without a T of known quality the residuals of later steps must find the
 * cluster. */
#include "lobpcg.h"

#include <math.h>

#define EXTENSION 2   /* least factor by which S must become longer */
#define SLOW 20       /* predicted steps to the tolerance that call for it */
#define CLUSTER 0.05  /* largest relative distance of the last Ritz value of X
                         from the last wanted one */
#define LOW 0.4       /* lambda of 1.7 theta and more is damped */
#define HIGH 1.05     /* of T A, which cycles of multigrid hardly exceed */
#define DEGREE 8      /* a factor of 2e-5 for what is damped */
#define GOOD 0.5      /* largest error that T may leave */
#define COLUMNS 16    /* filtered at a time */
#define INSIDE 0.8    /* part of the Ritz values in the cluster at which it may
                         have more */

/* Returns whether the last Ritz value of X lies close to the last wanted one,
 * so that the eigenvectors of more values than X has columns mix. */
static bool clustered(const sps_eigen *e)
{
    int m = e->space.m, last = spsi_subspace_target(&e->space) - 1;
    double end = e->ritz.value[m - 1];

    return fabs(end - e->ritz.value[last]) < CLUSTER * fabs(end);
}

static sps_status enlarge(sps_eigen *e, lobpcg *l)
{
    int most = e->space.longest, s = SPS_LOBPCG_STACK * e->space.width;
    sps_status st;

    SPS_TRY(spsi_small_enlarge(&l->F, most, most));
    SPS_TRY(spsi_small_enlarge(&l->K, most, most));
    SPS_TRY(spsi_small_enlarge(&l->B, most, s));
    SPS_TRY(spsi_small_enlarge(&l->N, most, s));
    SPS_TRY(spsi_small_enlarge(&l->G, most, s));
    SPS_TRY(spsi_ritz_extend(&e->ritz));
    SPS_TRY(spsi_subspace_extend(&e->space, e->space.m + l->p));
fail:
    return st;
}

/* R = (A - theta M) U, with the norms of its columns. */
static sps_status shifted(sps_eigen *e, double theta, const sps_block *U,
                          sps_block *MU, sps_block *R, double *norm)
{
    double same[SPS_BLOCK_MAX];
    sps_status st;

    for (int j = 0; j < U->k; j++) same[j] = theta;
    SPS_TRY(spsi_pencil_apply(&e->pencil, U, R));
    SPS_TRY(spsi_pencil_mass(&e->pencil, U, MU));
    SPS_TRY(spsi_subtract_cols(MU, same, R, norm));
    for (int j = 0; j < U->k; j++) norm[j] = sqrt(norm[j]);
fail:
    return st;
}

/* U = p(T (A - theta M)) U by the recurrence of Chebyshev's semi-iteration for
 * (A - theta M) u = 0; MU and D are scratch blocks. */
static sps_status filter(sps_eigen *e, double theta, sps_block *U,
                         sps_block *MU, sps_block *D)
{
    const double centre = (HIGH + LOW) / 2, half = (HIGH - LOW) / 2;
    double norm[SPS_BLOCK_MAX], rho = 0;
    sps_block *R = e->space.R, *Z = e->space.work;
    sps_status st = SPS_OK;

    spsi_block_narrow(R, U->k);
    spsi_block_narrow(Z, U->k);
    for (int d = 0; d < DEGREE; d++) {
        double next = d == 0 ? half / centre : 1 / (2 * centre / half - rho);

        SPS_TRY(shifted(e, theta, U, MU, R, norm));
        SPS_TRY(spsi_eigen_precondition(&e->precond, R, norm, Z));
        SPS_TRY(spsi_axpby(d == 0 ? -1 / centre : -2 * next / half, Z,
                           next * rho, D));
        SPS_TRY(spsi_axpby(1, D, 1, U));
        rho = next;
    }
fail:
    return st;
}

/* X becomes the Ritz vectors of its filtered columns. */
static sps_status filter_X(sps_eigen *e, lobpcg *l, double theta)
{
    sps_block D;
    sps_status st;

    spsi_block_view(e->space.AS, e->space.m, e->space.m, &D);
    SPS_TRY(filter(e, theta, &e->space.X, &e->space.MX, &D));
    SPS_TRY(spsi_lobpcg_begin(e, l));
fail:
    return st;
}

/* Adds filtered random columns to S; F follows. */
static sps_status add(sps_eigen *e, lobpcg *l, double theta, int columns)
{
    sps_status st;
    int q = e->space.m + l->p;
    sps_block W, MW, D;

    spsi_block_view(e->space.S, q, columns, &W);
    spsi_block_view(e->space.MS, q, columns, &MW);
    spsi_block_view(e->space.AS, q, columns, &D);
    SPS_TRY(spsi_eigen_draw(&e->precond, &W,
                            e->ctx->opt.seed + 2000 + (uint64_t)q));
    SPS_TRY(filter(e, theta, &W, &MW, &D));
    SPS_TRY(spsi_lobpcg_orthonormalise(e, l, &W));
    if (e->search.stop || W.k == 0) return st;
    SPS_TRY(spsi_lobpcg_assemble(e, l, W.k));
    SPS_TRY(spsi_small_copy(e->ritz.H, l->F));
    l->p += W.k;
fail:
    return st;
}

/* Sets *whole to whether S holds the cluster as a whole: part of its Ritz
 * values lie beyond. */
static sps_status look(sps_eigen *e, lobpcg *l, bool *whole)
{
    double end = (1 + CLUSTER) * e->ritz.value[e->space.m - 1];
    sps_small *H = e->ritz.H;
    sps_status st;
    int inside;

    SPS_TRY(spsi_small_copy(l->F, H));
    for (int j = 0; j < H->rows; j++) *spsi_small_at(H, j, j) -= end;
    SPS_TRY(spsi_small_inertia(H, &inside));
    *whole = inside <= INSIDE * H->rows;
fail:
    return st;
}

/* Fills S with a basis of the cluster around theta; a part of S stays free. */
static sps_status fill(sps_eigen *e, lobpcg *l, double theta)
{
    int m = e->space.m, columns = m < COLUMNS ? m : COLUMNS, next = 0;
    int most = e->space.longest * 5 / 8;
    sps_status st;
    bool whole = false;

    SPS_TRY(filter_X(e, l, theta));
    while (!whole && !e->search.stop && m + l->p + columns <= most &&
           !spsi_eigen_limit(e)) {
        SPS_TRY(add(e, l, theta, columns));
        if (m + l->p < next || e->search.stop) continue;
        SPS_TRY(look(e, l, &whole));
        next = (m + l->p) * 3 / 2;
    }
    if (e->search.stop) return st;
    SPS_TRY(spsi_small_copy(l->F, e->ritz.H));
    SPS_TRY(spsi_lobpcg_ritz(e, l, 0));
fail:
    return st;
}

/* Returns whether T is known to be about A^-1 and nothing is deflated, which T
 * might amplify. */
static bool filters(const sps_eigen *e)
{
    const sps_precond *T = e->precond.T;
    const sps_deflation *d = &e->deflation;

    return spsi_eigen_preconditioned(&e->precond) && T->rate > 0 &&
           T->rate <= GOOD && e->wanted.sign > 0 && !e->transform.inverted &&
           d->given + d->locked == 0 && !d->means && e->ritz.value[0] > 0;
}

/* Without memory for an extension the search goes on as before; several
 * processes would have to agree on it and are left alone. */
sps_status spsi_lobpcg_extend(sps_eigen *e, lobpcg *l)
{
    double before = l->excess, left = spsi_ritz_excess(&e->ritz);
    const sps_subspace *s = &e->space;
    sps_status st;

    l->excess = left;
    if (s->AS->width == s->longest ||
        s->longest < EXTENSION * s->AS->width || e->ctx->opt.comm ||
        !isfinite(before) || !clustered(e) ||
        left * SPS_LOBPCG_CHECK <= SLOW * fmax(before - left, 0))
        return SPS_OK;
    st = enlarge(e, l);
    if (st == SPS_ENOMEM || st == SPS_EDEVMEM) return SPS_OK;
    e->search.event = "basis extended";
    if (st == SPS_OK && filters(e)) st = fill(e, l, e->ritz.value[s->m / 2]);
    return st;
}
