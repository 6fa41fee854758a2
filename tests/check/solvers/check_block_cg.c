/* SPDX-License-Identifier: BSD-3-Clause */
/* check_block_cg.c - properties of block CG and of the driver. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/problem.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static void open_shifted_by(problem *p, sps_context *ctx, int64_t n, int k,
                            double shift)
{
    problem_open_grid(p, ctx, n, k, shift);
    p->opt.solver = "block_cg";
}

/* Converges slowly enough to show differences between methods. */
static void open_shifted(problem *p, sps_context *ctx, int64_t n, int k)
{
    open_shifted_by(p, ctx, n, k, 0.01);
    p->opt.precond = "jacobi";
}

static void solve(problem *p, sps_stop stop)
{
    ck_assert_msg(problem_solve(p) == SPS_OK, "%s",
                  sps_context_error(p->ctx));
    ck_assert_msg(p->result.stop == stop, "%s after %d iterations, worst %g",
                  sps_stop_string(p->result.stop), p->result.iterations,
                  problem_worst(p));
    ck_assert(problem_honest(p));
}

START_TEST(a_block_needs_fewer_iterations_than_its_columns)
{
    sps_context *ctx = runner_context();
    problem p, q;

    open_shifted(&p, ctx, 2500, 16);
    open_shifted(&q, ctx, 2500, 16);
    q.opt.solver = "cg";
    solve(&p, SPS_STOP_CONVERGED);
    solve(&q, SPS_STOP_CONVERGED);
    ck_assert_msg(4 * p.result.iterations < 3 * q.result.iterations,
                  "block %d, columns %d", p.result.iterations,
                  q.result.iterations);
    problem_close(&p);
    problem_close(&q);
    sps_context_destroy(&ctx);
}
END_TEST

/* At a condition of 16000 the estimated condition of the preconditioned matrix
 * (chebyshev.c) predicts 0.28 of the iterations at degree 4 and 0.14 at degree
 * 8. */
