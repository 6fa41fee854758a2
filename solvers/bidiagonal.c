/* SPDX-License-Identifier: BSD-3-Clause */
/* bidiagonal.c - Golub-Kahan bidiagonalisation (formulas in bidiagonal.h). */
#include "solvers/bidiagonal.h"

#include <math.h>

#include "core/timer.h"
#include "driver/columns.h"

sps_status spsi_bidiagonal_create(sps_linear *s, spsi_bidiagonal *g)
{
    double **const all[] = { &g->alpha, &g->beta, &g->nu, &g->mu, &g->normal,
                             &g->c, &g->a, &g->b, &g->one, NULL };
    sps_owner *own = &s->made.own;
    sps_status st;

    SPS_TRY(spsi_own_block(own, s->n, s->columns, &g->Z));
    if (s->M) SPS_TRY(spsi_own_block(own, s->n, s->columns, &g->scaled));
    if (s->opt.damp > 0)
        SPS_TRY(spsi_own_block(own, s->n, s->columns, &g->low));
    SPS_TRY(spsi_own_numbers(own, s->columns, all));
    for (int p = 0; p < s->columns; p++) g->one[p] = 1;
fail:
    return st;
}

static void narrow(sps_linear *s, spsi_bidiagonal *g)
{
    spsi_block_narrow(g->Z, s->k);
    if (g->scaled) spsi_block_narrow(g->scaled, s->k);
    if (g->low) spsi_block_narrow(g->low, s->k);
}

/* Returns 1 / x, or 0 where a space is exhausted or the column has
 * converged. */
static double inverse(const sps_linear *s, int p, double x)
{
    return x == 0 || s->at.done[p] ? 0 : 1 / x;
}

static void note_not_finite(sps_linear *s, const double *norm)
{
    for (int p = 0; p < s->k; p++)
        if (!isfinite(norm[p]) && !s->at.done[p])
            s->stop = SPS_STOP_NOT_FINITE;
}

/* g->nu = the norms of the columns of [U; low]; `known`: g->nu are those of
 * U. */
static sps_status measure_u(sps_linear *s, spsi_bidiagonal *g, bool known)
{
    sps_status st = SPS_OK;

    if (!known) SPS_TRY(spsi_norms(&s->R, g->nu));
    if (g->low) {
        SPS_TRY(spsi_norms(g->low, g->a));
        for (int p = 0; p < s->k; p++) g->nu[p] = hypot(g->nu[p], g->a[p]);
    }
    note_not_finite(s, g->nu);
fail:
    return st;
}

/* Returns whether a norm is so far from 1 that squares of norms might leave the
 * range of doubles. */
static bool far(double norm)
{
    return norm != 0 && !(norm > 0x1p-100 && norm < 0x1p100);
}

/* Scales U and low to norms in [1/2, 1) if the norm of some column is far from
 * 1. */
static sps_status bring_back_u(sps_linear *s, spsi_bidiagonal *g)
{
    sps_status st = SPS_OK;
    bool any = false;
    int e;

    for (int p = 0; p < s->k; p++) any = any || far(g->nu[p]);
    if (!any) return st;
    for (int p = 0; p < s->k; p++) {
        (void)frexp(g->nu[p], &e);
        g->a[p] = ldexp(1, -e);
        g->nu[p] *= g->a[p];
    }
    SPS_TRY(spsi_axpby_cols(g->a, &s->R, NULL, &s->R));
    if (g->low) SPS_TRY(spsi_axpby_cols(g->a, g->low, NULL, g->low));
fail:
    return st;
}

/* Z = S'U diag(a) + Z diag(b), without Z if b is NULL, and its norms. */
static sps_status combine_v(sps_linear *s, spsi_bidiagonal *g, const double *b,
                            sps_block *Y)
{
    sps_status st;

    if (s->least.both)
        return spsi_least_back(s, g->a, g->low, b, g->Z, g->mu);
    SPS_TRY(spsi_linear_apply_transposed(s, &s->R, Y));
    if (g->low) SPS_TRY(spsi_axpby(s->opt.damp, g->low, 1.0, Y));
    SPS_TRY(spsi_axpby_cols(g->a, Y, b, g->Z));
    SPS_TRY(spsi_norms(g->Z, g->mu));
fail:
    return st;
}

/* Z = S'U diag(a) + Z diag(b), without Z the first time; then T, alpha and the
 * norms.  Z is stored with the factor f, about 1 / alpha, so that mu is not far
 * from 1. */
static sps_status next_v(sps_linear *s, spsi_bidiagonal *g, bool first)
{
    const double f = s->M ? 1 : spsi_columns_unit(spsi_least_size(s));
    sps_block Y;
    sps_status st;

    /* f is multiplied by beta, which is about 1 / f, before 1 / mu, which may
     * be outside the range of doubles. */
    for (int p = 0; p < s->k; p++) {
        g->a[p] *= f;
        g->b[p] = first ? 0 : -(f * g->beta[p]) * inverse(s, p, g->mu[p]);
    }
    spsi_linear_room(s, 0, s->n, s->k, &Y);
    SPS_TRY(combine_v(s, g, first ? NULL : g->b, &Y));
    for (int p = 0; p < s->k; p++) g->normal[p] = g->mu[p] / f;
    if (g->scaled) {
        SPS_TRY(spsi_linear_precondition(s, g->Z, &Y));
        SPS_TRY(spsi_norms(&Y, g->mu));
        SPS_TRY(spsi_linear_precondition(s, &Y, g->scaled));
    }
    for (int p = 0; p < s->k; p++) g->alpha[p] = g->mu[p] / f;
    note_not_finite(s, g->alpha);
fail:
    return st;
}

