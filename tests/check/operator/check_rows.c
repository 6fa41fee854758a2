/* SPDX-License-Identifier: BSD-3-Clause */
/* check_rows.c - operators of rows that the caller computes
 * (sps_operator_rows): products have the bits of the same matrix as a csr,
 * whether its rows are stored or, with a limit of device memory, streamed;
 * solutions are right; rows that are not valid are named, and nothing is
 * lost. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "driver/precond.h"
#include "operator/operator.h"
#include "tests/problems/row_lengths.h"
#include "tests/problems/zoo.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static sps_context *ctx, *near;

static void open_contexts(void)
{
    ctx = fixture_open();
    near = fixture_open();
}

static void close_contexts(void)
{
    fixture_close(&ctx);
    fixture_close(&near);
}

enum { N = 60000, NEVER = -1 };
enum { UNSORTED, OUTSIDE, TWICE, SHORT, CODE };

/* Rows of A; row `bad` is replaced by one that `fault` describes. */
typedef struct rows {
    const sps_csr *A;
    int64_t bad;
    int fault;
    int64_t calls, made;
} rows;

static int64_t spoil(const rows *r, int32_t *col, int64_t some)
{
    switch (r->fault) {
    case UNSORTED: col[0] = (int32_t)r->A->ncol - 1; break;
    case OUTSIDE: col[some - 1] = (int32_t)r->A->ncol; break;
    case TWICE: col[1] = col[0]; break;
    case SHORT: return some - 1;
    default: break;
    }
    return some;
}

static int make(int64_t first, int64_t count, int64_t *rowptr, int32_t *col,
                void *val, void *data)
{
    rows *r = data;
    const sps_csr *A = r->A;
    const size_t each = A->dtype == SPS_F64 ? sizeof(double) : sizeof(float);

    __atomic_fetch_add(&r->calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&r->made, count, __ATOMIC_RELAXED);
    rowptr[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = A->rowptr[first + i], at = rowptr[i];
        int64_t some = A->rowptr[first + i + 1] - from;

        memcpy(col + at, A->col + from, (size_t)some * sizeof *col);
        memcpy((char *)val + (size_t)at * each,
               (char *)A->val + (size_t)from * each, (size_t)some * each);
        if (first + i == r->bad && r->fault == CODE) return 7;
        if (first + i == r->bad) some = spoil(r, col + at, some);
        rowptr[i + 1] = at + some;
    }
    return 0;
}

static sps_csr shape_of(const sps_csr *A)
{
    sps_csr shape = *A;

    shape.rowptr = NULL;
    shape.col = NULL;
    shape.val = NULL;
    return shape;
}

static sps_csr *matrix(void)
{
    static const int64_t lengths[] = { 40, 31, 3, 12, 40, 25 };

    return row_lengths_matrix(lengths, 6, N, N, false);
}

static sps_status create(rows *r, int64_t longest, sps_operator **op_p)
{
    const sps_csr shape = shape_of(r->A);

    return sps_operator_rows(ctx, &shape, longest, make, r, 4, NULL, op_p);
}

/* On a GPU, leaves no room for the matrix beside blocks of four columns. */
static void limit_rows(void)
{
    if (runner_place() == SPS_HOST) return;
    ctx->opt.max_device_bytes = ctx->memory.device + spsi_blocks_room(N, 4) +
                                ((size_t)6 << 20);
}

