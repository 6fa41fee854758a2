/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_transpose_device.cu - the transpose of a csr in device memory.
 *
 * The entries are sorted by column with a stable radix sort of (column, index
 * of the entry) over the bits that columns have, so that rows stay in order
 * within each column.  The offsets of the transpose are the positions where the
 * sorted columns change.  Bytes: about 24 for each entry and pass of 8 bits,
 * and the values once in random order.  Temporary memory: 4 integers for each
 * entry. */
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

sps_status make_transpose(sps_context *ctx, const sps_csr *A, sps_csr *T)
{
    const size_t size = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    const size_t offsets = (size_t)(T->nrow + 1) * sizeof *T->rowptr;
    void *got;

    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, offsets, &got));
    T->rowptr = (int64_t *)got;
    if (A->nnz == 0) return clear(ctx, T->nrow + 1, T->rowptr);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)T->nnz * sizeof *T->col, &got));
    T->col = (int32_t *)got;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)T->nnz * size, &got));
    T->val = got;
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
