/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_device.cu - C = A B for sparse matrices in device memory: the
 * way it is made, and the passes over the tiers of rows.
 *
 *   merged   rows of A have 8 entries at most, and those of B not many:
 *            csr_merge.cuh;
 *   alike    rows of A follow each other with the same columns:
 *            csr_alike.cuh;
 *   single   others: csr_rows.cuh and csr_windows.cuh.
 *
 *   bounds   products of each row, unless the longest rows of A and B bound
 *            all of them to one tier;
 *   count    entries of each row of C, tier by tier: rows of many products try
 *            tables of 256, 1024 and 2048 columns, then windows;
 *   offsets  by a scan, which tells how much memory C takes;
 *   fill     columns and values, in tiers by the entries of C.
 *
 * csr_product.cuh has the order of sums, which is the same in all ways.  Work
 * memory: 8 to 24 bytes for each row, 4 for each window. */
#include "cuda/base/scan.h"
#include "cuda/spgemm/csr_alike.cuh"
#include "cuda/spgemm/csr_device.cuh"
#include "cuda/spgemm/csr_merge.cuh"
#include "cuda/spgemm/csr_windows.cuh"

#include <climits>
#include <type_traits>

namespace {

enum product_way { SINGLE, MERGED, ALIKE };

/* What the passes share. */
struct product {
    sps_context *ctx;
    product_way way;
    int longest[2];            /* rows of A and B */
    uint8_t *same;             /* rows of B that are alike, or NULL */
    int32_t *leads;            /* alike rows of A */
    int together;              /* of them, at most */
    const sps_csr *A, *B;
    int group;                 /* threads of a group for short rows */
    int32_t *work, *count;     /* products, entries of each row */
    int32_t *list;             /* rows by tier */
    int32_t *rest;             /* rows that fit no table yet, room for two
                                  lists */
    int *number;               /* of rows in each tier, in the lists, cursors */
    window_list w;

    cudaStream_t stream() const { return spsi_cuda_state(ctx)->stream; }
};

/* ------------------------------------------------------------------ bounds */

/* *longest: the longest row, as an integer. */
__global__ void __launch_bounds__(256)
longest_row(const int64_t *__restrict__ rowptr, int64_t n, int *longest)
{
    const int64_t step = (int64_t)gridDim.x * 256;
    int64_t most = 0;

    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += step)
        most = max(most, rowptr[i + 1] - rowptr[i]);
    const int whole = __reduce_max_sync(
        all_lanes, (int)min(most, (int64_t)INT32_MAX));
    if (threadIdx.x % 32 == 0) atomicMax(longest, whole);
}

/* Products of each row, at most 2^31 - 1, those with rows of B that are alike
 * once; eight threads a row. */
__global__ void __launch_bounds__(256)
count_products(csr_factor<float> A, csr_factor<float> B, int64_t n,
               int32_t *work)
{
    const group<8> g;
    const int64_t row = group_number<8>();
    const row_part part = part_of(A, row < n ? row : -1);
    int64_t products = 0;

    for (int t = g.lane; t < part.length; t += 8) {
        const int32_t k = A.col[part.begin + t];

        if (!goes_on(A, B, part.begin, part.begin + t))
            products += B.rowptr[k + 1] - B.rowptr[k];
    }
    products = g.sum(products);
    if (row < n && g.lane == 0)
        work[row] = (int32_t)min(products, (int64_t)INT32_MAX);
}

/* ------------------------------------------------------------------- tiers */

/* Rows with more products than a table holds may still have few columns: up to
 * so many products a table is tried. */
constexpr int try_limit = 32768, try_first = 8;
constexpr int try_bits[] = {try_first, 10, most_bits};

/* Up to so many products, by the longest rows, all rows are counted in tables
 * of one size. */
constexpr int tight_limit = table_limit(7);

/* The tier of a row: by = 0 of its products, to be counted, 3 in tables however
 * many they are; 1 of its entries; 2 the same with rows without any. */
__device__ __forceinline__ int choose_tier(int n, int by)
{
    if (by == 2 && n == 0) return 0;
    if (by == 1 || by == 2 || n <= table_limit(try_first - 1))
        return tier_of(n);
    return by == 3 || n <= try_limit ? try_first - least_bits : window_tier;
}

