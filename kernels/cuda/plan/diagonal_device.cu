/* SPDX-License-Identifier: BSD-3-Clause */
/* diagonal_device.cu - what set-up of solvers asks of a matrix in device memory,
 * so that its entries stay there: the diagonal, found in each sorted row by
 * bisection, and whether the entries of some row cancel.
 *
 * One thread a row: sums in the order of the host, hence the same answer. */
#include "cuda/base/csr_view.cuh"
#include "matrix/windows.h"

namespace {

template <class I, class V>
__global__ void __launch_bounds__(256)
diagonal_kernel(matrix<I, V> A, double *diagonal)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i >= A.nrow) return;
    const int64_t last = A.rowptr[i + 1];
    const int64_t p = spsi_columns_from(A.col, A.rowptr[i], last, i);

    diagonal[i] = p < last && A.col[p] == i ? (double)A.val[p] : 0.0;
}

template <class I, class V>
__global__ void __launch_bounds__(256)
cancel_kernel(matrix<I, V> A, double tol, int *some)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    double sum = 0, size = 0;

    if (i >= A.nrow) return;
    for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++) {
        const double a = (double)A.val[p];

        sum += a;
        size += fabs(a);
    }
    if (isfinite(size) && fabs(sum) <= tol * size) *some = 1;
}

} // namespace

sps_status spsi_cuda_local_diagonal(sps_context *ctx, const sps_csr_local *A,
                                    double *diagonal)
{
    const size_t bytes = (size_t)A->nrow * sizeof *diagonal;
    void *there;
    sps_status st;

    if (A->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, &there));
    st = with_types(A, [&](auto M) -> sps_status {
        diagonal_kernel<<<(unsigned)ceil_div(A->nrow, 256), 256, 0,
                          spsi_cuda_state(ctx)->stream>>>(M, (double *)there);
        SPS_LAUNCHED(ctx);
        return ctx->backend->download(ctx, diagonal, there, bytes);
    });
    spsi_cuda_release(ctx, there, bytes);
    return st;
}

sps_status spsi_cuda_local_cancels(sps_context *ctx, const sps_csr_local *A,
                                   double tol, bool *some)
{
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    int *there, found;

    *some = false;
    if (A->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_need_scratch(ctx, sizeof *there));
    there = (int *)spsi_cuda_state(ctx)->d_scratch;
    SPS_CUDA(ctx, cudaMemsetAsync(there, 0, sizeof *there, stream));
    SPS_TRY_RETURN(with_types(A, [&](auto M) -> sps_status {
        cancel_kernel<<<(unsigned)ceil_div(A->nrow, 256), 256, 0, stream>>>(
            M, tol, there);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    }));
    SPS_TRY_RETURN(ctx->backend->download(ctx, &found, there, sizeof found));
    *some = found != 0;
    return SPS_OK;
}
