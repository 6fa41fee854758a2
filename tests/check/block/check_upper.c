/* SPDX-License-Identifier: BSD-3-Clause */
/* check_upper.c - triangular factors of least squares problems: exact where
 * they are regular, minimum norm least squares solutions where they are
 * singular, no truncation where they are merely ill-conditioned. */
#include <check.h>
#include <math.h>

#include "tests/support/fixture.h"
#include "block/upper.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void set_up(void) { ctx = fixture_open_with(SPS_HOST, 1, true); }

static void tear_down(void) { fixture_close(&ctx); }

/* Columns of an upper triangle with leading dimension 5; the lower part is not
 * read. */
static void solve_upper(int n, const double *R, const double *b, double *x)
{
    double ld5[40];

    for (int t = 0; t < 40; t++) ld5[t] = NAN;
    for (int j = 0; j < n; j++)
        for (int i = 0; i <= j; i++) ld5[5 * j + i] = R[n * j + i];
    OK(ctx, spsi_small_solve_upper(ctx, ld5, n, 5, 1, b, n, x, n));
}

START_TEST(regular_upper_triangles_are_solved_exactly)
{
    static const double R[] = { 2, 0, 0, 3, -1, 0, 5, 4, 8 };
    static const double b[] = { 2 + 6 + 15, -2 + 12, 24 };
    double x[3];

    solve_upper(3, R, b, x);
    ck_assert(x[0] == 1 && x[1] == 2 && x[2] == 3);
    solve_upper(0, R, b, x);
}
END_TEST

/* The least squares solution of minimum norm, not amplified rounding errors:
 * back-substitution gives 1e30 in the last case. */
START_TEST(singular_upper_triangles_give_short_and_best_solutions)
{
    static const double R[] = { 1, 0, 1, 0 }, b[] = { 2, 1 };
    static const double chain[] = { -4e-15, 0, 0, 0, -8.6, 2.6, 0, 0,
                                    -2.6, -2.6, -0.3, 0, 0, 0.3, -4, 2e-14 };
    static const double c[] = { 1, -2, 1, 0.7 };
    double x[4], left = 0, none = NAN;

    solve_upper(2, R, b, x);
    ck_assert(fabs(x[0] - 1) < 1e-14 && fabs(x[1] - 1) < 1e-14);
    solve_upper(4, chain, c, x);
    for (int i = 0; i < 3; i++) {
        double sum = c[i];

        for (int j = 0; j < 4; j++) sum -= chain[4 * j + i] * x[j];
        left = fmax(left, fabs(sum));
        ck_assert(fabs(x[i]) < 10);
    }
    ck_assert(left < 1e-13);
    solve_upper(1, &none, b, x);
    ck_assert(isnan(x[0]));
    none = 0;
    solve_upper(1, &none, b, x);
    ck_assert(x[0] == 0);
}
END_TEST

/* Pivots of c and 1 / c, a solution of size c: truncation at 16 eps would leave
 * b[1] = 1 as the residual. */
START_TEST(steep_upper_triangles_are_solved_rather_than_cut)
{
    static const double R[] = { 3e7, 0, 1, 1 / 3e7 }, b[] = { 0, 1 };
    double x[2];

    solve_upper(2, R, b, x);
    ck_assert(fabs(x[1] / 3e7 - 1) < 1e-14 && fabs(x[0] + 1) < 1e-14);
}
END_TEST

/* Right-hand sides that are well-conditioned, truncated, not finite,
 * ill-conditioned and well-conditioned: each must give the same result as
 * alone. */
START_TEST(upper_triangles_take_each_right_hand_side_by_itself)
{
    static const double R[] = { 3e7, 0, 0, 1, 1 / 3e7, 0, 0, 0, 1e-9 };
    static const double b[] = { 1, 0, 0, 9, 0, 0, 1, 9, NAN, 0,
                                0, 9, 0, 1, 0, 9, 3, 0, 0, 9 };
    double x[5 * 3], alone[3];

    OK(ctx, spsi_small_solve_upper(ctx, R, 3, 3, 5, b, 4, x, 3));
    for (int c = 0; c < 5; c++) {
        OK(ctx, spsi_small_solve_upper(ctx, R, 3, 3, 1, b + 4 * c, 4, alone,
                                       3));
        for (int j = 0; j < 3; j++)
            ck_assert(c == 2 ? isnan(alone[j]) && isnan(x[3 * c + j])
                             : fabs(x[3 * c + j] - alone[j]) <=
                                   1e-14 * fabs(alone[j]));
    }
    ck_assert(fabs(x[3 + 2]) < 1 && fabs(x[9 + 1] / 3e7 - 1) < 1e-14);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(regular_upper_triangles_are_solved_exactly),
    RUNNER_TEST(singular_upper_triangles_give_short_and_best_solutions),
    RUNNER_TEST(steep_upper_triangles_are_solved_rather_than_cut),
    RUNNER_TEST(upper_triangles_take_each_right_hand_side_by_itself),
};

RUNNER_MAIN_WITHIN("upper", tests, set_up, tear_down)
