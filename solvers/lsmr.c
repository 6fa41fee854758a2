/* SPDX-License-Identifier: BSD-3-Clause */
/* lsmr.c - LSMR (Fong and Saunders, SIAM J. Sci. Comput. 33, 2011) for least
 * squares with many right-hand sides: MINRES on S'S x = S'b in exact
 * arithmetic, by bidiagonalisation (bidiagonal.h, where S and D are defined).
 * It minimises ||D S'r|| over the Krylov space of S'S and S'r_0, so that this
 * norm, and ||r|| too, never rises.
 *
 *     rho = (alphabar^2 + beta^2)^(1/2);  c = alphabar / rho;  s = beta / rho;
 *     theta = s alpha;  alphabar = c alpha;
 *     thetabar = sbar rho;  rhobar = ((cbar rho)^2 + theta^2)^(1/2);
 *     cbar = cbar rho / rhobar;  sbar = theta / rhobar;
 *     zeta = cbar zetabar;  zetabar = -sbar zetabar;
 *     Q = W - (thetabar rho / (rho_old rhobar_old)) Q;
 *     X += (zeta / (rho rhobar)) Q;  W = D v - (theta / rho) W.
 *
 * ||D S'r|| = |zetabar|.  With a scaling D the vector S'r itself is needed for
 * its norm: S'r = zetabar G, G = cbar D^-1 v - sbar G.
 *
 * ||r|| follows from a second chain of rotations, which make the transposed
 * bidiagonal matrix upper again (section 5 of the paper).
 *
 * Passes of a step over blocks of ncol rows, in addition to those of
 * bidiagonal.h: W 3, Q 3, X 3; with D also 4 for G. */
#include "solvers/bidiagonal.h"

#include <math.h>

struct lsmr {
    spsi_bidiagonal g;
    sps_block *W, *Q, *G;      /* G is allocated only with a scaling D */
    double *alphabar, *zetabar, *rho, *rhobar, *cbar, *sbar, *zeta;
    /* For the norm of r; the paper calls them betadd, betad, rhodold, tautilde
     * and thetatilde. */
    double *open, *chain, *diagonal, *tau, *side;
    /* q, x, w: coefficients of the updates of Q, X and W; next: norms ||r||;
     * minus: -sbar. */
    double *q, *x, *w, *next, *minus;
};

#define CARRIED(m)                                                             \
    (m)->alphabar, (m)->zetabar, (m)->rho, (m)->rhobar, (m)->cbar, (m)->sbar,  \
    (m)->zeta, (m)->open, (m)->chain, (m)->diagonal, (m)->tau, (m)->side

static sps_status setup(sps_linear *s, void *method)
{
    struct lsmr *m = method;
    double **const all[] = {
        &m->alphabar, &m->zetabar, &m->rho, &m->rhobar, &m->cbar, &m->sbar,
        &m->zeta, &m->open, &m->chain, &m->diagonal, &m->tau, &m->side, &m->q,
        &m->x, &m->w, &m->next, &m->minus, NULL };
    sps_owner *own = &s->made.own;
    sps_status st;

    SPS_TRY(spsi_bidiagonal_create(s, &m->g));
    SPS_TRY(spsi_own_block(own, s->n, s->columns, &m->W));
    SPS_TRY(spsi_own_block(own, s->n, s->columns, &m->Q));
    if (s->M) SPS_TRY(spsi_own_block(own, s->n, s->columns, &m->G));
    SPS_TRY(spsi_own_numbers(own, s->columns, all));
fail:
    return st;
}

/* G = cbar D^-1 v + b G for the v of norm 1. */
static sps_status follow(sps_linear *s, struct lsmr *m, const double *cbar,
                         const double *b)
{
    for (int p = 0; p < s->k; p++)
        m->g.a[p] = m->g.mu[p] == 0 ? 0 : cbar[p] / m->g.mu[p];
    return spsi_axpby_cols(m->g.a, m->g.Z, b, m->G);
}

static sps_status start(sps_linear *s, void *method)
{
    struct lsmr *m = method;
    sps_status st;

    SPS_TRY(spsi_bidiagonal_start(s, &m->g));
    spsi_block_narrow(m->W, s->k);
    spsi_block_narrow(m->Q, s->k);
    SPS_TRY(spsi_bidiagonal_turn(s, &m->g, NULL, m->W));
    SPS_TRY(spsi_fill(m->Q, 0.0));
    for (int p = 0; p < s->k; p++) {
        m->alphabar[p] = m->g.alpha[p];
        m->zetabar[p] = m->g.alpha[p] * m->g.beta[p];
        m->rho[p] = m->rhobar[p] = m->cbar[p] = m->diagonal[p] = 1;
        m->sbar[p] = m->zeta[p] = m->chain[p] = m->tau[p] = m->side[p] = 0;
        m->open[p] = m->g.beta[p];
        s->least.normal[p] = m->g.normal[p] * m->g.beta[p];
    }
    if (!m->G) return st;
    spsi_block_narrow(m->G, s->k);
    SPS_TRY(follow(s, m, m->cbar, NULL));
fail:
    return st;
}

