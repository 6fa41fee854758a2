/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_multiply_device.cu - C = A B for sparse matrices in device memory: the
 * passes over the tiers of rows.
 *
 *   bounds   products of each row, unless the longest rows of A and B bound
 *            all of them to one tier;
 *   count    entries of each row of C, tier by tier: rows of many products try
 *            tables of 256, 1024 and 2048 columns, then windows;
 *   offsets  by a scan, which tells how much memory C takes;
 *   fill     columns and values, in tiers by the entries of C.
 *
 * csr_product.cuh has the order of sums.  Work memory: 8 bytes for each row, 4
 * for each window. */
#include "cuda/base/scan.h"
#include "cuda/spgemm/csr_device.cuh"
#include "cuda/spgemm/csr_windows.cuh"

#include <climits>
#include <type_traits>

namespace {

/* What the passes share. */
struct product {
    sps_context *ctx;
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

/* Products of each row, at most 2^31 - 1; eight threads a row. */
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

/* The tier of a row: by = 0 of its products, to be counted; 1 of its entries;
 * 2 the same with rows without any. */
__device__ __forceinline__ int choose_tier(int n, int by)
{
    if (by == 2 && n == 0) return 0;
    if (by > 0 || n <= table_limit(try_first - 1)) return tier_of(n);
    return n <= try_limit ? try_first - least_bits : window_tier;
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

sps_status read_numbers(const product &p, const int *from, int n, int *to)
{
    SPS_CUDA(p.ctx, spsi_cuda_down(p.ctx, to, from, (size_t)n * sizeof *to));
    return spsi_cuda_wait(p.ctx);
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
    SPS_CUDA(p.ctx, spsi_cuda_up(p.ctx, p.number, cursor, sizeof cursor));
    list_tiers<<<(unsigned)blocks, 256, 0, p.stream()>>>(size, n, by, p.number,
                                                         p.list);
    SPS_LAUNCHED(p.ctx);
    if (number[window_tier] == n) tier[window_tier].row = p.list;
    return spsi_cuda_wait(p.ctx);   /* cursor is on the stack */
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
            factor_of<float>(p.A), factor_of<float>(p.B),
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
    SPS_CUDA(p->ctx, spsi_cuda_down(p->ctx, &w->items, item + rows,
                                    sizeof w->items));
    SPS_TRY_RETURN(spsi_cuda_wait(p->ctx));
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

/* Rows of many products: a table of 256 columns, then 1024, then 2048, then
 * windows.  The rows of the window tier are put in front of p.rest. */
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
        SPS_TRY_RETURN(count_tier(*p, tried, try_bits[t], list[t], left));
        SPS_TRY_RETURN(read_numbers(*p, left, 1, &rows));
        tried = {list[t], rows};
    }
    rows += sure;
    return rows > 0 ? count_long(p, h, rows) : SPS_OK;
}

/* longest: the longest rows of A and of B. */
sps_status longest_rows(const product &p, int *longest)
{
    SPS_CUDA(p.ctx, cudaMemsetAsync(p.number, 0, 2 * sizeof(int), p.stream()));
    longest_row<<<1024, 256, 0, p.stream()>>>(p.A->rowptr, p.A->nrow, p.number);
    SPS_LAUNCHED(p.ctx);
    longest_row<<<1024, 256, 0, p.stream()>>>(p.B->rowptr, p.B->nrow,
                                              p.number + 1);
    SPS_LAUNCHED(p.ctx);
    return read_numbers(p, p.number, 2, longest);
}

/* Entries of each row of C. */
sps_status count_all(product *p, holder *h)
{
    const int64_t n = p->A->nrow;
    row_list tier[tiers];
    int longest[2];

    SPS_CUDA(p->ctx, cudaMemsetAsync(p->count, 0, (size_t)n * sizeof *p->count,
                                     p->stream()));
    SPS_TRY_RETURN(longest_rows(*p, longest));
    if ((int64_t)longest[0] * longest[1] <= tight_limit) {
        const int bound = longest[0] * longest[1];

        return bound == 0 ? SPS_OK
                          : count_tier(*p, {NULL, n},
                                       least_bits + tier_of(bound), NULL, NULL);
    }
    SPS_TRY_RETURN(h->take(n, &p->work));
    SPS_TRY_RETURN(h->take(2 * n, &p->rest));
    count_products<<<(unsigned)ceil_div(n, 32), 256, 0, p->stream()>>>(
        factor_of<float>(p->A), factor_of<float>(p->B), n, p->work);
    SPS_LAUNCHED(p->ctx);
    SPS_TRY_RETURN(make_tiers(*p, p->work, 0, tier));
    for (int t = 0; t < try_first - least_bits; t++)
        SPS_TRY_RETURN(count_tier(*p, tier[t], least_bits + t, NULL, NULL));
    return count_many(p, h, tier[try_first - least_bits], tier[window_tier]);
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
sps_status fill_all(const product &p, bool known, const sps_csr *C,
                    unsigned long long *bad)
{
    row_list tier[tiers];

    SPS_TRY_RETURN(make_tiers(p, p.count, known ? 2 : 1, tier));
    for (int t = 0; t < window_tier; t++)
        SPS_TRY_RETURN(fill_tier<V>(p, tier[t], least_bits + t, known, C, bad));
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

/* C with offsets from the counts, and memory for its entries. */
sps_status open_result(const product &p, int64_t **rowptr, sps_csr *C)
{
    const int64_t n = p.A->nrow;
    const size_t size = C->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    void *got;

    SPS_TRY_RETURN(spsi_cuda_alloc(p.ctx, (size_t)(n + 1) * sizeof **rowptr,
                                   &got));
    C->rowptr = *rowptr = (int64_t *)got;
    SPS_TRY_RETURN(spsi_cuda_scan(p.ctx, p.count, n, C->rowptr));
    SPS_CUDA(p.ctx, spsi_cuda_down(p.ctx, &C->nnz, C->rowptr + n,
                                   sizeof C->nnz));
    SPS_TRY_RETURN(spsi_cuda_wait(p.ctx));
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
    int64_t *rowptr;

    p.ctx = ctx;
    p.A = &wide_A;
    p.B = &wide_B;
    SPS_TRY_RETURN(as_doubles(ctx, &h, A, C->dtype == SPS_F64, &wide_A));
    SPS_TRY_RETURN(as_doubles(ctx, &h, B, C->dtype == SPS_F64, &wide_B));
    SPS_TRY_RETURN(open_product(&p, &h));
    if (A->nrow > 0) SPS_TRY_RETURN(count_all(&p, &h));
    SPS_TRY_RETURN(open_result(p, &rowptr, C));
    if (C->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(C->dtype == SPS_F64 ? fill_all<double>(p, false, C, NULL)
                                       : fill_all<float>(p, false, C, NULL));
    return spsi_cuda_wait(ctx);
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
    SPS_TRY_RETURN(count_known(p, C));
    SPS_TRY_RETURN(list_long(&p, &h));
    SPS_TRY_RETURN(count_known(p, C));
    SPS_TRY_RETURN(C->dtype == SPS_F64 ? fill_all<double>(p, true, C, bad)
                                       : fill_all<float>(p, true, C, bad));
    SPS_CUDA(ctx, spsi_cuda_down(ctx, first_bad, bad, sizeof *bad));
    return spsi_cuda_wait(ctx);
}

} // namespace

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
    st = make_product(ctx, A, B, &made);
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
