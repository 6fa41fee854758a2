/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_cusparse.cu - cuSPARSE's SpMV as a bidder for single vectors.
 *
 * CSR_ALG1 and CSR_ALG2 are both timed when choices are measured and bits need
 * not repeat; else it is ALG2, the only one documented to repeat them.  Vectors
 * with a stride (columns of wider blocks) are packed first.
 *
 * Scalars on the device: cuSPARSE reads them there, but multiplies by an alpha
 * of zero (12.6.3: 0 * NaN came out), so A x goes to memory of the plan and a
 * kernel of ours joins it; so it does when y has a stride. */
#include "cusparse.cuh"

#include <stdio.h>

extern "C" const sps_kernel spsi_kernel_spmv_cusparse;

namespace {

struct vendor_plan {
    sps_plan super;
    cusparseSpMatDescr_t A;
    cusparseSpMVAlg_t alg;
    void *buffer;
    size_t buffer_bytes;
    char *room;              /* a vector of columns, one of rows */
    size_t room_bytes;
};

struct vectors {
    cusparseDnVecDescr_t x = NULL, y = NULL;

    ~vectors()
    {
        if (x) cusparseDestroyDnVec(x);
        if (y) cusparseDestroyDnVec(y);
    }
};

char *room_y(const vendor_plan *v)
{
    return v->room + (size_t)v->super.A->ncol *
                         spsi_dtype_size(v->super.block);
}

sps_status describe(const sps_plan *plan, void *x, void *y, vectors *d)
{
    cudaDataType_t number = number_type(plan->block);

    SPS_CUSPARSE(plan->ctx, cusparseCreateDnVec(&d->x, plan->A->ncol, x,
                                                number));
    SPS_CUSPARSE(plan->ctx, cusparseCreateDnVec(&d->y, plan->A->nrow, y,
                                                number));
    return SPS_OK;
}

sps_status product(const vendor_plan *v, const void *alpha, const void *beta,
                   const vectors *d)
{
    sps_context *ctx = v->super.ctx;

    SPS_CUSPARSE(ctx, cusparseSpMV(spsi_cuda_state(ctx)->sparse,
                                   CUSPARSE_OPERATION_NON_TRANSPOSE, alpha,
                                   v->A, d->x, beta, d->y,
                                   number_type(v->super.block), v->alg,
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
    sps_dtype type = v->super.block;
    cusparseHandle_t handle = spsi_cuda_state(ctx)->sparse;
    unit_scalars unit;

    drop(v);
    v->alg = alg;
    SPS_TRY_RETURN(describe_csr(ctx, A, A->val, type, &v->A));
    SPS_CUSPARSE(ctx, cusparseSpMV_bufferSize(
                          handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                          unit.one(type), v->A, d->x, unit.zero(type), d->y,
                          number_type(type), alg, &v->buffer_bytes));
    v->buffer_bytes = roomy(v->buffer_bytes);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, v->buffer_bytes, &v->buffer));
    SPS_CUSPARSE(ctx, cusparseSpMV_preprocess(
                          handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                          unit.one(type), v->A, d->x, unit.zero(type), d->y,
                          number_type(type), alg, v->buffer));
    return SPS_OK;
}

sps_status time_it(const vendor_plan *v, const vectors *d, float *best)
{
    unit_scalars unit;
    sps_dtype type = v->super.block;

    return time_best(v->super.ctx, 1e30f, [&]() -> sps_status {
        return product(v, unit.one(type), unit.zero(type), d);
    }, best);
}

/* The faster of the two. */
sps_status pick(vendor_plan *v, const vectors *d)
{
    float ms1 = 0, ms2 = 0;

    SPS_TRY_RETURN(set_up(v, CUSPARSE_SPMV_CSR_ALG1, d));
    SPS_TRY_RETURN(time_it(v, d, &ms1));
    SPS_TRY_RETURN(set_up(v, CUSPARSE_SPMV_CSR_ALG2, d));
    SPS_TRY_RETURN(time_it(v, d, &ms2));
    return ms1 < ms2 ? set_up(v, CUSPARSE_SPMV_CSR_ALG1, d) : SPS_OK;
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    const sps_csr_local *A = p->local;
    bool any = p->timed && !(p->need & SPS_REPRODUCIBLE);
    cusparseHandle_t handle;
    vendor_plan *v;
    vectors d;
    void *room;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmv_cusparse, p,
                                 sizeof(vendor_plan), plan_p));
    v = (vendor_plan *)*plan_p;
    if (A->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    v->room_bytes = (size_t)(A->ncol + A->nrow) * spsi_dtype_size(p->block);
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, v->room_bytes, &room));
    v->room = (char *)room;
    SPS_CUDA(ctx, cudaMemsetAsync(room, 0, v->room_bytes,
                                  spsi_cuda_state(ctx)->stream));
    SPS_TRY_RETURN(describe(&v->super, v->room, room_y(v), &d));
    SPS_TRY_RETURN(any ? pick(v, &d)
                       : set_up(v, CUSPARSE_SPMV_CSR_ALG2, &d));
    v->super.bytes = v->buffer_bytes + v->room_bytes;
    snprintf(v->super.detail, sizeof v->super.detail, "CSR_ALG%d",
             v->alg == CUSPARSE_SPMV_CSR_ALG1 ? 1 : 2);
    return SPS_OK;
}

/* Everything but strides and scalars on the device. */
sps_status multiply(const vendor_plan *v, const sps_spmm_args *args,
                    const sps_block *x, const sps_block *y)
{
    vectors d;

    SPS_TRY_RETURN(describe(&v->super, x->data, y->data, &d));
    return with_host_scalars(
        args, [&](const void *alpha, const void *beta) -> sps_status {
            return product(v, alpha, beta, &d);
        });
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const vendor_plan *v = (const vendor_plan *)plan;
    const sps_block *X = args->X, *Y = args->Y;
    sps_block x = packed(X, v->room), y = packed(Y, room_y(v));
    sps_spmm_args plain = *args;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (Y->k == 0 || Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (X->ld == 1) x = *X;
    else SPS_TRY_RETURN(move_column(X, &x));
    if (Y->ld == 1 && !args->scalars) return multiply(v, args, &x, Y);
    plain.alpha = 1.0;
    plain.beta = 0.0;
    SPS_TRY_RETURN(multiply(v, &plain, &x, &y));
    return join_product(args, y.data, 1);
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
    spsi_cuda_release(plan->ctx, v->room, v->room_bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->k != 1) {
        *why_not = "serves single vectors only";
        return false;
    }
    return vendor_fits(p, why_not);
}

/* ALG2, which repeats its bits: 48 to 66 % of the bytes' speed on an H200, 37
 * on a power law; three kernels. */
double cost(const sps_problem *p)
{
    return 6.5e-6 + stream_seconds(p, 0.57) + 0.6 * scattered(p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_cusparse) = {
    .name = "spmv.cusparse",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_VENDOR | SPS_SINGLE_BLOCKS,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = refresh,
    .destroy = destroy,
};
