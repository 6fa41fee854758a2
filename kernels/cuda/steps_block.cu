/* SPDX-License-Identifier: BSD-3-Clause */
/* steps_block.cu - the passes of a step with small matrices (lib/steps.h), up
 * to 32 columns, on the fp64 tensor cores.
 *
 *   pass         reads and writes of an n x k block
 *   lengths      2: P, Q
 *   residual     3: Q, R, R
 *   directions   5: P, X, R, X, P
 *
 * A warp takes 8 or 16 rows at a time, in tiles of 8.  Products are made
 * transposed, R' = R' - a'Q': the columns of the result are the 16 rows of the
 * instruction, the rows of the block its 8 columns.  Then lane 4g + t holds of
 * the result rows 2t, 2t + 1 and columns 2g, 2g + 1 of every 16, which is at
 * once how a Gram product wants both of its factors (the order of its long
 * dimension is free), so nothing is shuffled.  Blocks that enter a product are
 * loaded "across" (row g, columns 2t.. of every 8), all others "down"; Q, which
 * is both in `residual`, is loaded twice and found in L1 the second time.
 *
 * Blocks of floats (all of a step) are widened in registers: half the bytes,
 * the same sums.
 *
 * Order of sums: rows of a warp, warps of a block by a tree, blocks; all fixed
 * by shape and device. */
#include "steps_tile.cuh"

