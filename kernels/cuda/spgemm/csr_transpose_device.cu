/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_transpose_device.cu - the transpose of a csr in device memory.
 *
 * The entries are sorted by column with a stable radix sort of (column, index
 * of the entry) over the bits that columns have, so that rows stay in order
 * within each column.  The offsets of the transpose are the positions where the
 * sorted columns change.  Bytes: about 24 for each entry and pass of 8 bits,
 * and the values once in random order.  Temporary memory: 4 integers for each
 * entry.
 *
 * A matrix of dense, aligned blocks is transposed block by block: of each, only
 * the block column is sorted. */
#include "cuda/base/watch.h"
#include "cuda/spgemm/csr_block_pattern.cuh"
#include "cuda/spgemm/csr_device.cuh"

#include <cub/device/device_radix_sort.cuh>

namespace {

/* row[p] = the row of entry p; G threads process a row. */
template <int G> __global__ void __launch_bounds__(256)
number_rows(const int64_t *__restrict__ rowptr, int64_t n, int32_t *row)
{
    const int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / G;

    if (i >= n) return;
    const int64_t end = rowptr[i + 1];

    for (int64_t p = rowptr[i] + threadIdx.x % G; p < end; p += G)
        row[p] = (int32_t)i;
}

template <int G>
sps_status launch_number_rows(sps_context *ctx, const sps_csr *A, int32_t *row)
{
    return run_kernel(ctx, (unsigned)ceil_div(A->nrow, 256 / G), 256,
                      number_rows<G>, A->rowptr, A->nrow, row);
}

template <class I> __global__ void __launch_bounds__(256)
number_entries(int64_t nnz, I *entry)
{
    const int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (p < nnz) entry[p] = (I)p;
}

/* Computes the offsets of the rows of the transpose: thread t sets those of the
 * columns after the column of sorted entry t - 1, up to that of entry t. */
__global__ void __launch_bounds__(256)
find_offsets(const int32_t *__restrict__ sorted, int64_t nnz, int64_t ncol,
             int64_t *rowptr)
{
    const int64_t t = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (t > nnz) return;
    const int64_t from = t > 0 ? sorted[t - 1] + 1 : 0;
    const int64_t to = t < nnz ? sorted[t] : ncol;

    for (int64_t j = from; j <= to; j++) rowptr[j] = t;
}

template <class I, class V> __global__ void __launch_bounds__(256)
gather_entries(const I *__restrict__ entry, const int32_t *__restrict__ row,
               const V *__restrict__ val, int64_t nnz, int32_t *col, V *to)
{
    const int64_t t = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (t >= nnz) return;
    col[t] = row[entry[t]];
    to[t] = val[entry[t]];
}

int bits_of(int64_t n)
{
    int bits = 1;

    while (bits < 31 && (int64_t)1 << bits < n) bits++;
    return bits;
}

/* Computes `sorted`, the columns of A in ascending order, and `entry`, the
 * entry of A to which each belongs. */
template <class I>
sps_status sort_entries(sps_context *ctx, holder *h, const sps_csr *A,
                        int32_t *sorted, I *entry)
{
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    size_t bytes = 0;
    char *work;
    I *own;

    SPS_TRY_RETURN(h->take(A->nnz, &own));
    SPS_TRY_RETURN(run_items(ctx, A->nnz, number_entries<I>, A->nnz, own));
    SPS_CUDA(ctx, cub::DeviceRadixSort::SortPairs(
                      nullptr, bytes, A->col, sorted, own, entry, A->nnz, 0,
                      bits_of(A->ncol), stream));
    SPS_TRY_RETURN(h->take((int64_t)bytes, &work));
    SPS_CUDA(ctx, cub::DeviceRadixSort::SortPairs(
                      work, bytes, A->col, sorted, own, entry, A->nnz, 0,
                      bits_of(A->ncol), stream));
    return SPS_OK;
}

template <class I>
sps_status transpose_entries(sps_context *ctx, const sps_csr *A, sps_csr *T)
{
    const int64_t nnz = A->nnz;
    const unsigned blocks = (unsigned)ceil_div(nnz + 1, 256);
    holder h(ctx);
    int32_t *sorted, *row;
    I *entry;

    SPS_TRY_RETURN(h.take(nnz, &sorted));
    SPS_TRY_RETURN(h.take(nnz, &entry));
    SPS_TRY_RETURN(sort_entries(ctx, &h, A, sorted, entry));
    SPS_TRY_RETURN(h.take(nnz, &row));
    SPS_TRY_RETURN(nnz / A->nrow < 8 ? launch_number_rows<4>(ctx, A, row)
                                     : launch_number_rows<32>(ctx, A, row));
    SPS_TRY_RETURN(run_kernel(ctx, blocks, 256, find_offsets, sorted, nnz,
                              A->ncol, T->rowptr));
    if (A->dtype == SPS_F64)
        return run_kernel(ctx, blocks, 256, gather_entries<I, double>, entry,
                          row, (const double *)A->val, nnz, T->col,
                          (double *)T->val);
    return run_kernel(ctx, blocks, 256, gather_entries<I, float>, entry, row,
                      (const float *)A->val, nnz, T->col, (float *)T->val);
}

/* ------------------------------------------------------------------ blocks */

constexpr int64_t block_rows_least = 9;   /* rows of a matrix of blocks have at
                                             least so many entries on average */

/* The r x s blocks of a csr, in the order of their block columns: block t of
 * this order, in block column sorted[t], is number entry[t] in the order of
 * rows, and belongs to block row row[entry[t]]. */
struct block_order {
    int r, s;
    int64_t count;
    const int64_t *__restrict__ rowptr;   /* offsets of the block rows */
    const int64_t *__restrict__ begin;    /* first t of each block column */
    const int32_t *__restrict__ sorted, *__restrict__ row;
    const uint32_t *__restrict__ entry;
};

/* Computes entries of the transpose: each thread those of a row of it that come
 * from one block. */
template <class V> __global__ void __launch_bounds__(256)
turn_blocks(const block_order o, const V *__restrict__ val, int32_t *col, V *to)
{
    const int64_t x = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (x >= o.count * o.s) return;
    const int32_t J = o.sorted[x / o.s];
    const int64_t begin = o.begin[J];
    const int n = (int)(o.begin[J + 1] - begin), own = (int)(x - begin * o.s);
    const int j = own / n, q = own - j * n;
    const int64_t e = o.entry[begin + q], first = o.rowptr[o.row[e]];
    const int64_t length = o.rowptr[o.row[e] + 1] - first;
    const int64_t at = (begin * o.s + (int64_t)j * n + q) * o.r;

    val += (first * o.r + e - first) * o.s + j;
    for (int i = 0; i < o.r; i++) {
        col[at + i] = o.row[e] * o.r + i;
        to[at + i] = val[i * length * o.s];
    }
}

/* Sets *r and *s to the size of the blocks of A, or to 0 if it has none. */
sps_status find_size(sps_context *ctx, holder *h, const sps_csr *A, int *r,
                     int *s)
{
    const int64_t blocks = ceil_div(A->nrow, 32);
    const int64_t most = 16 * (int64_t)spsi_cuda_state(ctx)->sms;
    int *there, faults;

    *r = *s = 0;
    if (A->nnz < block_rows_least * A->nrow || A->nnz > INT32_MAX)
        return SPS_OK;
    SPS_TRY_RETURN(h->take(1, &there));
    SPS_TRY_RETURN(clear(ctx, 1, there));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)(blocks < most ? blocks : most),
                              256, find_faults, A->rowptr, A->col, A->nrow,
                              there));
    const sps_cuda_piece found = {there, &faults, sizeof faults};

    SPS_TRY_RETURN(spsi_cuda_read(ctx, &found, 1));
    faults |= faults_of_size(A);
    *r = size_without(faults, false);
    *s = size_without(faults, true);
    return SPS_OK;
}