/* at[t] += rows of tier t of this block; returns where in them those of the
 * thread's tier, by warps, begin.  *same: its threads of the warp. */
__device__ __forceinline__ int add_tiers(int tier, int *at, unsigned *same)
{
    int mine = 0;

    if (threadIdx.x < tiers) at[threadIdx.x] = 0;
    __syncthreads();
    *same = __match_any_sync(all_lanes, tier);
    if (tier >= 0 && (*same & ((1u << threadIdx.x % 32) - 1)) == 0)
        mine = atomicAdd(at + tier, __popc(*same));
    mine = __shfl_sync(all_lanes, mine, __ffs(*same) - 1);
    __syncthreads();
    return mine;
}

/* number[t] += rows of tier t. */
__global__ void __launch_bounds__(256)
count_tiers(const int32_t *__restrict__ size, int64_t n, int by, int *number)
{
    __shared__ int at[tiers];
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    unsigned same;

    add_tiers(i < n ? choose_tier(size[i], by) : -1, at, &same);
    if (threadIdx.x < tiers && at[threadIdx.x] > 0)
        atomicAdd(number + threadIdx.x, at[threadIdx.x]);
}

/* Rows by tier: those of tier t from list[cursor[t]] on.  Blocks of
 * neighbouring rows stay together; their order does not matter. */
__global__ void __launch_bounds__(256)
list_tiers(const int32_t *__restrict__ size, int64_t n, int by, int *cursor,
           int32_t *list)
{
    __shared__ int at[tiers], base[tiers];
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int tier = i < n ? choose_tier(size[i], by) : -1;
    unsigned same;
    const int mine = add_tiers(tier, at, &same);

    if (threadIdx.x < tiers && at[threadIdx.x] > 0)
        base[threadIdx.x] = atomicAdd(cursor + threadIdx.x, at[threadIdx.x]);
    __syncthreads();
    if (tier >= 0)
        list[base[tier] + mine +
             __popc(same & ((1u << threadIdx.x % 32) - 1))] = (int32_t)i;
}

template <class X>
sps_status read_numbers(const product &p, const X *from, int n, X *to)
{
    return p.ctx->backend->download(p.ctx, to, from, (size_t)n * sizeof *to);
}

csr_factor<float> pattern_of(const product &p, const sps_csr *A)
{
    csr_factor<float> f = factor_of<float>(A);

    f.same = A == p.B ? p.same : NULL;
    return f;
}

/* Sorts the rows into tiers by size; tier[t]: its rows, all of them without a
 * list where one tier has every row. */
sps_status make_tiers(const product &p, const int32_t *size, int by,
                      row_list *tier)
{
    const int64_t n = p.A->nrow, blocks = ceil_div(n, 256);
    int number[tiers], cursor[tiers], at = 0;

    SPS_CUDA(p.ctx, cudaMemsetAsync(p.number, 0, sizeof number, p.stream()));
    count_tiers<<<(unsigned)blocks, 256, 0, p.stream()>>>(size, n, by,
                                                          p.number);
    SPS_LAUNCHED(p.ctx);
    SPS_TRY_RETURN(read_numbers(p, p.number, tiers, number));
    for (int t = 0; t < tiers; t++) {
        tier[t] = {number[t] == n ? NULL : p.list + at, number[t]};
        cursor[t] = at;
        at += number[t];
    }
    for (int t = 0; t < tiers - 1; t++)
        if (number[t] == n) return SPS_OK;
    SPS_TRY_RETURN(p.ctx->backend->upload(p.ctx, p.number, cursor,
                                          sizeof cursor));
    list_tiers<<<(unsigned)blocks, 256, 0, p.stream()>>>(size, n, by, p.number,
                                                         p.list);
    SPS_LAUNCHED(p.ctx);
    if (number[window_tier] == n) tier[window_tier].row = p.list;
    return SPS_OK;
}

/* Threads of a group for rows of this tier: by the rows of B, but one for 64
 * columns at least and one for each at most.  (Shared memory limits the rows
 * under way, so the fewer threads share one, the fewer wait.) */
int group_of(const product &p, int bits)
{
    const int least = bits <= 8 ? 4 : 1 << (bits - 6);
    const int group = p.group > least ? p.group : least;

    return group < 1 << bits ? group : 1 << bits;
}