sps_status spsi_bidiagonal_start(sps_linear *s, spsi_bidiagonal *g)
{
    sps_status st = SPS_OK;

    narrow(s, g);
    for (int p = 0; p < s->k; p++) g->b[p] = -s->opt.damp;
    if (g->low) SPS_TRY(spsi_axpby_cols(g->b, &s->X, NULL, g->low));
    SPS_TRY(measure_u(s, g, false));
    if (s->least.both)
        SPS_TRY(spsi_least_enter(s, g->scaled ? g->scaled : g->Z, g->mu));
    for (int p = 0; p < s->k; p++) {
        g->beta[p] = g->nu[p];
        g->a[p] = g->beta[p] == 0 ? 0 : 1 / g->beta[p];
    }
    SPS_TRY(next_v(s, g, true));
    s->width = s->k;
fail:
    return st;
}

/* Chooses the factors of T: with mu = nu / alpha in place of its norm the next
 * U is S T diag(c) - U; c = 0 where a column is frozen. */
static void choose_factors(sps_linear *s, spsi_bidiagonal *g)
{
    s->width = 0;
    for (int p = 0; p < s->k; p++) {
        g->c[p] = g->nu[p] * inverse(s, p, g->alpha[p]) *
                  inverse(s, p, g->mu[p]);
        s->width += !s->at.done[p];
    }
}

/* Z and T are scaled by their factors, which then are 1, since a product alone
 * cannot apply them. */
static sps_status scale_v(sps_linear *s, spsi_bidiagonal *g)
{
    sps_status st;

    SPS_TRY(spsi_axpby_cols(g->c, g->Z, NULL, g->Z));
    if (g->scaled) SPS_TRY(spsi_axpby_cols(g->c, g->scaled, NULL, g->scaled));
    for (int p = 0; p < s->k; p++) {
        g->mu[p] = g->nu[p] * inverse(s, p, g->alpha[p]);
        g->c[p] = 1;
    }
fail:
    return st;
}

/* U = A T diag(c) - U, whose upper part s->R is. */
static sps_status next_upper(sps_linear *s, spsi_bidiagonal *g)
{
    const sps_block *T = spsi_bidiagonal_direction(g);
    sps_status st;

    if (s->least.both) return spsi_least_there(s, g->c, T, g->nu);
    SPS_TRY(scale_v(s, g));
    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(s->A, 1.0, T, -1.0, &s->R);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    s->course.applies_A++;
fail:
    return st;
}

/* U = S T diag(c) - U, whose norm is nu' = c mu beta'. */
static sps_status next_u(sps_linear *s, spsi_bidiagonal *g)
{
    sps_status st;

    SPS_TRY(next_upper(s, g));
    for (int p = 0; p < s->k; p++) {
        g->a[p] = s->opt.damp * g->c[p];
        g->b[p] = -1;
    }
    if (g->low)
        SPS_TRY(spsi_axpby_cols(g->a, spsi_bidiagonal_direction(g), g->b,
                                g->low));
    SPS_TRY(measure_u(s, g, s->least.both != NULL));
    for (int p = 0; p < s->k; p++)
        g->beta[p] = g->nu[p] * inverse(s, p, g->c[p] * g->mu[p]);
fail:
    return st;
}

sps_status spsi_bidiagonal_step(sps_linear *s, spsi_bidiagonal *g)
{
    sps_status st;

    SPS_TRY(bring_back_u(s, g));
    choose_factors(s, g);
    SPS_TRY(next_u(s, g));
    if (s->stop) return st;
    for (int p = 0; p < s->k; p++) g->a[p] = inverse(s, p, g->nu[p]);
    SPS_TRY(next_v(s, g, false));
fail:
    return st;
}

sps_status spsi_bidiagonal_turn(sps_linear *s, spsi_bidiagonal *g,
                                const double *c, sps_block *W)
{
    for (int p = 0; p < s->k; p++) g->a[p] = inverse(s, p, g->mu[p]);
    return spsi_axpby_cols(g->a, spsi_bidiagonal_direction(g), c, W);
}

sps_status spsi_bidiagonal_move(sps_linear *s, spsi_bidiagonal *g,
                                const double *c, const sps_block *W)
{
    return spsi_axpby_cols(c, W, g->one, &s->X);
}

sps_status spsi_bidiagonal_permute(sps_linear *s, spsi_bidiagonal *g,
                                   const int *from, int count,
                                   sps_block *const *blocks,
                                   double *const *arrays)
{
    double *const own[] = { g->alpha, g->beta, g->nu, g->mu, g->normal, NULL };
    sps_status st;
    sps_block room;

    spsi_linear_room(s, 0, s->n, count, &room);
    SPS_TRY(spsi_rearrange_block(g->Z, from, &room));
    if (g->scaled) SPS_TRY(spsi_rearrange_block(g->scaled, from, &room));
    if (g->low) SPS_TRY(spsi_rearrange_block(g->low, from, &room));
    for (; *blocks; blocks++) {
        SPS_TRY(spsi_rearrange_block(*blocks, from, &room));
        spsi_block_narrow(*blocks, count);
    }
    for (int i = 0; own[i]; i++)
        spsi_rearrange_numbers(own[i], from, count, g->a);
    for (; *arrays; arrays++)
        spsi_rearrange_numbers(*arrays, from, count, g->a);
    narrow(s, g);
fail:
    return st;
}
