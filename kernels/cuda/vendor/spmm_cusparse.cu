/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_cusparse.cu - the SpMM of cuSPARSE as one of the kernels to choose from.
 *
 * If choices are measured, all CSR algorithms are set up and timed on blocks of
 * the plan's width and the fastest is kept; its name is in the plan's detail.
 * Without measuring it is CSR_ALG2, meant for row-major blocks.  None is
 * declared reproducible here: CSR_ALG3, documented as such, was observed not to
 * be (12.6.3, a matrix with one full row, 3 columns).
 *
 * Column-major blocks, the other layout that cuSPARSE supports, are timed too,
 * and the best time is reported in the plan's `aside`, for comparison only:
 * using them would need a transposition of X and Y, which costs more than it
 * gains.
 *
 * Blocks of the plan's width and default ld use the engine (descriptor,
 * algorithm and buffer) that was preprocessed for them, all other blocks use
 * one that was not.  For a strided single column cuSPARSE's result is wrong
 * (12.6.3 takes the column for a contiguous vector), so the column is copied to
 * a contiguous vector first.
 *
 * Scalars in device memory are read there by cuSPARSE.  With alpha = 0
 * CSR_ALG3, and all algorithms on a single column, let a NaN pass (12.6.3);
 * therefore the engine without preprocessing, with CSR_ALG2, replaces ALG3
 * then, and the product with a single column is combined with Y by a kernel of
 * ours.  All of it can be captured in CUDA graphs. */
#include "cuda/vendor/cusparse_spmm.cuh"

#include <stdio.h>

namespace {

constexpr choice choices[] = {
    {CUSPARSE_SPMM_CSR_ALG2, "CSR_ALG2"},
    {CUSPARSE_SPMM_CSR_ALG3, "CSR_ALG3"},
    {CUSPARSE_SPMM_CSR_ALG1, "CSR_ALG1"},
    {CUSPARSE_SPMM_ALG_DEFAULT, "ALG_DEFAULT"},
};
constexpr int choice_count = sizeof choices / sizeof *choices;

/* Bytes of plan->room in which with_scalars keeps two floats. */
constexpr size_t scalar_room = 256;

struct vendor_plan {
    sps_plan super;
    engine tuned, other;
    int64_t ld;              /* ld of the blocks for which `tuned` was
                                preprocessed */
    char *room;              /* memory for two floats, a column of X and a
                                column of Y */
};

sps_status engine_matrix(sps_context *ctx, const sps_csr_local *A, choice use,
                         engine *e)
{
    e->use = use;
    e->type = A->dtype;
    return describe_csr(ctx, A, A->val, A->dtype, &e->A);
}

/* Sets up the first `count` algorithms for dense blocks like d and keeps the
 * fastest; *best becomes its milliseconds. kept->A remains NULL if none
 * works. */
sps_status pick(sps_plan *plan, const dense *d, int count, engine *kept,
                float *best)
{
    sps_context *ctx = plan->ctx;

    *best = 1e30f;
    for (int i = 0; i < count; i++) {
        engine e = {};
        float ms = 0;
        sps_status st = engine_matrix(ctx, plan->A, choices[i], &e);

        if (st == SPS_OK) st = engine_tune(plan, d, &e);
        if (st == SPS_OK && count > 1) st = engine_time(ctx, &e, d, *best, &ms);
        if (st == SPS_OK && ms < *best) {
            engine old = *kept;

            *kept = e;
            e = old;
            *best = ms;
        }
        engine_clear(plan, &e);
        /* An algorithm that fails (for lack of memory, say) is skipped. */
        if (st != SPS_OK && (count == 1 || ctx->dead)) return st;
    }
    return SPS_OK;
}

/* Memory for planning: X followed by Y, with room for row-major as well as
 * column-major blocks; only measurements access it. */
struct field {
    operand X, Y;
    int64_t ldx, ldy;        /* leading dimensions of X and Y when they are used
                                as column-major blocks */
};

int64_t whole_lines(int64_t n) { return (n + 31) / 32 * 32; }

sps_status field_open(holder *work, const sps_problem *p, int64_t ld,
                      field *f)
{
    const sps_csr_local *A = p->local;
    const int64_t each = (int64_t)spsi_dtype_size(p->block) * ld;
    char *memory;

    f->ldx = whole_lines(A->ncol);
    f->ldy = whole_lines(A->nrow);
    SPS_TRY_RETURN(work->take_zeros(
        p->timed ? (f->ldx + f->ldy) * each : 256, &memory));
    f->X = operand{A->ncol, memory, ld};
    f->Y = operand{A->nrow, memory + (p->timed ? f->ldx * each : 0), ld};
    return SPS_OK;
}

/* *seconds becomes the time of the best algorithm on column-major blocks, or 0
 * if none works. */
sps_status time_columns(sps_plan *plan, const field *f, double *seconds)
{
    operand X = f->X, Y = f->Y;
    engine kept = {};
    float ms = 0;
    dense d;
    sps_status st;

    X.ld = f->ldx;
    Y.ld = f->ldy;
    SPS_TRY_RETURN(describe_dense(plan->ctx, plan->block, plan->k, X, Y,
                                  CUSPARSE_ORDER_COL, &d));
    st = pick(plan, &d, choice_count, &kept, &ms);
    if (kept.A) *seconds = 1e-3 * ms;
    engine_clear(plan, &kept);
    return st;
}

sps_status prepare(const sps_problem *p, vendor_plan *v, const field *f)
{
    sps_plan *super = &v->super;
    sps_context *ctx = super->ctx;
    float ms;
    dense d;

    SPS_TRY_RETURN(describe_dense(ctx, p->block, p->k, f->X, f->Y,
                                  CUSPARSE_ORDER_ROW, &d));
    SPS_TRY_RETURN(pick(super, &d, p->timed ? choice_count : 1, &v->tuned,
                        &ms));
    if (v->tuned.A == NULL)
        return spsi_fail(ctx, SPS_EDEVICE, "cuSPARSE: none of its SpMM "
                         "algorithms works for this matrix; take another "
                         "kernel");
    SPS_TRY_RETURN(engine_matrix(ctx, p->local, choices[0], &v->other));
    SPS_TRY_RETURN(engine_any(super, f->X, f->Y, &v->other));
    return p->timed ? time_columns(super, f, &super->aside) : SPS_OK;
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    cusparseHandle_t handle;
    sps_context *ctx = super->ctx;
    vendor_plan *v = (vendor_plan *)super;
    holder work(ctx);
    field f;

    if (p->local->nnz == 0) return SPS_OK;
    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_sparse(ctx, &handle));
    v->ld = spsi_block_ld(p->k);
    SPS_TRY_RETURN(field_open(&work, p, v->ld, &f));
    SPS_TRY_RETURN(prepare(p, v, &f));
    SPS_TRY_RETURN(plan_take(
        super, (int64_t)scalar_room + (p->local->nrow + p->local->ncol) *
                                          (int64_t)spsi_dtype_size(p->block),
        &v->room));
    snprintf(v->super.detail, sizeof v->super.detail, "%s, row-major",
             v->tuned.use.name);
    return SPS_OK;
}

