/* SPDX-License-Identifier: BSD-3-Clause */
/* node_plan.cu - CSR to node blocks on the device.
 *
 * Pattern: a group of 2, 4 or 8 lanes (the next power of two >= b) merges the b
 * sorted rows of a block row, one lane per row; the smallest block column is
 * next, and the lanes whose entries are in that block advance past it.  Block
 * columns are counted, offsets computed by a prefix sum (scan.h), then written:
 * the columns are read twice.
 *
 * Values: 8 lanes process a row and find each entry's block: directly if all
 * rows of the block row have the same columns, otherwise by bisection.  Bytes:
 * 12 per entry and the stored blocks, for the first fill and for every refresh;
 * padding keeps its initial zeros. */
#include "cuda/plan/node_plan.h"

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

/* Merges the rows of each block row.  If count is given, stores the number of
 * blocks of each block row; otherwise the columns of the blocks, from start[]
 * on. */
template <int G, class I>
__global__ void __launch_bounds__(threads)
list_blocks(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
            int b, int64_t nrow, int64_t mb, int32_t *count,
            const int64_t *__restrict__ start, int32_t *column)
{
    int64_t block_row = ((int64_t)blockIdx.x * threads + threadIdx.x) / G;
    int32_t found = 0, next;

    if (block_row >= mb) return; /* the same for all lanes of a group */
    row_merge<G> rows(rowptr, col, nrow, b, block_row);
    if (column) column += start[block_row];
    while ((next = rows.next()) != rows.nothing) {
        if (column && threadIdx.x % G == 0) column[found] = next;
        found++;
    }
    if (count && threadIdx.x % G == 0) count[block_row] = found;
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
set_values(matrix<I, V> A, int b, const int64_t *__restrict__ start,
           const int32_t *__restrict__ column, V *val)
{
    int64_t i = ((int64_t)blockIdx.x * threads + threadIdx.x) / 8;
    int64_t block_row = i / b, first, low, high;

    if (i >= A.nrow) return;
    first = A.rowptr[i];
    low = start[block_row];
    high = start[block_row + 1];
    for (int64_t p = first + (int)threadIdx.x % 8; p < A.rowptr[i + 1];
         p += 8) {
        int32_t j = A.col[p], wanted = j / b;
        int64_t s = low + (p - first) / b;

        if (s >= high || __ldg(column + s) != wanted)
            s = find(column, low, high, wanted);
        val[(s * b + j % b) * b + (i - block_row * b)] = A.val[p];
    }
}

template <int G, class I>
sps_status launch_list(sps_context *ctx, const I *rowptr,
                       const sps_csr_local *A, const sps_node_blocks *n,
                       int32_t *count, int32_t *column)
{
    if (n->mb == 0) return SPS_OK;
    return run_kernel(ctx, (unsigned)ceil_div(n->mb * G, threads), threads,
                      list_blocks<G, I>, rowptr, A->col, n->b, A->nrow, n->mb,
                      count, n->start, column);
}

/* Counts the blocks of each block row, or lists their columns. */
sps_status list(sps_context *ctx, const sps_csr_local *A,
                const sps_node_blocks *n, int32_t *count, int32_t *column)
{
    const int lanes = power_above(n->b);
    auto with = [&](auto rowptr) -> sps_status {
        return lanes == 2   ? launch_list<2>(ctx, rowptr, A, n, count, column)
               : lanes == 4 ? launch_list<4>(ctx, rowptr, A, n, count, column)
                            : launch_list<8>(ctx, rowptr, A, n, count, column);
    };

    return A->rowptr32 ? with(A->rowptr32) : with(A->rowptr);
}

/* Computes n->start, the offsets of the block rows, and n->count, the number of
 * blocks, by counting and a prefix sum. */
sps_status count_all(sps_plan *plan, int32_t *count, sps_node_blocks *n)
{
    sps_context *ctx = plan->ctx;

    SPS_TRY_RETURN(plan_take(plan, n->mb + 1, &n->start));
    SPS_TRY_RETURN(list(ctx, plan->A, n, count, NULL));
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
    SPS_TRY_RETURN(list(plan->ctx, plan->A, n, NULL, n->column));
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

        set_values<<<(unsigned)ceil_div(M.nrow * 8, threads), threads, 0,
                     spsi_cuda_state(ctx)->stream>>>(M, n->b, n->start,
                                                     n->column, (V *)n->val);
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
