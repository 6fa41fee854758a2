/* SPDX-License-Identifier: BSD-3-Clause */
/* product_staged.cuh - Y = a X C + b W with a staged pipeline of rows of X and
 * W in shared memory (pipeline.cuh) and C in registers.
 *
 * Each of S warps computes its own 16 columns of Y, as (Y')(16 x 8) += (C')(16
 * x 16) (X')(16 x 8): its columns of C stay in registers throughout (8 S
 * doubles per lane), and the rows of X are read from shared memory.
 *
 * Column j of the factor (X')(16 x 8) is row place(j) of 8 rows of the row
 * tile.  Shared memory serves 8 lanes at a time with 16 bytes each; with this
 * order they read from two rows of X that are 2 rows apart, which is 64 bytes
 * modulo 128, so that there are no bank conflicts.
 *
 * All rows of X and W of a row tile have arrived before any of its rows of Y is
 * written, so Y may be X or W. */
#ifndef SPS_CUDA_PRODUCT_STAGED_CUH
#define SPS_CUDA_PRODUCT_STAGED_CUH

#include "cuda/block/product_gram.h"

#include "cuda/base/row_padding.cuh"
#include "cuda/base/pipeline.cuh"

namespace {

struct task {
    staged_blocks in;   /* the blocks X, and W unless Y = a X C, as row tiles */
    const double *c;
    double a, b;
    double *y;
    int ldy;     /* stride of the rows of y; offsets within a row tile are in 32
                    bits */
    int k1, k2, wide; /* number of columns of X, and of Y; wide: number of
                         columns of y that may be written */
    double *part;
};

inline int widest(const sps_cuda_product *p)
{
    return p->k1 > p->k2 ? p->k1 : p->k2;
}

/* Returns whether the shape is supported: if X has an odd number of columns,
 * the last one must be in the last tile of 8 columns, where the padding after
 * it is set to zero. */
inline bool pipeline_serves(const sps_cuda_product *p)
{
    return p->k1 > 0 && has_pipeline(p->X->ctx) && paired(p->X) &&
           paired(p->W) && paired(p->Y) && p->Y->ld < 1 << 24 &&
           (p->k1 % 2 == 0 || ceil_div(p->k1, 8) == ceil_div(widest(p), 8));
}

inline task task_of(const sps_cuda_product *p)
{
    task o = {};

    add_block(&o.in, 0, p->X, p->k1);
    o.c = p->c;
    o.a = p->a;
    o.b = p->b;
    o.y = numbers(p->Y);
    o.ldy = (int)p->Y->ld;
    o.k1 = p->k1;
    o.k2 = p->k2;
    o.wide = writable_columns(p->Y);
    return o;
}

__device__ __forceinline__ int place(int j)
{
    return j / 4 * 4 + j / 2 % 2 + j % 2 * 2;
}

/* Returns an element of a C, or zero outside of it. */
__device__ __forceinline__ double element(const task &o, int row, int col)
{
    return row < o.k1 && col < o.k2 ? o.a * o.c[(int64_t)col * o.k1 + row]
                                    : 0.0;
}

/* Stores 16 bytes.  The compiler would merge an ordinary store with those of
 * rows that are checked element by element, and so split it in two. */
__device__ __forceinline__ void store_whole(double *p, double2 v)
{
    asm volatile("st.global.v2.f64 [%0], {%1, %2};"
                 :: "l"(p), "d"(v.x), "d"(v.y) : "memory");
}

/* The 16 columns of Y of a warp, from `first` on, for row tiles of 8 NB rows
 * with stride LD; in lane 4 g + t, t < 4, d[b] has rows 8 b + place(2t + h),
 * h = 0, 1, and columns 2g, 2g + 1.  E is the number of tiles of 8 columns of
 * X. */
template <int E, int NB, int LD> struct sixteen {
    static constexpr int S = (E + 1) / 2;

    double c[S][8], d[NB][4];
    int first;

    /* c[s][2 i + h] is element (16 s + 8 (i / 2) + 2t + i % 2, first + 2g + h)
     * of a C. */
    __device__ __forceinline__ sixteen(const task &o, int first) : first(first)
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;

#pragma unroll
        for (int s = 0; s < S; s++)
#pragma unroll
            for (int e = 0; e < 8; e++)
                c[s][e] = element(o, 16 * s + e / 4 * 8 + 2 * t + e / 2 % 2,
                                  first + 2 * g + e % 2);
    }

