/* SPDX-License-Identifier: BSD-3-Clause */
/* check_new_values.c - sps_operator_set_values: on a GPU, values in device
 * memory are not copied to the host, and everything that the host computes from
 * a matrix still uses the new values. */
#include <check.h>

#include "tests/support/absent.h"
#include "tests/support/apply.h"
#include "block/block.h"
#include "tests/support/oracle.h"
#include "plan/planner.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

enum { K = 16 };

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

static sps_csr *grid(sps_dtype dtype)
{
    return zoo_matrix(zoo_find("grid7"), 400, 7, ZOO_SPD, dtype);
}

/* Other values of A, symmetric where A is, and with the same definiteness. */
static void change(const sps_csr *A, double times)
{
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const double a = times * spsi_csr_value(A, p) +
                             (A->col[p] == i ? (double)(i % 3) : 0);

            if (A->dtype == SPS_F64) ((double *)A->val)[p] = a;
            else ((float *)A->val)[p] = (float)a;
        }
}

/* The values of A in the context's memory space: a copy on the device, or A's
 * own array. */
static void *lay_down(const sps_csr *A)
{
    const sps_backend *b = ctx->backend;
    const size_t bytes = spsi_csr_value_bytes(A);
    void *p = A->val;

    if (b->place == SPS_HOST) return p;
    OK(ctx, b->alloc(ctx, bytes + 8, &p));
    if (bytes > 0) OK(ctx, b->upload(ctx, p, A->val, bytes));
    return p;
}

static void take_up(const sps_csr *A, void *p)
{
    if (p != A->val)
        ctx->backend->release(ctx, p, spsi_csr_value_bytes(A) + 8);
}

/* Passes the values of A to the operator from the context's memory space. */
static void put(sps_operator *op, const sps_csr *A)
{
    void *p = lay_down(A);

    OK(ctx, sps_operator_set_values(op, p, ctx->backend->place));
    OK(ctx, sps_context_sync(ctx));
    take_up(A, p);
}

/* ----------------------------------------------- without a copy on the host */

static size_t moved;
static const sps_backend *real;

static sps_status count_upload(sps_context *c, void *to, const void *from,
                               size_t bytes)
{
    moved += bytes;
    return real->upload(c, to, from, bytes);
}

static sps_status count_download(sps_context *c, void *to, const void *from,
                                 size_t bytes)
{
    moved += bytes;
    return real->download(c, to, from, bytes);
}

/* Bytes copied between host and GPU for new values in device memory. */
static size_t bytes_moved(sps_operator *op, const void *val)
{
    sps_backend counting = *ctx->backend;

    real = ctx->backend;
    counting.upload = count_upload;
    counting.download = count_download;
    moved = 0;
    ctx->backend = &counting;
    OK(ctx, sps_operator_set_values(op, val, SPS_CUDA));
    ctx->backend = real;
    return moved;
}

static void same_product(const sps_operator *a, const sps_operator *b, int k,
                         const char *what)
{
    double *x = zoo_block(a->ncol, k, k, 3, ZOO_RANDOM);
    double *y = zeros(a->n * k), *z = zeros(a->n * k);

    apply(a, 1.0, x, 0.0, y, k);
    apply(b, 1.0, x, 0.0, z, k);
    ck_assert_msg(!memcmp(y, z, (size_t)(a->n * k) * sizeof *y),
                  "%s, k %d: another product", what, k);
    free(x);
    free(y);
    free(z);
}

/* Creates an operator with the kernel selected by name; false if it does not
 * fit. */
static bool pin(sps_csr *A, const char *kernel, sps_operator **op_p)
{
    sps_options o;
    sps_status st;

    sps_options_default(&o);
    o.kernel = kernel;
    st = sps_operator_csr(ctx, A, K, &o, op_p);
    if (st == SPS_EUNFIT) return false;
    OK(ctx, st);
    return true;
}

/* Integers so small that no kernel rounds: the product is the same in every
 * order of summation, also for kernels that use atomic additions, and for the
 * vendor's, which select the fastest algorithm at run time. */
static void exact_product(const sps_operator *op, const sps_csr *B, int k,
                          const char *what)
{
    double *x = zoo_block(B->ncol, k, k, 3, ZOO_SMALL);
    double *y = zeros(B->nrow * k), *right = zeros(B->nrow * k);

    apply(op, 1.0, x, 0.0, y, k);
    oracle_spmm(B, 1.0, x, k, 0.0, right, k, k, NULL);
    ck_assert_msg(oracle_differs(B->nrow, k, y, k, right, k) < 0,
                  "%s, k %d: not the product with the new values", what, k);
    free(x);
    free(y);
    free(right);
}

