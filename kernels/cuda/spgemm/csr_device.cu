/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_device.cu - checks the structure of a csr in device memory, converts its
 * offsets to 32 bits, and hands a csr that was computed on the device to the
 * caller.
 *
 * The check reads offsets and columns once. */
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

/* Results of the check: the first bad row, and whether rows are unsorted. */
struct findings {
    unsigned long long bad;
    int unsorted;
};

/* Checks the rows, eight threads each; the columns of a row are read only if
 * its offsets are valid. */
__global__ void __launch_bounds__(256)
check_rows(const int64_t *__restrict__ rowptr, const int32_t *__restrict__ col,
           int64_t n, int64_t ncol, int64_t nnz, findings *f)
{
    const int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / 8;
    bool good, ordered = true;

    if (i == 0 && rowptr[0] != 0) atomicMin(&f->bad, 0ull);
    if (i == 0 && rowptr[n] != nnz) atomicMin(&f->bad, (unsigned long long)n);
    if (i >= n) return;
    const int64_t first = rowptr[i], end = rowptr[i + 1];

    good = first >= 0 && first <= end && end <= nnz;
    for (int64_t p = first + threadIdx.x % 8; good && p < end; p += 8) {
        const int32_t c = col[p];

        good = c >= 0 && c < ncol;
        ordered = ordered && (p == first || col[p - 1] < c);
    }
    if (!good) atomicMin(&f->bad, (unsigned long long)i);
    if (!ordered) f->unsorted = 1;
}

__global__ void __launch_bounds__(256)
narrow_offsets(const int64_t *__restrict__ wide, int64_t n, int32_t *narrow)
{
    const int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) narrow[i] = (int32_t)wide[i];
}

sps_status read_findings(sps_context *ctx, const findings *d, findings *f)
{
    SPS_CUDA(ctx, spsi_cuda_down(ctx, f, d, sizeof *f));
    return spsi_cuda_wait(ctx);
}

} // namespace

sps_status spsi_cuda_csr_inspect(sps_context *ctx, const sps_csr *A,
                                 int64_t *bad, bool *sorted)
{
    const int64_t n = A->nrow;
    findings f = {ULLONG_MAX, 0}, *d;
    holder h(ctx);

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(h.take(1, &d));
    SPS_CUDA(ctx, spsi_cuda_up(ctx, d, &f, sizeof f));
    SPS_TRY_RETURN(run_kernel(ctx, (unsigned)ceil_div(n + 1, 32), 256,
                              check_rows, A->rowptr, A->col, n, A->ncol, A->nnz,
                              d));
    SPS_TRY_RETURN(read_findings(ctx, d, &f));
    *bad = f.bad == ULLONG_MAX ? -1 : (int64_t)f.bad;
    *sorted = f.unsorted == 0;
    return SPS_OK;
}

sps_status spsi_cuda_csr_narrow(sps_context *ctx, const int64_t *wide,
                                int64_t n, int32_t *narrow)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    return run_items(ctx, n, narrow_offsets, wide, n, narrow);
}
