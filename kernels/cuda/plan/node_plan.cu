/* SPDX-License-Identifier: BSD-3-Clause */
/* node_plan.cu - CSR to node blocks on the device.
 *
 * Pattern: a group of 2, 4 or 8 lanes (the next power of two >= b) merges the b
 * sorted rows of a block row, one lane per row; the smallest block column is
 * next, and the lanes whose entries are in that block advance past it.  Block
 * columns are counted, offsets computed by a prefix sum (scan.h), then written.
 * A block row of whole blocks, all of whose entries are stored, is not merged:
 * it is recognised by its columns when it is counted, and then by its count.
 *
 * Values: 16 lanes process a block row.  In one of whole blocks, entry t of
 * each row is in column t of the blocks, and its columns are not read;
 * elsewhere each entry's block is found by bisection.  Bytes, for the first
 * fill and for every refresh: 4 or 8 per entry, 4 more where blocks are not
 * whole, and the stored blocks; padding keeps its initial zeros. */
#include "cuda/plan/node_plan.h"

#include <type_traits>

#include "cuda/base/scan.h"
#include "cuda/base/csr_view.cuh"
#include "cuda/plan/plan_memory.cuh"

namespace {

constexpr int threads = 256;

/* Merge of the rows of a block row, one in each of G neighbouring lanes. */
template <int G> struct row_merge {
    const int32_t *__restrict__ col;
    int64_t at, end;
    int32_t here;            /* block column of the next entry, or `nothing` */
    int b;
    unsigned lanes;          /* mask of the group's lanes */

    static constexpr int32_t nothing = INT32_MAX;

    __device__ void peek()
    {
        here = at < end ? __ldg(col + at) / b : nothing;
    }
    template <class I>
    __device__ row_merge(const I *rowptr, const int32_t *columns, int64_t nrow,
                         int size, int64_t block_row)
    {
        int lane = (int)threadIdx.x % 32;
        int64_t i = block_row * size + lane % G;
        bool some = lane % G < size && i < nrow;

        lanes = ((1u << G) - 1u) << (lane / G * G);
        b = size;
        col = columns;
        at = some ? (int64_t)rowptr[i] : 0;
        end = some ? (int64_t)rowptr[i + 1] : 0;
        peek();
    }
    /* Returns the next block column, the same in all lanes of the group. */
    __device__ int32_t next()
    {
        int32_t least = __reduce_min_sync(lanes, here);

        while (least != nothing && here == least) {
            at++;
            peek();
        }
        return least;
    }
};

/* Returns whether the b rows of a block row exist and have `length` entries
 * each.  If that is b times the number of its blocks, the blocks are whole. */
template <class I>
__device__ __forceinline__ bool
rows_have(const I *__restrict__ rowptr, int64_t nrow, int b, int64_t block_row,
          int64_t length)
{
    const int64_t i = block_row * b;
    bool good = i + b <= nrow;

    for (int r = 0; good && r < b; r++)
        good = (int64_t)rowptr[i + r + 1] - (int64_t)rowptr[i + r] == length;
    return good;
}

/* Returns the number of blocks of a block row if these are whole, or else -1,
 * in the G lanes of the mask `lanes`. */
template <int G, class I>
__device__ __forceinline__ int32_t
whole_blocks(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
             int b, int64_t nrow, int64_t block_row, unsigned lanes)
{
    const int64_t first = rowptr[block_row * b];
    const int length = (int)((int64_t)rowptr[block_row * b + 1] - first);

    if (length % b != 0 || !rows_have(rowptr, nrow, b, block_row, length))
        return -1;
    bool good = true;

#pragma unroll 4
    for (int t = (int)threadIdx.x % G; t < length; t += G) {
        const int32_t *c = col + first + t;
        const int k = t % b;

        good = good && c[-k] % b == 0 && c[0] - k == c[-k];
        for (int r = 1; r < b; r++) good = good && c[r * length] == c[0];
    }
    return __all_sync(lanes, good) ? length / b : -1;
}

/* Number of lanes that examine, or set the values of, a block row of whole
 * blocks. */
constexpr int whole_lanes = 16;

/* Counts the blocks of the block rows of whole blocks; the count of others
 * becomes -1. */
template <class I>
__global__ void __launch_bounds__(threads)
count_whole(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
            int b, int64_t nrow, int64_t mb, int32_t *count)
{
    constexpr int G = whole_lanes;
    const int64_t block_row = ((int64_t)blockIdx.x * threads + threadIdx.x) / G;

    if (block_row >= mb) return; /* the same for all lanes of a group */
    const int32_t found = whole_blocks<G>(
        rowptr, col, b, nrow, block_row,
        ((1u << G) - 1u) << (threadIdx.x % 32 / G * G));

    if (threadIdx.x % G == 0) count[block_row] = found;
}

/* Counts the blocks of the other block rows. */
template <int G, class I>
__global__ void __launch_bounds__(threads)
count_blocks(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
             int b, int64_t nrow, int64_t mb, int32_t *count)
{
    const int64_t block_row = ((int64_t)blockIdx.x * threads + threadIdx.x) / G;

    if (block_row >= mb || count[block_row] >= 0) return;
    row_merge<G> rows(rowptr, col, nrow, b, block_row);
    int32_t found = 0;

    while (rows.next() != rows.nothing) found++;
    if (threadIdx.x % G == 0) count[block_row] = found;
}

/* Writes the block columns of each block row, from start[] on. */
template <int G, class I>
__global__ void __launch_bounds__(threads)
list_blocks(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
            int b, int64_t nrow, int64_t mb,
            const int64_t *__restrict__ start, int32_t *column)
{
    const int64_t block_row = ((int64_t)blockIdx.x * threads + threadIdx.x) / G;
    const int lane = (int)threadIdx.x % G;

    if (block_row >= mb) return;
    const int64_t count = start[block_row + 1] - start[block_row];

    column += start[block_row];
    if (rows_have(rowptr, nrow, b, block_row, count * b)) {
        const int64_t first = rowptr[block_row * b];

        for (int64_t s = lane; s < count; s += G)
            column[s] = col[first + s * b] / b;
        return;
    }
    row_merge<G> rows(rowptr, col, nrow, b, block_row);

    for (int32_t next; (next = rows.next()) != rows.nothing; column++)
        if (lane == 0) *column = next;
}

/* Returns the index of the first element of column[low .. high - 1] that is not
 * below `wanted`. */
__device__ __forceinline__ int64_t find(const int32_t *column, int64_t low,
                                        int64_t high, int32_t wanted)
{
    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (__ldg(column + middle) < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

template <class I, class V>
__global__ void __launch_bounds__(threads)
set_values(matrix<I, V> A, int b, int64_t mb,
           const int64_t *__restrict__ start,
           const int32_t *__restrict__ column, V *val)
{
    const int64_t block_row = ((int64_t)blockIdx.x * threads + threadIdx.x) /
                              whole_lanes;
    const int lane = (int)threadIdx.x % whole_lanes;

    if (block_row >= mb) return;
    const int64_t low = start[block_row], high = start[block_row + 1];
    const int64_t i = block_row * b, length = (high - low) * b;

    if (rows_have(A.rowptr, A.nrow, b, block_row, length)) {
        const V *from = A.val + A.rowptr[i];

#pragma unroll 4
        for (int64_t t = lane; t < length; t += whole_lanes)
            for (int r = 0; r < b; r++)
                val[(low * b + t) * b + r] = from[r * length + t];
        return;
    }
    for (int r = 0; r < b && i + r < A.nrow; r++)
        for (int64_t p = A.rowptr[i + r] + lane; p < A.rowptr[i + r + 1];
             p += whole_lanes) {
            const int32_t j = A.col[p];
            const int64_t s = find(column, low, high, j / b);

            val[(s * b + j % b) * b + r] = A.val[p];
        }
}

/* Calls call(lanes, rowptr) with the number of lanes for a block row as an
 * integral constant, and the offsets in their type. */
template <class F>
sps_status with_lanes(const sps_csr_local *A, const sps_node_blocks *n,
                      const F &call)
{
    const int lanes = power_above(n->b);
    auto with = [&](auto rowptr) -> sps_status {
        return lanes == 2 ? call(std::integral_constant<int, 2>(), rowptr)
             : lanes == 4 ? call(std::integral_constant<int, 4>(), rowptr)
                          : call(std::integral_constant<int, 8>(), rowptr);
    };

    if (n->mb == 0) return SPS_OK;
    return A->rowptr32 ? with(A->rowptr32) : with(A->rowptr);
}

/* Computes n->start, the offsets of the block rows, and n->count, the number of
 * blocks, by counting and a prefix sum. */
sps_status count_all(sps_plan *plan, int32_t *count, sps_node_blocks *n)
{
    sps_context *ctx = plan->ctx;

    SPS_TRY_RETURN(plan_take(plan, n->mb + 1, &n->start));
    SPS_TRY_RETURN(with_lanes(plan->A, n, [&](auto lanes, auto rowptr) {
        count_whole<<<(unsigned)ceil_div(n->mb * whole_lanes, threads), threads,
                      0, spsi_cuda_state(ctx)->stream>>>(
            rowptr, plan->A->col, n->b, plan->A->nrow, n->mb, count);
        SPS_LAUNCHED(ctx);
        count_blocks<lanes.value>
            <<<(unsigned)ceil_div(n->mb * lanes.value, threads), threads, 0,
               spsi_cuda_state(ctx)->stream>>>(
                rowptr, plan->A->col, n->b, plan->A->nrow, n->mb, count);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    }));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, count, n->mb, n->start));
    return download(ctx, 1, n->start + n->mb, &n->count);
}

/* Computes the block columns and the values, after counting; the memory for
 * values is a multiple of 16 bytes, since kernels copy vectors of that size,
 * and what no entry sets is zero. */
sps_status fill(sps_plan *plan, sps_node_blocks *n)
{
    const int64_t numbers = n->count * n->b * n->b;
    const size_t bytes = (size_t)numbers * spsi_dtype_size(n->dtype);
    const size_t whole = (bytes + 15) / 16 * 16;
    const size_t set = numbers > plan->A->nnz ? 0 : bytes;

    SPS_TRY_RETURN(plan_take(plan, n->count, &n->column));
    SPS_TRY_RETURN(spsi_plan_take(plan, whole, &n->val));
    SPS_TRY_RETURN(with_lanes(plan->A, n, [&](auto lanes, auto rowptr) {
        list_blocks<lanes.value>
            <<<(unsigned)ceil_div(n->mb * lanes.value, threads), threads, 0,
               spsi_cuda_state(plan->ctx)->stream>>>(
                rowptr, plan->A->col, n->b, plan->A->nrow, n->mb, n->start,
                n->column);
        SPS_LAUNCHED(plan->ctx);
        return SPS_OK;
    }));
    SPS_TRY_RETURN(clear(plan->ctx, (int64_t)(whole - set),
                         (char *)n->val + set));
    return spsi_cuda_node_values(plan->ctx, plan->A, n);
}

} // namespace

sps_status spsi_cuda_node_values(sps_context *ctx, const sps_csr_local *A,
                                 const sps_node_blocks *n)
{
    if (A->nnz == 0) return SPS_OK;
    return with_types(A, [&](auto M) -> sps_status {
        using V = std::remove_const_t<
            std::remove_reference_t<decltype(*M.val)>>;

        set_values<<<(unsigned)ceil_div(n->mb * whole_lanes, threads), threads,
                     0, spsi_cuda_state(ctx)->stream>>>(
            M, n->b, n->mb, n->start, n->column, (V *)n->val);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

sps_status spsi_cuda_node_plan(sps_plan *plan, int b, sps_node_blocks *n)
{
    const sps_csr_local *A = plan->A;
    holder work(plan->ctx);
    int32_t *count;

    spsi_node_shape(A->nrow, A->ncol, A->dtype, b, n);
    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    SPS_TRY_RETURN(work.take(n->mb, &count));
    SPS_TRY_RETURN(count_all(plan, count, n));
    SPS_TRY_RETURN(spsi_node_check(plan->ctx, A, n));
    return fill(plan, n);
}
