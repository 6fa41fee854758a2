/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_windows.cuh - the kernels of C = A B for rows that fit no table.  The
 * span of columns of such a row is divided into windows of 2048 columns, and a
 * warp computes a window, with an accumulator for each column and a bit that
 * states whether it is used.
 *
 * The warp processes 32 entries of the row of A at a time.  Each thread finds
 * the part of its row of B that lies in the window, and the products of all
 * parts, in order, are distributed over the threads 32 at a time, whatever the
 * lengths of the parts.  If several of these belong to one column, they are
 * added one after the other, in the order of the threads, which is that of k
 * (__match_any_sync).
 *
 * A window is an item of its own, so that one long row uses the whole device.
 * Bytes: A once for each window, the parts of B once, C once. */
#ifndef SPS_CUDA_CSR_WINDOWS_CUH
#define SPS_CUDA_CSR_WINDOWS_CUH

#include "cuda/spgemm/csr_rows.cuh"

namespace {

constexpr int window_columns = 2048, window_words = window_columns / 32;
constexpr int window_warps = 4;

/* The rows that fit no table, and their windows: the windows of row h of the
 * list are items item[h] .. item[h+1] - 1, and the first of them begins at
 * column first[h]. at[i]: the number of entries of the row before window i. */
struct window_list {
    const int32_t *row, *first;
    const int64_t *item;
    int64_t rows, items;
    int32_t *at;
};

/* Computes first[h] and the number of windows of each row of the list; a warp
 * processes a row. */
__global__ void __launch_bounds__(256)
measure_spans(csr_factor<float> A, csr_factor<float> B, row_list rows,
              int32_t *first, int32_t *windows)
{
    const int64_t h = group_number<32>();
    int low = INT32_MAX, high = -1;

    if (h >= rows.count) return;
    for (int64_t p = A.rowptr[rows.at(h)] + threadIdx.x % 32;
         p < A.rowptr[rows.at(h) + 1]; p += 32) {
        const int64_t q = B.rowptr[A.col[p]], end = B.rowptr[A.col[p] + 1];

        if (q == end) continue;
        low = min(low, B.col[q]);
        high = max(high, B.col[end - 1]);
    }
    low = __reduce_min_sync(all_lanes, low);
    high = __reduce_max_sync(all_lanes, high);
    if (threadIdx.x % 32 > 0) return;
    first[h] = low;
    windows[h] = high < low ? 0 : (high - low) / window_columns + 1;
}

/* Returns the first of entries q .. end-1 of B whose column is at least c. */
__device__ __forceinline__ int64_t lower_bound(const int32_t *col, int64_t q,
                                               int64_t end, int64_t c)
{
    while (q < end) {
        const int64_t mid = q + (end - q) / 2;

        if (col[mid] < c) q = mid + 1;
        else end = mid;
    }
    return q;
}

/* Calls add(a, b, column - low) for the products of a row with columns low ..
 * low + 2047, 32 at a time, in all threads of the warp; a thread without a
 * product passes column -1. */
template <class V, class F>
__device__ __forceinline__ void
walk_window(const csr_factor<V> &A, const csr_factor<V> &B, int64_t row,
            int64_t low, const F &add)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t end = A.rowptr[row + 1];

    for (int64_t p = A.rowptr[row]; p < end; p += 32) {
        factor_entry<V> mine = load_entry(A, B, p + lane, end);
        int64_t last = mine.start + mine.length;
        int before;

        if (mine.length > 0 && (B.col[mine.start] >= low + window_columns ||
                                B.col[last - 1] < low))
            last = mine.start;
        mine.start = lower_bound(B.col, mine.start, last, low);
        last = lower_bound(B.col, mine.start, last, low + window_columns);
        mine.length = (int)(last - mine.start);
        before = mine.length;
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const int below = __shfl_up_sync(all_lanes, before, d);

            if (lane >= d) before += below;
        }
        const int total = __shfl_sync(all_lanes, before, 31);

        before -= mine.length;
        for (int t = lane; t - lane < total; t += 32) {
            int e = 0;   /* becomes the last entry with before <= t */

#pragma unroll
            for (int d = 16; d > 0; d /= 2)
                if (__shfl_sync(all_lanes, before, e + d) <= t) e += d;
            const int64_t q = __shfl_sync(all_lanes, mine.start, e) + t -
                              __shfl_sync(all_lanes, before, e);
            const V a = __shfl_sync(all_lanes, mine.a, e);
            const bool some = t < total;

            add(a, some ? B.val[q] : (V)0,
                some ? (int)(B.col[q] - low) : -1);
        }
    }
}

/* Returns the row to which window number `item` belongs; *low becomes the first
 * column of that window. */
__device__ __forceinline__ int64_t find_window(const window_list &w,
                                               int64_t item, int64_t *low)
{
    int64_t h = 0, left = w.rows - 1;

    while (left > 0) {
        const int64_t half = (left + 1) / 2;

        if (w.item[h + half] <= item) h += half;
        left -= half;
    }
    *low = w.first[h] + (item - w.item[h]) * window_columns;
    return w.row[h];
}

