/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_blocks.cuh - C = A B for A of dense, aligned blocks of R x K entries and
 * B of blocks of K x S, as in matrices with several unknowns per node.
 *
 * The pattern of C follows from the product of the patterns of blocks, which
 * have R K and K S times fewer entries (csr_multiply_device.cu).  In a csr
 * whose rows are grouped into block rows, the entries of a block in one row are
 * consecutive, and the R rows of a block row have the same length: so a block
 * is found by arithmetic, and the values of R rows of C are stored from shared
 * memory in contiguous pieces.
 *
 * A warp computes 2 or 3 rows of C, and for R = 6 a third of the six.  It
 * visits the blocks of A in ascending order; a lane has one column of a block
 * of B and adds K products to each of 2 or 3 sums, whose position is looked up
 * once for all of them.  Each sum is the chain of csr_product.cuh.
 *
 * Bytes: A and C once, B again whenever the caches have evicted it. */
#ifndef SPS_CUDA_CSR_BLOCKS_CUH
#define SPS_CUDA_CSR_BLOCKS_CUH

#include "cuda/spgemm/csr_rows.cuh"

namespace {

/* The supported block sizes, the largest first. */
constexpr int block_kinds = 3;
__host__ __device__ constexpr int block_size(int kind)
{
    return kind == 0 ? 6 : kind == 1 ? 3 : 2;
}

/* Faults, as bits.  Bit t: rows do not have equal columns in groups of size t.
 * Bit block_kinds + t: columns do not come in aligned runs of size t. */
constexpr int block_faults = (1 << 2 * block_kinds) - 1;

/* Returns the faults of row i, of `length` entries from `first` on; the row
 * before begins at `before`.  Called by one of 8 lanes. */
__device__ inline int faults_of(const int32_t *__restrict__ col, int64_t i,
                                int64_t first, int length, int64_t before,
                                const group<8> &g)
{
    bool same = first - before == length;
    int faults = 0;

    for (int t = g.lane; t < length; t += 8) {
        const int32_t c = col[first + t];
        const bool follows = t > 0 && col[first + t - 1] == c - 1;

        same = same && col[before + t] == c;
#pragma unroll
        for (int q = 0; q < block_kinds; q++) {
            const int k = t % block_size(q);

            if (c % block_size(q) != k || (k > 0 && !follows))
                faults |= 1 << (block_kinds + q);
        }
    }
    same = g.ballot(!same) == 0;
#pragma unroll
    for (int q = 0; q < block_kinds; q++) {
        if (length % block_size(q)) faults |= 1 << (block_kinds + q);
        if (i % block_size(q) && !same) faults |= 1 << q;
    }
    return faults;
}

/* *faults receives the faults of all rows. */
__global__ void __launch_bounds__(256)
find_faults(const int64_t *__restrict__ rowptr,
            const int32_t *__restrict__ col, int64_t n, int *faults)
{
    const group<8> g;
    const int64_t i = group_number<8>(), row = i < n ? i : 0;
    const int64_t first = rowptr[row];
    const int held = __shfl_sync(all_lanes, *(volatile int *)faults, 0);

    if (held == block_faults) return;
    const int mine = (int)__reduce_or_sync(
        all_lanes, (unsigned)faults_of(col, row, first,
                                       (int)(rowptr[row + 1] - first),
                                       row > 0 ? rowptr[row - 1] : first, g));

    if (threadIdx.x % 32 == 0 && mine & ~held) atomicOr(faults, mine);
}

/* The pattern of blocks, by block rows. */
struct block_pattern {
    const int64_t *__restrict__ rowptr;
    const int32_t *__restrict__ col;
};

/* Finds the pattern of the r x s blocks of a csr; eight threads process a block
 * row. */
__global__ void __launch_bounds__(256)
list_blocks(const int64_t *__restrict__ rowptr,
            const int32_t *__restrict__ col, int64_t rows, int r, int s,
            int64_t *to_rowptr, int32_t *to_col)
{
    const group<8> g;
    const int64_t v = group_number<8>();

    if (v > rows) return;
    const int64_t first = rowptr[v * r], to = first / (r * s);
    const int count = v < rows ? (int)((rowptr[v * r + 1] - first) / s) : 0;

    if (g.lane == 0) to_rowptr[v] = to;
    for (int t = g.lane; t < count; t += 8)
        to_col[to + t] = col[first + t * s] / s;
}

/* Computes the offsets of the rows of a csr of r x s blocks. */
__global__ void __launch_bounds__(256)
spread_offsets(const int64_t *__restrict__ blocks, int64_t rows, int r, int s,
               int64_t *rowptr)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x, v = i / r;

