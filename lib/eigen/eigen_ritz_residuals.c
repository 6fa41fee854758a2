/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_ritz_residuals.c - computes the residuals of Ritz pairs, and which of
 * the pairs have converged. */
#include "eigen/eigen_ritz.h"

#include <math.h>

/* Replaces squared norms by norms; returns false if one of them is out of the
 * range in which it is accurate. */
static bool take_roots(double *square, int k)
{
    bool good = true;

    for (int j = 0; j < k; j++) {
        if (!(square[j] > 1e-280 && square[j] < 1e280)) good = false;
        square[j] = sqrt(square[j]);
    }
    return good;
}

sps_status spsi_ritz_residuals(sps_ritz *r)
{
    sps_status st = SPS_OK;
    sps_subspace *s = r->space;

    for (int j = 0; j < s->m; j++) r->theta[j] = r->value[j];
    spsi_block_narrow(s->R, s->m);
    SPS_TRY(spsi_copy(&s->AX, s->R));
    SPS_TRY(spsi_subtract_cols(&s->MX, r->theta, s->R, r->resnorm));
    SPS_TRY(spsi_deflation_constrain(s->deflation, s->R));
    if (s->deflation->given > 0 || !take_roots(r->resnorm, s->m))
        SPS_TRY(spsi_norms(s->R, r->resnorm));
fail:
    return st;
}

sps_status spsi_ritz_pencil_residuals(sps_ritz *r)
{
    sps_status st = SPS_OK;
    sps_subspace *s = r->space;
    double *minus = s->scratch, *one = s->scratch + s->m;

    spsi_block_narrow(s->work, s->m);
    SPS_TRY(sps_operator_apply(s->pencil->A, 1.0, &s->X, 0.0, s->work));
    SPS_TRY(spsi_dots(&s->X, s->work, r->theta));
    for (int j = 0; j < s->m; j++) {
        minus[j] = -r->theta[j];
        one[j] = 1;
    }
    SPS_TRY(spsi_axpby_cols(minus, &s->MX, one, s->work));
    SPS_TRY(spsi_deflation_constrain(s->deflation, s->work));
    SPS_TRY(spsi_norms(s->work, r->resnorm));
fail:
    return st;
}

/* x'M x = 1 makes ||x|| 1e7 or larger where M is singular, but also where the
 * units of unknowns differ widely.  x'D x, D = diag(M), decides: it does not
 * depend on units, and is as large only where D^-1/2 M D^-1/2 is singular
 * within rounding. */
static sps_status check_mass(const sps_ritz *r, sps_stop *stop)
{
    sps_status st = SPS_OK;
    sps_subspace *s = r->space;
    const sps_pencil *p = s->pencil;
    double *norm = s->scratch;
    double most = 0;

    for (int j = 0; j < s->m; j++)
        most = fmax(most, r->xnorm[j] * r->xnorm[j] * p->norm_M);
    if (most > 1e14 && p->root_mass) {
        spsi_block_narrow(s->work, s->m);
        SPS_TRY(spsi_scale_rows(p->root_mass, &s->X, s->work));
        SPS_TRY(spsi_norms(s->work, norm));
        most = 0;
        for (int j = 0; j < s->m; j++)
            most = fmax(most, norm[j] * norm[j]);
    }
    if (most > 1e14) *stop = SPS_STOP_MASS_INDEFINITE;
fail:
    return st;
}

sps_status spsi_ritz_norms(sps_ritz *r, sps_stop *stop)
{
    sps_status st = SPS_OK;
    sps_subspace *s = r->space;

    if (s->pencil->M) {
        SPS_TRY(spsi_norms(&s->X, r->xnorm));
        SPS_TRY(spsi_norms(&s->MX, r->mnorm));
        SPS_TRY(check_mass(r, stop));
    }
    for (int j = 0; j < s->m; j++) {
        if (!s->pencil->M) r->xnorm[j] = r->mnorm[j] = 1;
        if (!isfinite(r->resnorm[j])) *stop = SPS_STOP_NOT_FINITE;
    }
fail:
    return st;
}

/* Returns a value a little below the tolerance of the result; if A or M is a
 * callback, so far below it that the rounding error of forming the residual can
 * be added. */
double spsi_ritz_tolerance(const sps_ritz *r, int j)
{
    const sps_pencil *p = r->space->pencil;
    double limit = spsi_pencil_tolerance(p, r->opt, r->theta[j], r->xnorm[j],
                                         r->mnorm[j]);
    double error = spsi_pencil_forming_error(p, r->space->deflation->given,
                                             r->theta[j], r->xnorm[j]);

    if (spsi_pencil_entries(p) || error > 0.5 * limit) error = 0;
    return SPS_LINEAR_AIM * (limit - error);
}

bool spsi_ritz_converged(const sps_ritz *r)
{
    for (int j = 0; j < spsi_subspace_target(r->space); j++)
        if (!(r->resnorm[j] <= spsi_ritz_tolerance(r, j))) return false;
    return true;
}

double spsi_ritz_excess(const sps_ritz *r)
{
    double sum = 0;

    for (int j = 0; j < spsi_subspace_wanted(r->space); j++) {
        double limit = spsi_ritz_tolerance(r, j);

        if (!isfinite(r->resnorm[j])) return HUGE_VAL;
        if (r->resnorm[j] > limit)
            sum += limit > 0 ? log(r->resnorm[j] / limit) : 1e3;
    }
    return sum;
}

sps_status spsi_ritz_converged_first(sps_ritz *r)
{
    sps_subspace *s = r->space;
    sps_block *block[2] = { &s->X, &s->MX };
    sps_status st = SPS_OK;
    int k = 0, target = spsi_subspace_target(s);

    for (int pass = 0; pass < 2; pass++)
        for (int j = 0; j < s->m; j++)
            if ((j < target && r->done[j]) == !pass) r->order[k++] = j;
    spsi_block_narrow(s->work, s->m);
    for (int i = 0; i < (s->pencil->M ? 2 : 1); i++) {
        SPS_TRY(spsi_gather(block[i], r->order, s->work));
        SPS_TRY(spsi_copy(s->work, block[i]));
    }
fail:
    return st;
}
