/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_rode.cuh - the kernels of sddmm_rode.cu.
 *
 * Item: at most 8 entries of one row, for a group of L lanes.  The lanes share
 * the columns, C pieces of 16 bytes each, L pieces apart; their part of the
 * row of U stays in registers for the entries of the item, rows of V of
 * several entries are in flight together, the columns of the next item are
 * fetched meanwhile.
 *
 * The 8 x L partial sums are added by recursive halving: at distance L/2, ...,
 * 1 a lane keeps the entries whose number has its own bit and swaps the others
 * away, so that in the end it owns the entries l, l + L, ...: 8 - 8/L
 * exchanges and not 8 log2 L, and stores that lie together.  The sum of an
 * entry is the same tree in whatever item it came.
 *
 * Sources of items: a walk over the rows of a range, each group on its own, so
 * that a longer row makes no other group wait; and the segments of long rows,
 * a warp each.  Blocks wider than a strip are walked once a strip, each entry
 * by the same lane, which adds to what it stored before. */
#ifndef SPS_SDDMM_RODE_CUH
#define SPS_SDDMM_RODE_CUH

#include <cstring>

#include "kernels/formats/segments.h"
#include "sparse.cuh"

namespace {

constexpr int batch = 8;
/* Pieces of V that a lane has under way. */
constexpr int flight = 8;

struct pattern {
    int32_t nrow;
    const int32_t *__restrict__ rowptr32; /* or NULL */
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
    const void *__restrict__ val;
    bool single;

