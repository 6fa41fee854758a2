/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_preconditioner.c - applies the preconditioner to residuals and to
 * random columns. */
#include "eigen/eigen_preconditioner.h"

#include "core/timer.h"

bool spsi_eigen_preconditioned(const sps_eigen_precond *t)
{
    return t->T && !t->suspended;
}

/* Computes T R in a block with the leading dimension of R and copies it to W,
 * which may be columns of a stack: polynomials fuse their products and sums
 * into one pass only if all blocks have the same leading dimension. */
static sps_status precondition_and_copy(sps_eigen_precond *t,
                                        const sps_block *R, sps_block *W)
{
    sps_subspace *s = t->space;
    sps_block *Z = R == s->R ? s->work : s->R;
    sps_status st = SPS_OK;

    spsi_block_narrow(Z, R->k);
    SPS_TRY(sps_precond_apply(t->T, R, Z));
    SPS_TRY(spsi_copy(Z, W));
fail:
    return st;
}

/* Returns whether T is as fast for blocks of any leading dimensions: it is a
 * diagonal, or its products are of blocks of its own, in floats. */
static bool any_distance(const sps_precond *T)
{
    return T->diagonal || T->gives_floats;
}

sps_status spsi_eigen_precondition(sps_eigen_precond *t, const sps_block *R,
                                   const double *norms, sps_block *W)
{
    sps_context *ctx = t->space->pencil->ctx;
    sps_status st;

    if (!spsi_eigen_preconditioned(t)) return spsi_copy(R, W);
    spsi_phase_begin(ctx, SPS_PHASE_PRECOND);
    t->T->norms = norms;
    st = R->ld == W->ld || any_distance(t->T)
             ? sps_precond_apply(t->T, R, W)
             : precondition_and_copy(t, R, W);
    t->T->norms = NULL;
    spsi_phase_end(ctx, SPS_PHASE_PRECOND);
    t->applies++;
    return st;
}

/* Where some rows of A are 1e20 times the others (penalties), eigenvectors are
 * nearly zero in these, while combinations of random columns cannot become
 * smaller there than 1e-16, of which A makes 1e4.  T makes the columns small in
 * these rows.  Null vectors are projected out before, since T would amplify
 * them. */
sps_status spsi_eigen_draw(sps_eigen_precond *t, sps_block *X, uint64_t seed)
{
    sps_status st = SPS_OK;
    sps_subspace *s = t->space;

    SPS_TRY(sps_block_random(X, seed));
    if (!t->T || X->k == 0) return SPS_OK;
    spsi_block_narrow(s->R, X->k);
    SPS_TRY(spsi_copy(X, s->R));
    SPS_TRY(spsi_nullspace_project(s->deflation->null, s->R));
    SPS_TRY(spsi_eigen_precondition(t, s->R, NULL, X));
fail:
    return st;
}

void spsi_eigen_precond_release(sps_eigen_precond *t)
{
    if (t->own) sps_precond_destroy(&t->T);
    sps_operator_destroy(&t->shifted);
    if (t->matrix) sps_csr_destroy(t->space->pencil->ctx, &t->matrix);
}
