/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_cusparse.cu - cuSPARSE's SpMM as a bidder.
 *
 * When choices are measured all CSR algorithms are set up and timed on blocks
 * of the plan's width and the fastest is kept; its name stands in the plan's
 * detail.  Without measuring it is CSR_ALG2, meant for row-major blocks.  None
 * promises its bits here: CSR_ALG3, documented to repeat them, was seen not to
 * (12.6.3, a matrix with one full row, 3 columns).  (Column-major blocks, the other layout it
 * offers, would cost a transposition of X and of Y, more than it gains.)
 *
 * Preprocessing binds a descriptor to the shape of the dense blocks; calls of
 * another width or leading dimension go through a second descriptor that was
 * not preprocessed.  A single column with a stride comes out wrong (12.6.3
 * takes it for a plain vector), so that is packed first. */
#include "sparse.cuh"

#include <stdio.h>

extern "C" const sps_kernel spsi_kernel_spmm_cusparse;

namespace {

struct choice {
    cusparseSpMMAlg_t alg;
    const char *name;
};
constexpr choice choices[] = {
    {CUSPARSE_SPMM_CSR_ALG2, "CSR_ALG2"},
    {CUSPARSE_SPMM_CSR_ALG3, "CSR_ALG3"},
    {CUSPARSE_SPMM_CSR_ALG1, "CSR_ALG1"},
    {CUSPARSE_SPMM_ALG_DEFAULT, "ALG_DEFAULT"},
};

struct engine {
    cusparseSpMatDescr_t A;
    choice use;
    void *buffer;
    size_t bytes;
};

struct vendor_plan {
    sps_plan super;
    engine tuned, other;
    int64_t ld;              /* of the blocks that tuned was made for */
    double *pack;            /* a column of X, a column of Y */
    size_t pack_bytes;
};

struct dense {
    cusparseDnMatDescr_t x = NULL, y = NULL;

    ~dense()
    {
        if (x) cusparseDestroyDnMat(x);
        if (y) cusparseDestroyDnMat(y);
    }
};

sps_status describe(sps_context *ctx, const sps_csr_local *A, int k, double *x,
                    int64_t ldx, double *y, int64_t ldy, dense *d)
{
    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&d->x, A->ncol, k, ldx, x, CUDA_R_64F,
                                          CUSPARSE_ORDER_ROW));
    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&d->y, A->nrow, k, ldy, y, CUDA_R_64F,
                                          CUSPARSE_ORDER_ROW));
    return SPS_OK;
}

sps_status product(sps_context *ctx, const engine *e, double alpha, double beta,
                   const dense *d)
{
    SPS_CUSPARSE(ctx, cusparseSpMM(spsi_cuda_state(ctx)->sparse,
                                   CUSPARSE_OPERATION_NON_TRANSPOSE,
                                   CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha,
                                   e->A, d->x, &beta, d->y, CUDA_R_64F,
                                   e->use.alg, e->buffer));
    return SPS_OK;
}

sps_status workspace(sps_context *ctx, const engine *e, const dense *d,
                     size_t *bytes)
{
    double alpha = 1, beta = 0;

    SPS_CUSPARSE(ctx, cusparseSpMM_bufferSize(
                          spsi_cuda_state(ctx)->sparse,
                          CUSPARSE_OPERATION_NON_TRANSPOSE,
                          CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, e->A, d->x,
                          &beta, d->y, CUDA_R_64F, e->use.alg, bytes));
    return SPS_OK;
}

sps_status engine_matrix(sps_context *ctx, const sps_csr_local *A, choice use,
                         engine *e)
{
    e->use = use;
    SPS_CUSPARSE(ctx, cusparseCreateCsr(&e->A, A->nrow, A->ncol, A->nnz,
                                        (void *)A->rowptr32, (void *)A->col,
                                        (void *)A->val, CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_32I,
                                        CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    return SPS_OK;
}

void engine_clear(sps_context *ctx, engine *e)
{
    if (e->A) cusparseDestroySpMat(e->A);
    if (e->buffer) spsi_cuda_release(ctx, e->buffer, e->bytes);
    *e = engine();
}

/* Preprocessed for blocks like d. */
sps_status engine_tune(sps_context *ctx, const dense *d, engine *e)
{
    double alpha = 1, beta = 0;

    SPS_TRY_RETURN(workspace(ctx, e, d, &e->bytes));
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, e->bytes, &e->buffer));
    SPS_CUSPARSE(ctx, cusparseSpMM_preprocess(
                          spsi_cuda_state(ctx)->sparse,
                          CUSPARSE_OPERATION_NON_TRANSPOSE,
                          CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, e->A, d->x,
                          &beta, d->y, CUDA_R_64F, e->use.alg, e->buffer));
    return SPS_OK;
}

