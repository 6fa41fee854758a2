/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_blocks.cuh - values of C = A B for A of dense, aligned blocks of R x K
 * entries and B of blocks of K x S (csr_block_pattern.cuh).
 *
 * The pattern of C follows from the product of the patterns of blocks, which
 * have R K and K S times fewer entries (csr_multiply_device.cu).  In a csr
 * whose rows are grouped into block rows, the entries of a block in one row are
 * consecutive, and the R rows of a block row have the same length: so a block
 * is found by arithmetic, and the values of R rows of C are stored from shared
 * memory in contiguous pieces.
 *
 * A warp computes the R rows of a block row of C or, where these are long, a
 * segment of their columns, for which it needs a segment of each block row of
 * B.  It visits the blocks of A in ascending order.  For 8 blocks of A at once,
 * with 4 lanes for each, it looks up the positions in C of the blocks of B by
 * which they are multiplied, once for each block of B.  Then each lane takes
 * one column of a block row of B and adds K products to each of R sums.  Each
 * sum is the chain of csr_product.cuh.
 *
 * A step multiplies a block of A by 32 columns of B.  The values of B are
 * loaded two steps ahead, also where a step begins another block row of B; the
 * values of A, and the positions at which the block rows of B begin, are loaded
 * 8 blocks ahead.
 *
 * Bytes: A and C once, B again whenever the caches have evicted it. */
#ifndef SPS_CUDA_CSR_BLOCKS_CUH
#define SPS_CUDA_CSR_BLOCKS_CUH

#include "cuda/spgemm/csr_block_pattern.cuh"