    if (i > rows * r) return;
    const int64_t count = v < rows ? blocks[v + 1] - blocks[v] : 0;

    rowptr[i] = (blocks[v] * r + i % r * count) * s;
}

/* ------------------------------------------------------------------ values */

/* Number of blocks of A whose values are in shared memory at once. */
constexpr int blocks_ahead = 8;
/* Largest number of entries of a row of B that block_of supports. */
constexpr int block_row_most = 32000;

template <class V> struct blocks_task {
    block_pattern A, B, C;
    const V *__restrict__ a, *__restrict__ b;
    row_list rows;            /* block rows of C */
    int parts;                /* warps for a block row; each computes R rows */
    int size;                 /* S */
    int most;                 /* largest number of blocks of a block row of C */
    bool known;               /* the columns are stored already */
    int32_t *col;
    V *val;
    unsigned long long *bad;  /* if `known`: the first row with other columns */

    /* Returns q / size for q <= block_row_most. */
    __device__ int block_of(int q) const
    {
        return q * (65536 / size + (65536 % size > 0)) >> 16;
    }
};

/* Returns the shared memory of a warp in bytes, for values of `number`
 * bytes. */
inline size_t blocks_shared(int r, int k, int size, int most, size_t number)
{
    return ((size_t)r * size * most + r * k * blocks_ahead) * number +
           (size_t)(most + most % 2) * sizeof(int32_t);
}

/* A lane's view of a block row of B: its column q. */
template <int K, class V> struct block_column {
    int64_t start;
    int width;                /* entries of a row */
    int32_t block;            /* -1 if there is none */
    V b[K];

    __device__ void load(const blocks_task<V> &t, int q)
    {
        block = -1;
        if (q >= width) return;
        block = t.B.col[start + t.block_of(q)];
#pragma unroll
        for (int k = 0; k < K; k++)
            b[k] = t.b[start * K * t.size + (int64_t)k * width + q];
    }
};

/* Adds a block of A, a[r * blocks_ahead * K + k], times column q to the sums of
 * the block columns key[0 .. n - 1]; returns false if its block is not among
 * them. */
template <int R, int K, class V>
__device__ __forceinline__ bool
add_column(const blocks_task<V> &t, const block_column<K, V> &c, int q,
           const V *a, const int32_t *key, int n, V *sum)
{
    const int s = n > 0 ? find_column(key, n, c.block) : 0;

    if (n == 0 || key[s] != c.block) return false;
    V *to = sum + s * t.size + q - t.block_of(q) * t.size;

#pragma unroll
    for (int r = 0; r < R; r++) {
        V x = to[r * n * t.size];

#pragma unroll
        for (int k = 0; k < K; k++)
            x = fma(a[r * blocks_ahead * K + k], c.b[k], x);
        to[r * n * t.size] = x;
    }
    return true;
}

