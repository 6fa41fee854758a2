/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_join.cuh - a kernel that adds up the partial sums of hundreds of thread
 * blocks, queued after the pass that wrote them. */
#ifndef SPS_CUDA_STEPS_JOIN_CUH
#define SPS_CUDA_STEPS_JOIN_CUH

#include "cuda/base/cluster.cuh"
#include "cuda/fused_cg/steps_device.cuh"

namespace {

/* out[e] = sum over p of part[p * count + e], in the order of join_parts
 * (device.cuh).  Does nothing if the pass that writes `part` did nothing: with
 * GO (after `residual` and `directions`) if state->go is 0, else (after
 * `lengths`) if there is a reason to stop. */
template <bool GO>
__global__ void __launch_bounds__(256)
join_kernel(const double *__restrict__ part, int parts, int count, double *out,
            const sps_fused_cg_state *state)
{
    __shared__ double shared[256];
    int t = (int)threadIdx.x, e = (int)blockIdx.x * 8 + t % 8;
    double sum = 0;

    begin_after();
    if (GO ? !*(volatile const int *)&state->go
           : *(volatile const int *)&state->stop) return;
    if (e < count) {
#pragma unroll 8
        for (int p = t / 8; p < parts; p += 32)
            sum += __ldcg(part + (int64_t)p * count + e);
    }
    shared[t] = sum;
    for (int half = 128; half >= 8; half /= 2) {
        __syncthreads();
        if (t < half) shared[t] += shared[t + half];
    }
    if (t < 8 && e < count) out[e] = shared[t];
}

template <bool GO>
sps_status join_sums(const sps_fused_cg *w, const double *part, int parts,
                     int count, double *out)
{
    cudaLaunchAttribute room[2];
    const cudaLaunchConfig_t c = launch_after(
        w->ctx, (int)ceil_div(count, 8), 256, false, room);

    SPS_CUDA(w->ctx, cudaLaunchKernelEx(&c, join_kernel<GO>, part,
                                        parts, count, out, w->state));
    SPS_LAUNCHED(w->ctx);
    return SPS_OK;
}

} // namespace

#endif
