/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_join.cuh - sums of hundreds of blocks of threads, joined by a kernel
 * behind the pass that made them. */
#ifndef SPS_CUDA_STEPS_JOIN_CUH
#define SPS_CUDA_STEPS_JOIN_CUH

#include "cluster.cuh"
#include "steps.cuh"

namespace {

/* out[e] = sum over p of part[p * count + e], as in join_parts, in the same
 * order; where the pass before did its work (GO: the step is regular). */
template <bool GO>
__global__ void __launch_bounds__(256)
join_kernel(const double *__restrict__ part, int parts, int count, double *out,
            const sps_steps_state *state)
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
sps_status join_sums(const sps_steps *w, const double *part, int parts,
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
