/* SPDX-License-Identifier: BSD-3-Clause */
/* column_plan.cu - sorts columns by their number of entries on the device:
 * entries per column are counted by integer atomics, then one stable pass of a
 * counting sort with 256 keys, one warp per chunk of columns, and the columns
 * of the matrix are renumbered.  The result is that of
 * tests/formats/host_column_order.c on the host. */
#include "cuda/plan/column_plan.h"
#include "cuda/base/device.cuh"
#include "cuda/plan/plan_memory.cuh"
#include "cuda/base/scan.h"

namespace {

constexpr int chunk = 1024, keys = SPS_COLUMN_KEYS, warps = 4;

__global__ void __launch_bounds__(256)
count_uses(const int32_t *__restrict__ col, int64_t nnz, uint32_t *uses)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (p < nnz) atomicAdd(uses + col[p], 1u);
}

/* count[key * chunks + c] = the number of columns of chunk c with that key. */
__global__ void __launch_bounds__(32 * warps)
count_keys(const uint32_t *__restrict__ uses, int64_t ncol, int64_t chunks,
           int32_t *count)
{
    __shared__ int32_t all[warps][keys];
    int32_t *own = all[threadIdx.x / 32];
    int64_t c = (int64_t)blockIdx.x * warps + threadIdx.x / 32;
    int64_t first = c * chunk;
    int lane = (int)threadIdx.x % 32;

    if (c >= chunks) return; /* the whole warp returns */
    for (int k = lane; k < keys; k += 32) own[k] = 0;
    __syncwarp();
    for (int i = lane; i < chunk && first + i < ncol; i += 32)
        atomicAdd(own + spsi_column_key(uses[first + i]), 1);
    __syncwarp();
    for (int k = lane; k < keys; k += 32) count[k * chunks + c] = own[k];
}

/* Gives each column its position in the order; offset[key * chunks + c] is the
 * first position of the columns of chunk c with that key. */
__global__ void __launch_bounds__(32 * warps)
place_columns(const uint32_t *__restrict__ uses, int64_t ncol, int64_t chunks,
              const int64_t *__restrict__ offset, int32_t *rank,
              int32_t *column)
{
    __shared__ int32_t all[warps][keys + 1];
    int32_t *next = all[threadIdx.x / 32];
    int64_t c = (int64_t)blockIdx.x * warps + threadIdx.x / 32;
    int64_t first = c * chunk;
    int lane = (int)threadIdx.x % 32;

    if (c >= chunks) return; /* the whole warp returns */
    for (int k = lane; k < keys; k += 32)
        next[k] = (int32_t)offset[k * chunks + c];
    if (lane == 0) next[keys] = 0; /* a counter for lanes without a column */
    __syncwarp();
    for (int i = lane; i < chunk; i += 32) {
        int64_t j = first + i;
        uint32_t key = j < ncol ? spsi_column_key(uses[j]) : keys;
        unsigned same = __match_any_sync(all_lanes, key);
        int before = __popc(same & ((1u << lane) - 1));
        int32_t at = next[key] + before;

        if (j < ncol) {
            rank[j] = at;
            column[at] = (int32_t)j;
        }
        __syncwarp();
        if (before == 0) next[key] += __popc(same);
        __syncwarp();
    }
}

__global__ void __launch_bounds__(256)
renumber(const int32_t *__restrict__ col, const int32_t *__restrict__ rank,
         int64_t nnz, int64_t room, int32_t near, int32_t *to,
         unsigned long long *held)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int32_t at = p < nnz ? rank[col[p]] : 0;
    int count = __syncthreads_count(p < nnz && at < near);

    if (p < room) to[p] = at;
    if (threadIdx.x == 0 && count > 0)
        atomicAdd(held, (unsigned long long)count);
}

/* Computes rank and column from the numbers of entries. */
sps_status sort_columns(sps_context *ctx, const sps_csr_local *A,
                        const uint32_t *uses, int32_t *rank, int32_t *column)
{
    int64_t chunks = ceil_div(A->ncol, chunk);
    unsigned grid = (unsigned)ceil_div(chunks, warps);
    holder work(ctx);
    int32_t *count;
    int64_t *offset;

    SPS_TRY_RETURN(work.take(chunks * keys, &count));
    SPS_TRY_RETURN(work.take(chunks * keys + 1, &offset));
    SPS_TRY_RETURN(run_kernel(ctx, grid, 32 * warps, count_keys, uses, A->ncol,
                              chunks, count));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, count, chunks * keys, offset));
    SPS_TRY_RETURN(run_kernel(ctx, grid, 32 * warps, place_columns, uses,
                              A->ncol, chunks, offset, rank, column));
    return spsi_cuda_wait(ctx);
}

} // namespace

sps_status spsi_cuda_column_plan_make(sps_plan *plan, int64_t near,
                                      sps_column_plan *c)
{
    sps_context *ctx = plan->ctx;
    const sps_csr_local *A = plan->A;
    unsigned grid = (unsigned)ceil_div(A->nnz, 256);
    holder work(ctx);
    uint32_t *uses;
    int32_t *rank;
    int64_t *held;

    if (A->nnz == 0 || A->ncol == 0) return SPS_OK;
    SPS_TRY_RETURN(work.take_zeros(A->ncol, &uses));
    SPS_TRY_RETURN(work.take_zeros(1, &held));
    SPS_TRY_RETURN(work.take(A->ncol, &rank));
    SPS_TRY_RETURN(plan_take(plan, A->ncol, &c->column));
    c->room = ceil_div(A->nnz, 1024) * 1024;
    SPS_TRY_RETURN(plan_take(plan, c->room, &c->col));
    SPS_TRY_RETURN(run_kernel(ctx, grid, 256, count_uses, A->col, A->nnz,
                              uses));
    SPS_TRY_RETURN(sort_columns(ctx, A, uses, rank, c->column));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)(c->room / 256), 256, renumber,
                              A->col, rank, A->nnz, c->room, (int32_t)near,
                              c->col, (unsigned long long *)held));
    c->near = near;
    return ctx->backend->download(ctx, &c->held, held, sizeof c->held);
}