namespace {

enum { LENGTHS, RESIDUAL, DIRECTIONS };

/* T: columns / 16, rounded up.  Warps of a block, blocks of a multiprocessor,
 * tiles that a warp has in flight. */
template <int T, int PASS> struct policy {
    static constexpr int warps = T == 1 && PASS != DIRECTIONS ? 8 : 4;
    static constexpr int threads = 32 * warps;
    static constexpr int per_sm = T == 1 && PASS == DIRECTIONS ? 3 : 2;
    static constexpr int tiles = T == 1 || PASS == LENGTHS ? 2 : 1;
};

template <int T, class V, int PASS = LENGTHS>
__global__ void __launch_bounds__(policy<T, PASS>::threads,
                                  policy<T, PASS>::per_sm)
lengths_kernel(view<V> P, view<V> Q, int64_t n, double *part, step_arrays w)
{
    __shared__ double shared[room<T, policy<T, PASS>::warps>];
    constexpr int H = policy<T, PASS>::tiles;
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * policy<T, PASS>::warps * 8 * H;
    double sum[T][2 * T][4] = {};

    if (stopped(w)) return;
    for (int64_t row = ((int64_t)blockIdx.x * policy<T, PASS>::warps +
                        threadIdx.x / 32) * 8 * H; row < n; row += step) {
        double p[H][T][4], q[H][T][4];

#pragma unroll
        for (int h = 0; h < H; h++) {
            load_down<T>(p[h], P, row + 8 * h, n, g, t);
            load_down<T>(q[h], Q, row + 8 * h, n, g, t);
        }
        add_gram<T, H>(sum, p, q);
    }
    part += (int64_t)blockIdx.x * w.r * w.r;
    join_gram<T, policy<T, PASS>::warps>(sum, shared, part, w.r, w.r);
}

/* Adds the squares over the t of a warp and the warps of a block. */
template <int T, int PASS>
__device__ void join_squares(double (*square)[2], double *shared, double *out,
                             int k)
{
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int u = 0; u < T; u++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            square[u][e] += __shfl_xor_sync(all_lanes, square[u][e], 1);
            square[u][e] += __shfl_xor_sync(all_lanes, square[u][e], 2);
        }
    __syncthreads();
    if (lane % 4 == 0)
#pragma unroll
        for (int u = 0; u < T; u++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                shared[warp * 16 * T + 16 * u + 2 * (lane / 4) + e] =
                    square[u][e];
    __syncthreads();
    for (int c = (int)threadIdx.x; c < k; c += (int)blockDim.x) {
        double sum = 0;

        for (int v = 0; v < policy<T, PASS>::warps; v++)
            sum += shared[v * 16 * T + c];
        out[c] = sum;
    }
}

/* R -= Q a;  W = Q'Z;  squares of R. */
template <int T, class V, int PASS = RESIDUAL>
__global__ void __launch_bounds__(policy<T, PASS>::threads,
                                  policy<T, PASS>::per_sm)
residual_kernel(view<V> Q, view<V> R, const double *D, int64_t n,
                double *part, step_arrays w)
{
    __shared__ double2 fragment[T * T * 4 * 32];
    __shared__ double shared[room<T, policy<T, PASS>::warps>];
    constexpr int H = policy<T, PASS>::tiles;
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * policy<T, PASS>::warps * 8 * H;
    double sum[T][2 * T][4] = {}, square[T][2] = {};

    if (stopped(w)) return;
    arrange<T>(fragment, w.a, -1.0, w.r, w.k);
    __syncthreads();
    for (int64_t row = ((int64_t)blockIdx.x * policy<T, PASS>::warps +
                        threadIdx.x / 32) * 8 * H; row < n; row += step) {
        double across[H][T][4], q[H][T][4], r[H][T][4], d[H][2];

#pragma unroll
        for (int h = 0; h < H; h++) {
            load_across<T>(across[h], Q, row + 8 * h, n, g, t);
            load_down<T>(r[h], R, row + 8 * h, n, g, t);
            load_diagonal(d[h], D, row + 8 * h, n, t);
            load_down<T>(q[h], Q, row + 8 * h, n, g, t);
        }
#pragma unroll
        for (int h = 0; h < H; h++) {
            multiply<T>(r[h], fragment, across[h], lane);
            store_down<T>(r[h], R, row + 8 * h, n, g, t);
#pragma unroll
            for (int u = 0; u < T; u++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    square[u][e / 2] = fma(r[h][u][e], r[h][u][e],
                                           square[u][e / 2]);
                    r[h][u][e] *= d[h][e % 2];
                }
        }
        add_gram<T, H>(sum, q, r);
    }
    part += (int64_t)blockIdx.x * (w.r + 1) * w.k;
    join_gram<T, policy<T, PASS>::warps>(sum, shared, part, w.r, w.k);
    join_squares<T, PASS>(square, shared, part + w.r * w.k, w.k);
}

/* X += P a;  P = Z + P b;  S = P'P, C = P'R. */
template <int T, class V, int PASS = DIRECTIONS>
__global__ void __launch_bounds__(policy<T, PASS>::threads,
                                  policy<T, PASS>::per_sm)
directions_kernel(view<V> P, view<V> X, view<V> R, const double *D,
                  int64_t n, double *part, step_arrays w)
{
    __shared__ double2 first[T * T * 4 * 32], second[T * T * 4 * 32];
    __shared__ double shared[room<T, policy<T, PASS>::warps>];
    constexpr int H = policy<T, PASS>::tiles;
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int64_t step = (int64_t)gridDim.x * policy<T, PASS>::warps * 8 * H;
    double s[T][2 * T][4] = {}, c[T][2 * T][4] = {};
    view<V> wide = { P.p, P.ld, w.k };

    if (stopped(w)) return;
    arrange<T>(first, w.a, 1.0, w.r, w.k);
    arrange<T>(second, w.b, 1.0, w.r, w.k);
    __syncthreads();
    for (int64_t row = ((int64_t)blockIdx.x * policy<T, PASS>::warps +
                        threadIdx.x / 32) * 8 * H; row < n; row += step) {
        double across[H][T][4], p[H][T][4], x[H][T][4], r[H][T][4], d[H][2];

#pragma unroll
        for (int h = 0; h < H; h++) {
            load_across<T>(across[h], P, row + 8 * h, n, g, t);
            load_down<T>(r[h], R, row + 8 * h, n, g, t);
            load_down<T>(x[h], X, row + 8 * h, n, g, t);
            load_diagonal(d[h], D, row + 8 * h, n, t);
        }
#pragma unroll
        for (int h = 0; h < H; h++) {
            multiply<T>(x[h], first, across[h], lane);
            store_down<T>(x[h], X, row + 8 * h, n, g, t);
#pragma unroll
            for (int u = 0; u < T; u++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    p[h][u][e] = r[h][u][e] * d[h][e % 2];
            multiply<T>(p[h], second, across[h], lane);
            store_down<T>(p[h], wide, row + 8 * h, n, g, t);
        }
        add_gram<T, H>(s, p, p);
        add_gram<T, H>(c, p, r);
    }
    part += (int64_t)blockIdx.x * 2 * w.k * w.k;
    join_gram<T, policy<T, PASS>::warps>(s, shared, part, w.k, w.k);
    join_gram<T, policy<T, PASS>::warps>(c, shared, part + w.k * w.k, w.k, w.k);
}

/* ----------------------------------------------------------------- launches */

template <int T, int PASS> unsigned blocks_of(const sps_context *ctx, int64_t n)
{
    int64_t most = (int64_t)policy<T, PASS>::per_sm * spsi_cuda_state(ctx)->sms;
    int64_t want = ceil_div(n, 8 * policy<T, PASS>::tiles *
                                policy<T, PASS>::warps);

    return (unsigned)(want < most ? want : most);
}

template <int T, class V>
sps_status lengths(const sps_steps *w, const sps_block *P, const sps_block *Q)
{
    sps_context *ctx = w->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    unsigned blocks = blocks_of<T, LENGTHS>(ctx, P->n);
    int count = w->r * w->r;

    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, (size_t)blocks *
                                               (size_t)count * 8));
    lengths_kernel<T, V><<<blocks, policy<T, LENGTHS>::threads, 0, s->stream>>>(
        view_of<V>(P), view_of<V>(Q), P->n, (double *)s->d_scratch, arrays_of(w));
    SPS_LAUNCHED(ctx);
    return launch_join_and(ctx, (double *)s->d_scratch, (int)blocks, count,
                           w->G, arrays_of(w), dense_lengths{});
}

