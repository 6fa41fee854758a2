/* SPDX-License-Identifier: BSD-3-Clause */
/* diagonal_device.cu - what the set-up of solvers needs from a matrix in device
 * memory, computed there: the diagonal, found in each sorted row by bisection;
 * and whether in some connected component of the matrix every row has the sum
 * 0.
 *
 * One thread processes a row, so that sums have the order of the host and the
 * answer is the same.  Components are found by union-find without locks
 * (Jaiganesh and Burtscher, HPDC 2018): the larger root becomes a child of the
 * smaller one by compare-and-swap, which fails if another thread was faster;
 * paths are halved on the way.  Which rows have a common root at the end does
 * not depend on the order.  Reads the columns once, and 8 bytes a row. */
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

/* good[i] becomes whether the sum of row i is zero, up to `tol` times the sum
 * of its magnitudes; *some becomes whether that is so in any row. */
template <class I, class V>
__global__ void __launch_bounds__(256)
cancel_kernel(matrix<I, V> A, double tol, int32_t *parent, int32_t *good,
              int *some)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    double sum = 0, size = 0;

    if (i >= A.nrow) return;
    for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++) {
        const double a = (double)A.val[p];

        sum += a;
        size += fabs(a);
    }
    parent[i] = (int32_t)i;
    good[i] = isfinite(size) && fabs(sum) <= tol * size;
    if (good[i]) *some = 1;
}

__device__ int32_t root(volatile int32_t *parent, int32_t i)
{
    int32_t up = parent[i], next;

    while (up != i) {
        next = parent[up];
        if (next == up) return up;
        parent[i] = next;
        i = next;
        up = parent[i];
    }
    return i;
}

template <class I, class V>
__global__ void __launch_bounds__(256)
unite_kernel(matrix<I, V> A, int32_t *parent)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
    int32_t a;

    if (i >= A.nrow) return;
    a = root(parent, (int32_t)i);
    for (int64_t p = A.rowptr[i]; p < A.rowptr[i + 1]; p++) {
        int32_t b = root(parent, A.col[p]);

        while (a != b) {
            const int32_t low = a < b ? a : b, high = a < b ? b : a;
            const int32_t held = atomicCAS(parent + high, high, low);

            a = low;
            b = held == high ? low : root(parent, held);
        }
        a = root(parent, a);
    }
}

/* Sets good[r] = 0 for the root r of each component that has a row whose sum is
 * not zero. */
__global__ void __launch_bounds__(256)
exclude_kernel(int64_t n, int32_t *parent, int32_t *good)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n && !good[i]) good[root(parent, (int32_t)i)] = 0;
}

__global__ void __launch_bounds__(256)
remain_kernel(int64_t n, const int32_t *parent, const int32_t *good, int *some)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n && parent[i] == i && good[i]) *some = 1;
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

namespace {

/* *some becomes whether the flag *there in device memory is set; clears the
 * flag. */
sps_status take_flag(sps_context *ctx, int *there, bool *some)
{
    int found = 0;

    SPS_TRY_RETURN(download(ctx, 1, there, &found));
    *some = found != 0;
    return clear(ctx, 1, there);
}

template <class M>
sps_status find_component(sps_context *ctx, const M &A, double tol,
                                 int32_t *parent, int *there, bool *some)
{
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    const unsigned blocks = (unsigned)ceil_div(A.nrow, 256);
    int32_t *good = parent + A.nrow;

    SPS_TRY_RETURN(clear(ctx, 1, there));
    cancel_kernel<<<blocks, 256, 0, stream>>>(A, tol, parent, good, there);
    SPS_LAUNCHED(ctx);
    SPS_TRY_RETURN(take_flag(ctx, there, some));
    if (!*some) return SPS_OK;
    unite_kernel<<<blocks, 256, 0, stream>>>(A, parent);
    SPS_LAUNCHED(ctx);
    SPS_TRY_RETURN(run_kernel(ctx, blocks, 256, exclude_kernel, A.nrow, parent,
                              good));
    SPS_TRY_RETURN(run_kernel(ctx, blocks, 256, remain_kernel, A.nrow, parent,
                              good, there));
    return take_flag(ctx, there, some);
}

} // namespace

sps_status spsi_cuda_local_cancels(sps_context *ctx, const sps_csr_local *A,
                                   double tol, bool *some)
{
    const size_t bytes = 2 * (size_t)A->nrow * sizeof(int32_t);
    int *there;
    void *parent;
    sps_status st;

    *some = false;
    if (A->nrow == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(take_scratch(ctx, 1, &there));
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, &parent));
    st = with_types(A, [&](auto M) -> sps_status {
        return find_component(ctx, M, tol, (int32_t *)parent, there, some);
    });
    spsi_cuda_release(ctx, parent, bytes);
    return st;
}
