/* SPDX-License-Identifier: BSD-3-Clause */
/* single_enter.cu - R -= Q a, the diagonal of R'R, and U = D R diag(c) in
 * floats, in one pass, for Q and R of up to 16 columns of doubles.
 *
 * Traffic: Q is read, R read and written, U written: 28 bytes an element, where
 * two passes move 36.  Order of summation: rows of a warp, warps of a thread
 * block, thread blocks; fixed by shape and device. */
#include "cuda/block/single_enter.h"
#include "cuda/block/tile.cuh"

#include <string.h>

namespace {

constexpr int warps = 4;
constexpr int deep = 2;          /* tiles of 8 rows in flight */

/* u = d_i (c_j r_ij) for a tile in "down" layout. */
__device__ __forceinline__ void enter_tile(double (*u)[4],
                                           const double (*r)[4],
                                           const double *d, const double *c)
{
#pragma unroll
    for (int e = 0; e < 4; e++) u[0][e] = d[e % 2] * (c[e / 2] * r[0][e]);
}

/* The small operands, as an argument of the kernel: a copy to the device would
 * keep it waiting. */
struct step_numbers {
    double a[16 * 16];        /* column-major, without gaps */
    double c[16];
};

/* whole: 16 columns, so that tiles within the rows need no tests. */
__global__ void __launch_bounds__(32 * warps, 4)
enter_kernel(view<double> Q, view<double> R, view<float> U,
             const __grid_constant__ step_numbers s,
             const double *__restrict__ d, bool whole, int64_t n, double *part)
{
    __shared__ double2 fragment[4 * 32];
    __shared__ double shared[warps * 16];
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int64_t step = (int64_t)gridDim.x * warps * 8 * deep;
    const double factor[2] = { 2 * g < R.k ? s.c[2 * g] : 0,
                               2 * g + 1 < R.k ? s.c[2 * g + 1] : 0 };
    double square[1][2] = {};

    arrange<1>(fragment, s.a, -1.0, Q.k, R.k, Q.k);
    __syncthreads();
    for (int64_t row = ((int64_t)blockIdx.x * warps + threadIdx.x / 32) * 8 *
                       deep; row < n; row += step) {
        auto pass = [&]<access HOW>() {
            double q[deep][1][4], r[deep][1][4], by[deep][2], u[1][4];

#pragma unroll
            for (int h = 0; h < deep; h++) {
                load_across<1, HOW>(q[h], Q, row + 8 * h, n, g, t);
                load_down<1, HOW>(r[h], R, row + 8 * h, n, g, t);
                load_diagonal<HOW>(by[h], d, row + 8 * h, n, t);
            }
#pragma unroll
            for (int h = 0; h < deep; h++) {
                multiply<1>(r[h], fragment, q[h], lane);
                add_squares<1>(square, r[h]);
                enter_tile(u, r[h], by[h], factor);
                store_down<1, HOW>(r[h], R, row + 8 * h, n, g, t);
                store_down<1, HOW>(u, U, row + 8 * h, n, g, t);
            }
        };

        if (whole && row + 8 * deep <= n) pass.template operator()<WHOLE>();
        else pass.template operator()<TESTED>();
    }
    join_squares<1, warps>(square, shared, part + (int64_t)blockIdx.x * R.k,
                           R.k);
}

step_numbers numbers_of(const sps_small *a, const double *c)
{
    step_numbers s = {};
    double *p = s.a;

    for (int j = 0; j < a->cols; j++)
        for (int i = 0; i < a->rows; i++) *p++ = *spsi_small_at(a, i, j);
    memcpy(s.c, c, (size_t)a->cols * sizeof *c);
    return s;
}

} // namespace

bool spsi_cuda_single_enters(const sps_block *Q, const sps_small *a,
                             const sps_block *R, const sps_block *U)
{
    return Q->dtype == SPS_F64 && R->dtype == SPS_F64 && U->dtype == SPS_F32 &&
           Q->k >= 1 && Q->k <= 16 && R->k >= 2 && R->k <= 16 && R->n > 0 &&
           a->place == SPS_HOST && paired(Q) && paired(R) && U->ld % 2 == 0 &&
           (uintptr_t)U->data % 8 == 0;
}

sps_status spsi_cuda_single_enter(const sps_block *Q, const sps_small *a,
                                  sps_block *R, sps_small *S,
                                  const sps_block *d, const double *c,
                                  sps_block *U)
{
    sps_context *ctx = R->ctx;
    const int k = R->k;
    const int64_t want = ceil_div(R->n, 8 * deep * warps);
    const int64_t most = 4 * (int64_t)spsi_cuda_state(ctx)->sms;
    const unsigned blocks = (unsigned)(want < most ? want : most);
    double *part;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)k * 8));
    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)blocks * k, &part));
    SPS_TRY_RETURN(run_kernel(ctx, blocks, 32 * warps, enter_kernel,
                              view_of<double>(Q), view_of<double>(R),
                              view_of<float>(U), numbers_of(a, c),
                              (const double *)d->data, Q->k == 16 && k == 16,
                              R->n, part));
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, (int)blocks, k,
                                     spsi_cuda_result(S, 0)));
    return spsi_cuda_deliver(S, 0);
}
