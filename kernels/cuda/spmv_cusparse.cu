/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_cusparse.cu - cuSPARSE's SpMV as a bidder for single vectors.
 *
 * CSR_ALG1 and CSR_ALG2 are both timed when choices are measured and bits need
 * not repeat; else it is ALG2, the only one documented to repeat them.  Vectors with a stride (columns
 * of wider blocks) are packed first. */
#include "sparse.cuh"

#include <stdio.h>

extern "C" const sps_kernel spsi_kernel_spmv_cusparse;

namespace {

struct vendor_plan {
    sps_plan super;
    cusparseSpMatDescr_t A;
    cusparseSpMVAlg_t alg;
    void *buffer;
    size_t buffer_bytes;
    double *pack;            /* a vector of columns, a vector of rows */
    size_t pack_bytes;
};

struct vectors {
    cusparseDnVecDescr_t x = NULL, y = NULL;

    ~vectors()
    {
        if (x) cusparseDestroyDnVec(x);
        if (y) cusparseDestroyDnVec(y);
    }
};

sps_status describe(sps_context *ctx, const sps_csr_local *A, double *x,
                    double *y, vectors *d)
{
    SPS_CUSPARSE(ctx, cusparseCreateDnVec(&d->x, A->ncol, x, CUDA_R_64F));
    SPS_CUSPARSE(ctx, cusparseCreateDnVec(&d->y, A->nrow, y, CUDA_R_64F));
    return SPS_OK;
}

sps_status product(const vendor_plan *v, double alpha, double beta,
                   const vectors *d)
{
    sps_context *ctx = v->super.ctx;

    SPS_CUSPARSE(ctx, cusparseSpMV(spsi_cuda_state(ctx)->sparse,
                                   CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha,
                                   v->A, d->x, &beta, d->y, CUDA_R_64F, v->alg,
                                   v->buffer));
    return SPS_OK;
}

void drop(vendor_plan *v)
{
    if (v->A) cusparseDestroySpMat(v->A);
    if (v->buffer) spsi_cuda_release(v->super.ctx, v->buffer, v->buffer_bytes);
    v->A = NULL;
    v->buffer = NULL;
}

sps_status set_up(vendor_plan *v, cusparseSpMVAlg_t alg, const vectors *d)
{
    sps_context *ctx = v->super.ctx;
    const sps_csr_local *A = v->super.A;
    cusparseHandle_t handle = spsi_cuda_state(ctx)->sparse;
    double alpha = 1, beta = 0;

    drop(v);
    v->alg = alg;
    SPS_CUSPARSE(ctx, cusparseCreateCsr(&v->A, A->nrow, A->ncol, A->nnz,
                                        (void *)A->rowptr32, (void *)A->col,
                                        (void *)A->val, CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    SPS_CUSPARSE(ctx, cusparseSpMV_bufferSize(
                          handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha,
                          v->A, d->x, &beta, d->y, CUDA_R_64F, alg,
                          &v->buffer_bytes));
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, v->buffer_bytes, &v->buffer));
    SPS_CUSPARSE(ctx, cusparseSpMV_preprocess(
                          handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha,
                          v->A, d->x, &beta, d->y, CUDA_R_64F, alg,
                          v->buffer));
    return SPS_OK;
}

sps_status time_it(const vendor_plan *v, const vectors *d, float *best)
{
    sps_context *ctx = v->super.ctx;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;
    cudaEvent_t begin, end;

    SPS_CUDA(ctx, cudaEventCreate(&begin));
    SPS_CUDA(ctx, cudaEventCreate(&end));
    *best = 1e30f;
    for (int i = 0; i < 4; i++) {
        float ms = 0;

        SPS_CUDA(ctx, cudaEventRecord(begin, stream));
        SPS_TRY_RETURN(product(v, 1.0, 0.0, d));
        SPS_CUDA(ctx, cudaEventRecord(end, stream));
        SPS_CUDA(ctx, cudaEventSynchronize(end));
        SPS_CUDA(ctx, cudaEventElapsedTime(&ms, begin, end));
        if (i > 0 && ms < *best) *best = ms;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return SPS_OK;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    const sps_csr_local *A = p->local;
    bool any = p->timed && !(p->need & SPS_REPRODUCIBLE);
    cusparseHandle_t handle;
    float ms1 = 0, ms2 = 0;
    vendor_plan *v;
    vectors d;
    void *pack;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmv_cusparse, p,
                                 sizeof(vendor_plan), plan_p));
    v = (vendor_plan *)*plan_p;
    if (A->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    v->pack_bytes = (size_t)(A->ncol + A->nrow) * sizeof(double);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, v->pack_bytes, &pack));
    v->pack = (double *)pack;
    SPS_CUDA(ctx, cudaMemsetAsync(pack, 0, v->pack_bytes,
                                  spsi_cuda_state(ctx)->stream));
    SPS_TRY_RETURN(describe(ctx, A, v->pack, v->pack + A->ncol, &d));
    SPS_TRY_RETURN(set_up(v, any ? CUSPARSE_SPMV_CSR_ALG1
                                 : CUSPARSE_SPMV_CSR_ALG2, &d));
    if (any) {
        SPS_TRY_RETURN(time_it(v, &d, &ms1));
        SPS_TRY_RETURN(set_up(v, CUSPARSE_SPMV_CSR_ALG2, &d));
        SPS_TRY_RETURN(time_it(v, &d, &ms2));
        if (ms1 < ms2) SPS_TRY_RETURN(set_up(v, CUSPARSE_SPMV_CSR_ALG1, &d));
    }
    v->super.bytes = v->buffer_bytes + v->pack_bytes;
    snprintf(v->super.detail, sizeof v->super.detail, "CSR_ALG%d",
             v->alg == CUSPARSE_SPMV_CSR_ALG1 ? 1 : 2);
    return SPS_OK;
}

