/* SPDX-License-Identifier: BSD-3-Clause */
/* single_wide.cu - products of a wide block of floats with a narrow one of
 * doubles: X'Y and Y = a X C + b Y, where X is the basis of a block Krylov
 * space.  Elements are converted to double in registers; products and sums are
 * in double precision on the fp64 tensor cores (tile.cuh).
 *
 * Traffic of X'Y: X once, Y once for each 64 columns of X; thread blocks with
 * the same rows run at about the same time, so Y comes mostly from L2.  Traffic
 * of X C: X once, Y read and written once for each `piece` columns of X; the
 * rows of C that belong to these columns are in shared memory.  Traffic of a
 * stack of narrow blocks times matrices: the stack once, Y read and written
 * once.
 *
 * Order of summation: for X'Y the rows of a warp, warps of a thread block by a
 * tree, thread blocks; for X C the columns of X; all fixed by shape and
 * device. */
#include "cuda/base/shared_limit.cuh"
#include "cuda/block/single_stack.h"
#include "cuda/block/tile.cuh"

namespace {

constexpr int slice = 64;       /* columns of X per warp in X'Y; for an X of few
                                   columns a warp has 16 columns and two tiles
                                   of rows at a time */
constexpr int piece = 512;      /* columns of X per launch of X C, whose rows of
                                   C are in shared memory */
constexpr int mul_warps = 16;

/* ----------------------------------------------------------------- C = X'Y */

template <int T> constexpr int gram_warps = T == 1 ? 8 : 4;

template <int T, int U, int H>
__global__ void __launch_bounds__(32 * gram_warps<T>, 2)
gram_kernel(view<float> X, view<double> Y, int64_t n, double *part)
{
    constexpr int warps = gram_warps<T>;
    __shared__ double shared[room<T, warps, U>];
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int first = 16 * U * (int)blockIdx.y;
    view<float> S = { X.p + first, X.ld, X.k - first };
    int64_t step = (int64_t)gridDim.x * warps * 8 * H;
    double sum[U][2 * T][4] = {};

    for (int64_t row = ((int64_t)blockIdx.x * warps + threadIdx.x / 32) * 8 *
                       H; row < n; row += step) {
        double x[H][U][4], y[H][T][4];

#pragma unroll
        for (int h = 0; h < H; h++) {
            load_down<U>(x[h], S, row + 8 * h, n, g, t);
            load_down<T>(y[h], Y, row + 8 * h, n, g, t);
        }
        add_gram<T, H, U>(sum, x, y);
    }
    part += (int64_t)blockIdx.x * X.k * Y.k;
    join_gram<T, warps, U>(sum, shared, part, X.k, Y.k, first);
}

template <int T, int U = slice / 16, int H = 1>
sps_status gram(const sps_block *X, const sps_block *Y, sps_small *C)
{
    sps_context *ctx = X->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t count = (int64_t)X->k * Y->k, slices = ceil_div(X->k, 16 * U);
    int64_t want = ceil_div(X->n, 8 * H * gram_warps<T>);
    int64_t most = ceil_div(4 * (int64_t)s->sms, slices);
    unsigned blocks = (unsigned)(want < most ? want : most);
    double *part;

    SPS_TRY_RETURN(spsi_cuda_need_down(ctx, (size_t)count * 8));
    SPS_TRY_RETURN(take_scratch(ctx, (int64_t)blocks * count, &part));
    SPS_TRY_RETURN(run_kernel(ctx, dim3(blocks, (unsigned)slices),
                              32 * gram_warps<T>, gram_kernel<T, U, H>,
                              view_of<float>(X), view_of<double>(Y), X->n,
                              part));
    SPS_TRY_RETURN(launch_join<plus>(ctx, part, (int)blocks, count,
                                     spsi_cuda_result(C, 0)));
    return spsi_cuda_deliver(C, 0);
}

/* -------------------------------------------------------- Y = a X C + b Y */

/* Stores `rows` rows of a C in shared memory, in the layout of `arrange` in
 * tile.cuh: pair ((s * T + u) * 4 + i) * 32 + lane. */
template <int T>
__device__ void arrange_wide(double2 *fragment, const double *c, double a,
                             int rows, int ld, int cols, int sixteens)
{
    for (int e = (int)threadIdx.x; e < sixteens * T * 128;
         e += (int)blockDim.x) {
        int lane = e % 32, i = e / 32 % 4, u = e / 128 % T, s = e / 128 / T;
        int in = 16 * s + 8 * (i / 2) + 2 * (lane % 4) + i % 2;
        int out = 16 * u + 2 * (lane / 4);
        double2 v = make_double2(0.0, 0.0);

        if (in < rows && out < cols) v.x = a * __ldcg(c + out * ld + in);
        if (in < rows && out + 1 < cols)
            v.y = a * __ldcg(c + (out + 1) * ld + in);
        fragment[e] = v;
    }
}

/* acc += the product of 16 columns of X, at x, with the corresponding rows of
 * C, at `fragment`. */
template <int T>
__device__ __forceinline__ void add_sixteen(double (*acc)[4],
                                            const double2 *fragment,
                                            const double *x, int lane)
{
#pragma unroll
    for (int u = 0; u < T; u++) {
        double a[8];

#pragma unroll
        for (int i = 0; i < 4; i++) {
            double2 w = fragment[(u * 4 + i) * 32 + lane];

            a[2 * i] = w.x;
            a[2 * i + 1] = w.y;
        }
        dmma16x16(acc[u], a, x);
    }
}

/* Computes Y = a X C + b Y for an X of up to `piece` columns; c points to the
 * corresponding rows of C, whose columns have stride ld. */
template <int T>
__global__ void __launch_bounds__(32 * mul_warps, 1)
mul_kernel(double a, view<float> X, const double *c, int ld, double b,
           view<double> Y, int64_t n)
{
    constexpr int deep = 4;
    extern __shared__ double2 fragment[];
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int sixteens = (X.k + 15) / 16;
    int64_t step = (int64_t)gridDim.x * mul_warps * 8;

    arrange_wide<T>(fragment, c, a, X.k, ld, Y.k, sixteens);
    __syncthreads();
    for (int64_t row = ((int64_t)blockIdx.x * mul_warps + threadIdx.x / 32) * 8;
         row < n; row += step) {
        double y[T][4] = {};

        if (b != 0) load_down<T>(y, Y, row, n, g, t);
#pragma unroll
        for (int u = 0; u < T; u++)
#pragma unroll
            for (int e = 0; e < 4; e++) y[u][e] *= b;
        for (int s = 0; s < sixteens; s += deep) {
            view<float> S = { X.p + 16 * s, X.ld, X.k - 16 * s };
            double x[deep][4];

            load_across<deep>(x, S, row, n, g, t);
#pragma unroll
            for (int d = 0; d < deep; d++)
                if (s + d < sixteens)
                    add_sixteen<T>(y, fragment + (s + d) * T * 128, x[d],
                                   lane);
        }
        store_down<T>(y, Y, row, n, g, t);
    }
}

template <int T>
sps_status mul(double a, const sps_block *X, const sps_small *C, double b,
               sps_block *Y)
{
    sps_cuda_state *s = spsi_cuda_state(X->ctx);
    int64_t want = ceil_div(X->n, 8 * mul_warps), most = 2 * (int64_t)s->sms;
    unsigned blocks = (unsigned)(want < most ? want : most);
    const double *c;

    SPS_TRY_RETURN(spsi_cuda_small(C, &c));
    for (int first = 0; first < X->k; first += piece) {
        int k = X->k - first < piece ? X->k - first : piece;
        int shared = (k + 15) / 16 * T * 128 * (int)sizeof(double2);
        view<float> x = { (float *)X->data + first, X->ld, k };

        SPS_TRY_RETURN(allow_shared(X->ctx, mul_kernel<T>, shared));
        mul_kernel<T><<<blocks, 32 * mul_warps, (size_t)shared, s->stream>>>(
            a, x, c + first, X->k, first ? 1.0 : b, view_of<double>(Y), X->n);
        SPS_LAUNCHED(X->ctx);
    }
    return SPS_OK;
}

/* ------------------------------------------------- W = a sum V_l H_l + b W */

/* A stack of `count` blocks of k columns, whose data begin `apart` elements
 * from each other; each is processed as `wide` pieces of 16 columns. */
struct stack {
    const float *p;
    int64_t ld, apart;
    int k, wide, count;
};

/* Stores the rows of a H in shared memory, in the layout in which arrange_wide
 * stores those of a C; piece s of block l begins at row l k + 16 s. */
template <int T>
__device__ void arrange_stack(double2 *fragment, const double *h, double a,
                              int ld, const stack &v)
{
    for (int e = (int)threadIdx.x; e < v.count * v.wide * T * 128;
         e += (int)blockDim.x) {
        const int lane = e % 32, i = e / 32 % 4, u = e / 128 % T;
        const int s = e / 128 / T, l = s / v.wide;
        const int in = 16 * (s % v.wide) + 8 * (i / 2) + 2 * (lane % 4) + i % 2;
        const int out = 16 * u + 2 * (lane / 4);
        const double *from = h + l * v.k + in;
        double2 w = make_double2(0.0, 0.0);

        if (in < v.k && out < v.k) w.x = a * __ldcg(from + out * ld);
        if (in < v.k && out + 1 < v.k) w.y = a * __ldcg(from + (out + 1) * ld);
        fragment[e] = w;
    }
}

template <int T>
__global__ void __launch_bounds__(32 * mul_warps, 1)
stack_kernel(double a, stack v, const double *h, int ld, bool add,
             view<double> W, int64_t n)
{
    constexpr int deep = 4;
    extern __shared__ double2 fragment[];
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int pieces = v.count * v.wide;
    const int64_t step = (int64_t)gridDim.x * mul_warps * 8;

    arrange_stack<T>(fragment, h, a, ld, v);
    __syncthreads();
    for (int64_t row = ((int64_t)blockIdx.x * mul_warps + threadIdx.x / 32) * 8;
         row < n; row += step) {
        double w[T][4] = {};

        if (add) load_down<T>(w, W, row, n, g, t);
        for (int s = 0; s < pieces; s += deep) {
            double x[deep][1][4];

#pragma unroll
            for (int d = 0; d < deep; d++) {
                const int at = s + d < pieces ? s + d : s;
                const int c = 16 * (at % v.wide);
                const view<const float> S = {
                    v.p + at / v.wide * v.apart + c, v.ld, v.k - c };

                load_across<1>(x[d], S, row, n, g, t);
            }
#pragma unroll
            for (int d = 0; d < deep; d++)
                if (s + d < pieces)
                    add_sixteen<T>(w, fragment + (s + d) * T * 128, x[d][0],
                                   lane);
        }
        store_down<T>(w, W, row, n, g, t);
    }
}

template <int T>
sps_status mul_stack(double a, const stack &v, const double *h, int ld,
                     bool add, sps_block *W)
{
    sps_cuda_state *s = spsi_cuda_state(W->ctx);
    const int64_t want = ceil_div(W->n, 8 * mul_warps);
    const int64_t most = 2 * (int64_t)s->sms;
    const int shared = v.count * v.wide * T * 128 * (int)sizeof(double2);
    const view<double> w = { (double *)W->data, W->ld, W->k, W->k };

    SPS_TRY_RETURN(allow_shared(W->ctx, stack_kernel<T>, shared));
    stack_kernel<T><<<(unsigned)(want < most ? want : most), 32 * mul_warps,
                      (size_t)shared, s->stream>>>(a, v, h, ld, add, w, W->n);
    SPS_LAUNCHED(W->ctx);
    return SPS_OK;
}

} // namespace

sps_status spsi_cuda_single_mul_stack(double a, const sps_basis *V, int count,
                                      const double *h, int ld, bool add,
                                      sps_block *W)
{
    const stack v = { (const float *)V->all->data, V->all->ld,
                      V->rows * V->all->ld, W->k, (W->k + 15) / 16, count };

    return W->k <= 16 ? mul_stack<1>(a, v, h, ld, add, W)
                      : mul_stack<2>(a, v, h, ld, add, W);
}

sps_status spsi_cuda_single_gram_wide(const sps_block *X, const sps_block *Y,
                                      sps_small *C)
{
    if (X->k <= 16 && Y->k <= 16) return gram<1, 1, 2>(X, Y, C);
    return Y->k <= 16 ? gram<1>(X, Y, C) : gram<2>(X, Y, C);
}

sps_status spsi_cuda_single_mul_wide(double a, const sps_block *X,
                                     const sps_small *C, double b,
                                     sps_block *Y)
{
    return Y->k <= 16 ? mul<1>(a, X, C, b, Y) : mul<2>(a, X, C, b, Y);
}
