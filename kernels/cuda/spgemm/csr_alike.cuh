/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_alike.cuh - C = A B for matrices with consecutive rows that have the same
 * columns: with several unknowns per node, the rows of a node have the same
 * columns in A, in B and in C.
 *
 * Up to six such rows of A are processed together by a group of threads.  Their
 * columns are found once, and for consecutive entries of A that select rows of
 * B with the same columns, only for the first entry are the positions of these
 * columns in the row of C looked up.  For nodes of 3 unknowns one look-up
 * serves 9 products.  The sizes of nodes may differ.
 *
 * Each sum is the chain of csr_product.cuh: entries in ascending order, with
 * the columns of a row of B in different threads.  Bytes: A and C once, B again
 * whenever the caches have evicted it. */
#ifndef SPS_CUDA_CSR_ALIKE_CUH
#define SPS_CUDA_CSR_ALIKE_CUH

#include "cuda/spgemm/csr_rows.cuh"

namespace {

constexpr int alike_most = 6;     /* largest number of rows processed
                                     together */
/* runs of rows with the same columns are divided into groups within spans of
 * this length, a multiple of it and of the sizes of nodes */
constexpr int alike_span = 48;

/* same[i]: whether row i has the columns of row i - 1.  Eight threads process a
 * row. */
__global__ void __launch_bounds__(256)
compare_rows(const int64_t *__restrict__ rowptr,
             const int32_t *__restrict__ col, int64_t n, uint8_t *same)
{
    const group<8> g;
    const int64_t i = group_number<8>();
    const int64_t first = i > 0 && i < n ? rowptr[i] : 0;
    const int64_t before = i > 0 && i < n ? rowptr[i - 1] : 0;
    const int64_t length = first - before;
    bool alike = i > 0 && i < n && length > 0 && rowptr[i + 1] - first == length;

    for (int64_t t = g.lane; alike && t < length; t += 8)
        alike = col[first + t] == col[before + t];
    alike = g.ballot(!alike) == 0;
    if (i < n && g.lane == 0) same[i] = alike;
}

__device__ __forceinline__ bool begins(const uint8_t *same, int64_t i)
{
    return i % alike_span == 0 || !same[i];
}

/* leads[i]: the number of rows processed together with row i if it is the first
 * of them (their leader), else 0. */
__global__ void __launch_bounds__(256)
count_off(const uint8_t *__restrict__ same, int64_t n, int32_t *leads)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int64_t end = i + 1;

    if (i >= n || !begins(same, i)) return;
    while (end < n && !begins(same, end)) end++;
    for (int64_t j = i; j < end; j++)
        leads[j] = (j - i) % alike_most == 0
                       ? (int32_t)min(end - j, (int64_t)alike_most) : 0;
}

/* Adds the number of leaders to *number; *most becomes the largest number of
 * rows that one leads. */
__global__ void __launch_bounds__(256)
count_leaders(const int32_t *__restrict__ leads, int64_t n, int *number)
{
    const int64_t step = (int64_t)gridDim.x * 256;
    int mine = 0, most = 0;

    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n;
         i += step) {
        mine += leads[i] > 0;
        most = max(most, leads[i]);
    }
    mine = group<32>().sum(mine);
    most = __reduce_max_sync(all_lanes, most);
    if (threadIdx.x % 32 > 0) return;
    if (mine > 0) atomicAdd(number, mine);
    atomicMax(number + 1, most);
}

/* Copies from[i] to size[i] for the leaders; the other rows get -1, which
 * belongs to no tier. */
__global__ void __launch_bounds__(256)
keep_leaders(const int32_t *__restrict__ leads, int64_t n,
             const int32_t *__restrict__ from, int32_t *size)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) size[i] = leads[i] > 0 ? from[i] : -1;
}

/* Sets count[] of the rows that are processed together with a leader to the
 * leader's count. */
__global__ void __launch_bounds__(256)
follow_leaders(const int32_t *__restrict__ leads, int64_t n, int32_t *count)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    for (int r = 1; i < n && r < leads[i]; r++) count[i + r] = count[i];
}

