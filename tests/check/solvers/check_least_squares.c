/* SPDX-License-Identifier: BSD-3-Clause */
/* check_least_squares.c - lsqr and lsmr: solutions that are known or computed
 * by LAPACK, systems at the edges, damping, scaling of columns.  How they end,
 * and what they refuse: check_least_ends.c. */
#include "tests/check/solvers/least_fixture.h"
#include "tests/support/runner.h"

/* ------------------------------------------------------------ known numbers */

/* Columns of a Hadamard matrix: A'A = 4 I, so that one step is the last, and
 * x = A'b / 4 has few bits. */
START_TEST(orthogonal_columns_take_one_step)
{
    static const double h[4][3] = {
        { 1, 1, 1 }, { 1, -1, 1 }, { 1, 1, -1 }, { 1, -1, -1 } };
    static const double b[4][3] = {
        { 7, 1, 2 }, { 1, -1, 6 }, { 3, 1, 2 }, { 5, -1, 6 } };
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = least_new(ctx, 4, 3, 3);

        memcpy(p.a, h, sizeof h);
        memcpy(p.b, b, sizeof b);
        p.opt.solver = name;
        least_must_converge(&p, "orthogonal columns");
        ck_assert_int_eq(p.result.iterations, 1);
        for (int q = 0; q < 3; q++)
            for (int j = 0; j < 3; j++) {
                double x = 0;

                for (int i = 0; i < 4; i++) x += h[i][q] * b[i][j] / 4;
                ck_assert_double_eq_tol(p.x[q * 3 + j], x, 4e-15);
            }
        ck_assert_int_eq(p.column[0], SPS_STOP_CONVERGED_LEAST_SQUARES);
        ck_assert_int_eq(p.column[1], SPS_STOP_CONVERGED);
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* Equal columns share what one of them would get: the least norm. */
START_TEST(equal_columns_share_the_solution)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = least_new(ctx, 6, 6, 2);

        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 6; j++) p.a[i * 6 + j] = i == j / 2 ? i + 1 : 0;
        for (int i = 0; i < 6; i++) p.b[2 * i] = p.b[2 * i + 1] = 12 * (i + 1);
        for (int i = 3; i < 6; i++) p.b[2 * i + 1] = 0;   /* in the range */
        p.opt.solver = name;
        p.opt.rtol = 1e-13;
        least_must_converge(&p, "equal columns");
        for (int j = 0; j < 6; j++)
            for (int c = 0; c < 2; c++)
                ck_assert_double_eq_tol(p.x[2 * j + c], 6, 1e-11);
        ck_assert_int_eq(p.column[0], SPS_STOP_CONVERGED_LEAST_SQUARES);
        ck_assert_int_eq(p.column[1], SPS_STOP_CONVERGED);
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* b = 0, b in the range, and b orthogonal to it, where x = 0 is the answer. */
START_TEST(right_hand_sides_at_the_edges)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = least_new(ctx, 5, 2, 3);

        for (int i = 0; i < 5; i++) {
            p.a[2 * i] = i < 3;
            p.a[2 * i + 1] = i < 3 ? i : 0;
            p.b[3 * i + 1] = i < 3 ? 3 + 2 * i : 0;
            p.b[3 * i + 2] = i < 3 ? 0 : i;
        }
        p.opt.solver = name;
        p.opt.rtol = 1e-12;
        least_must_converge(&p, "edges");
        for (int q = 0; q < 2; q++) {
            ck_assert_double_eq(p.x[3 * q], 0);
            ck_assert_double_eq_tol(p.x[3 * q + 1], 3 - q, 1e-10);
            ck_assert_double_eq(p.x[3 * q + 2], 0);
        }
        ck_assert_int_eq(p.column[0], SPS_STOP_CONVERGED);
        ck_assert_int_eq(p.column[1], SPS_STOP_CONVERGED);
        ck_assert_int_eq(p.column[2], SPS_STOP_CONVERGED_LEAST_SQUARES);
        ck_assert_double_eq(p.residual[2], 1);
        ck_assert_double_eq(p.normal[2], 0);
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* A = 0, a single row, a single column, a single entry. */
START_TEST(the_smallest_shapes)
{
    static const int shape[][2] = {{1, 1}, {1, 5}, {5, 1}, {2, 3}, {3, 2}};
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name)
        for (size_t q = 0; q < sizeof shape / sizeof *shape; q++)
            for (int zero = 0; zero < 2; zero++) {
                least p = least_new(ctx, shape[q][0], shape[q][1], 2);
                double *x, cond;

                least_fill(&p, zero ? 0 : 99, q + 1);
                p.opt.solver = name;
                p.opt.rtol = 1e-13;
                least_must_converge(&p, zero ? "A = 0" : "a small shape");
                x = least_lapack(&p, 1e-13, &cond);
                ck_assert_double_le(least_distance(&p, x), 1e-11 * cond);
                for (int i = 0; zero && i < 2 * p.n; i++)
                    ck_assert_double_eq(p.x[i], 0);
                free(x);
                least_drop(&p);
            }
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------------- LAPACK */

