/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_rode.cuh - the kernels of sddmm_rode.cu, which compute samples alpha
 * u_i . v_j at the stored entries (i, j) of A.
 *
 * Item: at most 8 entries of one row, processed by a group of L lanes.  The
 * lanes divide the columns of U and V among them, C vectors of 16 bytes per
 * lane, L vectors apart; their part of the row of U stays in registers for all
 * entries of the item, the loads of rows of V of several entries are in flight
 * together, and the column indices are prefetched two items ahead.
 *
 * The 8 x L partial sums are reduced by recursive halving: at distance L/2,
 * ..., 1 a lane keeps the entries whose index has the lane's own bit and sends
 * the others, so that in the end it owns the entries l, l + L, ...: 8 - 8/L
 * exchanges instead of 8 log2 L, and contiguous stores.
 *
 * If R rows have the same columns (the unknowns of a node) a group processes
 * all of them and loads each row of V once: its item then contains R rows.
 *
 * There are two loops over items: one over the rows of a range, in which each
 * group advances independently, so that a long row delays no other group; and
 * one over the segments of long rows, one warp per segment.  If U and V have
 * more columns than the lanes of a group hold at once, they are processed in
 * slices of so many columns; the same lane owns an entry in all slices and adds
 * to the value that it stored before. */
#ifndef SPS_SDDMM_RODE_CUH
#define SPS_SDDMM_RODE_CUH

#include <cstring>

#include "formats/segments.h"
#include "cuda/sparse/sparse.cuh"

