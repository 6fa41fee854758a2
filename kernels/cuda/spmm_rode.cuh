/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode.cuh - the kernels of spmm.rode.
 *
 * Lanes: L of a warp own a row of X or Y together, each with C lumps of W
 * numbers (16 bytes; one number where the blocks are not aligned); lump q of
 * lane l begins at column W (l + L q) of the strip, so that each load of the
 * L lanes is contiguous.
 *
 * rows_kernel: L lanes a row of A, neighbouring rows in neighbouring lanes.
 * Entries are fetched by the lanes together, a batch ahead, and passed by
 * shuffles.  A block of threads walks ranges of consecutive rows, so that
 * neighbours find each other's rows of X in L1.
 * segments_kernel: a warp for a piece of a long row, 32 / L entries at a time;
 * their sums are added by a tree over the lanes.
 * joins_kernel: adds up the pieces of rows that have several.
 *
 * No atomics; all sums in an order that the plan fixes. */
#ifndef SPS_CUDA_SPMM_RODE_CUH
#define SPS_CUDA_SPMM_RODE_CUH

#include "lumps.cuh"
#include "kernels/formats/segments.h"

namespace {

/* Ranges of rows: from a list, or run rows each. */
struct ranges_of {
    const int64_t *__restrict__ first;   /* count + 1, or NULL */
    const uint8_t *__restrict__ alike;   /* of groups of rows; NULL: all are */
    int count, run, group;
    int cut;                             /* longer rows are segments */
};

/* A is read once: it need not push rows of X out of L1.  Where `some` is false
 * nothing is read and v stays; by predicates, for a branch would wait for what
 * was loaded before. */
__device__ __forceinline__ void once(const int32_t *p, bool some, int32_t &v)
{
    asm("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "@q ld.global.nc.L1::no_allocate.s32 %0, [%1]; }"
        : "+r"(v) : "l"(p), "r"((int)some));
}
__device__ __forceinline__ void once(const double *p, bool some, double &v)
{
    asm("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "@q ld.global.nc.L1::no_allocate.f64 %0, [%1]; }"
        : "+d"(v) : "l"(p), "r"((int)some));
}
__device__ __forceinline__ void once(const float *p, bool some, float &v)
{
    asm("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "@q ld.global.nc.L1::no_allocate.f32 %0, [%1]; }"
        : "+f"(v) : "l"(p), "r"((int)some));
}

/* How many rows of X a lane has under way: 8 loads, as registers allow. */
template <int C, int W>
constexpr int depth = W == 1 ? (C > 8 ? 1 : C > 4 ? 2 : 4)
                             : (C == 1 ? 8 : C == 2 ? 4 : 2);

/* Columns fill all lumps of all lanes; or behind those that are, there is
 * memory in every row, and lanes without a column load the last lump again,
 * which touches no sector more; or there may be nothing behind the last row of
 * X, and each load is tested. */
enum form { FULL, PADDED, BARE };

/* Which lump a lane takes at turn q.  Two groups of 4 lanes make 128 bytes,
 * what L1 gives in a cycle unless both ask for the same half of a line: so
 * every other group takes the second lump first. */
template <int L, int C, int W, form F>
__device__ __forceinline__ int turn(int q, int sub)
{
    return F == FULL && L == 4 && C == 2 ? q ^ (sub & 1) : q;
}

/* Columns of the lump at turn q, at most W of interest, where `left` are left
 * at the lane's first.  Lumps of several numbers are all whole but those at the
 * highest numbers: so shapes are chosen. */
template <int L, int C, int W, form F>
__device__ __forceinline__ int part(int left, int q)
{
    return F == FULL || (W > 1 && q < C - 1) ? W : left - W * L * q;
}

/* Where the lumps of a lane, the first at column c, begin in a row of X: all
 * from there on, or each by itself; `end` columns. */
template <int L, int C, int W, form F, class T> struct places {
    const char *x[F == PADDED ? C : 1];

    __device__ __forceinline__ places(const blocks<T> &b, int c, int end)
    {
        const int last = (end - 1) / W * W;

        x[0] = reinterpret_cast<const char *>(b.x + c);
        if (F == PADDED)
#pragma unroll
            for (int q = 0; q < C; q++)
                x[q] = reinterpret_cast<const char *>(b.x +
                                                      min(c + W * L * q, last));
    }
    __device__ __forceinline__ const T *at(int q, int sub, uint64_t row) const
    {
        return reinterpret_cast<const T *>(x[F == PADDED ? q : 0] + row) +
               (F == PADDED ? 0 : W * L * turn<L, C, W, F>(q, sub));
    }
};