static double *product(sps_operator *op, int k)
{
    double *y = malloc((size_t)op->n * (size_t)k * sizeof *y);
    sps_block *X = fixture_block(op->ctx, op->ncol, k, NULL, 0);
    sps_block *Y = fixture_block(op->ctx, op->n, k, NULL, 0);

    OK(op->ctx, sps_block_random(X, 3));
    OK(op->ctx, sps_block_random(Y, 4));
    OK(op->ctx, sps_operator_apply(op, 0.5, X, -0.25, Y));
    OK(op->ctx, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    return y;
}

/* Products of 1, 4 and 9 columns with both operators. */
static void same_products(sps_operator *op, sps_operator *right)
{
    for (int k = 1; k <= 9; k += k == 1 ? 3 : 5) {
        double *want = product(right, k), *y = product(op, k);

        ck_assert_msg(memcmp(y, want, (size_t)(N * k) * sizeof *y) == 0,
                      "%d columns: other bits", k);
        free(want);
        free(y);
    }
}

static sps_operator *of_csr(sps_csr *A, const char *kernel)
{
    sps_operator *op = NULL;
    sps_options o;

    sps_options_default(&o);
    o.kernel = kernel;
    OK(near, sps_operator_csr(near, A, 4, &o, &op));
    return op;
}

START_TEST(rows_have_the_products_of_their_csr)
{
    sps_csr *A = matrix();
    rows r = { .A = A, .bad = NEVER };
    sps_operator *op = NULL, *want = of_csr(A, "auto");

    OK(ctx, create(&r, 40, &op));
    ck_assert_int_eq(r.made, N);
    ck_assert_str_eq(sps_operator_kernel(op), sps_operator_kernel(want));
    same_products(op, want);
    sps_operator_destroy(&op);
    sps_operator_destroy(&want);
    zoo_free(&A);
}
END_TEST

START_TEST(rows_beyond_device_memory_are_streamed)
{
    sps_csr *A;
    rows r = { .bad = NEVER };
    sps_operator *op = NULL, *want;
    char text[1024];

    if (runner_place() == SPS_HOST)
        runner_leave_out("the host streams nothing");
    r.A = A = matrix();
    want = of_csr(A, "spmm.plain");
    limit_rows();
    OK(ctx, create(&r, 100, &op));
    ck_assert_int_eq(r.made, N);
    ck_assert_str_eq(sps_operator_kernel(op), "spmm.stream");
    same_products(op, want);
    sps_operator_describe(op, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "are copied there in each product"));
    ck_assert_int_eq(sps_operator_set_values(op, A->val, SPS_HOST), SPS_EUNFIT);
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    sps_operator_destroy(&op);
    sps_operator_destroy(&want);
    zoo_free(&A);
}
END_TEST

/* Adds what makes the symmetric pattern of a band diagonally dominant. */
static sps_csr *band(void)
{
    static const int64_t lengths[] = { 21 };
    sps_csr *A = row_lengths_matrix(lengths, 1, N, N, false);
    double *v = A->val;
    int64_t e = 0;

    for (int64_t i = 0; i < N; i++) {
        for (int64_t j = i > 10 ? i - 10 : 0; j < N && j <= i + 10; j++, e++) {
            A->col[e] = (int32_t)j;
            v[e] = i == j ? 30.0 : -1.0 / (1.0 + (double)((i + j) % 97));
        }
        A->rowptr[i + 1] = e;
    }
    A->nnz = e;
    A->props |= SPS_SYMMETRIC | SPS_SPD;
    return A;
}

static double *solve(sps_operator *op, const char *precond, sps_result *result)
{
    double *x = malloc((size_t)N * 4 * sizeof *x);
    sps_block *B = fixture_block(op->ctx, N, 4, NULL, 0);
    sps_block *X = fixture_block(op->ctx, N, 4, NULL, 0);
    sps_solver *s = NULL;
    sps_options o;

    sps_options_default(&o);
    o.solver = "block_cg";
    o.precond = precond;
    o.degree = 8;
    OK(op->ctx, sps_block_random(B, 5));
    OK(op->ctx, sps_solver_create(op, NULL, 4, &o, &s));
    OK(op->ctx, sps_solver_linear(s, B, X, result));
    OK(op->ctx, sps_block_get(X, 0, 4, x, 4, SPS_ROW_MAJOR, SPS_HOST));
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    return x;
}

