/* SPDX-License-Identifier: BSD-3-Clause */
/* operator.c - an operator: the plans of a csr, or the caller's function.
 *
 * There are two plans: one for blocks of the declared width, one for single
 * vectors (only there spmv kernels fit).  Wider blocks are multiplied in slices
 * of columns, so any width works.  A third, plain kernel is used to verify
 * results: it shares no code with the fast ones and needs no format of its
 * own. */
#include <string.h>

#include "core/abi.h"
#include "block/block.h"
#include "core/comm.h"
#include "core/deadline.h"
#include "operator/direct.h"
#include "operator/operator.h"
#include "operator/operator_ranks.h"
#include "core/options.h"
#include "operator/reorder.h"
#include "plan/measure.h"

/* ------------------------------------------------------------------ plans */

/* Returns the bytes of the smallest ring of a streamed matrix, which its plan
 * allocates whatever the room: four panels of 1 MB, on a large GPU of a 4096th
 * of its unused memory, up to 16 MB, or of a 32nd of a small matrix. */
static size_t smallest_ring(const sps_csr_local *A, size_t unused)
{
    const size_t all = 12 * (size_t)A->nnz + 8 * (size_t)A->nrow;
    size_t least = (size_t)4 << 20;

    if (least < unused / 1024) least = unused / 1024;
    if (least > (size_t)64 << 20) least = (size_t)64 << 20;
    return all / 8 < least ? all / 8 : least;
}

/* Returns the bytes of device memory that a plan may allocate: those that the
 * blocks of a solver, and for a matrix in host memory the smallest ring, leave;
 * 0 if there is no limit for that of a matrix on the device. */
static size_t room_of(const sps_operator *op)
{
    size_t kept, unused = 0, total = 0;

    if (!spsi_operator_may_be_far(op, op->local.nnz) ||
        op->ctx->backend->memory(op->ctx, &unused, &total) != SPS_OK)
        return 0;
    kept = spsi_operator_blocks_room(op, op->local.far);
    if (op->local.far) kept += smallest_ring(&op->local, unused);
    return unused > kept ? unused - kept : !op->local.far;
}

static sps_problem problem(const sps_operator *op, sps_opcode code, int k,
                           const sps_options *opt)
{
    const sps_context *ctx = op->ctx;

    return (sps_problem){
        .op = code, .A = op->A, .local = &op->local, .f = &op->f,
        .k = k < SPS_BLOCK_MAX ? k : SPS_BLOCK_MAX, .block = op->dtype,
        .need = (ctx->opt.reproducible ? SPS_REPRODUCIBLE : 0u) |
                (!opt || opt->full_precision ? SPS_FULL_PRECISION : 0u) |
                (op->strict ? SPS_NAN_STAYS_IN_ROW : 0u),
        .machine = &ctx->machine,
        .room = code == SPS_OP_SPMM ? room_of(op) : 0,
    };
}

sps_problem spsi_operator_problem(const sps_operator *op, int k)
{
    return problem(op, SPS_OP_SPMM, k, NULL);
}

static const sps_kernel *kernel_for_checks(const sps_context *ctx)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (kernel->gives & SPS_FOR_CHECKS) return kernel;
    return NULL;
}

/* Returns whether a kernel that was requested by name does not fit this
 * width. */
static bool unfit(const sps_operator *op, const sps_problem *p,
                  const char *name)
{
    const sps_kernel *kernel = spsi_kernel_named(op->ctx, name);
    sps_problem asked = *p;
    const char *why;

    asked.pinned = true;
    return kernel && kernel->op == SPS_OP_SPMM &&
           !spsi_kernel_fits(kernel, &asked, &why);
}

/* A kernel requested by name is used for each plan that it fits; for a plan
 * that it does not fit, one is chosen freely.  If it fits neither, the planner
 * fails.  A matrix in host memory has only one plan, since its panels are as
 * large as the matrix. */
