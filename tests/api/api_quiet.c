/* SPDX-License-Identifier: BSD-3-Clause */
/* api_quiet.c - no memory is allocated after set-up: products, preconditioners
 * and whole solves work while every allocator fails. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/absent.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"
#include "tests/support/least.h"
#include "spsolve.h"

static fail_alloc host = {.allowed = -1}, device = {.allowed = -1};
static sps_context *ctx;
static sps_csr *A;
static sps_operator *op;

#define GOOD(call)                                                             \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

/* The 5-point Laplacian on a square grid of side m; shift: on its diagonal. */
static sps_csr *grid(int m, double shift)
{
    sps_csr *G = NULL;
    double *v;
    int64_t p = 0;

    GOOD(sps_csr_create(ctx, m * m, m * m, 5 * m * m, SPS_F64, &G));
    v = G->val;
    for (int i = 0; i < m * m; i++) {
        int x = i % m, y = i / m;
        int near[5] = {y ? i - m : -1, x ? i - 1 : -1, i,
                       x < m - 1 ? i + 1 : -1, y < m - 1 ? i + m : -1};
        int degree = (y > 0) + (x > 0) + (x < m - 1) + (y < m - 1);

        for (int j = 0; j < 5; j++)
            if (near[j] >= 0) {
                G->col[p] = near[j];
                v[p++] = near[j] == i ? degree + shift : -1;
            }
        G->rowptr[i + 1] = p;
    }
    G->nnz = p;
    GOOD(sps_csr_check(ctx, G));
    return G;
}

static void setup(void)
{
    sps_context_options o;
    const char *error;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.host = fail_alloc_host(&host);
    if (o.place == SPS_CUDA) o.gpu = fail_alloc_device(&device);
    ck_assert_msg(sps_context_create(&o, &ctx, &error) == SPS_OK, "%s", error);
    A = grid(20, 0.1);
    GOOD(sps_operator_csr(ctx, A, 16, NULL, &op));
}

static void teardown(void)
{
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(host.live, 0);
    ck_assert_int_eq(device.live, 0);
    ck_assert_int_eq(host.mismatches, 0);
}

static void forbid(void)
{
    fail_alloc_allow(&host, 0);
    fail_alloc_allow(&device, 0);
}

static void allow(const char *what)
{
    ck_assert_msg(!host.fired, "%s asked for host memory", what);
    ck_assert_msg(!device.fired, "%s asked for device memory", what);
    fail_alloc_allow(&host, -1);
    fail_alloc_allow(&device, -1);
}

static void quiet_solve(const sps_operator *with, int k,
                        const sps_options *opt)
{
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result result = {.struct_size = sizeof result};

    GOOD(sps_block_create(ctx, 400, k, &B));
    GOOD(sps_block_create(ctx, 400, k, &X));
    GOOD(sps_solver_create(with, NULL, k, opt, &s));
    GOOD(sps_block_random(B, 1));
    for (int again = 0; again < 2; again++) {
        forbid();
        GOOD(sps_solver_linear(s, B, X, &result));
        allow(opt->solver);
        ck_assert_msg(result.stop > 0 ||
                      result.stop == SPS_STOP_LEAST_SQUARES, "%s with %s: %s",
                      opt->solver, opt->precond, sps_stop_string(result.stop));
        GOOD(sps_block_random(B, 2));
    }
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
}

START_TEST(every_solver_with_every_preconditioner_is_quiet)
{
    static const int widths[] = {1, 5, 16};
    sps_options opt;

    sps_options_default(&opt);
    for (int i = 0; (opt.solver = sps_list(ctx, "solver", i)); i++)
        for (int j = 0; (opt.precond = sps_list(ctx, "precond", j)); j++)
            for (int w = 0; w < 3 && !absent(opt.precond) &&
                            precond_serves(opt.solver, opt.precond); w++)
                quiet_solve(op, widths[w], &opt);
    opt.solver = opt.precond = "auto";
    quiet_solve(op, 16, &opt);
}
END_TEST

START_TEST(a_projected_solve_is_quiet)
{
    sps_csr *L = grid(20, 0);
    sps_operator *laplacian = NULL;
    sps_options opt;

    sps_options_default(&opt);
    GOOD(sps_operator_csr(ctx, L, 8, NULL, &laplacian));
    quiet_solve(laplacian, 8, &opt);
    sps_operator_destroy(&laplacian);
    sps_csr_destroy(ctx, &L);
}
END_TEST

/* Equal and zero right-hand sides make the block rank-deficient: memory for the
 * paths that handle this must be allocated at set-up as well. */
START_TEST(a_rank_deficient_solve_is_quiet)
{
    static double b[400 * 6];
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;

    for (int i = 0; i < 400; i++)
        for (int j = 0; j < 6; j++)
            b[i * 6 + j] = j == 5 ? 0 : (i * 37 % 11) - (j < 3 ? 5 : i % 3);
    GOOD(sps_block_create(ctx, 400, 6, &B));
    GOOD(sps_block_create(ctx, 400, 6, &X));
    GOOD(sps_block_set(B, 0, 6, b, 6, SPS_ROW_MAJOR, SPS_HOST));
    GOOD(sps_solver_create(op, NULL, 6, NULL, &s));
    forbid();
    GOOD(sps_solver_linear(s, B, X, NULL));
    allow("the solve");
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
}
END_TEST

START_TEST(products_are_quiet)
{
    sps_block *X = NULL, *Y = NULL;

    GOOD(sps_block_create(ctx, 400, 33, &X)); /* wider than the plan */
    GOOD(sps_block_create(ctx, 400, 33, &Y));
    forbid();
    GOOD(sps_operator_apply(op, 1, X, 0, Y));
    GOOD(sps_operator_apply(op, 2, X, 3, Y));
    allow("sps_operator_apply");
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_solver_with_every_preconditioner_is_quiet),
    RUNNER_TEST(a_projected_solve_is_quiet),
    RUNNER_TEST(a_rank_deficient_solve_is_quiet),
    RUNNER_TEST(products_are_quiet),
};
RUNNER_MAIN_WITHIN("api_quiet", tests, setup, teardown)
