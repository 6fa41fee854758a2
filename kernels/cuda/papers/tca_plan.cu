/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_plan.cu - plans of TCA-SpMM. */
#include "cuda/papers/tca_plan.h"

#include "cuda/base/state.h"

sps_status spsi_cuda_tca_plan(sps_plan *super, const sps_problem *p,
                              size_t sum_bytes)
{
    sps_context *ctx = super->ctx;
    sps_tca_plan *plan = (sps_tca_plan *)super;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_tca_build(ctx, p->local, &plan->work));
    plan->partial_bytes = (size_t)plan->work.n.partials * (size_t)p->k *
                          sum_bytes;
    if (plan->partial_bytes > 0)
        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, plan->partial_bytes,
                                       &plan->partial));
    plan->super.bytes = spsi_tca_slot_bytes(&plan->work) +
                        spsi_tca_piece_bytes(&plan->work) +
                        spsi_tca_split_bytes(&plan->work) +
                        spsi_tca_empty_bytes(&plan->work) +
                        plan->partial_bytes;
    return SPS_OK;
}

void spsi_cuda_tca_destroy(sps_plan *super)
{
    sps_tca_plan *plan = (sps_tca_plan *)super;
    sps_context *ctx = super->ctx;

    spsi_cuda_tca_clear(ctx, &plan->work);
    spsi_cuda_release(ctx, plan->partial, plan->partial_bytes);
    spsi_cuda_release(ctx, plan->x, plan->x_bytes);
    spsi_cuda_release(ctx, plan->scale, plan->scale_bytes);
}

bool spsi_cuda_tca_fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nrow > INT32_MAX) {
        *why_not = "2^31 rows or more";
        return false;
    }
    return true;
}