/* Threads of a block whose tables fit: 32 KB or a row of each warp. */
template <class F>
sps_status launch_tier(const product &p, F kernel, int G, int bits,
                       size_t each, int64_t rows, unsigned *blocks,
                       unsigned *threads, size_t *shared)
{
    const size_t table = each << bits;
    int groups = 256 / G;

    while (groups * G > 32 && (size_t)groups * table > (size_t)100 << 10)
        groups /= 2;
    *threads = (unsigned)(groups * G);
    *blocks = (unsigned)ceil_div(rows, groups);
    *shared = (size_t)groups * table;
    if ((int)*shared > spsi_cuda_state(p.ctx)->shared_limit)
        return spsi_fail(p.ctx, SPS_EUNFIT, "a product of matrices takes %zu "
                         "bytes of shared memory a block: this GPU has %d",
                         *shared, spsi_cuda_state(p.ctx)->shared_limit);
    SPS_CUDA(p.ctx, cudaFuncSetAttribute(
                        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                        (int)*shared));
    return SPS_OK;
}

/* call(integer constant G) for the group size. */
template <class F> sps_status with_group(int group, const F &call)
{
    switch (group) {
    case 4: return call(std::integral_constant<int, 4>());
    case 8: return call(std::integral_constant<int, 8>());
    case 16: return call(std::integral_constant<int, 16>());
    default: return call(std::integral_constant<int, 32>());
    }
}

/* ------------------------------------------------------------------- count */

/* A group counts several rows, which may repeat each other, where there are
 * enough of them for all groups that the device can run. */
sps_status count_tier(const product &p, row_list rows, int bits, int32_t *rest,
                      int *rest_count)
{
    const int run = rows.count >= (int64_t)1 << 16 ? 8 : 1;

    if (rows.count == 0) return SPS_OK;
    return with_group(group_of(p, bits), [&](auto constant) -> sps_status {
        constexpr int G = constant.value;
        unsigned blocks, threads;
        size_t shared;

        SPS_TRY_RETURN(launch_tier(p, count_rows<G>, G, bits, sizeof(int32_t),
                                   ceil_div(rows.count, run), &blocks,
                                   &threads, &shared));
        count_rows<G><<<blocks, threads, shared, p.stream()>>>(
            factor_of<float>(p.A), pattern_of(p, p.B),
            {rows, run, bits, p.count, rest, rest_count});
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    });
}

/* Counts the rows in p.rest, `rows` of them, window by window. */
sps_status count_long(product *p, holder *h, int rows)
{
    const row_list list = {p->rest, rows};
    const unsigned blocks = (unsigned)ceil_div(rows, 8);
    int32_t *first, *windows;
    int64_t *item;
    window_list *w = &p->w;

    SPS_TRY_RETURN(h->take(rows, &first));
    SPS_TRY_RETURN(h->take(rows, &windows));
    SPS_TRY_RETURN(h->take(rows + 1, &item));
    measure_spans<<<blocks, 256, 0, p->stream()>>>(
        factor_of<float>(p->A), factor_of<float>(p->B), list, first,
        windows);
    SPS_LAUNCHED(p->ctx);
    SPS_TRY_RETURN(spsi_cuda_scan(p->ctx, windows, rows, item));
    SPS_TRY_RETURN(read_numbers(*p, item + rows, 1, &w->items));
    SPS_TRY_RETURN(h->take(w->items, &w->at));
    *w = {p->rest, first, item, rows, w->items, w->at};
    if (w->items > 0)
        count_windows<<<(unsigned)ceil_div(w->items, window_warps),
                        32 * window_warps, 0, p->stream()>>>(
            factor_of<float>(p->A), factor_of<float>(p->B), *w);
    SPS_LAUNCHED(p->ctx);
    join_windows<<<blocks, 256, 0, p->stream()>>>(*w, p->count);
    SPS_LAUNCHED(p->ctx);
    return SPS_OK;
}

/* Rows of many products: a table of 256 columns (of 1024 for nodes, whose rows
 * are longer and fewer), then 1024, then 2048, then windows.  The rows of the
 * window tier are put in front of p.rest. */
