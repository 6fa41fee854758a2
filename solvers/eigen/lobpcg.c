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
 * Cost of an iteration in passes over n x m blocks, with w = m columns of W and
 * M the identity: residual 6, orthogonalisation of W 20, S'AW 4, update of S
 * and AS 10, in addition to W = T R and A W. */
#include "eigen/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/timer.h"

struct lobpcg {
    int p;                /* columns of P */
    int steps;            /* steps since the start */
    int *active;          /* columns of X that produce directions */
    double *w;            /* 3 m eigenvalues */
    sps_small *PAP;       /* p x p */
    sps_small *K;         /* s x (m + p): V1 and V2 B */
    sps_small *B, *N;     /* (s - m) x p: the basis B, and scratch of the same
                             shape */
    sps_small *G, *T;     /* Gram matrices, and the factor of one */
};

static sps_status setup(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;
    sps_status st = SPS_OK;
    int m = e->space.width;

    SPS_TRY(SPS_OWN(&e->own, m, &l->active));
    SPS_TRY(SPS_OWN(&e->own, 3 * m, &l->w));
    SPS_TRY(spsi_own_small(&e->own, m, m, &l->PAP));
    SPS_TRY(spsi_own_small(&e->own, 3 * m, 2 * m, &l->K));
    SPS_TRY(spsi_own_small(&e->own, 3 * m, m, &l->B));
    SPS_TRY(spsi_own_small(&e->own, 3 * m, m, &l->N));
    SPS_TRY(spsi_own_small(&e->own, 3 * m, m, &l->G));
    SPS_TRY(spsi_own_small(&e->own, m, m, &l->T));
fail:
    return st;
}

static sps_status start(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;

    l->p = l->steps = 0;
    return spsi_eigen_begin(e, l->w);
}

/* Chooses the columns that have not converged.  Converged ones, whose
 * directions do no harm, are added to make a multiple of 4, so that rows within
 * S stay aligned. */
static int choose_active(const sps_ritz *r, int *active)
{
    int count = 0, all;

    for (int j = 0; j < r->space->m; j++) count += !r->done[j];
    all = (count + 3) / 4 * 4 - count;
    count = 0;
    for (int j = 0; j < r->space->m; j++) {
        if (r->done[j] && --all < 0) continue;
        active[count++] = j;
    }
    return count;
}

/* W = orth(T R), stored after X and P, with A W and M W; W->k may become
 * smaller. */
static sps_status directions(sps_eigen *e, struct lobpcg *l, int a,
                             sps_block *W)
{
    sps_status st = SPS_OK;
    int q = e->space.m + l->p;
    sps_block Q, MQ, AW, MW, *R = e->space.R;

    spsi_block_view(e->space.S, q, a, W);
    spsi_block_view(e->space.MS, q, a, &MW);
    spsi_block_view(e->space.S, 0, q, &Q);
    spsi_block_view(e->space.MS, 0, q, &MQ);
    if (a < e->space.m) {
        R = e->space.work;
        spsi_block_narrow(R, a);
        SPS_TRY(spsi_gather(e->space.R, l->active, R));
    }
    SPS_TRY(spsi_eigen_precondition(&e->precond, R, W));
    SPS_TRY(spsi_subspace_orth(&e->space, e->pencil.M, &Q, &MQ, W, &MW,
                               &e->search.stop));
    if (e->search.stop || W->k == 0) return st;
    spsi_block_view(e->space.AS, q, W->k, &AW);
    SPS_TRY(spsi_transform_apply(&e->transform, W, &AW, &e->search));
fail:
    return st;
}

/* Assembles r->H = S'AS from diag(theta), P'AP and S'AW.  If `inverted`, A is
 * the inverted operator, and S' is replaced by S'M. */
