/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocks.cuh - the kernel of spmm.blocks, a product on node blocks
 * (kernels/formats/node_blocks.h).
 *
 * Lanes: L of a warp own a block row, B rows of Y, each with C lumps of them
 * (lumps.cuh); neighbouring block rows are in neighbouring lanes.  Each row of
 * X that a block names is loaded once for B rows of Y.
 *
 * Numbers and columns of A come through a ring in shared memory, `stages` of Q
 * blocks for each block row of the warp, copied asynchronously:
 * memory is waited for that far ahead, over the ends of block rows, at no cost
 * in registers.  A number is read there once for each step, by all lanes of its
 * block row at once.  Slots behind the end of a block row have zeros, and its
 * last column, so that what they read has been read anyway; a block row of
 * nothing reads row 0, and forgets it.
 *
 * Rows of X come in batches of U, out of L1 where a neighbour has used them:
 * blocks of threads take tiles of neighbouring block rows (lines of them,
 * order.lead apart, where those name the same columns), all of the device
 * neighbouring tiles.  No atomics; sums go in the order of the columns. */
#ifndef SPS_CUDA_SPMM_BLOCKS_CUH
#define SPS_CUDA_SPMM_BLOCKS_CUH

#include "lumps.cuh"
#include "node_blocks.cuh"

namespace {

constexpr int stages = 3;

/* Blocks in a stage, about 36 numbers; rows of X in a batch, as registers
 * allow. */
template <int B>
constexpr int staged = B == 2 ? 8 : B == 3 ? 4 : B == 6 || B == 8 ? 1 : 2;
template <int B, int C, bool TAIL>
constexpr int batch = B > 4 ? (!TAIL || B % 2 ? B : B / 2)
                    : C + TAIL == 1 ? (B == 3 ? 12 : 8)
                    : C + TAIL == 2 ? (B == 2 ? 8 : B == 3 ? 6 : 4)
                                    : (B == 4 ? 2 : 4);

/* The ring of a block row.  Lumps of 16 bytes are copied as they lie in memory,
 * so the numbers of a stage begin up to each - 1 places late.  An odd number of
 * lumps: the block rows of a warp lie in other banks. */
template <int B, class V> struct ring {
    static constexpr int each = 16 / (int)sizeof(V), Q = staged<B>;
    static constexpr bool late = B * B % each != 0;
    static constexpr int lumps =
        (Q * B * B + (late ? each - 1 : 0) + each - 1) / each;
    static constexpr int columns = (stages * Q + 3) / 4;
    static constexpr int odd = (stages * lumps + columns) % 2 == 0;
    V val[stages][lumps * each];
    int32_t column[(columns + odd) * 4];

    /* Where the numbers of a block begin behind the lump that they are in. */
    static __device__ __forceinline__ int shift(int64_t block)
    {
        return late ? (int)(block * (B * B)) & (each - 1) : 0;
    }
};

/* `bytes` of them, the rest zeros.  Few lanes ask for pieces that end inside
 * sectors: then by L1, which has the rest of the sector for the next piece. */
template <bool BY_L1>
__device__ __forceinline__ void copy_lump(void *to, const void *from, int bytes)
{
    const uint32_t place = (uint32_t)__cvta_generic_to_shared(to);

    if (BY_L1)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                     :: "r"(place), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(place), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy_column(void *to, const int32_t *from,
                                            bool some)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from),
                    "r"(some ? 4 : 0) : "memory");
}

/* Tiles of `lines` runs of block rows, `lead` apart; `each` tiles beside each
 * other make up lead rows of every line. */
struct tile_order {
    int64_t tiles, lead, each;
    int run, lines;
};

/* Block rows row .. row + rows - 1 of a warp, at most P. */
template <int P> struct tile_walker {
    int64_t tile, row;
    int rows;

    __device__ __forceinline__ void open(const tile_order &o, int64_t mb)
    {
        const int place = (int)(threadIdx.x >> 5) * P, line = place / o.run;
        const int64_t band = tile / o.each;
        const int64_t x = (tile - band * o.each) * o.run + place - line * o.run;

        row = (band * o.lines + line) * o.lead + x;
        rows = (int)max((int64_t)0, min((int64_t)P, min(o.lead - x, mb - row)));
    }
};