/* v[u] = this lane's lumps of row j[u] of X, zero where j[u] < 0; `left`
 * columns remain at the lane's first; stride in bytes.  ALL: no j is negative.
 * A lump that columns fill in part is loaded whole, which takes one access
 * instead of two: what follows the columns is in memory, but behind the last
 * row, and goes into no result. */
template <int L, int C, int W, form F, int U, bool ALL, class T, class S>
__device__ __forceinline__ void gather(const int32_t *j,
                                       const places<L, C, W, F, T> &x,
                                       S stride, int left, int sub,
                                       int32_t last, lump<T, W> (*v)[C])
{
#pragma unroll
    for (int u = 0; u < U; u++) {
        const uint64_t row = (uint64_t)(uint32_t)j[u] * stride;
        bool some = ALL || j[u] >= 0;

#pragma unroll
        for (int q = 0; q < C; q++) {
            int n = F == PADDED ? W : part<L, C, W, F>(left, q);

            if (W > 1 && F == BARE && n > 0 && j[u] < last) n = W;
            v[u][q] = fetch<W>(x.at(q, sub, row), some ? n : 0);
        }
    }
}

/* Where a warp is: rows base .. base + P - 1 of range r, strip s.  I: wide
 * enough for numbers of rows and entries. */
template <int P, class I> struct walker {
    const ranges_of &ranges;
    I base, last, nrow;
    int r, s, strips;

    __device__ __forceinline__ walker(const ranges_of &of, I rows, int n)
        : ranges(of), nrow(rows), r((int)blockIdx.x), s(0), strips(n)
    {
        open();
        settle();
    }
    __device__ __forceinline__ I begin(int range) const
    {
        if (ranges.first) return (I)__ldg(ranges.first + range);
        return range < ranges.count ? (I)range * ranges.run : nrow;
    }
    __device__ __forceinline__ void open()
    {
        base = last = 0;
        if (r >= ranges.count) return;
        base = begin(r) + (I)(threadIdx.x >> 5) * P;
        last = begin(r + 1);
    }
    __device__ __forceinline__ bool done() const { return r >= ranges.count; }
    /* To the next strip or range while there is nothing left in this one. */
    __device__ __forceinline__ void settle()
    {
        while (base >= last && !done()) {
            if (++s == strips) {
                s = 0;
                r += (int)gridDim.x;
            }
            open();
        }
    }
    __device__ __forceinline__ void advance()
    {
        base += (I)(blockDim.x >> 5) * P;
        settle();
    }
};

/* acc[r] += times[r] X(now) for the entries of R rows from number `done` on, a
 * batch that the L lanes hold; from `least` on some row of the warp has none,
 * from `most` on all. */
template <int L, int C, int W, form F, int U, int R, int BATCH, class T,
          class V, class S>
__device__ __forceinline__ void
add_batch(const int32_t *now, const V (*times)[BATCH / L],
          const places<L, C, W, F, T> &x, S stride, int left, int sub,
          int32_t last_row, int done, int least, int most,
          lump<T, W> (*acc)[C])
{
#pragma unroll
    for (int e0 = 0; e0 < BATCH; e0 += U) {
        lump<T, W> v[U][C];
        int32_t j[U];

        if (done + e0 >= most) break;
#pragma unroll
        for (int u = 0; u < U; u++)
            j[u] = __shfl_sync(all_lanes, now[(e0 + u) / L], (e0 + u) % L, L);
        if (done + e0 + U <= least)
            gather<L, C, W, F, U, true>(j, x, stride, left, sub, last_row, v);
        else
            gather<L, C, W, F, U, false>(j, x, stride, left, sub, last_row, v);
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int r = 0; r < R; r++)
                add<C, W>((T)__shfl_sync(all_lanes, times[r][(e0 + u) / L],
                                         (e0 + u) % L, L), v[u], acc[r]);
    }
}

