/* SPDX-License-Identifier: BSD-3-Clause */
/* auto.c - solver auto: conjugate gradients for a callback, a fallback chain of
 * methods (chain.h) where the entries of A are known.  For a matrix over
 * several processes it is conjugate gradients or GMRES. */
#include "operator/operator_ranks.h"
#include "solvers/auto/chain.h"

static sps_status ops_linear(void *of, const sps_block *B, sps_block *X,
                             sps_result *result)
{
    return spsi_chain_linear(of, B, X, result);
}

/* Projects B by the solver of the current step, which has the null space. */
static sps_status ops_project(void *of, sps_block *B)
{
    const sps_chain *l = of;

    if (!l->now) return spsi_fail(l->ctx, SPS_EUNFIT, "auto: no method could "
                                  "be set up");
    return spsi_linear_project(l->now, B);
}

static void ops_destroy(void *of)
{
    sps_chain *l = of;

    spsi_chain_destroy(&l);
}

static const sps_precond *ops_precond(const void *of)
{
    const sps_chain *l = of;

    return l->now ? l->now->M : NULL;
}

static const sps_solver_ops chain_ops = {
    .linear = ops_linear, .project = ops_project,
    .precond = ops_precond, .destroy = ops_destroy,
};

static sps_status create_conjugate(const sps_linear_args *a,
                                   const sps_solver_ops **ops, void **of)
{
    sps_linear *s = NULL;
    const sps_status st = spsi_chain_conjugate(a, &s);

    *ops = &spsi_linear_ops;
    *of = s;
    return st;
}

/* Creates the solver for a matrix over several processes.  It is a single
 * method: the processes could disagree on the steps of a chain. */
static sps_status create_over_ranks(const sps_linear_args *a,
                                    const sps_solver_ops **ops, void **of)
{
    bool symmetric = (a->A->props & (SPS_SYMMETRIC | SPS_SPD)) != 0;
    sps_linear *s = NULL;
    double difference;
    sps_status st;

    if (!symmetric)
        SPS_TRY(spsi_ranks_symmetric(a->A, 1e-10, &symmetric, &difference));
    if (symmetric) return create_conjugate(a, ops, of);
    spsi_note(a->A->ctx, "solver auto: gmres, since the matrix is not "
              "symmetric and is spread over processes");
    SPS_TRY(spsi_linear_named(a, "gmres", &s));
    *ops = &spsi_linear_ops;
    *of = s;
fail:
    return st;
}

/* Creates the solver for a rectangular matrix, or for least squares with
 * damping. */
static sps_status create_least_squares(const sps_linear_args *a,
                                       const sps_solver_ops **ops, void **of)
{
    /* Sizes are told as those of the file. */
    const int64_t scale = a->A->props & SPS_INTERLEAVED ? 2 : 1;
    sps_linear *s = NULL;
    const sps_status st = spsi_auto_least(a, &s);

    if (st == SPS_OK)
        spsi_note(a->A->ctx, a->A->n != a->A->ncol
                  ? "solver auto: lsmr, least squares, since the matrix is "
                    "%lld x %lld"
                  : "solver auto: lsmr, least squares of the %lld x %lld "
                    "matrix, since damp is set",
                  (long long)(a->A->n / scale),
                  (long long)(a->A->ncol / scale));
    *ops = &spsi_linear_ops;
    *of = s;
    return st;
}

static sps_status create(const sps_linear_args *a, const sps_solver_ops **ops,
                         void **of)
{
    sps_chain *l = NULL;
    sps_status st;

    if (a->A->n != a->A->ncol || a->opt->damp > 0)
        return create_least_squares(a, ops, of);
    if (a->A->ranks) return create_over_ranks(a, ops, of);
    if (!a->A->A) return create_conjugate(a, ops, of);
    st = spsi_chain_create(a, &l);
    *ops = &chain_ops;
    *of = l;
    return st;
}

SPS_DEFINE(sps_linear_type, spsi_solver_auto) = {
    .name = "auto",
    .create = create,
};
