/* SPDX-License-Identifier: BSD-3-Clause */
/* product_wide.cu - Y = a X C + b W for 65 to 128 columns, with or without the
 * squares of Y's columns, and Y = a X C for 49 to 56: reads X and W, writes Y;
 * 2 n k^2 flops.
 *
 * The product is that of product_staged.cuh, with C in registers: each warp
 * reads X from shared memory once, which needs half of the bandwidth of shared
 * memory while the tensor cores are busy; with C in shared memory as well, two
 * thirds and more would be needed.  A warp has four independent chains of
 * products in thread blocks of at most 8 warps, and two in those of 10 to 16
 * warps.
 *
 * Order of summation: rows of a lane, four lanes, then slices and thread blocks
 * in order. */
#include "cuda/base/shared_limit.cuh"
#include "cuda/block/product_staged.cuh"

namespace {

enum form { ALONE, SUM, SQUARES };

/* The shape of the kernel for E tiles of 8 columns, that is S tiles of 16 and
 * as many warps, in SL slices (groups of S warps that process row tiles in
 * turn). */
template <int E, form F> struct shape {
    static constexpr int S = (E + 1) / 2, SL = S < 5 ? 4 : S < 7 ? 2 : 1;
    static constexpr int eights = S < 7 ? 2 : 4, rows = 8 * eights;
    static constexpr int ld = (F == ALONE ? 16 : 32) * S + 4;
    static constexpr int blocks = F == ALONE ? 1 : 2, threads = 32 * S * SL;
};

__device__ __forceinline__ void write_squares(double sum, double *part,
                                              int first, int k2)
{
    int t = (int)threadIdx.x % 4, col = first + (int)threadIdx.x % 32 / 4 * 2;

    sum += __shfl_xor_sync(all_lanes, sum, 2);
    if (t < 2 && col + t < k2) part[col + t] = sum;
}

template <int E, form F>
__global__ void __launch_bounds__((shape<E, F>::threads), 1)
wide_product_kernel(const __grid_constant__ task o)
{
    using shape = shape<E, F>;
    constexpr int S = shape::S, SL = shape::SL, ld = shape::ld;
    extern __shared__ __align__(16) double shared[];
    __shared__ ring r;
    int warp = same_for_warp((int)threadIdx.x / 32), stages = o.in.stages * SL;
    double squares = 0;

    open_ring(&r, shared, stages * (shape::rows * ld), stages, S);
    pipeline<shape::blocks, shape::rows, ld, S, SL, 0> way(o.in, shared, &r);
    sixteen<E, shape::eights, ld> y(o, 16 * (warp % S));
    while (const double *staged = way.current()) {
        y.template begin<F != ALONE>(staged + 16 * S, o.b);
        y.multiply(staged, o.k1);
        if (F == SQUARES) squares += y.squares();
        y.put(o, way.row);
        way.next();
    }
    if (F == SQUARES)
        write_squares(squares,
                      o.part + ((int64_t)blockIdx.x * SL + warp / S) * o.k2,
                      y.first, o.k2);
}

/* Queues the kernel; *parts becomes the number of rows of partial sums of
 * squares at o->part. */
template <int E, form F>
sps_status launch(sps_context *ctx, task *o, int *parts)
{
    using shape = shape<E, F>;
    constexpr int bytes = 8 * shape::rows * shape::ld, SL = shape::SL;
    auto kernel = wide_product_kernel<E, F>;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t want = ceil_div(o->in.n, shape::rows * SL);
    int blocks = want < 1 ? 1 : want < s->sms ? (int)want : s->sms, shared;

    *parts = blocks * SL;
    if (F == SQUARES)
        SPS_TRY_RETURN(take_scratch(ctx, (int64_t)o->k2 * *parts, &o->part));
    o->in.stages = stages_of(ctx, bytes, SL);
    o->in.at[1] = 16 * shape::S;
    shared = o->in.stages * SL * bytes;
    SPS_TRY_RETURN(allow_shared(ctx, kernel, shared));
    kernel<<<(unsigned)blocks, shape::threads, (size_t)shared, s->stream>>>(*o);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

template <form F>
sps_status launch_width(const sps_cuda_product *p, task *o, int *parts)
{
    sps_context *ctx = p->Y->ctx;

    switch (ceil_div(widest(p), 8)) {
    case 7: return launch<7, ALONE>(ctx, o, parts);
    case 9: return launch<9, F>(ctx, o, parts);
    case 10: return launch<10, F>(ctx, o, parts);
    case 11: return launch<11, F>(ctx, o, parts);
    case 12: return launch<12, F>(ctx, o, parts);
    case 13: return launch<13, F>(ctx, o, parts);
    case 14: return launch<14, F>(ctx, o, parts);
    case 15: return launch<15, F>(ctx, o, parts);
    default: return launch<16, F>(ctx, o, parts);
    }
}

} // namespace

bool spsi_cuda_wide_product_for(const sps_cuda_product *p)
{
    int most = widest(p);

    return ((most > 64 && most <= 128) ||
            (most > 48 && most <= 56 && p->b == 0)) && pipeline_serves(p);
}

sps_status spsi_cuda_wide_product(const sps_cuda_product *p, sps_small *squares)
{
    sps_context *ctx = p->Y->ctx;
    task o = task_of(p);
    int parts;

    if (p->b != 0 || squares) add_block(&o.in, 1, p->W, p->k2);
    if (!squares)
        return p->b != 0 ? launch_width<SUM>(p, &o, &parts)
                         : launch_width<ALONE>(p, &o, &parts);
    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)p->k2 * 8));
    SPS_TRY_RETURN(launch_width<SQUARES>(p, &o, &parts));
    SPS_TRY_RETURN(launch_join<plus>(ctx, o.part, parts, p->k2,
                                     spsi_cuda_result(squares, 0)));
    return spsi_cuda_deliver(squares, 0);
}
