/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - what is true of an answer: residuals recomputed in double with
 * the plain kernel, and the estimate of ||A|| that backward errors need. */
#include "columns.h"

#include <math.h>

sps_status spsi_verify(const sps_operator *A, const sps_block *B,
                       const sps_block *X, sps_block *R, double *norm_r,
                       double *norm_x)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_operator_apply_fused(A, true, -1.0, X, 0.0, R,
                                      &(sps_epilogue){ .W = B, .gamma = 1 },
                                      NULL));
    SPS_TRY(spsi_norms(R, norm_r));
    SPS_TRY(spsi_norms(X, norm_x));
fail:
    return st;
}

/* to = alpha A from; *best, if a column says so: ||A v|| / ||v||.  scratch: the
 * norms of both. */
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

/* Power steps on random columns; the largest ||A v|| / ||v|| seen is a bound from
 * below that five steps bring within some ten per cent on matrices met in
 * practice.  Where A is symmetric no ratio is less than the one before it,
 * ||A v||^2 = (v, A^2 v) <= ||v|| ||A^2 v||: only the first and the last are
 * looked at, and nobody waits for those between.  The first scales the others:
 * of a random v it is about ||A||_F / sqrt(n), so that columns grow by sqrt(n) a
 * step at most.  scratch: 2 k numbers. */
sps_status spsi_norm_estimate(const sps_operator *A, sps_block *V,
                              sps_block *W, double *scratch, double *norm)
{
    enum { STEPS = 6 };
    const bool all = !(A->props & (SPS_SYMMETRIC | SPS_SPD));
    sps_block *block[] = { V, W };
    double best = 0, alpha;
    sps_status st = SPS_OK;

    *norm = A->norm >= 0 ? A->norm : 0;
    if (A->norm >= 0 || A->n == 0) return SPS_OK;
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
    ((sps_operator *)A)->norm = *norm = best;
fail:
    return st;
}
