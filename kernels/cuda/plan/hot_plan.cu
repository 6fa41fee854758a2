/* SPDX-License-Identifier: BSD-3-Clause */
/* hot_plan.cu - marks the first entries of rows and splits the entries into
 * ranges, on the device: a pass over the row offsets, prefix sums, and a
 * bisection for each range.  Marks and rows are the same as those of
 * tests/formats/host_row_heads.c. */
#include "cuda/plan/hot_plan.h"
#include "cuda/base/scan.h"
#include "cuda/base/csr_view.cuh"
#include "cuda/plan/plan_memory.cuh"

namespace {

__device__ __forceinline__ int64_t thread_number(void)
{
    return (int64_t)blockIdx.x * 256 + threadIdx.x;
}
unsigned grid_of(int64_t n) { return (unsigned)ceil_div(n, 256); }

template <class I>
__global__ void __launch_bounds__(256)
mark_rows(const I *__restrict__ ptr, int64_t nrow, int32_t *has,
          unsigned long long *heads)
{
    int64_t i = thread_number();

    if (i >= nrow) return;
    int64_t p = ptr[i];
    bool some = p < ptr[i + 1];

    has[i] = some;
    if (some) atomicOr(heads + p / 64, 1ull << p % 64);
}

/* Lists the rows with entries. before[i] = the number of rows with entries
 * before row i. */
__global__ void __launch_bounds__(256)
list_rows(const int32_t *__restrict__ has, const int64_t *__restrict__ before,
          int64_t nrow, int32_t *row)
{
    int64_t i = thread_number();

    if (i < nrow)
        row[has[i] ? before[i] : before[nrow] + i - before[i]] = (int32_t)i;
}

/* first[w] = the index, among the rows with entries, of the last row that
 * begins before range w, or -1 if none does; found by bisection. */
template <class I>
__global__ void __launch_bounds__(256)
find_first(const I *__restrict__ ptr, const int32_t *__restrict__ row,
           int64_t filled, int64_t reach, int32_t ranges, int32_t *first)
{
    int64_t w = thread_number(), low = 0, high = filled;

    if (w >= ranges) return;
    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (ptr[row[middle]] < w * reach) low = middle + 1;
        else high = middle;
    }
    first[w] = (int32_t)low - 1;
}

sps_status take_all(sps_hot_plan *h)
{
    sps_plan *super = &h->super;
    const size_t range = (size_t)h->ranges * h->number;

    SPS_TRY_RETURN(plan_take_zeros(super, spsi_row_heads_words(h->rows.nnz),
                                   &h->rows.heads));
    SPS_TRY_RETURN(plan_take(super, h->rows.nrow, &h->rows.row));
    SPS_TRY_RETURN(plan_take(super, h->ranges, &h->first));
    SPS_TRY_RETURN(plan_take(super, h->ranges, &h->open));
    SPS_TRY_RETURN(spsi_plan_take(super, range, &h->lead));
    SPS_TRY_RETURN(spsi_plan_take(super, range, &h->trail));
    SPS_TRY_RETURN(spsi_plan_take(super, (size_t)h->rows.nrow * h->number,
                                  &h->sum));
    SPS_TRY_RETURN(spsi_plan_take(super, (size_t)super->A->ncol * h->number,
                                  &h->packed));
    return plan_take_zeros(super, 1, &h->done);
}

/* Fills the arrays of the plan; has and before are scratch arrays of nrow and
 * nrow + 1 elements. */
sps_status fill(sps_hot_plan *h, int32_t *has, int64_t *before)
{
    sps_context *ctx = h->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    int64_t nrow = h->rows.nrow;

    SPS_TRY_RETURN(with_types(h->super.A, [&](auto A) -> sps_status {
        mark_rows<<<grid_of(nrow), 256, 0, stream>>>(
            A.rowptr, nrow, has, (unsigned long long *)h->rows.heads);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    }));
    SPS_TRY_RETURN(spsi_cuda_scan(ctx, has, nrow, before));
    SPS_TRY_RETURN(download(ctx, 1, before + nrow, &h->rows.filled));
    SPS_TRY_RETURN(run_kernel(ctx, grid_of(nrow), 256, list_rows, has, before,
                              nrow, h->rows.row));
    SPS_TRY_RETURN(with_types(h->super.A, [&](auto A) -> sps_status {
        find_first<<<grid_of(h->ranges), 256, 0, stream>>>(
            A.rowptr, h->rows.row, h->rows.filled, h->reach, h->ranges,
            h->first);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    }));
    return spsi_cuda_wait(ctx);
}

} // namespace

sps_status spsi_cuda_hot_rows(sps_hot_plan *h, int64_t step, int64_t workers)
{
    const sps_csr_local *A = h->super.A;
    holder work(h->super.ctx);
    int32_t *has;
    int64_t *before;

    h->rows.nrow = A->nrow;
    h->rows.nnz = A->nnz;
    h->reach = ceil_div(ceil_div(A->nnz, step), workers) * step;
    h->ranges = (int32_t)ceil_div(A->nnz, h->reach);
    SPS_TRY_RETURN(take_all(h));
    SPS_TRY_RETURN(work.take(A->nrow, &has));
    SPS_TRY_RETURN(work.take(A->nrow + 1, &before));
    return fill(h, has, before);
}