/* at[i] = the number of entries in window i. */
__global__ void __launch_bounds__(32 * window_warps)
count_windows(csr_factor<float> A, csr_factor<float> B, window_list w)
{
    __shared__ unsigned used[window_warps][window_words];
    const int64_t item = group_number<32>();
    const int lane = (int)threadIdx.x % 32;
    unsigned *bits = used[threadIdx.x / 32];
    int64_t low;
    int n = 0;

    if (item >= w.items) return;
    const int64_t row = find_window(w, item, &low);

    for (int i = lane; i < window_words; i += 32) bits[i] = 0;
    __syncwarp();
    walk_window(A, B, row, low, [&](float, float, int c) {
        if (c >= 0) atomicOr(bits + c / 32, 1u << c % 32);
    });
    __syncwarp();
    for (int i = lane; i < window_words; i += 32) n += __popc(bits[i]);
    n = group<32>().sum(n);
    if (lane == 0) w.at[item] = n;
}

/* at[i] = the number of entries before window i in its row; count receives
 * those of the row. */
__global__ void __launch_bounds__(256)
join_windows(window_list w, int32_t *count)
{
    const int64_t h = group_number<32>();
    const int lane = (int)threadIdx.x % 32;
    int sum = 0;

    if (h >= w.rows) return;
    for (int64_t i = w.item[h]; i < w.item[h + 1]; i += 32) {
        const bool some = i + lane < w.item[h + 1];
        const int own = some ? w.at[i + lane] : 0;
        int before = own;

#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            const int below = __shfl_up_sync(all_lanes, before, d);

            if (lane >= d) before += below;
        }
        if (some) w.at[i + lane] = sum + before - own;
        sum += __shfl_sync(all_lanes, before, 31);
    }
    if (lane == 0) count[w.row[h]] = sum;
}

/* Adds the product of each thread to its sum; products for the same sum are
 * added in the order of the threads. */
template <class V>
__device__ __forceinline__ void add_in_order(V *sum, V a, V b, int c)
{
    const unsigned same = __match_any_sync(all_lanes, c);
    const int turn = __popc(same & ((1u << threadIdx.x % 32) - 1));
    const int turns = __reduce_max_sync(all_lanes, c >= 0 ? turn : 0);

    for (int t = 0; t <= turns; t++) {
        if (c >= 0 && t == turn) sum[c] = fma(a, b, sum[c]);
        __syncwarp();
    }
}

/* Writes the used columns of a window of C and their sums.  If `known`,
 * compares the columns with the stored ones instead (those from `at` to end - 1
 * are left in the row), and returns false if they differ. */
template <class V>
__device__ __forceinline__ bool
write_window(const unsigned *bits, const V *sum, int64_t low, int64_t at,
             int64_t end, bool known, int32_t *col, V *val)
{
    const int lane = (int)threadIdx.x % 32;
    bool good = true;

    for (int i = 0; i < window_words; i++) {
        const unsigned word = bits[i];
        const int64_t to = at + __popc(word & ((1u << lane) - 1));
        const int32_t c = (int32_t)(low + 32 * i + lane);

        if (word >> lane & 1) {
            const bool place = to < end && (!known || col[to] == c);

            good = good && place;
            if (place && !known) col[to] = c;
            if (place) val[to] = sum[32 * i + lane];
        }
        at += __popc(word);
    }
    return good;
}

/* Computes columns and values of the rows in the list, which are too long for a
 * hash table; fill_rows computes the others.  If `known`, the columns are given
 * and only values are computed; *bad becomes the first row whose columns are
 * not those of the product. */
template <class V>
__global__ void __launch_bounds__(32 * window_warps)
fill_windows(csr_factor<V> A, csr_factor<V> B, window_list w, bool known,
             const int64_t *__restrict__ rowptr, int32_t *col, V *val,
             unsigned long long *bad)
{
    const int64_t item = group_number<32>();
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    V *sum = (V *)product_shared + warp * window_columns;
    unsigned *bits = (unsigned *)((V *)product_shared +
                                  window_warps * window_columns) +
                     warp * window_words;
    int64_t low;

    if (item >= w.items) return;
    const int64_t row = find_window(w, item, &low), end = rowptr[row + 1];

    if (end - rowptr[row] <= table_limit(most_bits)) return;
    for (int i = lane; i < window_columns; i += 32) sum[i] = (V)-0.0;
    for (int i = lane; i < window_words; i += 32) bits[i] = 0;
    __syncwarp();
    walk_window(A, B, row, low, [&](V a, V b, int c) {
        if (c >= 0) atomicOr(bits + c / 32, 1u << c % 32);
        add_in_order(sum, a, b, c);
    });
    __syncwarp();
    if (!write_window(bits, sum, low, rowptr[row] + w.at[item], end, known, col,
                      val))
        atomicMin(bad, (unsigned long long)row);
}

} // namespace

#endif
