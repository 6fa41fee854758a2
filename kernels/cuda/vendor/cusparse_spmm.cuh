/* SPDX-License-Identifier: BSD-3-Clause */
/* cusparse_spmm.cuh - calls of cuSPARSE's SpMM with one algorithm, for a sparse
 * matrix in any of its formats and row-major or column-major dense blocks;
 * allocation of its buffer.
 *
 * Preprocessing binds a descriptor and its buffer to the shape of the dense
 * blocks; an `engine` (descriptor, algorithm and buffer) that was not
 * preprocessed works for every width. */
#ifndef SPS_CUDA_CUSPARSE_SPMM_CUH
#define SPS_CUDA_CUSPARSE_SPMM_CUH

#include "cuda/vendor/cusparse.cuh"

namespace {

struct choice {
    cusparseSpMMAlg_t alg;
    const char *name;
};

struct engine {
    cusparseSpMatDescr_t A;
    choice use;
    sps_dtype type;
    void *buffer;            /* work memory of cuSPARSE; belongs to the plan */
};

/* Descriptors of X and Y for the duration of a call. */
struct dense {
    cusparseDnMatDescr_t x = NULL, y = NULL;

    ~dense()
    {
        if (x) cusparseDestroyDnMat(x);
        if (y) cusparseDestroyDnMat(y);
    }
};

struct operand {
    int64_t n;
    void *data;
    int64_t ld;
};

inline sps_status describe_dense(sps_context *ctx, sps_dtype type, int k,
                                 operand X, operand Y, cusparseOrder_t order,
                                 dense *d)
{
    cudaDataType_t number = number_type(type);

    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&d->x, X.n, k, X.ld, X.data, number,
                                          order));
    SPS_CUSPARSE(ctx, cusparseCreateDnMat(&d->y, Y.n, k, Y.ld, Y.data, number,
                                          order));
    return SPS_OK;
}

inline sps_status product(sps_context *ctx, const engine *e, const void *alpha,
                          const void *beta, const dense *d)
{
    SPS_CUSPARSE(ctx, cusparseSpMM(spsi_cuda_state(ctx)->sparse,
                                   CUSPARSE_OPERATION_NON_TRANSPOSE,
                                   CUSPARSE_OPERATION_NON_TRANSPOSE, alpha,
                                   e->A, d->x, beta, d->y,
                                   number_type(e->type), e->use.alg,
                                   e->buffer));
    SPS_LAUNCHED(ctx); /* checks for errors, since cuSPARSE has been observed to
                          return success after a failure */
    return SPS_OK;
}

inline sps_status workspace(sps_context *ctx, const engine *e, const dense *d,
                            size_t *bytes)
{
    unit_scalars unit;

    SPS_CUSPARSE(ctx, cusparseSpMM_bufferSize(
                          spsi_cuda_state(ctx)->sparse,
                          CUSPARSE_OPERATION_NON_TRANSPOSE,
                          CUSPARSE_OPERATION_NON_TRANSPOSE, unit.one(e->type),
                          e->A, d->x, unit.zero(e->type), d->y,
                          number_type(e->type), e->use.alg, bytes));
    return SPS_OK;
}

inline void engine_clear(sps_plan *plan, engine *e)
{
    if (e->A) cusparseDestroySpMat(e->A);
    plan_give(plan, &e->buffer);
    *e = engine();
}

/* Allocates the buffer and lets cuSPARSE preprocess for dense blocks of the
 * shape and layout of d. */
inline sps_status engine_tune(sps_plan *plan, const dense *d, engine *e)
{
    sps_context *ctx = plan->ctx;
    unit_scalars unit;
    size_t bytes;

    SPS_TRY_RETURN(workspace(ctx, e, d, &bytes));
    SPS_TRY_RETURN(spsi_plan_take(plan, roomy(bytes), &e->buffer));
    SPS_CUSPARSE(ctx, cusparseSpMM_preprocess(
                          spsi_cuda_state(ctx)->sparse,
                          CUSPARSE_OPERATION_NON_TRANSPOSE,
                          CUSPARSE_OPERATION_NON_TRANSPOSE, unit.one(e->type),
                          e->A, d->x, unit.zero(e->type), d->y,
                          number_type(e->type), e->use.alg, e->buffer));
    return SPS_OK;
}

/* Allocates a buffer large enough for every width up to the plan's, without
 * preprocessing (the alternative to engine_tune). */
inline sps_status engine_any(sps_plan *plan, operand X, operand Y, engine *e)
{
    size_t most = 0;

    for (int w = 1; w <= plan->k; w++) {
        dense d;
        size_t bytes = 0;

        SPS_TRY_RETURN(describe_dense(plan->ctx, e->type, w, X, Y,
                                      CUSPARSE_ORDER_ROW, &d));
        SPS_TRY_RETURN(workspace(plan->ctx, e, &d, &bytes));
        if (bytes > most) most = bytes;
    }
    return spsi_plan_take(plan, roomy(most), &e->buffer);
}

inline sps_status engine_time(sps_context *ctx, const engine *e,
                              const dense *d, float rival, float *ms)
{
    unit_scalars unit;

    return time_best(ctx, rival, [&]() -> sps_status {
        return product(ctx, e, unit.one(e->type), unit.zero(e->type), d);
    }, ms);
}

} // namespace

#endif
