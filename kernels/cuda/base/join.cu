/* SPDX-License-Identifier: BSD-3-Clause */
/* join.cu - the second phase of reductions: partial results, one row of them
 * for each thread block of the first phase, are combined in a fixed order. */
#include "cuda/base/device.cuh"

namespace {

/* Second phase of a reduction: out[e] is the reduction by J over p of part[p *
 * count + e]; results from number `first` on are written to `rest`.  A thread
 * block computes `width` results (one or two sectors of each row of partial
 * results); thread t reduces the rows t / width, t / width + 256 / width, ...
 * in order, then a tree combines the threads. */
template <class J>
__global__ void __launch_bounds__(256)
join_parts(const double *__restrict__ part, int parts, int64_t count,
           int width, double *out, int64_t first, double *rest)
{
    __shared__ double shared[256];
    int t = (int)threadIdx.x, groups = 256 / width;
    int64_t e = (int64_t)blockIdx.x * width + t % width;
    double sum = 0;

    if (e < count) {
#pragma unroll 8
        for (int p = t / width; p < parts; p += groups)
            sum = J::one(sum, part[p * count + e]);
    }
    shared[t] = sum;
    for (int half = 128; half >= width; half /= 2) {
        __syncthreads();
        if (t < half) shared[t] = J::one(shared[t], shared[t + half]);
    }
    if (t < width && e < count)
        (e < first ? out : rest - first)[e] = shared[t];
}

} // namespace

sps_status spsi_cuda_join(sps_context *ctx, bool magnitudes, const double *part,
                          int parts, int64_t count, double *out, int64_t first,
                          double *rest)
{
    const int width = count >= 8 ? 8 : power_above((int)count);
    const unsigned grid = (unsigned)ceil_div(count, width);

    return run_kernel(ctx, grid, 256,
                      magnitudes ? join_parts<larger> : join_parts<plus>, part,
                      parts, count, width, out, first, rest);
}
