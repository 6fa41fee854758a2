/* SPDX-License-Identifier: BSD-3-Clause */
/* single_pipeline.cuh - a staged pipeline for blocks of 16 columns of floats:
 * the copy engine (sm_90) copies rows to shared memory several stages ahead of
 * the arithmetic.
 *
 * A row tile consists of 16 rows of 64 bytes without gaps, one kilobyte, of
 * each block.  Each warp has a ring of stages of its own and issues its next
 * copy when it has read a row tile: so no warp waits for another one, and data
 * in flight occupies no registers.
 *
 * Rows 0 - 7 and 8 - 15 of a row tile are two pieces, with 32 bytes of padding
 * between them in shared memory.  A tile of 8 rows takes four rows of each
 * piece, as row_of gives.  Then loads "down" (8 bytes) and "across" (16 bytes:
 * columns 4t .. 4t + 3 of a row, since the order of the inner dimension of a
 * product is arbitrary) have no bank conflicts. */
#ifndef SPS_CUDA_SINGLE_PIPELINE_CUH
#define SPS_CUDA_SINGLE_PIPELINE_CUH

#include "cuda/block/tile.cuh"
#include "cuda/fused_cg/steps_small.cuh"
#include "cuda/base/pipeline.cuh"

namespace {

/* The loop of a warp over its row tiles of BLOCKS blocks and, unless D is NULL,
 * of a diagonal. */
template <int BLOCKS> struct single_pipeline {
    static constexpr int warps = 8, stages = 4, rows = 16;
    static constexpr int piece = 8 * 16, apart = piece + 8, block = 2 * apart;
    /* size of a stage in floats */
    static constexpr int stage = BLOCKS * block + 2 * rows;
    static constexpr int bytes = warps * stages * stage * (int)sizeof(float);

    const float *from[BLOCKS];
    const double *D;
    float *to;                   /* the stages of this warp */
    uint64_t *full;              /* the barriers of these stages */
    int64_t at, step, count, n;  /* at: current row tile; step: distance to this
                                    warp's next one; count: number of them;
                                    n: number of rows */
    int slot = 0;
    unsigned phase = 0;          /* changes with each round of the stages */

    /* Opens the pipeline; called by all threads. shared: the stages of all
     * warps; barriers: an array of warps * stages; all: number of rows. */
    __device__ __forceinline__ single_pipeline(float *shared,
                                               uint64_t *barriers,
                                               const double *diagonal,
                                               int64_t all)
        : D(diagonal), n(all)
    {
        const int warp = same_for_warp((int)threadIdx.x / 32);

        to = shared + warp * (stages * stage);
        full = barriers + warp * stages;
        at = (int64_t)blockIdx.x * warps + warp;
        step = (int64_t)gridDim.x * warps;
        count = (n + rows - 1) / rows;
        if ((int)threadIdx.x < warps * stages)
            barrier_open(barriers + threadIdx.x, 1);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        asm volatile("fence.mbarrier_init.release.cluster;\n\t"
                     "fence.proxy.async.shared::cta;" ::: "memory");
#endif
        __syncthreads();
    }

    __device__ __forceinline__ bool is_whole(int64_t tile) const
    {
        return (tile + 1) * rows <= n;
    }

    /* Issues the copies of a full row tile to stage s: two pieces of each
     * block, and the diagonal. */
    __device__ __forceinline__ void order(int64_t tile, int s)
    {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
        float *there = to + s * stage;

        if (!is_whole(tile) || !one_of_warp()) return;
        asm volatile("{ .reg .b64 state;\n"
                     "mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }"
                     :: "r"(shared_address(full + s)),
                        "r"(BLOCKS * 1024 + (D ? 128 : 0)) : "memory");
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                bulk_copy(there + b * block + h * apart,
                          from[b] + tile * (2 * piece) + h * piece, 512,
                          full + s);
        if (D) bulk_copy(there + BLOCKS * block, D + tile * rows, 128,
                         full + s);
#endif
    }

    __device__ __forceinline__ void begin()
    {
        for (int s = 0; s < stages; s++) order(at + s * step, s);
    }

    /* Waits for copies in flight; a thread block must not exit before they are
     * done. */
    __device__ __forceinline__ void give_up()
    {
        for (int s = 0; s < stages; s++)
            if (is_whole(at + s * step)) barrier_wait(full + s, 0);
    }

    /* Loads the last row tile, if it is not full, by the lanes of the warp,
     * with zeros after row n. */
    __device__ __forceinline__ void fill(float *there)
    {
        const int lane = (int)threadIdx.x % 32;
        const int64_t row = at * rows;

        for (int e = lane; e < rows * 4; e += 32)
#pragma unroll
            for (int b = 0; b < BLOCKS; b++) {
                const int r = e / 4, c = e % 4 * 4;
                float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

                if (row + r < n)
                    v = *reinterpret_cast<const float4 *>(
                        from[b] + (row + r) * 16 + c);
                *reinterpret_cast<float4 *>(there + b * block + r * 16 +
                                            r / 8 * 8 + c) = v;
            }
        if (D && lane < rows)
            reinterpret_cast<double *>(there + BLOCKS * block)[lane] =
                row + lane < n ? D[row + lane] : 0.0;
        __syncwarp();
    }

    /* Waits for the current row tile and returns it: BLOCKS blocks, then the
     * diagonal. */
    __device__ __forceinline__ const float *current()
    {
        float *there = to + slot * stage;

        if (is_whole(at)) barrier_wait(full + slot, phase);
        else fill(there);
        return there;
    }

    /* Advances to the next row tile; the warp must have read the current one
     * into registers. */
    __device__ __forceinline__ void next()
    {
        __syncwarp();
        order(at + stages * step, slot);
        at += step;
        if (++slot == stages) {
            slot = 0;
            phase ^= 1;
        }
    }
};

/* Returns the row, within its row tile, of element i of tile h in the lanes
 * with index t (lane = 4g + t). */
__device__ __forceinline__ int row_of(int h, int t, int i)
{
    return 8 * (t % 2) + 4 * h + (t / 2 ? 3 - i : i);
}

/* Returns the offset, within a block in shared memory, of row row_of(h, t,
 * i). */
__device__ __forceinline__ int place_of(int h, int t, int i)
{
    return row_of(h, t, i) * 16 + 8 * (t % 2);
}

/* Reads columns 2g, 2g + 1 of rows row_of(h, t, 0) and row_of(h, t, 1). */
__device__ __forceinline__ void read_down(float2 *v, const float *from, int h,
                                          int g, int t)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        v[i] = *reinterpret_cast<const float2 *>(from + place_of(h, t, i) +
                                                 2 * g);
}