namespace {

/* blocks_ahead: number of blocks of A that a warp holds in shared memory at
 * once; lanes_each: number of lanes that look up positions for each of them. */
constexpr int blocks_ahead = 8, lanes_each = 32 / blocks_ahead;
/* Largest number of blocks of a block row of B whose positions in C are kept in
 * shared memory; the positions of further blocks are looked up by each lane. */
constexpr int places_most = 128;
/* Largest number of entries of a row of B that block_of supports. */
constexpr int block_row_most = 32000;

/* Returns the distance, in values of `number` bytes, of two r x k blocks of A
 * in shared memory: whole vectors of 16 bytes. */
__host__ __device__ constexpr int block_pitch(int r, int k, size_t number)
{
    return (r * k + (int)(16 / number) - 1) / (int)(16 / number) *
           (int)(16 / number);
}

template <class V> struct blocks_task {
    block_pattern A, B, C;
    const V *__restrict__ a, *__restrict__ b;
    row_list rows;            /* block rows of C */
    int parts;                /* number of segments of a block row of C, each
                                 computed by a warp */
    int places;               /* number of blocks of a block row of B whose
                                 positions are kept */
    int size;                 /* S, the number of columns of a block of B */
    int inverse;              /* 2^16 / S, rounded up */
    int most;                 /* largest number of blocks of a segment */
    bool known;               /* the columns of C are stored already */
    int32_t *col;
    V *val;
    unsigned long long *bad;  /* if `known`: the first row with other columns */

    /* Returns q / size for q <= block_row_most. */
    __device__ int block_of(int q) const { return q * inverse >> 16; }
};

/* Returns the shared memory of a warp in bytes, for values of `number`
 * bytes. */
inline size_t blocks_shared(int r, int k, int size, int most, int places,
                            size_t number)
{
    return ((size_t)r * size * most +
            block_pitch(r, k, number) * blocks_ahead) * number +
           (size_t)(most + most % 2) * sizeof(int32_t) +
           (size_t)blocks_ahead * places * sizeof(int16_t);
}

/* The part of the shared memory that belongs to a warp. */
template <int R, int K, class V> struct blocks_room {
    V *a;                     /* values of blocks_ahead blocks of A */
    V *sum;                   /* sums of R rows of the segment */
    int32_t *key;             /* block columns of the segment */
    int n;                    /* number of elements of `key` */
    int16_t *place;           /* for each block of A in `a`: the positions, in a
                                 row of the segment, of the first blocks of its
                                 block row of B; -1: none */

    __device__ blocks_room(const blocks_task<V> &t, int n) : n(n)
    {
        constexpr int values = block_pitch(R, K, sizeof(V)) * blocks_ahead;
        const int warps = (int)blockDim.x / 32, own = (int)threadIdx.x / 32;
        const int sums = R * t.size * t.most;
        V *all = (V *)product_shared + warps * values;

        a = (V *)product_shared + own * values;
        sum = all + own * sums;
        key = (int32_t *)(all + warps * sums) + own * t.most;
        place = (int16_t *)((int32_t *)(all + warps * sums) +
                            warps * t.most) + own * blocks_ahead * t.places;
    }
};

/* A group of blocks_ahead blocks of A: their values, as this lane loads them,
 * and for lane e the block row of B that the e-th one selects. */
template <int R, int K, class V> struct blocks_group {
    static constexpr int each = (blocks_ahead * K + 31) / 32;
    int64_t start;
    int width;                /* entries of a row of B; 0 if there is no e-th
                                 block */
    V a[R][each];
};

/* A step: the columns q + lane, up to `end`, of the block row of B that block e
 * of the group selects; b: their K values in this lane. */
template <int K, class V> struct blocks_step {
    int e, q, end;
    V b[K];
};

/* A segment of a block row of C: the block columns above `low`, up to
 * `high`. */
struct blocks_segment {
    int first, last;          /* it begins at block number `first` of the row,
                                 and ends before `last` */
    int32_t low, high;
};

/* Returns segment number `part` of the block row, whose n block columns begin
 * at `at`.  The first and the last one contain all columns that the row does
 * not have. */
template <class V>
__device__ __forceinline__ blocks_segment
segment_of(const blocks_task<V> &t, int64_t at, int n, int part)
{
    const int first = (int)((int64_t)n * part / t.parts);
    const int last = (int)((int64_t)n * (part + 1) / t.parts);

    return {first, last, first > 0 ? t.C.col[at + first - 1] : -1,
            last < n ? last > 0 ? t.C.col[at + last - 1] : -1 : INT32_MAX};
}

/* Computes R rows of a segment of a block row of C; split: whether there are
 * several segments. */
template <int R, int K, bool split, class V> struct blocks_row {
    static constexpr int pitch = block_pitch(R, K, sizeof(V));
    const blocks_task<V> &t;
    const blocks_room<R, K, V> &to;
    int lane;
    int64_t first;            /* index of the first block of A */
    int length;
    int32_t low, high;        /* the segment's */

    /* Returns, for lane e, the column of block base + e of A. */
    __device__ int32_t column(int base) const
    {
        return lane < blocks_ahead && base + lane < length
                   ? t.A.col[first + base + lane] : -1;
    }
    /* Loads the group of blocks of A from number `base` on; u: the columns of
     * this lane's block. */
    __device__ void load(int base, int32_t u, blocks_group<R, K, V> *g) const
    {
        const int width = min(length - base, blocks_ahead) * K;

        g->start = 0;
        g->width = 0;
        if (u >= 0) {
            g->start = t.B.rowptr[u];
            g->width = (int)(t.B.rowptr[u + 1] - g->start) * t.size;
        }
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int i = 0; i < g->each; i++)
                if (lane + 32 * i < width)
                    g->a[r][i] = t.a[(first * R + (int64_t)r * length + base) *
                                         K + lane + 32 * i];
    }
    /* Stores the values of a group in shared memory. */
    __device__ void store(const blocks_group<R, K, V> &g) const
    {
#pragma unroll
        for (int i = 0; i < g.each; i++) {
            const int x = lane + 32 * i;

#pragma unroll
            for (int r = 0; r < R; r++)
                if (x < blocks_ahead * K)
                    to.a[x / K * pitch + r * K + x % K] = g.a[r][i];
        }
    }
    /* Returns the position of block column c in a row of C, or -1.  A row
     * without entries has no key that could be compared. */
    __device__ int position(int32_t c) const
    {
        const int s = to.n > 0 ? find_column(to.key, to.n, c) : 0;

        return to.n > 0 && to.key[s] == c ? s * t.size : -1;
    }
    /* place[j step], j < together, becomes the position of block column c[j] >=
     * 0 in a row of C, or -1: searches in step, since each of them waits for
     * shared memory. */
    template <int together>
    __device__ void positions(const int32_t (&c)[together], int step,
                              int16_t *place) const
    {
        int low[together] = {};

        for (int left = to.n - 1; left > 0;) {
            const int half = (left + 1) / 2;

#pragma unroll
            for (int j = 0; j < together; j++)
                if (to.key[low[j] + half] <= c[j]) low[j] += half;
            left -= half;
        }
#pragma unroll
        for (int j = 0; j < together; j++)
            if (c[j] >= 0)
                place[j * step] = (int16_t)(
                    to.n > 0 && to.key[low[j]] == c[j] ? low[j] * t.size : -1);
    }
    /* Looks up the positions of the first blocks of the block rows of B.
     * Returns, in lane e, the columns that belong to the segment of the block
     * row of B that block e selects: the first one, and in the upper half word
     * the one behind the last. */
    __device__ unsigned look_up(const blocks_group<R, K, V> &g) const
    {
        constexpr int together = 4;
        const int e = lane / lanes_each;
        const int64_t start = __shfl_sync(all_lanes, g.start, e);
        const int all = t.block_of(__shfl_sync(all_lanes, g.width, e));
        const int count = split ? all : min(all, t.places);
        int16_t *place = to.place + e * t.places;
        int before = 0, within = 0;

        for (int i = lane % lanes_each; i < count; i += together * lanes_each) {
            int32_t c[together];

#pragma unroll
            for (int j = 0; j < together; j++) {
                const int at = i + j * lanes_each;

                c[j] = at < count ? t.B.col[start + at] : -1;
                before += at < count && c[j] <= low;
                within += at < count && c[j] <= high;
                if (at >= t.places) c[j] = -1;
            }
            positions(c, lanes_each, place + i);
        }
        return split ? sum_of_block((unsigned)(before | within << 16)) *
                           (unsigned)t.size
                     : (unsigned)g.width << 16;
    }
    /* Returns, in lane e, the sum of x over the lanes of block e. */
    __device__ unsigned sum_of_block(unsigned x) const
    {
        for (int d = lanes_each / 2; d > 0; d /= 2)
            x += __shfl_xor_sync(all_lanes, x, d);
        return __shfl_sync(all_lanes, x, lane % blocks_ahead * lanes_each);
    }
    /* Makes *s the step of block e of the group from column q on, or from its
     * first one if q < 0, and loads its values of B; range: what look_up
     * returns. */
    __device__ void load(const blocks_group<R, K, V> &g, unsigned range, int e,
                         int q, blocks_step<K, V> *s) const
    {
        const int from = e % blocks_ahead;
        const int64_t start = __shfl_sync(all_lanes, g.start, from);
        const int width = __shfl_sync(all_lanes, g.width, from);
        const unsigned columns = split ? __shfl_sync(all_lanes, range, from)
                                       : (unsigned)width << 16;

        s->e = e;
        s->q = q < 0 ? (int)(columns & 0xffff) : q;
        s->end = e < blocks_ahead ? (int)(columns >> 16) : 0;
        if (s->q + lane >= s->end) return;
        const V *b = t.b + start * K * t.size + s->q + lane;

#pragma unroll
        for (int k = 0; k < K; k++) s->b[k] = b[(int64_t)k * width];
    }
    /* Makes *s the step that follows `before`, and loads its values of B. */
    __device__ void follow(const blocks_group<R, K, V> &g, unsigned range,
                           const blocks_step<K, V> &before,
                           blocks_step<K, V> *s) const
    {
        const bool on = before.q + 32 < before.end;

        load(g, range, before.e + !on, on ? before.q + 32 : -1, s);
    }
    /* Adds the products of a step; returns false if C has no place for them. */
    __device__ bool add(const blocks_group<R, K, V> &g,
                        const blocks_step<K, V> &s) const
    {
        const int q = s.q + lane, block = t.block_of(q);
        int64_t start = 0;
        int at;

        if (s.end > t.places * t.size)
            start = __shfl_sync(all_lanes, g.start, s.e);
        if (q >= s.end) return true;
        if (block < t.places) at = to.place[s.e * t.places + block];
        else at = position(t.B.col[start + block]);
        if (at < 0) return false;
        const V *a = (const V *)__builtin_assume_aligned(to.a + s.e * pitch,
                                                         16);
        V *sum = to.sum + at + q - block * t.size, x[R];

        /* The R chains proceed together, with no store between their loads. */
#pragma unroll
        for (int r = 0; r < R; r++) x[r] = sum[r * to.n * t.size];
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
            for (int r = 0; r < R; r++) x[r] = fma(a[r * K + k], s.b[k], x[r]);
#pragma unroll
        for (int r = 0; r < R; r++) sum[r * to.n * t.size] = x[r];
        return true;
    }
    /* Adds the products of the first `count` blocks of a group with B; returns
     * false if C has no place for one of them. */
    __device__ bool add_group(const blocks_group<R, K, V> &g, int count) const
    {
        unsigned range = (unsigned)g.width << 16;
        blocks_step<K, V> s[3];
        bool good = true;

        if (split) range = look_up(g);
        load(g, range, 0, -1, &s[0]);
        follow(g, range, s[0], &s[1]);
        if (!split) look_up(g);
        __syncwarp();
        for (;;)
#pragma unroll
            for (int i = 0; i < 3; i++) {
                if (s[i].e >= count) return good;
                follow(g, range, s[(i + 1) % 3], &s[(i + 2) % 3]);
                good = add(g, s[i]) && good;
                __syncwarp();
            }
    }
    /* Adds the products of all blocks of the block row of A; returns false if C
     * has no place for one of them. */
    __device__ bool add_all(void) const
    {
        blocks_group<R, K, V> now, next;
        int32_t u;
        bool good = true;

        load(0, column(0), &next);
        u = column(blocks_ahead);
        for (int base = 0; base < length; base += blocks_ahead) {
            now = next;
            store(now);
            load(base + blocks_ahead, u, &next);
            u = column(base + 2 * blocks_ahead);
            good = add_group(now, min(length - base, blocks_ahead)) && good;
        }
        return good;
    }
};

