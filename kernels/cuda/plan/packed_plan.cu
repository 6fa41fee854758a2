/* SPDX-License-Identifier: BSD-3-Clause */
/* packed_plan.cu - covers the columns of each window by segments of consecutive
 * column indices on the device, one warp per window, with the same result as
 * tests/formats/host_packed.c; and converts values to single precision in one
 * pass that also detects whether the conversion is exact. */
#include "cuda/plan/packed_plan.h"
#include "cuda/base/csr_view.cuh"
#include "cuda/plan/plan_memory.cuh"

namespace {

constexpr int warps = 4, segments = SPS_PACKED_SEGMENTS;

/* Returns the smallest of col[0 .. count - 1] that is >= from, in all lanes of
 * the warp; UINT32_MAX if there is none. */
__device__ __forceinline__ unsigned least(const int32_t *col, int count,
                                          unsigned from)
{
    unsigned next = UINT32_MAX;

#pragma unroll 4
    for (int e = (int)threadIdx.x % 32; e < count; e += 32) {
        unsigned c = (unsigned)__ldg(col + e);

        if (c >= from && c < next) next = c;
    }
    return __reduce_min_sync(all_lanes, next);
}

/* Covers the columns by up to 8 segments: sets *own in lane s < 8 to the first
 * column of segment s.  Returns the number of segments used; if 8 segments do
 * not cover the columns, returns 0, and *own is -1. */
__device__ __forceinline__ int cover(const int32_t *col, int count,
                                     int32_t *own)
{
    int lane = (int)threadIdx.x % 32, used = 0;
    unsigned next = least(col, count, 0);

    *own = 0;
    if (count == 0) return 1;
    for (; next != UINT32_MAX && used < segments; used++) {
        if (lane >= used) *own = (int32_t)next;
        next = least(col, count, next + SPS_PACKED_REACH);
    }
    if (next == UINT32_MAX) return used;
    *own = -1;
    return 0;
}

__global__ void __launch_bounds__(32 * warps)
cover_windows(const int32_t *__restrict__ col,
              const sps_row_block *__restrict__ block, sps_packed p,
              unsigned long long *escaped)
{
    int64_t w = (int64_t)blockIdx.x * warps + threadIdx.x / 32, first, end;
    int lane = (int)threadIdx.x % 32, used;
    int32_t own;

    if (w >= p.windows) return; /* the whole warp returns */
    first = block[w].first;
    end = w + 1 < p.windows ? block[w + 1].first : p.nnz;
    used = cover(col + first, (int)(end - first), &own);
    if (lane < segments) p.base[segments * w + lane] = own;
    if (used == 0 && lane == 0) atomicAdd(escaped, 1ull);
    for (int64_t e = first + lane; used > 0 && e - lane < end; e += 32) {
        int32_t c = e < end ? __ldg(col + e) : 0;
        int s = 0, in = 0;

        for (int t = 1; t < used; t++) {
            int32_t base = __shfl_sync(all_lanes, own, t);

            if (c >= base) s = t;
        }
        in = c - __shfl_sync(all_lanes, own, s);
        if (e < end) p.delta[e] = (uint16_t)(s << SPS_PACKED_BITS | in);
    }
}

__global__ void __launch_bounds__(256)
make_singles(const double *__restrict__ val, int64_t nnz, float *single,
             unsigned *inexact)
{
    int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x;
    double v = e < nnz ? __ldcs(val + e) : 0.0;
    float s = (float)v;

    if (e < nnz) single[e] = s;
    if (__syncthreads_or(!((double)s == v)) && threadIdx.x == 0)
        atomicOr(inexact, 1u);
}

sps_status fill_columns(sps_packed_plan *plan, unsigned long long *escaped)
{
    sps_context *ctx = plan->rows.super.ctx;
    sps_packed *p = &plan->packed;

    SPS_TRY_RETURN(plan_take_zeros(&plan->rows.super, spsi_packed_room(p->nnz),
                                   &p->delta));
    SPS_TRY_RETURN(plan_take(&plan->rows.super, p->windows * segments,
                             &p->base));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(p->windows, warps),
                              32 * warps, cover_windows,
                              plan->rows.super.A->col, plan->rows.blocks.block,
                              *p, escaped));
    return ctx->backend->download(ctx, &p->escaped, escaped,
                                  sizeof p->escaped);
}

sps_status fill_singles(sps_packed_plan *plan, unsigned *inexact)
{
    sps_context *ctx = plan->rows.super.ctx;
    const sps_csr_local *A = plan->rows.super.A;
    unsigned lost = 0;

    SPS_TRY_RETURN(run_items(ctx, A->nnz, make_singles, (const double *)A->val,
                             A->nnz, plan->single, inexact));
    SPS_TRY_RETURN(ctx->backend->download(ctx, &lost, inexact, sizeof lost));
    plan->exact = lost == 0;
    return SPS_OK;
}

} // namespace

sps_status spsi_cuda_packed_columns(sps_packed_plan *plan)
{
    holder work(plan->rows.super.ctx);
    unsigned long long *escaped;

    SPS_TRY_RETURN(spsi_cuda_row_plan_fill(&plan->rows));
    plan->packed.nnz = plan->rows.super.A->nnz;
    plan->packed.windows = plan->rows.blocks.count;
    SPS_TRY_RETURN(work.take_zeros(1, &escaped));
    return fill_columns(plan, escaped);
}

sps_status spsi_cuda_packed_values(sps_packed_plan *plan)
{
    holder work(plan->rows.super.ctx);
    unsigned *inexact;

    plan->exact = false;
    if (!plan->single) return SPS_OK;
    SPS_TRY_RETURN(work.take_zeros(1, &inexact));
    return fill_singles(plan, inexact);
}

sps_status spsi_cuda_packed_singles(sps_packed_plan *plan)
{
    sps_plan *super = &plan->rows.super;

    SPS_TRY_RETURN(plan_take(super, spsi_packed_room(plan->packed.nnz),
                             &plan->single));
    SPS_TRY_RETURN(spsi_cuda_packed_values(plan));
    if (!plan->exact) plan_give(super, &plan->single);
    return SPS_OK;
}
