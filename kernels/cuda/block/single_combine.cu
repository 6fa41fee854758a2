/* SPDX-License-Identifier: BSD-3-Clause */
/* single_combine.cu - P = Z + P b for a Z of floats, rounded to floats and
 * stored in Z; G = P'P.  A P of doubles receives the result, too, one of floats
 * is not changed.
 *
 * Traffic: Z is read and written, P read and, if of doubles, written: 12 bytes
 * an element, or 24.  Order of summation: rows of a warp, warps of a thread
 * block by a tree, thread blocks; all fixed by shape and device. */
#include "cuda/block/single_stack.h"
#include "cuda/block/tile.cuh"

#include <string.h>

namespace {

constexpr int warps = 8;

template <int T> constexpr int tiles_of = T == 1 ? 2 : 1;

/* b as an argument of the kernel, unless it is in device memory: a copy to the
 * device would keep it waiting. */
template <int T> struct factor {
    const double *there;      /* or NULL */
    double here[16 * T * 16 * T];
};

template <int T, class V>
__global__ void __launch_bounds__(32 * warps, 2)
combine_kernel(view<V> P, view<float> Z, const __grid_constant__ factor<T> b,
               int r, bool whole, int64_t n, double *part)
{
    constexpr int H = tiles_of<T>;
    __shared__ double2 fragment[T * T * 4 * 32];
    __shared__ double shared[room<T, warps>];
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int k = Z.k;
    const int64_t step = (int64_t)gridDim.x * warps * 8 * H;
    const view<V> old = { P.p, P.ld, r }, fresh = { P.p, P.ld, k, k };
    double s[T][2 * T][4] = {};

    arrange<T>(fragment, b.there ? b.there : b.here, 1.0, r, k, r);
    __syncthreads();
    for (int64_t row = ((int64_t)blockIdx.x * warps + threadIdx.x / 32) * 8 *
                       H; row < n; row += step) {
        double across[H][T][4], p[H][T][4];
        auto pass = [&]<access HOW>() {
#pragma unroll
            for (int h = 0; h < H; h++) {
                load_across<T, HOW>(across[h], old, row + 8 * h, n, g, t);
                load_down<T, HOW>(p[h], Z, row + 8 * h, n, g, t);
            }
#pragma unroll
            for (int h = 0; h < H; h++) {
                multiply<T>(p[h], fragment, across[h], lane);
#pragma unroll
                for (int u = 0; u < T; u++)
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        p[h][u][e] = (double)(float)p[h][u][e];
                __syncwarp();
                if constexpr (sizeof(V) == 8)
                    store_down<T, HOW>(p[h], fresh, row + 8 * h, n, g, t);
                store_down<T, HOW>(p[h], Z, row + 8 * h, n, g, t);
            }
        };

        if (whole && row + 8 * H <= n) pass.template operator()<WHOLE>();
        else pass.template operator()<TESTED>();
        add_gram<T, H, T, false, true>(s, p, p);
    }
    join_gram<T, warps, T, false, true>(
        s, shared, part + (int64_t)blockIdx.x * k * k, k, k);
}

template <int T> factor<T> factor_of(const sps_small *b)
{
    factor<T> f = {};

    if (b->place != SPS_HOST) f.there = b->v;
    else
        memcpy(f.here, b->v, (size_t)b->rows * (size_t)b->cols * sizeof *b->v);
    return f;
}

template <int T, class V>
sps_status combine(const sps_block *Z, const sps_small *b, int r, sps_block *P,
                   sps_small *G)
{
    sps_context *ctx = P->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    const int64_t count = (int64_t)Z->k * Z->k;
    const int64_t want = ceil_div(P->n, 8 * tiles_of<T> * warps);
    const int64_t most = 2 * (int64_t)s->sms;
    const unsigned blocks = (unsigned)(want < most ? want : most);
    double *part;

    if (G) SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)count * 8));
    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)blocks * count, &part));
    SPS_TRY_RETURN(run_kernel(ctx, blocks, 32 * warps, combine_kernel<T, V>,
                              view_of<V>(P), view_of<float>(Z),
                              factor_of<T>(b), r,
                              r == 16 * T && Z->k == 16 * T, P->n, part));
    if (!G) return SPS_OK;
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, (int)blocks, count,
                                     spsi_cuda_result(G, 0)));
    return spsi_cuda_deliver(G, 0);
}

} // namespace

sps_status spsi_cuda_single_combine(const sps_block *Z, const sps_small *b,
                                    sps_block *P, sps_small *G)
{
    const int r = P->k, most = r > Z->k ? r : Z->k;

    if (P->dtype == SPS_F32)
        return most <= 16 ? combine<1, float>(Z, b, r, P, G)
                          : combine<2, float>(Z, b, r, P, G);
    P->k = Z->k;
    return most <= 16 ? combine<1, double>(Z, b, r, P, G)
                      : combine<2, double>(Z, b, r, P, G);
}