/* Reads columns 4t .. 4t + 3 of row row_of(h, g / 2, g % 2). */
__device__ __forceinline__ float4 read_across(const float *from, int h, int g,
                                              int t)
{
    return *reinterpret_cast<const float4 *>(from + place_of(h, g / 2, g % 2) +
                                             4 * t);
}

/* Reads elements row_of(h, t, 0) and row_of(h, t, 1) of the diagonal. */
__device__ __forceinline__ void read_diagonal(double *v, const float *from,
                                              int h, int t)
{
#pragma unroll
    for (int i = 0; i < 2; i++)
        v[i] = reinterpret_cast<const double *>(from)[row_of(h, t, i)];
}

/* Converts what read_down has read to double, in the layout of load_down
 * (tile.cuh): v[0] and v[1] from columns 2g and 2g + 1. */
__device__ __forceinline__ void widen(double (*v)[4], const float2 *x)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        v[0][i] = x[i].x;
        v[0][2 + i] = x[i].y;
    }
}

/* Stores the tile to rows `row` onward of a block of n rows. */
__device__ __forceinline__ void put_down(const double (*v)[4], float *x,
                                         int64_t row, int64_t n, int h, int g,
                                         int t)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t at = row + row_of(h, t, i);

        if (at < n)
            *reinterpret_cast<float2 *>(x + at * 16 + 2 * g) =
                make_float2((float)v[0][i], (float)v[0][2 + i]);
    }
}

/* Loads `sign` times c, 16 x 16 with leading dimension ld, as the first factor
 * of transposed products with the result of read_across. */
__device__ __forceinline__ void take_factor(double *a, const double *c,
                                            double sign, int ld, int g, int t)
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        a[2 * i] = sign * c[2 * g * ld + 4 * t + i];
        a[2 * i + 1] = sign * c[(2 * g + 1) * ld + 4 * t + i];
    }
}

__device__ __forceinline__ void multiply_across(double (*acc)[4],
                                                const double *a, float4 x)
{
    const double b[4] = { x.x, x.y, x.z, x.w };

    dmma16x16(acc[0], a, b);
}

} // namespace

#endif