/* Sorts the r x s blocks of A by their block columns. */
sps_status order_blocks(sps_context *ctx, holder *h, const sps_csr *A, int r,
                        int s, block_order *o)
{
    sps_csr B = {};
    int64_t *rowptr, *begin;
    int32_t *col, *sorted, *row;
    uint32_t *entry;

    B.nrow = A->nrow / r;
    B.ncol = A->ncol / s;
    B.nnz = A->nnz / (r * s);
    SPS_TRY_RETURN(h->take(B.nrow + 1, &rowptr));
    SPS_TRY_RETURN(h->take(B.ncol + 1, &begin));
    SPS_TRY_RETURN(h->take(B.nnz, &col));
    SPS_TRY_RETURN(h->take(B.nnz, &sorted));
    SPS_TRY_RETURN(h->take(B.nnz, &row));
    SPS_TRY_RETURN(h->take(B.nnz, &entry));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(B.nrow + 1, 32), 256,
                              list_blocks, A->rowptr, A->col, B.nrow, r, s,
                              rowptr, col));
    B.rowptr = rowptr;
    B.col = col;
    SPS_TRY_RETURN(sort_entries(ctx, h, &B, sorted, entry));
    SPS_TRY_RETURN(launch_number_rows<4>(ctx, &B, row));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(B.nnz + 1, 256), 256,
                              find_offsets, sorted, B.nnz, B.ncol, begin));
    *o = {r, s, B.nnz, rowptr, begin, sorted, row, entry};
    return SPS_OK;
}

