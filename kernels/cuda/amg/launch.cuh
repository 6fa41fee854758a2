/* SPDX-License-Identifier: BSD-3-Clause */
/* launch.cuh - templates that launch the stages of a level of multigrid: they
 * apply a function to each item, compute sums and maxima over items in a fixed
 * order (coarsening.h), or count.
 *
 * The files of this folder are compiled without contraction to fused
 * multiply-adds, so that a * b + c rounds twice, as on the host. */
#ifndef SPS_CUDA_AMG_LAUNCH_CUH
#define SPS_CUDA_AMG_LAUNCH_CUH

#define SPS_COARSE_FN __host__ __device__ inline
#include "cuda/base/scan.h"
#include "cuda/spgemm/csr_device.cuh"
#include "matrix/coarsening.h"

#include <string.h>

namespace {

constexpr int lanes = SPS_COARSE_LANES, chunk = SPS_COARSE_CHUNK;

inline cudaStream_t stream_of(sps_context *ctx)
{
    return spsi_cuda_state(ctx)->stream;
}

inline int64_t chunks_of(int64_t n) { return ceil_div(n, chunk); }

/* ----------------------------------------------------------------- each item */

template <class F> __global__ void __launch_bounds__(256)
run_each(int64_t n, const F f)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) f(i);
}

/* Calls f(i) for i = 0 .. n - 1. */
template <class F> sps_status each(sps_context *ctx, int64_t n, const F &f)
{
    return run_items(ctx, n, run_each<F>, n, f);
}

/* ------------------------------------------------------- rows by groups */

/* Calls f.run<G>(i, lane) in all lanes of a group of G threads of a warp for
 * each item; i is -1 for groups without an item, whose lanes take part in
 * exchanges.  count: the number of items, in device memory and at most n, or
 * NULL for n. */
template <int G, class F> __global__ void __launch_bounds__(256)
run_groups(int64_t n, const int *__restrict__ count, const F f)
{
    const int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / G;

    f.template run<G>(i < (count ? *count : n) ? i : -1, (int)threadIdx.x % G);
}

template <int G, class F>
sps_status launch_groups(sps_context *ctx, int64_t n, const int *count,
                         const F &f)
{
    return run_kernel(ctx, (unsigned)ceil_div(n, 256 / G), 256,
                      run_groups<G, F>, n, count, f);
}

/* Runs f for items with `mean` entries each on average. */
template <class F>
sps_status each_group(sps_context *ctx, int64_t n, int64_t mean,
                      const int *count, const F &f)
{
    if (n <= 0) return SPS_OK;
    return mean <= 5 ? launch_groups<4>(ctx, n, count, f)
         : mean <= 11 ? launch_groups<8>(ctx, n, count, f)
         : mean <= 31 ? launch_groups<16>(ctx, n, count, f)
                      : launch_groups<32>(ctx, n, count, f);
}

/* Return the maximum and the sum over the lanes of a group, in all of its
 * lanes. */
template <int G, class X> __device__ __forceinline__ X group_most(X x)
{
#pragma unroll
    for (int d = G / 2; d > 0; d /= 2) {
        const X other = __shfl_xor_sync(all_lanes, x, d, G);

        if (other > x) x = other;
    }
    return x;
}

template <int G> __device__ __forceinline__ int group_sum(int x)
{
#pragma unroll
    for (int d = G / 2; d > 0; d /= 2) x += __shfl_xor_sync(all_lanes, x, d, G);
    return x;
}

/* Returns the lanes of the group that pass says = true, as bits. */
template <int G> __device__ __forceinline__ unsigned group_ballot(bool says)
{
    return __ballot_sync(all_lanes, says) >> (threadIdx.x % 32 / G * G) &
           (all_lanes >> (32 - G));
}

/* --------------------------------------------------------- sums and maxima */

struct sum_of {
    static __device__ double one(double a, double b) { return a + b; }
};
struct most_of {
    static __device__ double one(double a, double b) { return fmax(a, b); }
};

