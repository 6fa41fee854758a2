/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - residuals in twice the working precision (twofold.c), and the
 * estimate of ||A|| for backward errors. */
#include "driver/columns.h"

#include <math.h>

/* Returns the scaling factor with which b - A x is formed, where ||b|| is about
 * 1 / scale; it is 1 where the caller's units are safe.  Products below 2^-969
 * lose digits, so a small b is scaled up; with b near the largest double A x
 * may overflow, so a large b is scaled down.  An x that solves such a system
 * neither overflows nor loses digits when it is scaled so. */
static double lift(double scale)
{
    return scale > 0x1p600 ? 0x1p500 : scale < 0x1p-900 ? 0x1p-128 : 1;
}

/* Y = X scaled by the factors lift(); *in is Y, or X itself if all are 1. */
static sps_status lift_block(const sps_linear *s, const sps_block *X,
                             sps_block *Y, const sps_block **in)
{
    double by[SPS_BLOCK_MAX];
    bool any = false;

    for (int j = 0; j < s->columns; j++) {
        by[j] = lift(s->rhs.scale[j]);
        any = any || by[j] != 1;
    }
    *in = any ? Y : X;
    return any ? spsi_axpby_cols(by, X, NULL, Y) : SPS_OK;
}

sps_status spsi_verify(sps_linear *s, const sps_block *X, sps_block *R,
                       double *unit)
{
    const sps_block *b, *x;
    sps_block lifted, room;
    sps_status st;

    spsi_linear_room(s, 0, s->n, s->columns, &lifted);
    spsi_linear_room(s, 1, s->least.nrow, s->columns, &room);
    for (int j = 0; j < s->columns; j++)
        unit[j] = s->rhs.scale[j] / lift(s->rhs.scale[j]);
    SPS_TRY(lift_block(s, X, &lifted, &x));
    SPS_TRY(lift_block(s, s->rhs.own, R, &b));
    SPS_TRY(spsi_operator_twofold(s->A, &(sps_twofold_args){
        .X = x, .W = b, .H = R }, &room));
fail:
    return st;
}

/* to = alpha A from; *best becomes the maximum of itself and ||A v|| / ||v|| of
 * each column.  `scratch` receives the norms of both blocks. */
static sps_status measure(const sps_operator *A, double alpha,
                          const sps_block *from, sps_block *to,
                          double *scratch, double *best)
{
    double *before = scratch, *after = scratch + from->k, ratio;
    sps_status st;

    SPS_TRY(spsi_norms(from, before));
    SPS_TRY(sps_operator_apply(A, alpha, from, 0.0, to));
    SPS_TRY(spsi_norms(to, after));
    for (int j = 0; j < from->k; j++) {
        ratio = after[j] / before[j] / alpha;
        if (before[j] > 0 && isfinite(ratio) && ratio > *best) *best = ratio;
    }
fail:
    return st;
}

/* Power iteration on random columns.  The largest ratio ||A v|| / ||v|| is a
 * lower bound of ||A||_2; after five steps it is within about ten per cent on
 * matrices from practice.  For a symmetric A the ratios do not decrease, ||A
 * v||^2 = (v, A^2 v) <= ||v|| ||A^2 v||: only the first and the last are
 * computed, without host synchronisation in between.  The first one scales the
 * others: for a random v it is about ||A||_F / sqrt(n), so that columns grow by
 * at most sqrt(n) in a step.  `scratch` has 2 k elements. */
sps_status spsi_norm_estimate(const sps_operator *A, sps_block *V,
                              sps_block *W, double *scratch, double *norm)
{
    enum { STEPS = 6 };
    const bool all = !(A->props & (SPS_SYMMETRIC | SPS_SPD));
    sps_block *block[] = { V, W };
    double best = 0, alpha;
    sps_status st = SPS_OK;

    *norm = A->cache->norm >= 0 ? A->cache->norm : 0;
    if (A->cache->norm >= 0 || A->n == 0) return SPS_OK;
    SPS_TRY(sps_block_random(V, 20090513));
    SPS_TRY(measure(A, 1.0, V, W, scratch, &best));
    alpha = spsi_columns_unit(best);
    for (int j = 0; j < V->k; j++) scratch[j] = alpha;
    SPS_TRY(spsi_axpby_cols(scratch, W, NULL, V));
    for (int i = 1; i < STEPS; i++) {
        sps_block *from = block[(i - 1) % 2], *to = block[i % 2];

        if (all || i == STEPS - 1)
            SPS_TRY(measure(A, alpha, from, to, scratch, &best));
        else
            SPS_TRY(sps_operator_apply(A, alpha, from, 0.0, to));
    }
    A->cache->norm = *norm = best;
fail:
    return st;
}
