/* SPDX-License-Identifier: BSD-3-Clause */
/* gram_wide.cuh - X'Y and the pair P'Q, P'R, of 33 to 128 columns.
 *
 * Here arithmetic needs about as much time as memory traffic, so the two
 * overlap: a staged pipeline (pipeline.cuh) copies rows of all blocks to shared
 * memory while the warps multiply those that have arrived.  Lanes 4g + t of a
 * warp load columns 2g, 2g + 1 of a tile of 16 columns, of X and of Y.  The
 * stride of rows in shared memory is 4 doubles (32 bytes) more than a multiple
 * of 128 bytes, which avoids bank conflicts.
 *
 * `oblong` computes X'Y: a warp owns 16 AM x 8 BN results, and WM x WN warps
 * own all of them; for 64 multiplications a warp reads (16 AM + 8 BN) / (2 AM
 * BN) doubles from shared memory.  `alone` (symmetric.cuh) computes X'X of up
 * to 64 columns; gram_once.cuh computes wider ones.  SL is the number of
 * slices, groups of such warps that process row tiles in turn.
 *
 * Order of summation: row tiles of a slice in order, then slices and thread
 * blocks (launch_join).  Measured in doc/log/block-operations.md. */
#ifndef SPS_CUDA_GRAM_WIDE_CUH
#define SPS_CUDA_GRAM_WIDE_CUH

#include "cuda/base/shared_limit.cuh"
#include "cuda/block/gram_once.cuh"
#include "cuda/base/pipeline.cuh"
#include "cuda/base/symmetric.cuh"

namespace {

struct factors {
    staged_blocks in;   /* the blocks X and Y, or P, Q and R, as row tiles */
    int k1, k2;
    double *part;
};

template <int DEEP>
__device__ __forceinline__ void dmma(double *d, const double *a,
                                     const double *b)
{
    if constexpr (DEEP == 16) dmma16x16(d, a, b);
    else dmma16x8(d, a, b);
}

template <int WM, int WN, int AM, int BN, int SL, int BLOCKS> struct oblong {
    static constexpr int M = 16 * AM * WM, N = 8 * BN * WN;
    static constexpr int blocks = BLOCKS, rows = 16, ld = M + N + 4;
    static constexpr int warps = WM * WN, slices = SL, second = M;
    static constexpr int third = M + N / 2;
    /* deep: number of rows of a step, 16 if a thread has enough registers,
     * otherwise 8. */
    static constexpr int all = warps * SL;
    static constexpr int registers =
        all > 16 ? 96 : all > 12 ? 128 : all > 8 ? 168 : 255;
    static constexpr int deep =
        8 * AM * BN + 16 * AM + 72 <= registers ? 16 : 8;

    double acc[AM][BN][4] = {};
    int im, in;

    __device__ explicit oblong(int warp)
        : im(16 * AM * (warp % warps / WN)), in(8 * BN * (warp % WN)) {}

    __device__ __forceinline__ void add(const double *staged)
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        const double *p = staged + t * ld + im + 2 * g;
        const double *q = staged + t * ld + M + in + 2 * g;

#pragma unroll
        for (int r = 0; r < rows; r += deep, p += deep * ld, q += deep * ld) {
            double x[AM][deep / 2], y[2][deep / 4];

#pragma unroll
            for (int i = 0; i < AM; i++)
                take_pairs<deep, ld>(p + 16 * i, x[i], x[i] + 1, 2);
#pragma unroll
            for (int j = 0; j + 1 < BN; j += 2) {
                take_pairs<deep, ld>(q + 8 * j, y[0], y[1], 1);
#pragma unroll
                for (int i = 0; i < AM; i++) {
                    dmma<deep>(acc[i][j], x[i], y[0]);
                    dmma<deep>(acc[i][j + 1], x[i], y[1]);
                }
            }
            if constexpr (BN % 2 == 1) {
#pragma unroll
                for (int h = 0; h < deep / 4; h++)
                    y[0][h] = q[4 * h * ld + 8 * (BN - 1) - g];
#pragma unroll
                for (int i = 0; i < AM; i++)
                    dmma<deep>(acc[i][BN - 1], x[i], y[0]);
            }
        }
    }

    /* Returns the column, within the tile of Y, of element e of accumulator
     * j. */
    static __device__ __forceinline__ int column(int j, int e, int t)
    {
        return BN % 2 && j == BN - 1
                   ? 8 * j + 2 * t + e % 2
                   : 8 * (j - j % 2) + 4 * t + 2 * (e % 2) + j % 2;
    }

    /* Writes the results of this warp; no tile includes parts of both results
     * of a pair of products. */
    __device__ __forceinline__ void write(double *out, int k1, int k2) const
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        bool half = BLOCKS > 2 && in >= N / 2;
        int first = half ? in - N / 2 : in;

        if (half) out += (int64_t)k1 * k2;
#pragma unroll
        for (int i = 0; i < AM; i++)
#pragma unroll
            for (int j = 0; j < BN; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int r = im + 16 * i + 2 * g + e / 2;
                    int c = first + column(j, e, t);

                    if (r < k1 && c < k2)
                        out[(int64_t)c * k1 + r] = acc[i][j][e];
                }
    }
};

