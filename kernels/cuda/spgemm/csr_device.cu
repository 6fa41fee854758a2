/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_device.cu - checks the structure of a csr in device memory, converts its
 * offsets to 32 bits, and hands a csr that was computed on the device to the
 * caller.
 *
 * The check reads offsets and columns once. */
#include "cuda/base/watch.h"
#include "cuda/spgemm/csr_device.cuh"

#include <climits>

sps_status spsi_cuda_csr_finish(sps_context *ctx, sps_status st, sps_csr *made,
                                sps_csr **C_p)
{
    const size_t size = made->dtype == SPS_F64 ? sizeof(double) : sizeof(float);
    sps_csr *C = NULL;

    if (st == SPS_OK)
        st = sps_csr_wrap(ctx, made->nrow, made->ncol, made->nnz, made->rowptr,
                          made->col, made->val, made->dtype, SPS_CUDA,
                          SPS_BORROW, &C);
    if (st != SPS_OK) {
        spsi_cuda_release(ctx, made->rowptr,
                          (size_t)(made->nrow + 1) * sizeof *made->rowptr);
        spsi_cuda_release(ctx, made->col,
                          (size_t)made->nnz * sizeof *made->col);
        spsi_cuda_release(ctx, made->val, (size_t)made->nnz * size);
        return st;
    }
    C->own = SPS_COPY;
    C->props = SPS_SORTED;
    *C_p = C;
    return SPS_OK;
}

namespace {

/* Results of the check, all bits of which are set at first: the first bad row,
 * and whether rows are sorted. */
struct findings {
    unsigned long long bad;
    int sorted;
};

constexpr int check_each = 4;       /* rows of eight threads, 32 apart */

/* Returns whether the columns of a row from p on, eight threads apart, are in
 * range; *ordered: whether they increase, too. */
__device__ bool check_columns(const int32_t *__restrict__ col, int64_t p,
                              int64_t end, int64_t ncol, bool *ordered)
{
    bool good = true;

    for (; p < end; p += 8) {
        const int32_t c = col[p];

        good = good && c >= 0 && c < ncol;
        *ordered = *ordered && col[p - 1] < c;
    }
    return good;
}

/* Checks the rows, eight threads each; the columns of a row are read only if
 * its offsets are valid.  The first columns of several rows are loaded
 * together. */
__global__ void __launch_bounds__(256)
check_rows(const int64_t *__restrict__ rowptr, const int32_t *__restrict__ col,
           int64_t n, int64_t ncol, int64_t nnz, findings *f)
{
    const int lane = (int)threadIdx.x % 8;
    const int64_t i = (int64_t)blockIdx.x * 32 * check_each + threadIdx.x / 8;
    int64_t first[check_each], end[check_each];
    int32_t c[check_each];

    if (i == 0 && rowptr[0] != 0) atomicMin(&f->bad, 0ull);
    if (i == 0 && rowptr[n] != nnz) atomicMin(&f->bad, (unsigned long long)n);
#pragma unroll
    for (int r = 0; r < check_each; r++) {
        first[r] = i + 32 * r < n ? rowptr[i + 32 * r] : 0;
        end[r] = i + 32 * r < n ? rowptr[i + 32 * r + 1] : 0;
    }
#pragma unroll
    for (int r = 0; r < check_each; r++) {
        const bool valid = first[r] >= 0 && first[r] <= end[r] &&
                           end[r] <= nnz;

        if (!valid) atomicMin(&f->bad, (unsigned long long)(i + 32 * r));
        if (!valid) first[r] = end[r] = 0;   /* of any size before */
        c[r] = first[r] + lane < end[r] ? col[first[r] + lane] : 0;
    }
#pragma unroll
    for (int r = 0; r < check_each; r++) {
        const int32_t left = __shfl_up_sync(all_lanes, c[r], 1, 8);
        const bool some = first[r] + lane < end[r];
        bool ordered = !some || lane == 0 || left < c[r];
        const bool good = (!some || (c[r] >= 0 && c[r] < ncol)) &
                          check_columns(col, first[r] + lane + 8, end[r], ncol,
                                        &ordered);

        if (!good) atomicMin(&f->bad, (unsigned long long)(i + 32 * r));
        if (!ordered) f->sorted = 0;
    }
}

__global__ void __launch_bounds__(256)
narrow_offsets(const int64_t *__restrict__ wide, int64_t n, int32_t *narrow)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) narrow[i] = (int32_t)wide[i];
}

} // namespace

sps_status spsi_cuda_csr_inspect(sps_context *ctx, const sps_csr *A,
                                 int64_t *bad, bool *sorted)
{
    const int64_t n = A->nrow;
    findings f, *d;
    holder h(ctx);

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(h.take(1, &d));
    SPS_TRY_RETURN(clear(ctx, 1, d, 0xff));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(n + 1, 32 * check_each),
                              256, check_rows, A->rowptr, A->col, n, A->ncol,
                              A->nnz, d));
    const sps_cuda_piece found = {d, &f, sizeof f};

    SPS_TRY_RETURN(spsi_cuda_read(ctx, &found, 1));
    *bad = f.bad == ULLONG_MAX ? -1 : (int64_t)f.bad;
    *sorted = f.sorted != 0;
    return SPS_OK;
}

sps_status spsi_cuda_csr_narrow(sps_context *ctx, const int64_t *wide,
                                int64_t n, int32_t *narrow)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    return run_items(ctx, n, narrow_offsets, wide, n, narrow);
}
