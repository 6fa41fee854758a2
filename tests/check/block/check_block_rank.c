/* SPDX-License-Identifier: BSD-3-Clause */
/* check_block_rank.c - rank decisions of block CG: a small search direction is
 * kept, a linearly dependent one is dropped for good. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/problem.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static void open_grid(problem *p, sps_context *ctx, int64_t n, int k)
{
    problem_open_grid(p, ctx, n, k, 0.01);
    p->opt.solver = "block_cg";
    p->opt.precond = "jacobi";
}

/* Eigenvalues from 1 to 1 / condition, uniformly spaced in their logarithm. */
static void open_spread(problem *p, sps_context *ctx, int64_t n, int k,
                        double condition, uint64_t seed)
{
    sps_csr *A = zoo_matrix(zoo_find("diagonal"), n, 5, ZOO_INTEGER, SPS_F64);
    double *val = A->val;

    for (int64_t i = 0; i < n; i++)
        val[i] = pow(condition, -(double)i / (double)(n - 1));
    problem_open(p, ctx, A, k);
    free(p->b);
    p->b = zoo_block(n, k, k, seed, ZOO_RANDOM);
    p->opt.solver = "block_cg";
    p->opt.precond = "none";
    p->opt.rtol = 1e-8;
}

static void solve(problem *p)
{
    ck_assert_msg(problem_solve(p) == SPS_OK, "%s",
                  sps_context_error(p->ctx));
    ck_assert_msg(p->result.stop == SPS_STOP_CONVERGED,
                  "%s after %d iterations, worst %g",
                  sps_stop_string(p->result.stop), p->result.iterations,
                  problem_worst(p));
    ck_assert(problem_honest(p));
}

/* 20 columns: the kernels that finish the reductions of such steps must not
 * modify those of the last step once there is a reason to stop. */
START_TEST(equal_right_hand_sides_take_one_direction)
{
    static const int width[] = { 8, 20 };
    sps_context *ctx = runner_context();
    problem p, one;
    int alone;

    open_grid(&one, ctx, 900, 1);
    solve(&one);
    alone = one.result.iterations;
    for (int t = 0; t < 2; t++) {
        const int k = width[t];

        open_grid(&p, ctx, 900, k);
        for (int i = 0; i < 900; i++)
            for (int j = 0; j < k; j++) p.b[k * i + j] = one.b[i] * (j + 1);
        solve(&p);
        ck_assert_int_eq(p.result.min_width, 1);
        ck_assert_int_le(abs(p.result.iterations - alone), 2);
        problem_close(&p);
    }
    problem_close(&one);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(more_right_hand_sides_than_rows_are_solved)
{
    static const int width[] = { 64, 200, 1024 };
    sps_context *ctx = runner_context();

    for (int w = 0; w < 3; w++) {
        problem p;
        open_grid(&p, ctx, 150, width[w]);
        solve(&p);
        ck_assert_int_le(p.result.min_width, 150);
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Late in the solve the residuals of all columns lie almost in one direction,
 * the other components are 1e-8 smaller; if those are dropped the block
 * converges as slowly as one vector (10000 iterations and more). */
START_TEST(a_direction_that_is_small_is_not_lost)
{
    sps_context *ctx = runner_context();
    problem p;

    for (uint64_t seed = 1; seed <= 4; seed++) {
        open_spread(&p, ctx, 400, 16, 1e8, seed);
        solve(&p);
        ck_assert_msg(p.result.iterations < 900, "draw %d: %d iterations",
                      (int)seed, p.result.iterations);
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* B = C W. */
static void multiply(const problem *C, const double *W, problem *B)
{
    for (int i = 0; i < B->A->nrow; i++)
        for (int j = 0; j < B->k; j++) {
            double sum = 0;

            for (int l = 0; l < C->k; l++)
                sum += C->b[C->k * i + l] * W[B->k * l + j];
            B->b[B->k * i + j] = sum;
        }
}

/* Sixteen columns from eight.  Rounding errors of the eight dependent ones
 * grow, and must not be taken for directions. */
START_TEST(dependent_right_hand_sides_take_no_longer_than_their_basis)
{
    sps_context *ctx = runner_context();
    double *W = zoo_block(8, 16, 16, 3, ZOO_RANDOM);

    for (uint64_t seed = 1; seed <= 4; seed++) {
        problem p, basis;

        open_spread(&basis, ctx, 400, 8, 1e7, seed);
        open_spread(&p, ctx, 400, 16, 1e7, seed);
        multiply(&basis, W, &p);
        solve(&basis);
        solve(&p);
        ck_assert_int_le(p.result.min_width, 8);
        ck_assert_msg(4 * p.result.iterations < 5 * basis.result.iterations,
                      "draw %d: %d iterations, their basis %d", (int)seed,
                      p.result.iterations, basis.result.iterations);
        problem_close(&p);
        problem_close(&basis);
    }
    free(W);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(equal_right_hand_sides_take_one_direction),
    RUNNER_TEST(more_right_hand_sides_than_rows_are_solved),
    RUNNER_TEST(a_direction_that_is_small_is_not_lost),
    RUNNER_TEST(dependent_right_hand_sides_take_no_longer_than_their_basis),
};

RUNNER_MAIN("block_rank", tests)
