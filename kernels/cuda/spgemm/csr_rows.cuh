/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_rows.cuh - the kernels of C = A B for rows whose columns fit a table in
 * shared memory (csr_product.cuh): counting, columns and values, and values on
 * a known pattern.
 *
 * Bytes: A and C once, B again whenever the caches have evicted it; counting
 * reads only columns. */
#ifndef SPS_CUDA_CSR_ROWS_CUH
#define SPS_CUDA_CSR_ROWS_CUH

#include "cuda/spgemm/csr_repeat.cuh"

namespace {

extern __shared__ __align__(16) char product_shared[];

/* Returns the index of this thread's group within the launch. */
template <int G> __device__ __forceinline__ int64_t group_number(void)
{
    return ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / G;
}

/* ------------------------------------------------------------------- count */

/* Number of probes after which a table that may be too small is abandoned. */
constexpr int patience = 96;

/* Inserts the columns of the products of a row into the table; returns how many
 * columns there are, or -1 if they do not fit. */
template <int G>
__device__ __forceinline__ int
insert_row(const group<G> &g, const csr_factor<float> &A,
           const csr_factor<float> &B, row_part row, int32_t *key, int bits,
           int limit)
{
    const int longest = g.most(row.length);
    int fresh = 0;
    bool full = false;

    for (int base = 0; base < longest; base += G) {
        int64_t mine = 0;
        int length = 0;

        if (base + g.lane < row.length) {
            const int32_t k = A.col[row.begin + base + g.lane];

            mine = B.rowptr[k];
            if (!goes_on(A, B, row.begin, row.begin + base + g.lane))
                length = (int)(B.rowptr[k + 1] - mine);
        }
        const bool over = g.ballot(full) != 0;

        if (over) length = 0;
        if (!__any_sync(all_lanes, !over && base < row.length)) break;
#pragma unroll 1
        for (int e = 0; e < min(longest - base, G); e++) {
            const int64_t start = g.get(mine, e);
            const int n = g.get(length, e);

            for (int q = g.lane; __any_sync(all_lanes, q < n); q += G) {
                bool made = false;

                if (q < n && !full)
                    full = table_insert(key, bits, B.col[start + q], limit,
                                        &made) < 0;
                fresh += made;
            }
        }
    }
    fresh = g.sum(fresh);
    return g.ballot(full) ? -1 : fresh;
}

/* The task of a launch of count_rows: the rows of a list, of which a group
 * counts `run` consecutive ones.  count[i] becomes the entries of row i; rows
 * that do not fit go to `rest`, whose length is *rest_count, unless `rest` is
 * NULL because all of them fit. */
struct count_task {
    row_list rows;
    int run, bits;
    int32_t *count, *rest;
    int *rest_count;
};

/* Appends the rows of a run that do not fit, in order: bit i of `failed` stands
 * for row first + i. */
__device__ __forceinline__ void
put_rest(const count_task &w, int64_t first, unsigned failed)
{
    int at = failed ? atomicAdd(w.rest_count, __popc(failed)) : 0;

    for (int i = 0; i < w.run; i++)
        if (failed >> i & 1) w.rest[at++] = (int32_t)w.rows.at(first + i);
}

/* Counts the entries of rows of C.  A row is first compared with the row before
 * it (csr_repeat.cuh), as long as such comparisons succeed often enough
 * (`credit`). */
template <int G>
__global__ void __launch_bounds__(256)
count_rows(csr_factor<float> A, csr_factor<float> B, count_task w)
{
    const group<G> g;
    const int64_t first = group_number<G>() * w.run;
    int32_t *key = (int32_t *)product_shared + ((threadIdx.x / G) << w.bits);
    unsigned failed = 0;
    row_part before = {0, -1};
    int n = 0, credit = 2;

    for (int i = 0; i < w.run; i++) {
        const bool some = first + i < w.rows.count;
        const int64_t row = some ? w.rows.at(first + i) : -1;
        const row_part part = part_of(A, row);
        bool again = row < 0;

        if (i > 0 && credit > 0) {
            again = row_repeats(g, A, B, part, before) || again;
            credit += __all_sync(all_lanes, again) ? 1 : -1;
        }
        if (__any_sync(all_lanes, !again)) {
            const row_part mine = {part.begin, again ? 0 : part.length};

            for (int t = g.lane; t < 1 << w.bits; t += G) key[t] = -1;
            g.sync();
            const int m = insert_row(g, A, B, mine, key, w.bits,
                                     w.rest ? patience : 1 << w.bits);
            const bool fit = !w.rest || m <= table_limit(w.bits);

            if (!again) n = fit ? m : -1;
            g.sync();
        }
        before = part;
        if (row >= 0 && n < 0) failed |= 1u << i;
        if (row >= 0 && n >= 0 && g.lane == 0) w.count[row] = n;
    }
    if (g.lane == 0) put_rest(w, first, failed);
}

/* ------------------------------------------------------------------- sample */

constexpr int sample_rows = 512, sample_threads = 128, sample_bits = 10;

/* Counts the entries of gridDim.x of the n rows of C, one in each thread block,
 * whose threads visit the entries of the row of A together: number[t] += the
 * rows of tier t; those that do not fit the table belong to the window tier. */
__global__ void __launch_bounds__(sample_threads)
count_sample(csr_factor<float> A, csr_factor<float> B, int64_t n, int *number)
{
    __shared__ int32_t key[1 << sample_bits];
    __shared__ int entries, full;
    const row_part row = part_of(A, blockIdx.x * n / gridDim.x);
    bool fits = true;
    int own = 0;

    for (int t = (int)threadIdx.x; t < 1 << sample_bits; t += sample_threads)
        key[t] = -1;
    if (threadIdx.x == 0) entries = full = 0;
    __syncthreads();
    for (int t = (int)threadIdx.x; fits && t < row.length;
         t += sample_threads) {
        const int32_t k = A.col[row.begin + t];

        for (int64_t q = B.rowptr[k]; fits && q < B.rowptr[k + 1]; q++) {
            bool fresh = false;

            fits = table_insert(key, sample_bits, B.col[q], patience,
                                &fresh) >= 0;
            own += fresh;
        }
    }
    if (own > 0) atomicAdd(&entries, own);
    if (!fits) atomicOr(&full, 1);
    __syncthreads();
    if (threadIdx.x > 0 || entries == 0) return;
    atomicAdd(number + (full || entries > table_limit(sample_bits)
                            ? window_tier : tier_of(entries)), 1);
}

/* ------------------------------------------------------------------- values */

/* Moves the columns of the table and their sums to the front; returns how many
 * there are. */
template <int G, class V>
__device__ __forceinline__ int pack_table(const group<G> &g, int32_t *key,
                                          V *sum, int bits)
{
    int n = 0;

    for (int base = 0; base < 1 << bits; base += G) {
        const int32_t k = key[base + g.lane];
        const V v = sum[base + g.lane];
        const unsigned held = g.ballot(k >= 0);
        const int to = n + __popc(held & ((1u << g.lane) - 1));

        g.sync();   /* all threads have read the places that are now written */
        if (k >= 0) {
            key[to] = k;
            sum[to] = v;
        }
        n += __popc(held);
        g.sync();
    }
    return n;
}

/* Writes n columns and sums in ascending order of the columns: each to the
 * position given by the number of smaller ones.  For short rows. */
template <int G, class V>
__device__ __forceinline__ void
write_by_rank(const group<G> &g, int32_t *key, const V *sum, int n,
              int32_t *col, V *val)
{
    for (int t = n + g.lane; t < (n + 3) / 4 * 4; t += G) key[t] = INT32_MAX;
    g.sync();
    for (int s = g.lane; s < n; s += G) {
        const int32_t k = key[s];
        int rank = 0;

        for (int t = 0; t < n; t += 4) {
            const int4 four = *(const int4 *)(key + t);

            rank += (four.x < k) + (four.y < k) + (four.z < k) + (four.w < k);
        }
        col[rank] = k;
        val[rank] = sum[s];
    }
}

/* Writes n columns and sums in ascending order of the columns, by a bitonic
 * sort of the table.  For long rows. */
template <int G, class V>
__device__ __forceinline__ void
write_by_sort(const group<G> &g, int32_t *key, V *sum, int n, int32_t *col,
              V *val)
{
    const int longest = g.most(n);
    int size = 1;

    while (size < longest) size *= 2;
    for (int t = n + g.lane; t < size; t += G) key[t] = INT32_MAX;
    g.sync();
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step > 0; step /= 2) {
            for (int t = g.lane; t < size / 2; t += G) {
                const int low = 2 * t - (t & (step - 1)), high = low + step;
                const int32_t a = key[low], b = key[high];

                if ((a > b) == ((low & run) == 0)) {
                    const V v = sum[low];

                    key[low] = b;
                    key[high] = a;
                    sum[low] = sum[high];
                    sum[high] = v;
                }
            }
            g.sync();
        }
    for (int s = g.lane; s < n; s += G) {
        col[s] = key[s];
        val[s] = sum[s];
    }
}