namespace {

constexpr int batch = 8;

struct pattern {
    int32_t nrow;
    const int32_t *__restrict__ rowptr32; /* the row offsets in 32 bits, or
                                             NULL */
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

/* The division of the rows into ranges.  Range r has rows range[r] .. range[r +
 * 1]-1 or, without a list, `each` groups of R rows.  Rows of more than `cut`
 * entries, and those in groups of `group` rows that do not have the same
 * columns, are processed as segments. */
struct ranges_of {
    const int64_t *__restrict__ range;
    const uint8_t *__restrict__ alike;  /* for each group of rows: whether they
                                           have the same columns; NULL: all
                                           groups have */
    int32_t each, cut, group;
};

/* How a slice is loaded.  FULL: it fills all lanes with aligned 16-byte
 * vectors.  SOME: aligned vectors, which some lanes do not have, and a tail of
 * single columns.  SINGLE: vectors of one number, for any alignment. */
enum form { FULL, SOME, SINGLE };

template <class T> struct sample {
    double alpha, beta;
    const T *__restrict__ u;
    int64_t ldu;
    const T *__restrict__ v;
    int64_t ldv;
    int d, slices, width;       /* d: number of columns; slices: number of
                                   slices; width: columns of each slice (the
                                   last ends at d) */
    bool multiply;
    T *__restrict__ out;
};

/* Loads *p without allocating in L1: columns are read only once and must not
 * evict rows of V. */
__device__ __forceinline__ int32_t once(const int32_t *p)
{
    int32_t v;

    asm volatile("ld.global.nc.L1::no_allocate.s32 %0, [%1];"
                 : "=r"(v) : "l"(p));
    return v;
}

/* W consecutive elements of a row. */
template <class T, int W> struct piece {
    T x[W];

    __device__ __forceinline__ void fetch(const T *p)
    {
        if (W == 1) {
            x[0] = __ldg(p);
        } else {
            int4 raw = __ldg(reinterpret_cast<const int4 *>(p));

            memcpy(x, &raw, sizeof x);
        }
    }
    __device__ __forceinline__ T dot(const piece &v, T sum) const
    {
#pragma unroll
        for (int e = 0; e < W; e++) sum = fma(x[e], v.x[e], sum);
        return sum;
    }
};

/* The columns of a slice that a lane processes: vectors at columns at[0 .. C-1]
 * and one tail column (there are at most as many as lanes).  A lane without a
 * vector or column loads an existing one and omits it from the sum. */
template <int W, int L, int C, form F> struct share {
    /* Two groups of 4 lanes load 128 bytes, which L1 delivers in one cycle
     * unless both groups request the same half of their cache lines: so every
     * other group loads its second vector first. */
    static constexpr bool crossed = W > 1 && L == 4 && C == 2;
    int at[C], tail;
    bool has[C], ends, tailed;

    __device__ __forceinline__ share(int from, int end)
    {
        int l = (int)threadIdx.x % L, whole = (end - from) / W;

#pragma unroll
        for (int w = 0; w < C; w++) {
            int turn = l + (crossed ? w ^ (int)(threadIdx.x / L & 1) : w) * L;

            has[w] = F == FULL || turn < whole;
            at[w] = from + (has[w] ? turn * W : 0);
        }
        tailed = F == SOME && (end - from) % W > 0;
        tail = from + whole * W + l;
        ends = F == SOME && tail < end;
    }
    /* at[w] as base(w) + offset(w), which takes few registers and
     * instructions. */
    __device__ __forceinline__ int base(int w) const
    {
        return at[F == FULL ? 0 : w];
    }
    __device__ __forceinline__ int beyond(int w) const
    {
        if (F != FULL) return 0;
        return crossed && w > 0 ? at[w] - at[0] : w * L * W;
    }
};

/* An item: up to 8 entries of a row (or of R rows with the same columns).  All
 * members but col are equal in the L lanes of a group.  In lane l, col holds
 * the columns of entries l, l + L, ... of the item; for entries that do not
 * exist 0, an existing row of V. */
template <int L> struct item {
    int32_t row;
    int count, length;          /* count: entries of each row in this item;
                                   length: distance of the R rows in the arrays
                                   of A, in entries */
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

/* Loop of group g of lanes over the rows (or R rows at once) first + g, first +
 * g + groups, ... of a range; the row offsets of the next row are loaded while
 * items of the present row are handed out.  LISTED: rows may be in groups that
 * do not have the same columns. */
template <int L, int R, bool LISTED> struct row_walk {
    const pattern &A;
    const ranges_of &ranges;
    int32_t i, stop, step;       /* in units of R rows: the next row, the one
                                    after the last, and the distance of this
                                    group's rows */
    int32_t row;                 /* the present row, whose entries are handed
                                    out */
    int64_t p, from;             /* first entries of the present and the next
                                    row */
    int left, length, coming;    /* entries left of the present row, its length,
                                    length of the next */

    __device__ __forceinline__ row_walk(const pattern &A,
                                        const ranges_of &ranges, int threads)
        : A(A), ranges(ranges), step(threads / L), row(0), p(0), left(0),
          length(0)
    {
        int64_t n = blockIdx.x, first = n * ranges.each;
        int64_t last = first + ranges.each;

        if (ranges.range) {
            first = ranges.range[n];
            last = ranges.range[n + 1];
        }
        stop = last < A.nrow / R ? (int32_t)last : A.nrow / R;
        i = (int32_t)first + (int32_t)threadIdx.x / L;
        look();
    }
    __device__ __forceinline__ bool alike() const
    {
        if (!LISTED || !ranges.alike) return true;
        return __ldg(ranges.alike + (R > 1 ? i : ranges.group == 2 ? i / 2
                                                                  : i / 3));
    }
    __device__ __forceinline__ void look()
    {
        from = 0;
        coming = 0;
        if (i < stop && alike()) {
            int64_t entries;

            from = A.begin(i * R);
            entries = A.begin(i * R + 1) - from;
            coming = entries <= ranges.cut ? (int)entries : 0;
        }
    }
    /* Finds the next item of this group, possibly empty; returns false if no
     * group of the warp has more. */
    __device__ __forceinline__ bool next(item<L> *it)
    {
        bool more;

        if (left <= 0 && i < stop) {
            row = i * R;
            p = from;
            left = length = coming;
            i += step;
            look();
        }
        it->row = row;
        it->p = p;
        it->count = left < batch ? left : batch;
        it->length = length;
        it->columns(A);
        more = left > 0 || i < stop;
        p += batch;
        left -= batch;
        return __any_sync(all_lanes, more);
    }
};

/* Loop of a warp over a segment: its groups take items in turn. */
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
        it->length = 0;
        it->columns(A);
        p += 32 / L * batch;
        left -= 32 / L * batch;
        return __any_sync(all_lanes, more);
    }
};

/* Returns the address of row j of V; with a 32-bit stride the address takes one
 * instruction. */
template <form F, class T>
__device__ __forceinline__ const T *row_of(const T *v, int64_t ldv, int32_t j)
{
    uint32_t step = (uint32_t)(ldv * (int64_t)sizeof(T));

    if (F == SINGLE) return v + j * ldv;
    return (const T *)((const char *)v + (uint64_t)(uint32_t)j * step);
}

/* sum[r][e] += u_r . v_e, restricted to the columns of this lane, for row r and
 * entry e of the item.  For entries that do not exist the sums use existing
 * numbers and are not stored. */
template <class T, int W, int L, int C, int R, form F>
__device__ __forceinline__ void products(const sample<T> &s,
                                         const item<L> &it,
                                         const share<W, L, C, F> &own,
                                         T (*sum)[batch])
{
    /* 16-byte loads of V that a lane has in flight: as many as registers
     * allow. */
    constexpr bool few = R > 1 ? sizeof(T) * C == 16
                               : sizeof(T) == 4 && L * C * W > 32;
    constexpr int deep = (few ? 4 : 8) * 16 / (int)sizeof(T) / W / C;
    constexpr int unroll = deep < batch ? deep : batch;
    const T *row = s.u + it.row * s.ldu;
    piece<T, W> u[R][C];

#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int w = 0; w < C; w++)
            u[r][w].fetch(row + r * s.ldu + own.at[w]);
#pragma unroll
    for (int e0 = 0; e0 < batch; e0 += unroll) {
        piece<T, W> v[unroll][C];

#pragma unroll
        for (int e = 0; e < unroll; e++) {
            int32_t j = __shfl_sync(all_lanes, it.col[(e0 + e) / L],
                                    (e0 + e) % L, L);
#pragma unroll
            for (int w = 0; w < C; w++)
                v[e][w].fetch(row_of<F>(s.v + own.base(w), s.ldv, j) +
                              own.beyond(w));
        }
#pragma unroll
        for (int e = 0; e < unroll; e++)
#pragma unroll
            for (int w = 0; w < C; w++)
#pragma unroll
                for (int r = 0; r < R; r++)
                    if (own.has[w])
                        sum[r][e0 + e] = u[r][w].dot(v[e][w], sum[r][e0 + e]);
    }
    if (F == SOME && own.tailed) {
        T last = own.ends ? __ldg(row + own.tail) : T(0);

#pragma unroll
        for (int e = 0; e < batch; e++) {
            int32_t j = __shfl_sync(all_lanes, it.col[e / L], e % L, L);

            if (own.ends)
                sum[0][e] = fma(last, __ldg(row_of<F>(s.v + own.tail, s.ldv,
                                                      j)), sum[0][e]);
        }
    }
}

/* Recursive halving: adds sum[e] of entry e over the L lanes; lane l ends with
 * the entries l, l + L, ... in sum[0], sum[L], .... */
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
                                      const item<L> &it, int64_t first,
                                      T beta, const T *sum)
{
#pragma unroll
    for (int e = 0; e < batch / L; e++) {
        int number = (int)threadIdx.x % L + e * L;

        if (number < it.count) {
            int64_t p = first + number;
            T r = (T)s.alpha * sum[e * L];

            if (s.multiply) r *= (T)A.value(p);
            s.out[p] = beta != 0 ? fma(beta, s.out[p], r) : r;
        }
    }
}

