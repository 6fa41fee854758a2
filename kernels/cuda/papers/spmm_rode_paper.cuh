/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode_paper.cuh - the two kernels of RoDe's SpMM as published:
 * block_kernel adds the segments (whole tiles of 32 entries) of each row to Y,
 * residual_kernel the rest of the row. spmm_rode_paper.cu, the only file that
 * includes this one, describes the method. */
#ifndef SPS_SPMM_RODE_PAPER_CUH
#define SPS_SPMM_RODE_PAPER_CUH

#include <cuda_pipeline_primitives.h>

#include "formats/rode.h"
#include "cuda/sparse/sparse.cuh"

namespace {

constexpr int lanes = 8, subs = 4, slots_of_tile = SPS_RODE_TILE;

/* Four consecutive columns. */
template <class T> struct quad {
    T v[4];
};

__device__ __forceinline__ quad<double> fetch_whole(const double *p)
{
    double2 a = __ldg(reinterpret_cast<const double2 *>(p));
    double2 b = __ldg(reinterpret_cast<const double2 *>(p + 2));

    return {{a.x, a.y, b.x, b.y}};
}
__device__ __forceinline__ quad<float> fetch_whole(const float *p)
{
    float4 a = __ldg(reinterpret_cast<const float4 *>(p));

    return {{a.x, a.y, a.z, a.w}};
}

/* The part of X that a sub-warp uses.  N: columns of the tile.  WHOLE: the tile
 * is full and vectors are aligned; otherwise `left` columns exist (from this
 * lane on) and `aligned` tells whether vector loads are possible. */
template <class T, int N, bool WHOLE> struct panel {
    static constexpr int quads = N / (4 * lanes);
    using row = quad<T>[quads];

    const T *__restrict__ x;
    int64_t ldx;
    int left;
    bool aligned;

    /* Loads this lane's columns of row j of X, or zeros if not `wanted`. */
    __device__ __forceinline__ void fetch(row &to, int32_t j, bool wanted) const
    {
        const T *p = x + (int64_t)j * ldx;

#pragma unroll
        for (int q = 0; q < quads; q++) {
            int some = wanted ? left - 4 * lanes * q : 0;

            to[q] = quad<T>{};
            if (WHOLE ? wanted : some >= 4 && aligned) {
                to[q] = fetch_whole(p + 4 * lanes * q);
            } else if (!WHOLE) {
#pragma unroll
                for (int c = 0; c < 4; c++)
                    if (c < some) to[q].v[c] = __ldg(p + 4 * lanes * q + c);
            }
        }
    }
    /* Loads the rows of X for slots first .. first + D - 1 of a tile of A.  The
     * first `none` slots of the tile (at most 4) are padding and get zeros. */
    template <int D>
    __device__ __forceinline__ void fetch(row (&to)[D], const int32_t *column,
                                          int first, int none) const
    {
#pragma unroll
        for (int d = 0; d < D; d++)
            fetch(to[d], column[first + d],
                  first + d >= SPS_RODE_ALIGN || first + d >= none);
    }
    static __device__ __forceinline__ void add(row &sum, T a, const row &x)
    {
#pragma unroll
        for (int q = 0; q < quads; q++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum[q].v[c] = fma(a, x[q].v[c], sum[q].v[c]);
    }
    template <int D, class V>
    static __device__ __forceinline__ void add(row &sum, const V *value,
                                               const row (&x)[D])
    {
#pragma unroll
        for (int d = 0; d < D; d++) add(sum, (T)value[d], x[d]);
    }
    /* Adds alpha times the sum to Y, by atomics if `atomic`. y: this lane's
     * first element of the row of Y. */
    __device__ __forceinline__ void finish(const blocks<T> &b, T *y,
                                           const row &sum, bool atomic) const
    {
#pragma unroll
        for (int q = 0; q < quads; q++)
#pragma unroll
            for (int c = 0; c < 4; c++) {
                T *to = y + 4 * lanes * q + c, r = (T)b.alpha * sum[q].v[c];

                if (!WHOLE && c >= left - 4 * lanes * q) continue;
                if (atomic) atomicAdd(to, r);
                else *to = b.beta != 0 ? *to + r : r; /* Y has been multiplied
                                                         by beta before */
            }
    }
};

/* Returns the columns of X that this thread processes; *c is the first of
 * them. */
template <class T, int N, bool WHOLE>
__device__ __forceinline__ panel<T, N, WHOLE> panel_of(const blocks<T> &b,
                                                       bool aligned, int *c)
{
    *c = (int)blockIdx.y * N + 4 * (int)threadIdx.x;
    return {b.x + *c, b.ldx, b.k - *c, aligned};
}

/* Returns the segment or residual of this sub-warp, or an empty one past the
 * end of the list. */
__device__ __forceinline__ spsi_rode_item item_of(const spsi_rode_item *list,
                                                  int64_t count)
{
    int64_t i = (int64_t)blockIdx.x * subs + threadIdx.y;

    return i < count ? list[i] : spsi_rode_item{};
}

/* Starts the copy of one tile of A to shared memory; aligned: col and val begin
 * at multiples of 16 bytes. */
template <class V>
__device__ __forceinline__ void copy_tile(int32_t *column, V *value,
                                          const int32_t *col, const V *val,
                                          bool aligned)
{
    constexpr int wide = 16 / sizeof(V);
    int l = (int)threadIdx.x;

    if (aligned) {
        __pipeline_memcpy_async(column + 4 * l, col + 4 * l, 16);
#pragma unroll
        for (int s = wide * l; s < slots_of_tile; s += wide * lanes)
            __pipeline_memcpy_async(value + s, val + s, 16);
    } else {
#pragma unroll
        for (int s = l; s < slots_of_tile; s += lanes) {
            __pipeline_memcpy_async(column + s, col + s, 4);
            __pipeline_memcpy_async(value + s, val + s, sizeof(V));
        }
    }
}

/* Adds the segments to Y.  All four sub-warps take as many steps as the longest
 * of their segments, so that the warp is converged at its barriers. */
template <class T, class V, int N, int D, bool WHOLE>
__global__ void __launch_bounds__(lanes *subs)
block_kernel(const spsi_rode_item *__restrict__ list, int64_t count,
             const int32_t *__restrict__ col, const V *__restrict__ val,
             blocks<T> b, bool even, bool aligned)
{
    using rows = typename panel<T, N, WHOLE>::row;
    constexpr int steps = slots_of_tile / D;
    __shared__ __align__(16) V values[2][subs][slots_of_tile];
    __shared__ __align__(16) int32_t columns[subs][slots_of_tile];
    int l = (int)threadIdx.x, sub = (int)threadIdx.y, c;
    spsi_rode_item item = item_of(list, count);
    int pad = (int)(item.start % SPS_RODE_ALIGN);
    int tiles = (pad + item.length) / slots_of_tile;
    int most = __reduce_max_sync(all_lanes, tiles);
    const int32_t *from_col = col + (item.start - pad);
    const V *from_val = val + (item.start - pad);
    int32_t *column = columns[sub];
    auto x = panel_of<T, N, WHOLE>(b, aligned, &c);
    rows dense[2][D], sum = {};

    b.resolve();
    if (b.alpha == 0) return;
    if (tiles > 0) copy_tile(column, values[0][sub], from_col, from_val, even);
    __pipeline_commit();
    for (int t = 0; t < most; t++) {
        V *value = values[t % 2][sub];
        int none = t == 0 ? pad : 0;

        __pipeline_wait_prior(0);
        __syncwarp();
        if (t == 0) {
            if (l < none) value[l] = V(0);
            __syncwarp();
        }
        if (t < tiles) {
            x.fetch(dense[0], column, 0, none);
#pragma unroll
            for (int i = 1; i < steps; i++) {
                x.fetch(dense[i % 2], column, i * D, none);
                x.add(sum, value + (i - 1) * D, dense[(i - 1) % 2]);
            }
        }
        __syncwarp(); /* all lanes have read the columns */
        if (t + 1 < tiles)
            copy_tile(column, values[(t + 1) % 2][sub],
                      from_col + (t + 1) * slots_of_tile,
                      from_val + (t + 1) * slots_of_tile, even);
        __pipeline_commit();
        if (t < tiles)
            x.add(sum, value + (steps - 1) * D, dense[(steps - 1) % 2]);
    }
    if (tiles > 0) x.finish(b, b.y + item.row * b.ldy + c, sum, true);
}

template <class T, class V, int N, bool WHOLE>
__global__ void __launch_bounds__(lanes *subs)
residual_kernel(const spsi_rode_item *__restrict__ list, int64_t count,
                const int32_t *__restrict__ col, const V *__restrict__ val,
                blocks<T> b, bool aligned)
{
    using rows = typename panel<T, N, WHOLE>::row;
    constexpr int unroll = 4;
    __shared__ V values[subs][slots_of_tile];
    __shared__ int32_t columns[subs][slots_of_tile];
    int sub = (int)threadIdx.y, c;
    spsi_rode_item item = item_of(list, count);
    int pad = (int)(item.start % SPS_RODE_ALIGN), slots = pad + item.length;
    int most = __reduce_max_sync(all_lanes, slots);
    int64_t from = item.start - pad;
    auto x = panel_of<T, N, WHOLE>(b, aligned, &c);
    rows sum = {};

    b.resolve();
    if (b.alpha == 0) return;
#pragma unroll
    for (int s = (int)threadIdx.x; s < slots_of_tile; s += lanes) {
        bool own = s >= pad && s < slots;

        values[sub][s] = own ? __ldg(val + from + s) : V(0);
        columns[sub][s] = own ? __ldg(col + from + s) : -1;
    }
    __syncwarp();
    for (int s = 0; s < most; s += unroll) {
        rows dense[unroll];

#pragma unroll
        for (int d = 0; d < unroll; d++) {
            int32_t j = columns[sub][s + d];

            x.fetch(dense[d], j, j >= 0);
        }
        x.add(sum, values[sub] + s, dense);
    }
    if (slots > 0) x.finish(b, b.y + item.row * b.ldy + c, sum, item.both);
}

} // namespace
#endif
