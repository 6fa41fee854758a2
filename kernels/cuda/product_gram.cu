/* SPDX-License-Identifier: BSD-3-Clause */
/* product_gram.cu - Y = a X C + b W and G = Y'Y of 33 to 64 columns, each block
 * once: reads X and W, writes Y; 3 n k^2 flops.  And Y = a X C alone of 49 to
 * 56 and of 65 to 96: reads X, writes Y; 2 n k^2 flops.  Wider ones have too
 * few warps to go on while one another's columns are waited for.
 *
 * strips.cuh brings 16 rows of X and W to shared memory.  Of S warps each makes
 * the 16 columns of Y that are its own, as (Y')(16 x 8) += (C')(16 x 16)
 * (X')(16 x 8): its share of C stays in registers for the whole run (8 S
 * numbers a lane), the rows of X come from shared memory.  Y takes the place of
 * W there and goes to memory from the registers; symmetric.cuh adds the Y'Y of
 * the strip before, where all warps have put down theirs by then.
 *
 * Row number j of a product's eight is row place(j) of the strip's, so that 8
 * lanes that read two rows of X, then 2 rows or 64 bytes apart, share no bank.
 *
 * A strip's rows of X and W are here before any of its rows of Y is written, so
 * Y may be either of them. */
#include "product_gram.h"

#include "spare.cuh"
#include "strips.cuh"
#include "symmetric.cuh"

namespace {

struct task {
    strips in;   /* X, and W where there is a sum */
    const double *c;
    double a, b;
    double *y;
    int64_t ldy;
    int k1, k2, wide; /* columns of y that may be written */
    double *part;
};

/* E eights of columns at most, S sixteens.  SUM: with W and Y'Y. */
template <int E, int SL, bool SUM> struct shape {
    static constexpr int S = (E + 1) / 2;
    static constexpr int rows = 16, ld = (SUM ? 32 : 16) * S + 4;
    static constexpr int threads = 32 * S * SL;
};

__device__ __forceinline__ int place(int j)
{
    return j / 4 * 4 + j / 2 % 2 + j % 2 * 2;
}

/* The warp's 16 columns of a C, as lanes want them: c[s][2 i + h] is element
 * (16 s + 8 (i / 2) + 2t + i % 2, 16 own + 2g + h). */
template <int S>
__device__ __forceinline__ void take_c(double (*c)[8], const task &o, int own)
{
    int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int s = 0; s < S; s++)
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int row = 16 * s + e / 4 * 8 + 2 * (lane % 4) + e / 2 % 2;
            int col = 16 * own + 2 * (lane / 4) + e % 2;

            c[s][e] = row < o.k1 && col < o.k2
                          ? o.a * o.c[(int64_t)col * o.k1 + row] : 0.0;
        }
}

/* The warp's columns of 16 rows of b W: d[b] of rows 8 b + place(2t + h),
 * h = 0, 1. */
template <int LD>
__device__ __forceinline__ void take_w(double (*d)[4], const double *w,
                                       double beta)
{
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;

    w += place(2 * t) * LD + 2 * g;
#pragma unroll
    for (int e = 0; e < 4; e++) {
        double2 v = *reinterpret_cast<const double2 *>(
            w + (e / 2 * 8 + e % 2 * 2) * LD);

        d[e / 2][e % 2] = beta * v.x;
        d[e / 2][2 + e % 2] = beta * v.y;
    }
}

/* The same of a X C are added.  beside: the last number of the last eight of x
 * is no factor. */
template <int E, int LD>
__device__ __forceinline__ void multiply(double (*d)[4], const double (*c)[8],
                                         const double *x, bool beside)
{
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;

    x += place(g) * LD + 2 * t;
#pragma unroll
    for (int s = 0; s < (E + 1) / 2; s++)
#pragma unroll
        for (int b = 0; b < 2; b++) {
            const bool half = 2 * s + 1 == E;
            const double *p = x + 8 * b * LD + 16 * s;
            double f[4];

#pragma unroll
            for (int h = 0; h < (half ? 1 : 2); h++) {
                double2 v = *reinterpret_cast<const double2 *>(p + 8 * h);

                f[2 * h] = v.x;
                f[2 * h + 1] = 2 * s + h + 1 == E && beside ? 0.0 : v.y;
            }
            if (half) dmma16x8(d[b], c[s], f);
            else dmma16x16(d[b], c[s], f);
        }
}

/* To memory, and to W's place where there is one. */
template <int LD, bool SUM>
__device__ __forceinline__ void put(const double (*d)[4], double *w,
                                    const task &o, int64_t row, int own)
{
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    int col = 16 * own + 2 * g;

#pragma unroll
    for (int e = 0; e < 4; e++) {
        int r = place(2 * t) + e / 2 * 8 + e % 2 * 2;
        double2 v = make_double2(d[e / 2][e % 2], d[e / 2][2 + e % 2]);

        if (SUM) *reinterpret_cast<double2 *>(w + r * LD + 2 * g) = v;
        if (row + r < o.in.n)
            store_pair<true>(o.y + (row + r) * o.ldy + col, o.wide - col, v);
    }
}