/* Moves the columns of the table to its front and returns their number. */
template <int G>
__device__ __forceinline__ int pack_keys(const group<G> &g, int32_t *key,
                                         int bits)
{
    int n = 0;

    for (int base = 0; base < 1 << bits; base += G) {
        const int32_t k = key[base + g.lane];
        const unsigned held = g.ballot(k >= 0);

        g.sync();   /* all threads have read the places that are now written */
        if (k >= 0) key[n + __popc(held & ((1u << g.lane) - 1))] = k;
        n += __popc(held);
        g.sync();
    }
    return n;
}

/* Sorts n columns by a bitonic sort. */
template <int G>
__device__ __forceinline__ void sort_keys(const group<G> &g, int32_t *key,
                                          int n)
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
                    key[low] = b;
                    key[high] = a;
                }
            }
            g.sync();
        }
}

/* Rows row .. row + rows - 1 of A, processed by a group; `begin` has the first
 * entry of each. */
struct alike_rows {
    int64_t row;
    int rows, length;
    int64_t begin[alike_most];
};

template <class V>
__device__ __forceinline__ alike_rows open_alike(const csr_factor<V> &A,
                                                 int64_t row, int rows)
{
    alike_rows w = {row, rows, 0, {}};

#pragma unroll
    for (int r = 0; r < alike_most; r++)
        w.begin[r] = r < rows ? A.rowptr[row + r] : 0;
    if (rows > 0) w.length = (int)(A.rowptr[row + 1] - w.begin[0]);
    return w;
}

/* Number of values of B that are loaded before they are used. */
constexpr int alike_ahead = 3;

/* Loads b[u] = element q of the row of B that the entry of A in lane e + j + u
 * selects, if j + u < run. */
template <int G, class V>
__device__ __forceinline__ void
load_ahead(const group<G> &g, const csr_factor<V> &B,
           const factor_entry<V> &mine, int e, int j, int run, int q, V *b)
{
#pragma unroll
    for (int u = 0; u < alike_ahead; u++) {
        const int64_t from = g.get(mine.start, min(e + j + u, G - 1));

        b[u] = j + u < run ? B.val[from + q] : (V)0;
    }
}

/* Adds the products of `run` entries of A, held by the lanes from e on, that
 * select rows of B with the same columns.  *wrong is set if a column is not in
 * the table.  The first values are loaded before the position is looked up. */
template <int G, int R, class V>
__device__ __forceinline__ void
add_run(const group<G> &g, const csr_factor<V> &B, const factor_entry<V> &mine,
        const V *a, int e, int run, const int32_t *key, int n, V *sum,
        bool *wrong)
{
    const int64_t start = g.get(mine.start, e);
    const int whole = g.get(mine.length, e), length = run > 0 ? whole : 0;
    const int runs = g.most(run);

    for (int q = g.lane; __any_sync(all_lanes, q < length); q += G) {
        const bool some = q < length;
        const int32_t c = some ? B.col[start + q] : -1;
        V b[alike_ahead], acc[R];

        load_ahead(g, B, mine, e, 0, some ? run : 0, q, b);
        const int s = some && n > 0 ? find_column(key, n, c) : 0;
        const bool placed = some && n > 0 && key[s] == c;

        if (some && !placed) *wrong = true;
#pragma unroll
        for (int r = 0; r < R; r++) acc[r] = placed ? sum[r * n + s] : (V)0;
        for (int j = 0; j < runs; j += alike_ahead) {
            if (j > 0) load_ahead(g, B, mine, e, j, some ? run : 0, q, b);
#pragma unroll
            for (int u = 0; u < alike_ahead; u++)
#pragma unroll
                for (int r = 0; r < R; r++)
                    if (placed && j + u < run)
                        acc[r] = fma(a[r * G + e + j + u], b[u], acc[r]);
        }
#pragma unroll
        for (int r = 0; r < R; r++)
            if (placed) sum[r * n + s] = acc[r];
    }
}

/* Computes the sums of the rows: sum[r n + s] belongs to row r and column
 * key[s]. */
