/* SPDX-License-Identifier: BSD-3-Clause */
/* rounding.c - decides whether a cycle may run in single precision.
 *
 * A cycle amplifies the rounding of a residual, relative to the unit diagonal
 * of C = S A_c S, by up to ||C^-1||, C the coarsest matrix.  The residual of a
 * soft vector, such as the motion of a stiff part on soft supports, has an
 * error of up to eps ||C^-1|| relative to it in M R; if columns of a block
 * share this vector, their differences have errors of that size.  The smoothers
 * amplify by less than 2 AMG_LAST_DEGREE^2.
 *
 * C^-1 is positive definite: its norm is between trace / n and the trace,
 *
 *     trace(C^-1) = sum of (A_c^-1)_ii (A_c)_ii.
 *
 * This reads 2 n values. */
#include "solvers/amg/amg.h"

#include <math.h>

/* Largest trace, with which eps ||C^-1|| is below 0.06.  Single precision takes
 * as many iterations as double precision up to 3e5 (a slender beam); beyond 1e6
 * it takes several times as many, or does not converge
 * (doc/log/amg-loop.md). */
#define LIMIT 1e6

/* *trace = the trace of C^-1, the sum of (A_c^-1)_ii / s_i^2, where 1 replaces
 * an s_i that is 0. */
static sps_status measure(const amg *m, const amg_level *l, double *inverse,
                          double *d, double *trace)
{
    sps_block *D = NULL;
    sps_status st;

    SPS_TRY(sps_block_create(m->super.ctx, l->n, 1, &D));
    SPS_TRY(spsi_amg_inverse(m, l, D));
    SPS_TRY(sps_block_get(D, 0, 1, d, l->n, SPS_COL_MAJOR, SPS_HOST));
    SPS_TRY(spsi_matrix_diagonal(m->inverse_op, inverse));
    *trace = 0;
    for (int64_t i = 0; i < l->n; i++) *trace += fabs(inverse[i]) / d[i];
fail:
    sps_block_destroy(&D);
    return st;
}

sps_status spsi_amg_fits_floats(const amg *m, bool *fits)
{
    sps_context *ctx = m->super.ctx;
    const amg_level *l = &m->level[m->levels - 1];
    double *d = NULL, trace;
    sps_status st = SPS_OK;

    *fits = true;
    if (!m->inverse_op) return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, 2 * l->n, &d));
    SPS_TRY(measure(m, l, d + l->n, d, &trace));
    *fits = trace <= LIMIT;
    if (!*fits)
        spsi_note(ctx, "amg: levels in double precision, because a cycle "
                  "multiplies rounding errors by up to %.0e", trace);
fail:
    spsi_free(ctx, d);
    return st;
}