/* R rows of a block row of C. */
template <int R, int K, class V> struct blocks_row {
    const blocks_task<V> &t;
    V *sum, *a;
    int32_t *key;
    int lane, n;
    int64_t first, from;      /* a block of A, and its value in the first row */
    int length;

    /* Loads the values of the blocks of A from `base` on, and assigns one of
     * these blocks to each lane. */
    __device__ block_column<K, V> open(int base) const
    {
        const int width = min(length - base, blocks_ahead) * K;
        block_column<K, V> mine = {};

        __syncwarp();
        for (int x = lane; x < width; x += 32)
#pragma unroll
            for (int r = 0; r < R; r++)
                a[r * blocks_ahead * K + x] =
                    t.a[from + ((int64_t)r * length + base) * K + x];
        if (lane < blocks_ahead && base + lane < length) {
            const int32_t u = t.A.col[first + base + lane];

            mine.start = t.B.rowptr[u];
            mine.width = (int)(t.B.rowptr[u + 1] - mine.start) * t.size;
        }
        __syncwarp();
        return mine;
    }
    /* Returns column `lane` of the block row of B that block e of these
     * selects. */
    __device__ block_column<K, V> column(const block_column<K, V> &mine,
                                         int e) const
    {
        block_column<K, V> c;

        c.start = __shfl_sync(all_lanes, mine.start, e);
        c.width = __shfl_sync(all_lanes, mine.width, e);
        c.load(t, lane);
        return c;
    }
    /* Adds all blocks; the values of the next block are loaded while those of
     * the present one are added. */
    __device__ bool add(void) const
    {
        bool good = true;

        for (int base = 0; base < length; base += blocks_ahead) {
            const block_column<K, V> mine = open(base);
            const int count = min(length - base, blocks_ahead);
            block_column<K, V> now = column(mine, 0);

            for (int e = 0; e < count; e++) {
                const block_column<K, V> next =
                    column(mine, min(e + 1, blocks_ahead - 1));

                for (int q = lane; q < now.width; q += 32) {
                    if (q > lane) now.load(t, q);
                    good = add_column<R, K>(t, now, q, a + e * K, key, n,
                                            sum) && good;
                }
                __syncwarp();
                now = next;
            }
        }
        return good;
    }
};

template <int R, int K, class V>
__global__ void __launch_bounds__(256)
fill_blocks(const blocks_task<V> t)
{
    const int warps = (int)blockDim.x / 32, own = (int)threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;
    const int64_t number = group_number<32>() / t.parts;
    const int part = (int)(group_number<32>() % t.parts);
    const size_t sums = (size_t)R * t.size * t.most;

    if (number >= t.rows.count) return;
    const int64_t v = t.rows.at(number), at = t.C.rowptr[v];
    const int n = (int)(t.C.rowptr[v + 1] - at), all = R * t.size * n;
    V *sum = (V *)product_shared + own * sums;
    V *a = (V *)product_shared + warps * sums + own * R * K * blocks_ahead;
    int32_t *key = (int32_t *)((V *)product_shared +
                               warps * (sums + R * K * blocks_ahead)) +
                   own * t.most;

    for (int s = lane; s < n; s += 32) key[s] = t.C.col[at + s];
    for (int x = lane; x < all; x += 32) sum[x] = (V)-0.0;
    __syncwarp();
    const int64_t first = t.A.rowptr[v];
    const int length = (int)(t.A.rowptr[v + 1] - first);
    const blocks_row<R, K, V> row = {
        t, sum, a, key, lane, n, first,
        (first * t.parts + part * length) * R * K, length};

    if (!row.add()) atomicMin(t.bad, (unsigned long long)v * R * t.parts);
    __syncwarp();
    const int64_t to = (at * t.parts + part * n) * R * t.size;

    for (int x = lane; x < all; x += 32) t.val[to + x] = sum[x];
    if (t.known) return;
    for (int x = lane; x < t.size * n; x += 32) {
        const int s = t.block_of(x);
        const int32_t c = key[s] * t.size + x - s * t.size;

        for (int r = 0; r < R; r++) t.col[to + r * t.size * n + x] = c;
    }
}

} // namespace

#endif