/* Fills the ring, a stage at a time, over the tiles of a block of threads. */
template <int B, int L, class V> struct feeder {
    using R = ring<B, V>;
    const node_matrix<V> &A;
    const tile_order &order;
    R &to;
    tile_walker<32 / L> at;
    int64_t first;           /* next block of this group of lanes */
    int count, most, slot;   /* blocks left, of it and of the warp */

    __device__ __forceinline__ feeder(const node_matrix<V> &of,
                                      const tile_order &o, R &into)
        : A(of), order(o), to(into), slot(0)
    {
        at.tile = blockIdx.x;
        open();
    }
    __device__ __forceinline__ void open()
    {
        const int sub = (int)threadIdx.x % 32 / L;

        at.open(order, A.mb);
        first = 0;
        count = 0;
        if (sub < at.rows) {
            first = __ldg(A.start + at.row + sub);
            count = (int)(__ldg(A.start + at.row + sub + 1) - first);
        }
        most = __reduce_max_sync(all_lanes, count);
    }
    /* The next stage of this group; count may be below zero. */
    __device__ __forceinline__ void copy()
    {
        const int l = (int)threadIdx.x % L, late = R::shift(first);
        const V *val = A.val + (first * (B * B) - late);
        const int bytes = count > 0
            ? (count * (B * B) + late) * (int)sizeof(V) : 0;

#pragma unroll
        for (int e = l; e < R::lumps; e += L) {
            const int n = max(0, min(16, bytes - 16 * e));

            copy_lump<L == 4>(&to.val[slot][e * R::each],
                              n > 0 ? val + e * R::each : A.val, n);
        }
#pragma unroll
        for (int e = l; e < R::Q; e += L)
            copy_column(&to.column[slot * R::Q + e],
                        A.column + (first + min(e, count - 1)),
                        first + count > 0);
    }
    __device__ __forceinline__ void feed()
    {
        /* Block rows of nothing take no stage. */
        while (most <= 0 && at.tile < order.tiles) {
            at.tile += gridDim.x;
            if (at.tile < order.tiles) open();
        }
        if (at.tile < order.tiles) {
            copy();
            first += R::Q;
            count -= R::Q;
            most -= R::Q;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        slot = slot + 1 == stages ? 0 : slot + 1;
    }
};

/* How columns end: with a whole lump; within one, whose others are padding that
 * may be read; within one, and behind the last row of X there may be nothing,
 * or the last block may end there. */
enum ends { WHOLE, PADDED, BARE };

/* A lane's part of rows of X and Y: lump q at column W (l + L q), and with a
 * TAIL number l of the L columns behind all lumps.  What is no column is not
 * stored but as a zero; the last one is read in its place, which touches no
 * sector more. */
template <int L, int C, int W, ends E, bool TAIL, class T>
struct lane_lumps {
    const char *x[C + TAIL];
    int at[C], tail;
    int left;                /* columns of lump C - 1 */

    __device__ __forceinline__ lane_lumps(const padded_blocks<T> &b)
    {
        const int l = (int)threadIdx.x % L, last = (b.k - 1) / W * W;

#pragma unroll
        for (int q = 0; q < C; q++) {
            at[q] = W * (l + L * q);
            x[q] = reinterpret_cast<const char *>(b.x + min(at[q], last));
        }
        left = b.k - min(at[C - 1], last);
        tail = W * L * C + l;
        if (TAIL)
            x[C] = reinterpret_cast<const char *>(b.x + min(tail, b.k - 1));
    }
    __device__ __forceinline__ static const T *row(const char *x, int32_t j,
                                                   uint32_t stride)
    {
        return reinterpret_cast<const T *>(x + (uint64_t)(uint32_t)j * stride);
    }
    __device__ __forceinline__ void load(int32_t j, uint32_t stride,
                                         lump<T, W> *v, lump<T, 1> *t) const
    {
#pragma unroll
        for (int q = 0; q < C; q++) whole(row(x[q], j, stride), v[q]);
        if (TAIL) whole(row(x[C], j, stride), *t);
    }
    /* The same without padding. */
    __device__ __forceinline__ void load_bare(int32_t j, uint32_t stride,
                                              lump<T, W> *v) const
    {
#pragma unroll
        for (int q = 0; q < C; q++)
            v[q] = fetch<W>(row(x[q], j, stride), q == C - 1 ? left : W);
    }
    __device__ __forceinline__ void store(const padded_blocks<T> &b, int64_t i,
                                          const lump<T, W> *sum,
                                          const lump<T, 1> *t) const
    {
        T *y = b.y + i * b.ldy;

#pragma unroll
        for (int q = 0; q < C; q++)
            finish<W>(b, i, y + at[q], TAIL ? W : b.k - at[q],
                      TAIL ? W : b.room - at[q], sum[q]);
        if (TAIL) finish<1>(b, i, y + tail, b.k - tail, b.room - tail, *t);
    }
};

/* acc[r] += A X for blocks number s .. most - 1 of a block row, as far as the
 * stage has them: numbers at val, columns at column. */
template <int B, int L, int C, int W, ends E, bool TAIL, class T, class V>
__device__ __forceinline__ void
add_stage(const V *val, const int32_t *column,
          const lane_lumps<L, C, W, E, TAIL, T> &lumps, int s,
          int most, int32_t last_row, uint32_t stride, lump<T, W> (*acc)[C],
          lump<T, 1> *tail)
{
    constexpr int Q = ring<B, V>::Q, U = batch<B, C, TAIL>;
    static_assert(Q * B % U == 0);

#pragma unroll
    for (int e = 0; e < Q * B; e += U) {
        lump<T, W> v[U][C];
        lump<T, 1> t[U];
        auto name = [&](int u) {
            const int32_t j = column[(e + u) / B] * B + (e + u) % B;

            return W > 1 ? j : min(j, last_row);
        };
        auto behind = [&](int last) { return column[last / B] * B + B; };

        if (s + e / B >= most) break;
        if (E == BARE &&
            __any_sync(all_lanes, behind(e + U - 1) > last_row)) {
#pragma unroll
            for (int u = 0; u < U; u++)
                lumps.load_bare(min(name(u), last_row), stride, v[u]);
        } else {
#pragma unroll
            for (int u = 0; u < U; u++)
                lumps.load(name(u), stride, v[u], t + u);
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int r = 0; r < B; r++) {
                const T a = (T)val[(e + u) * B + r];

                add<C, W>(a, v[u], acc[r]);
                if (TAIL) add<1, 1>(a, t + u, tail + r);
            }
    }
}

/* At most W L C columns, more than W L (C - 1) of them; with a tail W L C and
 * up to L more. */
template <int THREADS, int B, int L, int C, int W, ends E, bool TAIL,
          class T, class V>
__global__ void __launch_bounds__(THREADS, 512 / THREADS)
ring_kernel(node_matrix<V> A, int32_t last_row, padded_blocks<T> b,
            tile_order order, uint32_t stride)
{
    using R = ring<B, V>;
    constexpr int P = 32 / L, Q = R::Q;
    extern __shared__ __align__(16) char memory[];
    const int sub = (int)threadIdx.x % 32 / L;
    R &own = reinterpret_cast<R *>(memory)[threadIdx.x / L];
    const lane_lumps<L, C, W, E, TAIL, T> lumps(b);
    tile_walker<P> at;
    int slot = 0;

    b.resolve();
    feeder<B, L, V> from(A, order, own);
    for (int s = 0; s < stages; s++) from.feed();
    for (at.tile = blockIdx.x; at.tile < order.tiles; at.tile += gridDim.x) {
        lump<T, W> acc[B][C] = {};
        lump<T, 1> tail[B] = {};
        int64_t first = 0;
        int mine = 0, most;

        at.open(order, A.mb);
        const int64_t row = at.row + sub;
        if (sub < at.rows) {
            first = __ldg(A.start + row);
            mine = (int)(__ldg(A.start + row + 1) - first);
        }
        most = __reduce_max_sync(all_lanes, mine);
#pragma unroll 1
        for (int s = 0; s < most; s += Q) {
            const V *val = own.val[slot] + R::shift(first + s);
            const int32_t *column = own.column + slot * Q;

            asm volatile("cp.async.wait_group %0;" :: "n"(stages - 1)
                         : "memory");
            __syncwarp();
            add_stage<B, L, C, W, E, TAIL>(val, column, lumps, s, most,
                                           last_row, stride, acc, tail);
            __syncwarp();
            from.feed();
            slot = slot + 1 == stages ? 0 : slot + 1;
        }
        if (sub >= at.rows) continue;
#pragma unroll
        for (int r = 0; r < B; r++) {
            if (mine == 0) {
#pragma unroll
                for (int q = 0; q < C; q++) acc[r][q] = {};
                tail[r] = {};
            }
            if (row * B + r < A.nrow)
                lumps.store(b, row * B + r, acc[r], tail + r);
        }
    }
}

} // namespace

#endif