enum { FULL, TWINS, EMPTY, KINDS };   /* full rank; columns repeated; a column
                                         and two rows of zeros */

static least drawn(sps_context *ctx, int m, int n, int kind)
{
    least p = least_new(ctx, m, n, 5);

    least_fill(&p, 4, (uint64_t)(m + 7 * n + kind));
    for (int i = 0; i < m; i++) {
        for (int j = 0; kind == TWINS && j < 3; j++)
            p.a[i * n + n - 1 - j] = p.a[i * n + j];
        if (kind == EMPTY) p.a[i * n + 1] = 0;
        for (int j = 0; j < n && kind == EMPTY && (i == 0 || i == m - 1); j++)
            p.a[i * n + j] = 0;
    }
    for (int i = 0; i < m; i++) {       /* columns 3 in the range, 4 zero */
        p.b[5 * i + 3] = p.b[5 * i + 4] = 0;
        for (int j = 0; j < n; j++) p.b[5 * i + 3] += p.a[i * n + j] * (j % 5);
    }
    return p;
}

START_TEST(solutions_are_those_of_lapack)
{
    static const int shape[][2] = {{40, 12}, {12, 40}, {25, 25}, {120, 50},
                                   {50, 120}};
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name)
        for (size_t q = 0; q < sizeof shape / sizeof *shape; q++)
            for (int kind = 0; kind < KINDS; kind++) {
                least p = drawn(ctx, shape[q][0], shape[q][1], kind);
                double *x, cond;

                p.opt.solver = name;
                p.opt.rtol = 1e-12;
                least_must_converge(&p, "drawn");
                x = least_lapack(&p, 1e-13, &cond);
                ck_assert_msg(least_distance(&p, x) <= 1e-11 * cond * cond,
                              "%s, %d x %d, kind %d: %g apart, condition %g",
                              name, p.m, p.n, kind, least_distance(&p, x),
                              cond);
                ck_assert_int_eq(p.column[3], SPS_STOP_CONVERGED);
                free(x);
                least_drop(&p);
            }
    fixture_close(&ctx);
}
END_TEST

/* Columns scaled by 10^-j: cond 1e7 and more.  With the scaling of columns the
 * well conditioned problem is solved in a few steps. */
static void spread(least *p)
{
    for (int i = 0; i < p->m; i++)
        for (int j = 0; j < p->n; j++)
            p->a[i * p->n + j] *= pow(10, -(j % 8));
}

START_TEST(scaled_columns_are_solved_as_if_they_were_not)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = drawn(ctx, 90, 30, FULL), plain = drawn(ctx, 90, 30, FULL);
        double *x, cond;

        spread(&p);
        p.opt.solver = plain.opt.solver = name;
        p.opt.rtol = plain.opt.rtol = 1e-13;
        p.opt.precond = "jacobi";
        least_must_converge(&p, "spread columns");
        least_must_converge(&plain, "plain columns");
        ck_assert_str_eq(p.result.precond, "jacobi");
        ck_assert_str_eq(plain.result.precond, "none");
        ck_assert_int_le(p.result.iterations, 2 * plain.result.iterations);
        x = least_lapack(&p, 1e-15, &cond);
        ck_assert_double_ge(cond, 1e6);
        for (int j = 0; j < p.n; j++)     /* in the units of the plain one */
            for (int c = 0; c < p.k; c++) {
                x[j * p.k + c] *= pow(10, -(j % 8));
                p.x[j * p.k + c] *= pow(10, -(j % 8));
            }
        ck_assert_double_le(least_distance(&p, x), 1e-6);
        free(x);
        least_drop(&p);
        least_drop(&plain);
    }
    fixture_close(&ctx);
}
END_TEST