/* The R rows from row on, their sums in this lane's columns from c on. */
template <int L, int C, int W, form F, int R, class T, class I>
__device__ __forceinline__ void
finish_rows(const blocks<T> &b, I row, int c, int left, int room, int sub,
            const lump<T, W> (*acc)[C])
{
    blocks<T> f = b;

    f.resolve();               /* here, where registers are not short */
#pragma unroll
    for (int r = 0; r < R; r++) {
        T *y = b.y + (int64_t)(row + r) * b.ldy + c;

#pragma unroll
        for (int q = 0; q < C; q++)
            finish<W>(f, row + r, y + W * L * turn<L, C, W, F>(q, sub),
                      part<L, C, W, F>(left, q), part<L, C, W, F>(room, q),
                      acc[r][q]);
    }
}

/* width: columns of a strip, at most W L C and a multiple of W; stride: bytes
 * from row to row of X.  R: the L lanes own R rows that store the same columns,
 * and load each row of X once for all of them; the ranges then count groups of
 * R rows, and groups that are not alike are segments, too. */
template <int THREADS, int L, int C, int W, form F, int U, int R, class T,
          class I, class V, class S>
__global__ void __launch_bounds__(THREADS)
rows_kernel(matrix<I, V> A, int32_t last_row, padded_blocks<T> b,
            ranges_of ranges, int width, S stride)
{
    constexpr int P = 32 / L, batch = L > 8 ? L : 8, own = batch / L;
    int sub = (int)threadIdx.x % 32 / L, l = (int)threadIdx.x % L;
    walker<P, I> at(ranges, (I)(A.nrow / R), (b.k + width - 1) / width);
    I p = 0, row = 0;
    int length = 0;            /* -1: no row, or another's */
    int32_t col[own];
    V val[R][own];

    auto bounds = [&]() {
        row = at.base + sub;
        length = -1;
        if (at.done() || row >= at.last) return;
        if (ranges.alike &&
            !__ldg(ranges.alike + (R > 1 ? row : row / ranges.group)))
            return;
        row *= R;
        p = __ldg(A.rowptr + row);
        I n = __ldg(A.rowptr + row + 1) - p;
        length = n <= ranges.cut ? (int)n : -1;
    };
    /* Entries number done .. done + batch - 1 of the rows that begin at
     * from. */
    auto entries = [&](I from, int count, int done) {
#pragma unroll
        for (int e = 0; e < own; e++) {
            int number = done + l + e * L;
            bool ok = number < count;

            col[e] = -1;
            once(A.col + (from + number), ok, col[e]);
#pragma unroll
            for (int r = 0; r < R; r++) {
                val[r][e] = V(0);
                once(A.val + (from + r * count + number), ok, val[r][e]);
            }
        }
    };

    bounds();
    entries(p, length, 0);
    while (!at.done()) {
        lump<T, W> acc[R][C] = {};
        I here = p, i = row;
        int mine = length, c = at.s * width + W * l;
        int end = min(b.k, (at.s + 1) * width), left = end - c;
        int room = (end < b.k ? end : b.room) - c;
        const places<L, C, W, F, T> x(b, c, end);
        /* All rows of a warp take as many batches as its longest. */
        int most = __reduce_max_sync(all_lanes, mine);
        int least = __reduce_min_sync(all_lanes, mine);

        at.advance();
        bounds();
        for (int done = 0;; done += batch) {
            int32_t now[own];
            V times[R][own];

#pragma unroll
            for (int e = 0; e < own; e++) {
                now[e] = col[e];
#pragma unroll
                for (int r = 0; r < R; r++) times[r][e] = val[r][e];
            }
            bool more = done + batch < most;

            if (more) entries(here, mine, done + batch);
            else entries(p, length, 0);
            add_batch<L, C, W, F, U, R, batch>(now, times, x, stride, left,
                                               sub, last_row, done, least,
                                               most, acc);
            if (!more) break;
        }
        if (mine >= 0)
            finish_rows<L, C, W, F, R>(b, i, c, left, room, sub, acc);
    }
}

/* The list of pieces; partial sums of slot t lie at part + t ld. */
template <class T> struct pieces_of {
    const sps_segment *__restrict__ segment;
    int64_t count;
    T *__restrict__ part;
    int64_t ld;
};

/* Sums over the 32 / L groups of a warp; all lanes get them. */
template <int L, int C, int W, class T>
__device__ __forceinline__ void sum_groups(lump<T, W> *acc)
{
#pragma unroll
    for (int d = L; d < 32; d *= 2)
#pragma unroll
        for (int q = 0; q < C; q++)
#pragma unroll
            for (int w = 0; w < W; w++)
                acc[q].v[w] += __shfl_xor_sync(all_lanes, acc[q].v[w], d);
}

