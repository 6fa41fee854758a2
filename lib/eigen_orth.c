/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_orth.c - bases that are orthonormal in the inner product of M.
 *
 * Block Gram-Schmidt against what is there already, then a rank-revealing
 * orthonormaliser of the Gram matrix W'MW (CholQR by way of eigenvalues, SVQB:
 * Stathopoulos and Wu, SISC 23(6), 2002), the whole twice.  After the first
 * round W is well conditioned, so the second leaves errors of eps alone
 * ("twice is enough"); a third is made where the second found it was not so.
 * Directions that depend on others up to rounding are dropped, never divided
 * by: no Cholesky factor can fail.
 *
 * A round of w columns beside q: q + w, q + 2 w, w and 2 w columns of n. */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "timer.h"

sps_status spsi_eigen_project(sps_eigen *e, sps_block *W)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_nullspace_project(e->null, W));
    if (!e->fixed || e->fixed->k == 0 || W->k == 0) return SPS_OK;
    SPS_TRY(spsi_gram(e->dual, W, e->F));
    SPS_TRY(spsi_mul_small(-1.0, e->fixed, e->F, 1.0, W));
fail:
    return st;
}

/* Unit columns, so that no square leaves the range of doubles; a zero column
 * stays. */
static sps_status normalise(sps_eigen *e, sps_block *W)
{
    sps_status st = SPS_OK;
    double *norm = e->scratch;

    SPS_TRY(spsi_norms(W, norm));
    for (int j = 0; j < W->k; j++) {
        if (!isfinite(norm[j])) e->stop = SPS_STOP_NOT_FINITE;
        norm[j] = norm[j] > DBL_MIN ? 1 / norm[j] : 0;
    }
    if (!e->stop) SPS_TRY(spsi_axpby_cols(norm, W, NULL, W));
fail:
    return st;
}

/* From G = W'MW.  A negative diagonal, of columns no longer than one, says
 * that M is not positive definite.  A column that was of unit length in the
 * norm of M before it was projected, and is nothing now, depends on Q: what is
 * left of it is rounding, and clearing its row and column drops it. */
static void look_at(sps_eigen *e, sps_small *G, bool unit)
{
    for (int j = 0; j < G->cols; j++) {
        double g = *spsi_small_at(G, j, j);

        if (e->M && g < -1e-14 * e->norm_M) e->stop = SPS_STOP_MASS_INDEFINITE;
        if (!unit || g > 1e-3) continue;
        for (int i = 0; i < G->rows; i++)
            *spsi_small_at(G, i, j) = *spsi_small_at(G, j, i) = 0;
    }
}

/* W = W T with T from G = W'MW; *condition of what was met. */
static sps_status orthonormalise(sps_eigen *e, sps_block *W, double *condition)
{
    sps_status st = SPS_OK;
    sps_block narrow;
    int rank = 0;

    spsi_small_symmetrise(e->G);
    spsi_phase_begin(e->ctx, SPS_PHASE_SMALL);
    st = spsi_small_orthonormaliser(e->G, 1e-12, e->U, &rank, condition);
    spsi_phase_end(e->ctx, SPS_PHASE_SMALL);
    if (st != SPS_OK) return st;
    spsi_block_view(W, 0, rank, &narrow);
    SPS_TRY(spsi_mul_small(1.0, W, e->U, 0.0, &narrow));
    spsi_block_narrow(W, rank);
fail:
    return st;
}

/* *loss: the largest cosine between a column of Q and one of W. */
static sps_status against(sps_eigen *e, const sps_block *Q,
                          const sps_block *MQ, sps_block *W, double *loss)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_eigen_project(e, W));
    *loss = 0;
    if (Q->k == 0 || W->k == 0) return SPS_OK;
    SPS_TRY(spsi_gram(MQ, W, e->C));
    for (int t = 0; t < e->C->rows * e->C->cols; t++)
        *loss = fmax(*loss, fabs(e->C->v[t]));
    SPS_TRY(spsi_mul_small(-1.0, Q, e->C, 1.0, W));
fail:
    return st;
}

sps_status spsi_eigen_orth(sps_eigen *e, const sps_block *Q,
                           const sps_block *MQ, sps_block *W, sps_block *MW)
{
    sps_status st = SPS_OK;
    double condition = 1, loss = 0;

    SPS_TRY(normalise(e, W));
    for (int round = 0; round < 4 && W->k > 0 && !e->stop; round++) {
        spsi_phase_begin(e->ctx, SPS_PHASE_GRAM);
        st = against(e, Q, MQ, W, &loss);
        spsi_phase_end(e->ctx, SPS_PHASE_GRAM);
        if (st != SPS_OK) return st;
        spsi_block_narrow(MW, W->k);
        if (e->M) SPS_TRY(spsi_eigen_mass(e, W, MW));
        spsi_phase_begin(e->ctx, SPS_PHASE_GRAM);
        st = spsi_gram(W, MW, e->G);
        spsi_phase_end(e->ctx, SPS_PHASE_GRAM);
        if (st != SPS_OK) return st;
        if (!spsi_small_finite(e->G)) e->stop = SPS_STOP_NOT_FINITE;
        look_at(e, e->G, round > 0);
        if (e->stop) break;
        SPS_TRY(orthonormalise(e, W, &condition));
        if (round > 0 && condition < 1.5 && loss < 1e-3) break;
    }
    spsi_block_narrow(MW, W->k);
    if (e->M && !e->stop) SPS_TRY(spsi_eigen_mass(e, W, MW));
fail:
    return st;
}
