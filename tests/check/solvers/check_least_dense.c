/* SPDX-License-Identifier: BSD-3-Clause */
/* check_least_dense.c - solver auto for least squares where lsmr needs too many
 * steps: dense factors with their rank, solutions of least norm, and when they
 * are not used. */
#include <time.h>

#include "tests/check/solvers/least_fixture.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/runner.h"

enum { RANK = 30 };

/* Rank 30, singular values over about seven orders of magnitude. */
static least hard(sps_context *ctx, int m, int n, int k)
{
    least p = least_new(ctx, m, n, k);
    uint64_t state = 11;
    double *left = malloc((size_t)(m * RANK) * sizeof *left);
    double *right = malloc((size_t)(n * RANK) * sizeof *right);

    for (int i = 0; i < m * RANK; i++)
        left[i] = least_draw(&state) * pow(10, -6.0 * (i % RANK) / RANK);
    for (int i = 0; i < n * RANK; i++) right[i] = least_draw(&state);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int r = 0; r < RANK; r++)
                p.a[i * n + j] += left[i * RANK + r] * right[j * RANK + r];
    for (int i = 0; i < m * k; i++) p.b[i] = least_draw(&state);
    p.opt.rtol = 1e-8;
    free(left);
    free(right);
    return p;
}

static void must_be_dense(least *p, const char *what)
{
    least_must_converge(p, what);
    ck_assert_str_eq(p->result.solver, "dense_qr");
    ck_assert(fixture_noted(p->ctx, "method lsmr stopped"));
}

START_TEST(deficient_matrices_end_with_the_shortest_solution)
{
    static const int shape[][2] = { { 60, 50 }, { 50, 60 }, { 200, 31 } };

    for (int i = 0; i < 3; i++) {
        sps_context *ctx = runner_context();
        least p = hard(ctx, shape[i][0], shape[i][1], 5);
        double cond, *x;

        must_be_dense(&p, "deficient");
        ck_assert(fixture_noted(ctx, "rank 30 of the"));
        x = least_lapack(&p, 1e-11, &cond);
        ck_assert(cond > 1e5 && cond < 1e9);
        ck_assert_double_le(least_distance(&p, x), 1e-13 * cond);
        free(x);
        least_drop(&p);
        fixture_close(&ctx);
    }
}
END_TEST

/* x = x_0 + A^+ (b - A x_0). */
START_TEST(a_guess_is_changed_as_little_as_possible)
{
    sps_context *ctx = runner_context();
    least p = hard(ctx, 60, 50, 3), q = hard(ctx, 60, 50, 3);
    uint64_t state = 5;
    double cond, *x;

    for (int i = 0; i < 50 * 3; i++) p.x[i] = least_draw(&state);
    for (int i = 0; i < 60; i++)
        for (int j = 0; j < 3; j++)
            for (int c = 0; c < 50; c++)
                q.b[i * 3 + j] -= p.a[i * 50 + c] * p.x[c * 3 + j];
    x = least_lapack(&q, 1e-11, &cond);
    for (int i = 0; i < 50 * 3; i++) x[i] += p.x[i];
    must_be_dense(&p, "a guess");
    ck_assert_double_le(least_distance(&p, x), 1e-13 * cond);
    free(x);
    least_drop(&p);
    least_drop(&q);
    fixture_close(&ctx);
}
END_TEST

