/* SPDX-License-Identifier: BSD-3-Clause */
/* check_eigen_moved_shift.c - pairs nearest to a shift where (A - sigma M)^-1
 * makes difficulties: sigma is an eigenvalue, there are no factors, multiple
 * eigenvalues hide others. */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/problems/pencil.h"
#include "tests/support/runner.h"

START_TEST(a_shift_that_is_an_eigenvalue_is_moved)
{
    sps_context *ctx = pencil_context(2);
    pencil p;

    pencil_open(&p, ctx, 700, 6, false);
    if (runner_quick()) p.opt.max_iterations = 2;
    p.opt.which = "nearest";
    p.opt.sigma = 7;
    p.opt.rtol = 1e-8;
    /* Five equal values each; above 7 they are moved, for no two may be as
     * far from the shift as each other on either side. */
    for (int i = 0; i < 700; i++)
        pencil_set(&p, i, i, 1 + i / 5 + (i / 5 > 6 ? 0.5 : 0));
    pencil_must_agree(&p, "shift");
    ck_assert(fixture_noted(ctx, "sigma "));
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* An eigenvalue to the last digit, where factors exist: with its nu of 1e16 the
 * other pairs would have no correct digits. */
START_TEST(a_shift_that_is_an_eigenvalue_is_no_harm_to_others)
{
    sps_context *ctx = pencil_context(1);
    pencil p, q;

    for (int t = runner_quick(); t < 4; t += runner_quick() ? 3 : 1) {
        bool mass = t % 2;

        pencil_open(&p, ctx, 300, t / 2 ? 3 : 8, mass);
        pencil_open(&q, ctx, 300, 1, mass);
        p.opt.block = t / 2;   /* that of the shift is locked first */
        pencil_sunken(&p, false);
        pencil_sunken(&q, false);
        p.opt.which = q.opt.which = "nearest";
        q.opt.sigma = 1.7;
        ck_assert_int_eq(pencil_solve(&q), SPS_OK);
        p.opt.sigma = q.lambda[0];
        p.opt.rtol = 1e-8;
        pencil_must_agree(&p, "at an eigenvalue");
        pencil_close(&p);
        pencil_close(&q);
        /* All pairs are wanted: the block has no search directions. */
        pencil_open(&p, ctx, 20, 20, mass);
        pencil_open(&q, ctx, 20, 1, mass);
        pencil_sunken(&p, false);
        pencil_sunken(&q, false);
        p.opt.which = "nearest";
        q.opt.which = "largest";
        ck_assert_int_eq(pencil_solve(&q), SPS_OK);
        p.opt.sigma = q.lambda[0];
        pencil_must_agree(&p, "all, at an eigenvalue");
        pencil_close(&p);
        pencil_close(&q);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Where A - sigma M has no factors a shift beside sigma is taken.  Its
 * distance cannot be chosen by ||A||: here eigenvalues of 1e-8 lie 1e-10
 * apart, and others are 1e4. */
START_TEST(a_shift_without_factors_is_moved_no_farther_than_to_the_next)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    pencil_open(&p, ctx, 600, 5, false);
    for (int i = 0; i < 600; i++)
        pencil_set(&p, i, i, i < 100 ? 1e-8 + 1e-10 * i + 3e-13 * (i % 3)
                                     : 1e4 + i);
    p.opt.which = "nearest";
    p.opt.sigma = p.a[50 * 601];
    p.opt.rtol = 1e-8;
    pencil_must_agree(&p, "no factors");
    ck_assert(runner_quick() || p.lambda[0] == p.opt.sigma);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* A complete graph: all eigenvalues but one are equal, and that one is nearer
 * to the shift.  In a block of a few columns all but one are eigenvectors
 * after the first step. */
START_TEST(a_multiple_eigenvalue_hides_none_that_is_nearer)
{
    static const char *const solver[] = { "auto", "lobpcg" };
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int t = 0; t < (runner_quick() ? 2 : 16); t++) {
        const int sign = t / 2 % 2 ? -1 : 1;

        pencil_open(&p, ctx, 60, 1 + t / 4 % 2 * 2, t / 8);
        p.opt.solver = solver[t % 2];
        p.opt.which = "nearest";
        p.opt.sigma = sign * 3.4;
        for (int i = 0; i < 60; i++) {
            for (int j = 0; j <= i; j++)
                pencil_set(&p, i, j, sign * (i == j ? 60.0 : -1.0));
            if (t / 8) pencil_mass(&p, i, i, 1);
        }
        pencil_must_agree(&p, solver[t % 2]);
        ck_assert(runner_quick() || fabs(p.lambda[0] - sign) < 1e-9);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Fifty equal values on one side, more than the block has columns: the next one
 * on the other side, a little nearer, converges after them. */
START_TEST(a_multiple_eigenvalue_on_one_side_leaves_the_other_its_pairs)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int t = 0; t < (runner_quick() ? 1 : 8); t++) {
        const double sigma = 2.2 + 0.03 * t;

        pencil_open(&p, ctx, 600, 30, false);
        p.opt.which = "nearest";
        p.opt.sigma = sigma;
        p.opt.rtol = 1e-5;
        for (int i = 0; i < 600; i++)
            pencil_set(&p, i, i, i < 50 ? 1 : 2 + (i - 50) / 11.03);
        /* 1 lies at sigma - 1; the next but one on the right, 1e-3 nearer. */
        for (int i = 50; i < 600; i++)
            if (fabs(p.a[i * 601] - (2 * sigma - 1)) < 0.5 / 11.03)
                pencil_set(&p, i, i, 2 * sigma - 1 - 1e-3);
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        for (int j = 0, found = 0; pencil_converged(&p) && j < 30; j++) {
            found += fabs(p.lambda[j] - (2 * sigma - 1 - 1e-3)) < 1e-6;
            ck_assert_msg(j < 29 || found, "sigma %g: %g is missed", sigma,
                          2 * sigma - 1 - 1e-3);
        }
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* LAPACK has no block. */
START_TEST(a_block_of_one_column_is_told_that_it_has_no_guard)
{
    static const char *const solver[] = { "auto", "lobpcg" };
    pencil p;

    for (int t = 0; t < 2; t++) {
        sps_context *ctx = pencil_context(1);

        pencil_open(&p, ctx, 60, 3, false);
        p.opt.solver = solver[t];
        p.opt.block = 1;
        p.opt.which = "nearest";
        p.opt.sigma = 20.3;
        for (int i = 0; i < 60; i++) pencil_set(&p, i, i, 1 + i);
        pencil_must_agree(&p, solver[t]);
        ck_assert_int_eq(fixture_noted(ctx, "pass over a pair"), t == 1);
        pencil_close(&p);
        sps_context_destroy(&ctx);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_shift_that_is_an_eigenvalue_is_moved),
    RUNNER_TEST(a_shift_that_is_an_eigenvalue_is_no_harm_to_others),
    RUNNER_TEST(a_shift_without_factors_is_moved_no_farther_than_to_the_next),
    RUNNER_TEST(a_multiple_eigenvalue_hides_none_that_is_nearer),
    RUNNER_TEST(a_multiple_eigenvalue_on_one_side_leaves_the_other_its_pairs),
    RUNNER_TEST(a_block_of_one_column_is_told_that_it_has_no_guard),
};

RUNNER_MAIN("eigen_pole", tests)
