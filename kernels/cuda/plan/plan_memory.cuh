/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_memory.cuh - device memory of plans: typed forms of spsi_plan_take. */
#ifndef SPS_CUDA_PLAN_MEMORY_CUH
#define SPS_CUDA_PLAN_MEMORY_CUH

#include "cuda/base/memory.cuh"
#include "plan/kernel.h"

namespace {

/* *p_p becomes device memory for `count` elements, which belongs to the
 * plan. */
template <class T>
sps_status plan_take(sps_plan *plan, int64_t count, T **p_p)
{
    void *p;

    SPS_TRY_RETURN(spsi_plan_take(plan, (size_t)count * sizeof(T), &p));
    *p_p = (T *)p;
    return SPS_OK;
}

/* *p_p becomes device memory for `count` elements, set to zero, which belongs
 * to the plan. */
template <class T>
sps_status plan_take_zeros(sps_plan *plan, int64_t count, T **p_p)
{
    SPS_TRY_RETURN(plan_take(plan, count, p_p));
    if (*p_p)
        SPS_CUDA(plan->ctx, cudaMemsetAsync(*p_p, 0, (size_t)count * sizeof(T),
                                            spsi_cuda_state(plan->ctx)->stream));
    return SPS_OK;
}

template <class T> void plan_give(sps_plan *plan, T **p_p)
{
    void *p = *p_p;

    spsi_plan_give(plan, &p);
    *p_p = NULL;
}

} // namespace

#endif