/* part[c] = the reduction by J of the terms f(i) of chunk c. */
template <class J, class F> __global__ void __launch_bounds__(lanes)
run_chunks(int64_t n, const F f, double *part)
{
    __shared__ double lane[lanes];
    const int t = (int)threadIdx.x;
    const int64_t first = (int64_t)blockIdx.x * chunk;
    double mine = 0;

    for (int64_t i = first + t; i < n && i < first + chunk; i += lanes)
        mine = J::one(mine, f(i));
    lane[t] = mine;
    for (int half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (t < half) lane[t] = J::one(lane[t], lane[t + half]);
    }
    if (t == 0) part[blockIdx.x] = lane[0];
}

struct number {
    const double *x;

    __device__ double operator()(int64_t i) const { return x[i]; }
};

/* *to = the reduction by J of the `left` partial results at `from`, by kernels
 * over chunks of them until one is left; if `left` is 1, the result is already
 * at `to`. */
template <class J>
sps_status finish(sps_context *ctx, int64_t left, double *from, double *to)
{
    while (left > 1) {
        const int64_t next = chunks_of(left);

        SPS_TRY_RETURN(run_kernel(ctx, (unsigned)next, lanes,
                                  run_chunks<J, number>, left, number{from},
                                  next == 1 ? to : from + left));
        from += left;
        left = next;
    }
    return SPS_OK;
}

/* *to = the reduction by J of f(0) .. f(n - 1), in device memory; `part` has
 * part_room(n) doubles. */
template <class J, class F>
sps_status reduce(sps_context *ctx, int64_t n, const F &f, double *part,
                  double *to)
{
    const int64_t parts = chunks_of(n);

    if (parts == 0) return clear(ctx, 1, to);
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)parts, lanes, run_chunks<J, F>, n,
                              f, parts == 1 ? to : part));
    return finish<J>(ctx, parts, part, to);
}

inline int64_t part_room(int64_t n) { return 2 * chunks_of(n) + 64; }

/* ------------------------------------------------------------------ counts */

template <class F> __global__ void __launch_bounds__(256)
run_count(int64_t n, const F f, unsigned long long *sum)
{
    const int64_t step = (int64_t)gridDim.x * 256;
    unsigned long long mine = 0;

    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += step)
        mine += (unsigned long long)f(i);
#pragma unroll
    for (int d = 16; d > 0; d /= 2) mine += __shfl_xor_sync(all_lanes, mine, d);
    if (threadIdx.x % 32 == 0 && mine) atomicAdd(sum, mine);
}

/* *sum += f(0) + .. + f(n - 1), which are integers. */
template <class F>
sps_status count(sps_context *ctx, int64_t n, const F &f,
                 unsigned long long *sum)
{
    const int64_t blocks = ceil_div(n, 256);
    const int64_t most = 16 * (int64_t)spsi_cuda_state(ctx)->sms;

    if (n <= 0) return SPS_OK;
    return run_kernel(ctx, (unsigned)(blocks < most ? blocks : most), 256,
                      run_count<F>, n, f, sum);
}

/* ---------------------------------------------------------------- transfers */

template <class X>
sps_status copy(sps_context *ctx, int64_t n, const X *from, X *to)
{
    if (n > 0)
        SPS_CUDA(ctx, cudaMemcpyAsync(to, from, (size_t)n * sizeof *to,
                                      cudaMemcpyDeviceToDevice,
                                      stream_of(ctx)));
    return SPS_OK;
}

/* offset[i] = count[0] + .. + count[i - 1], for i = 0 .. n; *total becomes
 * offset[n]. */
inline sps_status offsets(sps_context *ctx, const int32_t *count, int64_t n,
                          int64_t *offset, int64_t *total)
{
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, count, n, offset));
    return download(ctx, 1, offset + n, total);
}

} // namespace

#endif
