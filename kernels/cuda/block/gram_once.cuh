/* SPDX-License-Identifier: BSD-3-Clause */
/* gram_once.cuh - X'X of 65 to 128 columns, in S tiles of 16 columns.  Each
 * product of two columns is computed once, except in 8 x 8 products on the
 * diagonal; the instructions compute 16 x 8 products.
 *
 * Warp i multiplies tile i by the tiles i + 1, .. i + (S - 1) / 2, all mod S,
 * and by its own even columns.  Two things are left: in the diagonal block the
 * product of the odd columns of tile i with themselves, 8 x 8; and products
 * that depend on S.
 *
 * For even S there are S warps, and the products of the tiles i and i + S / 2
 * are left as well.  Each of the two warps multiplies its odd columns by
 * themselves and by eight columns of the other tile in one 16 x 8 product: the
 * first warp by the odd ones, the second by the even ones.  The product of the
 * first tile with the even columns of the second is still left; the second warp
 * computes it.  So the first warp has S products and the second S + 1.
 *
 * For odd S there are S + 1 warps, and the last one multiplies each tile by its
 * odd columns; so each warp has S products.
 *
 * There are therefore two kinds of warps, each with a loop and registers of its
 * own: a tensor core instruction that is predicated off takes as long as an
 * executed one.
 *
 * Lanes 4g + t load columns 2g, 2g + 1.  With steps of 4 rows, pairs of columns
 * are operands as loaded from shared memory, and the product of the next tile
 * can start at once, while m16n8k16 executes its four steps one after the
 * other: a single warp reaches 91 per cent of the peak of the tensor cores
 * instead of 60.  Up to 64 columns memory is the limit, and symmetric.cuh is as
 * fast. */
#ifndef SPS_CUDA_GRAM_ONCE_CUH
#define SPS_CUDA_GRAM_ONCE_CUH

#include "cuda/base/device.cuh"

namespace {

/* D (16 x 8) += A (16 x 4) B (4 x 8).  a.x is the element of row g, a.y that of
 * row g + 8; the other operands are laid out as for dmma_small (device.cuh). */
__device__ __forceinline__ void dmma16x4(double *d, double2 a, double b)
{
#if __CUDA_ARCH__ < 900
    const double f[2] = {a.x, a.y};

    dmma_small<1>(d, f, &b);
#else
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a.x), "d"(a.y), "d"(b));
#endif
}

/* The products of a warp.  SPECIAL: the second warp of a pair of tiles (S
 * even), or the last of S + 1 warps (S odd). */
template <int S, bool SPECIAL = false> struct once {
    static constexpr bool pairs = S % 2 == 0;
    static constexpr int blocks = 1, rows = 32, ld = 16 * S + 4;
    static constexpr int warps = pairs ? S : S + 1, slices = 2;
    static constexpr int second = 0, third = 0;
    static constexpr int behind = (S - 1) / 2;  /* number of tiles by which tile
                                                   i is multiplied in full */
    static constexpr int tiles = pairs && SPECIAL ? S + 1 : S;
    static constexpr int odd = S - 1; /* index in acc of the product of odd
                                         columns */
    using special = once<S, true>;

    double acc[tiles][4] = {};
    int own, far;   /* tile of this warp, and the last one with which it is
                       multiplied */

    /* The shuffle lets the compiler know that the value is uniform in the
     * warp. */
    __device__ explicit once(int warp)
        : own(__shfl_sync(all_lanes, warp % warps, 0)), far((own + S / 2) % S)
    {}

    static __device__ __forceinline__ bool is_special(int warp)
    {
        return warp % warps >= (pairs ? S / 2 : S);
    }

    __device__ __forceinline__ int sixteen(int d) const
    {
        int i = own + d;

        return i < S ? i : i - S;
    }

    static __device__ __forceinline__ double2 two_columns(const double *p)
    {
        return *reinterpret_cast<const double2 *>(p);
    }

    /* Adds the products of 4 rows; p points to this lane's pair of columns in
     * the first tile. */
    __device__ __forceinline__ void add_four(const double *p)
    {
        double2 x = two_columns(p + 16 * own);

        dmma16x4(acc[0], x, x.x);
#pragma unroll
        for (int d = 1; d <= behind; d++) {
            double2 y = two_columns(p + 16 * sixteen(d));

            dmma16x4(acc[2 * d - 1], x, y.x);
            dmma16x4(acc[2 * d], x, y.y);
        }
        if constexpr (pairs) {
            double2 z = two_columns(p + 16 * far);

            dmma16x4(acc[odd], make_double2(x.y, SPECIAL ? z.x : z.y), x.y);
            if constexpr (SPECIAL) dmma16x4(acc[S], z, x.x);
        }
    }

    /* Adds the products of 4 rows in the last of S + 1 warps: of each tile with
     * its own odd columns. */
    __device__ __forceinline__ void add_odd(const double *p)
    {
#pragma unroll
        for (int i = 0; i < S; i++) {
            double2 x = two_columns(p + 16 * i);

            dmma16x4(acc[i], x, x.y);
        }
    }

    __device__ __forceinline__ void add(const double *staged)
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        const double *p = staged + t * ld + 2 * g;

#pragma unroll
        for (int r = 0; r < rows; r += 4)
            if constexpr (SPECIAL && !pairs) add_odd(p + r * ld);
            else add_four(p + r * ld);
    }

    /* Writes v to element (r, c) of the k x k result, column-major, and if
     * `mirror` also to element (c, r). */
    static __device__ __forceinline__ void put(double *out, int k, int r, int c,
                                               bool mirror, double v)
    {
        if (r >= k || c >= k) return;
        out[(int64_t)c * k + r] = v;
        if (mirror) out[(int64_t)r * k + c] = v;
    }

    /* Writes the results of this warp.  Accumulator e of a lane's four belongs
     * to row r + e / 2 and column c, or c + 1 in a product with odd columns. */
    __device__ __forceinline__ void write(double *out, int k, int) const
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;

#pragma unroll
        for (int e = 0; e < 4; e++) {
            int c = 4 * t + 2 * (e % 2);

            if constexpr (SPECIAL && !pairs) write_odd(out, k, 2 * g, c, e);
            else write_own(out, k, 2 * g, c, e);
        }
    }

    /* Writes the rows of odd columns; those of even columns are in acc[0] of
     * the other warps. */
    __device__ __forceinline__ void write_odd(double *out, int k, int r, int c,
                                              int e) const
    {
#pragma unroll
        for (int i = 0; i < S && e / 2 == 1; i++)
            put(out, k, 16 * i + r + 1, 16 * i + c + 1, false, acc[i][e]);
    }

    __device__ __forceinline__ void write_own(double *out, int k, int r, int c,
                                              int e) const
    {
        int h = e / 2, at = 16 * own, away = 16 * far;

        put(out, k, at + r + h, at + c, h == 1, acc[0][e]);
#pragma unroll
        for (int d = 1; d <= behind; d++)
#pragma unroll
            for (int o = 0; o < 2; o++)
                put(out, k, at + r + h, 16 * sixteen(d) + c + o, true,
                    acc[2 * d - 1 + o][e]);
        if constexpr (pairs) {
            if (h == 0)
                put(out, k, at + r + 1, at + c + 1, false, acc[odd][e]);
            else
                put(out, k, away + r + !SPECIAL, at + c + 1, true, acc[odd][e]);
            if constexpr (SPECIAL)
                put(out, k, away + r + h, at + c, true, acc[S][e]);
        }
    }
};

} // namespace

#endif
