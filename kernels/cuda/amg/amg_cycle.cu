/* SPDX-License-Identifier: BSD-3-Clause */
/* amg_cycle.cu - what multigrid needs beside the set-up of its levels: matrices
 * with scaled rows and columns, and the residual as a cycle takes it.
 *
 * weigh: 16 bytes an entry, 20 with factors of columns.  enter: 12 bytes a
 * number. */
#include "cuda/amg/coarse.cuh"

namespace {

/* Eight threads a row. */
__global__ void __launch_bounds__(256)
weigh_entries(const int64_t *__restrict__ rowptr,
              const int32_t *__restrict__ col, const double *__restrict__ a,
              int64_t n, const double *__restrict__ r,
              const double *__restrict__ c, double *__restrict__ val)
{
    const int64_t i = ((int64_t)blockIdx.x * 256 + threadIdx.x) / 8;

    if (i >= n) return;
    const double by = r ? r[i] : 1;
    const int64_t end = rowptr[i + 1];

    for (int64_t p = rowptr[i] + threadIdx.x % 8; p < end; p += 8)
        val[p] = c ? by * a[p] / c[col[p]] : by * a[p];
}

/* The numbers of an n x 1 block, or NULL. */
const double *column_of(const sps_block *X)
{
    return X ? (const double *)X->data : NULL;
}

/* A thread has two neighbouring columns of a row; `across` of them a row. */
__global__ void __launch_bounds__(256)
enter_rows(const double *__restrict__ d, const double *__restrict__ c,
           const double *__restrict__ r, int64_t ldr, int64_t n, int k,
           int across, float *__restrict__ u, int64_t ldu)
{
    const int64_t e = (int64_t)blockIdx.x * 256 + threadIdx.x;
    const int64_t i = e / across;
    const int j = 2 * (int)(e - i * across);

    if (i >= n) return;
    r += i * ldr + j;
    u += i * ldu + j;
    if (j + 1 < k && ldr % 2 == 0 && ldu % 2 == 0) {
        const double2 v = *reinterpret_cast<const double2 *>(r);

        *reinterpret_cast<float2 *>(u) =
            make_float2((float)(d[i] * (c[j] * v.x)),
                        (float)(d[i] * (c[j + 1] * v.y)));
    } else {
        u[0] = (float)(d[i] * (c[j] * r[0]));
        if (j + 1 < k) u[1] = (float)(d[i] * (c[j + 1] * r[1]));
    }
}

} // namespace

sps_status spsi_coarse_weigh(sps_context *ctx, const sps_csr *A,
                             const sps_block *r, const sps_block *c,
                             double *val)
{
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (A->nrow == 0) return SPS_OK;
    weigh_entries<<<(unsigned)ceil_div(A->nrow, 32), 256, 0,
                    spsi_cuda_state(ctx)->stream>>>(
        A->rowptr, A->col, (const double *)A->val, A->nrow, column_of(r),
        column_of(c), val);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* Rows of a view may be aligned to 8 bytes only: then numbers go one by one. */
sps_status spsi_coarse_enter(const sps_block *d, const double *c,
                             const sps_block *R, sps_block *U)
{
    sps_context *ctx = R->ctx;
    const size_t bytes = (size_t)R->k * sizeof(double);
    const bool pairs = (uintptr_t)R->data % 16 == 0 &&
                       (uintptr_t)U->data % 8 == 0;
    const int across = (R->k + 1) / 2;
    void *host, *device;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (R->n == 0 || R->k == 0) return SPS_OK;
    if (!pairs) {
        SPS_TRY_RETURN(ctx->backend->axpby_cols(c, R, NULL, U));
        return ctx->backend->scale_rows(d, U, U);
    }
    SPS_TRY_RETURN(spsi_cuda_room(ctx, bytes, &host, &device));
    memcpy(host, c, bytes);
    SPS_TRY_RETURN(spsi_cuda_send(ctx, host, device, bytes));
    enter_rows<<<(unsigned)ceil_div(R->n * across, 256), 256, 0,
                 spsi_cuda_state(ctx)->stream>>>(
        column_of(d), (const double *)device, (const double *)R->data, R->ld,
        R->n, R->k, across, (float *)U->data, U->ld);
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}