/* Computes the samples of all items that `walk` gives, for the columns from ..
 * end-1. */
template <class T, int W, int L, int C, int R, form F, class walk_of>
__device__ __forceinline__ void one_slice(const pattern &A, const sample<T> &s,
                                      int from, int end, walk_of walk)
{
    share<W, L, C, F> own(from, end);
    T beta = from > 0 ? T(1) : (T)s.beta;
    /* Columns are prefetched two items ahead. */
    item<L> now, second, third;
    bool more = walk.next(&now), two = walk.next(&second);

    while (more) {
        bool three = walk.next(&third);
        T sum[R][batch] = {};

        products<T, W, L, C, R, F>(s, now, own, sum);
#pragma unroll
        for (int r = 0; r < R; r++) {
            halve<T, L>(sum[r]);
            store<T, L>(A, s, now, now.p + (int64_t)r * now.length, beta,
                        sum[r]);
        }
        now = second;
        second = third;
        more = two;
        two = three;
    }
}

template <class T, int W, int L, int C, int R, form F, class walk_of>
__device__ __forceinline__ void all_slices(const pattern &A, const sample<T> &s,
                                       const walk_of &walk)
{
    for (int t = 0; t < s.slices; t++) {
        int from = t * s.width, end = t + 1 < s.slices ? from + s.width : s.d;

        one_slice<T, W, L, C, R, F>(A, s, from, end, walk);
    }
}

template <class T, int W, int L, int C, int R, form F, int threads>
__global__ void __launch_bounds__(threads)
rows_kernel(pattern A, sample<T> s, ranges_of ranges)
{
    constexpr bool listed = R > 1 || F != FULL;

    all_slices<T, W, L, C, R, F>(A, s,
                             row_walk<L, R, listed>(A, ranges, threads));
}

template <class T, int W, int L, int C, form F, int threads>
__global__ void __launch_bounds__(threads)
segments_kernel(pattern A, sample<T> s, const sps_segment *segment,
                int64_t count)
{
    int64_t n = (int64_t)blockIdx.x * (threads / 32) + threadIdx.x / 32;

    if (n < count)
        all_slices<T, W, L, C, 1, F>(A, s, segment_walk<L>(A, segment[n]));
}

/* val = beta val, for alpha = 0: U, V and A are not read. */
template <class T>
__global__ void __launch_bounds__(256)
scale_samples(double beta, T *val, int64_t nnz)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (p < nnz) val[p] = beta != 0 ? (T)beta * val[p] : T(0);
}

} // namespace

#endif