/* Loads the block columns of a segment, which begin at `at`, and clears its
 * `all` sums. */
template <int R, int K, class V>
__device__ __forceinline__ void
open_row(const blocks_task<V> &t, const blocks_room<R, K, V> &to, int64_t at,
         int all)
{
    const int lane = (int)threadIdx.x % 32;

    for (int s = lane; s < to.n; s += 32) to.key[s] = t.C.col[at + s];
    for (int x = lane; x < all; x += 32) to.sum[x] = (V)-0.0;
    __syncwarp();
}

/* Stores the sums of a segment as values of the R rows of C from `begin` on,
 * which have `width` entries each, behind the first `skip` of each row; and
 * their columns unless these are known. */
template <int R, int K, class V>
__device__ __forceinline__ void
close_row(const blocks_task<V> &t, const blocks_room<R, K, V> &to,
          int64_t begin, int width, int skip)
{
    const int lane = (int)threadIdx.x % 32, own = t.size * to.n;

    __syncwarp();
    for (int x = lane; x < own; x += 32) {
        const int s = t.block_of(x);
        const int32_t c = to.key[s] * t.size + x - s * t.size;

#pragma unroll
        for (int r = 0; r < R; r++) {
            const int64_t at = begin + (int64_t)r * width + skip + x;

            t.val[at] = to.sum[r * own + x];
            if (!t.known) t.col[at] = c;
        }
    }
}

