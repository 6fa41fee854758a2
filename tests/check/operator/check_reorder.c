/* SPDX-License-Identifier: BSD-3-Clause */
/* check_reorder.c - operators that reorder the unknowns: a solve returns X in
 * the caller's order, also after new values; auto reorders where it predicts a
 * gain. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "operator/reorder.h"
#include "tests/support/runner.h"
#include "tests/problems/shuffled.h"
#include "driver/linear.h"
#include "tests/problems/zoo.h"

/* A solve must return X in the caller's order, also after new values. */
static void try_reordered(sps_context *ctx, const char *solver,
                          const char *reorder, const sps_block *coords,
                          sps_csr *A, double *worst)
{
    enum { K = 3 };
    const int64_t n = A->nrow;
    sps_options opt;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL, *Y = NULL;
    sps_result r = { .struct_size = sizeof r };
    double *x = calloc((size_t)(n * K), sizeof *x);
    double *y = calloc((size_t)(n * K), sizeof *y);
    double *val = calloc((size_t)A->nnz, sizeof *val);

    sps_options_default(&opt);
    opt.solver = solver;
    opt.reorder = reorder;
    opt.coords = coords;
    opt.rtol = 1e-12;
    OK(ctx, sps_operator_csr(ctx, A, K, &opt, &op));
    OK(ctx, sps_solver_create(op, NULL, K, &opt, &s));
    OK(ctx, sps_block_create(ctx, n, K, &B));
    OK(ctx, sps_block_create(ctx, n, K, &X));
    OK(ctx, sps_block_create(ctx, n, K, &Y));
    OK(ctx, sps_block_random(Y, 3));
    *worst = 0;
    for (int round = 0; round < 2; round++) {
        OK(ctx, sps_operator_apply(op, 1, Y, 0, B));
        OK(ctx, sps_solver_linear(s, B, X, &r));
        ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
        OK(ctx, sps_block_get(X, 0, K, x, K, SPS_ROW_MAJOR, SPS_HOST));
        OK(ctx, sps_block_get(Y, 0, K, y, K, SPS_ROW_MAJOR, SPS_HOST));
        for (int64_t t = 0; t < n * K; t++)
            *worst = fmax(*worst, fabs(x[t] - y[t]));
        for (int64_t p = 0; p < A->nnz; p++)
            val[p] = 3 * ((double *)A->val)[p];
        OK(ctx, sps_operator_set_values(op, val, SPS_HOST));
    }
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    free(x);
    free(y);
    free(val);
}

START_TEST(a_reordered_solve_is_the_callers)
{
    static const char *const solvers[] = {"auto", "cg", "gmres"};
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 400, 1, ZOO_SPD, SPS_F64);
    sps_csr *S = shuffled(ctx, A, 137);
    double worst;

    for (int64_t i = 0; i < 400; i++)
        for (int64_t p = S->rowptr[i]; p < S->rowptr[i + 1]; p++)
            ((double *)S->val)[p] = S->col[p] == i ? 5 + (double)(i % 7) : -1;
    for (int t = 0; t < 3; t++) {
        try_reordered(ctx, solvers[t], "rcm", NULL, S, &worst);
        ck_assert_msg(worst < 1e-10, "%s: %g", solvers[t], worst);
    }
    ck_assert(fixture_noted(ctx, "RCM changes the bandwidth from"));
    sps_csr_destroy(ctx, &S);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

/* Two unknowns at each of 200 nodes in random order. */
START_TEST(a_solve_along_the_curve_is_the_callers)
{
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 400, 1, ZOO_SPD, SPS_F64);
    sps_block *coords = NULL;
    sps_options opt;
    sps_operator *op = NULL;
    double worst, x[400];

    for (int i = 0; i < 400; i++) x[i] = (double)(i * 7919 % 1009);
    OK(ctx, sps_block_create(ctx, 200, 2, &coords));
    OK(ctx, sps_block_set(coords, 0, 2, x, 2, SPS_ROW_MAJOR, SPS_HOST));
    try_reordered(ctx, "auto", "morton", coords, A, &worst);
    ck_assert_msg(worst < 1e-10, "%g", worst);
    ck_assert(fixture_noted(ctx, "Morton changes the bandwidth from"));
    sps_options_default(&opt);
    opt.reorder = "morton";
    ck_assert_int_eq(sps_operator_csr(ctx, A, 1, &opt, &op), SPS_EINVAL);
    sps_block_destroy(&coords);
    OK(ctx, sps_block_create(ctx, 150, 2, &coords));
    opt.coords = coords;
    ck_assert_int_eq(sps_operator_csr(ctx, A, 1, &opt, &op), SPS_ESHAPE);
    sps_block_destroy(&coords);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

/* L with rows and columns scaled by 1 / d_i: its null vector d is a different
 * one in any other order. */
static void scale_laplacian(sps_csr *L, double *d)
{
    for (int64_t i = 0; i < L->nrow; i++) d[i] = 1 + (double)(i % 7);
    for (int64_t i = 0; i < L->nrow; i++)
        for (int64_t p = L->rowptr[i]; p < L->rowptr[i + 1]; p++)
            ((double *)L->val)[p] =
                (L->col[p] == i ? (double)(L->rowptr[i + 1] - L->rowptr[i] - 1)
                                : -1) / (d[i] * d[L->col[p]]);
}

