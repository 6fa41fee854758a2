/* SPDX-License-Identifier: BSD-3-Clause */
/* gram_few.cuh - X'X, X'Y and the pair P'Q, P'R of one or two columns, for
 * which the fragments of the tensor cores would be mostly empty: a thread
 * processes whole rows, with several of each factor in flight.
 *
 * Order of summation: rows of a thread, a warp by a tree, warps of a thread
 * block in order, one partial result per thread block.  Traffic: each block
 * once. */
#ifndef SPS_CUDA_GRAM_FEW_CUH
#define SPS_CUDA_GRAM_FEW_CUH

#include "cuda/base/device.cuh"

namespace {

struct few_factors {
    const double *p[3];      /* the factors: X, or X and Y, or P, Q and R */
    int64_t ld[3], n;
    int k1, k2;
    double *part, *to[2];
};

/* The shape of the kernel for at most K columns and F factors. deep: rows of
 * each factor in flight per thread; per_sm: thread blocks per
 * multiprocessor. */
template <int K, int F> struct few_shape {
    static constexpr int deep = F == 1 ? 8 : 4;
    static constexpr int per_sm = K * F > 4 ? 3 : 4;
    static constexpr int rows = 256 * deep;      /* rows of a thread block */
    static constexpr int results = F > 2 ? 2 : 1;
    static constexpr int count = results * K * K;
};

/* Adds up result e of all threads of the thread block into shared[0][e], for
 * each e. */
template <int COUNT>
__device__ __forceinline__ void join_warps(double *sum, double (*shared)[COUNT])
{
    int warp = (int)threadIdx.x / 32;

#pragma unroll
    for (int e = 0; e < COUNT; e++) {
#pragma unroll
        for (int far = 1; far < 32; far *= 2)
            sum[e] += __shfl_xor_sync(all_lanes, sum[e], far);
        if (threadIdx.x % 32 == 0) shared[warp][e] = sum[e];
    }
    __syncthreads();
    if (threadIdx.x < COUNT)
        for (int w = 1; w < (int)blockDim.x / 32; w++)
            shared[0][threadIdx.x] += shared[w][threadIdx.x];
    __syncthreads();
}

template <int K, int F, bool PAIRED>
__global__ void __launch_bounds__(256, (few_shape<K, F>::per_sm))
few_gram_kernel(const __grid_constant__ few_factors f)
{
    using shape = few_shape<K, F>;
    constexpr int deep = shape::deep;
    __shared__ double shared[8][shape::count];
    double sum[shape::count] = {};
    int64_t step = (int64_t)gridDim.x * shape::rows;

    for (int64_t row = (int64_t)blockIdx.x * shape::rows + threadIdx.x;
         row < f.n; row += step) {
        double2 v[F][deep];

#pragma unroll
        for (int u = 0; u < deep; u++)
#pragma unroll
            for (int b = 0; b < F; b++) {
                int64_t i = row + 256 * u;
                int left = K < 2 ? 1 : b > 0 ? f.k2 : f.k1;

                v[b][u] = fetch_pair<PAIRED>(f.p[b] + i * f.ld[b],
                                             i < f.n ? left : 0);
            }
#pragma unroll
        for (int u = 0; u < deep; u++)
#pragma unroll
            for (int e = 0; e < shape::count; e++) {
                const double2 &x = v[0][u];
                const double2 &y = v[F == 1 ? 0 : 1 + e / (K * K)][u];

                sum[e] = fma(e % K ? x.y : x.x, e / K % K ? y.y : y.x, sum[e]);
            }
    }
    join_warps<shape::count>(sum, shared);
    int e = (int)threadIdx.x, i = e % K, j = e / K % K, half = e / (K * K);

    if (e < shape::count && i < f.k1 && j < f.k2)
        f.part[((int64_t)blockIdx.x * shape::results + half) * f.k1 * f.k2 +
               j * f.k1 + i] = shared[0][e];
}

template <int K, int F>
sps_status launch_few_gram(sps_context *ctx, few_factors *f, bool pairs)
{
    using shape = few_shape<K, F>;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t want = ceil_div(f->n, shape::rows), most = shape::per_sm * s->sms;
    int blocks = (int)(want < 1 ? 1 : want < most ? want : most);
    int64_t half = (int64_t)f->k1 * f->k2, count = half * shape::results;

    SPS_TRY_RETURN(take_scratch(ctx, count * blocks, &f->part));
    auto kernel = pairs && K > 1 ? few_gram_kernel<K, F, true>
                                 : few_gram_kernel<K, F, false>;
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)blocks, 256, kernel, *f));
    return launch_join<plus>(ctx, f->part, blocks, count, f->to[0], half,
                             f->to[1]);
}

template <int K>
sps_status launch_few_factors(sps_context *ctx, few_factors *f, int count,
                              bool pairs)
{
    if (count == 1) return launch_few_gram<K, 1>(ctx, f, pairs);
    if (count == 2) return launch_few_gram<K, 2>(ctx, f, pairs);
    return launch_few_gram<K, 3>(ctx, f, pairs);
}

} // namespace

#endif