static sps_status plan_csr(sps_operator *op, const sps_options *opt)
{
    sps_context *ctx = op->ctx;
    const sps_problem wide = problem(op, SPS_OP_SPMM, op->width, opt);
    sps_problem one = problem(op, SPS_OP_SPMM, 1, opt);
    const bool no_wide = unfit(op, &wide, opt->kernel);
    const bool no_one = unfit(op, &one, opt->kernel);
    sps_status st;

    if (op->width > 1 && no_wide && !no_one)
        spsi_note(ctx, "kernel %s multiplies single vectors only; another "
                  "kernel is used for blocks of %d columns",
                  opt->kernel, op->width);
    SPS_TRY(spsi_planner_choose(ctx, &wide, no_wide && !no_one ? "auto" :
                                opt->kernel, opt->wisdom, &op->choice.bids[0],
                                &op->block));
    op->vector = op->block;
    if (op->width == 1 || op->inner || op->local.far) return SPS_OK;
    op->vector = NULL;
    one.room = room_of(op);
    SPS_TRY(spsi_planner_choose(ctx, &one, no_one ? "auto" : opt->kernel,
                                opt->wisdom, &op->choice.bids[1], &op->vector));
fail:
    return st;
}

static sps_status plan_plain(sps_operator *op, const sps_options *opt)
{
    const sps_kernel *kernel = kernel_for_checks(op->ctx);
    const sps_problem p = problem(op, SPS_OP_SPMM, op->width, opt);

    /* Results in single precision are not verified. */
    if (!kernel || kernel == op->block->kernel || op->dtype == SPS_F32 ||
        op->inner) {
        op->plain = op->block;
        return SPS_OK;
    }
    return spsi_planner_pin(op->ctx, &p, kernel, &op->plain);
}

sps_status spsi_operator_plan(sps_operator *op, const sps_options *opt)
{
    const double before = spsi_deadline_begin(op->ctx, opt->max_seconds);
    sps_status st;

    SPS_TRY(plan_csr(op, opt));
    SPS_TRY(plan_plain(op, opt));
fail:
    spsi_deadline_end(op->ctx, before);
    return st;
}

/* ---------------------------------------------------- creation, destruction */

static sps_status check_csr(sps_context *ctx, const sps_csr *A, int width)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_abi_csr(ctx, "sps_operator_csr", A));
    SPS_REQUIRE(ctx, width >= 1 && width <= SPS_BLOCK_MAX, SPS_EINVAL,
                "width %d: an operator supports blocks of 1 to %d columns",
                width, SPS_BLOCK_MAX);
    SPS_REQUIRE(ctx, A->nrow >= 0 && A->ncol >= 0 && A->nnz >= 0 &&
                A->ncol <= INT32_MAX, SPS_EMATRIX,
                "a matrix of %lld x %lld with %lld entries is out of range",
                (long long)A->nrow, (long long)A->ncol, (long long)A->nnz);
    SPS_REQUIRE(ctx, A->rowptr && (A->nnz == 0 || (A->col && A->val)),
                SPS_EINVAL, "sps_operator_csr: an array of the matrix is "
                "NULL");
    SPS_REQUIRE(ctx, A->place == SPS_HOST || ctx->backend->place == SPS_CUDA,
                SPS_EINVAL, "a matrix on the GPU needs a context on the GPU");
fail:
    return st;
}

/* Copies a name: the plan of sps_operator_sample is made later, when the
 * options may be gone. */
static sps_status keep_name(sps_context *ctx, const char *name, char **copy_p)
{
    if (!name) return SPS_OK;
    *copy_p = spsi_strdup(ctx, name);
    return *copy_p ? SPS_OK : SPS_ENOMEM;
}

/* The hash of the matrix is computed for wisdom only. */
static sps_status measure_features(sps_operator *op, const sps_options *o)
{
    const bool wisdom = o->wisdom || (o->kernel &&
                                      !strcmp(o->kernel, "measure"));
    sps_status st;

    SPS_TRY(op->ctx->backend->csr_features
                ? spsi_features_there(op->ctx, &op->local, &op->f)
                : spsi_features_measure(op->ctx, op->A, &op->f));
    if (wisdom) {
        SPS_TRY(spsi_operator_fetch(op));
        op->f.hash = spsi_features_hash(op->ctx, op->A);
    }
fail:
    return st;
}