constexpr int rank_limit = 128;

/* Computes columns and values of the rows of the list, at the offsets
 * rowptr. */
template <int G, class V>
__global__ void __launch_bounds__(256)
fill_rows(csr_factor<V> A, csr_factor<V> B, row_list rows, int bits,
          const int64_t *__restrict__ rowptr, int32_t *col, V *val)
{
    const group<G> g;
    const int64_t number = group_number<G>();
    const int groups = (int)blockDim.x / G, mine = (int)threadIdx.x / G;
    const int64_t row = number < rows.count ? rows.at(number) : -1;
    const int64_t at = row >= 0 ? rowptr[row] : 0;
    V *sum = (V *)product_shared + (mine << bits);
    int32_t *key = (int32_t *)((V *)product_shared + (groups << bits)) +
                   (mine << bits);
    int n;

    for (int t = g.lane; t < 1 << bits; t += G) {
        key[t] = -1;
        sum[t] = (V)-0.0;
    }
    g.sync();
    walk_row(g, A, B, part_of(A, row), [&](V a, V b, int32_t c) {
        bool fresh;
        V *s = sum + table_insert(key, bits, c, 1 << bits, &fresh);

        *s = fma(a, b, *s);
    });
    n = pack_table(g, key, sum, bits);
    if (g.most(n) <= rank_limit)
        write_by_rank(g, key, sum, n, col + at, val + at);
    else
        write_by_sort(g, key, sum, n, col + at, val + at);
}

