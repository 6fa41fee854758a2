/* SPDX-License-Identifier: BSD-3-Clause */
/* check_far.c - a matrix that does not fit into GPU memory beside the blocks
 * stays in host memory: when this happens, what its arrays are, new values, and
 * failing allocations.
 *
 * A GPU is played by a backend that calls the host's functions, with `card`
 * bytes free; its upload and download must not be called for a matrix that is
 * far. */
#include <check.h>
#include <stdio.h>

#include "operator/operator.h"
#include "tests/problems/zoo.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static sps_context *ctx;
static const sps_backend *real;
static sps_backend played;

static struct {
    size_t card, shared;       /* bytes free; bytes that are shared now */
    int shares, allowed, copies, uploads;
} seen;

static sps_status play_memory(sps_context *c, size_t *free_p, size_t *total_p)
{
    (void)c;
    *free_p = *total_p = seen.card;
    return SPS_OK;
}

static sps_status play_share(sps_context *c, size_t bytes, void **p_p)
{
    sps_status st;

    if (seen.shares++ >= seen.allowed)
        return spsi_fail(c, SPS_ENOMEM, "no %zu bytes to share", bytes);
    st = spsi_new(c, bytes, p_p);
    seen.shared += st == SPS_OK ? bytes : 0;
    return st;
}

static void play_unshare(sps_context *c, void *p, size_t bytes)
{
    if (p) seen.shared -= bytes;
    spsi_free(c, p);
}

/* Values of a caller that are on the GPU come down by this one. */
static sps_status play_download(sps_context *c, void *to, const void *from,
                                size_t bytes)
{
    (void)c;
    seen.copies++;
    memcpy(to, from, bytes);
    return SPS_OK;
}

static sps_status play_upload(sps_context *c, void *to, const void *from,
                              size_t bytes)
{
    (void)c;
    seen.uploads++;
    memcpy(to, from, bytes);
    return SPS_OK;
}

static void open_context(void)
{
    ctx = fixture_open_with(SPS_HOST, 2, true);
    real = ctx->backend;
    played = *real;
    played.place = SPS_CUDA;
    played.memory = play_memory;
    played.share = play_share;
    played.unshare = play_unshare;
    played.upload = play_upload;
    played.download = play_download;
    memset(&seen, 0, sizeof seen);
    seen.allowed = 100;
    ctx->backend = &played;
    ctx->opt.max_device_bytes = 1 << 20;   /* so that memory is asked for */
}

static void close_context(void)
{
    ctx->backend = real;
    ck_assert_uint_eq(seen.shared, 0);
    fixture_close(&ctx);
}

/* The operator of A without plans, for blocks of k columns. */
static sps_status take(sps_csr *A, bool inner, sps_operator **op_p)
{
    sps_operator *op = NULL;
    sps_status st;

    OK(ctx, spsi_operator_new(ctx, &op));
    op->n = A->nrow;
    op->ncol = A->ncol;
    op->width = 4;
    op->inner = inner;
    st = spsi_operator_take_csr(op, A);
    if (st == SPS_OK) *op_p = op;
    else sps_operator_destroy(&op);
    return st;
}

static sps_csr *grid(void)
{
    return zoo_matrix(zoo_find("grid7"), 2000, 7, ZOO_RANDOM, SPS_F64);
}

/* Bytes of the arrays and of so many columns, and 4 MB. */
static size_t beside(const sps_csr *A, int64_t columns)
{
    return (size_t)A->nnz * 12 + 8 * (size_t)(A->nrow + 1) +
           (size_t)(A->nrow * columns) * sizeof(double) + ((size_t)4 << 20);
}

/* Eight blocks. */
static size_t needed(const sps_csr *A) { return beside(A, 32); }