/* Returns ||r|| of column p.  c, t: cosine and sine of the rotation that
 * eliminates beta; thetabar, rhobar: those of this step (formulas above);
 * zeta_before: zeta of the last step. */
static double residual(struct lsmr *m, int p, double c, double t,
                       double thetabar, double zeta_before)
{
    const double hat = c * m->open[p];
    const double old = hypot(m->diagonal[p], thetabar);
    const double ctilde = m->diagonal[p] / old, stilde = thetabar / old;
    const double side_before = m->side[p];
    double tau;

    m->open[p] *= -t;
    m->side[p] = stilde * m->rhobar[p];
    m->diagonal[p] = ctilde * m->rhobar[p];
    m->chain[p] = ctilde * hat - stilde * m->chain[p];
    m->tau[p] = (zeta_before - side_before * m->tau[p]) / old;
    tau = (m->zeta[p] - m->side[p] * m->tau[p]) / m->diagonal[p];
    return hypot(m->chain[p] - tau, m->open[p]);
}

/* Sets the coefficients of a converged column so that it does not change. */
static void hold(sps_linear *s, struct lsmr *m, int p)
{
    m->q[p] = m->x[p] = m->w[p] = m->minus[p] = 0;
    m->next[p] = s->resnorm[p];
}

/* Computes the rotations of column p and the coefficients that follow from
 * them. */
static void rotate(sps_linear *s, struct lsmr *m, int p)
{
    const double alpha = m->g.alpha[p], beta = m->g.beta[p];
    const double rho = hypot(m->alphabar[p], beta);
    const double c = m->alphabar[p] / rho, t = beta / rho, theta = t * alpha;
    const double thetabar = m->sbar[p] * rho, zeta_before = m->zeta[p];
    const double rhobar = hypot(m->cbar[p] * rho, theta);

    if (s->at.done[p] || rho == 0 || rhobar == 0) {
        hold(s, m, p);
        return;
    }
    m->q[p] = -(thetabar / m->rhobar[p]) * (rho / m->rho[p]);
    m->rho[p] = rho;
    m->rhobar[p] = rhobar;
    m->alphabar[p] = c * alpha;
    m->cbar[p] = m->cbar[p] * rho / rhobar;
    m->sbar[p] = theta / rhobar;
    m->minus[p] = -m->sbar[p];
    m->zeta[p] = m->cbar[p] * m->zetabar[p];
    m->zetabar[p] *= -m->sbar[p];
    m->x[p] = m->zeta[p] / rho / rhobar;
    m->w[p] = -theta / rho;
    m->next[p] = residual(m, p, c, t, thetabar, zeta_before);
}

/* s->least.normal = ||S'r||. */
static sps_status measure(sps_linear *s, struct lsmr *m)
{
    double size[SPS_BLOCK_MAX];
    sps_status st = SPS_OK;

    if (m->G) {
        SPS_TRY(follow(s, m, m->cbar, m->minus));
        SPS_TRY(spsi_norms(m->G, size));
    }
    for (int p = 0; p < s->k; p++)
        if (!s->at.done[p])
            s->least.normal[p] = fabs(m->zetabar[p]) * (m->G ? size[p] : 1);
fail:
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct lsmr *m = method;
    sps_status st;

    SPS_TRY(spsi_bidiagonal_step(s, &m->g));
    if (s->stop) return st;
    for (int p = 0; p < s->k; p++) rotate(s, m, p);
    SPS_TRY(measure(s, m));
    SPS_TRY(spsi_best_update(s, m->next));
    if (s->stop) return st;
    SPS_TRY(spsi_axpby_cols(m->g.one, m->W, m->q, m->Q));
    SPS_TRY(spsi_bidiagonal_move(s, &m->g, m->x, m->Q));
    SPS_TRY(spsi_bidiagonal_turn(s, &m->g, m->w, m->W));
fail:
    return st;
}

static sps_status permute(sps_linear *s, void *method, const int *from,
                          int count)
{
    struct lsmr *m = method;

    return spsi_bidiagonal_permute(s, &m->g, from, count,
                                   (sps_block *[]){ m->W, m->Q, m->G, NULL },
                                   (double *[]){ CARRIED(m), NULL });
}

SPS_DEFINE(sps_linear_type, spsi_solver_lsmr) = {
    .name = "lsmr",
    .needs = SPS_LEAST_SQUARES,
    .size = sizeof(struct lsmr),
    .blocks = 2,
    .setup = setup,
    .start = start,
    .step = step,
    .permute = permute,
};