/* Without it they end truthfully: converged by a rule that holds, or not. */
START_TEST(ill_conditioned_problems_end_truthfully)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = drawn(ctx, 90, 30, FULL);

        spread(&p);
        p.opt.solver = name;
        p.opt.rtol = 1e-11;
        p.opt.max_iterations = 3000;
        OK(ctx, least_solve(&p));
        for (int j = 0; j < p.k; j++) {
            least_must_be_true(&p, j, "spread columns");
            ck_assert_int_ne(p.column[j], SPS_STOP_RUNNING);
            ck_assert_double_le(p.residual[j], 1 + 1e-12);
        }
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* Whatever the units of A and of b. */
START_TEST(units_change_nothing)
{
    static const double unit[] = { 1e-280, 1e-150, 1e-80, 1, 1e80, 1e150,
                                   1e280 };
    enum { UNITS = sizeof unit / sizeof *unit };
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name)
        for (int scaled = 0; scaled < 2; scaled++)
            for (int u = 0; u < UNITS * UNITS; u++) {
                const double of_a = unit[u / UNITS], of_b = unit[u % UNITS];
                least one = drawn(ctx, 30, 12, TWINS);
                least p = drawn(ctx, 30, 12, TWINS);

                if (fabs(log10(of_b / of_a)) > 290) goto next;
                for (int i = 0; i < 30 * 12; i++) p.a[i] *= of_a;
                for (int i = 0; i < 30 * 5; i++) p.b[i] *= of_b;
                one.opt.solver = p.opt.solver = name;
                if (scaled) one.opt.precond = p.opt.precond = "jacobi";
                OK(ctx, least_solve(&one));
                OK(ctx, least_solve(&p));
                for (int j = 0; j < 5; j++) {
                    ck_assert_msg(p.column[j] == one.column[j], "%s, units %g "
                                  "%g, column %d: %s", name, of_a, of_b, j,
                                  sps_stop_string(p.column[j]));
                    ck_assert_double_eq_tol(p.residual[j], one.residual[j],
                                            2e-8);
                }
                for (int i = 0; i < 12 * 5; i++) p.x[i] *= of_a / of_b;
                ck_assert_double_le(least_distance(&p, one.x), 1e-6);
next:
                least_drop(&one);
                least_drop(&p);
            }
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------------ damping */

/* Damping is the problem [A; d I], [b; 0]. */
START_TEST(damping_is_the_stacked_problem)
{
    static const int shape[][2] = {{40, 12}, {12, 40}, {25, 25}};
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name)
        for (int q = 0; q < 9; q++) {
            const int m = shape[q / 3][0], n = shape[q / 3][1];
            const double d = q % 3 == 0 ? 0.01 : q % 3 == 1 ? 0.5 : 30;
            least p = drawn(ctx, m, n, TWINS), s = least_new(ctx, m + n, n, 5);
            double *x, cond;

            memcpy(s.a, p.a, (size_t)(m * n) * sizeof *s.a);
            memcpy(s.b, p.b, (size_t)(m * 5) * sizeof *s.b);
            for (int j = 0; j < n; j++) s.a[(m + j) * n + j] = d;
            p.opt.solver = s.opt.solver = name;
            p.opt.rtol = s.opt.rtol = 1e-12;
            p.opt.damp = d;
            least_must_converge(&p, "damped");
            least_must_converge(&s, "stacked");
            ck_assert_int_le(abs(p.result.iterations - s.result.iterations), 2);
            x = least_lapack(&s, 1e-14, &cond);
            ck_assert_double_le(least_distance(&p, x), 1e-10 * cond * cond);
            free(x);
            memset(p.x, 0, (size_t)(n * 5) * sizeof *p.x);
            p.opt.precond = "jacobi";
            least_must_converge(&p, "damped and scaled");
            ck_assert_double_le(least_distance(&p, s.x), 1e-10 * cond * cond);
            least_drop(&p);
            least_drop(&s);
        }
    fixture_close(&ctx);
}
END_TEST

