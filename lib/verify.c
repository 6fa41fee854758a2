/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - what is true of an answer: residuals recomputed in double with
 * the plain kernel, and the estimate of ||A|| that backward errors need. */
#include "solver.h"

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

/* W = A V, V = W scaled to unit columns; the largest ||A v|| / ||v|| seen is
 * a bound from below that five steps bring within some ten per cent on
 * matrices met in practice.  scratch: 2 k numbers. */
sps_status spsi_norm_estimate(const sps_operator *A, sps_block *V,
                              sps_block *W, double *scratch, double *norm)
{
    sps_status st = SPS_OK;
    double *length = scratch, *inverse = scratch + V->k, best = 0;
    const sps_block *from = V;      /* of the columns that length belongs to */

    if (A->norm >= 0) {
        *norm = A->norm;
        return SPS_OK;
    }
    SPS_TRY(sps_block_random(V, 20090513));
    SPS_TRY(spsi_norms(V, length));
    for (int step = 0; step < 6 && A->n > 0; step++, from = W) {
        for (int j = 0; j < V->k; j++)
            inverse[j] = length[j] > 0 ? 1 / length[j] : 0;
        SPS_TRY(spsi_axpby_cols(inverse, from, NULL, V));
        SPS_TRY(sps_operator_apply(A, 1.0, V, 0.0, W));
        SPS_TRY(spsi_norms(W, length));
        for (int j = 0; j < V->k; j++)
            if (length[j] > best && isfinite(length[j])) best = length[j];
    }
    ((sps_operator *)A)->norm = *norm = best;
fail:
    return st;
}
