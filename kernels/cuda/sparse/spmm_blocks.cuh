/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocks.cuh - the kernel of spmm.blocks, a product on node blocks
 * (kernels/formats/node_blocks.h).
 *
 * Lanes: L lanes of a warp process a block row, that is B rows of Y; of each
 * row of X and Y a lane has C vectors (vectors.cuh).  Neighbouring block rows
 * are in neighbouring lanes.  Each row of X that a block uses is loaded once
 * for B rows of Y.
 *
 * Numbers and columns of A pass through a staged pipeline (`ring`) in shared
 * memory, with `stages` stages of Q blocks for each block row of the warp,
 * filled by asynchronous copies.  So they are prefetched by that many blocks,
 * across the ends of block rows, without registers.  A number is read from
 * shared memory once per step, as a broadcast to all lanes of its block row.
 * Slots past the end of a block row hold zeros and its last column, so that
 * they load a row of X that has been loaded already; an empty block row loads
 * row 0 and discards its sums.
 *
 * Rows of X are loaded in batches of U, from L1 if a neighbouring row has used
 * them: thread blocks process tiles of neighbouring block rows (from several
 * grid lines, order.lead apart, if these use the same columns), and the
 * resident thread blocks of the device process neighbouring tiles.  No atomics;
 * sums are in the order of the columns. */
#ifndef SPS_CUDA_SPMM_BLOCKS_CUH
#define SPS_CUDA_SPMM_BLOCKS_CUH

#include "cuda/sparse/vectors.cuh"
#include "cuda/sparse/node_blocks_device.cuh"

namespace {

constexpr int stages = 3;

/* Number of blocks per stage (Q): 32 to 36 numbers for B = 2, 3, 4 and 6, else
 * 50 to 98. */
template <int B>
constexpr int staged = B == 2 ? 8 : B == 3 ? 4 : B == 6 || B == 8 ? 1 : 2;
/* Number of rows of X per batch (U), as registers allow. */
template <int B, int C, bool TAIL>
constexpr int batch = B > 4 ? (!TAIL || B % 2 ? B : B / 2)
                    : C + TAIL == 1 ? (B == 3 ? 12 : 8)
                    : C + TAIL == 2 ? (B == 2 ? 8 : B == 3 ? 6 : 4)
                                    : (B == 4 ? 2 : 4);

/* The stage buffers of a block row.  Aligned vectors of 16 bytes are copied, so
 * the numbers of a stage may begin up to each - 1 positions after the start of
 * their first vector.  The size is an odd number of vectors: then the block
 * rows of a warp use different banks. */
template <int B, class V> struct ring {
    static constexpr int each = 16 / (int)sizeof(V), Q = staged<B>;
    static constexpr bool late = B * B % each != 0;
    static constexpr int vectors =
        (Q * B * B + (late ? each - 1 : 0) + each - 1) / each;
    static constexpr int columns = (stages * Q + 3) / 4;
    static constexpr int odd = (stages * vectors + columns) % 2 == 0;
    V val[stages][vectors * each];
    int32_t column[(columns + odd) * 4];

    /* Returns the offset of the first value of a block in its 16-byte
     * vector. */
    static __device__ __forceinline__ int shift(int64_t block)
    {
        return late ? (int)(block * (B * B)) & (each - 1) : 0;
    }
};

/* Copies the first `bytes` of 16 bytes to shared memory and fills the rest with
 * zeros.  BY_L1: the copy is through L1 (.ca), for few lanes, whose copies at a
 * time end inside sectors: L1 holds the rest of the sector for the next
 * ones. */
template <bool BY_L1>
__device__ __forceinline__ void copy_vector(void *to, const void *from,
                                            int bytes)
{
    const uint32_t place = (uint32_t)__cvta_generic_to_shared(to);

    if (BY_L1)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;"
                     :: "r"(place), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(place), "l"(from), "r"(bytes) : "memory");
}
/* Copies 16 bytes. */
template <bool BY_L1>
__device__ __forceinline__ void copy_whole_vector(uint32_t to, const void *from)
{
    if (BY_L1)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;"
                     :: "r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :: "r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy_column(void *to, const int32_t *from,
                                            bool some)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from),
                    "r"(some ? 4 : 0) : "memory");
}

/* A warp works on `group` neighbouring block rows at a time, at most P.
 * A band is `lines` grid lines, which begin `lead` block rows apart; its
 * `each` groups are numbered across the lines, so that a tile, which is one
 * group for each warp of a thread block, has neighbours in all of them, and no
 * warp is without work where a line ends. */
struct tile_order {
    int64_t tiles, lead;
    uint32_t each;
    int lines;
};