/* From sqrt(DBL_MAX) on d^2 is infinite.  x is A'b / d^2; where ||A|| is below
 * rtol d, x = 0 meets the second rule, too. */
START_TEST(damping_may_be_beyond_the_root_of_the_largest_number)
{
    static const double damp[] = { 1e150, 1e155, 1e200, 1e290 };
    static const double unit[] = { 1, 1e250 };
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name)
        for (int q = 0; q < 8; q++) {
            const double d = damp[q / 2], b = unit[q % 2];
            least p = drawn(ctx, 40, 12, TWINS);

            for (int i = 0; i < 40 * 5; i++) p.b[i] *= b;
            p.opt.solver = name;
            p.opt.damp = d;
            least_must_converge(&p, "damped by far");
            for (int i = 0; i < 12; i++) {
                double x = 0;

                for (int t = 0; t < 40; t++)
                    x += p.a[t * 12 + i] * (p.b[t * 5] / d);
                x /= d;
                ck_assert_msg(fabs(p.x[i * 5]) <= 1.001 * fabs(x), "%s, d %g, "
                              "b %g: x is %g, not %g", name, d, b, p.x[i * 5],
                              x);
            }
            least_drop(&p);
        }
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------- many columns */

/* Columns share products and nothing else: each has the iterates that it has
 * alone but for rounding, and the block takes as many steps as its slowest. */
START_TEST(columns_do_not_know_each_other)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = drawn(ctx, 120, 50, FULL);
        double *x = malloc(50 * 5 * sizeof *x);
        int most = 0;

        p.opt.solver = name;
        least_must_converge(&p, "five columns");
        for (int j = 0; j < 5; j++) {
            least one = least_new(ctx, 120, 50, 1);

            memcpy(one.a, p.a, 120 * 50 * sizeof *one.a);
            for (int i = 0; i < 120; i++) one.b[i] = p.b[5 * i + j];
            one.opt.solver = name;
            least_must_converge(&one, "one column");
            for (int i = 0; i < 50; i++) x[5 * i + j] = one.x[i];
            ck_assert_int_eq(one.column[0], p.column[j]);
            if (one.result.iterations > most) most = one.result.iterations;
            least_drop(&one);
        }
        ck_assert_int_le(abs(p.result.iterations - most), 1);
        ck_assert_double_le(least_distance(&p, x), 1e-7);
        free(x);
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* From another guess: the solution that is nearest to it. */
START_TEST(a_guess_is_changed_as_little_as_possible)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = drawn(ctx, 12, 40, FULL), q = drawn(ctx, 12, 40, FULL);

        p.opt.solver = q.opt.solver = name;
        p.opt.rtol = q.opt.rtol = 1e-13;
        for (int i = 0; i < 40 * 5; i++) p.x[i] = i % 7 - 3;
        for (int i = 0; i < 12; i++)
            for (int j = 0; j < 40; j++)
                for (int c = 0; c < 5; c++)
                    q.b[5 * i + c] -= p.a[40 * i + j] * p.x[5 * j + c];
        least_must_converge(&p, "with a guess");
        least_must_converge(&q, "its correction");
        for (int i = 0; i < 40 * 5; i++)
            if (i % 5 != 4)             /* b = 0: x = 0, whatever the guess */
                ck_assert_double_eq_tol(p.x[i], i % 7 - 3 + q.x[i], 1e-8);
        least_drop(&p);
        least_drop(&q);
    }
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(orthogonal_columns_take_one_step),
    RUNNER_TEST(equal_columns_share_the_solution),
    RUNNER_TEST(right_hand_sides_at_the_edges),
    RUNNER_TEST(the_smallest_shapes),
    RUNNER_TEST(solutions_are_those_of_lapack),
    RUNNER_TEST(scaled_columns_are_solved_as_if_they_were_not),
    RUNNER_TEST(ill_conditioned_problems_end_truthfully),
    RUNNER_TEST(units_change_nothing),
    RUNNER_TEST(damping_is_the_stacked_problem),
    RUNNER_TEST(damping_may_be_beyond_the_root_of_the_largest_number),
    RUNNER_TEST(columns_do_not_know_each_other),
    RUNNER_TEST(a_guess_is_changed_as_little_as_possible),
};

RUNNER_MAIN("least squares", tests)
