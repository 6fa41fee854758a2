/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tiles.cuh - the kernel of spmm.tiles: a warp a window of 8 rows, 16 Q
 * columns of X at a time (Q = 0: 8 of them).
 *
 * Operands are swapped and transposed (FlashSparse, Shi et al., PPoPP 2025):
 * with lane = 4 g + t the product D += A B of m16n8k4 takes
 *   A (16 x 4): rows of X, transposed; lane: columns 2 g and 2 g + 1 of the row
 *               that slot t of the tile names;
 *   B (4 x 8):  the tile; lane: row g, slot t, zero where its bit is clear;
 *   D (16 x 8): lane: columns 2 g and 2 g + 1 of rows 2 t and 2 t + 1.
 * 8 columns: m8n8k4, A the tile, B the rows of X (lane: column g of slot t), D
 * columns 2 t and 2 t + 1 of row g.
 *
 * L1 looks up one line a cycle.  Loaded as the product wants it, each quarter
 * of a warp would touch 4 rows of X, 16 cycles for 512 bytes (measured: 25
 * cycles a tile, L1 89 % busy).  So 8 neighbouring lanes load 128 neighbouring
 * bytes, 4 cycles, and 4 shuffles transpose, 4 more.
 *
 * Values come out of memory and are wanted at places that the words tell: a
 * warp copies those of its next window to shared memory meanwhile.
 *
 * A tile whose bits are clear multiplies by zero, so NaN and infinity in X
 * would reach all rows of a window.  A window with NaN in its sums is therefore
 * summed again row by row, like those that have no words. */
#ifndef SPS_CUDA_SPMM_TILES_CUH
#define SPS_CUDA_SPMM_TILES_CUH

#include "sparse.cuh"
#include "window_plan.h"

namespace {

/* I: offsets of A, and of words. */
template <class I, class V> struct tiled {
    matrix<I, V> A;
    const int64_t *__restrict__ first;
    const int32_t *__restrict__ word;
    int windows, lead;
    int run;                   /* windows that a block of threads walks */
    int32_t longest;           /* longer rows are not ours */
    I entries;                 /* of the matrix */
    int held;                  /* values that half a window may have, and as
                                  shared memory holds them: whole 16 bytes */
};

template <int Q> constexpr int strip_of = Q > 0 ? 16 * Q : 8;
template <int Q> constexpr int lumps_of = Q > 0 ? Q : 1;

/* What is read once need not push rows of X out of L1.  Zero, and nothing is
 * read, unless asked for. */
__device__ __forceinline__ int32_t word_if(bool asked, const int32_t *p)
{
    int32_t v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "mov.b32 %0, 0;\n\t"
        "@q ld.global.nc.L1::no_allocate.s32 %0, [%1]; }"
        : "=r"(v) : "l"(p), "r"((int)asked));
    return v;
}
__device__ __forceinline__ double value_if(bool asked, const double *p)
{
    double v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "mov.f64 %0, 0d0000000000000000;\n\t"
        "@q ld.global.nc.f64 %0, [%1]; }"
        : "=d"(v) : "l"(p), "r"((int)asked));
    return v;
}
__device__ __forceinline__ double value_if(bool asked, const float *p)
{
    float v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "mov.f32 %0, 0f00000000;\n\t"
        "@q ld.global.nc.f32 %0, [%1]; }"
        : "=f"(v) : "l"(p), "r"((int)asked));
    return (double)v;
}
/* The same out of shared memory, byte `place` of it. */
__device__ __forceinline__ double held_if(bool asked, uint32_t place, double)
{
    double v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "mov.f64 %0, 0d0000000000000000;\n\t"
        "@q ld.shared.f64 %0, [%1]; }"
        : "=d"(v) : "r"(place), "r"((int)asked));
    return v;
}
__device__ __forceinline__ double held_if(bool asked, uint32_t place, float)
{
    float v;

    asm volatile("{ .reg .pred q; setp.ne.s32 q, %2, 0;\n\t"
        "mov.f32 %0, 0f00000000;\n\t"
        "@q ld.shared.f32 %0, [%1]; }"
        : "=f"(v) : "r"(place), "r"((int)asked));
    return (double)v;
}

/* Loads stand where they are written: all of a batch before its products. */
__device__ __forceinline__ double2 fetch_now(const double *p)
{
    double2 v;

    asm volatile("ld.global.nc.v2.f64 {%0, %1}, [%2];"
        : "=d"(v.x), "=d"(v.y) : "l"(p));
    return v;
}