sps_status count_many(product *p, holder *h, row_list tried, row_list windows)
{
    const int sure = (int)windows.count;
    int32_t *const list[] = {p->rest + p->A->nrow, p->list, p->rest + sure};
    int *left = p->number + tiers, rows = 0;

    if (sure > 0)
        SPS_CUDA(p->ctx, cudaMemcpyAsync(p->rest, windows.row,
                                         (size_t)sure * sizeof *p->rest,
                                         cudaMemcpyDeviceToDevice,
                                         p->stream()));
    for (int t = 0; t < 3; t++) {
        SPS_CUDA(p->ctx, cudaMemsetAsync(left, 0, sizeof *left, p->stream()));
        SPS_TRY_RETURN(count_tier(*p, tried,
                                  try_bits[t == 0 && p->way == ALIKE ? 1 : t],
                                  list[t], left));
        SPS_TRY_RETURN(read_numbers(*p, left, 1, &rows));
        tried = {list[t], rows};
    }
    rows += sure;
    return rows > 0 ? count_long(p, h, rows) : SPS_OK;
}

/* The longest rows of A and of B. */
sps_status longest_rows(product *p)
{
    SPS_CUDA(p->ctx, cudaMemsetAsync(p->number, 0, 2 * sizeof(int),
                                     p->stream()));
    longest_row<<<1024, 256, 0, p->stream()>>>(p->A->rowptr, p->A->nrow,
                                               p->number);
    SPS_LAUNCHED(p->ctx);
    longest_row<<<1024, 256, 0, p->stream()>>>(p->B->rowptr, p->B->nrow,
                                               p->number + 1);
    SPS_LAUNCHED(p->ctx);
    return read_numbers(*p, p->number, 2, p->longest);
}

