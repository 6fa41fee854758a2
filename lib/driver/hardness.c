/* SPDX-License-Identifier: BSD-3-Clause */
/* hardness.c - see hardness.h. */
#include "driver/hardness.h"

#include <math.h>

#include "core/comm.h"
#include "driver/lanczos.h"
#include "operator/operator_matrix.h"

/* Fraction of the time that is left which the Lanczos steps may use. */
#define SHARE 0.1
#define GAP 9                /* a larger ratio of the two smallest Ritz
                                values indicates a gap (hardness.h) */
#define MANY 2000            /* smallest number of rows for each column */

int spsi_hardness_node(const sps_operator *A, const sps_block *coords)
{
    const int b = A->f.block;

    if (coords && coords->n * coords->k == A->n) return coords->k;
    return b == 2 || b == 3 || b == 6 ? b : 1;
}

sps_status spsi_hardness_known(const sps_operator *A, int b, double *known)
{
    int64_t rows = 0;
    const sps_status st = spsi_matrix_known(A, b <= SPS_ROW_NODE ? b : 1,
                                            &rows);

    *known = A->n ? (double)rows / (double)A->n : 0;
    return st;
}

double spsi_hardness_iterations(int64_t n, int k, double condition)
{
    const double many = (double)n / k;
    const double bound = 9.5 * sqrt(condition), body = 6 * cbrt(many);

    if (condition < SPS_HARDNESS_DEEP)
        return bound * fmin(1, cbrt(many / MANY));
    return fmin(fmax(bound, body), 6 * sqrt(many));
}

/* Returns a condition of at most 1e6, since 28 steps cannot distinguish more
 * from a singular matrix. */
static double condition_of(const sps_lanczos *l)
{
    if (!(l->largest > 0) || !isfinite(l->largest)) return 1;
    return l->largest / fmax(fmax(l->smallest, 1e-6 * l->largest),
                             l->second / GAP);
}

/* Returns when the Lanczos steps must end, or 0 if there is no limit. */
static double latest(const sps_context *ctx)
{
    const double now = spsi_agreed_now(ctx);

    return ctx->deadline > 0 ? now + SHARE * (ctx->deadline - now) : 0;
}

sps_status spsi_hardness_condition(const sps_operator *A,
                                   const sps_nullspace *null,
                                   double *condition)
{
    enum { INVERSE, R, P, Q, BLOCKS };
    sps_block *X[BLOCKS] = { NULL };
    sps_diagonal_kinds diagonal;
    sps_lanczos l;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_reserve(A->ctx, A->n, 1));
    for (int i = 0; i < BLOCKS; i++)
        SPS_TRY(sps_block_create(A->ctx, A->n, 1, &X[i]));
    SPS_TRY(spsi_matrix_inverse_block(A, X[INVERSE], &diagonal));
    SPS_TRY(sps_block_random(X[R], 13));
    SPS_TRY(spsi_nullspace_project(null, X[R]));
    SPS_TRY(spsi_lanczos(A, X[INVERSE], X[R], X[P], X[Q], latest(A->ctx), 1,
                         &l));
    SPS_REQUIRE(A->ctx, !l.cut, SPS_EUNFIT, "the condition could not be "
                "estimated in a tenth of the time limit");
    *condition = condition_of(&l);
fail:
    for (int i = 0; i < BLOCKS; i++) sps_block_destroy(&X[i]);
    return st;
}