__device__ __forceinline__ void dmma16x4(double *d, double2 a, double b)
{
#if __CUDA_ARCH__ < 900
    dmma8(d[0], d[1], a.x, b);
    dmma8(d[2], d[3], a.y, b);
#else
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
        "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a.x), "d"(a.y), "d"(b));
#endif
}

/* A lane's view of a window: its words; of its half, entries from .. to - 1;
 * the first entry of row g. */
template <class I> struct window_at {
    I at, end, from, to, row;
};

template <class I, class V>
__device__ __forceinline__ window_at<I> open_window(const tiled<I, V> &m, int w)
{
    const int g = (int)threadIdx.x % 32 / 4, each = (m.lead + 3) / 4;
    const int j = w % each * 4;
    const int nrow = (int)m.A.nrow; /* at most 2^30, see fits */
    const int i = min(w / each * 2 * m.lead + j + g / 4 * m.lead, nrow);
    const int end = min(i + min(4, m.lead - j), nrow);

    return { (I)__ldg(m.first + w), (I)__ldg(m.first + w + 1),
             __ldg(m.A.rowptr + i), __ldg(m.A.rowptr + end),
             __ldg(m.A.rowptr + min(i + g % 4, end)) };
}

/* Values come in lumps of 16 bytes; entry p is in lump_of(p). */
template <class V, class I> __device__ __forceinline__ I lump_of(I p)
{
    return p & ~(I)(16 / sizeof(V) - 1);
}

/* Copies the values of a window, its halves to `to` of 16 lanes each; the last
 * lump may hold values of other rows, but nothing beyond the array. */
template <class I, class V>
__device__ __forceinline__ void stage(const tiled<I, V> &m,
                                      const window_at<I> &w, uint32_t to)
{
    constexpr int each = 16 / sizeof(V);
    const I begin = lump_of<V>(w.from);

    for (I p = begin + (int)threadIdx.x % 16 * each; p < w.to;
         p += 16 * each) {
        uint32_t place = to + (uint32_t)(p - begin) * sizeof(V);

        if (p <= m.entries - each)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         :: "r"(place), "l"(m.A.val + p) : "memory");
        else
            for (I q = p; q < m.entries; q++, place += sizeof(V))
                asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                             :: "r"(place), "l"(m.A.val + q), "n"(sizeof(V))
                             : "memory");
    }
}

/* What was copied is there for the whole warp, which is done with what was
 * held before. */
__device__ __forceinline__ void close_stage()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncwarp();
}

/* Of a group: the mask of row g, the column of slot `lane`. */
struct group_words {
    uint32_t mask;
    int32_t col;
};

template <class I>
__device__ __forceinline__ group_words fetch_words(const int32_t *word, I at,
                                                   I end)
{
    const int lane = (int)threadIdx.x % 32;
    const I col = at + SPSI_WINDOW_ROWS + lane;

    return { (uint32_t)word_if(at < end, word + at + lane / 4),
             word_if(at < end, word + (col < end ? col : end - 1)) };
}

/* Where a lane loads X: columns 2 (lane % 8) and the next of slot lane / 8; of
 * 8 columns: column g of slot t. */
template <int Q> __device__ __forceinline__ int load_slot(int lane)
{
    return Q > 0 ? lane / 8 : lane % 4;
}
template <int Q> __device__ __forceinline__ int load_column(int lane)
{
    return Q > 0 ? lane % 8 * 2 : lane / 4;
}

/* x: this lane's columns of row j of X; `left` of them, and of those behind,
 * are there. */
template <int Q, bool PAIRED, bool FULL>
__device__ __forceinline__ void fetch_x(const double *x, int32_t j,
                                        uint32_t stride, int left, double2 *v)
{
    x = reinterpret_cast<const double *>(reinterpret_cast<const char *>(x) +
                                         (uint64_t)(uint32_t)j * stride);
    if constexpr (Q == 0) {
        v[0].x = FULL || left > 0 ? __ldg(x) : 0.0;
    } else {
#pragma unroll
        for (int q = 0; q < Q; q++)
            v[q] = FULL ? fetch_now(x + 16 * q)
                        : fetch_pair<PAIRED>(x + 16 * q, left - 16 * q);
    }
}

