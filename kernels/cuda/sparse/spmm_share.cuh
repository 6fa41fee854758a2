/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_share.cuh - the kernel of spmm.share: L lanes process a share of the
 * entries and hold C pairs of columns each; blockIdx.y is the slice of 2 L C
 * columns.
 *
 * All entries of a share are loaded at once and exchanged by shuffles; rows of
 * X are loaded several at a time, whichever rows of A they belong to; a row of
 * Y is stored at its last entry.  The partial sums of a row with several shares
 * are added in shared memory; those of a row that extends over several thread
 * blocks in device memory, by the block that arrives last; both in order. */
#ifndef SPS_CUDA_SPMM_SHARE_CUH
#define SPS_CUDA_SPMM_SHARE_CUH

#include "formats/shares.h"
#include "cuda/sparse/sparse.cuh"

namespace {

constexpr int empty_each = 4; /* number of rows without entries that a group of
                                 L lanes processes */

/* For C pairs per lane and shares of SIZE entries. unroll: number of rows of X
 * for which a lane has loads in flight; block_threads: threads of a block;
 * sm_threads: threads of a multiprocessor as registers allow, 40, 48 or 64
 * each.  Narrow slices are latency-bound and need many threads, wide ones are
 * bound by L2; measured in doc/log/spmm-share.md. */
constexpr int unroll = 4;
__host__ __device__ constexpr int block_threads(int pairs)
{
    return pairs == 1 ? 256 : 128;
}
__host__ __device__ constexpr int sm_threads(int pairs, int size)
{
    return pairs > 1 ? 1024 : size < 32 ? 1536 : 1280;
}

/* The plan (shares, spans, rows and partial sums) in the form passed to the
 * kernel. */
template <class T> struct dealt {
    const sps_share *__restrict__ share;
    const sps_share_span *__restrict__ span;
    const int32_t *__restrict__ row; /* the rows with entries; NULL: every row
                                        has entries */
    const int32_t *__restrict__ no_entries;
    int blocks, empty, slices;
    T *part;
    int64_t ld;
    unsigned *arrived;

    __device__ __forceinline__ int row_of(int number) const
    {
        return row ? __ldg(row + number) : number;
    }
};

__device__ __forceinline__ sps_share load_share(const sps_share *p)
{
    const int4 v = __ldg(reinterpret_cast<const int4 *>(p));

    return { v.x, v.y, (uint32_t)v.z, (uint32_t)v.w };
}

/* What the kernel may assume.  WHOLE: whole slices of aligned pairs, and Y =
 * alpha A X with alpha from the host and no epilogue.  PAIRS: aligned pairs, of
 * which the last may be half a pair.  SINGLE: nothing. */
enum columns { WHOLE, PAIRS, SINGLE };

/* The columns of this lane: C pairs from c on, 2 L apart, of which those below
 * `left` are columns of the block.  Loads are predicated: a branch would wait
 * for earlier loads. */
template <int L, int C, columns M, class T> struct lane_columns {
    using pair = pair_of<T>;
    int c, left;

    __device__ __forceinline__ lane_columns(int k)
        : c((int)blockIdx.y * 2 * L * C + 2 * ((int)threadIdx.x % L)),
          left(k - c) {}

    __device__ __forceinline__ pair fetch(const T *x, int w, bool some) const
    {
        const T *p = x + 2 * L * w;
        const bool first = M == WHOLE || 2 * L * w < left;
        const bool both = M == WHOLE || 2 * L * w + 1 < left;
        pair v = { T(0), T(0) };

        if (M != SINGLE && some && both)
            v = __ldg(reinterpret_cast<const pair *>(p));
        if (M == PAIRS && some && first && !both) v.x = __ldg(p);
        if (M == SINGLE && some && first) v.x = __ldg(p);
        if (M == SINGLE && some && both) v.y = __ldg(p + 1);
        return v;
    }
    /* Stores alpha sum + beta Y, or the result of the epilogue, in row i of
     * Y. */
    __device__ __forceinline__ void store(blocks<T> b, int64_t i,
                                          const pair *sum) const
    {
        T *y = b.y + i * b.ldy + c;

        if constexpr (M == WHOLE) {
            const T a = (T)b.alpha;

#pragma unroll
            for (int w = 0; w < C; w++)
                *reinterpret_cast<pair *>(y + 2 * L * w) =
                    pair{ a * sum[w].x, a * sum[w].y };
            return;
        }
        b.resolve();
#pragma unroll
        for (int w = 0; w < 2 * C; w++) {
            const int at = 2 * L * (w / 2) + w % 2;
            const T *one = w % 2 ? &sum[w / 2].y : &sum[w / 2].x;

            if (at < left) y[at] = b.join(*one, y + at, i);
        }
    }
};

template <int C, class P> __device__ __forceinline__ void clear(P *sum)
{
#pragma unroll
    for (int w = 0; w < C; w++) sum[w] = P{ 0, 0 };
}

template <int C, class P>
__device__ __forceinline__ void add(P *sum, const P *v)
{
#pragma unroll
    for (int w = 0; w < C; w++) sum[w].x += v[w].x, sum[w].y += v[w].y;
}

/* Adds up the entries of the share and stores the rows that end in it; sum
 * becomes the partial sum of an unfinished row. */
template <int L, int C, int SIZE, columns M, class T, class V>
__device__ __forceinline__ void
walk(const sps_share &s, const int32_t *col, const V *val, const dealt<T> &d,
     const blocks<T> &b, const lane_columns<L, C, M, T> &mine,
     pair_of<T> *sum)
{
    constexpr int own = (SIZE + L - 1) / L;
    const int entries = spsi_share_entries(s.what), lane = threadIdx.x % L;
    const int most = __reduce_max_sync(all_lanes, entries);
    const T *x = b.x + mine.c;
    int32_t at[own];
    V times[own];
    int row = s.row;

#pragma unroll
    for (int e = 0; e < own; e++) {
        const int p = lane + e * L;

        at[e] = p < entries ? __ldg(col + s.first + p) : -1;
        times[e] = p < entries ? __ldg(val + s.first + p) : V(0);
    }
#pragma unroll
    for (int base = 0; base < SIZE; base += unroll) {
        pair_of<T> v[unroll][C];

        if (base >= most) break;
#pragma unroll
        for (int u = 0; u < unroll; u++) {
            const int j = __shfl_sync(all_lanes, at[(base + u) / L],
                                      (base + u) % L, L);

#pragma unroll
            for (int w = 0; w < C; w++)
                v[u][w] = mine.fetch(x + (int64_t)j * b.ldx, w, j >= 0);
        }
#pragma unroll
        for (int u = 0; u < unroll; u++) {
            const T a = (T)__shfl_sync(all_lanes, times[(base + u) / L],
                                       (base + u) % L, L);

#pragma unroll
            for (int w = 0; w < C; w++) {
                sum[w].x = fma(a, v[u][w].x, sum[w].x);
                sum[w].y = fma(a, v[u][w].y, sum[w].y);
            }
            if (s.ends >> (base + u) & 1) {
                mine.store(b, d.row_of(row++), sum);
                clear<C>(sum);
            }
        }
    }
}

/* Adds to sum, the first partial sum of a row, the other partial sums of the
 * row in this thread block, in order. */
template <int L, int C, int threads, class P>
__device__ __forceinline__ void join_pieces(const P (*room)[threads],
                                            int pieces, P *sum)
{
#pragma unroll 4
    for (int p = 1; p < pieces; p++) {
        P v[C];

#pragma unroll
        for (int w = 0; w < C; w++) v[w] = room[w][threadIdx.x + p * L];
        add<C>(sum, v);
    }
}

/* Stores the block's partial sum of a row that extends over several blocks (a
 * span); returns true in the block that arrives last, with the total in sum.
 * Partial sums have all columns of the lanes. */
template <int L, int C, class T>
__device__ __forceinline__ bool join_parts_of(const dealt<T> &d, int number,
                                              int c, pair_of<T> *sum)
{
    using pair = pair_of<T>;
    const sps_share_span span = d.span[number];
    const int lane = (int)threadIdx.x % L;
    const unsigned lanes = (L == 32 ? all_lanes : (1u << L % 32) - 1)
                           << threadIdx.x % 32 / L * L;
    unsigned *arrived = d.arrived + (int64_t)number * d.slices + blockIdx.y;
    T *part = d.part + span.first * d.ld + c;
    T *mine = part + ((int)blockIdx.x - span.block) * d.ld;
    int last = 0;

#pragma unroll
    for (int w = 0; w < C; w++)
        *reinterpret_cast<pair *>(mine + 2 * L * w) = sum[w];
    __threadfence();
    __syncwarp(lanes);
    if (lane == 0) last = (int)atomicAdd(arrived, 1u) == span.count - 1;
    if (!__shfl_sync(lanes, last, 0, L)) return false;
    __threadfence();
    clear<C>(sum);
#pragma unroll 4
    for (int p = 0; p < span.count; p++) {
        pair v[C];

#pragma unroll
        for (int w = 0; w < C; w++)
            v[w] = __ldcg(reinterpret_cast<const pair *>(
                part + p * d.ld + 2 * L * w));
        add<C>(sum, v);
    }
    if (lane == 0) *arrived = 0;
    return true;
}

/* Computes Y: the first thread blocks process shares, the others rows without
 * entries. */
template <int L, int C, int SIZE, columns M, class T, class V>
__global__ void __launch_bounds__(block_threads(C),
                                  sm_threads(C, SIZE) / block_threads(C))
share_kernel(const int32_t *__restrict__ col, const V *__restrict__ val,
             const dealt<T> d, const blocks<T> b)
{
    constexpr int threads = block_threads(C), team = threads / L;
    __shared__ pair_of<T> room[C][threads];
    const int group = (int)threadIdx.x / L;
    const lane_columns<L, C, M, T> mine(b.k);
    pair_of<T> sum[C] = {};

    if ((int)blockIdx.x >= d.blocks) {
        int e = ((int)blockIdx.x - d.blocks) * team * empty_each + group;

        for (int n = 0; n < empty_each && e < d.empty; n++, e += team)
            mine.store(b, d.no_entries[e], sum);
        return;
    }
    const sps_share s = load_share(d.share + (int64_t)blockIdx.x * team +
                                   group);

    walk<L, C, SIZE>(s, col, val, d, b, mine, sum);
    if (!spsi_share_joins(s.what)) return;
#pragma unroll
    for (int w = 0; w < C; w++) room[w][threadIdx.x] = sum[w];
    __syncthreads();
    const int pieces = spsi_share_pieces(s.what);
    const int span = spsi_share_span(s.what);

    if (pieces == 0) return;
    join_pieces<L, C>(room, pieces, sum);
    if (span < 0 || join_parts_of<L, C>(d, span, mine.c, sum))
        mine.store(b, d.row_of(s.row), sum);
}

} // namespace

#endif