/* same: of the rows of A. */
sps_status find_alike(const product &p, const sps_csr *A, uint8_t *same)
{
    if (A->nrow == 0) return SPS_OK;
    compare_rows<<<(unsigned)ceil_div(A->nrow, 32), 256, 0, p.stream()>>>(
        A->rowptr, A->col, A->nrow, same);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

/* p->leads, and whether rows of A are alike so often that it pays. */
sps_status count_alike(product *p, holder *h, bool *pays)
{
    const int64_t n = p->A->nrow;
    const unsigned blocks = (unsigned)ceil_div(n, 256);
    int leaders[2];
    uint8_t *same;

    SPS_TRY_RETURN(h->take(n, &same));
    SPS_TRY_RETURN(h->take(n, &p->leads));
    SPS_TRY_RETURN(find_alike(*p, p->A, same));
    SPS_CUDA(p->ctx, cudaMemsetAsync(p->number, 0, sizeof leaders,
                                     p->stream()));
    count_off<<<blocks, 256, 0, p->stream()>>>(same, n, p->leads);
    SPS_LAUNCHED(p->ctx);
    count_leaders<<<blocks < 1024 ? blocks : 1024, 256, 0, p->stream()>>>(
        p->leads, n, p->number);
    SPS_LAUNCHED(p->ctx);
    SPS_TRY_RETURN(read_numbers(*p, p->number, 2, leaders));
    p->together = leaders[1];
    *pays = leaders[0] <= 0.6 * (double)n;
    return SPS_OK;
}

/* How C is made. */
sps_status choose_way(product *p, holder *h)
{
    bool pays = false;

    SPS_TRY_RETURN(longest_rows(p));
    if (p->longest[0] <= merge_heads &&
        (int64_t)p->longest[0] * p->longest[1] <= merge_products) {
        p->way = MERGED;
        return SPS_OK;
    }
    SPS_TRY_RETURN(count_alike(p, h, &pays));
    if (!pays) return SPS_OK;
    SPS_TRY_RETURN(h->take(p->B->nrow, &p->same));
    SPS_TRY_RETURN(find_alike(*p, p->B, p->same));
    p->way = ALIKE;
    return SPS_OK;
}

sps_status count_by_merging(const product &p)
{
    SPS_CUDA(p.ctx, cudaMemsetAsync(p.number, 0, sizeof(int), p.stream()));
    count_merged<<<(unsigned)ceil_div(p.A->nrow, merge_threads), merge_threads,
                   0, p.stream()>>>(factor_of<float>(p.A),
                                    factor_of<float>(p.B), p.A->nrow, p.count,
                                    p.number);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

/* size: as from, but no tier for rows that another one leads. */
sps_status only_leaders(const product &p, const int32_t *from, int32_t *size)
{
    keep_leaders<<<(unsigned)ceil_div(p.A->nrow, 256), 256, 0, p.stream()>>>(
        p.leads, p.A->nrow, from, size);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

void make_single(product *p)
{
    p->way = SINGLE;
    p->same = NULL;
    p->w = {};
}

/* Entries of the rows of C by their products. */
sps_status count_by_products(product *p, holder *h)
{
    const int64_t n = p->A->nrow;
    const unsigned rows = (unsigned)ceil_div(n, 256);
    row_list tier[tiers];

    if (!p->work) SPS_TRY_RETURN(h->take(n, &p->work));
    if (!p->rest) SPS_TRY_RETURN(h->take(2 * n, &p->rest));
    count_products<<<(unsigned)ceil_div(n, 32), 256, 0, p->stream()>>>(
        factor_of<float>(p->A), pattern_of(*p, p->B), n, p->work);
    SPS_LAUNCHED(p->ctx);
    if (p->way == ALIKE)
        SPS_TRY_RETURN(only_leaders(*p, p->work, p->work));
    SPS_TRY_RETURN(make_tiers(*p, p->work, p->way == ALIKE ? 3 : 0, tier));
    for (int t = 0; t < try_first - least_bits; t++)
        SPS_TRY_RETURN(count_tier(*p, tier[t], least_bits + t, NULL, NULL));
    SPS_TRY_RETURN(count_many(p, h, tier[try_first - least_bits],
                              tier[window_tier]));
    if (p->way != ALIKE) return SPS_OK;
    follow_leaders<<<rows, 256, 0, p->stream()>>>(p->leads, n, p->count);
    SPS_LAUNCHED(p->ctx);
    return SPS_OK;
}

/* Entries of each row of C. */
sps_status count_all(product *p, holder *h)
{
    const int64_t n = p->A->nrow;
    const int64_t bound = (int64_t)p->longest[0] * p->longest[1];

    if (p->way == MERGED) return count_by_merging(*p);
    SPS_CUDA(p->ctx, cudaMemsetAsync(p->count, 0, (size_t)n * sizeof *p->count,
                                     p->stream()));
    if (bound == 0) return SPS_OK;
    if (p->way == SINGLE && bound <= tight_limit)
        return count_tier(*p, {NULL, n}, least_bits + tier_of((int)bound), NULL,
                          NULL);
    SPS_TRY_RETURN(count_by_products(p, h));
    if (p->way == SINGLE || p->w.items == 0) return SPS_OK;
    make_single(p);   /* windows are made row by row */
    return count_by_products(p, h);
}

/* -------------------------------------------------------------------- fill */

template <class V>
sps_status fill_tier(const product &p, row_list rows, int bits, bool known,
                     const sps_csr *C, unsigned long long *bad)
{
    if (rows.count == 0) return SPS_OK;
    return with_group(group_of(p, bits), [&](auto constant) -> sps_status {
        constexpr int G = constant.value;
        const csr_factor<V> A = factor_of<V>(p.A), B = factor_of<V>(p.B);
        unsigned blocks, threads;
        size_t shared;

        SPS_TRY_RETURN(launch_tier(p, fill_rows<G, V>, G, bits,
                                   sizeof(V) + sizeof(int32_t), rows.count,
                                   &blocks, &threads, &shared));
        SPS_TRY_RETURN(launch_tier(p, renew_rows<G, V>, G, bits,
                                   sizeof(V) + sizeof(int32_t), rows.count,
                                   &blocks, &threads, &shared));
        if (known)
            renew_rows<G, V><<<blocks, threads, shared, p.stream()>>>(
                A, B, rows, bits, C->rowptr, C->col, (V *)C->val, bad);
        else
            fill_rows<G, V><<<blocks, threads, shared, p.stream()>>>(
                A, B, rows, bits, C->rowptr, C->col, (V *)C->val);
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    });
}

template <class V>
sps_status fill_long(const product &p, bool known, const sps_csr *C,
                     unsigned long long *bad)
{
    const size_t shared = window_warps * (window_columns * sizeof(V) +
                                          window_words * sizeof(unsigned));

    if (p.w.items == 0) return SPS_OK;
    SPS_CUDA(p.ctx, cudaFuncSetAttribute(
                        fill_windows<V>,
                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                        (int)shared));
    fill_windows<V><<<(unsigned)ceil_div(p.w.items, window_warps),
                      32 * window_warps, shared, p.stream()>>>(
        factor_of<V>(p.A), factor_of<V>(p.B), p.w, known, C->rowptr, C->col,
        (V *)C->val, bad);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

template <class V>
sps_status fill_by_merging(const product &p, bool known, int longest,
                           const sps_csr *C, unsigned long long *bad)
{
    const csr_factor<V> A = factor_of<V>(p.A), B = factor_of<V>(p.B);
    const unsigned blocks = (unsigned)ceil_div(C->nrow, merge_threads);
    const bool staged = longest <= merge_stage / merge_threads;
    const size_t shared = staged ? (size_t)longest * merge_threads *
                                       (sizeof(V) + sizeof(int32_t)) : 0;

    if (known) {
        renew_merged<V><<<blocks, merge_threads, 0, p.stream()>>>(
            A, B, C->nrow, C->rowptr, C->col, (V *)C->val, bad);
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    }
    SPS_CUDA(p.ctx, cudaFuncSetAttribute(
                        fill_merged<V>,
                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                        (int)shared));
    fill_merged<V><<<blocks, merge_threads, shared, p.stream()>>>(
        A, B, C->nrow, staged, C->rowptr, C->col, (V *)C->val);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

/* call(integer constants G, R). */
template <class F> sps_status with_alike(int group, int together, const F &call)
{
    using few = std::integral_constant<int, 3>;
    using many = std::integral_constant<int, alike_most>;
    using narrow = std::integral_constant<int, 8>;
    using wide = std::integral_constant<int, 32>;

    if (group <= 8)
        return together <= 3 ? call(narrow(), few()) : call(narrow(), many());
    return together <= 3 ? call(wide(), few()) : call(wide(), many());
}

template <class V>
sps_status fill_alike_tier(const product &p, row_list rows, int bits,
                           bool known, const sps_csr *C,
                           unsigned long long *bad)
{
    if (rows.count == 0) return SPS_OK;
    return with_alike(p.group, p.together, [&](auto g, auto r) -> sps_status {
        constexpr int G = g.value, R = r.value;
        const int own = G == 32 && bits < 5 ? 5 : bits;
        const size_t each = (R * sizeof(V) + sizeof(int32_t) << own) +
                            R * G * sizeof(V);
        csr_factor<V> B = factor_of<V>(p.B);
        int groups = 128 / G;

        B.same = p.same;
        while (groups * G > 32 && groups * each > (size_t)100 << 10)
            groups /= 2;
        if (groups * each > (size_t)spsi_cuda_state(p.ctx)->shared_limit)
            return spsi_fail(p.ctx, SPS_EUNFIT, "a product of matrices takes "
                             "%zu bytes of shared memory a block: this GPU has "
                             "%d", groups * each,
                             spsi_cuda_state(p.ctx)->shared_limit);
        SPS_CUDA(p.ctx, cudaFuncSetAttribute(
                            fill_alike<G, R, V>,
                            cudaFuncAttributeMaxDynamicSharedMemorySize,
                            (int)(groups * each)));
        fill_alike<G, R, V><<<(unsigned)ceil_div(rows.count, groups),
                              groups * G, groups * each, p.stream()>>>(
            factor_of<V>(p.A), B,
            alike_task{rows, p.leads, own, known, C->rowptr, bad}, C->col,
            (V *)C->val);
        SPS_LAUNCHED(p.ctx);
        return SPS_OK;
    });
}

template <class V>
sps_status fill_all(const product &p, bool known, int longest,
                    const sps_csr *C, unsigned long long *bad)
{
    const bool alike = p.way == ALIKE;
    row_list tier[tiers];

    if (p.way == MERGED)
        return fill_by_merging<V>(p, known, longest, C, bad);
    if (alike) SPS_TRY_RETURN(only_leaders(p, p.count, p.count));
    SPS_TRY_RETURN(make_tiers(p, p.count, known ? 2 : 1, tier));
    for (int t = 0; t < window_tier; t++)
        SPS_TRY_RETURN(alike ? fill_alike_tier<V>(p, tier[t], least_bits + t,
                                                  known, C, bad)
                             : fill_tier<V>(p, tier[t], least_bits + t, known,
                                            C, bad));
    return fill_long<V>(p, known, C, bad);
}

/* ------------------------------------------------------------------ calls */

__global__ void __launch_bounds__(256)
widen_values(const float *__restrict__ from, int64_t n, double *to)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) to[i] = from[i];
}

/* *same: A with values as doubles if `wide`. */
sps_status as_doubles(sps_context *ctx, holder *h, const sps_csr *A, bool wide,
                      sps_csr *same)
{
    double *val;

    *same = *A;
    if (!wide || A->dtype == SPS_F64) return SPS_OK;
    SPS_TRY_RETURN(h->take(A->nnz, &val));
    same->val = val;
    same->dtype = SPS_F64;
    if (A->nnz == 0) return SPS_OK;
    widen_values<<<(unsigned)ceil_div(A->nnz, 256), 256, 0,
                   spsi_cuda_state(ctx)->stream>>>((const float *)A->val,
                                                   A->nnz, val);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* Work memory, and groups as wide as the rows of B are long on average. */
sps_status open_product(product *p, holder *h)
{
    const sps_csr *A = p->A, *B = p->B;
    const int64_t mean = B->nrow > 0 ? ceil_div(B->nnz, B->nrow) : 0;

    if (A->nrow > INT32_MAX)
        return spsi_fail(p->ctx, SPS_EUNFIT, "a product with %lld rows: at "
                         "most %d can be made on a GPU", (long long)A->nrow,
                         INT32_MAX);
    p->group = mean <= 5 ? 4 : mean <= 11 ? 8 : mean <= 23 ? 16 : 32;
    SPS_TRY_RETURN(h->take(2 * A->nrow + tiers + 2, &p->count));
    p->list = p->count + A->nrow;
    p->number = p->list + A->nrow;
    return SPS_OK;
}

/* C with offsets from the counts, and memory for its entries; *longest: the
 * longest row of a merged one. */
sps_status open_result(const product &p, sps_csr *C, int *longest)
{
    sps_cuda_state *s = spsi_cuda_state(p.ctx);
    const int64_t n = p.A->nrow;
    const size_t size = C->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    void *got;

    SPS_TRY_RETURN(spsi_cuda_alloc(p.ctx, (size_t)(n + 1) * sizeof *C->rowptr,
                                   &got));
    C->rowptr = (int64_t *)got;
    SPS_TRY_RETURN(spsi_cuda_scan(p.ctx, p.count, n, C->rowptr));
    SPS_CUDA(p.ctx, spsi_cuda_down(p.ctx, s->down, C->rowptr + n,
                                   sizeof C->nnz));
    SPS_CUDA(p.ctx, spsi_cuda_down(p.ctx, s->down + 1, p.number,
                                   sizeof *longest));
    SPS_TRY_RETURN(spsi_cuda_wait(p.ctx));
    memcpy(&C->nnz, s->down, sizeof C->nnz);
    memcpy(longest, s->down + 1, sizeof *longest);
    if (C->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(p.ctx, (size_t)C->nnz * sizeof *C->col,
                                   &got));
    C->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(p.ctx, (size_t)C->nnz * size, &got));
    C->val = got;
    return SPS_OK;
}

sps_status make_product(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                        sps_csr *C)
{
    holder h(ctx);
    sps_csr wide_A, wide_B;
    product p = {};
    int longest;

    p.ctx = ctx;
    p.A = &wide_A;
    p.B = &wide_B;
    SPS_TRY_RETURN(as_doubles(ctx, &h, A, C->dtype == SPS_F64, &wide_A));
    SPS_TRY_RETURN(as_doubles(ctx, &h, B, C->dtype == SPS_F64, &wide_B));
    SPS_TRY_RETURN(open_product(&p, &h));
    if (A->nrow > 0) SPS_TRY_RETURN(choose_way(&p, &h));
    if (A->nrow > 0) SPS_TRY_RETURN(count_all(&p, &h));
    SPS_TRY_RETURN(open_result(p, C, &longest));
    if (C->nnz == 0) return SPS_OK;
    return C->dtype == SPS_F64 ? fill_all<double>(p, false, longest, C, NULL)
                               : fill_all<float>(p, false, longest, C, NULL);
}

/* Entries of each row of a known C.  (count_long counts those of the product
 * instead, which are others if the pattern has changed.) */
__global__ void __launch_bounds__(256)
row_lengths(const int64_t *__restrict__ rowptr, int64_t n, int32_t *count)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) count[i] = (int32_t)(rowptr[i + 1] - rowptr[i]);
}

sps_status count_known(const product &p, const sps_csr *C)
{
    row_lengths<<<(unsigned)ceil_div(C->nrow, 256), 256, 0, p.stream()>>>(
        C->rowptr, C->nrow, p.count);
    SPS_LAUNCHED(p.ctx);
    return SPS_OK;
}

/* The windows of the rows of C that fit no table. */
sps_status list_long(product *p, holder *h)
{
    row_list tier[tiers];

    SPS_TRY_RETURN(make_tiers(*p, p->count, 2, tier));
    if (tier[window_tier].count == 0) return SPS_OK;
    make_single(p);
    SPS_TRY_RETURN(h->take(2 * p->A->nrow, &p->rest));
    SPS_CUDA(p->ctx, cudaMemcpyAsync(
                         p->rest, tier[window_tier].row,
                         (size_t)tier[window_tier].count * sizeof *p->rest,
                         cudaMemcpyDeviceToDevice, p->stream()));
    return count_long(p, h, (int)tier[window_tier].count);
}

sps_status renew_product(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                         sps_csr *C, unsigned long long *first_bad)
{
    holder h(ctx);
    sps_csr wide_A, wide_B;
    unsigned long long *bad;
    product p = {};

    p.ctx = ctx;
    p.A = &wide_A;
    p.B = &wide_B;
    SPS_TRY_RETURN(as_doubles(ctx, &h, A, C->dtype == SPS_F64, &wide_A));
    SPS_TRY_RETURN(as_doubles(ctx, &h, B, C->dtype == SPS_F64, &wide_B));
    SPS_TRY_RETURN(open_product(&p, &h));
    SPS_TRY_RETURN(h.take(1, &bad));
    SPS_CUDA(ctx, cudaMemsetAsync(bad, 0xff, sizeof *bad, p.stream()));
    SPS_TRY_RETURN(choose_way(&p, &h));
    if (p.way != MERGED) {
        SPS_TRY_RETURN(count_known(p, C));
        SPS_TRY_RETURN(list_long(&p, &h));
        SPS_TRY_RETURN(count_known(p, C));
    }
    SPS_TRY_RETURN(C->dtype == SPS_F64 ? fill_all<double>(p, true, 0, C, bad)
                                       : fill_all<float>(p, true, 0, C, bad));
    return read_numbers(p, bad, 1, first_bad);
}

} // namespace