/* acc += X of a tile times its entries; x as it was loaded. */
template <int Q>
__device__ __forceinline__ void multiply(const double2 *x, double a,
                                         double (*acc)[4])
{
    const int lane = (int)threadIdx.x % 32, from = lane % 4 * 8 + lane / 4;

    if constexpr (Q == 0) {
        dmma8(acc[0][0], acc[0][1], a, x[0].x);
    } else {
#pragma unroll
        for (int q = 0; q < Q; q++)
            dmma16x4(acc[q],
                     make_double2(__shfl_sync(all_lanes, x[q].x, from),
                                  __shfl_sync(all_lanes, x[q].y, from)), a);
    }
}

/* Y = alpha sum + beta Y for columns c and c + 1 of row i, of which `left`
 * are ours. */
template <bool PAIRED>
__device__ __forceinline__ void finish_pair(const blocks<double> &b, int64_t i,
                                            int c, int left, double2 sum)
{
    double *y = b.y + i * b.ldy + c;

    if (left >= 1) sum.x = b.join(sum.x, y);
    if (left >= 2) sum.y = b.join(sum.y, y + 1);
    if (PAIRED && left >= 2) {
        __stcs(reinterpret_cast<double2 *>(y), sum);
    } else {
        if (left >= 1) __stcs(y, sum.x);
        if (left >= 2) __stcs(y + 1, sum.y);
    }
}

/* Stores the sums of window w; false where they hold NaN. */
template <int Q, bool PAIRED, class I, class V>
__device__ __forceinline__ bool finish_window(const tiled<I, V> &m,
                                              blocks<double> b, int w,
                                              int c, double (*acc)[4])
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x & 3;
    const int right = min(b.k, c + strip_of<Q>);
    double all = 0;

#pragma unroll
    for (int q = 0; q < lumps_of<Q>; q++)
        all += (acc[q][0] + acc[q][1]) + (acc[q][2] + acc[q][3]);
    if (__any_sync(all_lanes, all != all)) return false;
    b.resolve();
    if constexpr (Q == 0) {
        int64_t i = spsi_window_row(m.A.nrow, m.lead, w, g);

        if (i < m.A.nrow)
            finish_pair<PAIRED>(b, i, c + 2 * t, right - c - 2 * t,
                                make_double2(acc[0][0], acc[0][1]));
    } else {
        int64_t i = spsi_window_row(m.A.nrow, m.lead, w, 2 * t);
        int64_t below = spsi_window_row(m.A.nrow, m.lead, w, 2 * t + 1);

#pragma unroll
        for (int q = 0; q < Q; q++) {
            int at = c + 16 * q + 2 * g;

            if (i < m.A.nrow)
                finish_pair<PAIRED>(b, i, at, right - at,
                                    make_double2(acc[q][0], acc[q][2]));
            if (below < m.A.nrow)
                finish_pair<PAIRED>(b, below, at, right - at,
                                    make_double2(acc[q][1], acc[q][3]));
        }
    }
    return true;
}

/* The window row by row from the csr: 8 lanes a row, each with pairs of
 * columns, 8 entries in flight. */
template <int Q, bool PAIRED, class I, class V>
__device__ __forceinline__ void sum_by_rows(const tiled<I, V> &m,
                                         blocks<double> b, int w, int c)
{
    const int l = (int)threadIdx.x & 7, right = min(b.k, c + strip_of<Q>);
    const int left = right - c - 2 * l;

    b.resolve();
    for (int some = 0; some < SPSI_WINDOW_ROWS; some += 4) {
        int64_t i = spsi_window_row(m.A.nrow, m.lead, w,
                                    some + (int)threadIdx.x % 32 / 8);
        I p = i < m.A.nrow ? m.A.rowptr[i] : 0;
        I n = i < m.A.nrow ? m.A.rowptr[i + 1] - p : 0;
        int length = n <= m.longest ? (int)n : 0;
        int most = __reduce_max_sync(all_lanes, length);
        double2 sum[lumps_of<Q>] = {};

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
                for (int q = 0; q < lumps_of<Q>; q++) {
                    double2 v = fetch_pair<PAIRED>(
                        x + 16 * q, d + u < length ? left - 16 * q : 0);

                    sum[q].x = fma(a, v.x, sum[q].x);
                    sum[q].y = fma(a, v.y, sum[q].y);
                }
            }
        }
        if (i < m.A.nrow && n <= m.longest)
#pragma unroll
            for (int q = 0; q < lumps_of<Q>; q++)
                finish_pair<PAIRED>(b, i, c + 2 * l + 16 * q, left - 16 * q,
                                    sum[q]);
    }
}

