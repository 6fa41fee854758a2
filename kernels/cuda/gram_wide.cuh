/* SPDX-License-Identifier: BSD-3-Clause */
/* gram_wide.cuh - X'Y and the pair P'Q, P'R for 33 to 64 columns, X'X for 33 to
 * 128.
 *
 * Here arithmetic weighs as much as bytes, so both must go on at once: rows of
 * all blocks come to shared memory by asynchronous copies, three stages ahead,
 * while the warps multiply what is there.  A warp owns a tile of 16 AM x 8 BN
 * results; 16 columns of X are the pairs 2g, 2g + 1 of its lanes 4g + t, and
 * those of Y likewise.  Rows lie 4 numbers (32 bytes) past a multiple of 128
 * bytes apart, so that no two lanes meet in a bank.
 *
 * TRIANGLE: X'X, of which only tiles on and above the diagonal are made, and X
 * is copied once.
 *
 * Sums: the rows of a block of threads in order, then blocks (launch_join). */
#ifndef SPS_CUDA_GRAM_WIDE_CUH
#define SPS_CUDA_GRAM_WIDE_CUH

#include "device.cuh"

namespace {

constexpr int stage_rows = 16, stages = 4;

struct factors {
    const double *x, *y, *z; /* z: the second factor of a pair, or NULL */
    int64_t ldx, ldy, ldz, n;
    int k1, k2;
    double *part;
};

/* WM x WN warps, each with AM sixteens of X's columns and BN eights of Y's;
 * SM blocks of threads on a multiprocessor.  Measured in doc/benchmarks.md,
 * "H200: block operations". */
template <int WM, int WN, int AM, int BN, int SM, bool TRIANGLE>
struct wide_gram {
    static constexpr int M = 16 * AM * WM, N = 8 * BN * WN;
    /* Whether tile (i, j) has something on or above the diagonal. */
    static __host__ __device__ constexpr bool wanted(int i, int j)
    {
        return !TRIANGLE || 8 * BN * (j + 1) > 16 * AM * i;
    }
    static constexpr int count_warps()
    {
        int count = 0;

        for (int i = 0; i < WM; i++)
            for (int j = 0; j < WN; j++) count += wanted(i, j);
        return count;
    }
    static constexpr int warps = count_warps(), threads = 32 * warps;
    static constexpr int columns = TRIANGLE ? M : M + N, ld = columns + 4;
    static constexpr int shared = 8 * stages * stage_rows * ld;
};

__device__ __forceinline__ void copy_async(double *to, const double *from,
                                           int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from),
                    "r"(bytes) : "memory");
}
__device__ __forceinline__ void copies_end()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int LEFT> __device__ __forceinline__ void copies_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
}

/* stage_rows rows from row on; zeros where there is nothing. */
template <class SHAPE>
__device__ __forceinline__ void fetch_stage(const factors &f, int64_t row,
                                            double *to)
{
    constexpr int pieces = SHAPE::columns / 2;

#pragma unroll
    for (int e = (int)threadIdx.x; e < stage_rows * pieces;
         e += SHAPE::threads) {
        int r = e / pieces, c = 2 * (e % pieces), k = f.k1;
        const double *from = f.x;
        int64_t ld = f.ldx;
        double *p = to + r * SHAPE::ld + c;

        if (c >= SHAPE::M) {
            bool second = f.z && c >= SHAPE::M + SHAPE::N / 2;

            c -= second ? SHAPE::M + SHAPE::N / 2 : SHAPE::M;
            from = second ? f.z : f.y;
            ld = second ? f.ldz : f.ldy;
            k = f.k2;
        }
        bool some = row + r < f.n && c < k;

        copy_async(p, some ? from + (row + r) * ld + c : from,
                   !some ? 0 : k - c > 1 ? 16 : 8);
    }
}