static void same_arrays(const sps_operator *op, const sps_csr *A)
{
    const sps_csr_local *l = &op->local;

    ck_assert(!memcmp(l->rowptr, A->rowptr, (size_t)(A->nrow + 1) * 8));
    ck_assert(!memcmp(l->col, A->col, (size_t)A->nnz * sizeof *A->col));
    ck_assert(!memcmp(l->val, A->val, (size_t)A->nnz * sizeof(double)));
    for (int64_t i = 0; i <= A->nrow; i++)
        ck_assert_int_eq(l->rowptr32[i], A->rowptr[i]);
}

START_TEST(one_byte_less_than_blocks_need_makes_a_matrix_far)
{
    sps_csr *A = grid();
    sps_operator *op = NULL;

    for (int less = 0; less < 2; less++) {
        seen.card = needed(A) - (size_t)less;
        seen.uploads = 0;
        OK(ctx, take(A, false, &op));
        ck_assert_int_eq(op->local.far, less);
        ck_assert_int_eq(seen.shares, less ? 4 : 0);
        ck_assert_int_eq(seen.uploads, less ? 0 : 3);
        if (less) same_arrays(op, A);
        ck_assert(fixture_noted(ctx, "stays in host memory") == less);
        sps_operator_destroy(&op);
    }
    seen.card = 0;
    OK(ctx, take(A, true, &op));             /* one of the library's own */
    ck_assert(!op->local.far);
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

/* Returns how many matrices have stayed in host memory. */
static int stayed(void)
{
    const char *note;
    int count = 0;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        count += strstr(note, "stays in host memory") != NULL;
    return count;
}

/* What the solver that is named needs with B and the best iterate in host
 * memory.  The operator is not completed: there is no such kernel. */
START_TEST(the_blocks_of_a_solver_that_is_named_are_counted)
{
    static const struct {
        const char *solver, *precond;
        int k, columns;
    } of[] = {
        { "block_cg", "jacobi", 16, 97 }, { "cg", "none", 1, 6 },
        { "block_cg", "auto", 16, 126 },  { "cg", "chebyshev", 1, 12 },
        { "block_cg", "ic0", 4, 32 },     { "gmres", "jacobi", 8, 64 },
        { "auto", "jacobi", 2, 16 },
    };
    sps_csr *A = grid();

    for (int i = 0; i < 7; i++)
        for (int less = 0; less < 2; less++) {
            const int before = stayed();
            sps_operator *op = NULL;
            sps_options o;

            sps_options_default(&o);
            o.solver = of[i].solver;
            o.precond = of[i].precond;
            o.kernel = "none of them";
            seen.card = beside(A, of[i].columns) - (size_t)less;
            ck_assert_int_ne(sps_operator_csr(ctx, A, of[i].k, &o, &op),
                             SPS_OK);
            ck_assert_msg(stayed() == before + less, "%s, %s", o.solver,
                          o.precond);
            ck_assert_ptr_null(op);
        }
    zoo_free(&A);
}
END_TEST

START_TEST(new_values_go_to_the_arrays_in_host_memory)
{
    sps_csr *A = grid(), *B = grid();
    sps_operator *op = NULL;
    double *v = B->val;

    for (int64_t e = 0; e < B->nnz; e++) v[e] = (double)e + 0.25;
    OK(ctx, take(A, false, &op));
    ck_assert(op->local.far);
    OK(ctx, sps_operator_set_values(op, B->val, SPS_HOST));
    same_arrays(op, B);
    for (int64_t e = 0; e < B->nnz; e++) v[e] = -(double)e;
    OK(ctx, sps_operator_set_values(op, B->val, SPS_CUDA));
    ck_assert_int_eq(seen.copies, 1);
    same_arrays(op, B);
    OK(ctx, spsi_operator_fetch(op));
    ck_assert(!memcmp(op->A->val, B->val, (size_t)B->nnz * sizeof *v));
    ck_assert_int_eq(seen.copies, 1);
    ck_assert_int_eq(seen.uploads, 0);
    sps_operator_destroy(&op);
    zoo_free(&A);
    zoo_free(&B);
}
END_TEST

START_TEST(memory_that_cannot_be_shared_is_an_error_with_bytes)
{
    sps_csr *A = grid();
    sps_operator *op = NULL;

    for (seen.allowed = 0; seen.allowed < 4; seen.allowed++) {
        seen.shares = 0;
        ck_assert_int_eq(take(A, false, &op), SPS_ENOMEM);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "bytes"));
        ck_assert_uint_eq(seen.shared, 0);
    }
    seen.shares = 0;
    OK(ctx, take(A, false, &op));
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