    __device__ __forceinline__ int64_t begin(int32_t i) const
    {
        return rowptr32 ? (int64_t)__ldg(rowptr32 + i) : __ldg(rowptr + i);
    }
    __device__ __forceinline__ double value(int64_t p) const
    {
        return single ? (double)__ldg((const float *)val + p)
                      : __ldg((const double *)val + p);
    }
};

/* Range r: rows range[r] .. range[r + 1]-1, or `each` rows when there is no
 * list.  Rows beyond cut are left to segments. */
struct ranges_of {
    const int64_t *__restrict__ range;
    int32_t each;
    int32_t cut;
};

template <class T> struct sample {
    double alpha, beta;
    const T *__restrict__ u;
    int64_t ldu;
    const T *__restrict__ v;
    int64_t ldv;
    uint32_t stepv;             /* ldv in bytes, where FULL */
    int d, width;               /* columns, of a strip */
    bool multiply, aligned;
    T *__restrict__ out;
};

/* Columns are read once: they need not push rows of V out of L1. */
__device__ __forceinline__ int32_t once(const int32_t *p)
{
    int32_t v;

    asm volatile("ld.global.nc.L1::no_allocate.s32 %0, [%1];" : "=r"(v) : "l"(p));
    return v;
}

/* 16 bytes of a row. */
template <class T> struct piece {
    static constexpr int width = 16 / sizeof(T);
    T x[width];

    __device__ __forceinline__ void fetch(const T *p)
    {
        int4 raw = __ldg(reinterpret_cast<const int4 *>(p));

        memcpy(x, &raw, sizeof x);
    }
    /* Of the numbers at p, `left` belong to the row; the others are zero and
     * not read. */
    __device__ __forceinline__ void fetch(const T *p, int left, bool aligned)
    {
        if (aligned && left >= width) {
            fetch(p);
            return;
        }
#pragma unroll
        for (int e = 0; e < width; e++) x[e] = e < left ? __ldg(p + e) : T(0);
    }
    __device__ __forceinline__ T dot(const piece &v, T sum) const
    {
#pragma unroll
        for (int e = 0; e < width; e++) sum = fma(x[e], v.x[e], sum);
        return sum;
    }
};

/* The same in the L lanes of a group but for col: lane l has the entries
 * l, l + L, ...; 0 where there is no such entry, a row of V that is there. */
template <int L> struct item {
    int32_t row;
    int count;
    int64_t p;
    int32_t col[batch / L];

    __device__ __forceinline__ void columns(const pattern &A)
    {
#pragma unroll
        for (int e = 0; e < batch / L; e++) {
            int number = (int)threadIdx.x % L + e * L;

            col[e] = number < count ? once(A.col + (p + number)) : 0;
        }
    }
};

/* Rows first + g, first + g + groups, ... of a range for group g; the bounds
 * of the next row are under way while the present one is handed out. */
template <int L> struct row_walk {
    const pattern &A;
    int32_t i, stop, step, cut;  /* the coming row */
    int32_t row;                 /* the present one */
    int64_t p, from;             /* entries of the present and coming row */
    int left, coming;            /* how many of them */

    __device__ __forceinline__ row_walk(const pattern &A, const ranges_of &R,
                                        int threads)
        : A(A), step(threads / L), cut(R.cut), row(0), p(0), left(0)
    {
        int64_t r = blockIdx.x, first = r * R.each, last = first + R.each;

        if (R.range) {
            first = R.range[r];
            last = R.range[r + 1];
        }
        stop = (int32_t)(last < A.nrow ? last : A.nrow);
        i = (int32_t)first + (int32_t)threadIdx.x / L;
        look();
    }
    __device__ __forceinline__ void look()
    {
        from = 0;
        coming = 0;
        if (i < stop) {
            int64_t length;

            from = A.begin(i);
            length = A.begin(i + 1) - from;
            coming = length <= cut ? (int)length : 0;
        }
    }
    /* The next item of this group, maybe an empty one; false: no group of the
     * warp has more. */
    __device__ __forceinline__ bool next(item<L> *it)
    {
        bool more;

        if (left <= 0 && i < stop) {
            row = i;
            p = from;
            left = coming;
            i += step;
            look();
        }
        it->row = row;
        it->p = p;
        it->count = left < batch ? left : batch;
        it->columns(A);
        more = left > 0 || i < stop;
        p += batch;
        left -= batch;
        return __any_sync(all_lanes, more);
    }
};

/* A segment by a warp: its groups take items in turn. */
template <int L> struct segment_walk {
    const pattern &A;
    int32_t row;
    int64_t p;
    int left;

    __device__ __forceinline__ segment_walk(const pattern &A,
                                            const sps_segment &s)
        : A(A), row((int32_t)s.row), p(s.start), left(s.length)
    {
        int skip = (int)threadIdx.x % 32 / L * batch;

        p += skip;
        left -= skip;
    }
    __device__ __forceinline__ bool next(item<L> *it)
    {
        bool more = left > 0;

        it->row = row;
        it->p = p;
        it->count = left < batch ? left : batch;
        it->columns(A);
        p += 32 / L * batch;
        left -= 32 / L * batch;
        return __any_sync(all_lanes, more);
    }
};

/* sum[e] += u . v_e over the columns c, c + L pieces, ... of this lane, C of
 * them.  FULL: they are all there and aligned, and nothing needs a test: where
 * there is no entry a sum is made of numbers that exist and not stored. */
template <class T, int L, int C, bool FULL>
__device__ __forceinline__ void products(const sample<T> &s,
                                         const item<L> &it, int c, int end,
                                         T *sum)
{
    constexpr int step = L * piece<T>::width, deep = flight / C;
    constexpr int unroll = deep < batch ? deep : batch;
    const T *at = s.u + it.row * s.ldu + c;
    piece<T> u[C];

#pragma unroll
    for (int w = 0; w < C; w++) {
        if (FULL) u[w].fetch(at + w * step);
        else
            u[w].fetch(at + w * step, it.count > 0 ? end - c - w * step : 0,
                       s.aligned);
    }
#pragma unroll
    for (int e0 = 0; e0 < batch; e0 += unroll) {
        piece<T> v[unroll][C];

#pragma unroll
        for (int e = 0; e < unroll; e++) {
            int number = e0 + e;
            int32_t j = __shfl_sync(all_lanes, it.col[number / L],
                                    number % L, L);

            if (FULL) {
                at = (const T *)((const char *)(s.v + c) +
                                 (uint64_t)(uint32_t)j * s.stepv);
#pragma unroll
                for (int w = 0; w < C; w++) v[e][w].fetch(at + w * step);
            } else {
                at = s.v + j * s.ldv + c;
#pragma unroll
                for (int w = 0; w < C; w++)
                    v[e][w].fetch(at + w * step, number < it.count
                                  ? end - c - w * step : 0, s.aligned);
            }
        }
#pragma unroll
        for (int e = 0; e < unroll; e++)
#pragma unroll
            for (int w = 0; w < C; w++)
                sum[e0 + e] = u[w].dot(v[e][w], sum[e0 + e]);
    }
}

/* Recursive halving: sum[e] of entry e over the L lanes; lane l ends with the
 * entries l, l + L, ... in sum[0], sum[L], .... */
template <class T, int L> __device__ __forceinline__ void halve(T *sum)
{
#pragma unroll
    for (int half = L / 2; half > 0; half /= 2) {
        bool upper = ((int)threadIdx.x & half) != 0;

#pragma unroll
        for (int e = 0; e < batch; e += L)
#pragma unroll
            for (int x = e; x < e + half; x++) {
                T keep = upper ? sum[x + half] : sum[x];
                T give = upper ? sum[x] : sum[x + half];

                sum[x] = keep + __shfl_xor_sync(all_lanes, give, half);
            }
    }
}

template <class T, int L>
__device__ __forceinline__ void store(const pattern &A, const sample<T> &s,
                                      const item<L> &it, T beta, const T *sum)
{
#pragma unroll
    for (int e = 0; e < batch / L; e++) {
        int number = (int)threadIdx.x % L + e * L;

        if (number < it.count) {
            int64_t p = it.p + number;
            T r = (T)s.alpha * sum[e * L];

            if (s.multiply) r *= (T)A.value(p);
            s.out[p] = beta != 0 ? fma(beta, s.out[p], r) : r;
        }
    }
}

/* All items of a walk, for the columns of the strip that begins at `from`. */
template <class T, int L, int C, bool FULL, class W>
__device__ __forceinline__ void strip(const pattern &A, const sample<T> &s,
                                      int from, W walk)
{
    int c = from + (int)threadIdx.x % L * piece<T>::width;
    int end = from + s.width < s.d ? from + s.width : s.d;
    T beta = from > 0 ? T(1) : (T)s.beta;
    /* Columns are asked for two items ahead. */
    item<L> now, second, third;
    bool more = walk.next(&now), two = walk.next(&second);

    while (more) {
        bool three = walk.next(&third);
        T sum[batch] = {};

        products<T, L, C, FULL>(s, now, c, end, sum);
        halve<T, L>(sum);
        store<T, L>(A, s, now, beta, sum);
        now = second;
        second = third;
        more = two;
        two = three;
    }
}

template <class T, int L, int C, bool FULL, int threads>
__global__ void __launch_bounds__(threads)
rows_kernel(pattern A, sample<T> s, ranges_of R)
{
    for (int from = 0; from < s.d; from += s.width)
        strip<T, L, C, FULL>(A, s, from, row_walk<L>(A, R, threads));
}

template <class T, int L, int C, bool FULL, int threads>
__global__ void __launch_bounds__(threads)
segments_kernel(pattern A, sample<T> s, const sps_segment *segment,
                int64_t count)
{
    int64_t n = (int64_t)blockIdx.x * (threads / 32) + threadIdx.x / 32;

    if (n >= count) return;
    for (int from = 0; from < s.d; from += s.width)
        strip<T, L, C, FULL>(A, s, from, segment_walk<L>(A, segment[n]));
}

/* alpha = 0: U, V and A are not read. */
template <class T>
__global__ void __launch_bounds__(256)
scale_samples(double beta, T *val, int64_t nnz)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (p < nnz) val[p] = beta != 0 ? (T)beta * val[p] : T(0);
}

} // namespace

#endif
