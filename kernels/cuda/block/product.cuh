/* SPDX-License-Identifier: BSD-3-Clause */
/* product.cuh - kernels for R = a X C + b W, stored to Y, with sums over the
 * result R: squares of its columns, or R'R.
 *
 * wide_kernel, on the fp64 tensor cores: up to 64 columns, and up to 128 where
 * the staged pipeline of product_staged.cuh cannot be used.  The side of 16 of
 * an instruction is 16 columns of Y, the side of 8 is 8 rows: (Y')(16 x 8) +=
 * (C')(16 x 16) (X')(16 x 8).  Lane 4g + t loads row g of X, and of it columns
 * 2t, 2t + 1 of every 8 columns, as 16-byte vectors.  C' is in shared memory in
 * the order in which lanes read it.  The lane receives rows 2t, 2t + 1 and
 * columns 2g, 2g + 1 of Y, again as 16-byte vectors, of which 8 lanes fill a
 * cache line.  In this layout the new rows are operands of R'R as they are, so
 * the sum needs no shuffles.  All of a row of X is read before any of Y is
 * written: Y may be X.
 *
 * product_few.cuh has the kernels for up to 8 columns.
 *
 * Order of summation: rows of a warp or thread, warps of a thread block in
 * order, one partial result per thread block; fixed by shape and device.
 *
 * Traffic: each block once; C stays in shared memory.  Rows of Y are written to
 * the end of their last sector if the padding there may be written
 * (product.wide, row_padding.cuh), since a partly written sector is read
 * first. */
#ifndef SPS_CUDA_PRODUCT_CUH
#define SPS_CUDA_PRODUCT_CUH

#include "cuda/base/device.cuh"
#include "cuda/base/row_padding.cuh"