template <int E, int SL, bool SUM>
__global__ void __launch_bounds__((shape<E, SL, SUM>::threads), 1)
product_kernel(const __grid_constant__ task o)
{
    using form = shape<E, SL, SUM>;
    constexpr int S = form::S, rows = form::rows, ld = form::ld;
    extern __shared__ __align__(16) double shared[];
    __shared__ ring r;
    int warp = (int)threadIdx.x / 32, own = warp % S;
    int stages = o.in.stages * SL;
    /* The lane has what is beside an odd last column of X: no factor, for it
     * may be no number.  Beside one of W it goes into what is nobody's. */
    const bool beside = o.k1 == 8 * E - 7 + 2 * (int)(threadIdx.x % 4);
    double c[S][8];
    symmetric<SUM ? S : 1, ld> gram(own);

    open_ring(&r, shared, stages * (rows * ld), stages, S);
    walk<SUM ? 2 : 1, rows, ld, S, SL, SUM ? 1 : 0> way(o.in, shared, &r);
    take_c<S>(c, o, own);
    while (double *strip = way.strip()) {
        double *w = strip + 16 * S + 16 * own, d[2][4] = {};

        if (SUM) take_w<ld>(d, w, o.b);
        multiply<E, ld>(d, c, strip, beside);
        put<ld, SUM>(d, w, o, way.row, own);
        if constexpr (SUM) {
            way.wrote();
            if (double *old = way.before()) gram.add(old + 16 * S);
        }
        way.next();
    }
    if constexpr (SUM) {
        if (double *old = way.before()) gram.add(old + 16 * S);
        gram.write(o.part + (int64_t)(blockIdx.x * SL + warp / S) * o.k2 *
                                o.k2, o.k2);
    }
}

/* Queues it; *parts products are at o->part then. */
template <int E, int SL, bool SUM>
sps_status launch(sps_context *ctx, task *o, int *parts)
{
    using form = shape<E, SL, SUM>;
    constexpr int bytes = 8 * form::rows * form::ld;
    auto kernel = product_kernel<E, SL, SUM>;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t want = ceil_div(o->in.n, form::rows * SL);
    int blocks = want < 1 ? 1 : want < s->sms ? (int)want : s->sms, shared;

    *parts = blocks * SL;
    if (SUM) SPS_TRY_RETURN(spsi_cuda_need_scratch(
        ctx, (size_t)o->k2 * (size_t)o->k2 * 8 * (size_t)*parts));
    o->part = (double *)s->d_scratch;
    o->in.stages = stages_of(ctx, bytes, SL);
    o->in.at[1] = 16 * form::S;
    shared = o->in.stages * SL * bytes;
    SPS_CUDA(ctx, cudaFuncSetAttribute(
                      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                      shared));
    kernel<<<(unsigned)blocks, form::threads, (size_t)shared, s->stream>>>(*o);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

task task_of(const sps_cuda_product *p)
{
    task o = {};

    add_block(&o.in, 0, p->X, p->k1);
    o.c = p->c;
    o.a = p->a;
    o.b = p->b;
    o.y = numbers(p->Y);
    o.ldy = p->Y->ld;
    o.k1 = p->k1;
    o.k2 = p->k2;
    o.wide = writable_columns(p->Y);
    return o;
}

int widest(const sps_cuda_product *p) { return p->k1 > p->k2 ? p->k1 : p->k2; }

} // namespace

bool spsi_cuda_product_for(const sps_cuda_product *p, bool gram)
{
    int most = widest(p);
    bool width = gram ? most > 32 && most <= 64
                      : (most > 48 && most <= 56) || (most > 64 && most <= 96);
    /* What is beside an odd last column of X is sought in the last eight. */
    bool sought = most <= 64 && ceil_div(p->k1, 8) == ceil_div(most, 8);

    return width && p->k1 > 0 && (gram || p->b == 0) &&
           has_strips(p->X->ctx) && paired(p->X) && paired(p->W) &&
           paired(p->Y) && (p->k1 % 2 == 0 || sought);
}

sps_status spsi_cuda_product_gram(const sps_cuda_product *p, sps_small *G)
{
    sps_context *ctx = p->Y->ctx;
    int64_t count = (int64_t)p->k2 * p->k2;
    int most = widest(p), parts;
    auto run = most <= 40   ? launch<5, 4, true>
               : most <= 48 ? launch<6, 4, true>
               : most <= 56 ? launch<7, 2, true>
                            : launch<8, 2, true>;
    task o = task_of(p);

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)count * 8));
    add_block(&o.in, 1, p->W, p->k2);
    SPS_TRY_RETURN(run(ctx, &o, &parts));
    SPS_TRY_RETURN(launch_join<plus>(ctx, o.part, parts, count,
                                     spsi_cuda_result(G, 0)));
    return spsi_cuda_deliver(G, 0);
}

sps_status spsi_cuda_product(const sps_cuda_product *p)
{
    auto run = widest(p) <= 56 ? launch<7, 4, false> : launch<12, 2, false>;
    task o = task_of(p);
    int parts;

    return run(p->Y->ctx, &o, &parts);
}