template <int T, class V>
sps_status residual(const sps_steps *w, const sps_block *Q, sps_block *R)
{
    sps_context *ctx = w->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    unsigned blocks = blocks_of<T, RESIDUAL>(ctx, R->n);
    int count = (w->r + 1) * w->k;

    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, (size_t)blocks *
                                               (size_t)count * 8));
    residual_kernel<T, V><<<blocks, policy<T, RESIDUAL>::threads, 0, s->stream>>>(
        view_of<V>(Q), view_of<V>(R), w->D, R->n, (double *)s->d_scratch,
        arrays_of(w));
    SPS_LAUNCHED(ctx);
    return launch_join_and(ctx, (double *)s->d_scratch, (int)blocks, count,
                           w->W, arrays_of(w), dense_residual{});
}

template <int T, class V>
sps_status directions(const sps_steps *w, const sps_block *P, sps_block *X,
                      const sps_block *R)
{
    sps_context *ctx = w->ctx;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    unsigned blocks = blocks_of<T, DIRECTIONS>(ctx, R->n);
    int count = 2 * w->k * w->k;

    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, (size_t)blocks *
                                               (size_t)count * 8));
    directions_kernel<T, V><<<blocks, policy<T, DIRECTIONS>::threads, 0,
                           s->stream>>>(
        view_of<V>(P), view_of<V>(X), view_of<V>(R), w->D, R->n,
        (double *)s->d_scratch, arrays_of(w));
    SPS_LAUNCHED(ctx);
    return launch_join_and(ctx, (double *)s->d_scratch, (int)blocks, count,
                           w->S, arrays_of(w), dense_directions{});
}

/* Whether 16 columns hold all; P keeps its r when columns leave. */
bool narrow(const sps_steps *w) { return w->r <= 16 && w->k <= 16; }

} // namespace

sps_status spsi_cuda_steps_lengths(const sps_steps *w, const sps_block *P,
                                   const sps_block *Q)
{
    SPS_TRY_RETURN(spsi_cuda_enter(w->ctx));
    if (w->columns) return spsi_cuda_cols_lengths(w, P, Q);
    if (P->dtype == SPS_F32)
        return narrow(w) ? lengths<1, float>(w, P, Q)
                          : lengths<2, float>(w, P, Q);
    return narrow(w) ? lengths<1, double>(w, P, Q)
                      : lengths<2, double>(w, P, Q);
}

sps_status spsi_cuda_steps_residual(const sps_steps *w, const sps_block *Q,
                                    sps_block *R)
{
    SPS_TRY_RETURN(spsi_cuda_enter(w->ctx));
    if (w->columns) return spsi_cuda_cols_residual(w, Q, R);
    if (R->dtype == SPS_F32)
        return narrow(w) ? residual<1, float>(w, Q, R)
                          : residual<2, float>(w, Q, R);
    return narrow(w) ? residual<1, double>(w, Q, R)
                      : residual<2, double>(w, Q, R);
}

sps_status spsi_cuda_steps_directions(const sps_steps *w, sps_block *P,
                                      sps_block *X, const sps_block *R)
{
    SPS_TRY_RETURN(spsi_cuda_enter(w->ctx));
    if (w->columns) return spsi_cuda_cols_directions(w, P, X, R);
    if (R->dtype == SPS_F32)
        return narrow(w) ? directions<1, float>(w, P, X, R)
                          : directions<2, float>(w, P, X, R);
    return narrow(w) ? directions<1, double>(w, P, X, R)
                      : directions<2, double>(w, P, X, R);
}
