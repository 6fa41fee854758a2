/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_block_pattern.cuh - matrices of dense, aligned blocks, as those with
 * several unknowns per node are: which sizes of blocks a csr has, the pattern
 * of its blocks, and the offsets of the rows of a csr of such a pattern. */
#ifndef SPS_CUDA_CSR_BLOCK_PATTERN_CUH
#define SPS_CUDA_CSR_BLOCK_PATTERN_CUH

#include "cuda/spgemm/csr_rows.cuh"

namespace {

/* The supported block sizes, the largest first. */
constexpr int block_kinds = 3;
__host__ __device__ constexpr int block_size(int kind)
{
    return kind == 0 ? 6 : kind == 1 ? 3 : 2;
}

/* Faults, the reasons for which a matrix has no blocks of a size, as bits.  Bit
 * t: rows do not have equal columns in groups of the size number t.  Bit
 * block_kinds + t: columns do not come in aligned runs of the size number t. */
constexpr int block_faults = (1 << 2 * block_kinds) - 1;

/* Returns the faults of row i, which has `length` entries from `first` on; row
 * i - 1 begins at `before`.  Called by the 8 lanes of group g. */
__device__ inline int faults_of(const int32_t *__restrict__ col, int64_t i,
                                int64_t first, int length, int64_t before,
                                const group<8> &g)
{
    bool same = first - before == length;
    const int64_t above = same ? before : first;
    int faults = 0;

    /* No load depends on what another one has found: several are in
     * progress. */
#pragma unroll 4
    for (int t = g.lane; t < length; t += 8) {
        const int32_t c = col[first + t], left = col[first + max(t - 1, 0)];
        const bool follows = left == c - 1;

        same = same & (col[above + t] == c);
#pragma unroll
        for (int q = 0; q < block_kinds; q++) {
            const int k = t % block_size(q);

            if ((c % block_size(q) != k) | (k > 0 & !follows))
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

/* Sets the bits of *faults for the faults of all rows.  A warp stops when all
 * faults are known, and reads *faults only once: many reads of one address take
 * turns. */
__global__ void __launch_bounds__(256)
find_faults(const int64_t *__restrict__ rowptr,
            const int32_t *__restrict__ col, int64_t n, int *faults)
{
    const group<8> g;
    const int64_t step = (int64_t)gridDim.x * 32;
    const int held = __shfl_sync(all_lanes, *(volatile int *)faults, 0);
    int known = held;

    for (int64_t base = group_number<8>() / 4 * 4;
         base < n && known != block_faults; base += step) {
        const int64_t i = base + threadIdx.x % 32 / 8, row = i < n ? i : 0;
        const int64_t first = rowptr[row];

        known |= (int)__reduce_or_sync(
            all_lanes,
            (unsigned)faults_of(col, row, first,
                                (int)(rowptr[row + 1] - first),
                                row > 0 ? rowptr[row - 1] : first, g));
    }
    if (threadIdx.x % 32 == 0 && known & ~held) atomicOr(faults, known);
}

/* Returns the largest block size whose faults, of columns or of rows, are not
 * in the bits `faults`, or 0 if there is none. */
inline int size_without(int faults, bool columns)
{
    for (int t = 0; t < block_kinds; t++)
        if (!(faults >> (columns ? block_kinds + t : t) & 1))
            return block_size(t);
    return 0;
}

/* Returns the faults that A has because its number of rows or columns is not a
 * multiple of a block size. */
inline int faults_of_size(const sps_csr *A)
{
    int faults = 0;

    for (int t = 0; t < block_kinds; t++) {
        if (A->nrow % block_size(t)) faults |= 1 << t;
        if (A->ncol % block_size(t)) faults |= 1 << (block_kinds + t);
    }
    return faults;
}

/* The pattern of the blocks of a matrix: offsets of its block rows, and block
 * columns. */
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

} // namespace

#endif