START_TEST(rows_are_solved_and_verified)
{
    sps_csr *A = band();
    rows r = { .A = A, .bad = NEVER };
    sps_result result = { .struct_size = sizeof result };
    sps_operator *op = NULL, *exact = of_csr(A, "auto");
    double *x, *ax = malloc((size_t)N * 4 * sizeof *ax);
    sps_block *X, *B;

    limit_rows();
    OK(ctx, create(&r, 21, &op));
    x = solve(op, "none", &result);
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    X = fixture_block(near, N, 4, x, 4);
    B = fixture_block(near, N, 4, NULL, 0);
    OK(near, sps_block_random(B, 5));
    OK(near, sps_operator_apply(exact, 1.0, X, -1.0, B));
    OK(near, sps_block_get(B, 0, 4, ax, 4, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t e = 0; e < 4 * N; e++) ck_assert(fabs(ax[e]) < 1e-5);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    free(ax);
    free(x);
    sps_operator_destroy(&op);
    sps_operator_destroy(&exact);
    zoo_free(&A);
}
END_TEST

/* A solve with 7/4 of a block less than it takes: the best iterate and B are in
 * host memory. */
START_TEST(b_makes_room_for_the_residual_of_streamed_rows)
{
    const size_t block = (size_t)N * 4 * sizeof(double);
    rows r = { .bad = NEVER };
    sps_csr *A;
    sps_result result = { .struct_size = sizeof result };
    sps_operator *op = NULL;
    double *right = NULL, *x;
    size_t before;

    if (runner_place() == SPS_HOST)
        runner_leave_out("the host streams nothing");
    r.A = A = band();
    limit_rows();
    OK(ctx, create(&r, 21, &op));
    for (int i = 0; i < 2; i++) {            /* the first one makes scratch */
        free(right);
        before = ctx->memory.device_peak = ctx->memory.device;
        right = solve(op, "none", &result);
    }
    ctx->opt.max_device_bytes = ctx->memory.device_peak - block / 4 * 7;
    ck_assert_uint_gt(ctx->opt.max_device_bytes, before + 2 * block);
    x = solve(op, "none", &result);
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    ck_assert(memcmp(x, right, (size_t)(4 * N) * sizeof *x) == 0);
    free(x);
    free(right);
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

/* Their diagonal is known where they are streamed: preconditioners that need no
 * more have the bits of the same matrix as a csr. */
START_TEST(preconditioners_of_a_diagonal_serve_rows)
{
    static const char *const name[] = { "jacobi", "chebyshev", "auto" };
    sps_csr *A = band();
    rows r = { .A = A, .bad = NEVER };
    sps_result result = { .struct_size = sizeof result }, near_result = result;
    const bool gpu = runner_place() == SPS_CUDA;
    sps_operator *op = NULL, *right;
    sps_precond *M = NULL;
    sps_options o;

    for (int64_t i = 0; i < N; i++)          /* a diagonal that matters */
        for (int64_t e = A->rowptr[i]; e < A->rowptr[i + 1]; e++)
            if (A->col[e] == i) ((double *)A->val)[e] += (double)(i % 1000);
    right = of_csr(A, gpu ? "spmm.plain" : "auto");
    limit_rows();
    OK(ctx, create(&r, 21, &op));
    ck_assert(!gpu || op->diagonal);
    for (int i = 0; i < 3; i++) {
        const char *of = i < 2 ? name[i] : "jacobi";
        double *x = solve(op, gpu ? name[i] : of, &result);
        double *want = solve(right, of, &near_result);

        ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
        ck_assert_int_eq(result.iterations, near_result.iterations);
        ck_assert_msg(memcmp(x, want, (size_t)(4 * N) * sizeof *x) == 0,
                      "%s: other bits", name[i]);
        free(x);
        free(want);
    }
    sps_options_default(&o);
    if (op->diagonal) {
        OK(ctx, sps_precond_create(op, 4, &o, &M));
        ck_assert_str_eq(M->type->name, "jacobi");
        sps_precond_destroy(&M);
        o.precond = "ic0";
        ck_assert_int_eq(sps_precond_create(op, 4, &o, &M), SPS_EUNFIT);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "chebyshev"));
    }
    sps_operator_destroy(&op);
    sps_operator_destroy(&right);
    zoo_free(&A);
}
END_TEST