template <int G, int R, class V>
__device__ __forceinline__ bool
sum_alike(const group<G> &g, const csr_factor<V> &A, const csr_factor<V> &B,
          const alike_rows &w, const int32_t *key, int n, V *a, V *sum)
{
    const int longest = g.most(w.length);
    bool wrong = false;

    for (int base = 0; base < longest; base += G) {
        const int at = base + g.lane;
        const bool some = at < w.length;
        const factor_entry<V> mine = load_entry(
            A, B, w.begin[0] + at, w.begin[0] + w.length);
        const bool on = some && g.lane > 0 &&
                        goes_on(A, B, w.begin[0], w.begin[0] + at);
        const unsigned heads = g.ballot(some && !on), all = g.ballot(some);

        g.sync();   /* all threads have used the previous values */
#pragma unroll
        for (int r = 0; r < R; r++)
            a[r * G + g.lane] = some && r < w.rows ? A.val[w.begin[r] + at]
                                                   : (V)0;
        g.sync();
        for (unsigned left = heads; __any_sync(all_lanes, left != 0);) {
            const int e = left ? __ffs((int)left) - 1 : 0;
            const unsigned rest = left & (left - 1);
            const int last = rest ? __ffs((int)rest) - 1 : __popc(all);

            add_run<G, R>(g, B, mine, a, e, left ? last - e : 0, key, n, sum,
                          &wrong);
            g.sync();
            left = rest;
        }
    }
    return !wrong;
}

/* The task of a launch of fill_alike: the leaders of a list, and leads[], the
 * number of rows that each of them leads. */
struct alike_task {
    row_list rows;
    const int32_t *leads;
    int bits;
    bool known;                /* the columns of C are stored already */
    const int64_t *rowptr;
    unsigned long long *bad;
};

/* Finds the columns of the row of a leader, sorted, in key; returns their
 * number. */
template <int G, class V>
__device__ __forceinline__ int
find_columns(const group<G> &g, const csr_factor<V> &A, const csr_factor<V> &B,
             const alike_rows &w, const alike_task &t, int n, int64_t at,
             const int32_t *col, int32_t *key)
{
    if (t.known) {
        for (int s = g.lane; s < n; s += G) key[s] = col[at + s];
        g.sync();
        return n;
    }
    for (int s = g.lane; s < 1 << t.bits; s += G) key[s] = -1;
    g.sync();
    insert_row(g, {A.rowptr, A.col, NULL, NULL},
               {B.rowptr, B.col, NULL, B.same}, {w.begin[0], w.length}, key,
               t.bits, 1 << t.bits);
    g.sync();
    n = pack_keys(g, key, t.bits);
    sort_keys(g, key, n);
    return n;
}

/* Computes columns and values of the rows that the leaders of the list lead, at
 * most R rows for each. */
template <int G, int R, class V>
__global__ void __launch_bounds__(128)
fill_alike(csr_factor<V> A, csr_factor<V> B, alike_task t, int32_t *col,
           V *val)
{
    const group<G> g;
    const int64_t number = group_number<G>();
    const int groups = (int)blockDim.x / G, own = (int)threadIdx.x / G;
    const int64_t row = number < t.rows.count ? t.rows.at(number) : 0;
    const int rows = number < t.rows.count ? t.leads[row] : 0;
    const int64_t at = rows > 0 ? t.rowptr[row] : 0;
    const alike_rows w = open_alike(A, row, rows);
    V *sum = (V *)product_shared + own * (R << t.bits);
    V *a = (V *)product_shared + groups * (R << t.bits) + own * R * G;
    int32_t *key = (int32_t *)((V *)product_shared +
                               groups * ((R << t.bits) + R * G)) +
                   (own << t.bits);
    const int n = find_columns(
        g, A, B, w, t, rows > 0 ? (int)(t.rowptr[row + 1] - at) : 0, at, col,
        key);

    for (int s = g.lane; s < R * n; s += G) sum[s] = (V)-0.0;
    g.sync();
    bool good = sum_alike<G, R>(g, A, B, w, key, n, a, sum);

    g.sync();
    for (int r = 0; r < rows; r++) {
        const int64_t to = t.rowptr[row + r];

        good = good && t.rowptr[row + r + 1] - to == n;
        for (int s = g.lane; good && s < n; s += G) {
            if (!t.known) col[to + s] = key[s];
            good = col[to + s] == key[s];
            val[to + s] = sum[r * n + s];
        }
    }
    if (!good) atomicMin(t.bad, (unsigned long long)row);
}

} // namespace

#endif
