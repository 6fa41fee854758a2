/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode.cuh - the kernels of spmm.rode.
 *
 * Lanes: L lanes of a warp process a row of X or Y, each with C vectors
 * (vectors.cuh) of W numbers (16 bytes, or one number if the blocks are not
 * aligned); vector q of lane l begins at column W (l + L q) of the slice, so
 * each load of the L lanes is contiguous.
 *
 * rows_kernel: L lanes per row of A, neighbouring rows in neighbouring lanes.
 * The lanes load entries together, one batch ahead (prefetch), and exchange
 * them by shuffles.  A thread block processes ranges of consecutive rows, so
 * that neighbouring rows share rows of X in L1.
 * segments_kernel: one warp per segment of a long row, 32 / L entries at a
 * time; their sums are added by a tree over the lanes.
 * joins_kernel: adds the partial sums of rows that have several segments.
 *
 * No atomics; the order of all sums is fixed by the plan. */
#ifndef SPS_CUDA_SPMM_RODE_CUH
#define SPS_CUDA_SPMM_RODE_CUH

#include "cuda/sparse/vectors.cuh"
#include "formats/segments.h"

namespace {

/* The division of the rows into ranges: range r has rows first[r] .. first[r +
 * 1] - 1 or, without a list, `run` rows. */
struct ranges_of {
    const int64_t *__restrict__ first;   /* list of count + 1 rows, or NULL */
    const uint8_t *__restrict__ alike;   /* for each group of rows: whether they
                                            have the same columns; NULL: all
                                            groups have */
    int count, run, group;
    int cut;                             /* rows of more entries are processed
                                            as segments */
};

/* Loads v = *p without allocating in L1: A is read only once and must not evict
 * rows of X.  If `some` is false nothing is read and v is unchanged.  The load
 * is predicated, since a branch would wait for earlier loads. */
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

/* Number of rows of X for which a lane has loads in flight: 8 loads, as
 * registers allow. */
template <int C, int W>
constexpr int depth = W == 1 ? (C > 8 ? 1 : C > 4 ? 2 : 4)
                             : (C == 1 ? 8 : C == 2 ? 4 : 2);

/* FULL: columns fill all vectors of all lanes.  PADDED: there is memory after
 * the columns of every row, and lanes without a column load the last vector
 * again, which touches no additional sector.  BARE: after the last row of X
 * there may be no memory, and each load is tested. */
enum form { FULL, PADDED, BARE };

/* Returns the index of the vector that a lane loads as its q-th.  Two groups of
 * 4 lanes load 128 bytes, which L1 delivers in one cycle unless both request
 * the same half of a cache line: so every other group loads its second vector
 * first. */
template <int L, int C, int W, form F>
__device__ __forceinline__ int turn(int q, int sub)
{
    return F == FULL && L == 4 && C == 2 ? q ^ (sub & 1) : q;
}

/* Returns the number of columns in this lane's q-th vector of W, if `left`
 * columns remain from the lane's first one on.  The result may exceed W (a full
 * vector) or be <= 0 (an empty one).  With W > 1 only the last vector, q = C -
 * 1, can be partial: the shape is chosen so. */
template <int L, int C, int W, form F>
__device__ __forceinline__ int part(int left, int q)
{
    return F == FULL || (W > 1 && q < C - 1) ? W : left - W * L * q;
}

/* The addresses of a lane's vectors in a row of X, the first at column c:
 * offsets from one address, or (PADDED) one address each; the slice ends at
 * column `end`. */
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

/* Loads v[u] = this lane's vectors of row j[u] of X, or zeros if j[u] < 0;
 * `left` columns remain at the lane's first; stride in bytes.  ALL: no j is
 * negative.  A partially filled vector is loaded whole, in one access instead
 * of two: the numbers after the columns are in memory, except in the last row,
 * and enter no result. */
template <int L, int C, int W, form F, int U, bool ALL, class T, class S>
__device__ __forceinline__ void gather(const int32_t *j,
                                       const places<L, C, W, F, T> &x,
                                       S stride, int left, int sub,
                                       int32_t last, vec<T, W> (*v)[C])
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

/* The position of a warp in its loop: rows base .. base + P - 1 of range r,
 * slice s of the columns.  I: a type wide enough for indices of rows and
 * entries. */
template <int P, class I> struct walker {
    const ranges_of &ranges;
    I base, last, nrow;
    int r, s, slices;

    __device__ __forceinline__ walker(const ranges_of &of, I rows, int n)
        : ranges(of), nrow(rows), r((int)blockIdx.x), s(0), slices(n)
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
    /* Advances to the next slice or range while the present one has no rows
     * left. */
    __device__ __forceinline__ void settle()
    {
        while (base >= last && !done()) {
            if (++s == slices) {
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

/* acc[r] += times[r] X(now) for a batch of entries, held by the L lanes, from
 * entry `done` of R rows on.  From entry `least` on, some row of the warp has
 * no entries; from `most` on, none has. */
template <int L, int C, int W, form F, int U, int R, int BATCH, class T,
          class V, class S>
__device__ __forceinline__ void
add_batch(const int32_t *now, const V (*times)[BATCH / L],
          const places<L, C, W, F, T> &x, S stride, int left, int sub,
          int32_t last_row, int done, int least, int most,
          vec<T, W> (*acc)[C])
{
#pragma unroll
    for (int e0 = 0; e0 < BATCH; e0 += U) {
        vec<T, W> v[U][C];
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

/* Stores the sums of the R rows from row on, in this lane's columns from c
 * on. */
template <int L, int C, int W, form F, int R, class T, class I>
__device__ __forceinline__ void
finish_rows(const blocks<T> &b, I row, int c, int left, int room, int sub,
            const vec<T, W> (*acc)[C])
{
    blocks<T> f = b;

    f.resolve();               /* loads the scalars here, where registers are
                                  not the limit */
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

/* Finds row, the first of the R rows that the lanes `sub` of the warp process
 * next, and p, its first entry.  Returns the number of its entries; -1: there
 * is no row, or it is processed as segments. */
template <int R, int P, class I, class V>
__device__ __forceinline__ int find_rows(const matrix<I, V> &A,
                                         const ranges_of &ranges,
                                         const walker<P, I> &at, int sub,
                                         I &row, I &p)
{
    row = at.base + sub;
    if (at.done() || row >= at.last) return -1;
    if (ranges.alike &&
        !__ldg(ranges.alike + (R > 1 ? row : row / ranges.group)))
        return -1;
    row *= R;
    p = __ldg(A.rowptr + row);
    I n = __ldg(A.rowptr + row + 1) - p;
    return n <= ranges.cut ? (int)n : -1;
}

/* Loads the entries done .. done + L OWN - 1 of R rows of `count` entries that
 * begin at `from`: this lane's columns and values. */
template <int L, int R, int OWN, class I, class V>
__device__ __forceinline__ void load_entries(const matrix<I, V> &A, I from,
                                             int count, int done,
                                             int32_t *col, V (*val)[OWN])
{
    int l = (int)threadIdx.x % L;

#pragma unroll
    for (int e = 0; e < OWN; e++) {
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
}

/* Computes the rows of Y that are not processed as segments. width: columns of
 * a slice, at most W L C and a multiple of W; stride: bytes between rows of X.
 * R: the L lanes process R rows that have the same columns, and load each row
 * of X once for all of them; the ranges then count groups of R rows, and rows
 * of groups that do not have the same columns are processed as segments. */
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
    int32_t col[own];
    V val[R][own];

    int length = find_rows<R>(A, ranges, at, sub, row, p);
    load_entries<L, R, own>(A, p, length, 0, col, val);
    while (!at.done()) {
        vec<T, W> acc[R][C] = {};
        I here = p, i = row;
        int mine = length, c = at.s * width + W * l;
        int end = min(b.k, (at.s + 1) * width), left = end - c;
        int room = (end < b.k ? end : b.room) - c;
        const places<L, C, W, F, T> x(b, c, end);
        /* All rows of a warp take as many batches as its longest row. */
        int most = __reduce_max_sync(all_lanes, mine);
        int least = __reduce_min_sync(all_lanes, mine);

        at.advance();
        length = find_rows<R>(A, ranges, at, sub, row, p);
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

            if (more)
                load_entries<L, R, own>(A, here, mine, done + batch, col, val);
            else
                load_entries<L, R, own>(A, p, length, 0, col, val);
            add_batch<L, C, W, F, U, R, batch>(now, times, x, stride, left,
                                               sub, last_row, done, least,
                                               most, acc);
            if (!more) break;
        }
        if (mine >= 0)
            finish_rows<L, C, W, F, R>(b, i, c, left, room, sub, acc);
    }
}

/* The list of segments; the partial sums of slot t are at part + t ld. */
template <class T> struct pieces_of {
    const sps_segment *__restrict__ segment;
    int64_t count;
    T *__restrict__ part;
    int64_t ld;
};

/* Adds up the sums of the 32 / L groups of lanes of a warp; all lanes get the
 * totals. */
template <int L, int C, int W, class T>
__device__ __forceinline__ void sum_groups(vec<T, W> *acc)
{
#pragma unroll
    for (int d = L; d < 32; d *= 2)
#pragma unroll
        for (int q = 0; q < C; q++)
#pragma unroll
            for (int w = 0; w < W; w++)
                acc[q].v[w] += __shfl_xor_sync(all_lanes, acc[q].v[w], d);
}

/* acc += times X(now) for 32 entries of a segment, one in each lane, from entry
 * `done` of `length` on: group g of L lanes adds entries g, g + 32 / L, ... */
template <int L, int C, int W, form F, class T, class V, class S>
__device__ __forceinline__ void
add_entries(int32_t now, V times, const places<L, C, W, F, T> &x, S stride,
            int left, int group, int32_t last_row, int done, int length,
            vec<T, W> *acc)
{
    constexpr int P = 32 / L, steps = 32 / P;
    constexpr int U = depth<C, W> < steps ? depth<C, W> : steps;

#pragma unroll
    for (int e0 = 0; e0 < steps; e0 += U) {
        vec<T, W> v[U][C];
        int32_t j[U];

        if (done + e0 * P >= length) break;
#pragma unroll
        for (int u = 0; u < U; u++)
            j[u] = __shfl_sync(all_lanes, now, (e0 + u) * P + group);
        if (done + (e0 + U) * P <= length)
            gather<L, C, W, F, U, true>(j, x, stride, left, group, last_row, v);
        else
            gather<L, C, W, F, U, false>(j, x, stride, left, group, last_row,
                                         v);
#pragma unroll
        for (int u = 0; u < U; u++)
            add<C, W>((T)__shfl_sync(all_lanes, times, (e0 + u) * P + group),
                      v[u], acc);
    }
}

/* Stores the sums of segment s in this lane's columns, from c on: to Y if it is
 * the whole row, else to its slot of the partial sums. */
template <int L, int C, int W, form F, class T>
__device__ __forceinline__ void
finish_segment(const padded_blocks<T> &b, const pieces_of<T> &list,
               const sps_segment &s, int c, int left, int room,
               const vec<T, W> *acc)
{
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

/* Computes the partial sums of segments of long rows, one warp per segment;
 * blockIdx.y is the slice of columns. */
template <int L, int C, int W, form F, class T, class V, class S>
__global__ void __launch_bounds__(256)
segments_kernel(const int32_t *__restrict__ cols, const V *__restrict__ vals,
                int32_t last_row, padded_blocks<T> b, pieces_of<T> list,
                int width, S stride)
{
    int lane = (int)threadIdx.x % 32, group = lane / L, l = lane % L;
    int64_t t = (int64_t)blockIdx.x * 8 + threadIdx.x / 32;
    int base = (int)blockIdx.y * width, c = base + W * l;
    int end = min(b.k, base + width), left = end - c;
    int room = (end < b.k ? end : b.room) - c;
    vec<T, W> acc[C] = {};

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
        add_entries<L, C, W, F>(now, times, x, stride, left, group, last_row,
                                done, s.length, acc);
    }
    sum_groups<L, C>(acc);
    if (group == 0)
        finish_segment<L, C, W, F>(b, list, s, c, left, room, acc);
}

/* Adds the partial sums of the segments of each long row, by one thread block
 * per row: `width` columns at a time, 256 / width threads per column, of which
 * thread g adds the slots g, g + 256 / width, ...; width divides 256. */
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
