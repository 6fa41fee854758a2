/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_cusparse.cu - cuSPARSE's SDDMM as a bidder.
 *
 * It has one algorithm; V enters as its transpose, which a row-major V is by
 * itself.  Multiplying by the values of A is not offered, so then the samples
 * go through memory of the plan and a kernel of ours joins them: 24 bytes an
 * entry more.  Nothing is documented about repeating bits. */
#include "sparse.cuh"

extern "C" const sps_kernel spsi_kernel_sddmm_cusparse;

namespace {

struct vendor_plan {
    sps_plan super;
    void *buffer;
    size_t buffer_bytes;
    double *sample;          /* nnz */
    size_t sample_bytes;
};

struct descriptors {
    cusparseDnMatDescr_t u = NULL, v = NULL;
    cusparseSpMatDescr_t s = NULL;

    ~descriptors()
    {
        if (u) cusparseDestroyDnMat(u);
        if (v) cusparseDestroyDnMat(v);
        if (s) cusparseDestroySpMat(s);
    }
};

sps_status describe(const sps_plan *plan, int d, double *u, int64_t ldu,
                    double *v, int64_t ldv, double *val, descriptors *x)
{
    sps_context *ctx = plan->ctx;
    const sps_csr_local *A = plan->A;

    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&x->u, A->nrow, d, ldu, u, CUDA_R_64F,
                                          CUSPARSE_ORDER_ROW));
    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&x->v, d, A->ncol, ldv, v, CUDA_R_64F,
                                          CUSPARSE_ORDER_COL));
    SPS_CUSPARSE(ctx, cusparseCreateCsr(&x->s, A->nrow, A->ncol, A->nnz,
                                        (void *)A->rowptr32, (void *)A->col,
                                        val, CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    return SPS_OK;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    cusparseHandle_t handle;
    vendor_plan *v;
    double alpha = 1, beta = 0;
    void *room;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_sddmm_cusparse, p,
                                 sizeof(vendor_plan), plan_p));
    v = (vendor_plan *)*plan_p;
    if (p->local->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    v->sample_bytes = (size_t)p->local->nnz * sizeof(double);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, v->sample_bytes, &room));
    v->sample = (double *)room;
    for (int d = 1; d <= p->k; d++) {
        descriptors x;
        size_t bytes = 0;

        SPS_TRY_RETURN(describe(&v->super, d, v->sample, p->k, v->sample, p->k,
                                v->sample, &x));
        SPS_CUSPARSE(ctx, cusparseSDDMM_bufferSize(
                              handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                              CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, x.u,
                              x.v, &beta, x.s, CUDA_R_64F,
                              CUSPARSE_SDDMM_ALG_DEFAULT, &bytes));
        if (bytes > v->buffer_bytes) v->buffer_bytes = bytes;
    }
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, v->buffer_bytes, &v->buffer));
    v->super.bytes = v->buffer_bytes + v->sample_bytes;
    return SPS_OK;
}

template <class V>
__global__ void __launch_bounds__(256)
join(const double *sample, const V *a, double beta, double *val, int64_t nnz,
     bool zero)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;
    double r;

    if (p >= nnz) return;
    r = zero ? 0.0 : sample[p] * (double)a[p];
    val[p] = beta != 0 ? fma(beta, val[p], r) : r;
}

sps_status joined(const sps_plan *plan, const sps_sddmm_args *args, bool zero)
{
    sps_context *ctx = plan->ctx;
    const double *sample = ((const vendor_plan *)plan)->sample;
    int64_t nnz = plan->A->nnz;

    return with_types(plan->A, [&](auto A) -> sps_status {
        join<<<(unsigned)ceil_div(nnz, 256), 256, 0,
               spsi_cuda_state(ctx)->stream>>>(sample, A.val, args->beta,
                                               (double *)args->val, nnz,
                                               zero);
        SPS_LAUNCHED(ctx);
        return SPS_OK;
    });
}

sps_status sddmm(const sps_plan *plan, const sps_sddmm_args *args)
{
    sps_context *ctx = plan->ctx;
    const vendor_plan *v = (const vendor_plan *)plan;
    double beta = args->multiply ? 0.0 : args->beta;
    descriptors x;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    if (plan->A->nnz == 0) return SPS_OK;
    if (args->alpha == 0 || args->U->k == 0) return joined(plan, args, true);
    SPS_TRY_RETURN(describe(plan, args->U->k, numbers(args->U), args->U->ld,
                            numbers(args->V), args->V->ld,
                            args->multiply ? v->sample : (double *)args->val,
                            &x));
    SPS_CUSPARSE(ctx, cusparseSDDMM(spsi_cuda_state(ctx)->sparse,
                                    CUSPARSE_OPERATION_NON_TRANSPOSE,
                                    CUSPARSE_OPERATION_NON_TRANSPOSE,
                                    &args->alpha, x.u, x.v, &beta, x.s,
                                    CUDA_R_64F, CUSPARSE_SDDMM_ALG_DEFAULT,
                                    v->buffer));
    return args->multiply ? joined(plan, args, false) : SPS_OK;
}

void destroy(sps_plan *plan)
{
    vendor_plan *v = (vendor_plan *)plan;

    if (v->sample) spsi_cuda_release(plan->ctx, v->sample, v->sample_bytes);
    if (v->buffer) spsi_cuda_release(plan->ctx, v->buffer, v->buffer_bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "2^31 entries or more";
    return p->A->nnz <= INT32_MAX && p->A->nrow <= INT32_MAX;
}

double cost(const sps_problem *p)
{
    return 2.0 * (double)p->f->nnz * (8.0 * p->k + 20.0) / p->bandwidth;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_sddmm_cusparse) = {
    .name = "sddmm.cusparse",
    .op = SPS_OP_SDDMM,
    .where = SPS_CUDA,
    .gives = SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW | SPS_VENDOR,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = NULL,
    .sddmm = sddmm,
    .refresh = NULL,
    .destroy = destroy,
};