/* Around set-ups, which wait when they need to, C is only queued. */
sps_status spsi_cuda_csr_multiply(sps_context *ctx, const sps_csr *A,
                                  const sps_csr *B, sps_csr **C_p)
{
    const bool single = A->dtype == SPS_F32 && B->dtype == SPS_F32;
    sps_csr made = {};
    sps_status st;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    made.nrow = A->nrow;
    made.ncol = B->ncol;
    made.dtype = single ? SPS_F32 : SPS_F64;
    spsi_cuda_pool_begin(ctx);
    st = make_product(ctx, A, B, &made);
    spsi_cuda_pool_end(ctx);
    if (st == SPS_OK && spsi_cuda_state(ctx)->pooling == 0)
        st = spsi_cuda_wait(ctx);
    return spsi_cuda_csr_finish(ctx, st, &made, C_p);
}

sps_status spsi_cuda_csr_multiply_values(sps_context *ctx, const sps_csr *A,
                                         const sps_csr *B, sps_csr *C)
{
    unsigned long long bad = ULLONG_MAX;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (A->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(renew_product(ctx, A, B, C, &bad));
    if (bad == ULLONG_MAX) return SPS_OK;
    return spsi_fail(ctx, SPS_EMATRIX, "row %lld (counted from 0) of the "
                     "product has other columns than before: form it anew",
                     (long long)bad);
}