sps_status spsi_operator_new(sps_context *ctx, sps_operator **op_p)
{
    sps_operator *op = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &op));
    SPS_TRY(SPS_NEW(ctx, 1, &op->cache));
    op->ctx = ctx;
    op->cache->norm = -1.0;
    ctx->live++;
    *op_p = op;
    return SPS_OK;

fail:
    spsi_free(ctx, op);
    return st;
}

static sps_status create(sps_context *ctx, sps_csr *A, int width,
                         sps_dtype dtype, const sps_options *opt, bool inner,
                         int64_t kept, sps_operator **op_p)
{
    sps_operator *op = NULL;
    sps_options o;
    sps_status st;

    SPS_REQUIRE(ctx, ctx && op_p, SPS_EINVAL, "sps_operator_csr: NULL "
                "argument");
    SPS_TRY(check_csr(ctx, A, width));
    SPS_TRY(spsi_options_take(ctx, opt, &o));
    SPS_TRY(spsi_operator_new(ctx, &op));
    op->n = A->nrow;
    op->ncol = A->ncol;
    op->width = width;
    op->dtype = dtype;
    op->strict = o.strict_nonfinite;
    op->inner = inner;
    op->kept = kept;
    op->props = A->props & (SPS_SYMMETRIC | SPS_SPD | SPS_INTERLEAVED);
    SPS_TRY(keep_name(ctx, o.kernel, &op->choice.kernel));
    SPS_TRY(keep_name(ctx, o.wisdom, &op->choice.wisdom));
    SPS_TRY(spsi_operator_take_csr(op, A));
    SPS_TRY(measure_features(op, &o));
    SPS_TRY(spsi_operator_plan(op, &o));
    SPS_TRY(spsi_operator_reorder(op, &o));
    *op_p = op;
    return SPS_OK;

fail:
    sps_operator_destroy(&op);
    return st;
}

sps_status spsi_operator_create(sps_context *ctx, sps_csr *A, int width,
                                sps_dtype dtype, const sps_options *opt,
                                bool inner, sps_operator **op_p)
{
    return create(ctx, A, width, dtype, opt, inner, 0, op_p);
}

sps_status spsi_operator_csr(sps_context *ctx, sps_csr *A, int width,
                             const sps_options *opt, int64_t kept,
                             sps_operator **op_p)
{
    if (ctx && op_p && spsi_abi_csr_rows(A))
        return spsi_ranks_create(ctx, A, width, SPS_F64, opt, false, op_p);
    return create(ctx, A, width, SPS_F64, opt, false, kept, op_p);
}

static sps_status make_user(sps_context *ctx, const char *call, int64_t nrow,
                            int64_t ncol, sps_apply_fn apply,
                            sps_apply_fn transposed, void *data,
                            unsigned props, sps_operator **op_p)
{
    sps_operator *op = NULL;
    sps_status st;

    SPS_REQUIRE(ctx, ctx && op_p && apply, SPS_EINVAL, "%s: NULL argument",
                call);
    SPS_REQUIRE(ctx, nrow >= 0 && ncol >= 0, SPS_EINVAL, "%s: the number of "
                "rows and of columns must not be negative, as %lld is", call,
                (long long)(nrow < 0 ? nrow : ncol));
    SPS_REQUIRE(ctx, !(props & ~(unsigned)(SPS_SYMMETRIC | SPS_SPD)),
                SPS_EINVAL, "%s: props may hold SPS_SYMMETRIC and SPS_SPD only",
                call);
    SPS_TRY(spsi_operator_new(ctx, &op));
    op->n = nrow;
    op->ncol = ncol;
    op->width = SPS_BLOCK_MAX;
    op->props = props;
    op->callback.apply = apply;
    op->callback.transposed = transposed;
    op->callback.data = data;
    *op_p = op;
    return SPS_OK;

fail:
    return st;
}

