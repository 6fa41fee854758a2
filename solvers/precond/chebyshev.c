/* SPDX-License-Identifier: BSD-3-Clause */
/* chebyshev.c - Z = p(D^-1 A) D^-1 R, p the Chebyshev polynomial of degree
 * opt->degree on [lambda / RATIO, lambda] (Saad, Iterative Methods for Sparse
 * Linear Systems, 2003, algorithm 12.1, with its three-term recurrence for z).
 *
 *   theta, delta: middle and half-width of the interval, sigma = theta / delta
 *   z_0 = 0, z_1 = D^-1 r / theta, rho = 1 / sigma
 *   repeat:  rho' = 1 / (2 sigma - rho);
 *            z_(i+1) = (2 rho' / delta) D^-1 (r - A z_i)
 *                      + (1 + rho' rho) z_i - rho' rho z_(i-1);  rho = rho'
 *
 * z = p(..) is symmetric positive definite in the inner product that matters
 * as long as the spectrum of D^-1 A lies in (0, lambda]: hence the margin on
 * the estimate of lambda, from a few Lanczos steps on a block of random
 * vectors.  One degree is one product with an epilogue: A, z_i, r and z_(i-1)
 * are read, z_(i+1) is written in place of z_(i-1). */
#include "precond.h"

#include <math.h>

#define RATIO 30.0
#define MARGIN 1.1
#define LANCZOS_STEPS 12
#define LANCZOS_WIDTH 8

struct chebyshev {
    sps_precond super;
    int degree;
    double upper, lower;
    sps_block *inverse;         /* n x 1: D^-1 */
    sps_block *first;           /* n x 1: D^-1 / theta */
    double *host;               /* n */
    sps_block *D, *R, *W;       /* n x width: other iterate, scratch */
};

static sps_status set_diagonal(struct chebyshev *m)
{
    sps_precond *M = &m->super;
    sps_status st = SPS_OK;
    int64_t zero, negative;

    SPS_TRY(spsi_matrix_inverse_diagonal(M->A, m->host, &zero, &negative));
    SPS_TRY(sps_block_set(m->inverse, 0, 1, m->host, M->n > 0 ? M->n : 1,
                          SPS_COL_MAJOR, SPS_HOST));
fail:
    return st;
}

/* Coefficients of LANCZOS_STEPS preconditioned CG steps on k random columns:
 * curvature = p'Ap / r'z (the inverse of CG's alpha) and beta by step and
 * column.  X of CG is not needed.  A curvature of nothing ends a column: its
 * p is a null vector of A (CG would divide by it, the Lanczos matrix just
 * takes it in). */
struct lanczos {
    int k, steps[LANCZOS_WIDTH];
    bool ended[LANCZOS_WIDTH];
    double curvature[LANCZOS_STEPS][LANCZOS_WIDTH];
    double beta[LANCZOS_STEPS][LANCZOS_WIDTH];
};

/* Notes step t of column j; returns CG's alpha, 0 where there is none. */
static double lanczos_step(struct lanczos *l, int t, int j, double pq,
                           double rz)
{
    double c = pq > 0 ? pq / rz : 0, largest = 0;

    if (l->ended[j] || !(rz > 0) || !isfinite(c)) {
        l->ended[j] = true;
        return 0;
    }
    for (int i = 0; i < t; i++) largest = fmax(largest, l->curvature[i][j]);
    l->curvature[t][j] = c;
    l->steps[j] = t + 1;
    l->ended[j] = c <= 1e-12 * largest;
    return l->ended[j] || c == 0 ? 0 : 1 / c;
}

static sps_status lanczos_run(struct chebyshev *m, struct lanczos *l)
{
    sps_status st = SPS_OK;
    sps_block *R = m->R, *P = m->D, *Q = m->W;
    double rz[LANCZOS_WIDTH], pq[LANCZOS_WIDTH], a[LANCZOS_WIDTH],
        b[LANCZOS_WIDTH], one[LANCZOS_WIDTH];

    SPS_TRY(sps_block_random(R, 7));
    SPS_TRY(spsi_scale_rows(m->inverse, R, P));
    SPS_TRY(spsi_dots(R, P, rz));
    for (int t = 0; t < LANCZOS_STEPS; t++) {
        SPS_TRY(sps_operator_apply(m->super.A, 1.0, P, 0.0, Q));
        SPS_TRY(spsi_dots(P, Q, pq));
        for (int j = 0; j < l->k; j++) {
            a[j] = -lanczos_step(l, t, j, pq[j], rz[j]);
            one[j] = 1;
        }
        SPS_TRY(spsi_axpby_cols(a, Q, one, R));
        SPS_TRY(spsi_scale_rows(m->inverse, R, Q));
        SPS_TRY(spsi_dots(R, Q, pq));
        for (int j = 0; j < l->k; j++) {
            b[j] = rz[j] > 0 ? pq[j] / rz[j] : 0;
            l->beta[t][j] = b[j];
            rz[j] = pq[j];
        }
        SPS_TRY(spsi_axpby_cols(one, Q, b, P));
    }
fail:
    return st;
}