namespace {

/* The operands of y = a x C + b w, where ldx, ldw and ldy are the distances
 * between rows; w is y itself, or another block that is added (combine). */
struct product {
    const double *x, *c, *w;
    int64_t ldx, ldw;
    double *y;
    int64_t ldy;
    int wide;              /* number of columns of y that may be written */
    double a, b;
};

struct operands {
    product first;
    int64_t n;
    int k1, k2;
    double *part;          /* partial sums of the result, one set for each
                              thread block */
};

enum sums { NO_SUMS, SQUARES, GRAM }; /* which sums of the result are
                                         computed */
/* How rows are loaded and stored, best first.  WHOLE: by 16-byte vectors, and
 * the numbers of columns are multiples of 16.  PADDED: by 16-byte vectors, the
 * last of which may include the padding after an odd last column.  PAIRS: by
 * 16-byte vectors, with a check for an odd last column.  SINGLES: by 8
 * bytes. */
enum access { WHOLE, PADDED, PAIRS, SINGLES };

template <access HOW>
__device__ __forceinline__ double2 take(const double *p, bool row, int left)
{
    if constexpr (HOW == WHOLE)
        return whole_pair(p, row);
    else if constexpr (HOW == PADDED)
        return whole_pair(p, row && left > 0);
    else
        return load_pair<HOW == PAIRS>(p, row ? left : 0);
}

template <access HOW>
__device__ __forceinline__ void put(double *p, bool row, int left, double2 v)
{
    if constexpr (HOW == WHOLE) {
        if (row) *reinterpret_cast<double2 *>(p) = v;
    } else {
        store_pair<HOW != SINGLES>(p, row ? left : 0, v);
    }
}

/* --- wide_kernel: at most E tiles of 8 columns, that is T tiles of 16 */

/* The shape of wide_kernel. eights: groups of 8 rows that a warp has in flight;
 * per_sm: thread blocks per multiprocessor.  Measured in
 * doc/log/block-operations.md. */
template <int E, sums S> struct wide_shape {
    static constexpr int T = (E + 1) / 2;
    static constexpr int eights = 2;
    static constexpr int threads = T > 4 ? 256 : 128;
    /* With an odd E and no sums there are registers for one more thread
     * block. */
    static constexpr int more = E % 2 && S == NO_SUMS;
    static constexpr int per_sm =
        T > 4 ? 1 : T > 2 ? 2 + more : T > 1 ? (S == GRAM ? 2 : 3 + more)
                                             : S == GRAM ? 4 : 5;
    /* Number of tiles of 16 columns of Y that are kept in registers until all
     * are computed. */
    static constexpr int kept = T > 4 ? 1 : T;
    /* Rows of Y are written when the rows of W for all columns have arrived: a
     * cache line that is partly written while another part of it is being
     * loaded is fetched twice.  Beyond 64 columns there are not enough
     * registers. */
    static constexpr bool at_once = kept == T;
    static constexpr int rows = threads / 32 * 8 * eights; /* rows of a
                                                              thread block */
    static constexpr int tiles = T * (T + 1) / 2;          /* 16 x 16 tiles
                                                              of R'R */
    /* Size of the shared memory in doubles (own) and in bytes (shared): C,
     * followed by the sums of squares; R'R reuses the space of C. */
    static constexpr size_t own = (size_t)T * T * 256 +
                                  (S == SQUARES ? threads / 2 * T : 0);
    static constexpr size_t shared =
        8 * (S == GRAM && own < 256 * tiles ? 256 * tiles : own);
};

/* Whether wide_kernel prefetches the next rows during the product: with sums,
 * since computing them takes time, and all warps would then wait for memory at
 * the same time. */
template <access HOW, sums S>
constexpr bool prefetches =
    HOW == WHOLE ? S != NO_SUMS : HOW == PADDED && S == GRAM;

/* Stores a C (k1 x k2, column-major) in the order in which lanes read it:
 * element (((m T + s) 4 + i) 32 + lane) 2 + h is entry (16 s + 8 (i / 2) + 2t +
 * i % 2, 16 m + 2g + h). */
template <int T>
__device__ void arrange(double *fragment, const product &p, int k1, int k2)
{
    for (int e = (int)threadIdx.x; e < T * T * 256; e += (int)blockDim.x) {
        int h = e % 2, lane = e / 2 % 32, i = e / 64 % 4, s = e / 256 % T;
        int row = 16 * s + 8 * (i / 2) + 2 * (lane % 4) + i % 2;
        int col = 16 * (e / 256 / T) + 2 * (lane / 4) + h;

        fragment[e] = row < k1 && col < k2
                          ? p.a * p.c[(int64_t)col * k1 + row] : 0.0;
    }
}

/* Loads tile s, 16 columns, of 8 NB rows of X from `row` on: x[b][s] becomes
 * this lane's elements. */
template <int E, int T, int NB, access HOW>
__device__ __forceinline__ void take_sixteen(const product &p, int64_t row,
                                             int64_t n, int k1, int s,
                                             double (*x)[T][4])
{
    int lane = (int)threadIdx.x % 32, g = lane / 4, c = 2 * (lane % 4);
    const double *px = p.x + (row + g) * p.ldx + c;

#pragma unroll
    for (int b = 0; b < NB; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int first = 16 * s + 8 * h;

            if (first >= 8 * E) continue;
            double2 v = take<HOW>(px + 8 * b * p.ldx + first,
                                  row + g + 8 * b < n && 16 * s < k1,
                                  k1 - first - c);

            x[b][s][2 * h] = v.x;
            x[b][s][2 * h + 1] = v.y;
        }
}

/* Loads w[b], this lane's elements of tile m of 16 columns of W, for NB groups
 * of 8 rows. */
template <int NB, access HOW>
__device__ __forceinline__ void take_old(const product &p, int64_t row,
                                         int64_t n, int k2, int m,
                                         double2 (*w)[2])
{
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const double *pw = p.w + (row + 2 * t) * p.ldw + 2 * g + 16 * m;

#pragma unroll
    for (int b = 0; b < NB; b++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            w[b][h] = take<HOW>(pw + (8 * b + h) * p.ldw,
                                p.b != 0 && 16 * m < k2 &&
                                    row + 2 * t + 8 * b + h < n,
                                k2 - 16 * m - 2 * g);
}

/* d[b] += the columns of tile m of the product x C; calls then(s) when tile s
 * of x is no longer needed. beside: this lane's last element of x is the
 * padding after an odd last column, which may be NaN, and is set to zero.  (The
 * padding of W only enters the padding of Y.) */
template <int E, int T, int NB, class THEN>
__device__ __forceinline__ void multiply(double (*d)[4], double (*x)[T][4],
                                         const double *fragment, int m, int k1,
                                         bool beside, THEN then)
{
    const double *f = fragment + m * T * 256 + 2 * ((int)threadIdx.x % 32);

#pragma unroll
    for (int s = 0; s < T; s++) {
        const bool half = 2 * s + 1 == E;
        double a[8];

        if (16 * s >= k1) break;
#pragma unroll
        for (int i = 0; i < (half ? 2 : 4); i++) {
            const double *from = f + 64 * (4 * s + i);
            double2 v = *reinterpret_cast<const double2 *>(from);

            a[2 * i] = v.x;
            a[2 * i + 1] = v.y;
        }
#pragma unroll
        for (int b = 0; b < NB; b++) {
            if (2 * s + 2 >= E && beside) x[b][s][half ? 1 : 3] = 0;
            if (half) dmma16x8(d[b], a, x[b][s]);
            else dmma16x16(d[b], a, x[b][s]);
        }
        then(s);
    }
}

/* Adds the squares of the columns of a tile to the sums of the warp in shared
 * memory. */
template <int NB>
__device__ __forceinline__ void add_squares(const double (*d)[4], double *norms)
{
    double s0 = 0, s1 = 0;

#pragma unroll
    for (int b = 0; b < NB; b++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            s0 = fma(d[b][h], d[b][h], s0);
            s1 = fma(d[b][2 + h], d[b][2 + h], s1);
        }
#pragma unroll
    for (int far = 1; far < 4; far *= 2) {
        s0 += __shfl_xor_sync(all_lanes, s0, far);
        s1 += __shfl_xor_sync(all_lanes, s1, far);
    }
    if (threadIdx.x % 4 == 0) {
        norms[0] += s0;
        norms[1] += s1;
    }
}

/* Stores d, this lane's elements of tile m, to Y; py: the address of its first
 * element of Y. */
template <int NB, access HOW>
__device__ __forceinline__ void put_tile(const operands &o, int64_t row, int m,
                                         double *py, const double (*d)[4])
{
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;

#pragma unroll
    for (int b = 0; b < NB; b++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            put<HOW>(py + (8 * b + h) * o.first.ldy + 16 * m,
                     row + 2 * t + 8 * b + h < o.n,
                     o.first.wide - 16 * m - 2 * g,
                     make_double2(d[b][h], d[b][2 + h]));
}

/* gram[tile (m1, m2)] += R'R over the rows in d, for m1 <= m2. */
template <int T, int NB>
__device__ __forceinline__ void add_gram(const double (*d)[NB][4],
                                         double (*gram)[2][4])
{
#pragma unroll
    for (int m2 = 0; m2 < T; m2++)
#pragma unroll
        for (int m1 = 0; m1 <= m2; m1++)
#pragma unroll
            for (int b = 0; b < NB; b++) {
                const double *u = d[m1][b], *v = d[m2][b];
                const double a[4] = {u[0], u[2], u[1], u[3]};
                double (*to)[4] = gram[m2 * (m2 + 1) / 2 + m1];

                dmma16x8(to[0], a, v);
                dmma16x8(to[1], a, v + 2);
            }
}

/* Adds up the sums of squares of the warps of the thread block in order and
 * writes them to part. */
template <int T>
__device__ void write_squares(const double *norms, double *part, int k2)
{
    for (int c = (int)threadIdx.x; c < k2; c += (int)blockDim.x) {
        double sum = 0;

        for (int w = 0; w < (int)blockDim.x / 32; w++)
            sum += norms[w * 16 * T + c];
        part[(int64_t)blockIdx.x * k2 + c] = sum;
    }
}

template <int T>
__device__ void write_gram(double (*gram)[2][4], double *shared, double *part,
                           int k2)
{
    constexpr int tiles = T * (T + 1) / 2;
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int g = lane / 4, t = lane % 4;

    for (int w = 1; w < (int)blockDim.x / 32; w++) {
        __syncthreads();
        if (warp == w)
#pragma unroll
            for (int e = 0; e < 8 * tiles; e++)
                shared[32 * e + lane] = gram[e / 8][e / 4 % 2][e % 4];
        __syncthreads();
        if (warp == 0)
#pragma unroll
            for (int e = 0; e < 8 * tiles; e++)
                gram[e / 8][e / 4 % 2][e % 4] += shared[32 * e + lane];
    }
    if (warp > 0) return;
    part += (int64_t)blockIdx.x * k2 * k2;
#pragma unroll
    for (int m2 = 0; m2 < T; m2++)
#pragma unroll
        for (int m1 = 0; m1 <= m2; m1++)
#pragma unroll
            for (int e = 0; e < 8; e++) {
                int i = 16 * m1 + 2 * g + e % 4 / 2;
                int j = 16 * m2 + 4 * t + 2 * (e % 2) + e / 4;

                if (i >= k2 || j >= k2) continue;
                part[j * k2 + i] = part[i * k2 + j] =
                    gram[m2 * (m2 + 1) / 2 + m1][e / 4][e % 4];
            }
}

/* Loads what a lane holds of 8 NB rows from `row` on: w, its elements of the
 * first KEPT tiles of W, and (take_rows) x, those of X. */
template <int NB, int KEPT, access HOW>
__device__ __forceinline__ void take_old_tiles(const operands &o, int64_t row,
                                               double2 (*w)[NB][2])
{
#pragma unroll
    for (int m = 0; m < KEPT; m++)
        take_old<NB, HOW>(o.first, row, o.n, o.k2, m, w[m]);
}

template <int E, int T, int NB, int KEPT, access HOW>
__device__ __forceinline__ void take_rows(const operands &o, int64_t row,
                                          double (*x)[T][4],
                                          double2 (*w)[NB][2])
{
#pragma unroll
    for (int s = 0; s < T; s++)
        take_sixteen<E, T, NB, HOW>(o.first, row, o.n, o.k1, s, x);
    take_old_tiles<NB, KEPT, HOW>(o, row, w);
}

/* d = b W, from this lane's elements of a tile of W. */
template <int NB>
__device__ __forceinline__ void scale_old(double b, const double2 (*w)[2],
                                          double (*d)[4])
{
#pragma unroll
    for (int r = 0; r < NB; r++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            d[r][e] = b * (e < 2 ? w[r][e % 2].x : w[r][e % 2].y);
}

template <int E, access HOW, sums S>
__global__ void
__launch_bounds__((wide_shape<E, S>::threads), (wide_shape<E, S>::per_sm))
wide_kernel(operands o)
{
    using shape = wide_shape<E, S>;
    constexpr int T = shape::T, NB = shape::eights, kept = shape::kept;
    constexpr bool at_once = shape::at_once, ahead = prefetches<HOW, S>;
    extern __shared__ double fragment[];
    int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const bool beside = HOW == PADDED && o.k1 == 8 * E - 7 + 2 * t;
    double *norms = fragment + T * T * 256;
    double *own = norms + threadIdx.x / 32 * (16 * T) + 2 * g;
    double gram[S == GRAM ? shape::tiles : 1][2][4] = {}, x[NB][T][4];
    double2 w[kept][NB][2];
    int64_t step = (int64_t)gridDim.x * shape::rows;
    int64_t row = (int64_t)blockIdx.x * shape::rows +
                  threadIdx.x / 32 * (8 * NB);

    arrange<T>(fragment, o.first, o.k1, o.k2);
    if (S == SQUARES && t == 0)
        for (int m = 0; m < T; m++) own[16 * m] = own[16 * m + 1] = 0;
    __syncthreads();
    if (ahead) take_rows<E, T, NB, kept, HOW>(o, row, x, w);
    for (; row < o.n; row += step) {
        double *py = o.first.y + (row + 2 * t) * o.first.ldy + 2 * g;
        double acc[kept][NB][4];

        auto finish = [&](int m, const double (*d)[4]) {
            put_tile<NB, HOW>(o, row, m, py, d);
            if (S == SQUARES) add_squares<NB>(d, own + 16 * m);
        };
        auto next = [&](int s) {
            take_sixteen<E, T, NB, HOW>(o.first, row + step, o.n, o.k1, s, x);
        };

        if (!ahead) take_rows<E, T, NB, kept, HOW>(o, row, x, w);
#pragma unroll(kept)
        for (int m = 0; m < T; m++) {
            double (*d)[4] = acc[at_once ? m : 0];

            scale_old<NB>(o.first.b, w[at_once ? m : 0], d);
            if (16 * m >= o.k2) continue;
            if (ahead && 16 * (m + 1) >= o.k2) {
                take_old_tiles<NB, kept, HOW>(o, row + step, w);
                multiply<E, T, NB>(d, x, fragment, m, o.k1, beside, next);
            } else {
                if (!at_once)
                    take_old<NB, HOW>(o.first, row, o.n, o.k2, m + 1, w[0]);
                multiply<E, T, NB>(d, x, fragment, m, o.k1, beside,
                                   [](int) {});
            }
            if (!at_once) finish(m, d);
        }
        if constexpr (at_once)
#pragma unroll
            for (int m = 0; m < T; m++)
                if (16 * m < o.k2) finish(m, acc[m]);
        if constexpr (S == GRAM) add_gram<T, NB>(acc, gram);
    }
    __syncthreads();
    if constexpr (S == SQUARES) write_squares<T>(norms, o.part, o.k2);
    if constexpr (S == GRAM) write_gram<T>(gram, fragment, o.part, o.k2);
}

} // namespace

#endif