sps_status sps_operator_user(sps_context *ctx, int64_t n, sps_apply_fn apply,
                             void *data, unsigned props, sps_operator **op_p)
{
    return make_user(ctx, "sps_operator_user", n, n, apply, NULL, data, props,
                     op_p);
}

sps_status sps_operator_user_pair(sps_context *ctx, int64_t nrow, int64_t ncol,
                                  sps_apply_fn apply, sps_apply_fn transposed,
                                  void *data, sps_operator **op_p)
{
    if (!transposed)
        return spsi_fail(ctx, SPS_EINVAL, "sps_operator_user_pair: NULL "
                         "argument");
    return make_user(ctx, "sps_operator_user_pair", nrow, ncol, apply,
                     transposed, data, 0, op_p);
}

void sps_operator_destroy(sps_operator **op_p)
{
    sps_operator *op = op_p ? *op_p : NULL;
    sps_context *ctx;

    if (!op) return;
    ctx = op->ctx;
    spsi_operator_reorder_drop(op);
    if (op->plain != op->block) spsi_plan_destroy(&op->plain);
    if (op->vector != op->block) spsi_plan_destroy(&op->vector);
    spsi_plan_destroy(&op->block);
    spsi_plan_destroy(&op->cache->sddmm);
    for (int i = 0; i < 2; i++) spsi_bids_clear(ctx, &op->choice.bids[i]);
    spsi_bids_clear(ctx, &op->cache->sddmm_bids);
    spsi_direct_destroy(&op->cache->direct);
    spsi_operator_drop_csr(op);
    sps_csr_destroy(ctx, &op->computed);
    spsi_free(ctx, op->diagonal);
    spsi_ranks_destroy(ctx, &op->ranks);
    spsi_free(ctx, op->cache);
    spsi_free(ctx, op->choice.kernel);
    spsi_free(ctx, op->choice.wisdom);
    spsi_free(ctx, op);
    ctx->live--;
    *op_p = NULL;
}

/* ------------------------------------------------------------------ apply */

/* Returns whether two blocks with the same ld interleave without a common
 * column: `then`, which begins `bytes` after `first`, has its columns after
 * those of `first` in each row. */
static bool side_by_side(const sps_block *first, const sps_block *then,
                         uintptr_t bytes)
{
    const uintptr_t row = (uintptr_t)first->ld * spsi_dtype_size(first->dtype);
    const uintptr_t begin = bytes % row / spsi_dtype_size(first->dtype);

    return first->ld == then->ld && first->dtype == then->dtype &&
           bytes % spsi_dtype_size(first->dtype) == 0 &&
           begin >= (uintptr_t)first->k &&
           begin + (uintptr_t)then->k <= (uintptr_t)first->ld;
}

bool spsi_blocks_overlap(const sps_block *X, const sps_block *Y)
{
    const bool swap = (uintptr_t)X->data > (uintptr_t)Y->data;
    const sps_block *first = swap ? Y : X, *then = swap ? X : Y;
    const uintptr_t bytes = (uintptr_t)then->data - (uintptr_t)first->data;

    if (X->n == 0 || Y->n == 0 || X->k == 0 || Y->k == 0) return false;
    return bytes < (uintptr_t)((first->n - 1) * first->ld + first->k) *
                       spsi_dtype_size(first->dtype) &&
           !side_by_side(first, then, bytes);
}

static sps_status check_values(const sps_operator *op)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(op->ctx, !op->incomplete, SPS_EINVAL, "the last call of "
                "sps_operator_set_values failed: call it again before a "
                "product");
fail:
    return st;
}