/* Computes X'X for S tiles of 16 columns, from row tiles of X. */
template <int S, int SL> struct alone : symmetric<S, 16 * S + 4> {
    static constexpr int blocks = 1, rows = 32, ld = 16 * S + 4;
    static constexpr int warps = S, slices = SL, second = 0, third = 0;

    __device__ explicit alone(int warp) : symmetric<S, ld>(warp % S) {}

    __device__ __forceinline__ void add(const double *staged)
    {
#pragma unroll
        for (int r = 0; r < rows; r += 16)
            symmetric<S, ld>::add(staged + r * ld);
    }

    __device__ __forceinline__ void write(double *out, int k, int) const
    {
        symmetric<S, ld>::write(out, k);
    }
};

template <class SHAPE>
__global__ void __launch_bounds__(32 * SHAPE::warps * SHAPE::slices, 1)
wide_gram_kernel(const __grid_constant__ factors f)
{
    constexpr int warps = SHAPE::warps, slices = SHAPE::slices;
    constexpr int rows = SHAPE::rows, ld = SHAPE::ld;
    extern __shared__ __align__(16) double shared[];
    __shared__ ring r;
    int warp = (int)threadIdx.x / 32, stages = f.in.stages * slices;
    int items = f.k1 * f.k2 * (SHAPE::blocks > 2 ? 2 : 1);
    SHAPE tile(warp);

    open_ring(&r, shared, stages * (rows * ld), stages, warps);
    pipeline<SHAPE::blocks, rows, ld, warps, slices, 0> w(f.in, shared, &r);
    while (const double *staged = w.current()) {
        tile.add(staged);
        w.next();
    }
    tile.write(f.part + (int64_t)(blockIdx.x * slices + warp / warps) * items,
               f.k1, f.k2);
}

/* The loop of a warp of two_kinds_kernel over its row tiles; TILE is its
 * kind. */
template <class TILE>
__device__ __forceinline__ void sum_tiles(const factors &f, double *shared,
                                          ring *r)
{
    constexpr int warps = TILE::warps, slices = TILE::slices;
    constexpr int rows = TILE::rows, ld = TILE::ld;
    int warp = (int)threadIdx.x / 32;
    TILE tile(warp);
    pipeline<TILE::blocks, rows, ld, warps, slices, 0> w(f.in, shared, r);

    while (const double *staged = w.current()) {
        tile.add(staged);
        w.next();
    }
    tile.write(f.part + (int64_t)(blockIdx.x * slices + warp / warps) * f.k1 *
                            f.k2, f.k1, f.k2);
}

/* Computes the partial results of a thread block, as wide_gram_kernel does, for
 * shapes with two kinds of warps. */
template <class SHAPE>
__global__ void __launch_bounds__(32 * SHAPE::warps * SHAPE::slices, 1)
two_kinds_kernel(const __grid_constant__ factors f)
{
    extern __shared__ __align__(16) double shared[];
    __shared__ ring r;
    int warp = same_for_warp((int)threadIdx.x / 32);
    int stages = f.in.stages * SHAPE::slices;

    open_ring(&r, shared, stages * (SHAPE::rows * SHAPE::ld), stages,
              SHAPE::warps);
    if (SHAPE::is_special(warp))
        sum_tiles<typename SHAPE::special>(f, shared, &r);
    else
        sum_tiles<SHAPE>(f, shared, &r);
}

template <class SHAPE> constexpr auto kernel_of()
{
    if constexpr (requires { typename SHAPE::special; })
        return two_kinds_kernel<SHAPE>;
    else
        return wide_gram_kernel<SHAPE>;
}

/* Queues the product; its *parts partial results are stored at f->part. */
template <class SHAPE>
sps_status launch_wide_gram(sps_context *ctx, factors *f, int *parts)
{
    constexpr int bytes = 8 * SHAPE::rows * SHAPE::ld;
    auto kernel = kernel_of<SHAPE>();
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t want = ceil_div(f->in.n, SHAPE::rows * SHAPE::slices);
    int blocks = want < 1 ? 1 : want < s->sms ? (int)want : s->sms;
    int64_t count = (int64_t)f->k1 * f->k2 * (SHAPE::blocks > 2 ? 2 : 1);

    *parts = blocks * SHAPE::slices;
    SPS_TRY_RETURN(take_scratch(ctx, count * *parts, &f->part));
    f->in.stages = stages_of(ctx, bytes, SHAPE::slices);
    f->in.at[1] = SHAPE::second;
    f->in.at[2] = SHAPE::third;
    SPS_TRY_RETURN(allow_shared(ctx, kernel,
                                f->in.stages * SHAPE::slices * bytes));
    kernel<<<(unsigned)blocks, 32 * SHAPE::warps * SHAPE::slices,
             (size_t)(f->in.stages * SHAPE::slices * bytes), s->stream>>>(*f);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

} // namespace

#endif