/* Unprocessed, with room for every width. */
sps_status engine_any(sps_context *ctx, const sps_csr_local *A, int k,
                      double *x, double *y, engine *e)
{
    for (int w = 1; w <= k; w++) {
        dense d;
        size_t bytes = 0;

        SPS_TRY_RETURN(describe(ctx, A, w, x, k, y, k, &d));
        SPS_TRY_RETURN(workspace(ctx, e, &d, &bytes));
        if (bytes > e->bytes) e->bytes = bytes;
    }
    return spsi_cuda_alloc(ctx, e->bytes, &e->buffer);
}

/* Milliseconds of the best of three runs after one to warm up. */
sps_status time_it(sps_context *ctx, const engine *e, const dense *d,
                   float *best)
{
    cudaEvent_t begin, end;
    cudaStream_t stream = spsi_cuda_state(ctx)->stream;

    SPS_CUDA(ctx, cudaEventCreate(&begin));
    SPS_CUDA(ctx, cudaEventCreate(&end));
    *best = 1e30f;
    SPS_TRY_RETURN(product(ctx, e, 1.0, 0.0, d));
    for (int i = 0; i < 3; i++) {
        float ms = 0;

        SPS_CUDA(ctx, cudaEventRecord(begin, stream));
        SPS_TRY_RETURN(product(ctx, e, 1.0, 0.0, d));
        SPS_CUDA(ctx, cudaEventRecord(end, stream));
        SPS_CUDA(ctx, cudaEventSynchronize(end));
        SPS_CUDA(ctx, cudaEventElapsedTime(&ms, begin, end));
        if (ms < *best) *best = ms;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return SPS_OK;
}

/* Sets up the first `count` choices and keeps the fastest. */
sps_status pick(sps_context *ctx, vendor_plan *v, const sps_csr_local *A,
                const dense *d, int count)
{
    float best = 1e30f;

    for (int i = 0; i < count; i++) {
        engine e = {};
        float ms = 0;
        sps_status st = engine_matrix(ctx, A, choices[i], &e);

        if (st == SPS_OK) st = engine_tune(ctx, d, &e);
        if (st == SPS_OK && count > 1) st = time_it(ctx, &e, d, &ms);
        if (st == SPS_OK && ms < best) {
            engine old = v->tuned;

            v->tuned = e;
            e = old;
            best = ms;
        }
        engine_clear(ctx, &e);
        /* One that is refused (memory, say) is passed over. */
        if (st != SPS_OK && (count == 1 || ctx->dead)) return st;
    }
    if (v->tuned.A == NULL)
        return spsi_fail(ctx, SPS_EDEVICE, "cuSPARSE: no SpMM algorithm works");
    return SPS_OK;
}

sps_status prepare(sps_context *ctx, const sps_problem *p, vendor_plan *v,
                   double *x, double *y)
{
    const sps_csr_local *A = p->local;
    dense d;

    SPS_TRY_RETURN(describe(ctx, A, p->k, x, v->ld, y, v->ld, &d));
    SPS_TRY_RETURN(pick(ctx, v, A, &d, p->timed ? 4 : 1));
    SPS_TRY_RETURN(engine_matrix(ctx, A, choices[0], &v->other));
    return engine_any(ctx, A, p->k, x, y, &v->other);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    cusparseHandle_t handle;
    vendor_plan *v;
    void *room;
    size_t rows = (size_t)(p->local->nrow + p->local->ncol);
    size_t bytes;
    sps_status st;

    SPS_TRY_RETURN(spsi_plan_new(ctx, &spsi_kernel_spmm_cusparse, p,
                                 sizeof(vendor_plan), plan_p));
    v = (vendor_plan *)*plan_p;
    if (p->local->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    v->ld = spsi_block_ld(p->k);
    /* Blocks to plan with; only measuring touches them. */
    bytes = rows * (size_t)v->ld * sizeof(double);
    if (!p->timed) bytes = 256;
    SPS_TRY_RETURN(spsi_cuda_alloc(ctx, bytes, &room));
    if (p->timed) cudaMemsetAsync(room, 0, bytes, (cudaStream_t)ctx->stream);
    st = prepare(ctx, p, v, (double *)room,
                 p->timed ? (double *)room + p->local->ncol * v->ld
                          : (double *)room);
    spsi_cuda_release(ctx, room, bytes);
    if (st == SPS_OK) {
        v->pack_bytes = rows * sizeof(double);
        st = spsi_cuda_alloc(ctx, v->pack_bytes, &room);
        if (st == SPS_OK) v->pack = (double *)room;
    }
    v->super.bytes = v->tuned.bytes + v->other.bytes + v->pack_bytes;
    if (st == SPS_OK)
        snprintf(v->super.detail, sizeof v->super.detail, "%s, row-major",
                 v->tuned.use.name);
    return st;
}

/* A block of one column over a packed vector. */
sps_block packed(const sps_block *X, double *data)
{
    sps_block v = *X;

    v.data = data;
    v.ld = 1;
    v.bytes = 0;
    return v;
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const vendor_plan *v = (const vendor_plan *)plan;
    sps_block x = *args->X, y = *args->Y;
    bool tuned = y.k == plan->k && x.ld == v->ld && y.ld == v->ld;
    bool strided = y.k == 1 && (x.ld > 1 || y.ld > 1);
    dense d;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (y.k == 0 || y.n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    if (strided) {
        x = packed(args->X, v->pack);
        y = packed(args->Y, v->pack + plan->A->ncol);
        SPS_TRY_RETURN(spsi_cuda_axpby(1.0, args->X, 0.0, &x));
        if (args->beta != 0)
            SPS_TRY_RETURN(spsi_cuda_axpby(1.0, args->Y, 0.0, &y));
    }
    SPS_TRY_RETURN(describe(plan->ctx, plan->A, y.k, numbers(&x), x.ld,
                            numbers(&y), y.ld, &d));
    SPS_TRY_RETURN(product(plan->ctx, tuned ? &v->tuned : &v->other,
                           args->alpha, args->beta, &d));
    return strided ? spsi_cuda_axpby(1.0, &y, 0.0, args->Y) : SPS_OK;
}

sps_status refresh(sps_plan *plan)
{
    vendor_plan *v = (vendor_plan *)plan;

    if (v->tuned.A)
        SPS_CUSPARSE(plan->ctx, cusparseSpMatSetValues(v->tuned.A,
                                                       (void *)plan->A->val));
    if (v->other.A)
        SPS_CUSPARSE(plan->ctx, cusparseSpMatSetValues(v->other.A,
                                                       (void *)plan->A->val));
    return SPS_OK;
}

void destroy(sps_plan *plan)
{
    vendor_plan *v = (vendor_plan *)plan;

    engine_clear(plan->ctx, &v->tuned);
    engine_clear(plan->ctx, &v->other);
    if (v->pack) spsi_cuda_release(plan->ctx, v->pack, v->pack_bytes);
}

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->dtype != SPS_F64) {
        *why_not = "cuSPARSE wants values of the blocks' type";
        return false;
    }
    if (p->A->nnz > INT32_MAX || p->A->nrow > INT32_MAX) {
        *why_not = "2^31 entries or more";
        return false;
    }
    return true;
}

/* Measured on an H200: about a fifth of the bytes' speed. */
double cost(const sps_problem *p)
{
    return seconds(p, p->k == 1 ? 0.6 : 0.2);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_cusparse) = {
    .name = "spmm.cusparse",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW | SPS_VENDOR,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = refresh,
    .destroy = destroy,
};
