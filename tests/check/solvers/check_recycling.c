/* SPDX-License-Identifier: BSD-3-Clause */
/* check_recycling.c - block_gcrodr: the recycled subspace reduces iterations
 * from cycle to cycle, and from system to system of a slowly changing
 * sequence. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/problem.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

enum { SIDE = 40, N = SIDE * SIDE, SYSTEMS = 10, K = 4 };

/* Added to the diagonal: the smaller, the slower a restarted method
 * converges. */
static double shift = 0.0005;

/* Convection and diffusion on a grid, with a moving region of higher
 * conductivity and a rotating velocity: step t of a sequence. */
static void fill(sps_csr *A, int t)
{
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++) {
        double x = (double)(i % SIDE) / SIDE - 0.3 - 0.02 * t;
        double y = (double)(i / SIDE) / SIDE - 0.5;
        double here = 1 + 4 * exp(-30 * (x * x + y * y)), sum = shift;

        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++) {
            int64_t d = A->col[q] - i;
            double wind = 0.1 * cos(0.02 * t) * (d == 1) -
                          0.1 * sin(0.02 * t) * (d == SIDE);

            val[q] = d == 0 ? 0 : -here + wind;
            sum -= val[q];
        }
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] = sum;
    }
}

static sps_csr *grid(void)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), N, 5, ZOO_RANDOM, SPS_F64);

    ck_assert_int_eq(A->nrow, N);
    fill(A, 0);
    return A;
}

static void options(sps_options *o)
{
    sps_options_default(o);
    o->solver = "block_gcrodr";
    o->precond = "jacobi";
    o->nullspace = "none";
    o->restart = 20;
    o->recycle = 40;
}

/* Solves the sequence, with a new solver for each system unless `kept`. Returns
 * iterations and products with A. */
static void run(sps_context *ctx, bool kept, int64_t *iterations,
                int64_t *products)
{
    sps_csr *A = grid();
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result r = { .struct_size = sizeof r };
    sps_options o;

    options(&o);
    *iterations = *products = 0;
    ck_assert_int_eq(sps_operator_csr(ctx, A, K, &o, &op), SPS_OK);
    for (int t = 0; t < SYSTEMS; t++) {
        fill(A, t);
        ck_assert_int_eq(sps_operator_set_values(op, A->val, SPS_HOST),
                         SPS_OK);
        if (!s)
            ck_assert_int_eq(sps_solver_create(op, NULL, K, &o, &s), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, N, K, &B), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, N, K, &X), SPS_OK);
        ck_assert_int_eq(sps_block_random(B, (uint64_t)t), SPS_OK);
        ck_assert_int_eq(sps_solver_linear(s, B, X, &r), SPS_OK);
        ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
        ck_assert(r.worst_residual <= 1e-8);
        *iterations += r.iterations;
        *products += r.applies_A;
        sps_block_destroy(&B);
        sps_block_destroy(&X);
        if (!kept) sps_solver_destroy(&s);
    }
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    zoo_free(&A);
}

START_TEST(a_sequence_of_systems_saves_a_third_of_the_iterations)
{
    sps_context *ctx = runner_context();
    int64_t cold, warm, cold_products, warm_products;

    run(ctx, false, &cold, &cold_products);
    run(ctx, true, &warm, &warm_products);
    ck_assert_msg(warm <= 0.7 * (double)cold,
                  "%ld iterations in place of %ld", (long)warm, (long)cold);
    ck_assert_msg(warm_products <= 0.8 * (double)cold_products,
                  "%ld products in place of %ld", (long)warm_products,
                  (long)cold_products);
    sps_context_destroy(&ctx);
}
END_TEST

static int iterations_of(sps_context *ctx, const char *solver, int recycle)
{
    problem p;
    int iterations;

    problem_open(&p, ctx, grid(), K);
    options(&p.opt);
    p.opt.solver = solver;
    p.opt.recycle = recycle;
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    ck_assert(problem_honest(&p));
    iterations = p.result.iterations;
    problem_close(&p);
    return iterations;
}

START_TEST(a_deflated_restart_needs_fewer_iterations_than_a_plain_one)
{
    sps_context *ctx = runner_context();
    int plain, deflated;

    shift = 0.02;
    plain = iterations_of(ctx, "block_gmres", 0);
    deflated = iterations_of(ctx, "block_gcrodr", 40);
    ck_assert_msg(deflated <= 0.7 * plain, "%d, and %d without", deflated,
                  plain);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(any_number_of_kept_vectors_will_do)
{
    static const int recycle[] = { 0, 1, 2, 3, 7, 64, 256 };
    sps_context *ctx = runner_context();

    shift = 0.05;
    for (size_t i = 0; i < sizeof recycle / sizeof *recycle; i++)
        ck_assert_int_gt(iterations_of(ctx, "block_gcrodr", recycle[i]), 0);
    sps_context_destroy(&ctx);
}
END_TEST

/* NaN values, then good ones: nothing of the bad ones may remain. */
START_TEST(a_bad_system_in_the_sequence_does_not_spoil_the_next)
{
    sps_context *ctx = runner_context();
    sps_csr *A = grid();
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result r = { .struct_size = sizeof r };
    sps_options o;

    options(&o);
    o.precond = "none";
    ck_assert_int_eq(sps_operator_csr(ctx, A, K, &o, &op), SPS_OK);
    ck_assert_int_eq(sps_solver_create(op, NULL, K, &o, &s), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, N, K, &B), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, N, K, &X), SPS_OK);
    ck_assert_int_eq(sps_block_random(B, 1), SPS_OK);
    for (int t = 0; t < 3; t++) {
        fill(A, t);
        if (t == 1) ((double *)A->val)[777] = NAN;
        ck_assert_int_eq(sps_operator_set_values(op, A->val, SPS_HOST),
                         SPS_OK);
        ck_assert_int_eq(sps_solver_linear(s, B, X, &r), SPS_OK);
        ck_assert_int_eq(r.stop, t == 1 ? SPS_STOP_NOT_FINITE
                                        : SPS_STOP_CONVERGED);
    }
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_sequence_of_systems_saves_a_third_of_the_iterations),
    RUNNER_TEST(a_deflated_restart_needs_fewer_iterations_than_a_plain_one),
    RUNNER_TEST(any_number_of_kept_vectors_will_do),
    RUNNER_TEST(a_bad_system_in_the_sequence_does_not_spoil_the_next),
};

RUNNER_MAIN("recycling", tests)
