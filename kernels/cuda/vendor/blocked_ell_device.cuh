/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked_ell_device.cuh - CSR to Blocked-ELL on the GPU, with the same result
 * as tests/formats/host_blocked_ell.c on the host.
 *
 * Pattern: b lanes merge the b sorted rows of a block row; each lane holds the
 * next entry of its row, the smallest block column is emitted, and the lanes
 * whose entries are in that block advance past it.  Each column index is read
 * once.
 *
 * Values: 8 lanes process a row of the CSR, find each entry's slot by bisection
 * in the w block columns of its block row and write it: one pass over nnz
 * entries, for the first fill and for every refresh; no array of positions is
 * stored, and padding keeps its initial zeros. */
#ifndef SPS_CUDA_BLOCKED_ELL_CUH
#define SPS_CUDA_BLOCKED_ELL_CUH

#include "cuda/sparse/sparse.cuh"

#include "formats/blocked_ell.h"

namespace {

/* Merge of the rows of a block row, one in each of B neighbouring lanes. */
template <int B, class I> struct row_merge {
    const int32_t *__restrict__ col;
    I at, end;
    int32_t here;            /* block column of the next entry, or `nothing` */
    unsigned lanes;          /* mask of the group's lanes */

    static constexpr int32_t nothing = INT32_MAX;

    __device__ void peek()
    {
        here = at < end ? __ldg(col + at) / B : nothing;
    }
    __device__ row_merge(const I *rowptr, const int32_t *columns, int64_t nrow,
                         int64_t block_row)
    {
        int lane = (int)threadIdx.x % 32;
        int64_t i = block_row * B + lane % B;

        lanes = B == 32 ? all_lanes
                        : ((1u << (B % 32)) - 1u) << (lane / B * B);
        col = columns;
        at = i < nrow ? rowptr[i] : 0;
        end = i < nrow ? rowptr[i + 1] : 0;
        peek();
    }
    /* Returns the next block column, the same in all lanes of the group. */
    __device__ int32_t next()
    {
        int32_t least = __reduce_min_sync(lanes, here);

        while (least != nothing && here == least) {
            at++;
            peek();
        }
        return least;
    }
};

/* Counts for one block size. */
struct block_count {
    int widest;              /* largest number of blocks in a block row */
    int empty;               /* number of block rows without blocks */
};

template <int B, class I>
__global__ void __launch_bounds__(256)
count_blocks(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
             int64_t nrow, int64_t mb, block_count *c)
{
    int64_t block_row = ((int64_t)blockIdx.x * 256 + threadIdx.x) / B;
    int count = 0;

    if (block_row >= mb) return; /* the same for all lanes of a group */
    row_merge<B, I> rows(rowptr, col, nrow, block_row);
    while (rows.next() != rows.nothing) count++;
    if (threadIdx.x % B > 0) return;
    atomicMax(&c->widest, count);
    if (count == 0) atomicAdd(&c->empty, 1);
}

/* Writes the w block columns of each block row. empty[i], unless empty is NULL,
 * becomes 1 if block row i has no block, else 0. */
template <int B, class I>
__global__ void __launch_bounds__(256)
set_columns(const I *__restrict__ rowptr, const int32_t *__restrict__ col,
            int64_t nrow, int64_t mb, int64_t nb, int64_t w, int32_t *column,
            uint8_t *empty)
{
    int64_t block_row = ((int64_t)blockIdx.x * 256 + threadIdx.x) / B;
    int lane = (int)threadIdx.x % B;
    int32_t last, next;
    int64_t s = 0;

    if (block_row >= mb) return;
    row_merge<B, I> rows(rowptr, col, nrow, block_row);
    column += block_row * w;
    last = (int32_t)(block_row < nb ? block_row : nb - 1);
    while (s < w && (next = rows.next()) != rows.nothing) {
        last = next;
        if (lane == 0) column[s] = next;
        s++;
    }
    if (empty && lane == 0) empty[block_row] = s == 0;
    for (s += lane; s < w; s += B) column[s] = last;
}

/* Writes the values of A to their places in the blocks of size 2^shift. */
template <class I, class V>
__global__ void __launch_bounds__(256)
set_values(matrix<I, V> A, int shift, int64_t w,
           const int32_t *__restrict__ column, V *val)
{
    int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / 8;

    if (i >= A.nrow) return;
    column += (i >> shift) * w;
    for (int64_t p = A.rowptr[i] + (int)threadIdx.x % 8; p < A.rowptr[i + 1];
         p += 8) {
        int32_t j = A.col[p], wanted = j >> shift;
        int64_t low = 0, high = w;

        while (low < high) {
            int64_t middle = low + (high - low) / 2;

            if (__ldg(column + middle) < wanted) low = middle + 1;
            else high = middle;
        }
        val[((i * w + low) << shift) + (j & ((1 << shift) - 1))] = A.val[p];
    }
}

inline unsigned group_grid(int64_t groups, int lanes)
{
    return (unsigned)ceil_div(groups * lanes, 256);
}

template <int B>
sps_status launch_count(sps_context *ctx, const sps_csr_local *A,
                        block_count *c)
{
    int64_t mb = ceil_div(A->nrow, B);

    return with_offsets(A, [&](auto rowptr) -> sps_status {
        count_blocks<B><<<group_grid(mb, B), 256, 0,
                          spsi_cuda_state(ctx)->stream>>>(
            rowptr, A->col, A->nrow, mb, c);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

template <int B>
sps_status launch_columns(sps_context *ctx, const sps_csr_local *A,
                          const sps_blocked_ell *e, uint8_t *empty)
{
    return with_offsets(A, [&](auto rowptr) -> sps_status {
        set_columns<B><<<group_grid(e->mb, B), 256, 0,
                         spsi_cuda_state(ctx)->stream>>>(
            rowptr, A->col, A->nrow, e->mb, e->nb, e->w, e->column, empty);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

inline int shift_of(int b) { return b == 8 ? 3 : b == 16 ? 4 : 5; }

inline sps_status write_values(sps_context *ctx, const sps_csr_local *A,
                               const sps_blocked_ell *e)
{
    return with_types(A, [&](auto M) -> sps_status {
        using V = std::remove_const_t<
            std::remove_reference_t<decltype(*M.val)>>;

        set_values<<<group_grid(M.nrow, 8), 256, 0,
                     spsi_cuda_state(ctx)->stream>>>(M, shift_of(e->b), e->w,
                                                     e->column, (V *)e->val);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

} // namespace

#endif
