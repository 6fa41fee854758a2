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
 * last; the ranges only write down what they have (lead, trail).
 *
 * Sums of rows with entries are written side by side; another kernel brings
 * them to their rows.  To look up the row of each sum here, and alpha, beta and
 * the old y, makes a warp wait in every step and spills its registers (0.24 ms
 * instead of 0.21 on an R-MAT graph of 2^20 vertices). */
#ifndef SPS_CUDA_SPMV_HOT_CUH
#define SPS_CUDA_SPMV_HOT_CUH

#include "hot_plan.h"
#include "ordered.cuh"

namespace {

constexpr int hot_threads = 1024, hot_warps = hot_threads / 32;
/* 128 entries for each warp, and the next 128 on their way while those are
 * summed; more of them do not go into the 64 registers of 1024 threads. */
constexpr int hot_each = 2, hot_step = 64 * hot_each;

/* The plan as kernels see it. */
template <class T> struct hot_rows {
    int64_t nnz, nrow, filled, reach;
    const int32_t *__restrict__ col;
    const uint64_t *__restrict__ heads;
    const int32_t *__restrict__ row, *__restrict__ first;
    const T *packed;
    T *sum;
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

/* What a warp has of a step: two neighbours for each lane out of each of
 * hot_each times 64 entries. */
template <class V> struct hot_entries {
    int2 col[hot_each];
    V val[hot_each][2];
    uint64_t heads;          /* lane u has those of pairs u */
    bool whole;              /* none of them lies past the end */
};

/* The step that begins at entry p; PAIRED: pairs of values lie aligned. */
template <bool PAIRED, class V, class T>
__device__ __forceinline__ void load_entries(const hot_rows<T> &h,
                                             const V *val, int64_t p,
                                             hot_entries<V> &s)
{
    int lane = (int)threadIdx.x % 32;
    int64_t mine = p + 2 * lane;

    s.whole = p + hot_step <= h.nnz;
#pragma unroll
    for (int u = 0; u < hot_each; u++)
        s.col[u] = __ldcs(reinterpret_cast<const int2 *>(h.col + mine +
                                                         64 * u));
    s.heads = __ldcs(h.heads + (p / 64 + lane % hot_each));
#pragma unroll
    for (int u = 0; u < hot_each; u++) {
        int64_t e = mine + 64 * u;

        if (PAIRED && s.whole) {
            two_values(val + e, s.val[u]);
        } else {
            s.val[u][0] = e < h.nnz ? __ldcs(val + e) : V(0);
            s.val[u][1] = e + 1 < h.nnz ? __ldcs(val + e + 1) : V(0);
        }
    }
}

/* What a warp does with the rows of its range.  rank counts rows with
 * entries; `begun` is the one that was open before the range. */
template <class T> struct row_walk {
    const hot_rows<T> &h;
    int32_t range, begun, rank;
    bool fresh;              /* no entry has been seen */
    T carry;                 /* what the open row has */

    __device__ __forceinline__ void end_row(int32_t r, T sum)
    {
        if (r == begun) h.lead[range] = sum;
        else h.sum[r] = sum;
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

/* Entries begin .. end-1 of a range, by a warp.  The next step is asked for
 * behind the numbers of x of this one. */
template <bool PAIRED, class V, class T>
__device__ __forceinline__ void walk_range(const hot_rows<T> &h, const V *val,
                                           const T *near, int64_t begin,
                                           int64_t end, row_walk<T> &walk)
{
    hot_entries<V> next;

    load_entries<PAIRED>(h, val, begin, next);
    for (int64_t p = begin; p < end; p += hot_step) {
        hot_entries<V> now = next;
        T x[hot_each][2];

        __syncwarp();
        pair_numbers(h, near, now.col, x);
        if (p + hot_step < end)
            load_entries<PAIRED>(h, val, p + hot_step, next);
        __syncwarp();
#pragma unroll
        for (int u = 0; u < hot_each; u++) {
            x[u][0] *= (T)now.val[u][0];
            x[u][1] *= (T)now.val[u][1];
        }
        if (!now.whole) cut(x, p + 2 * (int)(threadIdx.x % 32), h.nnz);
#pragma unroll
        for (int u = 0; u < hot_each; u++)
            walk.add(x[u][0], x[u][1], __shfl_sync(all_lanes, now.heads, u));
    }
}

/* Rows that end in other ranges than they begin in: from the range that has
 * the begin, the parts of those that follow. */
template <class T> __device__ void join_ranges(const hot_rows<T> &h)
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
        h.sum[r] = sum;
    }
}

template <bool PAIRED, class V, class T>
__global__ void __launch_bounds__(hot_threads, 1)
hot_kernel(hot_rows<T> h, const V *__restrict__ val)
{
    extern __shared__ double2 memory[];
    __shared__ bool last;
    T *near = reinterpret_cast<T *>(memory);
    int stride = (int)gridDim.x * hot_warps;

    for (int i = (int)threadIdx.x; i < h.near; i += hot_threads)
        near[i] = __ldg(h.packed + i);
    __syncthreads();
    for (int w = (int)blockIdx.x + (int)gridDim.x * (int)(threadIdx.x / 32);
         w < h.ranges; w += stride) {
        int64_t begin = w * h.reach, end = begin + h.reach;
        int32_t begun = h.first[w];
        row_walk<T> walk = {h, w, begun, begun, true, T(0)};

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
    join_ranges(h);
}

/* Sums to their rows, zero to those without entries. */
template <class T, class E>
__global__ void __launch_bounds__(256) put_kernel(hot_rows<T> h, E finish)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    finish.begin();
    if (i < h.nrow) finish(h.row[i], 0, i < h.filled ? h.sum[i] : T(0));
}

} // namespace

#endif
