/* SPDX-License-Identifier: BSD-3-Clause */
/* product_gram.cu - Y = a X C + b W and G = Y'Y for 33 to 64 columns in one
 * pass: reads X and W, writes Y; 3 n k^2 flops.
 *
 * The product is that of product_staged.cuh.  Y also overwrites W in shared
 * memory.  From there symmetric.cuh adds Y'Y of the preceding row tile, whose
 * rows of Y all warps have stored by then. */
#include "cuda/base/shared_limit.cuh"
#include "cuda/block/product_staged.cuh"
#include "cuda/base/symmetric.cuh"

namespace {

/* The shape of the kernel for at most E tiles of 8 columns, that is S tiles of
 * 16; SL: slices, groups of S warps that process row tiles in turn. */
template <int E, int SL> struct shape {
    static constexpr int S = (E + 1) / 2;
    static constexpr int rows = 16, ld = 32 * S + 4, threads = 32 * S * SL;
};

template <int E, int SL>
__global__ void __launch_bounds__((shape<E, SL>::threads), 1)
product_kernel(const __grid_constant__ task o)
{
    using form = shape<E, SL>;
    constexpr int S = form::S, rows = form::rows, ld = form::ld;
    extern __shared__ __align__(16) double shared[];
    __shared__ ring r;
    int warp = (int)threadIdx.x / 32, own = warp % S;
    int stages = o.in.stages * SL;
    symmetric<S, ld> gram(own);

    open_ring(&r, shared, stages * (rows * ld), stages, S);
    pipeline<2, rows, ld, S, SL, 1> way(o.in, shared, &r);
    sixteen<E, rows / 8, ld> y(o, 16 * own);
    while (double *staged = way.current()) {
        double *w = staged + 16 * S;

        y.template begin<true>(w, o.b);
        y.multiply(staged, o.k1);
        y.put(o, way.row);
        y.keep(w);
        way.wrote();
        if (double *old = way.before()) gram.add(old + 16 * S);
        way.next();
    }
    if (double *old = way.before()) gram.add(old + 16 * S);
    gram.write(o.part + (int64_t)(blockIdx.x * SL + warp / S) * o.k2 * o.k2,
               o.k2);
}

/* Queues the kernel; its *parts partial results are stored at o->part. */
template <int E, int SL>
sps_status launch(sps_context *ctx, task *o, int *parts)
{
    using form = shape<E, SL>;
    constexpr int bytes = 8 * form::rows * form::ld;
    auto kernel = product_kernel<E, SL>;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t want = ceil_div(o->in.n, form::rows * SL);
    int blocks = want < 1 ? 1 : want < s->sms ? (int)want : s->sms, shared;

    *parts = blocks * SL;
    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)o->k2 * o->k2 * *parts,
                                &o->part));
    o->in.stages = stages_of(ctx, bytes, SL);
    o->in.at[1] = 16 * form::S;
    shared = o->in.stages * SL * bytes;
    SPS_TRY_RETURN(allow_shared(ctx, kernel, shared));
    kernel<<<(unsigned)blocks, form::threads, (size_t)shared, s->stream>>>(*o);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

} // namespace

bool spsi_cuda_product_gram_for(const sps_cuda_product *p)
{
    int most = widest(p);

    return most > 32 && most <= 64 && pipeline_serves(p);
}

sps_status spsi_cuda_product_gram(const sps_cuda_product *p, sps_small *G)
{
    sps_context *ctx = p->Y->ctx;
    int64_t count = (int64_t)p->k2 * p->k2;
    int most = widest(p), parts;
    auto run = most <= 40   ? launch<5, 4>
               : most <= 48 ? launch<6, 4>
               : most <= 56 ? launch<7, 2>
                            : launch<8, 2>;
    task o = task_of(p);

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)count * 8));
    add_block(&o.in, 1, p->W, p->k2);
    SPS_TRY_RETURN(run(ctx, &o, &parts));
    SPS_TRY_RETURN(launch_join<plus>(ctx, o.part, parts, count,
                                     spsi_cuda_result(G, 0)));
    return spsi_cuda_deliver(G, 0);
}
