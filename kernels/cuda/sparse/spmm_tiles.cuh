/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tiles.cuh - the kernel of spmm.tiles: one warp per window of 8 rows,
 * 16 Q columns of X at a time (Q = 0: 8 columns).
 *
 * Operands are swapped and transposed (FlashSparse, Shi et al., PPoPP 2025):
 * with lane = 4 g + t the product D += A B of m16n8k8 takes
 *   A (16 x 8): rows of X, transposed; lane: columns 2 g and 2 g + 1 of the
 *               rows selected by slots t and t + 4 of the tile;
 *   B (8 x 8):  the tile; lane: row g, slots t and t + 4;
 *   D (16 x 8): lane: columns 2 g and 2 g + 1 of rows 2 t and 2 t + 1.
 * 8 columns: two m8n8k4 products, A is half the tile, B the rows of X (lane:
 * column g of slot t), D columns 2 t and 2 t + 1 of row g.
 * TAIL, 4 additional columns, one sector: two m8n8k4 products with the same A
 * (8 x 4), lane: column g % 4 of slot t + 4 (g / 4), and half the tile as B;
 * the valid sums are in the first result for lanes with g < 4, in the second
 * for the others.  No shuffles: 8 cycles per tile, instead of 16 for 16
 * columns.
 *
 * L1 looks up one cache line per cycle.  If X were loaded in the order of the
 * operands, each quarter of a warp would touch 4 rows of X, 16 cycles for 512
 * bytes.  So 8 neighbouring lanes load 128 contiguous bytes, 4 cycles, and 4
 * shuffles transpose them, 4 more.
 *
 * Values are stored in the order of the lanes.  Bit l of a mask belongs to lane
 * l; if it is set, the lane loads value number popc(mask & bits below l) of
 * those of the mask, otherwise value 0 of the whole array, which is zero.
 *
 * All loads of a batch are issued before the first result is used.  The loads
 * are unconditional: after a conditional load the compiler moves the result to
 * another register, and that move would wait for it.
 *
 * Slots of a tile whose bits are clear are multiplied by zero, so a NaN or
 * infinity in X would reach all rows of a window.  A window with a NaN in its
 * sums is therefore summed again row by row, like the windows without tiles. */
#ifndef SPS_CUDA_SPMM_TILES_CUH
#define SPS_CUDA_SPMM_TILES_CUH

#include "cuda/sparse/window_rows.cuh"