static sps_status assemble(sps_ritz *r, const struct lobpcg *l, int w,
                           bool inverted)
{
    sps_context *ctx = r->space->pencil->ctx;
    sps_status st = SPS_OK;
    int m = r->space->m, q = m + l->p, s = q + w;
    sps_block S, AW;

    spsi_block_view(inverted ? r->space->MS : r->space->S, 0, s, &S);
    spsi_block_view(r->space->AS, q, w, &AW);
    spsi_phase_begin(ctx, SPS_PHASE_GRAM);
    st = spsi_gram(&S, &AW, l->G);
    spsi_phase_end(ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    spsi_small_shape(r->H, s, s);
    spsi_small_clear(r->H);
    for (int j = 0; j < m; j++) *spsi_small_at(r->H, j, j) = r->value[j];
    for (int j = 0; j < l->p; j++)
        for (int i = 0; i < l->p; i++)
            *spsi_small_at(r->H, m + i, m + j) = *spsi_small_at(l->PAP, i, j);
    for (int j = 0; j < w; j++)
        for (int i = 0; i < s; i++) {
            double v = *spsi_small_at(l->G, i, j);

            *spsi_small_at(r->H, i, q + j) = v;
            if (i < q) *spsi_small_at(r->H, q + j, i) = v;
        }
    return SPS_OK;
}

/* Computes B, an orthonormal basis of V2'[0; V1] for the active columns; p
 * becomes its rank. */
static sps_status directions_of(struct lobpcg *l, int m, const sps_small *V,
                                int a)
{
    sps_status st = SPS_OK;
    int s = V->rows;
    double condition;

    spsi_small_shape(l->B, s - m, a);
    for (int c = 0; c < a; c++)
        for (int t = 0; t < s - m; t++) {
            double sum = 0;

            for (int i = m; i < s; i++)
                sum += *spsi_small_at(V, i, m + t) *
                       *spsi_small_at(V, i, l->active[c]);
            *spsi_small_at(l->B, t, c) = sum;
        }
    for (int round = 0; round < 2; round++) {
        SPS_TRY(spsi_small_mul(1.0, l->B, true, l->B, false, 0.0, l->G));
        SPS_TRY(spsi_small_orthonormaliser(l->G, 1e-12, l->T, &l->p,
                                           &condition));
        SPS_TRY(spsi_small_mul(1.0, l->B, false, l->T, false, 0.0, l->N));
        SPS_TRY(spsi_small_copy(l->N, l->B));
    }
fail:
    return st;
}

/* K = [V1, V2 B] and P'AP = B'diag(theta2)B. */
static sps_status coefficients(struct lobpcg *l, int m, double sign,
                               const sps_small *V)
{
    sps_status st = SPS_OK;
    int s = V->rows;

    spsi_small_shape(l->K, s, m + l->p);
    memcpy(l->K->v, V->v, (size_t)s * (size_t)m * sizeof(double));
    for (int c = 0; c < l->p; c++) {
        double *k = spsi_small_at(l->K, 0, m + c);

        memset(k, 0, (size_t)s * sizeof *k);
        for (int t = 0; t < s - m; t++) {
            double b = *spsi_small_at(l->B, t, c);
            const double *v = spsi_small_at(V, 0, m + t);

            for (int i = 0; i < s; i++) k[i] += b * v[i];
        }
    }
    SPS_TRY(spsi_small_copy(l->B, l->N));
    for (int c = 0; c < l->p; c++)
        for (int t = 0; t < s - m; t++)
            *spsi_small_at(l->N, t, c) *= sign * l->w[m + t];
    SPS_TRY(spsi_small_mul(1.0, l->B, true, l->N, false, 0.0, l->PAP));
    spsi_small_symmetrise(l->PAP);
fail:
    return st;
}

/* Compares A X as updated with a new product.  Where the difference is visible
 * in a residual, or X is no longer orthonormal, the method starts again from
 * X. */
static sps_status check_drift(sps_eigen *e, struct lobpcg *l)
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
    struct lobpcg *l = method;
    sps_status st = SPS_OK;
    int a = choose_active(&e->ritz, l->active);
    sps_block W;

    SPS_TRY(directions(e, l, a, &W));
    e->space.directions = W.k;
    if (W.k == 0 && !e->search.stop) e->search.stop = SPS_STOP_STAGNATED;
    if (e->search.stop) return st;
    SPS_TRY(assemble(&e->ritz, l, W.k, e->transform.inverted));
    SPS_TRY(spsi_ritz_solve(&e->ritz, &e->transform, e->ritz.H, l->w,
                            &e->search.stop));
    if (e->search.stop) return st;
    SPS_TRY(directions_of(l, e->space.m, e->ritz.H, a));
    SPS_TRY(coefficients(l, e->space.m, e->wanted.sign, e->ritz.H));
    SPS_TRY(spsi_subspace_rotate(&e->space, l->K));
    for (int j = 0; j < e->space.m; j++)
        e->ritz.value[j] = e->wanted.sign * l->w[j];
    SPS_TRY(spsi_eigen_residuals(e));
    if (!e->search.stop && !e->transform.inverted &&
        ++l->steps % e->opt.true_residual_every == 0)
        SPS_TRY(check_drift(e, l));
fail:
    return st;
}

SPS_DEFINE(sps_eigen_type, spsi_eigen_lobpcg) = {
    .name = "lobpcg",
    .size = sizeof(struct lobpcg),
    .stack = 3,
    .preconditioned = true,
    .setup = setup,
    .start = start,
    .step = step,
};
