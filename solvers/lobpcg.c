/* SPDX-License-Identifier: BSD-3-Clause */
/* lobpcg.c - locally optimal block preconditioned conjugate gradients for
 * A x = lambda M x (Knyazev, SIAM J. Sci. Comput. 23(2), 2001), in the basis
 * of Hetmaniuk and Lehoucq (J. Comput. Phys. 218, 2006) and Duersch, Shao,
 * Yang and Gu (SIAM J. Sci. Comput. 40(5), 2018).
 *
 * S = [X P W] is kept M-orthonormal, W = orth(T R) of the columns at work, so
 * that Rayleigh-Ritz is one symmetric eigenproblem of H = S'AS:
 *
 *     H V = V diag(theta);  X = S V1;  P = S V2 B,
 *
 * V1 the wanted vectors, V2 the others, and B an orthonormal basis of
 * V2'[0; V1 without the rows of X]: the new directions are orthogonal to the
 * new X by their coefficients alone.  Then X'AX = diag(theta1), X'AP = 0 and
 * P'AP = B'diag(theta2)B: only the columns of W take products, and A S, M S
 * follow X and P by the same coefficients.  From time to time they are
 * compared with fresh products.
 *
 * An iteration in n x m block passes, w = m, M the identity: residual 6,
 * W = T R, orthonormal 20, A W, S'AW 4, S and AS by the coefficients 10. */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "timer.h"

struct lobpcg {
    int p;                /* columns of P */
    int begun;            /* steps since start */
    int *active;          /* columns of X that make directions */
    double *w;            /* 3 m: eigenvalues */
    sps_small *PAP;       /* p x p */
    sps_small *K;         /* s x (m + p): V1, V2 B */
    sps_small *B, *N;     /* (s - m) x p, scratch of the same shape */
};

static sps_status setup(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;
    sps_status st = SPS_OK;
    int m = e->width;

    SPS_TRY(SPS_NEW(e->ctx, m, &l->active));
    SPS_TRY(SPS_NEW(e->ctx, 3 * m, &l->w));
    SPS_TRY(spsi_small_create(e->ctx, m, m, &l->PAP));
    SPS_TRY(spsi_small_create(e->ctx, 3 * m, 2 * m, &l->K));
    SPS_TRY(spsi_small_create(e->ctx, 3 * m, m, &l->B));
    SPS_TRY(spsi_small_create(e->ctx, 3 * m, m, &l->N));
fail:
    return st;
}

static sps_status start(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;

    l->p = l->begun = 0;
    return spsi_eigen_begin(e, l->w);
}

/* The columns at work, made up to a multiple of 4 by columns that are done:
 * rows of the stack stay aligned, and their directions do no harm. */
static int choose_active(const sps_eigen *e, int *active)
{
    int count = 0, all;

    for (int j = 0; j < e->m; j++) count += !e->done[j];
    all = (count + 3) / 4 * 4 - count;
    count = 0;
    for (int j = 0; j < e->m; j++) {
        if (e->done[j] && --all < 0) continue;
        active[count++] = j;
    }
    return count;
}

/* W = orth(T R) behind X and P, with A W and M W; W->k may come out smaller. */
static sps_status directions(sps_eigen *e, struct lobpcg *l, int a,
                             sps_block *W)
{
    sps_status st = SPS_OK;
    int q = e->m + l->p;
    sps_block Q, MQ, AW, MW, *R = e->R;

    spsi_block_view(e->S, q, a, W);
    spsi_block_view(e->MS, q, a, &MW);
    spsi_block_view(e->S, 0, q, &Q);
    spsi_block_view(e->MS, 0, q, &MQ);
    if (a < e->m) {
        R = e->room;
        spsi_block_narrow(R, a);
        SPS_TRY(spsi_gather(e->R, l->active, R));
    }
    SPS_TRY(spsi_eigen_precondition(e, R, W));
    SPS_TRY(spsi_eigen_orth(e, &Q, &MQ, W, &MW));
    if (e->stop || W->k == 0) return st;
    spsi_block_view(e->AS, q, W->k, &AW);
    SPS_TRY(spsi_eigen_apply(e, W, &AW));
fail:
    return st;
}