sps_status spsi_operator_check(const sps_operator *op, const sps_block *X,
                               const sps_block *Y)
{
    sps_context *ctx = op->ctx;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, !ctx->dead, SPS_EDEVICE, "the GPU failed before; this "
                "context can only be destroyed");
    SPS_TRY(check_values(op));
    SPS_REQUIRE(ctx, X->ctx == ctx && Y->ctx == ctx, SPS_EINVAL,
                "operator and blocks belong to different contexts");
    SPS_REQUIRE(ctx, X->n == op->ncol && Y->n == op->n && X->k == Y->k,
                SPS_ESHAPE, "shapes do not match: the operator is %lld x "
                "%lld, X is %lld x %d, Y is %lld x %d",
                (long long)op->n, (long long)op->ncol, (long long)X->n, X->k,
                (long long)Y->n, Y->k);
    SPS_REQUIRE(ctx, X->dtype == op->dtype && Y->dtype == op->dtype,
                SPS_EINVAL, "this operator needs blocks of %s",
                op->dtype == SPS_F64 ? "doubles" : "floats");
    SPS_REQUIRE(ctx, !spsi_blocks_overlap(X, Y), SPS_EINVAL, "X and Y share "
                "memory: a product reads X while it writes Y, so views of one "
                "block must be of different columns");
fail:
    return st;
}

static sps_status call_user(const sps_operator *op, double alpha,
                            const sps_block *X, double beta, sps_block *Y)
{
    const sps_operator_callback *call = &op->callback;
    const int code = call->apply(alpha, (const double *)X->data, X->ld, beta,
                                 (double *)Y->data, Y->ld, op->n, X->k,
                                 op->ctx->stream, call->data);

    if (code == 0) return SPS_OK;
    if (op->block) return (sps_status)code;          /* operator_rows.c */
    return spsi_comm_defer(op->ctx, spsi_fail(op->ctx, SPS_EUSER, "the "
                                              "operator's callback returned %d",
                                              code));
}

/* Multiplies in slices of at most plan->k columns; a last single column uses
 * `vector`. */
static sps_status multiply(const sps_plan *plan, const sps_plan *vector,
                           double alpha, const sps_block *X, double beta,
                           sps_block *Y)
{
    sps_status st = SPS_OK;

    for (int j = 0, k; j < X->k; j += k) {
        sps_block x, y;
        const sps_plan *with;

        k = X->k - j < plan->k ? X->k - j : plan->k;
        with = k == 1 ? vector : plan;
        spsi_block_view(X, j, k, &x);
        spsi_block_view(Y, j, k, &y);
        SPS_TRY(with->kernel->spmm(with, &(sps_spmm_args){
            .alpha = alpha, .X = &x, .beta = beta, .Y = &y }));
    }
fail:
    return st;
}

sps_status sps_operator_apply(const sps_operator *op, double alpha,
                              const sps_block *X, double beta, sps_block *Y)
{
    sps_status st = SPS_OK;

    if (!op || !X || !Y)
        return spsi_fail(op ? op->ctx : NULL, SPS_EINVAL,
                         "sps_operator_apply: NULL argument");
    if (op->ranks) return spsi_ranks_apply(op, false, alpha, X, beta, Y);
    SPS_TRY(spsi_operator_check(op, X, Y));
    if (op->n == 0 || X->k == 0) return SPS_OK;
    if (op->callback.apply) return call_user(op, alpha, X, beta, Y);
    return multiply(op->block, op->vector, alpha, X, beta, Y);

fail:
    return st;
}

sps_status spsi_operator_apply_single(const sps_operator *op,
                                      const sps_block *X, sps_block *Y,
                                      bool *served)
{
    const sps_plan *plan = op->block;
    const sps_spmm_args args = { .alpha = 1, .X = X, .Y = Y };

    if (op->ranks) return spsi_ranks_single(op, X, Y, served);
    *served = plan && !op->callback.apply &&
              op->dtype == SPS_F64 &&
              op->n > 0 && X->k > 1 && X->k <= plan->k &&
              plan->kernel->mixes && plan->kernel->mixes(plan, &args);
    return *served ? plan->kernel->spmm(plan, &args) : SPS_OK;
}

