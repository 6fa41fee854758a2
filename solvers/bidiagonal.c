/* SPDX-License-Identifier: BSD-3-Clause */
/* bidiagonal.c - see bidiagonal.h. */
#include "solvers/bidiagonal.h"

#include <math.h>

sps_status spsi_bidiagonal_create(sps_linear *s, spsi_bidiagonal *g)
{
    double **all[] = { &g->alpha, &g->beta, &g->normal, &g->a, &g->b, &g->one };
    sps_status st;

    SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &g->Z));
    if (s->M)
        SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &g->scaled));
    if (s->opt.damp > 0)
        SPS_TRY(sps_block_create(s->ctx, s->n, s->columns, &g->low));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(SPS_NEW(s->ctx, s->columns, all[i]));
    for (int p = 0; p < s->columns; p++) g->one[p] = 1;
fail:
    return st;
}

void spsi_bidiagonal_destroy(sps_linear *s, spsi_bidiagonal *g)
{
    double *all[] = { g->alpha, g->beta, g->normal, g->a, g->b, g->one };

    sps_block_destroy(&g->Z);
    sps_block_destroy(&g->scaled);
    sps_block_destroy(&g->low);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spsi_free(s->ctx, all[i]);
}

static void narrow(sps_linear *s, spsi_bidiagonal *g)
{
    spsi_block_narrow(g->Z, s->k);
    if (g->scaled) spsi_block_narrow(g->scaled, s->k);
    if (g->low) spsi_block_narrow(g->low, s->k);
}

/* 1 / x; 0 where a space is exhausted or the column is converged. */
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

/* beta: the norms of [U; low]. */
static sps_status measure_u(sps_linear *s, spsi_bidiagonal *g)
{
    sps_status st;

    SPS_TRY(spsi_norms(&s->R, g->beta));
    if (g->low) {
        SPS_TRY(spsi_norms(g->low, g->a));
        for (int p = 0; p < s->k; p++) g->beta[p] = hypot(g->beta[p], g->a[p]);
    }
    note_not_finite(s, g->beta);
fail:
    return st;
}

/* Z = S'U diag(a) + Z diag(b), then T, alpha and the norms of Z; b NULL: 0. */
static sps_status next_v(sps_linear *s, spsi_bidiagonal *g, const double *b)
{
    sps_block Y;
    sps_status st;

    spsi_linear_room(s, 0, s->n, s->k, &Y);
    SPS_TRY(spsi_linear_apply_transposed(s, &s->R, &Y));
    if (g->low) SPS_TRY(spsi_axpby(s->opt.damp, g->low, 1.0, &Y));
    SPS_TRY(spsi_axpby_cols(g->a, &Y, b, g->Z));
    SPS_TRY(spsi_norms(g->Z, g->normal));
    if (g->scaled) {
        SPS_TRY(spsi_linear_precondition(s, g->Z, &Y));
        SPS_TRY(spsi_norms(&Y, g->alpha));
        SPS_TRY(spsi_linear_precondition(s, &Y, g->scaled));
    }
    for (int p = 0; p < s->k && !g->scaled; p++) g->alpha[p] = g->normal[p];
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
    SPS_TRY(measure_u(s, g));
    for (int p = 0; p < s->k; p++)
        g->a[p] = g->beta[p] == 0 ? 0 : 1 / g->beta[p];
    SPS_TRY(next_v(s, g, NULL));
    s->width = s->k;
fail:
    return st;
}

sps_status spsi_bidiagonal_step(sps_linear *s, spsi_bidiagonal *g)
{
    const sps_block *T = spsi_bidiagonal_direction(g);
    double damped[SPS_BLOCK_MAX];
    sps_block Y;
    sps_status st;

    spsi_linear_room(s, 0, s->nrow, s->k, &Y);
    SPS_TRY(spsi_linear_apply(s, T, &Y));
    s->width = 0;
    for (int p = 0; p < s->k; p++) {
        g->a[p] = inverse(s, p, g->alpha[p]);
        g->b[p] = -g->alpha[p] * inverse(s, p, g->beta[p]);
        damped[p] = s->opt.damp * g->a[p];
        s->width += !s->at.done[p];
    }
    SPS_TRY(spsi_axpby_cols(g->a, &Y, g->b, &s->R));
    if (g->low) SPS_TRY(spsi_axpby_cols(damped, T, g->b, g->low));
    SPS_TRY(measure_u(s, g));
    if (s->stop) return st;
    for (int p = 0; p < s->k; p++) {
        g->a[p] = inverse(s, p, g->beta[p]);
        g->b[p] = -g->beta[p] * inverse(s, p, g->alpha[p]);
    }
    SPS_TRY(next_v(s, g, g->b));
fail:
    return st;
}

sps_status spsi_bidiagonal_turn(sps_linear *s, spsi_bidiagonal *g,
                                const double *c, sps_block *W)
{
    for (int p = 0; p < s->k; p++) g->a[p] = inverse(s, p, g->alpha[p]);
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
    double *const own[] = { g->alpha, g->beta, g->normal, NULL };
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