START_TEST(degrees_of_chebyshev_stand_for_iterations)
{
    sps_context *ctx = runner_context();
    const int64_t n = 10000;
    problem p;
    int plain, degree[] = { 4, 8 };
    double share[] = { 0.33, 0.19 };

    open_shifted_by(&p, ctx, n, 2, 5e-4);
    p.opt.precond = "jacobi";
    solve(&p, SPS_STOP_CONVERGED);
    plain = p.result.iterations;
    p.opt.precond = "chebyshev";
    for (int i = 0; i < 2; i++) {
        p.opt.degree = degree[i];
        memset(p.x, 0, sizeof(double) * 2 * n);
        solve(&p, SPS_STOP_CONVERGED);
        ck_assert_msg(p.result.iterations <= share[i] * plain,
                      "degree %d: %d iterations, jacobi %d", degree[i],
                      p.result.iterations, plain);
    }
    problem_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* On a GPU a small system is dominated by latency: no polynomial is used
 * there. */
START_TEST(a_degree_that_is_not_given_follows_from_the_condition)
{
    sps_context *ctx = runner_context();
    double shift[] = { 5e-4, 100 };

    for (int i = 0; i < 2; i++) {
        problem p;
        int plain, most;

        open_shifted_by(&p, ctx, 10000, 2, shift[i]);
        p.opt.precond = "jacobi";
        solve(&p, SPS_STOP_CONVERGED);
        plain = p.result.iterations;
        most = i == 0 && runner_place() == SPS_HOST ? plain / 5 : plain;
        p.opt.precond = "chebyshev";
        p.opt.degree = 0;
        memset(p.x, 0, sizeof(double) * 20000);
        solve(&p, SPS_STOP_CONVERGED);
        ck_assert_msg(p.result.iterations <= most, "shift %g: %d iterations, "
                      "jacobi %d", shift[i], p.result.iterations, plain);
        if (i == 1) ck_assert_int_eq(p.result.iterations, plain);
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Products with 16 columns cost less than the passes of the iterations saved;
 * with one column they do not, nor on a GPU where latency dominates. */
START_TEST(auto_takes_a_polynomial_where_products_are_cheap)
{
    sps_context *ctx = runner_context();
    const bool gpu = runner_place() == SPS_CUDA;
    const int64_t n = gpu && !runner_quick() ? 250000 : 2500;
    problem p;

    for (int k = gpu ? 16 : 1; k <= 16; k += 15) {
        const bool cheap = k == 16 && (!gpu || n > 2500);

        open_shifted_by(&p, ctx, n, k, 1e-4);
        solve(&p, SPS_STOP_CONVERGED);
        ck_assert_str_eq(p.result.precond, cheap ? "chebyshev" : "jacobi");
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(auto_takes_cg_for_one_column_and_block_cg_for_more)
{
    sps_context *ctx = runner_context();
    problem p;

    open_shifted(&p, ctx, 400, 1);
    p.opt.solver = "auto";
    solve(&p, SPS_STOP_CONVERGED);
    ck_assert_str_eq(p.result.solver, "cg");
    problem_close(&p);
    open_shifted(&p, ctx, 400, 2);
    p.opt.solver = "auto";
    solve(&p, SPS_STOP_CONVERGED);
    ck_assert_str_eq(p.result.solver, "block_cg");
    problem_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* Six easy columns (one eigenvector each), which converge at once, and two hard
 * ones. */
static void open_uneven(problem *p, sps_context *ctx)
{
    open_shifted(p, ctx, 900, 8);
    for (int i = 0; i < 900; i++)
        for (int j = 0; j < 6; j++)
            p->b[8 * i + j] = cos(M_PI * (j + 1) * (i % 30 + 0.5) / 30);
}

/* The hard columns must converge as they would alone. */
START_TEST(columns_that_converge_early_leave_the_work)
{
    sps_context *ctx = runner_context();
    problem p;
    int hard;

    open_uneven(&p, ctx);
    solve(&p, SPS_STOP_CONVERGED);
    hard = p.result.iterations;
    ck_assert_int_le(p.result.min_width, 2);
    problem_close(&p);
    open_shifted(&p, ctx, 900, 2);
    solve(&p, SPS_STOP_CONVERGED);
    ck_assert_int_le(hard, p.result.iterations + 5);
    problem_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* A callback operator that returns NaN after some calls. */
struct trap {
    const sps_csr *A;
    int calls, bad_at, code;
};

static int trap_apply(double alpha, const double *X, int64_t ldx, double beta,
                      double *Y, int64_t ldy, int64_t n, int k, void *stream,
                      void *data)
{
    struct trap *t = data;
    const double *val = t->A->val;

    (void)stream;
    if (++t->calls == t->bad_at && t->code > 0) return t->code;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;
            for (int64_t q = t->A->rowptr[i]; q < t->A->rowptr[i + 1]; q++)
                sum += val[q] * X[t->A->col[q] * ldx + j];
            if (t->calls == t->bad_at && t->code == 0 && i == 7) sum = NAN;
            Y[i * ldy + j] = alpha * sum + (beta != 0 ? beta * Y[i * ldy + j]
                                                      : 0);
        }
    return 0;
}

START_TEST(a_nan_from_the_operator_stops_at_once_and_keeps_the_best)
{
    static const char *solver[] = { "block_cg", "cg" };
    sps_context *ctx = runner_context();

    if (runner_place() == SPS_HOST)
        for (int t = 0; t < 2; t++) {
            problem p;
            struct trap trap = { .bad_at = 20 };
            open_shifted_by(&p, ctx, 900, 3, 0.01);
            p.opt.solver = solver[t];
            trap.A = p.A;
            ck_assert_int_eq(sps_operator_user(ctx, 900, trap_apply, &trap,
                                               SPS_SYMMETRIC, &p.op), SPS_OK);
            solve(&p, SPS_STOP_NOT_FINITE);
            ck_assert_int_lt(p.result.iterations, 20);
            for (int i = 0; i < 2700; i++) ck_assert(isfinite(p.x[i]));
            ck_assert(problem_worst(&p) <= 1);
            problem_close(&p);
        }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_failing_callback_ends_the_solve_with_its_code)
{
    sps_context *ctx = runner_context();

    if (runner_place() == SPS_HOST) {
        problem p;
        struct trap trap = { .bad_at = 12, .code = 17 };
        open_shifted_by(&p, ctx, 900, 3, 0.01);
        trap.A = p.A;
        ck_assert_int_eq(sps_operator_user(ctx, 900, trap_apply, &trap,
                                           SPS_SYMMETRIC, &p.op), SPS_OK);
        ck_assert_int_eq(problem_solve(&p), SPS_EUSER);
        ck_assert(strstr(sps_context_error(ctx), "17"));
        for (int i = 0; i < 2700; i++) ck_assert(isfinite(p.x[i]));
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

static double seen[4000];
static int seen_count;
static char seen_event[64];

static bool watch(const sps_progress *g, void *data)
{
    (void)data;
    if (seen_count < 4000) seen[seen_count++] = g->worst;
    if (g->event) strncpy(seen_event, g->event, sizeof seen_event - 1);
    return true;
}

/* An operator that is slightly perturbed: the recurrence residual drifts away
 * from the true residual, which the driver must detect. */
static int drift_apply(double alpha, const double *X, int64_t ldx, double beta,
                       double *Y, int64_t ldy, int64_t n, int k, void *stream,
                       void *data)
{
    struct trap *t = data;
    double wobble = t->calls < t->bad_at ? 1e-5 * (t->calls % 3) : 0;
    int code = trap_apply(alpha, X, ldx, beta, Y, ldy, n, k, stream, data);

    for (int j = 0; j < k; j++) Y[450 * ldy + j] *= 1 + wobble;
    return code;
}

START_TEST(a_recurrence_that_drifts_is_replaced_by_the_truth)
{
    sps_context *ctx = runner_context();

    if (runner_place() == SPS_HOST) {
        problem p;
        struct trap trap = { .bad_at = 40, .code = -1 };
        open_shifted_by(&p, ctx, 900, 3, 0.01);
        trap.A = p.A;
        p.opt.monitor = watch;
        ck_assert_int_eq(sps_operator_user(ctx, 900, drift_apply, &trap,
                                           SPS_SYMMETRIC, &p.op), SPS_OK);
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        ck_assert(problem_honest(&p));
        ck_assert_int_ge(p.result.restarts, 1);
        ck_assert_str_eq(seen_event, "residual replaced");
        problem_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_second_solve_with_the_same_solver_repeats_the_first)
{
    sps_context *ctx = runner_context();
    problem p;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result r = { .struct_size = sizeof r };
    double x[2][1600];

    open_shifted(&p, ctx, 400, 4);
    ck_assert_int_eq(sps_operator_csr(ctx, p.A, 4, NULL, &op), SPS_OK);
    ck_assert_int_eq(sps_solver_create(op, NULL, 4, &p.opt, &s), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, 400, 4, &B), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, 400, 4, &X), SPS_OK);
    ck_assert_int_eq(sps_block_random(B, 3), SPS_OK);
    for (int run = 0; run < 2; run++) {
        memset(x[run], 0, sizeof x[run]);
        ck_assert_int_eq(sps_block_set(X, 0, 4, x[run], 4, SPS_ROW_MAJOR,
                                       SPS_HOST), SPS_OK);
        ck_assert_int_eq(sps_solver_linear(s, B, X, &r), SPS_OK);
        ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
        ck_assert_int_eq(sps_block_get(X, 0, 4, x[run], 4, SPS_ROW_MAJOR,
                                       SPS_HOST), SPS_OK);
    }
    ck_assert(!memcmp(x[0], x[1], sizeof x[0]));
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    problem_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* One solve of the system; returns solution and iterations. */
static int solve_ahead(sps_context *ctx, const char *solver, int k, int every,
                       bool replay, double *x)
{
    problem p;
    int iterations;

    open_shifted(&p, ctx, 900, k);
    p.opt.solver = solver;
    p.opt.check_every = every;
    p.opt.replay = replay;
    solve(&p, SPS_STOP_CONVERGED);
    memcpy(x, p.x, sizeof(double) * 900 * (size_t)k);
    iterations = p.result.iterations;
    ck_assert_int_ge(p.result.applies_A, iterations);
    problem_close(&p);
    return iterations;
}

START_TEST(how_far_the_work_runs_ahead_changes_no_bit)
{
    static const char *solver[] = { "block_cg", "cg", "refinement" };
    static const int width[] = { 1, 3, 8, 16, 21, 40 };
    static const int every[] = { 3, 10, 16 };
    sps_context *ctx = runner_context();
    double *x = malloc(sizeof(double) * 900 * 40);
    double *y = malloc(sizeof(double) * 900 * 40);

    for (int t = 0; t < 3; t++)
        for (int w = 0; w < 6; w += runner_quick() ? 4 : 1) {
            int k = width[w];
            int alone = solve_ahead(ctx, solver[t], k, 1, false, x);
            for (int e = 0; e < 6; e++) {
                int n = solve_ahead(ctx, solver[t], k, every[e / 2], e % 2, y);
                ck_assert_int_eq(n, alone);
                ck_assert_msg(!memcmp(x, y, sizeof(double) * 900 * (size_t)k),
                              "%s, k = %d, check_every %d, replay %d",
                              solver[t], k, every[e / 2], e % 2);
            }
        }
    free(x);
    free(y);
    sps_context_destroy(&ctx);
}
END_TEST

/* On a GPU this ends the queued iterations. */
START_TEST(columns_leave_at_the_same_iteration_however_far_the_work_runs)
{
    static const int every[] = { 1, 3, 16 };
    sps_context *ctx = runner_context();
    problem p[3];

    for (int e = 0; e < 3; e++) {
        open_uneven(&p[e], ctx);
        p[e].opt.check_every = every[e];
        p[e].opt.replay = e > 0;
        solve(&p[e], SPS_STOP_CONVERGED);
        ck_assert_int_le(p[e].result.min_width, 2);
        ck_assert_int_eq(p[e].result.iterations, p[0].result.iterations);
        ck_assert(!memcmp(p[e].x, p[0].x, sizeof(double) * 900 * 8));
    }
    for (int e = 0; e < 3; e++) problem_close(&p[e]);
    sps_context_destroy(&ctx);
}
END_TEST

/* Iterations that were queued when the limit was reached are counted, and the
 * monitor is called for each before the solve ends. */
struct counted {
    int calls, last, stop_at;
};

static bool count_calls(const sps_progress *g, void *data)
{
    struct counted *c = data;

    ck_assert_int_eq(g->iteration, c->calls++);
    c->last = g->iteration;
    return g->iteration < c->stop_at;
}

START_TEST(iterations_taken_ahead_are_counted)
{
    static const char *solver[] = { "block_cg", "cg" };
    sps_context *ctx = runner_context();

    for (int t = 0; t < 2; t++)
        for (int stop = 5; stop < 40; stop += runner_quick() ? 21 : 7) {
            struct counted c = { .stop_at = stop };
            problem p;
            open_shifted(&p, ctx, 2500, 4);
            p.opt.solver = solver[t];
            p.opt.monitor = count_calls;
            p.opt.monitor_data = &c;
            solve(&p, SPS_STOP_INTERRUPTED);
            ck_assert_int_eq(c.last, stop);
            ck_assert_int_ge(p.result.iterations, stop);
            ck_assert_int_lt(p.result.iterations, stop + p.opt.check_every);
            problem_close(&p);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* y_i = x_i + c x_(i+1), c != 0: not symmetric. */
static int shear(double alpha, const double *X, int64_t ldx, double beta,
                 double *Y, int64_t ldy, int64_t n, int k, void *stream,
                 void *data)
{
    const double c = *(const double *)data;

    (void)alpha;
    (void)beta;
    (void)stream;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++)
            Y[i * ldy + j] = X[i * ldx + j] +
                             (i + 1 < n ? c * X[(i + 1) * ldx + j] : 0);
    return 0;
}

/* In one column, in several, and where all columns are the same one. */
START_TEST(a_preconditioner_that_is_not_symmetric_is_told)
{
    static const struct { const char *solver; int k; bool same; } way[] = {
        { "cg", 1, false }, { "cg", 3, false }, { "block_cg", 4, false },
        { "block_cg", 4, true }, { "minres", 2, false },
        { "gmres", 2, false },
    };

    if (fixture_place() != SPS_HOST) runner_leave_out("a callback on the host");
    for (size_t t = 0; t < sizeof way / sizeof *way; t++)
        for (int skew = 0; skew < 2; skew++) {
            sps_context *ctx = runner_context();
            double c = skew ? 0.3 : 0;
            bool told;
            problem p;

            problem_open_grid(&p, ctx, 900, way[t].k, 0.01);
            for (int i = 0; way[t].same && i < 900 * p.k; i++)
                p.b[i] = p.b[i / p.k * p.k];
            p.opt.solver = way[t].solver;
            p.opt.max_iterations = 2000;
            OK(ctx, sps_precond_user(ctx, 900, shear, &c, &p.M));
            OK(ctx, problem_solve(&p));
            ck_assert(problem_honest(&p));
            ck_assert(skew || p.result.stop == SPS_STOP_CONVERGED);
            told = fixture_noted(ctx, "preconditioner is not symmetric");
            ck_assert_msg(told == (skew && strcmp(way[t].solver, "gmres")),
                          "%s, %d columns, skew %d", way[t].solver, p.k, skew);
            sps_precond_destroy(&p.M);
            problem_close(&p);
            sps_context_destroy(&ctx);
        }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_preconditioner_that_is_not_symmetric_is_told),
    RUNNER_TEST(a_block_needs_fewer_iterations_than_its_columns),
    RUNNER_TEST(degrees_of_chebyshev_stand_for_iterations),
    RUNNER_TEST(a_degree_that_is_not_given_follows_from_the_condition),
    RUNNER_TEST(auto_takes_a_polynomial_where_products_are_cheap),
    RUNNER_TEST(auto_takes_cg_for_one_column_and_block_cg_for_more),
    RUNNER_TEST(columns_that_converge_early_leave_the_work),
    RUNNER_TEST(a_nan_from_the_operator_stops_at_once_and_keeps_the_best),
    RUNNER_TEST(a_failing_callback_ends_the_solve_with_its_code),
    RUNNER_TEST(a_recurrence_that_drifts_is_replaced_by_the_truth),
    RUNNER_TEST(a_second_solve_with_the_same_solver_repeats_the_first),
    RUNNER_TEST(how_far_the_work_runs_ahead_changes_no_bit),
    RUNNER_TEST(
        columns_leave_at_the_same_iteration_however_far_the_work_runs),
    RUNNER_TEST(iterations_taken_ahead_are_counted),
};

RUNNER_MAIN("block_cg", tests)
