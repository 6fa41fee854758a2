/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_result.c - the door of eigensolvers: what a caller hands in is looked
 * at, and what came out is handed back. */
#include "eigen.h"

#include <math.h>

static double worst_of(const double *v, int k)
{
    double worst = 0;

    for (int j = 0; j < k; j++)
        worst = fmax(worst, isnan(v[j]) ? INFINITY : v[j]);
    return worst;
}

void spsi_eigen_result(const sps_eigen *e, const sps_seconds *seconds,
                       sps_eigen_result *r)
{
    *r = (sps_eigen_result){
        .struct_size = sizeof *r, .stop = e->stop, .count = e->count,
        .block = e->width, .iterations = e->iteration,
        .restarts = e->restarts, .applies_A = e->applies_A,
        .applies_M = e->applies_M, .applies_precond = e->applies_T,
        .worst_residual = worst_of(e->residual, e->count),
        .worst_backward = worst_of(e->backward, e->count),
        .norm_A = e->norm_A, .norm_M = e->norm_M,
        .orthogonality = e->orthogonality, .nullspace = e->nulls,
        .missed = e->missed, .lambda = e->lambda, .residual = e->residual,
        .backward = e->backward, .bound = e->bound, .pair = e->pair,
        .solver = e->type->name, .precond = sps_precond_name(e->T),
        .kernel = sps_operator_kernel(e->A), .seconds = *seconds,
    };
    for (int j = 0; j < e->count; j++)
        r->converged += e->pair[j] == SPS_STOP_CONVERGED;
}

static sps_status check_arguments(sps_solver *s, sps_block *X,
                                  const sps_eigen_result *r)
{
    sps_status st = SPS_OK;
    const sps_eigen *e = s->eigen;

    SPS_REQUIRE(s->ctx, e, SPS_EINVAL, "this solver was made for linear "
                "systems; use sps_solver_linear");
    SPS_REQUIRE(s->ctx, X, SPS_EINVAL, "X is NULL");
    SPS_REQUIRE(s->ctx, X->ctx == s->ctx, SPS_EINVAL,
                "X and the solver belong to different contexts");
    SPS_REQUIRE(s->ctx, X->n == e->n && X->k == e->count, SPS_ESHAPE,
                "X is %lld x %d; the solver was made for %lld x %d",
                (long long)X->n, X->k, (long long)e->n, e->count);
    SPS_REQUIRE(s->ctx, !r || r->struct_size == sizeof *r, SPS_EINVAL,
                "result->struct_size must be sizeof(sps_eigen_result)");
fail:
    return st;
}

sps_status sps_solver_eigen(sps_solver *s, sps_block *X, double *lambda,
                            sps_eigen_result *result)
{
    sps_status st;

    if (!s) return SPS_EINVAL;
    st = check_arguments(s, X, result);
    return st == SPS_OK ? spsi_eigen_solve(s->eigen, X, lambda, result) : st;
}
