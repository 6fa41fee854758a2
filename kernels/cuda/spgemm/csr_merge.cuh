/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_merge.cuh - the kernels of C = A B for an A whose rows have few entries:
 * a thread computes a row by merging the rows of B that it selects.
 *
 * Rows of B are sorted.  The next column of each (its head) is kept in a
 * register.  The smallest of them is the next column of C: the products of the
 * rows that have it are added in ascending k, and these rows advance.  So
 * columns come out sorted, each sum is the same chain as in the other methods
 * (csr_product.cuh), and there is no table and no sort.  Neighbouring threads
 * read neighbouring rows of B, mostly from L1.
 *
 * A thread block stages its rows in shared memory if they fit, so that C is
 * written in whole cache lines.  Bytes: A and C once, B again whenever the
 * caches have evicted it; counting reads only columns. */
#ifndef SPS_CUDA_CSR_MERGE_CUH
#define SPS_CUDA_CSR_MERGE_CUH

#include "cuda/spgemm/csr_rows.cuh"

namespace {

constexpr int merge_heads = 8;      /* largest number of entries of a row of
                                       A */
constexpr int merge_products = 1024;  /* largest number of products of a row of
                                         C */
constexpr int merge_threads = 128;
/* Largest number of entries of C that a thread block stages: four blocks fit on
 * a multiprocessor. */
constexpr int merge_stage = 4608;
constexpr int32_t merge_end = INT32_MAX;   /* larger than every column */

/* The heads of the rows of B that a row of A selects, with their values unless
 * only columns are needed (V is float then).  A head and its value are loaded
 * when the one before has been taken. */
template <class V, bool VALUES> struct heads {
    int32_t col[merge_heads];
    uint32_t at[merge_heads], end[merge_heads];
    V a[merge_heads], b[merge_heads];

    __device__ __forceinline__ void load(const csr_factor<V> &B, int h)
    {
        const bool some = at[h] < end[h];

        col[h] = some ? B.col[at[h]] : merge_end;
        if (VALUES && some) b[h] = B.val[at[h]];
    }
    __device__ __forceinline__ void open(const csr_factor<V> &A,
                                         const csr_factor<V> &B, row_part row)
    {
#pragma unroll
        for (int h = 0; h < merge_heads; h++) {
            const bool some = h < row.length;
            const int32_t k = some ? A.col[row.begin + h] : 0;

            at[h] = some ? (uint32_t)B.rowptr[k] : 0;
            end[h] = some ? (uint32_t)B.rowptr[k + 1] : 0;
            a[h] = some && VALUES ? A.val[row.begin + h] : (V)0;
            b[h] = 0;
        }
#pragma unroll
        for (int h = 0; h < merge_heads; h++) load(B, h);
    }
    __device__ __forceinline__ int32_t least(void) const
    {
        int32_t c[merge_heads];

#pragma unroll
        for (int h = 0; h < merge_heads; h++) c[h] = col[h];
#pragma unroll
        for (int left = merge_heads / 2; left > 0; left /= 2)
#pragma unroll
            for (int h = 0; h < left; h++) c[h] = min(c[h], c[h + left]);
        return c[0];
    }
    /* Returns the sum of the products in column c of C, and advances the heads
     * that have this column. */
    __device__ __forceinline__ V take(const csr_factor<V> &B, int32_t c)
    {
        V sum = (V)-0.0;

#pragma unroll
        for (int h = 0; h < merge_heads; h++) {
            if (col[h] != c) continue;
            if (VALUES) sum = fma(a[h], b[h], sum);
            at[h]++;
            load(B, h);
        }
        return sum;
    }
};

/* count[i] = the entries of row i of C; *longest becomes the largest count. */
__global__ void __launch_bounds__(merge_threads)
count_merged(csr_factor<float> A, csr_factor<float> B, int64_t n,
             int32_t *count, int *longest)
{
    const int64_t row = (int64_t)blockIdx.x * merge_threads + threadIdx.x;
    heads<float, false> h;
    int entries = 0;

    h.open(A, B, part_of(A, row < n ? row : -1));
    for (int32_t c; (c = h.least()) != merge_end; entries++) h.take(B, c);
    if (row < n) count[row] = entries;
    entries = __reduce_max_sync(all_lanes, entries);
    if (threadIdx.x % 32 == 0 && entries > *(volatile int *)longest)
        atomicMax(longest, entries);
}

/* Computes the columns and values of C, whose rows begin at the offsets rowptr;
 * if `staged`, in shared memory first. */
template <class V>
__global__ void __launch_bounds__(merge_threads)
fill_merged(csr_factor<V> A, csr_factor<V> B, int64_t n, bool staged,
            const int64_t *__restrict__ rowptr, int32_t *col, V *val)
{
    const int64_t first = (int64_t)blockIdx.x * merge_threads;
    const int64_t end = min(first + merge_threads, n);
    const int64_t row = first + threadIdx.x, base = rowptr[first];
    const int entries = (int)(rowptr[end] - base);
    V *stage_val = (V *)product_shared;
    int32_t *stage_col = (int32_t *)(stage_val + (staged ? entries : 0));
    V *to_val = staged ? stage_val : val + base;
    int32_t *to_col = staged ? stage_col : col + base;
    int64_t to = row < n ? rowptr[row] - base : 0;
    heads<V, true> h;

    h.open(A, B, part_of(A, row < n ? row : -1));
    for (int32_t c; (c = h.least()) != merge_end; to++) {
        to_val[to] = h.take(B, c);
        to_col[to] = c;
    }
    if (!staged) return;
    __syncthreads();
    for (int t = (int)threadIdx.x; t < entries; t += merge_threads) {
        val[base + t] = stage_val[t];
        col[base + t] = stage_col[t];
    }
}

/* Computes the values of rows whose columns are known, -0 where there is no
 * product; *bad is the first row in which the product has other columns. */
template <class V>
__global__ void __launch_bounds__(merge_threads)
renew_merged(csr_factor<V> A, csr_factor<V> B, int64_t n,
             const int64_t *__restrict__ rowptr,
             const int32_t *__restrict__ col, V *val, unsigned long long *bad)
{
    const int64_t row = (int64_t)blockIdx.x * merge_threads + threadIdx.x;
    int64_t to = row < n ? rowptr[row] : 0;
    const int64_t end = row < n ? rowptr[row + 1] : 0;
    bool good = true;
    heads<V, true> h;

    h.open(A, B, part_of(A, row < n ? row : -1));
    for (int32_t c; good && (c = h.least()) != merge_end;) {
        const V sum = h.take(B, c);

        for (; to < end && col[to] < c; to++) val[to] = (V)-0.0;
        good = to < end && col[to] == c;
        if (good) val[to++] = sum;
    }
    for (; good && to < end; to++) val[to] = (V)-0.0;
    if (!good) atomicMin(bad, (unsigned long long)row);
}

} // namespace

#endif