/* Tests one kernel; false if it cannot be used with this type.  One that streams
 * keeps values in host memory. */
static bool by_kernel(const sps_kernel *tested, sps_dtype dtype)
{
    const bool streams = tested->gives & SPS_STREAMS && tested->refresh;
    const char *kernel = tested->name;
    sps_csr *A = zoo_matrix(zoo_find("grid7"), 400, 7, ZOO_SMALL, dtype);
    sps_csr *B = zoo_matrix(zoo_find("grid7"), 400, 7, ZOO_SMALL, dtype);
    sps_operator *op = NULL;
    bool had = pin(A, kernel, &op);

    change(B, 3.0);
    if (had) {
        void *p = lay_down(B);

        exact_product(op, A, K, kernel);
        ck_assert_msg(bytes_moved(op, p) < 64 || streams, "%s: %zu bytes "
                      "through the host", kernel, moved);
        take_up(B, p);
        exact_product(op, B, K, kernel);
        exact_product(op, B, 1, kernel);
    }
    sps_operator_destroy(&op);
    zoo_free(&A);
    zoo_free(&B);
    return had;
}

START_TEST(values_on_the_gpu_reach_every_kernel_without_the_host)
{
    const sps_kernel *kernel;
    int had = 0;

    if (ctx->backend->place == SPS_HOST) runner_skip("values on a GPU");
    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        for (int d = 0; d < 2 && kernel->op == SPS_OP_SPMM; d++)
            had += by_kernel(kernel, (sps_dtype)d);
    ck_assert_int_gt(had, 0);
}
END_TEST

START_TEST(values_from_everywhere_in_turn_are_the_last_ones)
{
    sps_csr *A = grid(SPS_F64), *B = grid(SPS_F64), *C = grid(SPS_F64);
    sps_operator *op, *of_B, *of_C;

    change(B, 3.0);
    change(C, -2.0);
    op = operator_of(ctx, A, 4);
    of_B = operator_of(ctx, B, 4);
    of_C = operator_of(ctx, C, 4);
    for (int turn = 0; turn < 2; turn++) {
        put(op, B);
        same_product(op, of_B, 4, "from the place");
        OK(ctx, sps_operator_set_values(op, C->val, SPS_HOST));
        same_product(op, of_C, 4, "from the host");
        put(op, B);
        OK(ctx, spsi_operator_fetch(op));
        ck_assert(!memcmp(op->A->val, B->val, spsi_csr_value_bytes(B)));
        put(op, C);
        same_product(op, of_C, 3, "after a look from the host");
    }
    ck_assert(memcmp(A->val, B->val, spsi_csr_value_bytes(B)) != 0);
    sps_operator_destroy(&op);
    sps_operator_destroy(&of_B);
    sps_operator_destroy(&of_C);
    zoo_free(&A);
    zoo_free(&B);
    zoo_free(&C);
}
END_TEST

