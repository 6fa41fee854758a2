/* SPDX-License-Identifier: BSD-3-Clause */
/* sample.cuh - a window of rows (lib/matrix/windows.h) examined by a thread
 * block, entry by entry. */
#ifndef SPS_CUDA_SAMPLE_CUH
#define SPS_CUDA_SAMPLE_CUH

#include "cuda/base/device.cuh"
#include "matrix/windows.h"

#include <climits>

namespace {

constexpr int sample_threads = 128;

/* The rows of a window, in shared memory: row r has entries begin[r] .. end[r]
 * - 1, which are entries at[r] .. at[r+1] - 1 of the window. */
template <int most> struct sample_rows {
    static_assert(most <= 64);
    int64_t begin[most], end[most], at[most + 1];
    int64_t longest;          /* entries of the longest row */

    /* Sets the rows: calls load(r, &begin, &end) for r = 0 .. rows - 1, which
     * sets the first entry of row r and the one after its last. */
    template <class F> __device__ void open(int rows, const F &load)
    {
        __syncthreads();
        for (int r = (int)threadIdx.x; r < rows; r += (int)blockDim.x)
            load(r, &begin[r], &end[r]);
        __syncthreads();
        if (threadIdx.x < 32) sum(rows);
        __syncthreads();
    }
    /* Computes `at` and `longest`, in one warp: lane l has rows 2 l and
     * 2 l + 1. */
    __device__ void sum(int rows)
    {
        const int r = 2 * (int)threadIdx.x;
        const int64_t own = r < rows ? end[r] - begin[r] : 0;
        int64_t upto = own + (r + 1 < rows ? end[r + 1] - begin[r + 1] : 0);

        const int64_t both = upto;
        int64_t longer = max(own, both - own);

#pragma unroll
        for (int d = 16; d > 0; d /= 2)
            longer = max(longer, __shfl_xor_sync(all_lanes, longer, d));
        if (r == 0) longest = longer;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const int64_t below = __shfl_up_sync(all_lanes, upto, d);

            if ((int)threadIdx.x >= d) upto += below;
        }
        if (r < rows) at[r + 1] = upto - both + own;
        if (r + 1 < rows) at[r + 2] = upto;
        if (r == 0) at[0] = 0;
    }
    /* Calls look(r, p) for entry p of row r, for the first `entries` entries of
     * the window: by groups of threads for rows of similar lengths that occupy
     * the thread block, otherwise one entry after another, each with a search
     * for its row. */
    template <class F>
    __device__ void each(int rows, int64_t entries, const F &look) const
    {
        const bool even = longest * rows <= 2 * at[rows] + 32 * rows;

        if (!even || rows * 32 < (int)blockDim.x)
            each_searched(rows, entries, look);
        else if (at[rows] >= 20 * rows)
            each_by<32>(rows, entries, look);
        else
            each_by<8>(rows, entries, look);
    }
    template <class F>
    __device__ void each_searched(int rows, int64_t entries,
                                  const F &look) const
    {
        for (int64_t e = threadIdx.x; e < entries; e += blockDim.x) {
            int r = 0, over = rows;   /* at[r] <= e < at[over] */

            while (over - r > 1) {
                const int middle = (r + over) / 2;

                if (at[middle] <= e) r = middle;
                else over = middle;
            }
            look(r, begin[r] + e - at[r]);
        }
    }
    template <int G, class F>
    __device__ void each_by(int rows, int64_t entries, const F &look) const
    {
        const int lane = (int)threadIdx.x % G;

        for (int r = (int)threadIdx.x / G; r < rows; r += (int)blockDim.x / G) {
            const int64_t last = min(end[r], begin[r] + entries - at[r]);

            for (int64_t p = begin[r] + lane; p < last; p += G) look(r, p);
        }
    }
};

/* Returns, to every thread, the sum of `own` over the threads of the block. */
__device__ inline int64_t sum_over_block(int64_t own)
{
    __shared__ unsigned long long sum;

    if (threadIdx.x == 0) sum = 0;
    for (int d = 16; d > 0; d /= 2) own += __shfl_xor_sync(all_lanes, own, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) atomicAdd(&sum, (unsigned long long)own);
    __syncthreads();
    own = (int64_t)sum;
    __syncthreads();
    return own;
}

} // namespace

#endif
