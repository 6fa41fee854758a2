/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_cusparse.cu - the SpMV of cuSPARSE on CSR, one of the kernels to choose
 * from for single vectors.
 *
 * CSR_ALG1 and CSR_ALG2 are both timed if choices are measured and reproducible
 * bits are not required; otherwise it is ALG2, the only one documented as
 * reproducible. */
#include "cuda/vendor/cusparse_spmv.cuh"

#include <stdio.h>

namespace {

sps_status set_up(vector_plan *v, cusparseSpMVAlg_t alg, const vectors *d)
{
    sps_context *ctx = v->super.ctx;
    const sps_csr_local *A = v->super.A;
    sps_dtype type = v->super.block;
    unit_scalars unit;

    vector_drop(v);
    SPS_TRY_RETURN(describe_csr(ctx, A, A->val, type, &v->A));
    SPS_TRY_RETURN(vector_buffer(v, alg, d));
    SPS_CUSPARSE(ctx, cusparseSpMV_preprocess(
                          spsi_cuda_state(ctx)->sparse,
                          CUSPARSE_OPERATION_NON_TRANSPOSE,
                          unit.one(type), v->A, d->x, unit.zero(type), d->y,
                          number_type(type), alg, v->buffer));
    return SPS_OK;
}

/* Sets up the faster of CSR_ALG1 and CSR_ALG2. */
sps_status pick(vector_plan *v, const vectors *d)
{
    float ms1 = 0, ms2 = 0;

    SPS_TRY_RETURN(set_up(v, CUSPARSE_SPMV_CSR_ALG1, d));
    SPS_TRY_RETURN(vector_time(v, d, &ms1));
    SPS_TRY_RETURN(set_up(v, CUSPARSE_SPMV_CSR_ALG2, d));
    SPS_TRY_RETURN(vector_time(v, d, &ms2));
    return ms1 < ms2 ? set_up(v, CUSPARSE_SPMV_CSR_ALG1, d) : SPS_OK;
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    const bool any = p->timed && !(p->need & SPS_REPRODUCIBLE);
    vector_plan *v = (vector_plan *)super;
    vectors d;

    if (p->local->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(vector_room(v, &d));
    SPS_TRY_RETURN(any ? pick(v, &d)
                       : set_up(v, CUSPARSE_SPMV_CSR_ALG2, &d));
    snprintf(v->super.detail, sizeof v->super.detail, "CSR_ALG%d",
             v->alg == CUSPARSE_SPMV_CSR_ALG1 ? 1 : 2);
    return SPS_OK;
}

sps_status refresh(sps_plan *plan)
{
    vector_plan *v = (vector_plan *)plan;

    if (v->A)
        SPS_CUSPARSE(plan->ctx, cusparseSpMatSetValues(v->A,
                                                       (void *)plan->A->val));
    return SPS_OK;
}

/* Predicted seconds of ALG2, the reproducible algorithm: 48 to 66 % of the
 * speed that the bytes allow on an H200, 37 % on a power-law graph; it launches
 * three kernels. */
double cost(const sps_problem *p)
{
    return 6.5e-6 + stream_seconds(p, 0.57) + 0.6 * scattered(p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_cusparse) = {
    .name = "spmv.cusparse",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_VENDOR | SPS_SINGLE_BLOCKS,
    .size = sizeof(vector_plan),
    .fits = single_fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<vector_spmm>,
    .refresh = refresh,
    .destroy = vector_destroy,
};
