/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_tiers.cuh - common code of the passes of a product C = A B: counts of the
 * products of each row, the order of rows into tiers by the table that they
 * need, and the shape of a launch for a tier. */
#ifndef SPS_CUDA_CSR_TIERS_CUH
#define SPS_CUDA_CSR_TIERS_CUH

#include "cuda/base/watch.h"
#include "cuda/base/scan.h"
#include "cuda/base/shared_limit.cuh"
#include "cuda/spgemm/csr_alike.cuh"
#include "cuda/spgemm/csr_device.cuh"
#include "cuda/spgemm/csr_windows.cuh"

#include <type_traits>

namespace {

enum product_way { SINGLE, MERGED, ALIKE, BLOCKS };

/* Blocks of A have r x k entries, those of B have k x s. */
struct block_shape {
    int r, k, s;
};

/* The state of a product C = A B, shared by the passes. */
struct product {
    sps_context *ctx;
    product_way way;
    int longest[2];            /* lengths of the longest rows of A and B */
    block_shape shape;         /* sizes of the blocks, for the method BLOCKS */
    uint8_t *same;             /* same[k]: row k of B has the columns of row k -
                                  1; NULL if not used */
    int32_t *leads;            /* leads[i]: number of rows of A that row i
                                  leads, or 0 */
    int together;              /* largest element of leads[] */
    const sps_csr *A, *B;
    int group;                 /* number of threads of a group for short rows */
    int32_t *work, *count;     /* number of products and of entries of each row
                                  of C */
    int32_t *list;             /* rows of C, sorted by tier */
    int32_t *rest;             /* rows that have not fitted a table yet; memory
                                  for two lists */
    int *number;               /* number of rows in each tier and in the lists,
                                  and the cursors with which these are filled */
    window_list w;
    bool once;                 /* whether C may be computed in one pass */
    int sample[tiers];         /* number of rows of C of each tier in a sample;
                                  all zero without one */
    bool all_once;             /* csr_once.cuh: all rows have fitted, and
                                  sample[] and number[] have their tiers */

