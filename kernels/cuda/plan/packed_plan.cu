/* SPDX-License-Identifier: BSD-3-Clause */
/* packed_plan.cu - covers the columns of each window by segments of consecutive
 * column indices on the device, one warp per window, with the same result as
 * tests/formats/host_packed.c; and converts values to single precision in one
 * pass that also detects whether the conversion is exact. */
#include "cuda/plan/packed_plan.h"
#include "cuda/base/csr_view.cuh"

namespace {

constexpr int warps = 4, segments = SPS_PACKED_SEGMENTS;

/* The smallest of col[0 .. count - 1] that is >= from, in all lanes of the
 * warp; UINT32_MAX if there is none. */
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

/* *own in lane s < 8 is base[s].  Returns the number of segments used; if 8 do
 * not cover the columns, 0, and *own is -1. */
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

sps_status take(sps_packed_plan *plan, size_t bytes, void **p_p)
{
    sps_context *ctx = plan->rows.super.ctx;

    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, p_p));
    plan->rows.super.bytes += bytes;
    return SPS_OK;
}

void give(sps_packed_plan *plan, size_t bytes, void *p)
{
    if (!p) return;
    spsi_cuda_release(plan->rows.super.ctx, p, bytes);
    plan->rows.super.bytes -= bytes;
}

size_t delta_bytes(const sps_packed *p)
{
    return (size_t)spsi_packed_room(p->nnz) * sizeof *p->delta;
}
size_t base_bytes(const sps_packed *p)
{
    return (size_t)p->windows * segments * sizeof *p->base;
}
size_t single_bytes(const sps_packed *p)
{
    return (size_t)spsi_packed_room(p->nnz) * sizeof(float);
}

/* Allocates a counter on the device, initialised to zero. */
sps_status counter(sps_context *ctx, size_t size, void **p_p)
{
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, size, p_p));
    SPS_CUDA(ctx, cudaMemsetAsync(*p_p, 0, size,
                                  spsi_cuda_state(ctx)->stream));
    return SPS_OK;
}

sps_status fill_columns(sps_packed_plan *plan, void *escaped)
{
    sps_context *ctx = plan->rows.super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    sps_packed *p = &plan->packed;

    SPS_TRY_RETURN(take(plan, delta_bytes(p), (void **)&p->delta));
    SPS_TRY_RETURN(take(plan, base_bytes(p), (void **)&p->base));
    SPS_CUDA(ctx, cudaMemsetAsync(p->delta, 0, delta_bytes(p), stream));
    cover_windows<<<(unsigned)ceil_div(p->windows, warps), 32 * warps, 0,
                    stream>>>(plan->rows.super.A->col,
                              plan->rows.blocks.block, *p,
                              (unsigned long long *)escaped);
    SPS_LAUNCHED(ctx);
    return ctx->backend->download(ctx, &p->escaped, escaped,
                                  sizeof p->escaped);
}

sps_status fill_singles(sps_packed_plan *plan, void *inexact)
{
    sps_context *ctx = plan->rows.super.ctx;
    const sps_csr_local *A = plan->rows.super.A;
    unsigned lost = 0;

    make_singles<<<(unsigned)ceil_div(A->nnz, 256), 256, 0,
                   spsi_cuda_state(ctx)->stream>>>(
        (const double *)A->val, A->nnz, plan->single, (unsigned *)inexact);
    SPS_LAUNCHED(ctx);
    SPS_TRY_RETURN(ctx->backend->download(ctx, &lost, inexact, sizeof lost));
    plan->exact = lost == 0;
    return SPS_OK;
}

} // namespace

sps_status spsi_cuda_packed_columns(sps_packed_plan *plan)
{
    sps_context *ctx = plan->rows.super.ctx;
    sps_packed *p = &plan->packed;
    void *escaped = NULL;
    sps_status st;

    SPS_TRY(spsi_cuda_row_plan_fill(&plan->rows));
    p->nnz = plan->rows.super.A->nnz;
    p->windows = plan->rows.blocks.count;
    SPS_TRY(counter(ctx, sizeof p->escaped, &escaped));
    SPS_TRY(fill_columns(plan, escaped));
fail:
    if (escaped) spsi_cuda_release(ctx, escaped, sizeof p->escaped);
    return st;
}

sps_status spsi_cuda_packed_values(sps_packed_plan *plan)
{
    sps_context *ctx = plan->rows.super.ctx;
    void *inexact = NULL;
    sps_status st = SPS_OK;

    plan->exact = false;
    if (!plan->single) return SPS_OK;
    SPS_TRY(counter(ctx, sizeof(unsigned), &inexact));
    SPS_TRY(fill_singles(plan, inexact));
fail:
    if (inexact) spsi_cuda_release(ctx, inexact, sizeof(unsigned));
    return st;
}

sps_status spsi_cuda_packed_singles(sps_packed_plan *plan)
{
    size_t bytes = single_bytes(&plan->packed);

    SPS_TRY_RETURN(take(plan, bytes, (void **)&plan->single));
    SPS_TRY_RETURN(spsi_cuda_packed_values(plan));
    if (plan->exact) return SPS_OK;
    give(plan, bytes, plan->single);
    plan->single = NULL;
    return SPS_OK;
}

void spsi_cuda_packed_clear(sps_packed_plan *plan)
{
    sps_packed *p = &plan->packed;

    give(plan, delta_bytes(p), p->delta);
    give(plan, base_bytes(p), p->base);
    give(plan, single_bytes(p), plan->single);
    spsi_cuda_row_plan_clear(&plan->rows);
}
