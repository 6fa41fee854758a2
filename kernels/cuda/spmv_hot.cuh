/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_hot.cuh - the device code of spmv.hot: even ranges of entries, summed
 * by rows with segmented scans.
 *
 * Merrill and Garland, Merge-based parallel sparse matrix-vector
 * multiplication (SC 2016), with the path known beforehand: a bit for each
 * entry says where rows begin.  A warp takes 64 entries a step, two neighbours
 * for each lane, adds them up by rows in five shuffles, and carries what is
 * left of the last row.  A row that several ranges have a part of is summed
 * from those parts, in their order, by the block of threads that arrives
 * last; the ranges only write down what they have (lead, trail). */
#ifndef SPS_CUDA_SPMV_HOT_CUH
#define SPS_CUDA_SPMV_HOT_CUH

#include "hot_plan.h"
#include "ordered.cuh"

namespace {

constexpr int hot_threads = 1024, hot_warps = hot_threads / 32;
/* 256 entries in flight for each warp.  Tried apart, with nothing around: 0.177
 * ms on an R-MAT graph of 2^20 vertices; here ptxas spills some of them, and it
 * takes 0.25 (doc/benchmarks.md). */
constexpr int hot_each = 4, hot_step = 64 * hot_each;

/* The plan as kernels see it. */
template <class T> struct hot_rows {
    int64_t nnz, nrow, filled, reach;
    const int32_t *__restrict__ col;
    const uint64_t *__restrict__ heads;
    const int32_t *__restrict__ row, *__restrict__ first;
    const T *packed;
    int32_t *open;
    T *lead, *trail;
    unsigned *done;
    int32_t ranges;
    int near;
};

/* Two neighbours out of whole pairs, which lie aligned. */
__device__ __forceinline__ void two_values(const double *p, double (&v)[2])
{
    double2 w = __ldcs(reinterpret_cast<const double2 *>(p));

    v[0] = w.x;
    v[1] = w.y;
}
__device__ __forceinline__ void two_values(const float *p, float (&v)[2])
{
    float2 w = __ldcs(reinterpret_cast<const float2 *>(p));

    v[0] = w.x;
    v[1] = w.y;
}

/* This lane's pairs of values from `mine` on, those before nnz; QUICK: all of
 * them are, and aligned. */
template <bool QUICK, class V>
__device__ __forceinline__ void load_values(const V *val, int64_t mine,
                                            int64_t nnz,
                                            V (&v)[hot_each][2])
{
#pragma unroll
    for (int u = 0; u < hot_each; u++) {
        int64_t e = mine + 64 * u;

        if constexpr (QUICK) {
            two_values(val + e, v[u]);
        } else {
            v[u][0] = e < nnz ? __ldcs(val + e) : V(0);
            v[u][1] = e + 1 < nnz ? __ldcs(val + e + 1) : V(0);
        }
    }
}

/* What a warp does with the rows of its range.  rank counts rows with
 * entries; `begun` is the one that was open before the range. */
template <class T, class E> struct row_walk {
    const hot_rows<T> &h;
    const E &finish;
    int32_t range, begun, rank;
    bool fresh;              /* no entry has been seen */
    T carry;                 /* what the open row has */

    __device__ __forceinline__ void end_row(int32_t r, T sum)
    {
        E own = finish; /* begun here: its scalars would cost registers */

        if (r == begun) {
            h.lead[range] = sum;
        } else {
            own.begin();
            own(h.row[r], 0, sum);
        }
    }

    /* Products a0, a1 of this lane's two of 64 entries, and the marks of all.
     * A lane's sum reaches back to the lane of the last mark. */
    __device__ __forceinline__ void add(T a0, T a1, uint64_t heads)
    {
        int lane = (int)threadIdx.x % 32, reach, at;
        bool head0 = heads >> 2 * lane & 1, head1 = heads >> 2 * lane >> 1 & 1;
        uint64_t marked = (heads | heads >> 1) & 0x5555555555555555ull &
                          (~0ull >> (62 - 2 * lane));
        T sum = head1 ? a1 : a0 + a1, before;

        if (heads == 0) { /* the same row to the end: no scan */
            for (int far = 16; far > 0; far /= 2)
                sum += __shfl_xor_sync(all_lanes, sum, far);
            carry += sum;
            fresh = false;
            return;
        }
        reach = marked ? lane - (63 - __clzll((long long)marked)) / 2 : lane;
        at = rank + __popcll(heads & ((1ull << 2 * lane) - 1));
#pragma unroll
        for (int far = 1; far < 32; far *= 2) {
            T up = __shfl_up_sync(all_lanes, sum, far);

            if (far <= reach) sum += up;
        }
        if (!marked) sum += carry;
        before = __shfl_up_sync(all_lanes, sum, 1);
        if (lane == 0) before = carry;
        if (head0) {
            if (!fresh || lane > 0) end_row(at, before);
            at++;
        }
        if (head1) end_row(at, head0 ? a0 : before + a0);
        carry = __shfl_sync(all_lanes, sum, 31);
        rank += __popcll(heads);
        fresh = false;
    }

    /* After the last entry; the next one tells whether the row ends here. */
    __device__ __forceinline__ void close(int64_t end)
    {
        bool ends = end == h.nnz || (h.heads[end / 64] >> end % 64 & 1);

        if (threadIdx.x % 32) return;
        if (ends) end_row(rank, carry);
        else if (rank == begun) h.lead[range] = carry;
        else h.trail[range] = carry;
        h.open[range] = ends ? -1 : rank;
    }
};

/* Numbers of x for `hot_each` pairs of columns: near ones from shared memory,
 * the others from the packed x, by predicates. */
template <class T>
__device__ __forceinline__ void pair_numbers(const hot_rows<T> &h,
                                             const T *near,
                                             const int2 (&col)[hot_each],
                                             T (&x)[hot_each][2])
{
#pragma unroll
    for (int u = 0; u < hot_each; u++) {
        x[u][0] = fetch_if(col[u].x >= h.near, h.packed + col[u].x);
        x[u][1] = fetch_if(col[u].y >= h.near, h.packed + col[u].y);
    }
#pragma unroll
    for (int u = 0; u < hot_each; u++) {
        T a = near[min(col[u].x, h.near - 1)];
        T b = near[min(col[u].y, h.near - 1)];

        if (col[u].x < h.near) x[u][0] = a;
        if (col[u].y < h.near) x[u][1] = b;
    }
}

/* What lies past the end is no number of the row. */
template <class T>
__device__ __forceinline__ void cut(T (&x)[hot_each][2], int64_t mine,
                                    int64_t nnz)
{
#pragma unroll
    for (int u = 0; u < hot_each; u++) {
        if (mine + 64 * u >= nnz) x[u][0] = T(0);
        if (mine + 64 * u + 1 >= nnz) x[u][1] = T(0);
    }
}

/* Entries begin .. end-1 of a range, by a warp. */
template <bool PAIRED, class V, class T, class W>
__device__ __forceinline__ void walk_range(const hot_rows<T> &h, const V *val,
                                           const T *near, int64_t begin,
                                           int64_t end, W &walk)
{
    int lane = (int)threadIdx.x % 32;

    for (int64_t p = begin; p < end; p += hot_step) {
        bool whole = p + hot_step <= h.nnz;
        int64_t mine = p + 2 * lane;
        uint64_t heads;          /* lane u has those of pairs u */
        int2 col[hot_each];
        V v[hot_each][2];
        T x[hot_each][2];

#pragma unroll
        for (int u = 0; u < hot_each; u++)
            col[u] = __ldcs(reinterpret_cast<const int2 *>(h.col + mine +
                                                           64 * u));
        heads = __ldcs(h.heads + (p / 64 + lane % hot_each));
        if (PAIRED && whole) load_values<true>(val, mine, h.nnz, v);
        else load_values<false>(val, mine, h.nnz, v);
        __syncwarp();
        pair_numbers(h, near, col, x);
#pragma unroll
        for (int u = 0; u < hot_each; u++) {
            x[u][0] *= (T)v[u][0];
            x[u][1] *= (T)v[u][1];
        }
        if (!whole) cut(x, mine, h.nnz);
#pragma unroll
        for (int u = 0; u < hot_each; u++)
            walk.add(x[u][0], x[u][1], __shfl_sync(all_lanes, heads, u));
    }
}

/* Rows that end in other ranges than they begin in: from the range that has
 * the begin, the parts of those that follow. */
template <class T, class E>
__device__ void join_ranges(const hot_rows<T> &h, E &finish)
{
    for (int w = (int)threadIdx.x; w < h.ranges; w += hot_threads) {
        int32_t r = __ldcg(h.open + w);
        T sum;

        if (r < 0 || r == h.first[w]) continue;
        sum = __ldcg(h.trail + w);
        for (int v = w + 1; v < h.ranges; v++) {
            sum += __ldcg(h.lead + v);
            if (__ldcg(h.open + v) != r) break;
        }
        finish(h.row[r], 0, sum);
    }
}

template <class T, class E>
__device__ __forceinline__ void empty_rows(const hot_rows<T> &h, E finish)
{
    int64_t i = (int64_t)blockIdx.x * hot_threads + threadIdx.x;

    finish.begin();
    for (i += h.filled; i < h.nrow; i += (int64_t)gridDim.x * hot_threads)
        finish(h.row[i], 0, T(0));
}

template <bool PAIRED, class V, class T, class E>
__global__ void __launch_bounds__(hot_threads, 1)
hot_kernel(hot_rows<T> h, const V *__restrict__ val, E finish)
{
    extern __shared__ double2 memory[];
    __shared__ bool last;
    T *near = reinterpret_cast<T *>(memory);
    int stride = (int)gridDim.x * hot_warps;

    for (int i = (int)threadIdx.x; i < h.near; i += hot_threads)
        near[i] = __ldg(h.packed + i);
    empty_rows(h, finish);
    __syncthreads();
    for (int w = (int)blockIdx.x + (int)gridDim.x * (int)(threadIdx.x / 32);
         w < h.ranges; w += stride) {
        int64_t begin = w * h.reach, end = begin + h.reach;
        int32_t begun = h.first[w];
        row_walk<T, E> walk = {h, finish, w, begun, begun, true, T(0)};

        if (end > h.nnz) end = h.nnz;
        walk_range<PAIRED>(h, val, near, begin, end, walk);
        walk.close(end);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(h.done, 1u) == gridDim.x - 1;
    __syncthreads();
    if (!last) return;
    __threadfence();
    if (threadIdx.x == 0) *h.done = 0;
    finish.begin();
    join_ranges(h, finish);
}

} // namespace

#endif
