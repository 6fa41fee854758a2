/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tiles.cuh - the kernel of spmm.tiles: a warp a window of 8 rows, 16 Q
 * columns of X at a time (Q = 0: 8 of them).
 *
 * Operands are swapped and transposed (FlashSparse, Shi et al., PPoPP 2025):
 * with lane = 4 g + t the product D += A B of m16n8k8 takes
 *   A (16 x 8): rows of X, transposed; lane: columns 2 g and 2 g + 1 of the
 *               rows that slots t and t + 4 of the tile name;
 *   B (8 x 8):  the tile; lane: row g, slots t and t + 4;
 *   D (16 x 8): lane: columns 2 g and 2 g + 1 of rows 2 t and 2 t + 1.
 * 8 columns: two of m8n8k4, A half the tile, B the rows of X (lane: column g of
 * slot t), D columns 2 t and 2 t + 1 of row g.
 *
 * L1 looks up one line a cycle.  Loaded as the product wants it, each quarter
 * of a warp would touch 4 rows of X, 16 cycles for 512 bytes.  So 8
 * neighbouring lanes load 128 neighbouring bytes, 4 cycles, and 4 shuffles
 * transpose, 4 more.
 *
 * Values stand in the order of the lanes; lane l has bit l of a mask, and
 * number popc(mask & bits below l) of those that the mask stands for, or number
 * 0 of all, a zero.
 *
 * Nothing that is loaded is waited for before all of its batch is under way:
 * loads have no conditions, for behind one the compiler moves what came to
 * another register, and the move waits.
 *
 * A tile whose bits are clear multiplies by zero, so NaN and infinity in X
 * would reach all rows of a window.  A window with NaN in its sums is therefore
 * summed again row by row, like those that have no words. */
#ifndef SPS_CUDA_SPMM_TILES_CUH
#define SPS_CUDA_SPMM_TILES_CUH

#include "sparse.cuh"
#include "window_plan.h"

