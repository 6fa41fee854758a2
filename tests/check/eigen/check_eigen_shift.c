/* SPDX-License-Identifier: BSD-3-Clause */
/* check_eigen_shift.c - preconditioners with a shift outside the spectrum, of
 * indefinite matrices and for the largest pairs; pairs inside the spectrum.
 * Shifts that have to move: check_eigen_moved_shift.c. */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/solver.h"
#include "eigen/eigen.h"
#include "tests/problems/pencil.h"
#include "tests/problems/zoo.h"
#include "tests/support/absent.h"
#include "tests/support/runner.h"

START_TEST(the_smallest_of_an_indefinite_matrix_are_the_most_negative)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    pencil_open(&p, ctx, 600, 4, false);
    for (int i = 0; i < 600; i++) {
        pencil_set(&p, i, i, i - 300.25);
        if (i > 0) pencil_set(&p, i, i - 1, 1);
    }
    pencil_must_agree(&p, "indefinite");
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(an_indefinite_matrix_is_preconditioned_from_below_its_spectrum)
{
    static const char *precond[] = { "auto", "ilut", "ic0", "chebyshev" };
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int run = runner_quick() ? 5 : 0; run < 12;
         run += runner_quick() ? 5 : 1) {
        char what[60];

        snprintf(what, sizeof what, "%s, run %d", precond[run % 4], run);
        pencil_open(&p, ctx, 650, 6, run / 4 == 1);
        p.opt.precond = precond[run % 4];
        p.opt.block = run % 3 ? 0 : 7;
        p.opt.rtol = 1e-7;
        pencil_sunken(&p, run / 4 == 2);
        pencil_must_agree(&p, what);
        ck_assert_msg(p.result.iterations < 120, "%s: %d iterations", what,
                      p.result.iterations);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* The upper end of five-point differences is as dense as the lower one.  With
 * so few rows the degree of polynomials is 1 by default. */
static int iterations_of_largest(sps_context *ctx, const char *precond,
                                 bool mass)
{
    char what[60];
    int iterations;
    pencil p;

    snprintf(what, sizeof what, "largest, %s, mass %d", precond, mass);
    pencil_open(&p, ctx, 650, 6, mass);
    p.opt.which = "largest";
    p.opt.precond = precond;
    p.opt.degree = 9;
    p.opt.rtol = 1e-7;
    pencil_sunken(&p, false);
    pencil_must_agree(&p, what);
    iterations = p.result.iterations;
    pencil_close(&p);
    return iterations;
}

START_TEST(the_largest_are_preconditioned_from_above_the_spectrum)
{
    static const char *precond[] = { "auto", "ilut", "ic0", "chebyshev" };
    sps_context *ctx = pencil_context(1);

    for (int mass = runner_quick(); mass < 2; mass++) {
        int plain = iterations_of_largest(ctx, "none", mass);

        for (int i = runner_quick() ? 3 : 0; i < 4; i++) {
            int took = iterations_of_largest(ctx, precond[i], mass);

            ck_assert_msg(3 * took < 2 * plain || runner_quick(),
                          "%s: %d iterations, none %d", precond[i], took,
                          plain);
        }
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(pairs_inside_the_spectrum_are_found_from_a_shift)
{
    sps_context *ctx = pencil_context(2);
    int shifts = runner_quick() ? 1 : runner_place() == SPS_CUDA ? 2 : 4;
    pencil p;

    for (int solver = 0; solver < (runner_quick() ? 1 : 2); solver++)
        for (int mass = runner_quick(); mass < 2; mass++)
            for (int t = 0; t < shifts; t++) {
                pencil_open(&p, ctx, 300, 7, mass);
                if (runner_quick()) p.opt.max_iterations = 3;
                p.opt.solver = solver ? "auto" : "lobpcg";
                p.opt.which = "nearest";
                p.opt.sigma = -1 + 21.7 * t;
                pencil_squares(&p, 5 + (uint64_t)t, 6, false);
                for (int i = 0; i < 300; i++) {
                    *pencil_a(&p, i, i) += 0.2 * i - 20;
                    if (p.m) pencil_mass(&p, i, i, 1 + 0.5 * (i % 4));
                    if (p.m && i) pencil_mass(&p, i, i - 1, 0.2);
                }
                pencil_must_agree(&p, "shift");
                pencil_close(&p);
            }
    sps_context_destroy(&ctx);
}
END_TEST

/* Seven-point differences on 13^3 points: more rows than a dense inverse is
 * made for, and factors with much fill. */
static double distance_from_shift(int t)
{
    double sum = 0;

    for (int d = 0; d < 3; d++, t /= 13)
        sum += 4 * pow(sin(acos(-1) * (t % 13 + 1) / 28), 2);
    return fabs(sum - 3.3);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

START_TEST(pairs_inside_a_box_are_found_by_complete_factors)
{
    static const int stride[3] = { 1, 13, 169 };
    sps_context *ctx;
    static double exact[2197], found[9];
    pencil p;

    if (runner_quick()) runner_leave_out("thousands of levels");
    ctx = pencil_context(1);
    pencil_open(&p, ctx, 2197, 9, false);
    p.opt.which = "nearest";
    p.opt.sigma = 3.3;
    p.opt.rtol = 1e-7;
    for (int i = 0; i < p.n; i++) {
        exact[i] = distance_from_shift(i);
        pencil_set(&p, i, i, 6);
        for (int d = 0; d < 3; d++)
            if (i / stride[d] % 13) pencil_set(&p, i, i - stride[d], -1);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    for (int j = 0; j < 9; j++) found[j] = fabs(p.lambda[j] - 3.3);
    qsort(exact, 2197, sizeof *exact, ascending);
    qsort(found, 9, sizeof *found, ascending);
    for (int j = 0; j < 9; j++)
        ck_assert(fabs(found[j] - exact[j]) < 1e-8);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

enum { SIDE = 240 };

/* Five-point differences on SIDE^2 points, or M = 2 I. */
static sps_csr *plane(sps_context *ctx, bool mass)
{
    int64_t n = SIDE * SIDE, q = 0;
    sps_csr *A = NULL;

    ck_assert_int_eq(sps_csr_create(ctx, n, n, mass ? n : 5 * n - 4 * SIDE,
                                    SPS_F64, &A), SPS_OK);
    for (int64_t i = 0; i < n; i++) {
        int64_t beside[5] = { i >= SIDE ? i - SIDE : -1,
                              i % SIDE ? i - 1 : -1, i,
                              i % SIDE < SIDE - 1 ? i + 1 : -1,
                              i + SIDE < n ? i + SIDE : -1 };

        for (int t = 0; t < 5; t++) {
            if (beside[t] < 0 || (mass && t != 2)) continue;
            A->col[q] = (int32_t)beside[t];
            ((double *)A->val)[q++] = mass ? 2 : t == 2 ? 4 : -1;
        }
        A->rowptr[i + 1] = q;
    }
    return A;
}

/* Two steps of gmres are a sign of complete factors. */
START_TEST(plane_meshes_of_many_rows_are_factored)
{
    static double exact[SIDE * SIDE];
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int i = 0; i < SIDE * SIDE; i++)
        exact[i] = fabs(2 * pow(sin(acos(-1) * (i / SIDE + 1) / 2 /
                                    (SIDE + 1)), 2) +
                        2 * pow(sin(acos(-1) * (i % SIDE + 1) / 2 /
                                    (SIDE + 1)), 2) - 0.0151);
    qsort(exact, SIDE * SIDE, sizeof *exact, ascending);
    pencil_open(&p, ctx, 1, 6, false);
    p.n = SIDE * SIDE;
    p.A = plane(ctx, false);
    p.M = plane(ctx, true);
    free(p.x);
    p.x = calloc((size_t)p.n * 6, sizeof *p.x);
    p.opt.which = "nearest";
    p.opt.sigma = 0.0151;
    p.opt.rtol = 1e-7;
    if (runner_quick() || runner_place() != SPS_HOST) p.opt.max_seconds = 1e-3;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    if (p.opt.max_seconds == 0) {
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        ck_assert_int_le(p.result.applies_precond, 3 * p.result.iterations + 9);
        for (int j = 0; j < 6; j++)
            ck_assert_msg(fabs(fabs(p.lambda[j] - 0.0151) - exact[j]) < 1e-11,
                          "%.12g %g", p.lambda[j], exact[j]);
    }
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* A grid of 16^3 points, whose rows no permutation makes narrow; returns whether
 * A - sigma M has sparse direct factors.  Checks the pair nearest to sigma. */
static bool has_factors(const char *whether)
{
    enum { N = 4096, K = 2 };
    sps_context *ctx = pencil_context(1);
    sps_csr *A = zoo_matrix(zoo_find("grid7"), N, 1, ZOO_LAPLACIAN, SPS_F64);
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *X = NULL;
    sps_eigen_result r = { .struct_size = sizeof r };
    double lambda[K];
    sps_options opt;
    bool has;

    sps_options_default(&opt);
    opt.factors = whether;
    opt.which = "nearest";
    opt.sigma = 3.01;
    opt.rtol = 1e-8;
    opt.verify_count = true;
    ck_assert_int_eq(sps_operator_csr(ctx, A, 16, NULL, &op), SPS_OK);
    ck_assert_int_eq(sps_solver_create_eigen(op, NULL, NULL, K, &opt, &s),
                     SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, A->nrow, K, &X), SPS_OK);
    ck_assert_int_eq(sps_solver_eigen(s, X, lambda, &r), SPS_OK);
    ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    ck_assert_int_eq(r.missed, 0);
    has = ((sps_eigen *)s->of)->transform.factors != NULL;
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&X);
    zoo_free(&A);
    sps_context_destroy(&ctx);
    return has;
}

START_TEST(grids_in_space_have_sparse_factors_of_the_module)
{
    if (absent("factor")) runner_skip("no factor module");
    if (runner_place() != SPS_HOST) runner_leave_out("of the host");
    if (!runner_quick()) ck_assert(!has_factors("never"));
    ck_assert(has_factors("auto"));
}
END_TEST

/* At a distance of 1e9 all eigenvalues of (A - sigma)^-1 are nearly equal. */
START_TEST(a_shift_outside_the_spectrum_asks_for_an_end_of_it)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int side = runner_quick() ? 1 : -1; side <= 1; side += 2) {
        pencil_open(&p, ctx, 650, 6, false);
        p.opt.which = "nearest";
        p.opt.sigma = side * 1e9;
        p.opt.rtol = 1e-7;
        pencil_sunken(&p, false);
        pencil_must_agree(&p, "outside");
        ck_assert_int_lt(p.result.iterations, 120);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* In units of 2^power eigenvalues are 2^power times those in units of 1, apart
 * from rounding within the solve. */
START_TEST(a_shift_finds_pairs_in_any_unit)
{
    static const int power[] = { 830, -830, -560, 480 };
    sps_context *ctx = pencil_context(1);
    pencil p, q;

    for (int t = 0; t < (runner_quick() ? 1 : 4); t++) {
        bool mass = t / 2;

        pencil_open(&p, ctx, 300, 4, mass);
        pencil_open(&q, ctx, 300, 4, mass);
        p.opt.which = q.opt.which = "nearest";
        p.opt.sigma = ldexp(1.7, mass ? -power[t] : power[t]);
        q.opt.sigma = 1.7;
        pencil_sunken(&p, false);
        pencil_sunken(&q, false);
        for (long i = 0; i < 300 * 300; i++) {
            double *x = mass ? &p.m[i] : &p.a[i];

            *x = ldexp(*x, power[t]);
        }
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        ck_assert_int_eq(pencil_solve(&q), SPS_OK);
        for (int j = 0; pencil_converged(&p) && pencil_converged(&q) && j < 4;
             j++) {
            double exact = ldexp(q.lambda[j], mass ? -power[t] : power[t]);

            ck_assert_msg(fabs(p.lambda[j] - exact) <= 1e-9 * fabs(exact),
                          "2^%d: %.17g, not %.17g", power[t], p.lambda[j],
                          exact);
            ck_assert(p.bound[j] > 0 && p.bound[j] <= 1e-7 * fabs(exact));
        }
        pencil_close(&p);
        pencil_close(&q);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(products_alone_find_pairs_inside_the_spectrum)
{
    static const double sigma[] = { 1.7, 4.01, -0.27, 7.6, 0.5 };
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int t = 0; t < (runner_quick() ? 1 : 5); t++) {
        pencil_open(&p, ctx, 650, 6, false);
        p.opt.solver = "chebyshev_filter";
        p.opt.which = "nearest";
        p.opt.sigma = sigma[t];
        p.opt.rtol = 1e-7;
        p.opt.atol = 1e-7;   /* some are small */
        p.opt.verify_count = true;
        p.opt.degree = runner_quick() ? 20 : 0;
        pencil_sunken(&p, false);
        pencil_must_agree(&p, "folded");
        if (pencil_converged(&p)) ck_assert_int_eq(p.result.missed, 0);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* The pencil without unknown 40, whose eigenvalue is moved far away. */
static void without_40(pencil *p)
{
    pencil_sunken(p, false);
    for (int j = 0; j < p->n; j++)
        if (*pencil_a(p, 39, j) != 0) pencil_set(p, 39, j, 0);
    pencil_set(p, 39, 39, !strcmp(p->opt.which, "largest") ? -50 : 50);
}

static void prepare(pencil *p, const char *solver, const char *which)
{
    p->opt.solver = solver;
    p->opt.which = which;
    p->opt.sigma = 1.7;
    p->opt.rtol = 1e-7;
    p->opt.verify_count = true;
    if (!runner_quick()) return;
    p->opt.degree = 20;
    p->opt.max_iterations = 3;
}

/* The constraint is no eigenvector.  With it inertia does not count, so that a
 * second search is made, whose first Ritz values inside the spectrum prove
 * nothing. */
START_TEST(a_constraint_holds_at_both_ends_and_inside)
{
    static const char *solver[] = { "lobpcg", "chebyshev_filter" };
    static const char *which[] = { "nearest", "smallest", "largest" };
    sps_context *ctx = pencil_context(1);
    pencil p, q;

    for (int run = 0; run < (runner_quick() ? 2 : 6); run++) {
        pencil_open(&p, ctx, 650, 6, false);
        pencil_open(&q, ctx, 650, 6, false);
        prepare(&p, solver[run % 2], which[run / 2]);
        prepare(&q, "auto", which[run / 2]);
        p.constraint = 40;
        pencil_sunken(&p, false);
        without_40(&q);
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        if (!runner_quick()) pencil_must_agree(&q, "without");
        for (int j = 0; pencil_converged(&p) && j < 6; j++)
            ck_assert_msg(fabs(p.lambda[j] - q.lambda[j]) < 1e-8, "%s, %s",
                          p.opt.solver, p.opt.which);
        ck_assert_int_le(p.result.missed, 0);
        pencil_close(&p);
        pencil_close(&q);
    }
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(the_smallest_of_an_indefinite_matrix_are_the_most_negative),
    RUNNER_TEST(an_indefinite_matrix_is_preconditioned_from_below_its_spectrum),
    RUNNER_TEST(the_largest_are_preconditioned_from_above_the_spectrum),
    RUNNER_TEST(pairs_inside_the_spectrum_are_found_from_a_shift),
    RUNNER_TEST(pairs_inside_a_box_are_found_by_complete_factors),
    RUNNER_TEST(plane_meshes_of_many_rows_are_factored),
    RUNNER_TEST(grids_in_space_have_sparse_factors_of_the_module),
    RUNNER_TEST(a_shift_outside_the_spectrum_asks_for_an_end_of_it),
    RUNNER_TEST(a_shift_finds_pairs_in_any_unit),
    RUNNER_TEST(products_alone_find_pairs_inside_the_spectrum),
    RUNNER_TEST(a_constraint_holds_at_both_ends_and_inside),
};

RUNNER_MAIN("eigen_shift", tests)