/* Largest eigenvalue of the tridiagonal matrix of column j:
 * t_ii = c_i + beta_(i-1) c_(i-1), t_i,i+1 = sqrt(beta_i) c_i, c the
 * curvatures. */
static sps_status ritz(sps_context *ctx, const struct lanczos *l, int j,
                       double *largest)
{
    sps_status st = SPS_OK;
    sps_small *T = NULL;
    double w[LANCZOS_STEPS], c, b;
    int steps = l->steps[j];

    if (steps == 0) return SPS_OK;
    SPS_TRY(spsi_small_create(ctx, steps, steps, &T));
    spsi_small_shape(T, steps, steps);
    for (int q = 0; q < steps; q++)
        for (int r = 0; r < steps; r++) *spsi_small_at(T, r, q) = 0;
    for (int i = 0; i < steps; i++) {
        c = l->curvature[i][j];
        b = l->beta[i][j];
        *spsi_small_at(T, i, i) += c;
        if (i + 1 == steps) break;
        *spsi_small_at(T, i + 1, i + 1) += b * c;
        *spsi_small_at(T, i, i + 1) = *spsi_small_at(T, i + 1, i) =
            sqrt(b) * c;
    }
    SPS_TRY(spsi_small_eigen(T, w));
    if (w[steps - 1] > *largest) *largest = w[steps - 1];
fail:
    spsi_small_destroy(&T);
    return st;
}

static sps_status set_interval(struct chebyshev *m)
{
    sps_status st = SPS_OK;
    struct lanczos l = { .k = m->R->width };
    double largest = 0;

    if (l.k > LANCZOS_WIDTH) l.k = LANCZOS_WIDTH;
    spsi_block_narrow(m->R, l.k);
    spsi_block_narrow(m->D, l.k);
    spsi_block_narrow(m->W, l.k);
    SPS_TRY(lanczos_run(m, &l));
    for (int j = 0; j < l.k; j++)
        SPS_TRY(ritz(m->super.ctx, &l, j, &largest));
    m->upper = largest > 0 && isfinite(largest) ? MARGIN * largest : 1;
    m->lower = m->upper / RATIO;
    SPS_TRY(spsi_axpby(2 / (m->upper + m->lower), m->inverse, 0.0, m->first));
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct chebyshev *m = (struct chebyshev *)M;
    sps_status st = SPS_OK;

    SPS_REQUIRE(M->ctx, opt->degree >= 1 && opt->degree <= 100, SPS_EINVAL,
                "degree %d; 1 to 100 are possible", opt->degree);
    m->degree = opt->degree;
    SPS_TRY(spsi_reserve(M->ctx, M->n, M->width));
    SPS_TRY(sps_block_create(M->ctx, M->n, 1, &m->inverse));
    SPS_TRY(sps_block_create(M->ctx, M->n, 1, &m->first));
    SPS_TRY(SPS_NEW(M->ctx, M->n, &m->host));
    SPS_TRY(sps_block_create(M->ctx, M->n, M->width, &m->D));
    SPS_TRY(sps_block_create(M->ctx, M->n, M->width, &m->R));
    SPS_TRY(sps_block_create(M->ctx, M->n, M->width, &m->W));
    SPS_TRY(set_diagonal(m));
    SPS_TRY(set_interval(m));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    struct chebyshev *m = (struct chebyshev *)M;
    sps_status st = SPS_OK;

    SPS_TRY(set_diagonal(m));
    SPS_TRY(set_interval(m));
fail:
    return st;
}

/* The iterates take turns in Z and D, so that the last one is in Z. */
static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    const struct chebyshev *m = (const struct chebyshev *)M;
    sps_status st = SPS_OK;
    double theta = 0.5 * (m->upper + m->lower);
    double delta = 0.5 * (m->upper - m->lower);
    double sigma = theta / delta, rho = 1 / sigma, next, f;
    sps_block *now = m->degree % 2 ? Z : m->D, *other = m->degree % 2 ? m->D
                                                                      : Z;

    spsi_block_narrow(m->D, R->k);
    SPS_TRY(spsi_scale_rows(m->first, R, now));
    for (int i = 1; i < m->degree; i++) {
        sps_block *before = other;

        next = 1 / (2 * sigma - rho);
        f = 2 * next / delta;
        SPS_TRY(spsi_operator_apply_fused(
            M->A, false, -f, now, i > 1 ? -next * rho : 0, before,
            &(sps_epilogue){ .D = m->inverse, .W = R, .gamma = f,
                             .delta = 1 + next * rho }, m->W));
        other = now;
        now = before;
        rho = next;
    }
fail:
    return st;
}

static void destroy(sps_precond *M)
{
    struct chebyshev *m = (struct chebyshev *)M;

    sps_block_destroy(&m->inverse);
    sps_block_destroy(&m->first);
    sps_block_destroy(&m->D);
    sps_block_destroy(&m->R);
    sps_block_destroy(&m->W);
    spsi_free(M->ctx, m->host);
}

SPS_DEFINE(sps_precond_type, spsi_precond_chebyshev) = {
    .name = "chebyshev", .needs = SPS_NEEDS_CSR, .symmetric = true,
    .size = sizeof(struct chebyshev),
    .build = build, .update = update, .apply = apply, .destroy = destroy,
};