sps_status spsi_operator_apply_plain(const sps_operator *op, double alpha,
                                     const sps_block *X, double beta,
                                     sps_block *Y)
{
    sps_status st;

    if (op->ranks) return spsi_ranks_apply(op, true, alpha, X, beta, Y);
    if (op->callback.apply || op->n == 0 || X->k == 0)
        return sps_operator_apply(op, alpha, X, beta, Y);
    SPS_TRY(check_values(op));
    return multiply(op->plain, op->plain, alpha, X, beta, Y);

fail:
    return st;
}

/* ----------------------------------------------------------------- sample */

static sps_status check_sample(const sps_operator *op, const sps_block *U,
                               const sps_block *V, const double *val)
{
    sps_context *ctx = op->ctx;
    sps_status st = SPS_OK;

    SPS_REQUIRE(ctx, !op->callback.apply, SPS_EUNFIT,
                "a callback has no pattern to sample on");
    SPS_REQUIRE(ctx, !op->ranks, SPS_EUNFIT, "sampled products with a matrix "
                "over several processes are not supported");
    SPS_REQUIRE(ctx, !op->caller.order, SPS_EUNFIT,
                "the rows of this matrix were "
                "sorted into a copy, so samples cannot be returned in the "
                "caller's order: call sps_csr_check first");
    SPS_REQUIRE(ctx, U->n == op->n && V->n == op->ncol && U->k == V->k &&
                U->k >= 1, SPS_ESHAPE, "sps_operator_sample: U must have %lld "
                "rows and V %lld, with equal numbers of columns; U is %lld x "
                "%d, V is %lld x %d",
                (long long)op->n, (long long)op->ncol, (long long)U->n, U->k,
                (long long)V->n, V->k);
    SPS_REQUIRE(ctx, U->dtype == SPS_F64 && V->dtype == SPS_F64, SPS_EINVAL,
                "sampling needs blocks of doubles");
    SPS_REQUIRE(ctx, val || op->local.nnz == 0, SPS_EINVAL,
                "sps_operator_sample: val is NULL");
fail:
    return st;
}

/* Sampling in slices of WIDE columns is nearly as fast as in a single pass. */
enum { WIDE = 128 };

/* The plan is made at the first call and replaced when a wider one is
 * needed. */
static sps_status plan_sddmm(const sps_operator *op, int k)
{
    sps_operator_cache *cache = op->cache;
    const int width = k > op->width ? k : op->width;
    sps_problem p;
    sps_plan *plan = NULL;
    sps_bids bids;
    sps_status st;

    if (cache->sddmm && cache->sddmm->k >= (k < WIDE ? k : WIDE)) return SPS_OK;
    p = problem(op, SPS_OP_SDDMM, width, NULL);
    SPS_TRY(spsi_planner_choose(op->ctx, &p, op->choice.kernel,
                                op->choice.wisdom, &bids, &plan));
    spsi_plan_destroy(&cache->sddmm);
    spsi_bids_clear(op->ctx, &cache->sddmm_bids);
    cache->sddmm = plan;
    cache->sddmm_bids = bids;
fail:
    return st;
}

sps_status sps_operator_sample(const sps_operator *op, double alpha,
                               const sps_block *U, const sps_block *V,
                               bool multiply_by_A, double beta, double *val)
{
    const sps_plan *sddmm;
    sps_status st = SPS_OK;

    if (!op || !U || !V)
        return spsi_fail(op ? op->ctx : NULL, SPS_EINVAL,
                         "sps_operator_sample: NULL argument");
    SPS_TRY(check_sample(op, U, V, val));
    if (op->local.nnz == 0) return SPS_OK;
    SPS_TRY(plan_sddmm(op, U->k));
    sddmm = op->cache->sddmm;
    /* A wide inner dimension is a sum over slices of columns. */
    for (int j = 0, k; j < U->k; j += k) {
        sps_block u, v;

        k = U->k - j < sddmm->k ? U->k - j : sddmm->k;
        spsi_block_view(U, j, k, &u);
        spsi_block_view(V, j, k, &v);
        SPS_TRY(sddmm->kernel->sddmm(sddmm, &(sps_sddmm_args){
            alpha, &u, &v, multiply_by_A, j == 0 ? beta : 1.0, val }));
    }
fail:
    return st;
}