/* A warp a segment; blockIdx.y counts strips. */
template <int L, int C, int W, form F, class T, class V, class S>
__global__ void __launch_bounds__(256)
segments_kernel(const int32_t *__restrict__ cols, const V *__restrict__ vals,
                int32_t last_row, padded_blocks<T> b, pieces_of<T> list,
                int width, S stride)
{
    constexpr int P = 32 / L, steps = 32 / P;
    constexpr int U = depth<C, W> < steps ? depth<C, W> : steps;
    int lane = (int)threadIdx.x % 32, group = lane / L, l = lane % L;
    int64_t t = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    int base = (int)blockIdx.y * width, c = base + W * l;
    int end = min(b.k, base + width), left = end - c;
    int room = (end < b.k ? end : b.room) - c;
    lump<T, W> acc[C] = {};

    if (t >= list.count) return;
    sps_segment s = list.segment[t];
    const places<L, C, W, F, T> x(b, c, end);
    const int32_t *pc = cols + s.start;
    const V *pv = vals + s.start;
    int32_t col = -1;
    V val = V(0);

    once(pc + lane, lane < s.length, col);
    once(pv + lane, lane < s.length, val);

    b.resolve();
    for (int done = 0; done < s.length; done += 32) {
        int32_t now = col;
        V times = val;
        int number = done + 32 + lane;

        col = -1;
        val = V(0);
        once(pc + number, number < s.length, col);
        once(pv + number, number < s.length, val);
#pragma unroll
        for (int e0 = 0; e0 < steps; e0 += U) {
            lump<T, W> v[U][C];
            int32_t j[U];

            if (done + e0 * P >= s.length) break;
#pragma unroll
            for (int u = 0; u < U; u++)
                j[u] = __shfl_sync(all_lanes, now, (e0 + u) * P + group);
            if (done + (e0 + U) * P <= s.length)
                gather<L, C, W, F, U, true>(j, x, stride, left, group, last_row,
                                            v);
            else
                gather<L, C, W, F, U, false>(j, x, stride, left, group,
                                             last_row, v);
#pragma unroll
            for (int u = 0; u < U; u++)
                add<C, W>((T)__shfl_sync(all_lanes, times,
                                         (e0 + u) * P + group), v[u], acc);
        }
    }
    sum_groups<L, C>(acc);
    if (group > 0) return;
#pragma unroll
    for (int q = 0; q < C; q++) {
        int some = part<L, C, W, F>(left, q);

        if (s.slot < 0) {
            finish<W>(b, s.row, b.y + s.row * b.ldy + c + W * L * q, some,
                      part<L, C, W, F>(room, q), acc[q]);
        } else {
#pragma unroll
            for (int w = 0; w < W; w++)
                if (w < some)
                    list.part[s.slot * list.ld + c + W * L * q + w] =
                        acc[q].v[w];
        }
    }
}

/* A block a row: `width` columns at a time, 256 / width threads for each,
 * thread g of which takes slots g, g + 256 / width, ...; width divides 256. */
template <class T>
__global__ void __launch_bounds__(256)
joins_kernel(const sps_join *__restrict__ join, pieces_of<T> list, blocks<T> b,
             int width)
{
    __shared__ T shared[256];
    sps_join row = join[blockIdx.x];
    int groups = 256 / width, g = (int)threadIdx.x / width;
    int c = (int)blockIdx.y * width + (int)threadIdx.x % width;
    const T *part = list.part + row.first * list.ld + c;
    T sum = T(0);

    b.resolve();
    if (c < b.k) {
#pragma unroll 4
        for (int s = g; s < row.count; s += groups)
            sum += __ldcg(part + s * list.ld);
    }
    shared[threadIdx.x] = sum;
    for (int half = groups / 2; half > 0; half /= 2) {
        __syncthreads();
        if (g < half) shared[threadIdx.x] += shared[threadIdx.x + half * width];
    }
    if (g == 0 && c < b.k) {
        T *y = b.y + row.row * b.ldy + c;

        *y = b.join(shared[threadIdx.x], y, row.row);
    }
}

} // namespace

#endif
