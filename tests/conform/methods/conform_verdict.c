/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_verdict.c - what every listed solver reports and obeys: limits,
 * monitors, norms and scalings, tolerances that cannot be reached, bitwise
 * reproducibility. */
#include "tests/support/methods.h"

START_TEST(an_inconsistent_singular_system_never_converges)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_LAPLACIAN), 3);
        p.opt.solver = name;
        p.opt.nullspace = "none";
        p.opt.max_iterations = 3000;
        solve_ok(&p);
        if (solves_least_squares(name))     /* but for those who mean that */
            ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED_LEAST_SQUARES);
        else
            ck_assert_int_lt(p.result.stop, 0);
        ck_assert_int_eq(p.result.columns_converged,
                         solves_least_squares(name) ? 3 : 0);
        ck_assert(problem_honest(&p));
        for (int i = 0; i < 1200; i++) ck_assert(isfinite(p.x[i]));
        ck_assert_msg(problem_worst(&p) <= 1 + 1e-9, "%s: best iterate lost: "
                      "%g", name, problem_worst(&p));
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_broken_right_hand_side_does_not_spoil_the_others)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 4);
        p.b[17 * 4 + 2] = NAN;
        p.x[5 * 4 + 1] = INFINITY;
        p.opt.solver = name;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_NOT_FINITE);
        ck_assert_int_eq(p.result.columns_converged, 3);
        for (int j = 0; j < 4; j++)
            if (j != 2) ck_assert(p.residual[j] <= 1.000001e-10);
        for (int i = 0; i < 1600; i++) ck_assert(isfinite(p.x[i]));
        problem_close(&p);
    }
}
END_TEST

START_TEST(limits_end_a_solve_with_the_best_iterate)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        double best = 1;

        problem_open(&p, ctx, zoo("grid5", 2500, ZOO_LAPLACIAN), 4);
        p.opt.solver = name;
        for (int m = 1; m < 7; m++) {
            p.opt.max_iterations = m;
            memset(p.x, 0, sizeof(double) * 10000);
            solve_ok(&p);
            best = fmin(best, p.residual[0]);
        }
        p.opt.max_iterations = 7;
        memset(p.x, 0, sizeof(double) * 10000);
        solve_ok(&p);
        ck_assert_msg(p.residual[0] <= 1.05 * best, "%s: %g, was %g", name,
                      p.residual[0], best);
        ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_ITERATIONS);
        ck_assert_int_eq(p.result.iterations, 7);
        p.opt.max_iterations = 0;
        memset(p.x, 0, sizeof(double) * 10000);
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_ITERATIONS);
        p.opt.max_iterations = 1000000;
        p.opt.max_seconds = 1e-9;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_TIME);
        problem_close(&p);
    }
}
END_TEST

static bool stop_at_three(const sps_progress *g, void *data)
{
    int *calls = data;

    ck_assert_int_eq(g->iteration, *calls);
    ck_assert_int_eq(g->k, 4);
    ck_assert(g->median <= g->worst);
    ++*calls;
    return g->iteration < 3;
}

START_TEST(a_monitor_sees_each_iteration_and_may_stop)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        int calls = 0;
        problem_open(&p, ctx, zoo("grid5", 2500, ZOO_SPD), 4);
        p.opt.solver = name;
        p.opt.monitor = stop_at_three;
        p.opt.monitor_data = &calls;
        p.opt.check_every = 1;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
        ck_assert_int_eq(p.result.iterations, 3);
        ck_assert_int_eq(calls, 4);

        /* Several iterations may be queued before the monitor is called for the
         * first of them; how many depends on timing.  X is that of the last. */
        calls = 0;
        p.opt.check_every = 16;
        memset(p.x, 0, sizeof(double) * 10000);
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
        ck_assert_int_ge(p.result.iterations, 3);
        ck_assert_int_lt(p.result.iterations, 3 + 16);
        ck_assert_int_eq(calls, 4);
        problem_close(&p);
    }
}
END_TEST

START_TEST(cancel_stops_a_solve)
{
    problem p;

    problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 4);
    sps_cancel(ctx, true);
    solve_ok(&p);
    ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
    sps_cancel(ctx, false);
    solve_ok(&p);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    problem_close(&p);
}
END_TEST

START_TEST(units_of_the_right_hand_sides_do_not_matter)
{
    static const int exponent[] = { 0, 40, -40, 500, -480 };
    const char *name;

    FOR_SOLVERS(name) {
        double *x = NULL;
        int iterations = 0;
        for (int e = 0; e < 5; e++) {
            problem p;
            problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 3);
            for (int i = 0; i < 1200; i++) p.b[i] = ldexp(p.b[i], exponent[e]);
            p.opt.solver = name;
            must_converge(&p, "scaled b");
            if (e == 0) {
                x = malloc(1200 * sizeof *x);
                memcpy(x, p.x, 1200 * sizeof *x);
                iterations = p.result.iterations;
            }
            ck_assert_int_eq(p.result.iterations, iterations);
            for (int i = 0; i < 1200; i++)
                ck_assert(p.x[i] == ldexp(x[i], exponent[e]));
            problem_close(&p);
        }
        free(x);
    }
}
END_TEST