namespace {

template <int Q> constexpr int sixteens_in = Q > 0 ? Q : 1;

/* The sums that a lane holds: for each 16 columns, and for the tail in two
 * parts. */
template <int Q, bool TAIL> struct sums {
    double d[sixteens_in<Q>][4], tail[TAIL ? 4 : 1];
};

/* Loads that are volatile, so that the compiler does not change their order.
 * Data that are read only once do not allocate in L1, in order not to evict
 * rows of X. */
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
__device__ __forceinline__ float2 fetch_both(const float *p)
{
    float2 v;

    asm volatile("ld.global.nc.v2.f32 {%0, %1}, [%2];"
                 : "=f"(v.x), "=f"(v.y) : "l"(p));
    return v;
}
__device__ __forceinline__ void bring_to_l2(const void *p)
{
    asm volatile("prefetch.global.L2 [%0];" :: "l"(p));
}

/* Descriptor of window w, or of the last window if w is too large. */
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

/* Prefetches the tile descriptors and values of a window to L2, at most 32
 * cache lines of each. */
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

/* What a lane holds of the descriptors of a group of tiles: the mask number
 * `lane`, or the last one, and the column of slot `lane`, or the last one. */
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

/* The loop of a warp over windows of tiles.  Prefetched are: the words
 * (descriptors) of a group of tiles one group ahead; the descriptor of a window
 * two windows ahead; to L2, the words and values of a window one window
 * ahead. */
template <class I> struct window_loop {
    window_at<I> now, next, after;
    int count;               /* number of tiles of the next group */
    group_words words;       /* its descriptors */

    template <class V>
    __device__ __forceinline__ window_loop(const tiled<I, V> &m, unsigned w,
                                           unsigned step)
        : now(open_window(m, w)), next(open_window(m, w + step)),
          count(spsi_window_group(now.tiles)),
          words(fetch_words(m.word, now.tile, count))
    {
    }
    /* Calls add<TILES>(words, value) for the groups of the present window;
     * value: index of the first value of the group, to be advanced.  Window
     * `ahead` comes two after it. */
    template <class V, class ADD>
    __device__ __forceinline__ void groups(const tiled<I, V> &m, unsigned ahead,
                                           ADD add)
    {
        bool last;

        after = open_window(m, ahead);
        expect_window(m, next);
        do {
            const group_words use = words;
            const int tiles = count;

            last = now.tiles == tiles;
            now.tiles -= tiles;
            now.tile += tiles;
            count = spsi_window_group(last ? next.tiles : now.tiles);
            words = fetch_words(m.word, last ? next.tile : now.tile, count);
            if (tiles == 3) add.template operator()<3>(use, now.value);
            else if (tiles == 2) add.template operator()<2>(use, now.value);
            else add.template operator()<1>(use, now.value);
        } while (!last);
    }
    __device__ __forceinline__ void advance()
    {
        now = next;
        next = after;
    }
};

/* What a lane loads of rows of X: from slot lane / 8 of each 4, columns 2 (lane
 * % 8) and the next one of each 16; with 8 columns: column g of slot t.  Lanes
 * without a column of the block load others.  With PAIRS: if Q = 1 the last
 * pair again, if Q > 1 the numbers after the columns, whose sums are not stored
 * (skipping them would take registers and save no time).  With SINGLES: the
 * last column again.  X: the type of the block X. */
template <int Q, bool TAIL, access M, class X> struct lane_columns {
    using pair = decltype(fetch_both((const X *)nullptr));
    /* apart: whether the lane's column is added at each row rather than once.
     * By inspection of the machine code: with 32 columns adding it at each row
     * takes a tenth less time; the other shapes spill fewer registers if it is
     * added once. */
    static constexpr bool apart = Q == 2 && !TAIL;
    const char *x;
    int slot, tail_slot, at;
    int last, next, tail;    /* offsets from x + at, for the last 16 columns */

    __device__ __forceinline__ lane_columns(const padded_blocks<double> &b)
    {
        const int lane = (int)threadIdx.x % 32;
        const int pair = lane % 8 * 2, most = (b.k - 1) / 2 * 2;
        const int first = Q == 0 ? min(lane / 4, b.k - 1)
                          : Q == 1 && M == PAIRS ? min(pair, most) : pair;
        const int end = first + 16 * (sixteens_in<Q> - 1);

        x = reinterpret_cast<const char *>(
            reinterpret_cast<const X *>(b.x) + (apart ? 0 : first));
        at = apart ? first : 0;
        slot = Q > 0 ? lane / 8 : lane % 4;
        last = min(end, b.k - 1) - first;
        next = min(end + 1, b.k - 1) - first;
        tail_slot = lane % 4 + lane / 16 * 4;
        tail = min(16 * Q + lane / 4 % 4, b.k - 1) - first;
    }
    __device__ __forceinline__ const X *row(int32_t j, uint32_t stride) const
    {
        return reinterpret_cast<const X *>(x + (uint64_t)(uint32_t)j * stride);
    }
    __device__ __forceinline__ void fetch(int32_t j, uint32_t stride,
                                          pair *v) const
    {
        const X *from = row(j, stride) + at;

#pragma unroll
        for (int q = 0; q < sixteens_in<Q>; q++) {
            const bool rest = q == sixteens_in<Q> - 1;

            if (Q == 0) {
                v[q].x = fetch_number(from);
            } else if (M != SINGLES) {
                v[q] = fetch_both(from + 16 * q);
            } else {
                v[q].x = fetch_number(from + (rest ? last : 16 * q));
                v[q].y = fetch_number(from + (rest ? next : 16 * q + 1));
            }
        }
    }
};

/* acc += (rows of X of a tile, in the order of loading) times its entries. */
template <int Q, class P>
__device__ __forceinline__ void multiply(const P (*x)[sixteens_in<Q>],
                                         const double *a, double (*acc)[4])
{
    const int lane = (int)threadIdx.x % 32, from = lane % 4 * 8 + lane / 4;
    auto turned = [&](auto v) {
        return (double)__shfl_sync(all_lanes, v, from);
    };

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

/* acc += the products of tiles FIRST .. LAST - 1 of a group with X, all loaded
 * together; value: index of the first value of the next mask. */
template <int FIRST, int LAST, int Q, bool TAIL, access M, class X, class I,
          class V>
__device__ __forceinline__ void
multiply_batch(const group_words &words,
               const lane_columns<Q, TAIL, M, X> &columns, uint32_t stride,
               const V *val, I &value, sums<Q, TAIL> &acc)
{
    constexpr int halves = 2 * (LAST - FIRST);
    const int lane = (int)threadIdx.x % 32;
    const uint32_t below = (1u << lane) - 1;
    typename lane_columns<Q, TAIL, M, X>::pair x[halves][sixteens_in<Q>];
    V a[halves];
    double wide[halves], tail[halves / 2];

#pragma unroll
    for (int h = 0; h < halves; h++) {
        const int s = 2 * FIRST + h;
        const int32_t j = __shfl_sync(all_lanes, words.col,
                                      4 * s + columns.slot);
        const uint32_t mask = __shfl_sync(all_lanes, words.mask, s);
        const I mine = value + (I)__popc(mask & below);

        columns.fetch(j, stride, x[h]);
        if (TAIL && h % 2 == 0)
            tail[h / 2] = fetch_number(
                columns.row(__shfl_sync(all_lanes, words.col,
                                        4 * s + columns.tail_slot), stride) +
                columns.tail);
        a[h] = fetch_number(val + (mask >> lane & 1 ? mine : 0));
        value += (I)__popc(mask);
    }
#pragma unroll
    for (int h = 0; h < halves; h++) wide[h] = (double)a[h];
#pragma unroll
    for (int h = 0; h < halves; h += 2) {
        multiply<Q>(x + h, wide + h, acc.d);
        if (TAIL) {
            dmma8(acc.tail[0], acc.tail[1], tail[h / 2], wide[h]);
            dmma8(acc.tail[2], acc.tail[3], tail[h / 2], wide[h + 1]);
        }
    }
}

/* Adds the products of tiles FIRST .. TILES - 1 of a group with X, U at a
 * time. */
template <int U, int TILES, int FIRST, int Q, bool TAIL, access M, class X,
          class I, class V>
__device__ __forceinline__ void
multiply_group(const group_words &words,
               const lane_columns<Q, TAIL, M, X> &columns, uint32_t stride,
               const V *val, I &value, sums<Q, TAIL> &acc)
{
    constexpr int behind = FIRST + U < TILES ? FIRST + U : TILES;

    multiply_batch<FIRST, behind>(words, columns, stride, val, value, acc);
    if constexpr (behind < TILES)
        multiply_group<U, TILES, behind>(words, columns, stride, val, value,
                                         acc);
}

/* Computes columns c and c + 1 of row i of Y from the sums x and y. store_pair
 * multiplies by alpha; where beta or an epilogue is to be applied it calls
 * join_pair, which is not inlined because the tiles need the registers. */
template <access M>
__device__ __noinline__ void join_pair(const blocks<double> &given, int64_t i,
                                       int c, int left, int room, double x,
                                       double y)
{
    blocks<double> b = given;

    b.resolve();
    finish_pair<M>(b, i, c, left, room, make_double2(x, y));
}
template <access M>
__device__ __forceinline__ void store_pair(const padded_blocks<double> &b,
                                           int64_t i, int c, int left, int room,
                                           double x, double y)
{
    if (b.fused || b.beta != 0 || b.scalars)
        join_pair<M>(b, i, c, left, room, x, y);
    else
        put_pair<M>(b.y + i * b.ldy + c, left, room,
                    make_double2(b.alpha * x, b.alpha * y));
}

/* Joins the two parts of the tail: lanes below 16 get the sums of column 16 Q +
 * g of rows 2 t and 2 t + 1. */
template <int Q, bool TAIL>
__device__ __forceinline__ void join_tail(sums<Q, TAIL> &acc)
{
    if constexpr (TAIL) {
        acc.tail[0] += __shfl_down_sync(all_lanes, acc.tail[2], 16);
        acc.tail[1] += __shfl_down_sync(all_lanes, acc.tail[3], 16);
    }
}

/* Returns whether one of a lane's sums is NaN, only counting those of actual
 * columns. */
template <access M, int Q, bool TAIL>
__device__ __forceinline__ bool unsure(const sums<Q, TAIL> &acc, int k)
{
    const int lane = (int)threadIdx.x % 32;
    double all = 0;

#pragma unroll
    for (int q = 0; q < sixteens_in<Q>; q++) {
        const int left = M == PAIRS && Q > 0 ? k - 16 * q - lane / 4 * 2 : 2;

        if (left >= 1) all += acc.d[q][0] + acc.d[q][1];
        if (left >= 2) all += acc.d[q][2] + acc.d[q][3];
    }
    if (TAIL && lane < 16) all += acc.tail[0] + acc.tail[TAIL];
    return all != all;
}

/* Stores the sums of a window; returns false if they contain NaN. */
template <access M, int Q, bool TAIL, class I, class V>
__device__ __forceinline__ bool
finish_window(const tiled<I, V> &m, const padded_blocks<double> &b,
              uint32_t rows, sums<Q, TAIL> &acc)
{
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x & 3;
    auto left = [&](int c) { return M == WHOLE ? 2 : b.k - c; };
    auto room = [&](int c) { return M == WHOLE ? 2 : b.room - c; };

    join_tail(acc);
    if (__any_sync(all_lanes, unsure<M>(acc, b.k))) return false;
    if constexpr (Q == 0) {
        const int64_t i = spsi_window_row(m.A.nrow, m.lead, rows, g);

        if (i < m.A.nrow)
            store_pair<M>(b, i, 2 * t, left(2 * t), room(2 * t), acc.d[0][0],
                          acc.d[0][1]);
    } else {
        const int64_t i = spsi_window_row(m.A.nrow, m.lead, rows, 2 * t);
        const bool below = spsi_window_row(m.A.nrow, m.lead, rows, 2 * t + 1) <
                           m.A.nrow;
        const int c = 16 * Q + g;     /* this lane's column of the tail */
        const int one = g < 4 && c < b.k, some = g < 4 && c < b.room;

#pragma unroll
        for (int q = 0; q < Q; q++) {
            const int at = 16 * q + 2 * g;

            if (i < m.A.nrow)
                store_pair<M>(b, i, at, left(at), room(at), acc.d[q][0],
                              acc.d[q][2]);
            if (below)
                store_pair<M>(b, i + 1, at, left(at), room(at), acc.d[q][1],
                              acc.d[q][3]);
        }
        if (TAIL && i < m.A.nrow)
            store_pair<SINGLES>(b, i, c, one, some, acc.tail[0], 0);
        if (TAIL && below)
            store_pair<SINGLES>(b, i + 1, c, one, some, acc.tail[TAIL], 0);
    }
    return true;
}

/* The thread blocks process neighbouring windows in turn; U tiles are loaded
 * together. */
template <int THREADS, int Q, bool TAIL, int U, access M, class X, class I,
          class V>
__global__ void __launch_bounds__(THREADS)
tiles_kernel(const __grid_constant__ tiled<I, V> m,
             const __grid_constant__ padded_blocks<double> b, uint32_t stride)
{
    constexpr unsigned warps = THREADS / 32;
    const unsigned step = gridDim.x * warps;
    const lane_columns<Q, TAIL, M, X> columns(b);
    unsigned w = blockIdx.x * warps + threadIdx.x / 32;

    if (w >= (unsigned)m.windows) return;
    window_loop<I> at(m, w, step);

    for (; w < (unsigned)m.windows; w += step) {
        sums<Q, TAIL> acc = {};

        at.groups(m, w + 2 * step,
                  [&]<int TILES>(const group_words &words, I &value) {
            multiply_group<U, TILES, 0>(words, columns, stride, m.val, value,
                                        acc);
        });
        if (!finish_window<M>(m, b, at.now.rows, acc))
            sum_by_rows<sixteens_in<Q> + TAIL, M, X>(m, b, at.now.rows);
        at.advance();
    }
}

} // namespace

#endif