namespace {

/* I: offsets of A and of values. */
template <class I, class V> struct tiled {
    matrix<I, V> A;
    const sps_window *__restrict__ at;
    const int32_t *__restrict__ word;
    const V *__restrict__ val;
    const uint32_t *__restrict__ rest;
    int windows, bare, lead;
    int32_t longest;           /* longer rows are not ours */
};

template <int Q> constexpr int strip_of = Q > 0 ? 16 * Q : 8;
template <int Q> constexpr int lumps_in = Q > 0 ? Q : 1;

/* Of rows of X and Y: all columns of all strips are there, 16 bytes at a time;
 * the last strip has a rest of pairs; numbers come one by one. */
enum access { WHOLE, PAIRS, SINGLES };

/* Loads stand where they are written.  What is read once need not push rows of
 * X out of L1. */
__device__ __forceinline__ int32_t fetch_word(const int32_t *p)
{
    int32_t v;

    asm volatile("ld.global.nc.L1::no_allocate.s32 %0, [%1];"
                 : "=r"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ double fetch_number(const double *p)
{
    double v;

    asm volatile("ld.global.nc.f64 %0, [%1];" : "=d"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ float fetch_number(const float *p)
{
    float v;

    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
    return v;
}
__device__ __forceinline__ double2 fetch_both(const double *p)
{
    double2 v;

    asm volatile("ld.global.nc.v2.f64 {%0, %1}, [%2];"
                 : "=d"(v.x), "=d"(v.y) : "l"(p));
    return v;
}
__device__ __forceinline__ void bring_to_l2(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" :: "l"(p));
}

/* Window w; beyond the last, the last. */
template <class I> struct window_at {
    I value, entries;
    int tile, tiles;
    uint32_t rows;
};

template <class I, class V>
__device__ __forceinline__ window_at<I> open_window(const tiled<I, V> &m,
                                                    unsigned w)
{
    const int4 *at = reinterpret_cast<const int4 *>(m.at) +
                     min(w, (unsigned)m.windows - 1);
    const int4 a = __ldg(at), b = __ldg(at + 1);
    auto value = [](int4 v) {
        return (I)((uint64_t)(uint32_t)v.y << 32 | (uint32_t)v.x);
    };

    return { value(a), value(b) - value(a), a.z, b.z - a.z, (uint32_t)a.w };
}

/* Words and values of a window from memory to L2, as far as 32 lines of each
 * go. */
template <class I, class V>
__device__ __forceinline__ void expect_window(const tiled<I, V> &m,
                                              const window_at<I> &w)
{
    constexpr int line = 128 / sizeof(V);
    const int lane = (int)threadIdx.x % 32;

    if (line * lane < (int)w.entries + line - 1)
        bring_to_l2(m.val + w.value + line * lane);
    if (32 * lane < SPSI_WINDOW_WORDS * w.tiles + 31)
        bring_to_l2(m.word + (int64_t)w.tile * SPSI_WINDOW_WORDS + 32 * lane);
}

/* Of a group of tiles: mask `lane` and the column of slot `lane`, or the
 * last. */
struct group_words {
    int32_t mask, col;
};

__device__ __forceinline__ group_words fetch_words(const int32_t *word,
                                                   int tile, int count)
{
    const int lane = (int)threadIdx.x % 32;

    word += (int64_t)tile * SPSI_WINDOW_WORDS;
    return { fetch_word(word + min(lane, 2 * count - 1)),
             fetch_word(word + 2 * count + min(lane, 8 * count - 1)) };
}

/* What a lane loads of rows of X: of slot lane / 8 of each 4, columns
 * 2 (lane % 8) and the next of each 16; of 8 columns: column g of slot t.
 * Where there are no such columns, the first of the strip in their place: their
 * sums are not stored. */
template <int Q, access M> struct lane_columns {
    const char *x;
    int slot, at[lumps_in<Q>], next[lumps_in<Q>];

    __device__ __forceinline__ lane_columns(const blocks<double> &b, int c)
        : x(reinterpret_cast<const char *>(b.x + c))
    {
        const int lane = (int)threadIdx.x % 32;

        slot = Q > 0 ? lane / 8 : lane % 4;
#pragma unroll
        for (int q = 0; q < lumps_in<Q>; q++) {
            const int own = Q > 0 ? 16 * q + lane % 8 * 2 : lane / 4;

            at[q] = M == WHOLE || c + own < b.k ? own : 0;
            next[q] = c + own + 1 < b.k ? own + 1 : 0;
        }
    }
    /* Of row j. */
    __device__ __forceinline__ void fetch(int32_t j, uint32_t stride,
                                          double2 *v) const
    {
        const double *row = reinterpret_cast<const double *>(
            x + (uint64_t)(uint32_t)j * stride);

#pragma unroll
        for (int q = 0; q < lumps_in<Q>; q++) {
            const double *p = row + (M == WHOLE ? at[0] + 16 * q : at[q]);

            if (Q == 0) {
                v[q].x = fetch_number(p);
            } else if (M != SINGLES) {
                v[q] = fetch_both(p);
            } else {
                v[q].x = fetch_number(p);
                v[q].y = fetch_number(row + next[q]);
            }
        }
    }
};

/* acc += X of a tile, as it was loaded, times its entries. */
template <int Q>
__device__ __forceinline__ void multiply(const double2 (*x)[lumps_in<Q>],
                                         const double *a, double (*acc)[4])
{
    const int lane = (int)threadIdx.x % 32, from = lane % 4 * 8 + lane / 4;
    auto turned = [&](double v) { return __shfl_sync(all_lanes, v, from); };

    if constexpr (Q == 0) {
        dmma8(acc[0][0], acc[0][1], a[0], x[0][0].x);
        dmma8(acc[0][0], acc[0][1], a[1], x[1][0].x);
    } else {
#pragma unroll
        for (int q = 0; q < Q; q++) {
            const double both[4] = { turned(x[0][q].x), turned(x[0][q].y),
                                     turned(x[1][q].x), turned(x[1][q].y) };

            dmma16x8(acc[q], both, a);
        }
    }
}

/* acc += tiles FIRST .. LAST - 1 of a group, all loaded together; value: of
 * the next mask. */
template <int Q, int FIRST, int LAST, access M, class I, class V>
__device__ __forceinline__ void
multiply_batch(const group_words &words, const lane_columns<Q, M> &columns,
               uint32_t stride, const V *val, I &value, double (*acc)[4])
{
    constexpr int halves = 2 * (LAST - FIRST);
    const int lane = (int)threadIdx.x % 32;
    const uint32_t below = (1u << lane) - 1;
    double2 x[halves][lumps_in<Q>];
    V a[halves];
    double wide[halves];

#pragma unroll
    for (int h = 0; h < halves; h++) {
        const int s = 2 * FIRST + h;
        const uint32_t mask = __shfl_sync(all_lanes, words.mask, s);
        const I mine = value + (I)__popc(mask & below);

        columns.fetch(__shfl_sync(all_lanes, words.col, 4 * s + columns.slot),
                      stride, x[h]);
        a[h] = fetch_number(val + (mask >> lane & 1 ? mine : 0));
        value += (I)__popc(mask);
    }
#pragma unroll
    for (int h = 0; h < halves; h++) wide[h] = (double)a[h];
#pragma unroll
    for (int h = 0; h < halves; h += 2) multiply<Q>(x + h, wide + h, acc);
}

/* Tiles FIRST .. TILES - 1 of a group, U at a time. */
template <int Q, int U, int TILES, int FIRST, access M, class I, class V>
__device__ __forceinline__ void
multiply_group(const group_words &words, const lane_columns<Q, M> &columns,
               uint32_t stride, const V *val, I &value, double (*acc)[4])
{
    constexpr int behind = FIRST + U < TILES ? FIRST + U : TILES;

    multiply_batch<Q, FIRST, behind>(words, columns, stride, val, value, acc);
    if constexpr (behind < TILES)
        multiply_group<Q, U, TILES, behind>(words, columns, stride, val, value,
                                            acc);
}

/* Y = alpha sum + beta Y, or what an epilogue makes of it, for columns c and
 * c + 1 of row i, of which `left` are ours. */
template <access M>
__device__ __forceinline__ void finish_pair(const blocks<double> &b, int64_t i,
                                            int c, int left, double2 sum)
{
    double *y = b.y + i * b.ldy + c;

    if (left >= 1) sum.x = b.join(sum.x, y, i);
    if (left >= 2) sum.y = b.join(sum.y, y + 1, i);
    if (M != SINGLES && left >= 2) {
        __stcs(reinterpret_cast<double2 *>(y), sum);
    } else {
        if (left >= 1) __stcs(y, sum.x);
        if (left >= 2) __stcs(y + 1, sum.y);
    }
}
/* A call where it is more than a factor: the registers are those of tiles. */
template <access M>
__device__ __noinline__ void join_pair(const blocks<double> &given, int64_t i,
                                       int c, int left, double x, double y)
{
    blocks<double> b = given;

    b.resolve();
    finish_pair<M>(b, i, c, left, make_double2(x, y));
}
template <access M>
__device__ __forceinline__ void store_pair(const blocks<double> &b, int64_t i,
                                           int c, int right, double x, double y)
{
    const int left = M == WHOLE ? 2 : right - c;

    if (b.fused || b.beta != 0 || b.scalars) {
        join_pair<M>(b, i, c, left, x, y);
        return;
    }
    double *to = b.y + i * b.ldy + c;

    x *= b.alpha;
    y *= b.alpha;
    if (M != SINGLES && left >= 2) {
        __stcs(reinterpret_cast<double2 *>(to), make_double2(x, y));
    } else {
        if (left >= 1) __stcs(to, x);
        if (left >= 2) __stcs(to + 1, y);
    }
}

/* Stores the sums of a window; false where they hold NaN. */
template <int Q, access M, class I, class V>
__device__ __forceinline__ bool
finish_window(const tiled<I, V> &m, const blocks<double> &b, uint32_t rows,
              int c, const double (*acc)[4])
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x & 3;
    const int right = min(b.k, c + strip_of<Q>);
    double all = 0;

#pragma unroll
    for (int q = 0; q < lumps_in<Q>; q++)
        all += (acc[q][0] + acc[q][1]) + (acc[q][2] + acc[q][3]);
    if (__any_sync(all_lanes, all != all)) return false;
    if constexpr (Q == 0) {
        const int64_t i = spsi_window_row(m.A.nrow, m.lead, rows, g);

        if (i < m.A.nrow)
            store_pair<M>(b, i, c + 2 * t, right, acc[0][0], acc[0][1]);
    } else {
        const int64_t i = spsi_window_row(m.A.nrow, m.lead, rows, 2 * t);
        const bool below = spsi_window_row(m.A.nrow, m.lead, rows, 2 * t + 1) <
                           m.A.nrow;

#pragma unroll
        for (int q = 0; q < Q; q++) {
            const int at = c + 16 * q + 2 * g;

            if (i < m.A.nrow)
                store_pair<M>(b, i, at, right, acc[q][0], acc[q][2]);
            if (below)
                store_pair<M>(b, i + 1, at, right, acc[q][1], acc[q][3]);
        }
    }
    return true;
}

/* The window row by row from the csr: 8 lanes a row, each with pairs of
 * columns, 8 entries in flight.  A call: it is rare, and the registers are
 * those of tiles. */
template <int Q, access M, class I, class V>
__device__ __noinline__ void sum_by_rows(const tiled<I, V> &m,
                                         const blocks<double> &given,
                                         uint32_t rows, int c)
{
    blocks<double> b = given;
    const int l = (int)threadIdx.x & 7, right = min(b.k, c + strip_of<Q>);
    const int left = right - c - 2 * l;

    b.resolve();
    for (int some = 0; some < SPSI_WINDOW_ROWS; some += 4) {
        int64_t i = spsi_window_row(m.A.nrow, m.lead, rows,
                                    some + (int)threadIdx.x % 32 / 8);
        I p = i < m.A.nrow ? m.A.rowptr[i] : 0;
        I n = i < m.A.nrow ? m.A.rowptr[i + 1] - p : 0;
        int length = n <= m.longest ? (int)n : 0;
        int most = __reduce_max_sync(all_lanes, length);
        double2 sum[lumps_in<Q>] = {};

        for (int d = 0; d < most; d += 8) {
            int32_t col = 0;
            double val = 0;

            if (d + l < length) {
                col = __ldg(m.A.col + p + d + l);
                val = (double)__ldg(m.A.val + p + d + l);
            }
#pragma unroll
            for (int u = 0; u < 8; u++) {
                int32_t j = __shfl_sync(all_lanes, col, u, 8);
                double a = __shfl_sync(all_lanes, val, u, 8);
                const double *x = b.x + j * b.ldx + c + 2 * l;

#pragma unroll
                for (int q = 0; q < lumps_in<Q>; q++) {
                    double2 v = fetch_pair<M != SINGLES>(
                        x + 16 * q, d + u < length ? left - 16 * q : 0);

                    sum[q].x = fma(a, v.x, sum[q].x);
                    sum[q].y = fma(a, v.y, sum[q].y);
                }
            }
        }
        if (i < m.A.nrow && n <= m.longest)
#pragma unroll
            for (int q = 0; q < lumps_in<Q>; q++)
                finish_pair<M>(b, i, c + 2 * l + 16 * q, left - 16 * q,
                               sum[q]);
    }
}

/* Blocks of threads take neighbouring windows in turn, and one strip of the
 * columns; those of a window's strips are neighbours in the grid.  U tiles are
 * loaded together; under way ahead of their use are words, by a group, where a
 * window begins, by two windows, and its words and values on their way to L2,
 * by one. */
template <int THREADS, int Q, int U, access M, class I, class V>
__global__ void __launch_bounds__(THREADS)
tiles_kernel(const __grid_constant__ tiled<I, V> m,
             const __grid_constant__ blocks<double> b, uint32_t stride,
             int strips)
{
    constexpr unsigned warps = THREADS / 32;
    const unsigned step = gridDim.x / strips * warps;
    const int c = (int)(blockIdx.x % strips) * strip_of<Q>;
    const lane_columns<Q, M> columns(b, c);
    unsigned w = blockIdx.x / strips * warps + threadIdx.x / 32;

    if (w >= (unsigned)m.windows) return;
    window_at<I> now = open_window(m, w), next = open_window(m, w + step);
    int count = spsi_window_group(now.tiles);
    group_words words = fetch_words(m.word, now.tile, count);

    for (; w < (unsigned)m.windows; w += step) {
        const window_at<I> after = open_window(m, w + 2 * step);
        double acc[lumps_in<Q>][4] = {};
        bool last;

        expect_window(m, next);
        do {
            const group_words use = words;
            const int tiles = count;

            last = now.tiles == tiles;
            now.tiles -= tiles;
            now.tile += tiles;
            count = spsi_window_group(last ? next.tiles : now.tiles);
            words = fetch_words(m.word, last ? next.tile : now.tile, count);
            if (tiles == 3)
                multiply_group<Q, U, 3, 0>(use, columns, stride, m.val,
                                            now.value, acc);
            else if (tiles == 2)
                multiply_group<Q, U, 2, 0>(use, columns, stride, m.val,
                                            now.value, acc);
            else
                multiply_group<Q, U, 1, 0>(use, columns, stride, m.val,
                                            now.value, acc);
        } while (!last);
        if (!finish_window<Q, M>(m, b, now.rows, c, acc))
            sum_by_rows<Q, M>(m, b, now.rows, c);
        now = next;
        next = after;
    }
}

/* Windows without words, a warp each, and a strip of columns. */
template <int Q, access M, class I, class V>
__global__ void __launch_bounds__(256)
rest_kernel(const __grid_constant__ tiled<I, V> m,
            const __grid_constant__ blocks<double> b)
{
    const int w = (int)(blockIdx.x * 8 + threadIdx.x / 32);

    if (w < m.bare)
        sum_by_rows<Q, M>(m, b, m.rest[w], (int)blockIdx.y * strip_of<Q>);
}

} // namespace

#endif