/* acc += the tile at columns a of X and b of Y over the rows of a stage. */
template <class SHAPE, int AM, int BN>
__device__ __forceinline__ void multiply_stage(const double *stage, int a,
                                               int b, double (*acc)[BN][4])
{
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    const double *p = stage + t * SHAPE::ld;

#pragma unroll
    for (int r = 0; r < stage_rows; r += 8, p += 8 * SHAPE::ld) {
        double x[AM][4], y[BN][2];

#pragma unroll
        for (int i = 0; i < AM; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                double2 v = *reinterpret_cast<const double2 *>(
                    p + 4 * h * SHAPE::ld + a + 16 * i + 2 * g);

                x[i][2 * h] = v.x;
                x[i][2 * h + 1] = v.y;
            }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const double *q = p + 4 * h * SHAPE::ld + b;

#pragma unroll
            for (int j = 0; j + 1 < BN; j += 2) {
                double2 v = *reinterpret_cast<const double2 *>(q + 8 * j +
                                                               2 * g);

                y[j][h] = v.x;
                y[j + 1][h] = v.y;
            }
            if (BN % 2) y[BN - 1][h] = q[8 * (BN - 1) + g];
        }
#pragma unroll
        for (int i = 0; i < AM; i++)
#pragma unroll
            for (int j = 0; j < BN; j++) dmma16x8(acc[i][j], x[i], y[j]);
    }
}

/* Column of Y's tile that number e of accumulator j belongs to. */
template <int BN> __device__ __forceinline__ int column(int j, int e, int t)
{
    return BN % 2 && j == BN - 1 ? 8 * j + 2 * t + e % 2
                                 : 8 * (j - j % 2) + 4 * t + 2 * (e % 2) + j % 2;
}

template <int WM, int WN, int AM, int BN, int SM, bool TRIANGLE>
__global__ void
__launch_bounds__((wide_gram<WM, WN, AM, BN, SM, TRIANGLE>::threads), SM)
wide_gram_kernel(factors f)
{
    using shape = wide_gram<WM, WN, AM, BN, SM, TRIANGLE>;
    constexpr int size = stage_rows * shape::ld;
    extern __shared__ double shared[];
    int64_t row = (int64_t)blockIdx.x * stage_rows;
    int64_t step = (int64_t)gridDim.x * stage_rows, ahead = row;
    int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
    int tile = 0, im, in;
    double acc[AM][BN][4] = {};

    for (int w = (int)threadIdx.x / 32;; tile++)
        if (shape::wanted(tile / WN, tile % WN) && w-- == 0) break;
    im = 16 * AM * (tile / WN);
    in = 8 * BN * (tile % WN);
#pragma unroll
    for (int s = 0; s < stages - 1; s++, ahead += step) {
        fetch_stage<shape>(f, ahead, shared + s * size);
        copies_end();
    }
    for (int s = 0; row < f.n; row += step, ahead += step, s = (s + 1) % stages) {
        copies_wait<stages - 2>();
        __syncthreads();
        fetch_stage<shape>(f, ahead, shared + (s + stages - 1) % stages * size);
        copies_end();
        multiply_stage<shape, AM, BN>(shared + s * size, im,
                                      TRIANGLE ? in : shape::M + in, acc);
    }
    copies_wait<0>();

    int half = f.z && in >= shape::N / 2; /* no tile is in both */
    double *out = f.part + ((int64_t)blockIdx.x * (f.z ? 2 : 1) + half) *
                               f.k1 * f.k2;

    if (half) in -= shape::N / 2;
#pragma unroll
    for (int m = 0; m < AM; m++)
#pragma unroll
        for (int j = 0; j < BN; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int r = im + 16 * m + 2 * g + e / 2;
                int c = in + column<BN>(j, e, t);

                if (r >= f.k1 || c >= f.k2 || (TRIANGLE && r > c)) continue;
                out[(int64_t)c * f.k1 + r] = acc[m][j][e];
                if (TRIANGLE) out[(int64_t)r * f.k1 + c] = acc[m][j][e];
            }
}

/* Queues the product; the results of so many blocks are at f->part. */
template <int WM, int WN, int AM, int BN, int SM, bool TRIANGLE = false>
sps_status launch_wide_gram(sps_context *ctx, factors *f, int *blocks)
{
    using shape = wide_gram<WM, WN, AM, BN, SM, TRIANGLE>;
    auto kernel = wide_gram_kernel<WM, WN, AM, BN, SM, TRIANGLE>;
    sps_cuda_state *s = spsi_cuda_state(ctx);
    int64_t want = ceil_div(f->n, stage_rows);
    int64_t most = (int64_t)SM * s->sms;
    size_t count = (size_t)f->k1 * (size_t)f->k2 * (f->z ? 2 : 1);

    *blocks = (int)(want < most ? want : most);
    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, count * 8 * (size_t)*blocks));
    f->part = (double *)s->d_scratch;
    SPS_CUDA(ctx, cudaFuncSetAttribute(
                      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                      shape::shared));
    kernel<<<(unsigned)*blocks, shape::threads, shape::shared, s->stream>>>(*f);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

} // namespace

#endif
