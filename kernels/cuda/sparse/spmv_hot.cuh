/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_hot.cuh - the device code of spmv.hot: equal ranges of entries, summed
 * by rows with segmented scans.
 *
 * Merrill and Garland, Merge-based parallel sparse matrix-vector multiplication
 * (SC 2016), with the merge path precomputed: one bit per entry (`heads`) marks
 * the first entry of each row.  A warp adds 64 entries at a time by rows, two
 * neighbours per lane, in five shuffles, and carries the partial sum of the
 * last row over to the next 64.  Of rows that extend over several ranges each
 * range stores a partial sum (lead, trail); these are added in order by the
 * thread block that arrives last.
 *
 * The sums of rows with entries are written contiguously; another kernel moves
 * them to their rows and applies the epilogue.  Doing this here (the row index,
 * alpha, beta and the old y) would stall a warp in every step and spill
 * registers (0.24 ms instead of 0.21 on an R-MAT graph of 2^20 vertices). */
#ifndef SPS_CUDA_SPMV_HOT_CUH
#define SPS_CUDA_SPMV_HOT_CUH

#include "cuda/plan/hot_plan.h"
#include "cuda/sparse/ordered.cuh"

namespace {

constexpr int hot_threads = 1024, hot_warps = hot_threads / 32;
/* 128 entries per step of a warp, and the next 128 prefetched meanwhile; more
 * would not fit the 64 registers of each of 1024 threads. */
constexpr int hot_each = 2, hot_step = 64 * hot_each;

/* The plan of spmv.hot (hot_plan.h) in the form passed to the kernels. */
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

/* Loads two neighbouring values, aligned as a pair. */
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

/* The entries of one step of a warp: for each lane two neighbours out of each
 * of hot_each times 64 entries. */
template <class V> struct hot_entries {
    int2 col[hot_each];
    V val[hot_each][2];
    uint64_t heads;          /* in lane u: the head bits of the u-th 64
                                entries */
    bool whole;              /* whether all entries of the step exist */
};

/* Loads the step that begins at entry p; PAIRED: pairs of values are
 * aligned. */
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

/* State of a warp that sums the rows of its range. rank: index, among the rows
 * with entries, of the open row (begun and not ended); `begun`: the row that
 * was open before the range. */
template <class T> struct row_walk {
    const hot_rows<T> &h;
    int32_t range, begun, rank;
    bool fresh;              /* whether no entry has been processed yet */
    T carry;                 /* partial sum of the open row */

    __device__ __forceinline__ void end_row(int32_t r, T sum)
    {
        if (r == begun) h.lead[range] = sum;
        else h.sum[r] = sum;
    }

    /* Adds the products a0, a1 of this lane's two of 64 entries; heads: the
     * bits of all 64.  A lane's sum extends back to the lane of the last row
     * start. */
    __device__ __forceinline__ void add(T a0, T a1, uint64_t heads)
    {
        int lane = (int)threadIdx.x % 32, reach, at;
        bool head0 = heads >> 2 * lane & 1, head1 = heads >> 2 * lane >> 1 & 1;
        uint64_t marked = (heads | heads >> 1) & 0x5555555555555555ull &
                          (~0ull >> (62 - 2 * lane));
        T sum = head1 ? a1 : a0 + a1, before;

        if (heads == 0) { /* no row starts in these 64 entries: no scan is
                             needed */
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

    /* Ends the range: stores the sum of its last row, as that of a whole row if
     * the head bit of the next entry shows that the row ends here, otherwise as
     * the partial sum of a row that goes on in the next range. */
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

/* Loads the entries of x for hot_each pairs of columns: near ones from shared
 * memory, the others from the packed x by predicated loads. */
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

/* Sets x to zero for entries past the end, so that their products are zero. */
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

/* Sums entries begin .. end-1 of a range, by one warp.  The entries of the next
 * step are loaded after the entries of x of this one. */
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

/* Computes the sums of rows that end in another range than they begin in: adds
 * the partial sums, starting from the range in which the row begins. */
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

/* Moves the sums to their rows; rows without entries get zero. */
template <class T, class E>
__global__ void __launch_bounds__(256) put_kernel(hot_rows<T> h, E finish)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    finish.begin();
    if (i < h.nrow) finish(h.row[i], 0, i < h.filled ? h.sum[i] : T(0));
}

} // namespace

#endif