/* An unsorted row with a duplicate: such values must pass through the host. */
START_TEST(rows_that_were_sorted_take_values_of_the_place)
{
    int64_t rowptr[] = { 0, 3, 4 }, tidy_rowptr[] = { 0, 2, 3 };
    int32_t col[] = { 1, 0, 1, 0 }, tidy_col[] = { 0, 1, 0 };
    double val[] = { 1, 2, 3, 4 }, fresh[] = { 10, 20, 30, 40 };
    double tidy[] = { 20, 40, 40 };
    sps_csr *A = NULL, *B = NULL, *C = NULL;
    sps_operator *op, *right;

    OK(ctx, sps_csr_wrap(ctx, 2, 2, 4, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    OK(ctx, sps_csr_wrap(ctx, 2, 2, 4, rowptr, col, fresh, SPS_F64, SPS_HOST,
                         SPS_BORROW, &B));
    OK(ctx, sps_csr_wrap(ctx, 2, 2, 3, tidy_rowptr, tidy_col, tidy, SPS_F64,
                         SPS_HOST, SPS_BORROW, &C));
    op = operator_of(ctx, A, 2);
    right = operator_of(ctx, C, 2);
    put(op, B);
    same_product(op, right, 2, "sorted");
    sps_operator_destroy(&op);
    sps_operator_destroy(&right);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &B);
    sps_csr_destroy(ctx, &C);
}
END_TEST

/* --------------------------------------- what the host computes from values */

static double *precondition(const sps_precond *M, int64_t n)
{
    double *r = zoo_block(n, 3, 3, 5, ZOO_RANDOM), *z = zeros(n * 3);
    sps_block *R = fixture_block(ctx, n, 3, r, 3);
    sps_block *Z = fixture_block(ctx, n, 3, NULL, 3);

    OK(ctx, sps_precond_apply(M, R, Z));
    OK(ctx, sps_block_get(Z, 0, 3, z, 3, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    free(r);
    return z;
}

static void same_precond(const sps_precond *a, const sps_precond *b,
                         int64_t n, const char *name, const char *when)
{
    double *x = precondition(a, n), *y = precondition(b, n);

    ck_assert_msg(!memcmp(x, y, (size_t)(n * 3) * sizeof *x),
                  "%s %s the new values", name, when);
    free(x);
    free(y);
}

START_TEST(preconditioners_see_values_of_the_place)
{
    const char *name;

    for (int i = 0; (name = sps_list(ctx, "precond", i)); i++)
    if (!absent(name)) {
        sps_csr *A = grid(SPS_F64), *B = grid(SPS_F64);
        sps_operator *op = operator_of(ctx, A, 4), *fresh;
        sps_precond *old = NULL, *made = NULL, *right = NULL;
        sps_options o;

        change(B, 3.0);
        fresh = operator_of(ctx, B, 4);
        sps_options_default(&o);
        o.precond = name;
        OK(ctx, sps_precond_create(op, 4, &o, &old));
        put(op, B);
        OK(ctx, sps_precond_update(old));
        put(op, A);
        put(op, B);
        OK(ctx, sps_precond_create(op, 4, &o, &made));
        OK(ctx, sps_precond_create(fresh, 4, &o, &right));
        same_precond(old, right, A->nrow, name, "did not follow");
        same_precond(made, right, A->nrow, name, "was not made of");
        sps_precond_destroy(&old);
        sps_precond_destroy(&made);
        sps_precond_destroy(&right);
        sps_operator_destroy(&op);
        sps_operator_destroy(&fresh);
        zoo_free(&A);
        zoo_free(&B);
    }
}
END_TEST

static void solve(sps_solver *s, int64_t n, double *x)
{
    double *b = zoo_block(n, 3, 3, 6, ZOO_RANDOM);
    sps_block *B = fixture_block(ctx, n, 3, b, 3);
    sps_block *X = fixture_block(ctx, n, 3, NULL, 3);
    sps_result r = { .struct_size = sizeof r };

    OK(ctx, sps_solver_linear(s, B, X, &r));
    ck_assert_msg(r.stop > 0, "%s", sps_stop_string(r.stop));
    OK(ctx, sps_block_get(X, 0, 3, x, 3, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    free(b);
}

/* A solver before and after its matrix got values from device memory, and a
 * solver for the new matrix: they must agree bitwise. */
static void by_solver(const char *name, const char *reorder)
{
    sps_csr *A = grid(SPS_F64), *B = grid(SPS_F64);
    sps_operator *op = NULL, *fresh = NULL;
    sps_solver *old = NULL, *right = NULL;
    double *x = zeros(A->nrow * 3), *y = zeros(A->nrow * 3);
    sps_options o;

    change(B, 3.0);
    sps_options_default(&o);
    o.solver = name;
    o.reorder = reorder;
    OK(ctx, sps_operator_csr(ctx, A, 4, &o, &op));
    OK(ctx, sps_operator_csr(ctx, B, 4, &o, &fresh));
    OK(ctx, sps_solver_create(op, NULL, 3, &o, &old));
    put(op, B);
    solve(old, A->nrow, x);
    OK(ctx, sps_solver_create(fresh, NULL, 3, &o, &right));
    solve(right, A->nrow, y);
    ck_assert_msg(!memcmp(x, y, (size_t)(A->nrow * 3) * sizeof *x),
                  "%s, order %s: another solution", name, reorder);
    sps_solver_destroy(&old);
    sps_solver_destroy(&right);
    sps_operator_destroy(&op);
    sps_operator_destroy(&fresh);
    zoo_free(&A);
    zoo_free(&B);
    free(x);
    free(y);
}

START_TEST(solvers_follow_values_of_the_place)
{
    const char *name;

    by_solver("auto", "none");
    for (int i = 0; (name = sps_list(ctx, "solver", i)); i++) {
        by_solver(name, "none");
        by_solver(name, "rcm");
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(values_on_the_gpu_reach_every_kernel_without_the_host),
    RUNNER_TEST(values_from_everywhere_in_turn_are_the_last_ones),
    RUNNER_TEST(rows_that_were_sorted_take_values_of_the_place),
    RUNNER_TEST(preconditioners_see_values_of_the_place),
    RUNNER_TEST(solvers_follow_values_of_the_place),
};
RUNNER_MAIN_WITHIN("new_values", tests, open_context, close_context)