/* H in e->G: diag(theta), P'AP, and S'AW. */
static sps_status assemble(sps_eigen *e, struct lobpcg *l, int w)
{
    sps_status st = SPS_OK;
    int m = e->m, q = m + l->p, s = q + w;
    sps_block S, AW;

    spsi_block_view(e->inverted ? e->MS : e->S, 0, s, &S);
    spsi_block_view(e->AS, q, w, &AW);
    spsi_phase_begin(e->ctx, SPS_PHASE_GRAM);
    st = spsi_gram(&S, &AW, e->C);
    spsi_phase_end(e->ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    spsi_small_shape(e->G, s, s);
    spsi_small_clear(e->G);
    for (int j = 0; j < m; j++) *spsi_small_at(e->G, j, j) = e->ritz[j];
    for (int j = 0; j < l->p; j++)
        for (int i = 0; i < l->p; i++)
            *spsi_small_at(e->G, m + i, m + j) = *spsi_small_at(l->PAP, i, j);
    for (int j = 0; j < w; j++)
        for (int i = 0; i < s; i++) {
            double v = *spsi_small_at(e->C, i, j);

            *spsi_small_at(e->G, i, q + j) = v;
            if (i < q) *spsi_small_at(e->G, q + j, i) = v;
        }
    return SPS_OK;
}

/* B: an orthonormal basis of V2'[0; V1] for the active columns; p its rank. */
static sps_status directions_of(sps_eigen *e, struct lobpcg *l,
                                const sps_small *V, int a)
{
    sps_status st = SPS_OK;
    int m = e->m, s = V->rows;
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
        SPS_TRY(spsi_small_mul(1.0, l->B, true, l->B, false, 0.0, e->C));
        SPS_TRY(spsi_small_orthonormaliser(e->C, 1e-12, e->U, &l->p,
                                           &condition));
        SPS_TRY(spsi_small_mul(1.0, l->B, false, e->U, false, 0.0, l->N));
        SPS_TRY(spsi_small_copy(l->N, l->B));
    }
fail:
    return st;
}

/* K = [V1, V2 B] and P'AP = B'diag(theta2)B. */
static sps_status coefficients(sps_eigen *e, struct lobpcg *l,
                               const sps_small *V)
{
    sps_status st = SPS_OK;
    int m = e->m, s = V->rows;

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
            *spsi_small_at(l->N, t, c) *= e->sign * l->w[m + t];
    SPS_TRY(spsi_small_mul(1.0, l->B, true, l->N, false, 0.0, l->PAP));
    spsi_small_symmetrise(l->PAP);
fail:
    return st;
}

/* Products that X has carried along, against fresh ones: a difference that
 * shows in a residual, or X no longer orthonormal, starts X again. */
static sps_status check_drift(sps_eigen *e, struct lobpcg *l)
{
    sps_status st = SPS_OK;
    bool drifted = false;

    spsi_block_narrow(e->room, e->m);
    SPS_TRY(spsi_eigen_apply(e, &e->X, e->room));
    SPS_TRY(spsi_axpby(-1.0, &e->AX, 1.0, e->room));
    SPS_TRY(spsi_norms(e->room, l->w));
    SPS_TRY(spsi_gram(&e->X, &e->MX, e->C));
    for (int j = 0; j < e->m; j++) {
        if (l->w[j] > 0.1 * e->resnorm[j] &&
            l->w[j] > spsi_eigen_floor(e, e->theta[j], e->xnorm[j]))
            drifted = true;
        for (int i = 0; i < e->m; i++)
            if (fabs(*spsi_small_at(e->C, i, j) - (i == j)) > 1e-10)
                drifted = true;
    }
    if (!drifted) return SPS_OK;
    e->restarts++;
    e->event = "products renewed";
    SPS_TRY(start(e, l));
fail:
    return st;
}

static sps_status step(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;
    sps_status st = SPS_OK;
    int a = choose_active(e, l->active);
    sps_block W;

    SPS_TRY(directions(e, l, a, &W));
    e->directions = W.k;
    if (W.k == 0 && !e->stop) e->stop = SPS_STOP_STAGNATED;
    if (e->stop) return st;
    SPS_TRY(assemble(e, l, W.k));
    SPS_TRY(spsi_eigen_ritz(e, e->G, l->w));
    if (e->stop) return st;
    SPS_TRY(directions_of(e, l, e->G, a));
    SPS_TRY(coefficients(e, l, e->G));
    SPS_TRY(spsi_eigen_rotate(e, l->K));
    for (int j = 0; j < e->m; j++) e->ritz[j] = e->sign * l->w[j];
    SPS_TRY(spsi_eigen_residuals(e));
    if (!e->stop && !e->inverted &&
        ++l->begun % e->opt.true_residual_every == 0)
        SPS_TRY(check_drift(e, l));
fail:
    return st;
}

static void destroy(sps_eigen *e, void *method)
{
    struct lobpcg *l = method;

    spsi_small_destroy(&l->PAP);
    spsi_small_destroy(&l->K);
    spsi_small_destroy(&l->B);
    spsi_small_destroy(&l->N);
    spsi_free(e->ctx, l->active);
    spsi_free(e->ctx, l->w);
}

SPS_DEFINE(sps_eigen_type, spsi_eigen_lobpcg) = {
    .name = "lobpcg",
    .size = sizeof(struct lobpcg),
    .stack = 3,
    .preconditioned = true,
    .setup = setup,
    .start = start,
    .step = step,
    .destroy = destroy,
};
