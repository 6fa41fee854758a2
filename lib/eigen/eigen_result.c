/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_result.c - fills in the result of an eigensolver. */
#include "core/abi.h"
#include "eigen/eigen.h"

#include <math.h>

static double worst_of(const double *v, int k)
{
    double worst = 0;

    for (int j = 0; j < k; j++)
        worst = fmax(worst, isnan(v[j]) ? INFINITY : v[j]);
    return worst;
}

void spsi_eigen_result(const sps_eigen *e, const sps_seconds *seconds,
                       sps_eigen_result *result)
{
    sps_eigen_result r = {
        .struct_size = sizeof r,
        .stop = e->proof.verdict,
        .count = e->count,
        .block = e->space.width,
        .iterations = e->search.iteration,
        .restarts = e->search.restarts,
        .applies_A = e->pencil.applies_A,
        .applies_M = e->pencil.applies_M,
        .applies_precond =
            e->precond.applies + e->transform.inner_iterations,
        .worst_residual = worst_of(e->proof.residual, e->count),
        .worst_backward = worst_of(e->proof.backward, e->count),
        .norm_A = e->pencil.norm_A,
        .norm_M = e->pencil.norm_M,
        .orthogonality = e->proof.orthogonality,
        .nullspace = e->deflation.nulls,
        .missed = e->proof.missed,
        .lambda = e->proof.lambda,
        .residual = e->proof.residual,
        .backward = e->proof.backward,
        .bound = e->proof.bound,
        .pair = e->proof.pair,
        .solver = e->type->name,
        .precond = sps_precond_name(e->precond.T),
        .kernel = sps_operator_kernel(e->pencil.A),
        .seconds = *seconds,
    };
    for (int j = 0; j < e->count; j++)
        r.converged += e->proof.pair[j] == SPS_STOP_CONVERGED;
    spsi_abi_copy(&r, result);
}