/* The basis of the null space is in the caller's order, the solve is not. */
START_TEST(a_basis_of_the_null_space_goes_along)
{
    static const char *const solvers[] = {"auto", "cg"};
    enum { N = 400 };
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("grid5"), N, 1, ZOO_SPD, SPS_F64);
    sps_csr *L = shuffled(ctx, A, 137);
    sps_block *basis = NULL;
    double d[N];

    scale_laplacian(L, d);
    OK(ctx, sps_block_create(ctx, N, 1, &basis));
    OK(ctx, sps_block_set(basis, 0, 1, d, 1, SPS_ROW_MAJOR, SPS_HOST));
    for (int t = 0; t < 2; t++) {
        sps_options opt;
        sps_operator *op = NULL;
        sps_solver *s = NULL;
        sps_block *B = NULL, *X = NULL;
        sps_result r = { .struct_size = sizeof r };

        sps_options_default(&opt);
        opt.solver = solvers[t];
        opt.reorder = "rcm";
        opt.nullspace_basis = basis;
        OK(ctx, sps_operator_csr(ctx, L, 2, &opt, &op));
        OK(ctx, sps_solver_create(op, NULL, 2, &opt, &s));
        ck_assert_ptr_eq(s->order.A, op->reordered->inner);
        OK(ctx, sps_block_create(ctx, N, 2, &B));
        OK(ctx, sps_block_create(ctx, N, 2, &X));
        for (int round = 0; round < 2; round++) {
            OK(ctx, sps_block_random(B, 5));
            OK(ctx, sps_solver_linear(s, B, X, &r));
            ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED_LEAST_SQUARES);
            ck_assert_int_eq(r.nullspace, 1);
            OK(ctx, sps_operator_set_values(op, L->val, SPS_HOST));
        }
        sps_solver_destroy(&s);
        sps_block_destroy(&B);
        sps_block_destroy(&X);
        sps_operator_destroy(&op);
    }
    sps_block_destroy(&basis);
    sps_csr_destroy(ctx, &L);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

/* Where reordering is not possible a note says so: with a preconditioner of the
 * caller, for eigenvalues, for rectangular matrices. */
START_TEST(an_order_that_is_not_taken_is_told)
{
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 400, 1, ZOO_SPD, SPS_F64);
    sps_options opt;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_solver *s = NULL;

    sps_options_default(&opt);
    opt.reorder = "rcm";
    opt.precond = "jacobi";
    OK(ctx, sps_operator_csr(ctx, A, 8, &opt, &op));
    OK(ctx, sps_precond_create(op, 2, &opt, &M));
    OK(ctx, sps_solver_create(op, M, 2, &opt, &s));
    ck_assert(fixture_noted(ctx, "this solver uses the original order"));
    sps_solver_destroy(&s);
    OK(ctx, sps_solver_create_eigen(op, NULL, NULL, 2, &opt, &s));
    ck_assert(fixture_noted(ctx, "the original order is kept for eigenvalues"));
    sps_solver_destroy(&s);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    A->nrow = 390;
    A->nnz = A->rowptr[390];
    OK(ctx, sps_operator_csr(ctx, A, 8, &opt, &op));
    ck_assert(fixture_noted(ctx, "kept, since the matrix is not square"));
    sps_operator_destroy(&op);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

/* A randomly permuted ring is reordered, an ordered one is not. */
START_TEST(auto_reorders_where_a_gain_is_predicted)
{
    enum { N = 6007 };
    sps_context *ctx = runner_context();

    for (int shuffle = 0; shuffle < 2; shuffle++) {
        sps_csr *A = NULL;
        double worst;
        int64_t q = 0;

        OK(ctx, sps_csr_create(ctx, N, N, 5 * N, SPS_F64, &A));
        for (int64_t i = 0; i < N; i++) {
            const int64_t step = shuffle ? 2500 : 1;

            for (int d = -2; d <= 2; d++, q++) {
                A->col[q] = (int32_t)(((i + d * step) % N + N) % N);
                ((double *)A->val)[q] = d ? -1 : 5;
            }
            A->rowptr[i + 1] = q;
        }
        OK(ctx, sps_csr_check(ctx, A));
        try_reordered(ctx, "cg", "auto", NULL, A, &worst);
        ck_assert_msg(worst < 1e-9, "%g", worst);
        ck_assert(fixture_noted(ctx, "times as fast"));
        ck_assert(fixture_noted(ctx, "the original order is kept") == !shuffle);
        ck_assert(fixture_noted(ctx, "by measurement") == shuffle);
        sps_csr_destroy(ctx, &A);
        if (!shuffle) sps_context_destroy(&ctx), ctx = runner_context();
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* An ordered grid, and one with few rows. */
START_TEST(auto_says_why_it_does_not_try)
{
    static const struct { int64_t n; const char *why; } grid[] = {
        { 4900, "bandwidth is at most a quarter" },
        { 400, "since there are fewer than 4096 rows" },
    };

    for (int t = 0; t < 2; t++) {
        sps_context *ctx = runner_context();
        sps_csr *A = zoo_matrix(zoo_find("grid5"), grid[t].n, 1, ZOO_SPD,
                                SPS_F64);
        sps_options opt;
        sps_operator *op = NULL;

        sps_options_default(&opt);
        opt.reorder = "auto";
        OK(ctx, sps_operator_csr(ctx, A, 4, &opt, &op));
        ck_assert_msg(fixture_noted(ctx, grid[t].why), "%s", grid[t].why);
        ck_assert_ptr_null(op->reordered);
        sps_operator_destroy(&op);
        zoo_free(&A);
        sps_context_destroy(&ctx);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_reordered_solve_is_the_callers),
    RUNNER_TEST(a_solve_along_the_curve_is_the_callers),
    RUNNER_TEST(a_basis_of_the_null_space_goes_along),
    RUNNER_TEST(an_order_that_is_not_taken_is_told),
    RUNNER_TEST(auto_says_why_it_does_not_try),
    RUNNER_TEST(auto_reorders_where_a_gain_is_predicted),
};
RUNNER_MAIN("check_reorder", tests)
