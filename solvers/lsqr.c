/* SPDX-License-Identifier: BSD-3-Clause */
/* lsqr.c - LSQR (Paige and Saunders, ACM TOMS 8, 1982) for least squares with
 * many right-hand sides: conjugate gradients on S'S x = S'b in exact
 * arithmetic, by bidiagonalisation (bidiagonal.h, where S and D are defined).
 * It minimises ||r|| over the Krylov space of S'S and S'r_0.
 *
 *     rho = (rhobar^2 + beta^2)^(1/2);  c = rhobar / rho;  s = beta / rho;
 *     theta = s alpha;  rhobar = -c alpha;  phi = c phibar;  phibar = s phibar;
 *     X += (phi / rho) W;  W = D v - (theta / rho) W;
 *     ||r|| = phibar,  ||S'r|| = phibar |c| alpha ||D^-1 v||.
 *
 * Passes of a step over blocks of ncol rows, in addition to those of
 * bidiagonal.h: W 3, X 3. */
#include "solvers/bidiagonal.h"

#include <math.h>

struct lsqr {
    spsi_bidiagonal g;
    sps_block *W;
    double *rhobar, *phibar, *rho, *phi, *theta, *next;
};

static sps_status setup(sps_linear *s, void *method)
{
    struct lsqr *m = method;
    double **const all[] = { &m->rhobar, &m->phibar, &m->rho, &m->phi,
                             &m->theta, &m->next, NULL };
    sps_status st;

    SPS_TRY(spsi_bidiagonal_create(s, &m->g));
    SPS_TRY(spsi_own_block(&s->made.own, s->n, s->columns, &m->W));
    SPS_TRY(spsi_own_numbers(&s->made.own, s->columns, all));
fail:
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    struct lsqr *m = method;
    sps_status st;

    SPS_TRY(spsi_bidiagonal_start(s, &m->g));
    spsi_block_narrow(m->W, s->k);
    SPS_TRY(spsi_bidiagonal_turn(s, &m->g, NULL, m->W));
    for (int p = 0; p < s->k; p++) {
        m->rhobar[p] = m->g.alpha[p];
        m->phibar[p] = m->g.beta[p];
        s->least.normal[p] = m->g.normal[p] * m->g.beta[p];
    }
fail:
    return st;
}

/* Computes the rotation of column p and the coefficients that follow from
 * it. */
static void rotate(sps_linear *s, struct lsqr *m, int p)
{
    const double alpha = m->g.alpha[p], beta = m->g.beta[p];
    const double rho = hypot(m->rhobar[p], beta);
    const bool fixed = s->at.done[p] || rho == 0;
    const double c = fixed ? 0 : m->rhobar[p] / rho;
    const double t = fixed ? 1 : beta / rho;

    m->phi[p] = fixed ? 0 : c * m->phibar[p] / rho;
    m->theta[p] = fixed ? 0 : -t * (alpha / rho);
    m->next[p] = fixed ? s->resnorm[p] : t * m->phibar[p];
    if (fixed) return;
    m->rhobar[p] = -c * alpha;
    m->phibar[p] = m->next[p];
    s->least.normal[p] = m->phibar[p] * fabs(c) * m->g.normal[p];
}

static sps_status step(sps_linear *s, void *method)
{
    struct lsqr *m = method;
    sps_status st;

    SPS_TRY(spsi_bidiagonal_step(s, &m->g));
    if (s->stop) return st;
    for (int p = 0; p < s->k; p++) rotate(s, m, p);
    SPS_TRY(spsi_best_update(s, m->next));
    if (s->stop) return st;
    SPS_TRY(spsi_bidiagonal_move(s, &m->g, m->phi, m->W));
    SPS_TRY(spsi_bidiagonal_turn(s, &m->g, m->theta, m->W));
fail:
    return st;
}

static sps_status permute(sps_linear *s, void *method, const int *from,
                          int count)
{
    struct lsqr *m = method;

    return spsi_bidiagonal_permute(s, &m->g, from, count,
                                   (sps_block *[]){ m->W, NULL },
                                   (double *[]){ m->rhobar, m->phibar, NULL });
}

SPS_DEFINE(sps_linear_type, spsi_solver_lsqr) = {
    .name = "lsqr",
    .needs = SPS_LEAST_SQUARES,
    .size = sizeof(struct lsqr),
    .blocks = 2,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
};