/* Each fault in the first, an inner and the last row, stored and streamed. */
static void judge_fault(rows *r, int fault, const char *part)
{
    static const int64_t places[] = { 0, 12345, N - 1 };
    const sps_status want = fault == CODE ? SPS_EUSER : SPS_EMATRIX;
    sps_operator *op = NULL;

    for (int i = 0; i < 3; i++) {
        char row[64];

        r->bad = places[i];
        r->fault = fault;
        ck_assert_int_eq(create(r, 40, &op), want);
        ck_assert_ptr_null(op);
        snprintf(row, sizeof row, "row %lld", (long long)places[i]);
        ck_assert_msg(strstr(sps_context_error(ctx), part ? part : row) != NULL,
                      "fault %d: %s", fault, sps_context_error(ctx));
    }
}

START_TEST(rows_that_are_not_valid_are_named)
{
    sps_csr *A = matrix();
    rows r = { .A = A };

    for (int far = 0; far < 2; far++) {
        if (far) limit_rows();
        for (int fault = UNSORTED; fault <= TWICE; fault++)
            judge_fault(&r, fault, NULL);
        judge_fault(&r, SHORT, "entries, not");
        judge_fault(&r, CODE, "returned 7");
    }
    zoo_free(&A);
}
END_TEST

START_TEST(a_longer_row_than_promised_is_named)
{
    sps_csr *A = matrix();
    rows r = { .A = A, .bad = NEVER };
    sps_operator *op = NULL;
    sps_csr shape = shape_of(A);

    ck_assert_int_eq(create(&r, 5, &op), SPS_EMATRIX);
    ck_assert_int_eq(r.calls, 0);
    ck_assert_int_eq(create(&r, -1, &op), SPS_EMATRIX);
    shape.rowptr = A->rowptr;
    ck_assert_int_eq(sps_operator_rows(ctx, &shape, 40, make, &r, 4, NULL, &op),
                     SPS_EINVAL);
    shape.rowptr = NULL;
    ck_assert_int_eq(sps_operator_rows(ctx, &shape, 40, NULL, &r, 4, NULL, &op),
                     SPS_EINVAL);
    ck_assert_int_eq(sps_operator_rows(ctx, &shape, 40, make, &r, 0, NULL, &op),
                     SPS_EINVAL);
    zoo_free(&A);
}
END_TEST

START_TEST(no_rows_and_empty_rows)
{
    static const int64_t none[] = { 0 };
    sps_csr *A = row_lengths_matrix(none, 1, N, N, false);
    rows r = { .A = A, .bad = NEVER };
    sps_operator *op = NULL;
    double *y;

    OK(ctx, create(&r, 0, &op));
    y = product(op, 4);
    free(y);
    sps_operator_destroy(&op);
    A->nrow = A->ncol = 0;
    OK(ctx, create(&r, 0, &op));
    sps_operator_destroy(&op);
    A->nrow = A->ncol = N;
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(rows_have_the_products_of_their_csr),
    RUNNER_TEST(rows_beyond_device_memory_are_streamed),
    RUNNER_TEST(rows_are_solved_and_verified),
    RUNNER_TEST(b_makes_room_for_the_residual_of_streamed_rows),
    RUNNER_TEST(preconditioners_of_a_diagonal_serve_rows),
    RUNNER_TEST(rows_that_are_not_valid_are_named),
    RUNNER_TEST(a_longer_row_than_promised_is_named),
    RUNNER_TEST(no_rows_and_empty_rows),
};
RUNNER_MAIN_WITHIN("rows", tests, open_contexts, close_contexts)