    cudaStream_t stream() const { return spsi_cuda_state(ctx)->stream; }
};

/* ------------------------------------------------------------------ bounds */

/* *longest becomes the length of the longest row. */
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

/* Counts the products of each row, up to 2^31 - 1; consecutive rows of B with
 * the same columns count once.  Eight threads process a row. */
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

/* Rows with more products than a table can hold may still have few columns: a
 * table is tried for at most try_limit products. */
constexpr int try_limit = 32768, try_first = 8;
constexpr int try_bits[] = {try_first, 10, most_bits};

/* If no row can have more than tight_limit products, by the longest rows of A
 * and B, all rows are counted in tables of one size. */
constexpr int tight_limit = table_limit(7);

/* Returns the tier of a row of n products or entries. by = 0: by products, for
 * counting, where rows with too many products get the window tier; 3: the same,
 * but in tables whatever the number of products; 1: by entries; 2: by entries,
 * including rows without any. */
__device__ __forceinline__ int choose_tier(int n, int by)
{
    if (by == 2 && n == 0) return 0;
    if (by == 1 || by == 2 || n <= table_limit(try_first - 1))
        return tier_of(n);
    return by == 3 || n <= try_limit ? try_first - least_bits : window_tier;
}

/* at[t] += the number of rows of this thread block in tier t; returns the
 * position, within these, of the first row of this thread's tier in this warp.
 * *same has the threads of the warp with the same tier. */
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

/* number[t] += the number of rows in tier t. */
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

/* Lists the rows by tier: those of tier t, number[t] of them, come after those
 * of the tiers before it.  cursor[t], 0 at first, counts the listed ones.
 * Blocks of neighbouring rows stay together; their order does not matter. */
__global__ void __launch_bounds__(256)
list_tiers(const int32_t *__restrict__ size, int64_t n, int by,
           const int *__restrict__ number, int *cursor, int32_t *list)
{
    __shared__ int at[tiers], base[tiers];
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int tier = i < n ? choose_tier(size[i], by) : -1;
    unsigned same;
    const int mine = add_tiers(tier, at, &same);

    if (threadIdx.x < tiers && at[threadIdx.x] > 0) {
        int before = 0;

        for (int t = 0; t < (int)threadIdx.x; t++) before += number[t];
        base[threadIdx.x] = before + atomicAdd(cursor + threadIdx.x,
                                               at[threadIdx.x]);
    }
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

/* Computes p.number[t], the number of rows in tier t by size. */
sps_status count_rows_of_tiers(const product &p, const int32_t *size, int by)
{
    SPS_TRY_RETURN(clear(p.ctx, 2 * tiers + 2, p.number));
    return run_items(p.ctx, p.A->nrow, count_tiers, size, p.A->nrow, by,
                     p.number);
}

/* Sorts the rows into tiers by size, where number[] has been read from
 * p.number; tier[t] has the rows of tier t.  If one tier has all rows, there is
 * no list. */
sps_status list_rows_of_tiers(const product &p, const int32_t *size, int by,
                              const int *number, row_list *tier)
{
    const int64_t n = p.A->nrow;
    int *cursor = p.number + tiers + 2, at = 0;

    for (int t = 0; t < tiers; t++) {
        tier[t] = {number[t] == n ? NULL : p.list + at, number[t]};
        at += number[t];
    }
    for (int t = 0; t < tiers - 1; t++)
        if (number[t] == n) return SPS_OK;
    SPS_TRY_RETURN(run_items(p.ctx, n, list_tiers, size, n, by, p.number,
                             cursor, p.list));
    if (number[window_tier] == n) tier[window_tier].row = p.list;
    return SPS_OK;
}

/* Does both, and waits for the numbers in between. */
sps_status make_tiers(const product &p, const int32_t *size, int by,
                      row_list *tier)
{
    int number[tiers];

    SPS_TRY_RETURN(count_rows_of_tiers(p, size, by));
    SPS_TRY_RETURN(read_numbers(p, p.number, tiers, number));
    return list_rows_of_tiers(p, size, by, number, tier);
}

/* Returns the number of threads of a group for rows of this tier: as many as
 * for short rows (p.group), but at least one for each 64 columns and at most
 * one for each column of the table. (Shared memory limits the number of rows in
 * progress; with too few threads for each of them, too few loads would be in
 * flight.) */
int group_of(const product &p, int bits)
{
    const int least = bits <= 8 ? 4 : 1 << (bits - 6);
    const int group = p.group > least ? p.group : least;

    return group < 1 << bits ? group : 1 << bits;
}

/* Finds the number of threads of a block whose tables fit: within 100 KB, or
 * with one row for each warp. */
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
        return spsi_fail(p.ctx, SPS_EUNFIT, "a product of sparse matrices "
                         "needs %zu bytes of shared memory per thread block, "
                         "but this GPU has %d",
                         *shared, spsi_cuda_state(p.ctx)->shared_limit);
    SPS_TRY_RETURN(allow_shared(p.ctx, kernel, *shared));
    return SPS_OK;
}

/* Calls call(G) with the group size as an integral constant. */
template <class F> sps_status with_group(int group, const F &call)
{
    switch (group) {
    case 4: return call(std::integral_constant<int, 4>());
    case 8: return call(std::integral_constant<int, 8>());
    case 16: return call(std::integral_constant<int, 16>());
    default: return call(std::integral_constant<int, 32>());
    }
}

/* ------------------------------------------------------------------ memory */

/* Allocates temporary memory, and chooses groups as wide as the mean length of
 * the rows of B. */
sps_status open_product(product *p, holder *h)
{
    const sps_csr *A = p->A, *B = p->B;
    const int64_t mean = B->nrow > 0 ? ceil_div(B->nnz, B->nrow) : 0;

    if (A->nrow > INT32_MAX)
        return spsi_fail(p->ctx, SPS_EUNFIT, "a product of sparse "
                         "matrices has %lld rows, but a GPU can compute at "
                         "most %d", (long long)A->nrow,
                         INT32_MAX);
    p->group = mean <= 5 ? 4 : mean <= 11 ? 8 : mean <= 23 ? 16 : 32;
    SPS_TRY_RETURN(h->take(2 * A->nrow + 2 * tiers + 2, &p->count));
    p->list = p->count + A->nrow;
    p->number = p->list + A->nrow;
    return SPS_OK;
}

/* Allocates the offsets of C, unless it has some, and memory for its
 * entries. */
sps_status take_offsets(const product &p, sps_csr *C)
{
    void *got;

    if (C->rowptr) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(p.ctx,
                                   (size_t)(C->nrow + 1) * sizeof *C->rowptr,
                                   &got));
    C->rowptr = (int64_t *)got;
    return SPS_OK;
}

sps_status take_entries(const product &p, sps_csr *C)
{
    const size_t size = C->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    void *got;

    if (C->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(p.ctx, (size_t)C->nnz * sizeof *C->col,
                                   &got));
    C->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(p.ctx, (size_t)C->nnz * size, &got));
    C->val = got;
    return SPS_OK;
}

/* Computes the number of entries of each row of a known C.  (count_long counts
 * those of the product instead, which differ if the pattern has changed.) */
__global__ void __launch_bounds__(256)
row_lengths(const int64_t *__restrict__ rowptr, int64_t n, int32_t *count)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) count[i] = (int32_t)(rowptr[i + 1] - rowptr[i]);
}

sps_status count_known(const product &p, const sps_csr *C)
{
    return run_items(p.ctx, C->nrow, row_lengths, C->rowptr, C->nrow, p.count);
}

} // namespace

#endif
