/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_residual.c - residuals of given pairs in twice the working precision,
 * by the product that verification uses (twofold.c):
 *
 *   (H, L)   = A X,   MX = M X,   lambda_0 = x'H / x'M x
 *   R_0      = H + L - M X diag(lambda_0)
 *   lambda   = lambda_0 + x'r_0 / x'M x, rounded once
 *   R        = R_0 - M X diag(lambda - lambda_0).
 *
 * The difference of the two values of lambda, times M x, is no larger than
 * r_0, so that doubles suffice for it.  The error of R is u ||r_0|| + (nu u)^2
 * ||g||, nu the number of terms of a row, g = |A||x| + |lambda||M||x|, instead
 * of nu u ||g|| with doubles throughout (Dot2 of Ogita, Rump and Oishi, SIAM
 * J. Sci. Comput. 26(6), 2005).
 *
 * A callback is called once more, in doubles.
 *
 * Bytes: A once, M twice, some 14 passes over a block. */
#include "eigen/eigen_proof.h"

#include <math.h>

#include "core/backend.h"

/* Computes H + L = B X in twice the working precision, or, if L is NULL, H = B
 * X rounded once. */
static sps_status multiply(const sps_operator *B, const sps_block *X,
                           const double *one, sps_block *H, sps_block *L)
{
    return spsi_operator_twofold(
        B, &(sps_twofold_args){ .c = one, .X = X, .H = H, .L = L }, NULL);
}

/* R += L + M X diag(c), where L is the low part of R and M is not a
 * callback. */
static sps_status add_mass(const sps_pencil *p, const sps_block *X,
                           const double *c, const sps_block *L, sps_block *R)
{
    const sps_twofold_args of = { .c = c, .X = X, .W = R, .V = L, .H = R };

    return p->M ? spsi_operator_twofold(p->M, &of, NULL)
                : p->ctx->backend->twofold(NULL, &of);
}

sps_status spsi_true_residuals(sps_subspace *s, const sps_block *X,
                               sps_block *MX, double *lambda, double *xmx,
                               sps_block *R)
{
    sps_status st = SPS_OK;
    const sps_pencil *p = s->pencil;
    double *minus = s->scratch, *one = minus + X->k;
    sps_block *L = s->work;

    spsi_block_narrow(L, X->k);
    for (int j = 0; j < X->k; j++) one[j] = 1;
    SPS_TRY(multiply(p->A, X, one, R, L));
    if (p->M) SPS_TRY(multiply(p->M, X, one, MX, NULL));
    SPS_TRY(spsi_dots(X, R, lambda));
    SPS_TRY(spsi_dots(X, MX, xmx));
    for (int j = 0; j < X->k; j++) {
        lambda[j] = xmx[j] != 0 ? lambda[j] / xmx[j] : lambda[j];
        minus[j] = -lambda[j];
    }
    if (p->M && p->M->callback.apply)
        SPS_TRY(spsi_axpby_cols(minus, MX, one, R));
    else SPS_TRY(add_mass(p, X, minus, L, R));
    SPS_TRY(spsi_dots(X, R, minus));
    for (int j = 0; j < X->k; j++) {
        double l = lambda[j], more = xmx[j] > 0 ? minus[j] / xmx[j] : 0;

        if (isfinite(more)) lambda[j] += more;
        minus[j] = l - lambda[j];
    }
    SPS_TRY(spsi_axpby_cols(minus, MX, one, R));
    SPS_TRY(spsi_deflation_constrain(s->deflation, R));
fail:
    return st;
}

/* Returns whether rounding could bring a residual above the tolerance. */
static bool in_doubt(const sps_ritz *r, int count)
{
    const sps_subspace *s = r->space;

    for (int j = 0; j < count; j++) {
        double error = spsi_pencil_forming_error(
            s->pencil, s->deflation->given, r->theta[j], r->xnorm[j]);

        if (!(r->resnorm[j] + error <= spsi_ritz_tolerance(r, j))) return true;
    }
    return false;
}

sps_status spsi_ritz_confirm(sps_ritz *r, int count, sps_block *R)
{
    sps_status st = SPS_OK;
    sps_subspace *s = r->space;
    sps_block X, MX;

    if (!spsi_pencil_entries(s->pencil) || !in_doubt(r, count)) return SPS_OK;
    spsi_block_view(&s->X, 0, count, &X);
    spsi_block_view(&s->MX, 0, count, &MX);
    SPS_TRY(spsi_true_residuals(s, &X, &MX, r->theta, r->scratch, R));
    SPS_TRY(spsi_norms(R, r->resnorm));
fail:
    return st;
}
