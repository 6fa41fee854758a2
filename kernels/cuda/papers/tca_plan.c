/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_plan.c - planning of TCA-SpMM: the work list, and memory for partial
 * sums. */
#include "cuda/papers/tca_plan.h"

#include "cuda/base/state.h"

sps_status spsi_cuda_tca_plan(sps_plan *super, const sps_problem *p,
                              size_t sum_bytes)
{
    sps_tca_plan *plan = (sps_tca_plan *)super;

    SPS_TRY_RETURN(spsi_cuda_enter(super->ctx));
    SPS_TRY_RETURN(spsi_cuda_tca_build(super, &plan->work));
    return spsi_plan_take(super, (size_t)plan->work.n.partials *
                                     (size_t)p->k * sum_bytes,
                          &plan->partial);
}

bool spsi_cuda_tca_fits(const sps_problem *p, const char **why_not)
{
    if (p->A->nrow > INT32_MAX) {
        *why_not = "A has 2^31 rows or more";
        return false;
    }
    return true;
}