/* Computes T if A consists of blocks; *made: whether it does. */
sps_status transpose_blocks(sps_context *ctx, const sps_csr *A, sps_csr *T,
                            bool *made)
{
    holder h(ctx);
    block_order o;
    int r, s;

    SPS_TRY_RETURN(find_size(ctx, &h, A, &r, &s));
    *made = r > 0 && s > 0;
    if (!*made) return SPS_OK;
    SPS_TRY_RETURN(order_blocks(ctx, &h, A, r, s, &o));
    SPS_TRY_RETURN(run_items(ctx, T->nrow + 1, spread_offsets, o.begin,
                             A->ncol / s, s, r, T->rowptr));
    return A->dtype == SPS_F64
               ? run_items(ctx, o.count * s, turn_blocks<double>, o,
                           (const double *)A->val, T->col, (double *)T->val)
               : run_items(ctx, o.count * s, turn_blocks<float>, o,
                           (const float *)A->val, T->col, (float *)T->val);
}

sps_status make_transpose(sps_context *ctx, const sps_csr *A, sps_csr *T)
{
    const size_t size = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    const size_t offsets = (size_t)(T->nrow + 1) * sizeof *T->rowptr;
    bool made;
    void *got;

    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, offsets, &got));
    T->rowptr = (int64_t *)got;
    if (A->nnz == 0) return clear(ctx, T->nrow + 1, T->rowptr);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)T->nnz * sizeof *T->col, &got));
    T->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)T->nnz * size, &got));
    T->val = got;
    SPS_TRY_RETURN(transpose_blocks(ctx, A, T, &made));
    if (made) return SPS_OK;
    return A->nnz <= INT32_MAX ? transpose_entries<uint32_t>(ctx, A, T)
                               : transpose_entries<uint64_t>(ctx, A, T);
}

} // namespace

sps_status spsi_cuda_csr_transpose(sps_context *ctx, const sps_csr *A,
                                   sps_csr **T_p)
{
    sps_csr made = {};
    sps_status st;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    made.nrow = A->ncol;
    made.ncol = A->nrow;
    made.nnz = A->nnz;
    made.dtype = A->dtype;
    spsi_cuda_pool_begin(ctx);
    st = make_transpose(ctx, A, &made);
    spsi_cuda_pool_end(ctx);
    if (st == SPS_OK && spsi_cuda_state(ctx)->pool.depth == 0)
        st = spsi_cuda_wait(ctx);
    st = spsi_cuda_csr_finish(ctx, st, &made, T_p);
    if (st == SPS_OK) (*T_p)->props |= A->props;
    return st;
}
