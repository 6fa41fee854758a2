/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.cu - exclusive prefix sums of count[] in two levels: the sums of tiles
 * of 4096 entries, the prefix sums of these by one thread block, then the
 * prefix sums within the tiles.  Reads count[] twice (the second time mostly
 * from L2) and writes offset[] once: 16 bytes an entry.
 *
 * A warp owns 512 consecutive entries and processes them 32 at a time, so all
 * accesses are coalesced without staging in shared memory. */
#include "cuda/base/scan.h"

#include "cuda/base/device.cuh"

namespace {

constexpr int warps = 8, steps = 16, share = 32 * steps;
constexpr int tile = warps * share;
/* Largest number of entries that one thread block scans alone, in one launch
 * instead of three. */
constexpr int64_t at_once = 4096;

__device__ __forceinline__ int64_t warp_sum(int64_t v)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(all_lanes, v, d);
    return v;
}

/* Computes inclusive prefix sums over the lanes of a warp. */
__device__ __forceinline__ int64_t warp_scan(int64_t v)
{
    int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        int64_t below = __shfl_up_sync(all_lanes, v, d);

        if (lane >= d) v += below;
    }
    return v;
}

/* Returns the sum of the 512 entries of this warp to all its lanes. */
__device__ __forceinline__ int64_t share_sum(const int32_t *count, int64_t n,
                                             int64_t first)
{
    int64_t sum = 0;

#pragma unroll
    for (int s = 0; s < steps; s++) {
        int64_t i = first + 32 * s + (int)threadIdx.x % 32;

        if (i < n) sum += count[i];
    }
    return warp_sum(sum);
}

__device__ __forceinline__ int64_t share_begin(void)
{
    return (int64_t)blockIdx.x * tile + (int64_t)(threadIdx.x / 32) * share;
}

__global__ void __launch_bounds__(32 * warps)
sum_tiles(const int32_t *__restrict__ count, int64_t n, int64_t *part)
{
    __shared__ int64_t of_warp[warps];
    int64_t sum = share_sum(count, n, share_begin());

    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0;
        for (int w = 0; w < warps; w++) sum += of_warp[w];
        part[blockIdx.x] = sum;
    }
}

/* offset[i] becomes the sum of from[0] .. from[i - 1], where `offset` may be
 * `from`; *total is the sum of all n.  For one thread block of 1024 threads. */
template <class X>
__global__ void __launch_bounds__(1024)
scan_parts(const X *from, int64_t n, int64_t *offset, int64_t *total)
{
    __shared__ int64_t of_warp[32];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t carry = 0;

    for (int64_t base = 0; base < n; base += 1024) {
        int64_t i = base + threadIdx.x, v = i < n ? from[i] : 0;
        int64_t upto = warp_scan(v), below;

        if (lane == 31) of_warp[warp] = upto;
        __syncthreads();
        below = warp_scan(of_warp[lane]);
        /* Prefix sum over the preceding warps, then the total of all warps. */
        upto += carry + (warp > 0 ? __shfl_sync(all_lanes, below, warp - 1)
                                  : 0);
        carry += __shfl_sync(all_lanes, below, 31);
        if (i < n) offset[i] = upto - v;
        __syncthreads();
    }
    if (threadIdx.x == 0) *total = carry;
}

__global__ void __launch_bounds__(32 * warps)
scan_tiles(const int32_t *__restrict__ count, int64_t n,
           const int64_t *__restrict__ part, int64_t *__restrict__ offset)
{
    __shared__ int64_t of_warp[warps];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int64_t first = share_begin(), sum = share_sum(count, n, first);
    int64_t carry = part[blockIdx.x];

    if (lane == 0) of_warp[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; w++) carry += of_warp[w];
    for (int s = 0; s < steps; s++) {
        int64_t i = first + 32 * s + lane, v = i < n ? count[i] : 0;
        int64_t upto = warp_scan(v);

        if (i < n) offset[i] = carry + upto - v;
        carry += __shfl_sync(all_lanes, upto, 31);
    }
}

sps_status scan(sps_context *ctx, const int32_t *count, int64_t n,
                int64_t *part, int64_t *offset)
{
    unsigned parts = (unsigned)ceil_div(n, tile);

    if (n <= at_once)
        return run_kernel(ctx, 1, 1024, scan_parts<int32_t>, count, n, offset,
                          offset + n);
    SPS_TRY_RETURN(run_kernel(ctx, parts, 32 * warps, sum_tiles, count, n,
                              part));
    SPS_TRY_RETURN(run_kernel(ctx, 1, 1024, scan_parts<int64_t>, part,
                              (int64_t)parts, part, offset + n));
    return run_kernel(ctx, parts, 32 * warps, scan_tiles, count, n, part,
                      offset);
}

} // namespace

sps_status spsi_cuda_scan(sps_context *ctx, const int32_t *count, int64_t n,
                          int64_t *offset)
{
    int64_t *part;

    SPS_TRY_RETURN(take_scratch(ctx, ceil_div(n, tile), &part));
    return scan(ctx, count, n, part, offset);
}
