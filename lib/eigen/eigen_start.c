/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_start.c - prepares the block X from which an iteration starts or
 * restarts: guesses, random columns, full rank, and the first Ritz pairs. */
#include "eigen/eigen.h"

#include <math.h>

/* Guard columns stay random: if guesses were eigenvectors of other pairs, the
 * search would never leave these. */
sps_status spsi_eigen_guess(sps_eigen *e, const sps_block *guess)
{
    sps_status st = SPS_OK;
    double *norm = e->space.scratch;
    int most = spsi_subspace_unguarded(&e->space);
    sps_block leading, from, to;

    spsi_block_view(guess, 0, guess->k < most ? guess->k : most, &leading);
    SPS_TRY(spsi_eigen_draw(&e->precond, &e->space.X, e->ctx->opt.seed));
    SPS_TRY(spsi_norms(&leading, norm));
    for (int j = 0; j < leading.k; j++) {
        if (!(norm[j] > 0) || !isfinite(norm[j])) continue;
        spsi_block_view(&leading, j, 1, &from);
        spsi_block_view(&e->space.X, j, 1, &to);
        SPS_TRY(spsi_copy(&from, &to));
    }
fail:
    return st;
}

/* Makes X a block of m columns of full rank: random columns replace dependent
 * ones, in the last attempts without T, because the T of a singular A makes all
 * columns nearly parallel. */
static sps_status fill_up(sps_subspace *s, sps_eigen_precond *T,
                          sps_stop *stop)
{
    sps_status st = SPS_OK;
    const sps_pencil *p = s->pencil;
    const int m = s->m;
    const uint64_t seed = p->ctx->opt.seed + 1000;
    sps_block none, W, MW;

    spsi_block_view(s->S, 0, 0, &none);
    SPS_TRY(spsi_subspace_orth(s, p->M, &none, &none, &s->X, &s->MX, stop));
    for (uint64_t attempt = 1; attempt < 6 && s->X.k < m && !*stop;
         attempt++) {
        spsi_block_view(s->S, s->X.k, m - s->X.k, &W);
        spsi_block_view(s->MS, s->X.k, m - s->X.k, &MW);
        if (attempt < 3) SPS_TRY(spsi_eigen_draw(T, &W, seed + attempt));
        else SPS_TRY(sps_block_random(&W, seed + attempt));
        SPS_TRY(spsi_subspace_orth(s, p->M, &s->X, &s->MX, &W, &MW, stop));
        spsi_block_view(s->S, 0, s->X.k + W.k, &s->X);
        spsi_block_view(s->MS, 0, s->X.k, &s->MX);
    }
    if (s->X.k < m && !*stop) *stop = SPS_STOP_BREAKDOWN;
fail:
    return st;
}

sps_status spsi_eigen_residuals(sps_eigen *e)
{
    sps_status st = SPS_OK;

    SPS_TRY(e->transform.inverted
                ? spsi_transform_residuals(&e->transform, &e->ritz)
                : spsi_ritz_residuals(&e->ritz));
    SPS_TRY(spsi_ritz_norms(&e->ritz, &e->search.stop));
fail:
    return st;
}

sps_status spsi_eigen_begin(sps_eigen *e, double *w)
{
    sps_status st = SPS_OK;
    sps_subspace *s = &e->space;
    sps_transform *t = &e->transform;
    sps_small *H = e->ritz.H;

    SPS_TRY(fill_up(s, &e->precond, &e->search.stop));
    if (e->search.stop) return st;
    SPS_TRY(spsi_transform_apply(t, &s->X, &s->AX, &e->search));
    SPS_TRY(spsi_gram(t->inverted ? &s->MX : &s->X, &s->AX, H));
    SPS_TRY(spsi_ritz_solve(&e->ritz, t, H, H->rows, w,
                            &e->search.stop));
    if (e->search.stop) return st;
    SPS_TRY(spsi_subspace_rotate(s, H));
    for (int j = 0; j < s->m; j++) e->ritz.value[j] = e->wanted.sign * w[j];
    SPS_TRY(spsi_eigen_residuals(e));
    if (t->inverted && !e->search.stop)
        SPS_TRY(spsi_ritz_pencil_residuals(&e->ritz));
fail:
    return st;
}