START_TEST(kernels_that_do_not_stream_do_not_bid)
{
    sps_csr *A = grid();
    sps_operator *op = NULL;
    sps_features f = { 0 };
    sps_bids bids;
    sps_plan *plan = NULL;
    sps_problem p;

    OK(ctx, take(A, false, &op));
    OK(ctx, spsi_features_measure(ctx, A, &f));
    p = (sps_problem){ .op = SPS_OP_SPMM, .A = A, .local = &op->local, .f = &f,
                       .k = 4, .machine = &ctx->machine };
    ctx->backend = real;                     /* whose kernels these are */
    ck_assert_int_eq(spsi_planner_choose(ctx, &p, "auto", NULL, &bids, &plan),
                     SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "does not fit into GPU memory"));
    OK(ctx, spsi_planner_choose(ctx, &p, "spmm.ref", NULL, &bids, &plan));
    ck_assert_str_eq(plan->kernel->name, "spmm.ref");
    spsi_plan_destroy(&plan);
    spsi_bids_clear(ctx, &bids);
    ctx->backend = &played;
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

/* Of a matrix on the GPU a plan may take `room` bytes, if that is not 0. */
START_TEST(a_plan_that_leaves_blocks_no_room_is_not_chosen)
{
    sps_csr *A = grid();
    const sps_csr_local there = { .nrow = A->nrow, .ncol = A->ncol,
                                  .nnz = A->nnz, .rowptr = A->rowptr,
                                  .col = A->col, .val = A->val,
                                  .dtype = A->dtype };
    sps_features f = { 0 };
    sps_problem p = { .op = SPS_OP_SPMM, .A = A, .local = &there, .f = &f,
                      .k = 4, .machine = &ctx->machine };
    sps_plan *plan = NULL;
    int refused = 0;

    OK(ctx, spsi_features_measure(ctx, A, &f));
    ctx->backend = real;
    for (int i = 0; spsi_registry_kernel(ctx, i); i++) {
        sps_bid bid = { .kernel = spsi_registry_kernel(ctx, i) };
        const char *why;
        size_t bytes;

        if (bid.kernel->op != p.op || !spsi_kernel_fits(bid.kernel, &p, &why))
            continue;
        p.room = 0;
        OK(ctx, spsi_planner_take(ctx, &p, &bid, &plan));
        bytes = plan->bytes;
        spsi_plan_destroy(&plan);
        if (bytes <= 1) continue;
        p.room = bytes - 1;
        ck_assert_int_eq(spsi_planner_take(ctx, &p, &bid, &plan), SPS_EDEVMEM);
        ck_assert_ptr_null(plan);
        p.room = bytes;
        OK(ctx, spsi_planner_take(ctx, &p, &bid, &plan));
        spsi_plan_destroy(&plan);
        refused++;
    }
    ck_assert_int_gt(refused, 0);
    ctx->backend = &played;
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(one_byte_less_than_blocks_need_makes_a_matrix_far),
    RUNNER_TEST(the_blocks_of_a_solver_that_is_named_are_counted),
    RUNNER_TEST(a_plan_that_leaves_blocks_no_room_is_not_chosen),
    RUNNER_TEST(new_values_go_to_the_arrays_in_host_memory),
    RUNNER_TEST(memory_that_cannot_be_shared_is_an_error_with_bytes),
    RUNNER_TEST(kernels_that_do_not_stream_do_not_bid),
};
RUNNER_MAIN_WITHIN("far", tests, open_context, close_context)