/* A block over a packed vector. */
sps_block packed(const sps_block *X, double *data)
{
    sps_block v = *X;

    v.data = data;
    v.ld = 1;
    v.k = v.width = 1;
    v.bytes = 0;
    return v;
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const vendor_plan *v = (const vendor_plan *)plan;
    const sps_block *X = args->X;
    sps_block *Y = args->Y;
    sps_block x = packed(X, v->pack), y = packed(Y, v->pack + plan->A->ncol);
    vectors d;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (Y->k == 0 || Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (X->ld == 1) x = *X;
    else SPS_TRY_RETURN(spsi_cuda_axpby(1.0, X, 0.0, &x));
    if (Y->ld == 1) y = *Y;
    else if (args->beta != 0) SPS_TRY_RETURN(spsi_cuda_axpby(1.0, Y, 0.0, &y));
    SPS_TRY_RETURN(describe(plan->ctx, plan->A, numbers(&x), numbers(&y), &d));
    SPS_TRY_RETURN(product(v, args->alpha, args->beta, &d));
    return Y->ld == 1 ? SPS_OK : spsi_cuda_axpby(1.0, &y, 0.0, Y);
}

sps_status refresh(sps_plan *plan)
{
    vendor_plan *v = (vendor_plan *)plan;

    if (v->A)
        SPS_CUSPARSE(plan->ctx, cusparseSpMatSetValues(v->A,
                                                       (void *)plan->A->val));
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    vendor_plan *v = (vendor_plan *)plan;

    drop(v);
    if (v->pack) spsi_cuda_release(plan->ctx, v->pack, v->pack_bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->k != 1) {
        *why_not = "serves single vectors only";
        return false;
    }
    if (p->A->dtype != SPS_F64) {
        *why_not = "cuSPARSE wants values of the vectors' type";
        return false;
    }
    if (p->A->nnz > INT32_MAX || p->A->nrow > INT32_MAX) {
        *why_not = "2^31 entries or more";
        return false;
    }
    return true;
}

/* Measured on an H200: 59 to 76 % of the bytes' speed, 38 on a power law. */
double cost(const sps_problem *p)
{
    return seconds(p, 0.62);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_cusparse) = {
    .name = "spmv.cusparse",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_VENDOR,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = refresh,
    .destroy = destroy,
};
