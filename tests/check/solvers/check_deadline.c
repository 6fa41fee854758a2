/* SPDX-License-Identifier: BSD-3-Clause */
/* check_deadline.c - set-up phases after the time limit has expired.  Here it
 * has expired from the start, so that nothing depends on the speed of the
 * machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/deadline.h"
#include "core/timer.h"
#include "driver/precond.h"
#include "driver/linear.h"
#include "plan/planner.h"
#include "tests/problems/problem.h"
#include "tests/support/callback.h"
#include "tests/support/runner.h"

#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))
#define OVER 1e-9        /* seconds */

static const char *const long_ones[] = { "block_jacobi", "ilu0", "ic0", "ilut",
                                         "fsai", "isai", "amg" };
enum { LONG_ONES = sizeof long_ones / sizeof *long_ones };

static void count_items(void *data, int64_t first, int64_t last)
{
    spsi_team_add(data, last - first);
}

START_TEST(long_work_ends_behind_the_piece_at_hand)
{
    sps_context *ctx = runner_context();
    const int64_t ns = 10 * (int64_t)SPS_DEADLINE_PIECE - 1;
    int64_t done = 0;
    double before;

    ck_assert_int_eq(spsi_team_run_in_time(ctx, 1003, ns, count_items, &done,
                                           "work"), SPS_OK);
    ck_assert_int_eq(done, 1003);
    done = 0;
    before = spsi_deadline_begin(ctx, OVER);
    ck_assert(before == 0 && spsi_deadline_begin(ctx, 100) == ctx->deadline);
    ck_assert_int_eq(spsi_team_run_in_time(ctx, 1000, ns, count_items, &done,
                                           "work"), SPS_EUNFIT);
    ck_assert_int_eq(done, 100);
    ck_assert(strstr(sps_context_error(ctx), "work: not finished"));
    spsi_deadline_end(ctx, before);
    ck_assert(!spsi_expired(ctx));
    sps_cancel(ctx, true);
    ck_assert(spsi_expired(ctx));
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(preconditioners_are_given_up)
{
    sps_context *ctx = runner_context();

    for (int i = 0; i < LONG_ONES; i++) {
        sps_operator *op = NULL;
        sps_precond *M = NULL;
        problem p;

        problem_open_grid(&p, ctx, 900, 2, 0);
        OK(ctx, sps_operator_csr(ctx, p.A, 2, NULL, &op));
        p.opt.precond = long_ones[i];
        p.opt.max_seconds = OVER;
        ck_assert_msg(sps_precond_create(op, 2, &p.opt, &M) == SPS_EUNFIT,
                      "%s", long_ones[i]);
        ck_assert_ptr_null(M);
        p.opt.max_seconds = 0;
        OK(ctx, sps_precond_create(op, 2, &p.opt, &M));
        sps_precond_destroy(&M);
        sps_operator_destroy(&op);
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Jacobi is used instead, and one iteration is made; a step of auto gets at
 * least 1 ms. */
START_TEST(a_solve_ends_by_its_limit)
{
    static const char *const methods[] = { "cg", "gmres", "auto" };
    sps_context *ctx = runner_context();

    for (int i = 0; i < 3 * LONG_ONES; i++) {
        problem p;

        problem_open_grid(&p, ctx, 900, 2, 0);
        p.opt.solver = methods[i % 3];
        p.opt.precond = long_ones[i / 3];
        p.opt.max_seconds = OVER;
        p.opt.rtol = 1e-300;
        OK(ctx, problem_solve(&p));
        ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_TIME);
        ck_assert(p.result.worst_residual < 1);
        if (i % 3 < 2) {
            ck_assert_int_eq(p.result.iterations, 1);
            ck_assert_str_eq(p.result.precond, "jacobi");
        }
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* The block is verified as it is then. */
START_TEST(a_search_for_pairs_ends_by_its_limit)
{
    sps_context *ctx = runner_context();

    for (int i = 0; i < LONG_ONES; i++) {
        sps_operator *op = NULL;
        sps_solver *s = NULL;
        sps_block *X = NULL;
        sps_eigen_result r = { .struct_size = sizeof r };
        double lambda[2];
        problem p;

        problem_open_grid(&p, ctx, 900, 2, 0);
        OK(ctx, sps_operator_csr(ctx, p.A, 2, NULL, &op));
        OK(ctx, sps_block_create(ctx, 900, 2, &X));
        p.opt.solver = "lobpcg";
        p.opt.precond = long_ones[i];
        p.opt.max_seconds = OVER;
        OK(ctx, sps_solver_create_eigen(op, NULL, NULL, 2, &p.opt, &s));
        OK(ctx, sps_solver_eigen(s, X, lambda, &r));
        ck_assert_int_eq(r.stop, SPS_STOP_MAX_TIME);
        ck_assert_str_eq(r.precond, "jacobi");
        ck_assert(isfinite(lambda[0]) && isfinite(r.bound[0]));
        ck_assert(r.seconds.setup > 0);
        sps_solver_destroy(&s);
        sps_block_destroy(&X);
        sps_operator_destroy(&op);
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(new_values_in_a_solve_are_too)
{
    sps_context *ctx = runner_context();
    sps_block *B = NULL, *X = NULL;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    problem p;

    problem_open_grid(&p, ctx, 900, 2, 0);
    OK(ctx, sps_operator_csr(ctx, p.A, 2, NULL, &op));
    OK(ctx, sps_block_create(ctx, 900, 2, &B));
    OK(ctx, sps_block_create(ctx, 900, 2, &X));
    OK(ctx, sps_block_random(B, 1));
    p.opt.solver = "cg";
    p.opt.precond = "fsai";
    OK(ctx, sps_solver_create(op, NULL, 2, &p.opt, &s));
    OK(ctx, sps_operator_set_values(op, p.A->val, SPS_HOST));
    ((sps_linear *)s->of)->opt.max_seconds = OVER;
    p.result.struct_size = sizeof p.result;
    OK(ctx, sps_solver_linear(s, B, X, &p.result));
    ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_TIME);
    ck_assert_str_eq(p.result.precond, "jacobi");
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    problem_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* The first kernel that was timed is chosen, and this is not stored as
 * wisdom. */
START_TEST(timing_of_kernels_ends)
{
    sps_context *ctx = runner_context();
    problem p;

    for (int late = 0; late < 2; late++) {
        sps_operator *op = NULL;
        int timed = 0;

        problem_open_grid(&p, ctx, 900, 8, 0);
        p.opt.kernel = "measure";
        p.opt.max_seconds = late ? OVER : 0;
        OK(ctx, sps_operator_csr(ctx, p.A, 8, &p.opt, &op));
        for (int i = 0; i < op->choice.bids[0].count; i++)
            timed += op->choice.bids[0].bid[i].measured > 0;
        if (late) ck_assert_int_eq(timed, 1);
        else ck_assert_int_gt(timed, 1);
        sps_operator_destroy(&op);
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

enum { N = 200, K = 8 };
#define LIMIT 1.0            /* seconds */

typedef struct ring {
    bool slow;
    int pairs;               /* products with two columns */
} ring;

/* The Laplacian of a ring. */
static int apply_ring(double alpha, const double *X, int64_t ldx, double beta,
                      double *Y, int64_t ldy, int64_t n, int k, void *stream,
                      void *data)
{
    ring *r = data;

    (void)stream;
    if (r->slow) nanosleep(&(struct timespec){ 0, 600000000 }, NULL);
    r->pairs += k == 2;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            const double *x = X + j;
            double *y = &Y[i * ldy + j], old = beta == 0 ? 0 : beta * *y;

            *y = alpha * (2 * x[i * ldx] - x[(i + 1) % n * ldx] -
                          x[(i + n - 1) % n * ldx]) + old;
        }
    return 0;
}

/* A solver whose set-up takes 1.2 seconds: it verifies its null space. */
static sps_solver *slowly_made(sps_context *ctx, const callback *c,
                               double seconds, sps_operator **op_p)
{
    sps_solver *s = NULL;
    sps_block *ones = NULL;
    sps_options o;

    OK(ctx, sps_operator_user(ctx, N, callback_anywhere, (void *)c,
                              SPS_SYMMETRIC, op_p));
    OK(ctx, sps_block_create(ctx, N, 1, &ones));
    OK(ctx, spsi_fill(ones, 1));
    sps_options_default(&o);
    o.solver = "cg";
    o.nullspace_basis = ones;
    o.max_seconds = seconds;
    ((ring *)c->data)->slow = true;
    OK(ctx, sps_solver_create(*op_p, NULL, K, &o, &s));
    ((ring *)c->data)->slow = false;
    sps_block_destroy(&ones);
    return s;
}

/* The first solve has the time that the set-up left, and an estimate of ||A||
 * from two columns; the second has the whole limit: a busy machine may need all
 * of it, but it must not stop before. */
START_TEST(a_set_up_counts_for_the_first_solve)
{
    sps_context *ctx = runner_context();

    for (int limited = 0; limited < 2; limited++) {
        ring r = { false, 0 };
        callback c = { ctx, apply_ring, &r };
        sps_operator *op = NULL;
        sps_solver *s = slowly_made(ctx, &c, limited ? LIMIT : 0, &op);
        sps_block *B = NULL, *X = NULL;

        OK(ctx, sps_block_create(ctx, N, K, &B));
        OK(ctx, sps_block_create(ctx, N, K, &X));
        OK(ctx, sps_block_random(B, 1));
        OK(ctx, sps_solver_project(s, B));
        for (int solve = 0; solve < 2; solve++) {
            sps_result result = { .struct_size = sizeof result };
            const double begin = spsi_now();

            OK(ctx, spsi_fill(X, 0));
            OK(ctx, sps_solver_linear(s, B, X, &result));
            ck_assert(solve ? result.seconds.setup < 0.6
                            : result.seconds.setup > 0.6);
            if (limited && solve == 0) {
                ck_assert_int_eq(result.stop, SPS_STOP_MAX_TIME);
                ck_assert_int_eq(result.iterations, 1);
            } else if (!limited || spsi_now() - begin < LIMIT) {
                ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
            }
        }
        ck_assert_int_eq(r.pairs > 0, limited);
        sps_solver_destroy(&s);
        sps_operator_destroy(&op);
        sps_block_destroy(&B);
        sps_block_destroy(&X);
    }
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(long_work_ends_behind_the_piece_at_hand),
    RUNNER_TEST(preconditioners_are_given_up),
    RUNNER_TEST(a_solve_ends_by_its_limit),
    RUNNER_TEST(a_search_for_pairs_ends_by_its_limit),
    RUNNER_TEST(new_values_in_a_solve_are_too),
    RUNNER_TEST(timing_of_kernels_ends),
    RUNNER_TEST(a_set_up_counts_for_the_first_solve),
};
RUNNER_MAIN("deadline", tests)