/* acc += the tiles of a group, U of them in flight together.  p: the first
 * entry of row g; HELD: entry p is in shared memory at `shift` + p numbers. */
template <int Q, int U, bool PAIRED, bool FULL, bool HELD, class I, class V>
__device__ __forceinline__ void multiply_group(const group_words &words,
                                               int slots, const V *val, I p,
                                               uint32_t shift,
                                               const double *x,
                                               uint32_t stride, int left,
                                               double (*acc)[4])
{
    const int lane = (int)threadIdx.x % 32;

#pragma unroll
    for (int i = 0; i < SPSI_WINDOW_GROUP / SPSI_WINDOW_TILE; i += U) {
        double2 v[U][lumps_of<Q>];
        double a[U];

        if (4 * i >= slots) break;
#pragma unroll
        for (int u = 0; u < U; u++)
            fetch_x<Q, PAIRED, FULL>(
                x, __shfl_sync(all_lanes, words.col,
                               4 * (i + u) + load_slot<Q>(lane)),
                stride, left, v[u]);
#pragma unroll
        for (int u = 0; u < U; u++) {
            int slot = 4 * (i + u) + lane % 4;
            bool mine = words.mask >> slot & 1;
            I at = p + (I)__popc(words.mask & ((1u << slot) - 1));

            a[u] = HELD ? held_if(mine, shift + (uint32_t)at * sizeof(V), V())
                        : value_if(mine, val + at);
        }
#pragma unroll
        for (int u = 0; u < U; u++) multiply<Q>(v[u], a[u], acc);
    }
}

/* Blocks of threads walk runs of windows, warp by warp and strip by strip, so
 * that what the rows of a run share is found in L1.  Under way ahead of their
 * use: words by a group, values by a window. */
template <int THREADS, int Q, int U, bool PAIRED, bool FULL, bool HELD,
          class I, class V>
__global__ void __launch_bounds__(THREADS)
tiles_kernel(tiled<I, V> m, blocks<double> b, uint32_t stride)
{
    extern __shared__ __align__(16) char shared[];
    const int lane = (int)threadIdx.x % 32, warps = (int)blockDim.x / 32;
    const int half = m.held * (int)sizeof(V);
    const uint32_t held = (uint32_t)__cvta_generic_to_shared(shared) +
                          ((int)threadIdx.x / 32 * 4 + lane / 16) * half;

    for (int r = (int)blockIdx.x * m.run; r < m.windows;
         r += (int)gridDim.x * m.run)
        for (int c = 0; c < b.k; c += strip_of<Q>) {
            const int last = min(r + m.run, m.windows);
            const double *x = b.x + c + load_column<Q>(lane);
            const int left = min(b.k - c, strip_of<Q>) - load_column<Q>(lane);
            int w = r + (int)threadIdx.x / 32;
            uint32_t to = held;

            if (w >= last) continue;
            window_at<I> now = open_window(m, w);
            group_words words = fetch_words(m.word, now.at, now.end);
            if (HELD) stage(m, now, to);
            uint32_t shift = to - (uint32_t)lump_of<V>(now.from) * sizeof(V);

            close_stage();
            for (; w < last; w += warps) {
                const window_at<I> next =
                    open_window(m, min(w + warps, last - 1));
                const bool tiles = now.at < now.end;
                double acc[lumps_of<Q>][4] = {};

                to = 2 * held + 2 * half - to; /* the other one */
                if (HELD) stage(m, next, to);
                if (!tiles) words = fetch_words(m.word, next.at, next.end);
                while (now.at < now.end) {
                    const group_words use = words;
                    const int slots = (int)(now.end - now.at) -
                                      SPSI_WINDOW_ROWS;

                    now.at += SPSI_WINDOW_WORDS;
                    words = now.at < now.end
                        ? fetch_words(m.word, now.at, now.end)
                        : fetch_words(m.word, next.at, next.end);
                    multiply_group<Q, U, PAIRED, FULL, HELD>(
                        use, slots, m.A.val, now.row, shift, x, stride, left,
                        acc);
                    now.row += (I)__popc(use.mask);
                }
                now.at = next.at;
                now.end = next.end;
                now.row = next.row;
                shift = to - (uint32_t)lump_of<V>(next.from) * sizeof(V);
                if (!tiles || !finish_window<Q, PAIRED>(m, b, w, c, acc))
                    sum_by_rows<Q, PAIRED>(m, b, w, c);
                close_stage();
            }
        }
}

} // namespace

#endif
