/* SPDX-License-Identifier: BSD-3-Clause */
/* product_pair.c - preconditioners that are two sparse products, Z = V G R. */
#include "solvers/precond/product_pair.h"

#include "operator/operator_ranks.h"

sps_status spsi_pair_symmetric(const sps_operator *A, bool *symmetric)
{
    double difference;

    *symmetric = A->props & (SPS_SYMMETRIC | SPS_SPD);
    if (*symmetric) return SPS_OK;
    return A->ranks
        ? spsi_ranks_symmetric(A, 1e-10, symmetric, &difference)
        : sps_csr_symmetric(A->ctx, A->A, 1e-10, symmetric, NULL);
}

sps_status spsi_pair_open(sps_precond *M, struct product_pair *m)
{
    const sps_status st = spsi_own_csr(&M->own, &m->G);

    return st ? st : spsi_own_csr(&M->own, &m->V);
}

sps_status spsi_pair_build(sps_precond *M, struct product_pair *m)
{
    sps_status st;

    SPS_TRY(spsi_check_deadline(M->ctx, M->type->name));
    SPS_TRY(spsi_precond_operator(M, m->G, &m->lower));
    SPS_TRY(spsi_precond_operator(M, m->V, &m->upper));
    SPS_TRY(spsi_own_block(&M->own, M->n, M->width, &m->W));
fail:
    return st;
}

sps_status spsi_pair_values(sps_precond *M, struct product_pair *m, double *v)
{
    sps_status st;

    SPS_TRY(spsi_precond_values(M, m->G, m->G->val, &m->lower));
    SPS_TRY(spsi_precond_values(M, m->V, v, &m->upper));
fail:
    return st;
}

sps_status spsi_pair_apply(const struct product_pair *m, const sps_block *R,
                           sps_block *Z)
{
    sps_status st;

    spsi_block_narrow(m->W, R->k);
    SPS_TRY(sps_operator_apply(m->lower, 1.0, R, 0.0, m->W));
    SPS_TRY(sps_operator_apply(m->upper, 1.0, m->W, 0.0, Z));
fail:
    return st;
}
