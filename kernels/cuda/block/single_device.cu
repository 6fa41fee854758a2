/* SPDX-License-Identifier: BSD-3-Clause */
/* single_device.cu - blocks of floats (lib/block/single.h): a X + b Y for
 * blocks of either type, and X'Y and X C for blocks of floats.  Elements are
 * converted to double in registers and rounded when stored; all sums are in
 * double precision, on the fp64 tensor cores in the tiles of tile.cuh.
 *
 * Traffic: each block once, in its type.  Order of summation: rows of a warp,
 * warps of a thread block by a tree, thread blocks; all fixed by shape and
 * device. */
#include "cuda/base/cover.cuh"
#include "cuda/block/tile.cuh"

namespace {

constexpr int warps = 8;

/* ------------------------------------------------------------ Y = a X + b Y */

template <class VX, class VY, bool PAIRED>
__global__ void __launch_bounds__(256)
axpby_kernel(double a, view<VX> X, double b, view<VY> Y, int64_t n, int lanes)
{
    int rows = (int)blockDim.x / lanes;
    int64_t step = (int64_t)gridDim.x * rows;
    int64_t first = (int64_t)blockIdx.x * rows + threadIdx.x / lanes;

    for (int c = 2 * ((int)threadIdx.x % lanes); c < Y.k; c += 2 * lanes)
#pragma unroll 4
        for (int64_t i = first; i < n; i += step) {
            VY *y = Y.p + i * Y.ld + c;
            double2 v = load_pair<PAIRED>(X.p + i * X.ld + c, Y.k - c);

            v = make_double2(a * v.x, a * v.y);
            if (b != 0) {
                double2 w = load_pair<PAIRED>(y, Y.k - c);

                v = make_double2(fma(b, w.x, v.x), fma(b, w.y, v.y));
            }
            store_pair<PAIRED>(y, Y.k - c, v);
        }
}

template <class VX, class VY>
sps_status axpby(double a, const sps_block *X, double b, sps_block *Y)
{
    cover c = cover_lines(Y->ctx, Y->n, Y->k, 4);
    bool pairs = paired(X) && paired(Y);
    auto kernel = pairs ? axpby_kernel<VX, VY, true>
                        : axpby_kernel<VX, VY, false>;

    return run_kernel(Y->ctx, c.blocks, threads_of(c), kernel, a,
                      view_of<VX>(X), b, view_of<VY>(Y), Y->n, c.lanes);
}

/* --------------------------------------------------------------- C = X'Y */

template <int T>
__global__ void __launch_bounds__(32 * warps, 2)
gram_kernel(view<float> X, view<float> Y, int64_t n, double *part)
{
    __shared__ double shared[room<T, warps>];
    constexpr int H = 2;
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * warps * 8 * H;
    double sum[T][2 * T][4] = {};

    for (int64_t row = ((int64_t)blockIdx.x * warps + threadIdx.x / 32) * 8 *
                       H; row < n; row += step) {
        double x[H][T][4], y[H][T][4];

#pragma unroll
        for (int h = 0; h < H; h++) {
            load_down<T>(x[h], X, row + 8 * h, n, g, t);
            load_down<T>(y[h], Y, row + 8 * h, n, g, t);
        }
        add_gram<T, H>(sum, x, y);
    }
    part += (int64_t)blockIdx.x * X.k * Y.k;
    join_gram<T, warps>(sum, shared, part, X.k, Y.k);
}

template <int T>
sps_status gram(const sps_block *X, const sps_block *Y, sps_small *C)
{
    sps_context *ctx = X->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t count = (int64_t)X->k * Y->k;
    int64_t want = ceil_div(X->n, 8 * 2 * warps), most = 2 * (int64_t)s->sms;
    unsigned blocks = (unsigned)(want < most ? want : most);
    double *part;

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)count * 8));
    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)blocks * count, &part));
    SPS_TRY_RETURN(run_kernel(ctx, blocks, 32 * warps, gram_kernel<T>,
                              view_of<float>(X), view_of<float>(Y), X->n,
                              part));
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, (int)blocks, count,
                                     spsi_cuda_result(C, 0)));
    return spsi_cuda_deliver(C, 0);
}

/* ------------------------------------------------------- Y = a X C + b Y */

/* Computes Y = a X C + b Y.  A warp has its rows of X in registers before it
 * stores rows of Y, so Y may be X. */
template <int T>
__global__ void __launch_bounds__(32 * warps, 2)
mul_kernel(double a, view<float> X, const double *c, double b, view<float> Y,
           int64_t n)
{
    __shared__ double2 fragment[T * T * 4 * 32];
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * warps * 8;

    arrange<T>(fragment, c, a, X.k, Y.k, X.k);
    __syncthreads();
    for (int64_t row = ((int64_t)blockIdx.x * warps + threadIdx.x / 32) * 8;
         row < n; row += step) {
        double x[T][4], y[T][4] = {};

        load_across<T>(x, X, row, n, g, t);
        if (b != 0) load_down<T>(y, Y, row, n, g, t);
#pragma unroll
        for (int u = 0; u < T; u++)
#pragma unroll
            for (int e = 0; e < 4; e++) y[u][e] *= b;
        multiply<T>(y, fragment, x, lane);
        __syncwarp();
        store_down<T>(y, Y, row, n, g, t);
    }
}

template <int T>
sps_status mul(double a, const sps_block *X, const sps_small *C, double b,
               sps_block *Y)
{
    sps_cuda_state *s = spsi_cuda_state(X->ctx);
    int64_t want = ceil_div(X->n, 8 * warps), most = 4 * (int64_t)s->sms;
    unsigned blocks = (unsigned)(want < most ? want : most);
    const double *c;

    SPS_TRY_RETURN(spsi_cuda_small(C, &c));
    return run_kernel(X->ctx, blocks, 32 * warps, mul_kernel<T>, a,
                      view_of<float>(X), c, b, view_of<float>(Y), X->n);
}

} // namespace

sps_status spsi_cuda_single_axpby(double a, const sps_block *X, double b,
                                  sps_block *Y)
{
    if (X->dtype == SPS_F64) return axpby<double, float>(a, X, b, Y);
    return Y->dtype == SPS_F64 ? axpby<float, double>(a, X, b, Y)
                               : axpby<float, float>(a, X, b, Y);
}

sps_status spsi_cuda_single_gram(const sps_block *X, const sps_block *Y,
                                 sps_small *C)
{
    if (Y->dtype == SPS_F64) return spsi_cuda_single_gram_wide(X, Y, C);
    return X->k <= 16 && Y->k <= 16 ? gram<1>(X, Y, C) : gram<2>(X, Y, C);
}

sps_status spsi_cuda_single_mul_small(double a, const sps_block *X,
                                      const sps_small *C, double b,
                                      sps_block *Y)
{
    if (Y->dtype == SPS_F64) return spsi_cuda_single_mul_wide(a, X, C, b, Y);
    return X->k <= 16 && Y->k <= 16 ? mul<1>(a, X, C, b, Y)
                                    : mul<2>(a, X, C, b, Y);
}