template <int R, int K, bool split, class V>
__global__ void __launch_bounds__(256, R == 6 || K == 6 ? 2 : 3)
fill_blocks(const blocks_task<V> t)
{
    const int lane = (int)threadIdx.x % 32;
    const int parts = split ? t.parts : 1;
    const int64_t number = group_number<32>() / parts;

    if (number >= t.rows.count) return;
    const int64_t v = t.rows.at(number), at = t.C.rowptr[v];
    const int n = (int)(t.C.rowptr[v + 1] - at);
    const blocks_segment own =
        split ? segment_of(t, at, n, (int)(group_number<32>() % parts))
              : blocks_segment{0, n, -1, INT32_MAX};

    if (own.first == own.last && n > 0) return;
    const blocks_room<R, K, V> to(t, own.last - own.first);

    open_row(t, to, at + own.first, R * t.size * to.n);
    const int64_t first = t.A.rowptr[v];
    const blocks_row<R, K, split, V> row = {
        t, to, lane, first, (int)(t.A.rowptr[v + 1] - first), own.low,
        own.high};

    if (!row.add_all()) atomicMin(t.bad, (unsigned long long)v * R);
    close_row(t, to, at * R * t.size, n * t.size, own.first * t.size);
}

/* ----------------------------------------------------------- single blocks */