START_TEST(units_of_the_matrix_do_not_matter)
{
    static const int exponent[] = { 0, 60, -60 };
    const char *name;

    FOR_SOLVERS(name) {
        int iterations = 0;
        for (int e = 0; e < 3; e++) {
            problem p;
            double *val;
            problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 3);
            val = p.A->val;
            for (int64_t q = 0; q < p.A->nnz; q++)
                val[q] = ldexp(val[q], exponent[e]);
            p.opt.solver = name;
            must_converge(&p, "scaled A");
            if (e == 0) iterations = p.result.iterations;
            ck_assert_int_eq(p.result.iterations, iterations);
            problem_close(&p);
        }
    }
}
END_TEST

START_TEST(columns_of_very_different_size_converge_each_by_its_own_measure)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 900, ZOO_SPD), 13);
        for (int i = 0; i < 900; i++)
            for (int j = 0; j < 13; j++) p.b[i * 13 + j] *= pow(10, -j);
        p.opt.solver = name;
        must_converge(&p, "1 .. 1e-12");
        problem_close(&p);
    }
}
END_TEST

static double spread(int64_t i)
{
    return pow(10, -12.0 * (double)i / 299);
}

START_TEST(an_unreachable_tolerance_is_admitted)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("tridiagonal", 300, ZOO_LAPLACIAN), 4);
        double *val = p.A->val;      /* D T D: condition about 1e12 and more */
        for (int64_t i = 0; i < 300; i++)
            for (int64_t q = p.A->rowptr[i]; q < p.A->rowptr[i + 1]; q++)
                val[q] = (val[q] + (p.A->col[q] == i ? 1e-6 : 0)) *
                         sqrt(spread(i) * spread(p.A->col[q]));
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.rtol = 1e-15;
        p.opt.max_iterations = 4000;
        solve_ok(&p);
        ck_assert_msg(problem_honest(&p), "%s lies: %d columns claimed, "
                      "worst %g", name, p.result.columns_converged,
                      problem_worst(&p));
        problem_close(&p);
    }
}
END_TEST

START_TEST(norms_mean_what_they_say)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        double size = 0;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 2);
        p.opt.solver = name;
        p.opt.norm = SPS_NORM_ABSOLUTE;
        p.opt.rtol = 0;
        p.opt.atol = 1e-3;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        for (int i = 0; i < 400; i++) size += p.b[2 * i] * p.b[2 * i];
        ck_assert(p.residual[0] * sqrt(size) <= 1e-3 * (1 + 1e-9));
        ck_assert(p.residual[0] * sqrt(size) >= 1e-7);
        p.opt.norm = SPS_NORM_START;   /* relative to the residual here */
        p.opt.rtol = 1e-2;
        p.opt.atol = 0;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        ck_assert(p.residual[0] * sqrt(size) <= 1e-5 * (1 + 1e-9));
        p.opt.norm = SPS_NORM_BACKWARD;
        p.opt.rtol = 1e-14;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        ck_assert(p.result.worst_backward <= 1e-14);
        problem_close(&p);
    }
}
END_TEST

START_TEST(the_same_solve_gives_the_same_bits)
{
    const char *name;

    FOR_SOLVERS(name) {
        double *x = NULL;
        for (int run = 0; run < 3; run++) {
            problem p;
            problem_open(&p, ctx, zoo("grid7", 1000, ZOO_SPD), 8);
            p.opt.solver = name;
            must_converge(&p, "repeat");
            if (!x) {
                x = malloc(8000 * sizeof *x);
                memcpy(x, p.x, 8000 * sizeof *x);
            }
            ck_assert(!memcmp(x, p.x, 8000 * sizeof *x));
            problem_close(&p);
        }
        free(x);
    }
}
END_TEST

START_TEST(permuted_right_hand_sides_give_permuted_solutions)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p, q;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 5);
        problem_open(&q, ctx, zoo("grid5", 400, ZOO_SPD), 5);
        for (int i = 0; i < 400; i++)
            for (int j = 0; j < 5; j++) q.b[5 * i + j] = p.b[5 * i + 4 - j];
        p.opt.solver = q.opt.solver = name;
        must_converge(&p, "plain");
        must_converge(&q, "permuted");
        for (int i = 0; i < 400; i++)
            for (int j = 0; j < 5; j++)
                ck_assert(fabs(q.x[5 * i + j] - p.x[5 * i + 4 - j]) < 1e-7);
        problem_close(&p);
        problem_close(&q);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(an_inconsistent_singular_system_never_converges),
    RUNNER_TEST(a_broken_right_hand_side_does_not_spoil_the_others),
    RUNNER_TEST(limits_end_a_solve_with_the_best_iterate),
    RUNNER_TEST(a_monitor_sees_each_iteration_and_may_stop),
    RUNNER_TEST(cancel_stops_a_solve),
    RUNNER_TEST(units_of_the_right_hand_sides_do_not_matter),
    RUNNER_TEST(units_of_the_matrix_do_not_matter),
    RUNNER_TEST(
        columns_of_very_different_size_converge_each_by_its_own_measure),
    RUNNER_TEST(an_unreachable_tolerance_is_admitted),
    RUNNER_TEST(norms_mean_what_they_say),
    RUNNER_TEST(the_same_solve_gives_the_same_bits),
    RUNNER_TEST(permuted_right_hand_sides_give_permuted_solutions),
};
METHODS_MAIN("conform_verdict", tests)