/* The place of a warp: block rows row .. row + rows - 1, at most P, in tile
 * `tile`. */
template <int P> struct tile_walker {
    int64_t tile, row;
    int rows;

    __device__ __forceinline__ void open(const tile_order &o, int64_t mb)
    {
        const uint32_t at = (uint32_t)tile * (blockDim.x >> 5) +
                            (threadIdx.x >> 5);
        const uint32_t band = at / o.each, group = at - band * o.each;
        const uint32_t along = o.lines == 1 ? group : group / 4;
        const int64_t x = (int64_t)along * P, line = group - along * o.lines;

        row = ((int64_t)band * o.lines + line) * o.lead + x;
        rows = (int)max((int64_t)0, min((int64_t)P, min(o.lead - x, mb - row)));
    }
};

/* Producer of the pipeline: fills one stage at a time, over all tiles of a
 * thread block. */
template <int B, int L, class V> struct feeder {
    using R = ring<B, V>;
    const node_matrix<V> &A;
    const tile_order &order;
    R &to;
    tile_walker<32 / L> at;
    int64_t first;           /* index of the next block that this group of lanes
                                copies */
    int count, most, slot;   /* blocks left of this group, and the maximum over
                                the warp */

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
    /* Copies the blocks of the next stage of this group: `count` of them, the
     * rest of the stage gets zeros and the last column. */
    __device__ __forceinline__ void copy()
    {
        const int l = (int)threadIdx.x % L, late = R::shift(first);
        const V *val = A.val + (first * (B * B) - late);
        const int bytes = count > 0
            ? (count * (B * B) + late) * (int)sizeof(V) : 0;

#pragma unroll
        for (int e = l; e < R::vectors; e += L) {
            const int n = max(0, min(16, bytes - 16 * e));

            copy_vector<L == 4>(&to.val[slot][e * R::each],
                              n > 0 ? val + e * R::each : A.val, n);
        }
#pragma unroll
        for (int e = l; e < R::Q; e += L)
            copy_column(&to.column[slot * R::Q + e],
                        A.column + (first + min(e, count - 1)),
                        first + count > 0);
    }
    /* Does what copy() does, with a tenth of the instructions, if each group of
     * the warp has more blocks than a stage, so that no vector of the stage is
     * past the end. */
    __device__ __forceinline__ void copy_whole()
    {
        static_assert(!R::late || B * B >= 2 * R::each - 2);
        const int l = (int)threadIdx.x % L;
        const V *val = A.val + (first * (B * B) - R::shift(first)) +
                       l * R::each;
        const int32_t *column = A.column + first + l;
        const uint32_t place = (uint32_t)__cvta_generic_to_shared(
            &to.val[slot][l * R::each]);

#pragma unroll
        for (int e = 0; e < R::vectors; e += L)
            if (e + l < R::vectors)
                copy_whole_vector<L == 4>(place + 16 * e, val + e * R::each);
#pragma unroll
        for (int e = 0; e < R::Q; e += L)
            if (e + l < R::Q)
                copy_column(&to.column[slot * R::Q + l + e], column + e, true);
    }
    __device__ __forceinline__ void feed()
    {
        /* Skips block rows without blocks, which take no stage. */
        while (most <= 0 && at.tile < order.tiles) {
            at.tile += gridDim.x;
            if (at.tile < order.tiles) open();
        }
        if (at.tile < order.tiles) {
            if (__all_sync(all_lanes, count > R::Q)) copy_whole();
            else copy();
            first += R::Q;
            count -= R::Q;
            most -= R::Q;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
        slot = slot + 1 == stages ? 0 : slot + 1;
    }
};

__device__ __forceinline__ void whole(const float *p, vec<float, 2> &r)
{
    const float2 v = __ldg(reinterpret_cast<const float2 *>(p));

    r.v[0] = v.x, r.v[1] = v.y;
}

/* A lane's part of rows of X and Y: vector q at column W (l + L q) and, with
 * TAIL, column l of the L columns after all vectors.  Positions that are not
 * columns are stored as zeros or not at all; the last column is loaded in their
 * place, which touches no additional sector. */
template <int L, int C, int W, bool TAIL, class T, class X = T>
struct lane_vectors {
    const char *x[C + TAIL];
    int at[C], tail;
    int left;                /* number of columns in the last vector, C - 1 */

    __device__ __forceinline__ lane_vectors(const padded_blocks<T> &b)
    {
        const int l = (int)threadIdx.x % L, last = (b.k - 1) / W * W;

#pragma unroll
        for (int q = 0; q < C; q++) {
            at[q] = W * (l + L * q);
            x[q] = reinterpret_cast<const char *>(
                reinterpret_cast<const X *>(b.x) + min(at[q], last));
        }
        left = b.k - min(at[C - 1], last);
        tail = W * L * C + l;
        if (TAIL)
            x[C] = reinterpret_cast<const char *>(b.x + min(tail, b.k - 1));
    }
    __device__ __forceinline__ static const X *row(const char *x, int32_t j,
                                                   uint32_t stride)
    {
        return reinterpret_cast<const X *>(x + (uint64_t)(uint32_t)j * stride);
    }
    __device__ __forceinline__ void load(int32_t j, uint32_t stride,
                                         vec<X, W> *v, vec<X, 1> *t) const
    {
#pragma unroll
        for (int q = 0; q < C; q++) whole(row(x[q], j, stride), v[q]);
        if (TAIL) whole(row(x[C], j, stride), *t);
    }
    /* Loads this lane's vectors of row j of X where padding must not be read:
     * of the last vector only `left` columns are loaded. */
    __device__ __forceinline__ void load_bare(int32_t j, uint32_t stride,
                                              vec<X, W> *v) const
    {
#pragma unroll
        for (int q = 0; q < C; q++)
            v[q] = fetch<W>(row(x[q], j, stride), q == C - 1 ? left : W);
    }
    __device__ __forceinline__ void store(const padded_blocks<T> &b, int64_t i,
                                          const vec<T, W> *sum,
                                          const vec<T, 1> *t) const
    {
        T *y = b.y + i * b.ldy;

#pragma unroll
        for (int q = 0; q < C; q++)
            finish<W>(b, i, y + at[q], TAIL ? W : b.k - at[q],
                      TAIL ? W : b.room - at[q], sum[q]);
        if (TAIL) finish<1>(b, i, y + tail, b.k - tail, b.room - tail, *t);
    }
};

/* Loads a vector of Y, which the kernel writes later. */
__device__ __forceinline__ void written(const double *p, vec<double, 2> &r)
{
    const double2 v = *reinterpret_cast<const double2 *>(p);

    r.v[0] = v.x, r.v[1] = v.y;
}
__device__ __forceinline__ void written(const float *p, vec<float, 4> &r)
{
    const float4 v = *reinterpret_cast<const float4 *>(p);

    r.v[0] = v.x, r.v[1] = v.y, r.v[2] = v.z, r.v[3] = v.w;
}

/* The vectors of W, the old Y and X for an epilogue. */
template <int W, class T> struct operands {
    vec<T, W> w, old, own;

    __device__ __forceinline__ void read(const blocks<T> &b, int64_t at)
    {
        if (b.w) whole(b.w + at, w);
        if (b.beta != 0) written(b.y + at, old);
        if (b.delta != 0) whole(b.x + at, own);
    }
    /* Returns the vector of Y for the sums of row i, by the formula of
     * blocks.join. */
    __device__ __forceinline__ vec<T, W> join(const blocks<T> &b,
                                               const vec<T, W> &sum,
                                               int64_t i) const
    {
        const T d = b.d ? (T)b.d[i] : T(1);
        vec<T, W> r;

#pragma unroll
        for (int e = 0; e < W; e++) {
            T v = b.fused || b.alpha != 0 ? (T)b.alpha * sum.v[e] : T(0);

            if (b.w) v = fma((T)b.gamma, w.v[e], v);
            if (b.d) v *= d;
            if (b.beta != 0) v = fma((T)b.beta, old.v[e], v);
            if (b.delta != 0) v = fma((T)b.delta, own.v[e], v);
            r.v[e] = v;
        }
        return r;
    }
};

/* Returns whether an epilogue reads whole vectors in this lane. */
template <int W, class T>
__device__ __forceinline__ bool in_vectors(const padded_blocks<T> &b, int at)
{
    return (b.fused || b.beta != 0) && b.k - at >= W &&
           (uintptr_t)b.w % 16 == 0;
}

/* Stores the sums of the rows i .. i + B - 1, in this lane's vector at column
 * `at`, with an epilogue whose operands are all loaded first. */
template <int B, int W, class T>
__device__ __forceinline__ void
store_vectors(const padded_blocks<T> &b, int64_t i, int64_t nrow, int at,
              const vec<T, W> (*sum)[1])
{
    operands<W, T> o[B] = {};

#pragma unroll
    for (int r = 0; r < B; r++)
        if (i + r < nrow) o[r].read(b, (i + r) * b.ldy + at);
#pragma unroll
    for (int r = 0; r < B; r++)
        if (i + r < nrow)
            put(b.y + (i + r) * b.ldy + at, o[r].join(b, sum[r][0], i + r));
}

/* acc += a v for a v of floats. */
template <int W>
__device__ __forceinline__ void add_wide(double a, const vec<float, W> &v,
                                         vec<double, W> &acc)
{
#pragma unroll
    for (int w = 0; w < W; w++) acc.v[w] = fma(a, (double)v.v[w], acc.v[w]);
}

/* acc[r] += A X for the blocks s .. most - 1 of a block row, as far as the
 * stage holds them, with values at val and columns at column.  BARE: rows end
 * within a vector whose remaining numbers must not be read, or the last block
 * extends past the last row of X, after which there may be no memory; otherwise
 * rows end with a whole vector, or its remaining numbers are padding that may
 * be read. */
template <int B, int L, int C, int W, bool BARE, bool TAIL, class T, class V,
          class X>
__device__ __forceinline__ void
add_stage(const V *val, const int32_t *column,
          const lane_vectors<L, C, W, TAIL, T, X> &vectors, int s,
          int most, int32_t last_row, uint32_t stride, vec<T, W> (*acc)[C],
          vec<T, 1> *tail)
{
    constexpr int Q = ring<B, V>::Q, U = batch<B, C, TAIL>;
    static_assert(Q * B % U == 0);

#pragma unroll
    for (int e = 0; e < Q * B; e += U) {
        vec<X, W> v[U][C];
        vec<X, 1> t[U];
        auto name = [&](int u) {
            const int32_t j = column[(e + u) / B] * B + (e + u) % B;

            return W > 1 ? j : min(j, last_row);
        };
        auto behind = [&](int last) { return column[last / B] * B + B; };

        if (s + e / B >= most) break;
        if (BARE &&
            __any_sync(all_lanes, behind(e + U - 1) > last_row)) {
#pragma unroll
            for (int u = 0; u < U; u++)
                vectors.load_bare(min(name(u), last_row), stride, v[u]);
        } else {
#pragma unroll
            for (int u = 0; u < U; u++)
                vectors.load(name(u), stride, v[u], t + u);
        }
#pragma unroll
        for (int u = 0; u < U; u++)
#pragma unroll
            for (int r = 0; r < B; r++) {
                const T a = (T)val[(e + u) * B + r];

                if constexpr (sizeof(X) == sizeof(T)) {
                    add<C, W>(a, v[u], acc[r]);
                    if (TAIL) add<1, 1>(a, t + u, tail + r);
                } else {
                    add_wide<W>(a, v[u][0], acc[r][0]);
                }
            }
    }
}

/* Computes the product for at most W L C columns, and more than W L (C - 1);
 * with TAIL for W L C columns and up to L more. */
template <int THREADS, int B, int L, int C, int W, bool BARE, bool TAIL,
          class T, class V, class X>
__global__ void __launch_bounds__(THREADS, 512 / THREADS)
ring_kernel(node_matrix<V> A, int32_t last_row, padded_blocks<T> b,
            tile_order order, uint32_t stride)
{
    using R = ring<B, V>;
    constexpr int P = 32 / L, Q = R::Q;
    extern __shared__ __align__(16) char memory[];
    const int sub = (int)threadIdx.x % 32 / L;
    R &own = reinterpret_cast<R *>(memory)[threadIdx.x / L];
    const lane_vectors<L, C, W, TAIL, T, X> vectors(b);
    tile_walker<P> at;
    int slot = 0;

    b.resolve();
    feeder<B, L, V> from(A, order, own);
    for (int s = 0; s < stages; s++) from.feed();
    for (at.tile = blockIdx.x; at.tile < order.tiles; at.tile += gridDim.x) {
        vec<T, W> acc[B][C] = {};
        vec<T, 1> tail[B] = {};
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
            add_stage<B, L, C, W, BARE, TAIL>(val, column, vectors, s, most,
                                           last_row, stride, acc, tail);
            __syncwarp();
            from.feed();
            slot = slot + 1 == stages ? 0 : slot + 1;
        }
        if (sub >= at.rows) continue;
        if (mine == 0) {
#pragma unroll
            for (int r = 0; r < B; r++) {
#pragma unroll
                for (int q = 0; q < C; q++) acc[r][q] = {};
                tail[r] = {};
            }
        }
        if constexpr (C == 1 && W > 1 && B < 5 && !TAIL && !BARE)
            if (in_vectors<W>(b, vectors.at[0])) {
                store_vectors<B, W>(b, row * B, A.nrow, vectors.at[0], acc);
                continue;
            }
#pragma unroll
        for (int r = 0; r < B; r++)
            if (row * B + r < A.nrow)
                vectors.store(b, row * B + r, acc[r], tail + r);
    }
}

} // namespace

#endif
