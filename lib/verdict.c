/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict.c - what a solve says at its end, of residuals recomputed from the
 * caller's B and X: which columns converged, why the others did not. */
#include "columns.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Why column j is not converged.  With a residual that rounding explains
 * there is nobody to blame. */
static sps_stop reason(const sps_solver *s, int j)
{
    bool blames = s->stop == SPS_STOP_SINGULAR ||
                  s->stop == SPS_STOP_PRECOND_INDEFINITE ||
                  s->stop == SPS_STOP_BREAKDOWN;
    bool rounding = s->result_backward[j] <= 1e3 * DBL_EPSILON &&
                    s->result_residual[j] <= 1e-8;

    if (s->stop >= 0 || (blames && rounding)) return SPS_STOP_STAGNATED;
    return s->stop;
}

sps_status spsi_columns_verdict(sps_solver *s, const sps_block *X)
{
    sps_status st = SPS_OK;
    double *norm_r = s->scratch, *norm_x = s->scratch + s->columns;
    double base, t;
    bool all = true, kept = false, renamed = false;

    SPS_TRY(spsi_verify(s->A, s->rhs, X, s->residual, norm_r, norm_x));
    for (int j = 0; j < s->columns; j++) {
        t = spsi_columns_threshold(s, j, norm_x[j]);
        base = s->norm_A * norm_x[j] + s->norm_b[j];
        s->result_residual[j] =
            s->norm_b[j] > 0 ? norm_r[j] / s->norm_b[j] : norm_r[j];
        s->result_backward[j] = base > 0 ? norm_r[j] / base : norm_r[j];
        if (s->result_column[j] < 0) {
            all = false;
        } else if (isfinite(norm_r[j]) && norm_r[j] <= t) {
            s->result_column[j] = SPS_STOP_CONVERGED;
        } else {
            all = false;
            s->result_column[j] = reason(s, j);
            if (s->result_column[j] == s->stop) kept = true;
            else renamed = true;
        }
    }
    if (s->stop < 0 && renamed && !kept) s->stop = SPS_STOP_STAGNATED;
    if (!all && s->stop == SPS_STOP_CONVERGED) {
        s->stop = SPS_STOP_STAGNATED;
        for (int j = 0; j < s->columns; j++)
            if (s->result_column[j] == SPS_STOP_NOT_FINITE)
                s->stop = SPS_STOP_NOT_FINITE;
    }
    if (all) s->stop = SPS_STOP_CONVERGED;
fail:
    return st;
}

/* The largest number that is no NaN; NaN counts as infinite. */
static double worst_of(const double *v, int k)
{
    double worst = 0;

    for (int j = 0; j < k; j++) {
        double x = isnan(v[j]) ? INFINITY : v[j];
        if (x > worst) worst = x;
    }
    return worst;
}

void spsi_solver_result(const sps_solver *s, double solve_seconds,
                        double verify_seconds, sps_result *r)
{
    const double *phase = s->ctx->phase_seconds;
    size_t size = r->struct_size;

    memset(r, 0, sizeof *r);
    r->struct_size = size;
    r->stop = s->stop;
    r->k = s->columns;
    r->iterations = s->iteration;
    for (int j = 0; j < s->columns; j++)
        r->columns_converged += s->result_column[j] == SPS_STOP_CONVERGED;
    r->restarts = s->replacements;
    r->applies_A = s->applies_A;
    r->applies_M = s->applies_M;
    r->min_width = s->min_width;
    r->worst_residual = worst_of(s->result_residual, s->columns);
    r->worst_backward = worst_of(s->result_backward, s->columns);
    r->norm_A = s->norm_A;
    r->removed = s->removed;
    r->nullspace = s->null ? (int)s->null->dimension : 0;
    r->residual = s->result_residual;
    r->backward = s->result_backward;
    r->column = s->result_column;
    r->solver = s->type->name;
    r->precond = sps_precond_name(s->M);
    r->kernel = sps_operator_kernel(s->A);
    r->seconds = (sps_seconds){
        .solve = solve_seconds, .verify = verify_seconds,
        .spmm = phase[SPS_PHASE_SPMM], .precond = phase[SPS_PHASE_PRECOND],
        .gram = phase[SPS_PHASE_GRAM], .small = phase[SPS_PHASE_SMALL],
    };
}