__global__ void __launch_bounds__(32) narrow_scalars(const double *two,
                                                     float *narrow)
{
    if (threadIdx.x < 2) narrow[threadIdx.x] = (float)two[threadIdx.x];
}

/* Calls call(alpha, beta) with pointers to numbers of the blocks' type, in host
 * memory, or in device memory if the scalars of args are there; the latter are
 * read when the kernel runs.  The handle is in host pointer mode except during
 * the call. */
template <class F>
sps_status with_scalars(sps_context *ctx, const sps_spmm_args *args,
                        float *room, const F &call)
{
    cusparseHandle_t handle = spsi_cuda_state(ctx)->sparse;
    bool narrow = args->Y->dtype == SPS_F32;
    const double *two = args->scalars;
    sps_status st;

    if (!two) return with_host_scalars(args, call);
    if (narrow)
        SPS_TRY_RETURN(run_kernel(ctx, 1, 32, narrow_scalars, two, room));
    SPS_CUSPARSE(ctx, cusparseSetPointerMode(handle,
                                             CUSPARSE_POINTER_MODE_DEVICE));
    st = narrow ? call((const void *)room, (const void *)(room + 1))
                : call((const void *)two, (const void *)(two + 1));
    cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST);
    return st;
}

sps_status multiply(const vendor_plan *v, const engine *e,
                    const sps_spmm_args *args, const sps_block *x,
                    const sps_block *y)
{
    sps_context *ctx = v->super.ctx;
    dense d;

    SPS_TRY_RETURN(describe_dense(ctx, v->super.block, y->k,
                                  operand{x->n, x->data, x->ld},
                                  operand{y->n, y->data, y->ld},
                                  CUSPARSE_ORDER_ROW, &d));
    return with_scalars(
        ctx, args, (float *)v->room,
        [&](const void *alpha, const void *beta) -> sps_status {
            return product(ctx, e, alpha, beta, &d);
        });
}

/* Multiplies a single column.  X is first copied to a contiguous vector if it
 * is strided; the product is combined with Y by a kernel of this library if Y
 * is strided or the scalars are in device memory. */
sps_status multiply_column(const vendor_plan *v, const engine *e,
                           const sps_spmm_args *args)
{
    char *column = v->room + scalar_room;
    sps_block x = packed(args->X, column);
    sps_block y = packed(args->Y, column + (size_t)v->super.A->ncol *
                                               spsi_dtype_size(v->super.block));
    sps_spmm_args plain = *args;

    if (args->X->ld == 1) x = *args->X;
    else SPS_TRY_RETURN(spsi_cusparse_copy(args->X, &x));
    if (args->Y->ld == 1 && !args->scalars)
        return multiply(v, e, args, &x, args->Y);
    plain.alpha = 1.0;
    plain.beta = 0.0;
    plain.scalars = NULL;
    SPS_TRY_RETURN(multiply(v, e, &plain, &x, &y));
    return spsi_cusparse_join(args, y.data, 1);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const vendor_plan *v = (const vendor_plan *)plan;
    const sps_block *X = args->X, *Y = args->Y;
    bool tuned = Y->k == plan->k && X->ld == v->ld && Y->ld == v->ld;

    if (Y->k == 1)
        return multiply_column(v, plan->k == 1 ? &v->tuned : &v->other, args);
    if (args->scalars && v->tuned.use.alg == CUSPARSE_SPMM_CSR_ALG3)
        tuned = false;
    return multiply(v, tuned ? &v->tuned : &v->other, args, X, Y);
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

    engine_clear(plan, &v->tuned);
    engine_clear(plan, &v->other);
}

/* Predicted seconds.  On an H200 about a fifth of the speed that the bytes
 * allow was measured. */
double cost(const sps_problem *p)
{
    if (p->k == 1) return seconds(p, 0.6);
    return predicted(p, {0.64, 0.24, 9e-12, 0.06, 1.2, 0, 0});
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_cusparse) = {
    .name = "spmm.cusparse",
    .op = SPS_OP_SPMM,
    .gives = SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW | SPS_VENDOR |
             SPS_SINGLE_BLOCKS,
    .size = sizeof(vendor_plan),
    .fits = vendor_fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
    .refresh = refresh,
    .destroy = destroy,
};