    __device__ __forceinline__ static int row(int e)
    {
        return e / 2 * 8 + e % 2 * 2;
    }
    __device__ __forceinline__ double2 pair(int e) const
    {
        return make_double2(d[e / 2][e % 2], d[e / 2][2 + e % 2]);
    }

    /* Sets d to beta W for the rows of the row tile, or to zero unless SUM. */
    template <bool SUM>
    __device__ __forceinline__ void begin(const double *w, double beta)
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;

        w += place(2 * t) * LD + first + 2 * g;
#pragma unroll
        for (int e = 0; e < 2 * NB; e++) {
            double2 v = make_double2(0.0, 0.0);

            if (SUM) v = *reinterpret_cast<const double2 *>(w + row(e) * LD);
            d[e / 2][e % 2] = SUM ? beta * v.x : 0.0;
            d[e / 2][2 + e % 2] = SUM ? beta * v.y : 0.0;
        }
    }

    /* Adds a X C to d for the rows of the row tile; k1 is the number of columns
     * of X. */
    __device__ __forceinline__ void multiply(const double *x, int k1)
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        /* This lane's last element of X is the padding after an odd last
         * column.  It may be NaN and must not enter the product.  The padding
         * of W only enters the padding of Y. */
        bool beside = k1 == 8 * E - 7 + 2 * t;

        x += place(g) * LD + 2 * t;
#pragma unroll
        for (int s = 0; s < S; s++)
#pragma unroll
            for (int b = 0; b < NB; b++) {
                double f[4];

#pragma unroll
                for (int h = 0; h < 2; h++) {
                    if (2 * s + h >= E) continue;
                    double2 v = *reinterpret_cast<const double2 *>(
                        x + 8 * b * LD + 16 * s + 8 * h);

                    f[2 * h] = v.x;
                    f[2 * h + 1] = 2 * s + h + 1 == E && beside ? 0.0 : v.y;
                }
                if (2 * s + 1 == E) dmma16x8(d[b], c[s], f);
                else dmma16x16(d[b], c[s], f);
            }
    }

    /* Writes d, the rows of the row tile, to Y from row `from` on. */
    __device__ __forceinline__ void put(const task &o, int64_t from) const
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        int left = o.wide - first - 2 * g;
        double *y = o.y + from * (int64_t)o.ldy +
                    (place(2 * t) * o.ldy + first + 2 * g);

        if (from + 8 * NB <= o.in.n && o.wide % 2 == 0) {
#pragma unroll
            for (int e = 0; e < 2 * NB; e++)
                if (left > 0) store_whole(y + row(e) * o.ldy, pair(e));
            return;
        }
#pragma unroll
        for (int e = 0; e < 2 * NB; e++)
            if (from + place(2 * t) + row(e) < o.in.n)
                store_pair<true>(y + row(e) * o.ldy, left, pair(e));
    }

    /* Stores d over the rows of W in shared memory. */
    __device__ __forceinline__ void keep(double *w) const
    {
        int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;

        w += place(2 * t) * LD + first + 2 * g;
#pragma unroll
        for (int e = 0; e < 2 * NB; e++)
            *reinterpret_cast<double2 *>(w + row(e) * LD) = pair(e);
    }

    /* Returns the sum of squares of a column of d, of column 2g in even lanes
     * and of 2g + 1 in odd ones. */
    __device__ __forceinline__ double squares() const
    {
        bool odd = threadIdx.x % 2 != 0;
        double sum[2] = {};

#pragma unroll
        for (int e = 0; e < 4 * NB; e++) {
            double v = d[e / 4][e % 4];

            sum[e / 2 % 2] = fma(v, v, sum[e / 2 % 2]);
        }
        return (odd ? sum[1] : sum[0]) +
               __shfl_xor_sync(all_lanes, odd ? sum[0] : sum[1], 1);
    }
};

} // namespace

#endif