/* The numbers are checked by least_must_be_true. */
START_TEST(damped_and_square_ones_do_so_too)
{
    sps_context *ctx = runner_context();

    for (int n = 40; n <= 60; n += 10) {
        least p = hard(ctx, 50, n, 4);

        p.opt.damp = 1e-3;
        must_be_dense(&p, "damped");
        ck_assert_int_eq(p.column[0], SPS_STOP_CONVERGED_LEAST_SQUARES);
        ck_assert(strstr(sps_stop_string(p.column[0]), "damping"));
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

static void must_be_lsmr(least *p, sps_stop stop)
{
    OK(p->ctx, least_solve(p));
    ck_assert_str_eq(p->result.solver, "lsmr");
    ck_assert_int_eq(p->result.stop, stop);
}

START_TEST(the_caller_s_limits_and_options_hold)
{
    sps_context *ctx = runner_context();
    least p = hard(ctx, 60, 50, 3);

    p.opt.max_iterations = 40;
    must_be_lsmr(&p, SPS_STOP_MAX_ITERATIONS);
    p.opt.max_iterations = 70;
    p.opt.dense = "never";
    must_be_lsmr(&p, SPS_STOP_MAX_ITERATIONS);
    p.opt.dense = "auto";
    p.opt.precond = "jacobi";
    must_be_lsmr(&p, SPS_STOP_MAX_ITERATIONS);
    p.opt.precond = "none";
    must_be_dense(&p, "70 iterations");
    least_drop(&p);
    fixture_close(&ctx);
}
END_TEST

/* Leaves no time for what follows the 50th iteration. */
static bool linger(const sps_progress *g, void *data)
{
    const double left = 0.9985 - g->seconds;
    const struct timespec nap = { 0, (long)(1e9 * fmax(0, left)) };

    (void)data;
    if (g->iteration == 50) nanosleep(&nap, NULL);
    return true;
}

/* They are predicted to take 18 ms. */
START_TEST(factors_for_which_no_time_is_left_are_not_begun)
{
    sps_context *ctx = runner_context();
    least p = hard(ctx, 300, 300, 1);

    p.opt.max_seconds = 1;
    p.opt.damp = 1e-6;
    p.opt.monitor = linger;
    must_be_lsmr(&p, SPS_STOP_MAX_TIME);
    least_drop(&p);
    fixture_close(&ctx);
}
END_TEST

/* Solves p with `allowed` allocations after those of the solver. */
static sps_status solve_with(least *p, fail_alloc *memory, long allowed)
{
    sps_block *B = fixture_block(p->ctx, p->m, p->k, p->b, p->k);
    sps_block *X = fixture_block(p->ctx, p->n, p->k, p->x, p->k);
    sps_csr *A = least_csr(p);
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_status st;

    OK(p->ctx, sps_operator_csr(p->ctx, A, p->k, &p->opt, &op));
    OK(p->ctx, sps_solver_create(op, NULL, p->k, &p->opt, &s));
    p->result = (sps_result){ .struct_size = sizeof p->result };
    fail_alloc_allow(memory, allowed);
    st = sps_solver_linear(s, B, X, &p->result);
    fail_alloc_allow(memory, -1);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_csr_destroy(p->ctx, &A);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    return st;
}

START_TEST(without_memory_lsmr_goes_on)
{
    fail_alloc memory = { .allowed = -1 };
    sps_context_options o;
    sps_context *ctx = NULL;
    bool done = false;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.host = fail_alloc_host(&memory);
    ck_assert(sps_context_create(&o, &ctx, NULL) == SPS_OK);
    for (long n = 0; n < 40 && !done; n++) {
        least p = hard(ctx, 60, 50, 3);

        p.opt.max_iterations = 300;
        ck_assert_int_eq(solve_with(&p, &memory, n), SPS_OK);
        done = !strcmp(p.result.solver, "dense_qr");
        ck_assert_int_eq(p.result.iterations >= 300, !done);
        ck_assert_int_eq(p.result.stop > 0, done);
        least_drop(&p);
    }
    ck_assert(done);
    sps_context_destroy(&ctx);
    ck_assert(memory.live == 0 && memory.mismatches == 0);
}
END_TEST

START_TEST(what_is_not_finite_is_told)
{
    sps_context *ctx = runner_context();
    least p = hard(ctx, 60, 50, 3);

    p.a[7] = NAN;
    OK(ctx, least_solve(&p));
    for (int j = 0; j < 3; j++)
        ck_assert_int_eq(p.column[j], SPS_STOP_NOT_FINITE);
    least_drop(&p);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(deficient_matrices_end_with_the_shortest_solution),
    RUNNER_TEST(a_guess_is_changed_as_little_as_possible),
    RUNNER_TEST(damped_and_square_ones_do_so_too),
    RUNNER_TEST(the_caller_s_limits_and_options_hold),
    RUNNER_TEST(factors_for_which_no_time_is_left_are_not_begun),
    RUNNER_TEST(without_memory_lsmr_goes_on),
    RUNNER_TEST(what_is_not_finite_is_told),
};
RUNNER_MAIN("least_dense", tests)