/* Where block rows of B have one block at most, as those of a tentative
 * prolongator, few lanes would have a column of a step.  Here a warp computes a
 * block row of C, and each lane one element (and that 32 places behind it) of
 * all its R x S blocks. */
template <int R, int K, class V> struct single_row {
    static constexpr int together = K == 6 ? 2 : 4;
    const blocks_task<V> &t;
    const blocks_room<R, K, V> &to;
    int lane;
    int64_t first;            /* index of the first block of A */
    int length;

    /* Finds, for block number e of A, the first value of its block of B and the
     * position of the columns of that in a row of C; *at = -1 if there is no
     * block, -2 if C has no such columns. */
    __device__ void find(int e, int64_t *b, int *at) const
    {
        *b = 0;
        *at = -1;
        if (e >= length) return;
        const int32_t k = t.A.col[first + e];
        const int64_t p = t.B.rowptr[k];

        if (p == t.B.rowptr[k + 1]) return;
        const int32_t c = t.B.col[p];
        const int s = to.n > 0 ? find_column(to.key, to.n, c) : 0;

        *b = p * K * t.size;
        *at = to.n > 0 && to.key[s] == c ? s * t.size : -2;
    }
    /* Adds the products of the next blocks to the lane's sums: those for which
     * lane e0, e0 + 1, ... has found something. */
    __device__ void add(int e0, int64_t own, int place, const V *a, int j,
                        bool some, V *sum) const
    {
        V left[together][K], right[together][K];
        int at[together];

#pragma unroll
        for (int u = 0; u < together; u++) {
            const V *b = t.b + __shfl_sync(all_lanes, own, e0 + u) + j;

            at[u] = __shfl_sync(all_lanes, place, e0 + u);
            if (!some) at[u] = -1;
#pragma unroll
            for (int k = 0; k < K; k++) {
                left[u][k] = at[u] >= 0 ? a[(e0 + u) * K + k] : 0;
                right[u][k] = at[u] >= 0 ? b[k * t.size] : 0;
            }
        }
#pragma unroll
        for (int u = 0; u < together; u++) {
            if (at[u] < 0) continue;
            V value = sum[at[u]];

#pragma unroll
            for (int k = 0; k < K; k++)
                value = fma(left[u][k], right[u][k], value);
            sum[at[u]] = value;
        }
    }
    /* Computes element x of all blocks; returns false if C has no place for one
     * of them. */
    __device__ bool add_all(int x) const
    {
        const bool some = x < R * t.size;
        const int r = some ? x / t.size : 0, j = some ? x - r * t.size : 0;
        const V *a = t.a + (first * R + (int64_t)r * length) * K;
        V *const sum = to.sum + r * to.n * t.size + j;
        bool good = true;

        for (int base = 0; base < length; base += 32, a += 32 * K) {
            int64_t own;
            int place;

            find(base + lane, &own, &place);
            good = good && place != -2;
            for (int e = 0; e < min(length - base, 32); e += together)
                add(e, own, place, a, j, some, sum);
        }
        return good;
    }
};

template <int R, int K, class V> __global__ void __launch_bounds__(256)
fill_single(const blocks_task<V> t)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t number = group_number<32>();
    bool good = true;

    if (number >= t.rows.count) return;
    const int64_t v = t.rows.at(number), at = t.C.rowptr[v];
    const int n = (int)(t.C.rowptr[v + 1] - at), all = R * t.size * n;
    const blocks_room<R, K, V> to(t, n);

    open_row(t, to, at, all);
    const int64_t first = t.A.rowptr[v];
    const single_row<R, K, V> row = {t, to, lane, first,
                                     (int)(t.A.rowptr[v + 1] - first)};

    for (int x = lane; x - lane < R * t.size; x += 32)
        good = row.add_all(x) && good;
    if (!good) atomicMin(t.bad, (unsigned long long)v * R);
    close_row(t, to, at * R * t.size, n * t.size, 0);
}

} // namespace

#endif
