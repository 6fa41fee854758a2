/* SPDX-License-Identifier: BSD-3-Clause */
/* cusparse_spmv.cuh - calls of cuSPARSE's SpMV with one algorithm, for a sparse
 * matrix in any of its formats; allocation of vectors and of its buffer.
 *
 * Strided vectors (columns of wider blocks) are packed first.  cuSPARSE reads
 * scalars in device memory, but with alpha = 0 it still multiplies (12.6.3: 0 *
 * NaN gave NaN); therefore A x is then written to memory of the plan, and a
 * kernel of this library combines it with y, as also for a strided y. */
#ifndef SPS_CUDA_CUSPARSE_SPMV_CUH
#define SPS_CUDA_CUSPARSE_SPMV_CUH

#include "cuda/vendor/cusparse.cuh"

namespace {

/* The common part of the plans of cuSPARSE's SpMV, their first member.  A is
 * created by the kernel and NULL if the matrix is empty. */
struct vector_plan {
    sps_plan super;
    cusparseSpMatDescr_t A;
    cusparseSpMVAlg_t alg;
    void *buffer;
    char *room;              /* memory for one vector of ncol and one of nrow
                                elements */
};

struct vectors {
    cusparseDnVecDescr_t x = NULL, y = NULL;

    ~vectors()
    {
        if (x) cusparseDestroyDnVec(x);
        if (y) cusparseDestroyDnVec(y);
    }
};

inline char *room_y(const vector_plan *v)
{
    return v->room + (size_t)v->super.A->ncol *
                         spsi_dtype_size(v->super.block);
}

inline sps_status describe_vectors(const sps_plan *plan, void *x, void *y,
                                   vectors *d)
{
    cudaDataType_t number = number_type(plan->block);

    SPS_CUSPARSE(plan->ctx, cusparseCreateDnVec(&d->x, plan->A->ncol, x,
                                                number));
    SPS_CUSPARSE(plan->ctx, cusparseCreateDnVec(&d->y, plan->A->nrow, y,
                                                number));
    return SPS_OK;
}

inline sps_status vector_product(const vector_plan *v, const void *alpha,
                                 const void *beta, const vectors *d)
{
    sps_context *ctx = v->super.ctx;

    SPS_CUSPARSE(ctx, cusparseSpMV(spsi_cuda_state(ctx)->sparse,
                                   CUSPARSE_OPERATION_NON_TRANSPOSE, alpha,
                                   v->A, d->x, beta, d->y,
                                   number_type(v->super.block), v->alg,
                                   v->buffer));
    SPS_LAUNCHED(ctx);
    return SPS_OK;
}

/* ---------------------------------------------------------------- planning */

/* Creates the handle of cuSPARSE and allocates the plan's two vectors, set to
 * zero. */
inline sps_status vector_room(vector_plan *v, vectors *d)
{
    sps_context *ctx = v->super.ctx;
    const sps_csr_local *A = v->super.A;
    cusparseHandle_t handle;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    SPS_TRY_RETURN(plan_take_zeros(
        &v->super,
        (A->ncol + A->nrow) * (int64_t)spsi_dtype_size(v->super.block),
        &v->room));
    return describe_vectors(&v->super, v->room, room_y(v), d);
}

/* Allocates the buffer that v->A needs with this algorithm. */
inline sps_status vector_buffer(vector_plan *v, cusparseSpMVAlg_t alg,
                                const vectors *d)
{
    sps_context *ctx = v->super.ctx;
    sps_dtype type = v->super.block;
    unit_scalars unit;
    size_t bytes;

    v->alg = alg;
    SPS_CUSPARSE(ctx, cusparseSpMV_bufferSize(
                          spsi_cuda_state(ctx)->sparse,
                          CUSPARSE_OPERATION_NON_TRANSPOSE, unit.one(type),
                          v->A, d->x, unit.zero(type), d->y,
                          number_type(type), alg, &bytes));
    return spsi_plan_take(&v->super, roomy(bytes), &v->buffer);
}

/* Releases the descriptor of A and the buffer. */
inline void vector_drop(vector_plan *v)
{
    if (v->A) cusparseDestroySpMat(v->A);
    v->A = NULL;
    plan_give(&v->super, &v->buffer);
}

inline void vector_destroy(sps_plan *plan)
{
    vector_drop((vector_plan *)plan);
}

inline sps_status vector_time(const vector_plan *v, const vectors *d,
                              float *best)
{
    unit_scalars unit;
    sps_dtype type = v->super.block;

    return time_best(v->super.ctx, 1e30f, [&]() -> sps_status {
        return vector_product(v, unit.one(type), unit.zero(type), d);
    }, best);
}

/* -------------------------------------------------------------------- runs */

/* Multiplies contiguous vectors, with scalars in host memory. */
inline sps_status vector_multiply(const vector_plan *v,
                                  const sps_spmm_args *args,
                                  const sps_block *x, const sps_block *y)
{
    vectors d;

    SPS_TRY_RETURN(describe_vectors(&v->super, x->data, y->data, &d));
    return with_host_scalars(
        args, [&](const void *alpha, const void *beta) -> sps_status {
            return vector_product(v, alpha, beta, &d);
        });
}

inline sps_status vector_spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const vector_plan *v = (const vector_plan *)plan;
    const sps_block *X = args->X, *Y = args->Y;
    sps_block x = packed(X, v->room), y = packed(Y, room_y(v));
    sps_spmm_args plain = *args;

    if (X->ld == 1) x = *X;
    else SPS_TRY_RETURN(spsi_cusparse_copy(X, &x));
    if (Y->ld == 1 && !args->scalars) return vector_multiply(v, args, &x, Y);
    plain.alpha = 1.0;
    plain.beta = 0.0;
    SPS_TRY_RETURN(vector_multiply(v, &plain, &x, &y));
    return spsi_cusparse_join(args, y.data, 1);
}

/* ----------------------------------------------------------------- formats */

template <class I>
__global__ void __launch_bounds__(256)
narrow_kernel(const int64_t *__restrict__ from, int64_t n, I *to)
{
    int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;

    if (i < n) to[i] = (I)from[i];
}

/* *to_p becomes a copy, in 32 bits, of n offsets, which BSR and sliced ELL
 * need; it belongs to the plan. */
inline sps_status narrow_offsets(sps_plan *plan, const int64_t *from,
                                 int64_t n, int32_t **to_p)
{
    SPS_TRY_RETURN(plan_take(plan, n, to_p));
    return run_items(plan->ctx, n, narrow_kernel<int32_t>, from, n, *to_p);
}

inline bool single_fits(const sps_problem *p, const char **why_not)
{
    if (p->k != 1) {
        *why_not = "it multiplies single vectors only";
        return false;
    }
    return vendor_fits(p, why_not);
}

} // namespace

#endif