/* ------------------------------------------------------------- new values */

/* Returns the position of column c among n ascending columns.  If c is not
 * among them, it is that of the last smaller column, or 0. */
__device__ __forceinline__ int find_column(const int32_t *key, int n,
                                           int32_t c)
{
    int low = 0, left = n - 1;

    while (left > 0) {
        const int half = (left + 1) / 2;

        if (key[low + half] <= c) low += half;
        left -= half;
    }
    return low;
}

/* Computes the values of rows whose columns are known; *bad is the first row in
 * which they are not those of the product. */
template <int G, class V>
__global__ void __launch_bounds__(256)
renew_rows(csr_factor<V> A, csr_factor<V> B, row_list rows, int bits,
           const int64_t *__restrict__ rowptr, const int32_t *__restrict__ col,
           V *val, unsigned long long *bad)
{
    const group<G> g;
    const int64_t number = group_number<G>();
    const int groups = (int)blockDim.x / G, mine = (int)threadIdx.x / G;
    V *sum = (V *)product_shared + (mine << bits);
    int32_t *key = (int32_t *)((V *)product_shared + (groups << bits)) +
                   (mine << bits);
    const int64_t row = number < rows.count ? rows.at(number) : -1;
    const int64_t at = row >= 0 ? rowptr[row] : 0;
    const int n = row >= 0 ? (int)(rowptr[row + 1] - at) : 0;
    bool wrong = false;

    for (int s = g.lane; s < n; s += G) {
        key[s] = col[at + s];
        sum[s] = (V)-0.0;
    }
    g.sync();
    walk_row(g, A, B, part_of(A, row), [&](V a, V b, int32_t c) {
        const int s = n > 0 ? find_column(key, n, c) : 0;

        if (n > 0 && key[s] == c) sum[s] = fma(a, b, sum[s]);
        else wrong = true;
    });
    for (int s = g.lane; s < n; s += G) val[at + s] = sum[s];
    if (wrong) atomicMin(bad, (unsigned long long)row);
}

} // namespace

#endif
