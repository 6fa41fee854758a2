/* SPDX-License-Identifier: BSD-3-Clause */
/* symmetric.cuh - X'X for S tiles of 16 columns, computed by S warps together,
 * each 16 x 16 product of two tiles once (and the diagonal ones in full).
 *
 * Warp i computes the products of tile i with tiles i, i + 1, .., i + (S - 1) /
 * 2, all mod S.  If S is even, the pair i, i + S / 2 remains: warp i < S / 2
 * multiplies tile i by the eight even columns of tile i + S / 2, and warp i + S
 * / 2 multiplies it by the eight odd ones.  So each warp has S + 1 products of
 * 16 x 8, for even and odd S, where the full square would need 2 S.
 *
 * Lanes 4g + t load columns 2g, 2g + 1; if LD is 4 more than a multiple of 16,
 * these loads have no bank conflicts. */
#ifndef SPS_CUDA_SYMMETRIC_CUH
#define SPS_CUDA_SYMMETRIC_CUH

#include "cuda/base/device.cuh"

namespace {

/* Loads the two elements at p + 4 h LD into even[apart h] and odd[apart h], for
 * h < DEEP / 4.  If p points to row t and columns 2g, 2g + 1 of a tile, these
 * are fragments of its even and of its odd columns, DEEP rows deep. */
template <int DEEP, int LD>
__device__ __forceinline__ void take_pairs(const double *p, double *even,
                                           double *odd, int apart)
{
#pragma unroll
    for (int h = 0; h < DEEP / 4; h++) {
        double2 v = *reinterpret_cast<const double2 *>(p + 4 * h * LD);

        even[apart * h] = v.x;
        odd[apart * h] = v.y;
    }
}

template <int S, int LD> struct symmetric {
    static constexpr int whole = (S + 1) / 2;

    double acc[whole][2][4] = {}, rest[4] = {};
    int own, far;   /* the tile of this warp, and the last tile with which it
                       is multiplied */

    __device__ explicit symmetric(int warp)
        : own(warp), far((warp + S / 2) % S) {}

    __device__ __forceinline__ int sixteen(int d) const
    {
        int i = own + d;

        return i < S ? i : i - S;
    }

    /* Adds x'y of the 16 rows at `staged`, x being the columns of this warp's
     * tile and y those of each tile assigned to it. */
    __device__ __forceinline__ void add(const double *staged)
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        const double *p = staged + t * LD + 2 * g;
        double x[8], y[2][4];

        take_pairs<16, LD>(p + 16 * own, x, x + 1, 2);
#pragma unroll
        for (int h = 0; h < 4; h++) {
            y[0][h] = x[2 * h];
            y[1][h] = x[2 * h + 1];
        }
#pragma unroll
        for (int d = 0; d < whole; d++) {
            if (d > 0)
                take_pairs<16, LD>(p + 16 * sixteen(d), y[0], y[1], 1);
            dmma16x16(acc[d][0], x, y[0]);
            dmma16x16(acc[d][1], x, y[1]);
        }
        if (S % 2) return;
        /* Warp i < S / 2 multiplies its own tile by the even columns of tile
         * `far`, warp i + S / 2 multiplies tile `far` by the odd columns of its
         * own. */
        bool upper = own < far;

        take_pairs<16, LD>(p + 16 * far, y[0], y[1], 1);
#pragma unroll
        for (int h = 0; h < 4; h++) {
            double a = y[0][h], b = x[2 * h + 1];

            y[0][h] = upper ? a : b;
            x[2 * h] = upper ? x[2 * h] : a;
            x[2 * h + 1] = upper ? b : y[1][h];
        }
        dmma16x16(rest, x, y[0]);
    }

    /* Writes v to element (r, c) of the k x k result, column-major, and if
     * `mirror` also to element (c, r). */
    __device__ __forceinline__ void put(double *out, int k, int r, int c,
                                        bool mirror, double v) const
    {
        if (r >= k || c >= k) return;
        out[(int64_t)c * k + r] = v;
        if (mirror) out[(int64_t)r * k + c] = v;
    }

    __device__ __forceinline__ void write(double *out, int k) const
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        int near = own < far ? own : far, other = own < far ? far : own;

#pragma unroll
        for (int e = 0; e < 8; e++) {
            int r = 2 * g + e % 4 / 2, c = 4 * t + 2 * (e % 2);

#pragma unroll
            for (int d = 0; d < whole; d++)
                put(out, k, 16 * own + r, 16 * sixteen(d) + c + e / 4, d > 0,
                    acc[d][e / 4][e % 4]);
            if (S % 2 == 0 && e < 4)
                put(out, k, 16 * near + r, 16 * other + c + (own > far), true,
                    rest[e]);
        }
    }
};

} // namespace

#endif
