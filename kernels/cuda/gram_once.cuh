/* SPDX-License-Identifier: BSD-3-Clause */
/* gram_once.cuh - X'X of 65 to 128 columns in S sixteens, each product of
 * columns once but for 8 x 8 on the diagonal, in tiles of 16 x 8.
 *
 * Warp i multiplies sixteen i by i + 1, .. i + (S - 1) / 2, all mod S, and by
 * its own even columns.  Of the diagonal its odd columns by themselves, 8 x 8,
 * are left, and the rest depends on S.
 *
 * S even, S warps: the pair i, i + S / 2 is left, too.  Each of the two warps
 * multiplies its odd columns by themselves and by eight of the farther sixteen,
 * the first by the odd ones, the second by the even ones.  That leaves the
 * farther sixteen by the own even columns, which the second makes: S tiles for
 * the first, S + 1 for the second.
 *
 * S odd, S + 1 warps: the last multiplies each sixteen by its odd columns, S
 * tiles to each.
 *
 * So warps are of two kinds, each with a loop and registers of its own: a
 * product under a predicate takes its time where that is false, too.
 *
 * Columns 2g, 2g + 1 belong to the lanes 4g + t.  By steps of 4 rows pairs of
 * columns are factors as they come from shared memory, and the next tile's
 * product begins at once, while m16n8k16 takes its four steps one after the
 * other: one warp alone comes to 91 per cent of the tensor cores' speed, not
 * 60.  Up to 64 columns memory is the limit, and symmetric.cuh as fast. */
#ifndef SPS_CUDA_GRAM_ONCE_CUH
#define SPS_CUDA_GRAM_ONCE_CUH

#include "device.cuh"

namespace {

/* a.x is of row g, a.y of row g + 8 of 16 x 4; otherwise as device.cuh has
 * it. */
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

/* The second of a pair and the last of S + 1 are special. */
template <int S, bool SPECIAL = false> struct once {
    static constexpr bool pairs = S % 2 == 0;
    static constexpr int blocks = 1, rows = 32, ld = 16 * S + 4;
    static constexpr int warps = pairs ? S : S + 1, slices = 2;
    static constexpr int second = 0, third = 0;
    static constexpr int behind = (S - 1) / 2;  /* sixteens taken whole */
    static constexpr int tiles = pairs && SPECIAL ? S + 1 : S;
    static constexpr int odd = S - 1; /* tile of the odd columns of a pair */
    using special = once<S, true>;

    double acc[tiles][4] = {};
    int own, far;   /* the warp's sixteen, and the one farthest off */

    /* The shuffle lets the compiler see that it is the same for all lanes. */
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

    /* The products of 4 rows; p: the lane's pair of the first sixteen. */
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

    /* The same of the last of S + 1. */
    __device__ __forceinline__ void add_odd(const double *p)
    {
#pragma unroll
        for (int i = 0; i < S; i++) {
            double2 x = two_columns(p + 16 * i);

            dmma16x4(acc[i], x, x.y);
        }
    }

    __device__ __forceinline__ void add(const double *strip)
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        const double *p = strip + t * ld + 2 * g;

#pragma unroll
        for (int r = 0; r < rows; r += 4)
            if constexpr (SPECIAL && !pairs) add_odd(p + r * ld);
            else add_four(p + r * ld);
    }

    /* out[column k + row] and its mirror image. */
    static __device__ __forceinline__ void put(double *out, int k, int r, int c,
                                               bool mirror, double v)
    {
        if (r >= k || c >= k) return;
        out[(int64_t)c * k + r] = v;
        if (mirror) out[(int64_t)r * k + c] = v;
    }

    /* Number e of a lane's four of a tile is of row r + e / 2 and column c or
     * the one behind it. */
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

    /* The first rows of these are even ones, which acc[0] has. */
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
