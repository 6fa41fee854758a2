/* SPDX-License-Identifier: BSD-3-Clause */
/* shared_limit.cuh - permission for a kernel to use more dynamic shared memory
 * than the 48 KB that every launch may use. */
#ifndef SPS_CUDA_SHARED_LIMIT_CUH
#define SPS_CUDA_SHARED_LIMIT_CUH

#include "cuda/base/cuda_check.h"
#include "cuda/base/state.h"

namespace {

/* Lets launches of `kernel` use `bytes` of dynamic shared memory.  The limit
 * belongs to the function and all threads of the process share it: a thread that
 * set it to what its own launch needs could lower it between this call and the
 * launch of another thread, which then failed.  So it is only ever set to the
 * largest value that the device allows. */
template <class F>
sps_status allow_shared(sps_context *ctx, F *kernel, size_t bytes)
{
    cudaFuncAttributes a;

    SPS_CUDA(ctx, cudaFuncGetAttributes(&a, kernel));
    if ((size_t)a.maxDynamicSharedSizeBytes >= bytes) return SPS_OK;
    SPS_CUDA(ctx, cudaFuncSetAttribute(
                      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                      spsi_cuda_state(ctx)->shared_limit -
                          (int)a.sharedSizeBytes));
    return SPS_OK;
}

}  /* namespace */

#endif
