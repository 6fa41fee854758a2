/* SPDX-License-Identifier: BSD-3-Clause */
/* sddmm_cusparse.cu - the SDDMM of cuSPARSE as one of the kernels to choose
 * from.
 *
 * cuSPARSE has one algorithm.  It needs V^T, which is passed as the row-major V
 * declared column-major.  It cannot multiply by the values of A; for that the
 * samples are written to memory of the plan, and a kernel of this library
 * multiplies and combines them: 24 additional bytes per entry.  The
 * preprocessing of cuSPARSE has no effect (12.6.3: no buffer, the same times),
 * so it is not called.  Reproducibility is not documented. */
#include "cuda/vendor/cusparse.cuh"

namespace {

struct vendor_plan {
    sps_plan super;
    void *buffer;
    void *sample;            /* the samples: nnz numbers of the blocks' type */
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

sps_status describe(const sps_plan *plan, int d, void *u, int64_t ldu, void *v,
                    int64_t ldv, void *val, descriptors *x)
{
    sps_context *ctx = plan->ctx;
    const sps_csr_local *A = plan->A;
    cudaDataType_t number = number_type(plan->block);

    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&x->u, A->nrow, d, ldu, u, number,
                                          CUSPARSE_ORDER_ROW));
    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&x->v, d, A->ncol, ldv, v, number,
                                          CUSPARSE_ORDER_COL));
    return describe_csr(ctx, A, val, plan->block, &x->s);
}

/* Allocates a buffer for cuSPARSE that is sufficient for every width up to the
 * plan's. */
sps_status need_buffer(vendor_plan *v, cusparseHandle_t handle)
{
    sps_context *ctx = v->super.ctx;
    sps_dtype type = v->super.block;
    int k = v->super.k;
    unit_scalars unit;
    size_t most = 0;

    for (int d = 1; d <= k; d++) {
        descriptors x;
        size_t bytes = 0;

        SPS_TRY_RETURN(describe(&v->super, d, v->sample, k, v->sample, k,
                                v->sample, &x));
        SPS_CUSPARSE(ctx, cusparseSDDMM_bufferSize(
                              handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                              CUSPARSE_OPERATION_NON_TRANSPOSE, unit.one(type),
                              x.u, x.v, unit.zero(type), x.s,
                              number_type(type), CUSPARSE_SDDMM_ALG_DEFAULT,
                              &bytes));
        if (bytes > most) most = bytes;
    }
    return spsi_plan_take(&v->super, roomy(most), &v->buffer);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    cusparseHandle_t handle;
    sps_context *ctx = super->ctx;
    vendor_plan *v = (vendor_plan *)super;

    if (p->local->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    SPS_TRY_RETURN(spsi_plan_take(
        super, (size_t)p->local->nnz * spsi_dtype_size(p->block),
        &v->sample));
    return need_buffer(v, handle);
}

/* val = sample [* a] + beta val.  T: type of the samples; V: type of the values
 * of A. */
template <class T, class V>
__global__ void __launch_bounds__(256)
join(const T *sample, const V *a, double beta, T *val, int64_t nnz, bool zero)
{
    int64_t p = (int64_t)blockIdx.x * 256 + threadIdx.x;
    T r;

    if (p >= nnz) return;
    r = zero ? T(0) : sample[p] * (T)a[p];
    val[p] = beta != 0 ? fma((T)beta, val[p], r) : r;
}

template <class T, class V>
sps_status join_samples(const sps_plan *plan, const sps_sddmm_args *args,
                       bool zero)
{
    sps_context *ctx = plan->ctx;
    const vendor_plan *v = (const vendor_plan *)plan;
    int64_t nnz = plan->A->nnz;

    return run_items(ctx, nnz, join<T, V>, (const T *)v->sample,
                     (const V *)plan->A->val, args->beta, (T *)args->val, nnz,
                     zero);
}

/* Launches val = sample [* a] + beta val; with `zero` all samples count as
 * zero. */
sps_status joined(const sps_plan *plan, const sps_sddmm_args *args, bool zero)
{
    if (plan->block == SPS_F32)
        return join_samples<float, float>(plan, args, zero);
    if (plan->A->dtype == SPS_F32)
        return join_samples<double, float>(plan, args, zero);
    return join_samples<double, double>(plan, args, zero);
}

/* Calls cuSPARSE with alpha and beta converted to the blocks' type. */
sps_status sampled(const sps_plan *plan, const sps_sddmm_args *args,
                   double beta, const descriptors *x)
{
    sps_context *ctx = plan->ctx;
    float alpha32 = (float)args->alpha, beta32 = (float)beta;
    bool wide = plan->block == SPS_F64;

    SPS_CUSPARSE(ctx, cusparseSDDMM(
                          spsi_cuda_state(ctx)->sparse,
                          CUSPARSE_OPERATION_NON_TRANSPOSE,
                          CUSPARSE_OPERATION_NON_TRANSPOSE,
                          wide ? (const void *)&args->alpha : &alpha32, x->u,
                          x->v, wide ? (const void *)&beta : &beta32, x->s,
                          number_type(plan->block), CUSPARSE_SDDMM_ALG_DEFAULT,
                          ((const vendor_plan *)plan)->buffer));
    return SPS_OK;
}

sps_status sddmm(const sps_plan *plan, const sps_sddmm_args *args)
{
    const vendor_plan *v = (const vendor_plan *)plan;
    const sps_block *U = args->U, *V = args->V;
    descriptors x;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (plan->A->nnz == 0) return SPS_OK;
    if (args->alpha == 0 || U->k == 0) return joined(plan, args, true);
    SPS_TRY_RETURN(describe(plan, U->k, U->data, U->ld, V->data, V->ld,
                            args->multiply ? v->sample : args->val, &x));
    SPS_TRY_RETURN(sampled(plan, args, args->multiply ? 0.0 : args->beta, &x));
    return args->multiply ? joined(plan, args, false) : SPS_OK;
}

double cost(const sps_problem *p)
{
    return 2.0 * (double)p->f->nnz * (8.0 * p->k + 20.0) / p->machine->copy;
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_sddmm_cusparse) = {
    .name = "sddmm.cusparse",
    .op = SPS_OP_SDDMM,
    .gives = SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW | SPS_VENDOR |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(vendor_plan),
    .fits = vendor_size,
    .cost = cost,
    .plan = plan,
    .sddmm = sddmm,
};
