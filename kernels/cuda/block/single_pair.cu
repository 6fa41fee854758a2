/* SPDX-License-Identifier: BSD-3-Clause */
/* single_pair.cu - G = P'Q and C = P'R for a P of floats, and Q and R of
 * doubles, of up to 16 columns, in one pass: 20 bytes an element.  Elements of P
 * are converted to double in registers; products and sums are in double
 * precision.
 *
 * Order of summation: rows of a warp, warps of a thread block by a tree, thread
 * blocks; fixed by shape and device. */
#include "cuda/block/single_stack.h"
#include "cuda/block/tile.cuh"

namespace {

constexpr int warps = 8;
constexpr int deep = 2;          /* tiles of 8 rows in flight */

/* whole: 16 columns, so that tiles within the rows need no tests. */
__global__ void __launch_bounds__(32 * warps, 2)
pair_kernel(view<float> P, view<double> Q, view<double> R, bool whole,
            int64_t n, double *part)
{
    __shared__ double shared[room<1, warps>];
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int64_t step = (int64_t)gridDim.x * warps * 8 * deep;
    double sum[2][1][2][4] = {};

    for (int64_t row = ((int64_t)blockIdx.x * warps + threadIdx.x / 32) * 8 *
                       deep; row < n; row += step) {
        double p[deep][1][4], q[deep][1][4], r[deep][1][4];
        auto load = [&]<access HOW>() {
#pragma unroll
            for (int h = 0; h < deep; h++) {
                load_down<1, HOW>(p[h], P, row + 8 * h, n, g, t);
                load_down<1, HOW>(q[h], Q, row + 8 * h, n, g, t);
                load_down<1, HOW>(r[h], R, row + 8 * h, n, g, t);
            }
        };

        if (whole && row + 8 * deep <= n) load.template operator()<WHOLE>();
        else load.template operator()<TESTED>();
        add_gram<1, deep>(sum[0], p, q);
        add_gram<1, deep>(sum[1], p, r);
    }
    part += (int64_t)blockIdx.x * 2 * P.k * Q.k;
    join_gram<1, warps>(sum[0], shared, part, P.k, Q.k);
    join_gram<1, warps>(sum[1], shared, part + P.k * Q.k, P.k, Q.k);
}

} // namespace

sps_status spsi_cuda_single_gram_pair(const sps_block *P, const sps_block *Q,
                                      const sps_block *R, sps_small *G,
                                      sps_small *C)
{
    sps_context *ctx = P->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    const int64_t half = (int64_t)P->k * Q->k;
    const int64_t want = ceil_div(P->n, 8 * deep * warps);
    const int64_t most = 4 * (int64_t)s->sms;
    const unsigned blocks = (unsigned)(want < most ? want : most);
    double *part;

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)half * 16));
    SPS_TRY_RETURN(take_scratch(ctx, 2 * blocks * half, &part));
    SPS_TRY_RETURN(run_kernel(ctx, blocks, 32 * warps, pair_kernel,
                              view_of<float>(P), view_of<double>(Q),
                              view_of<double>(R), P->k == 16 && Q->k == 16,
                              P->n, part));
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, (int)blocks, 2 * half,
                                     spsi_cuda_result(G, 0), half,
                                     spsi_cuda_result(C, half)));
    SPS_TRY_RETURN(spsi_cuda_deliver(G, 0));
    return spsi_cuda_deliver(C, (size_t)half);
}
