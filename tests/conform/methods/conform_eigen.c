/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_eigen.c - every listed eigensolver against LAPACK, and on problems
 * that it must reject or report. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/pencil.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void)
{
    ctx = runner_context();
}

static void close_context(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    ck_assert_int_eq(info.live_objects, 0);
    sps_context_destroy(&ctx);
}

#define FOR_EIGEN(name)                                                        \
    for (int i_ = 0; (name = sps_list(ctx, "eigensolver", i_)); i_++)

/* False for the filter, which uses products with A only. */
static bool takes_mass(const char *name)
{
    return strcmp(name, "chebyshev_filter") != 0;
}

/* Second differences, and the mass matrix of linear elements. */
static void line(pencil *p)
{
    for (int i = 0; i < p->n; i++) {
        pencil_set(p, i, i, 2);
        if (i > 0) pencil_set(p, i, i - 1, -1);
        if (p->m) pencil_mass(p, i, i, 4);
        if (p->m && i > 0) pencil_mass(p, i, i - 1, 1);
    }
}

START_TEST(every_size_and_every_number_of_pairs)
{
    const char *name;
    pencil p;
    int stride = runner_quick() ? 18 : 1;

    FOR_EIGEN(name)
    for (int which = 0; which < 2; which++)
        for (int mass = 0; mass < 1 + takes_mass(name); mass++)
            for (int n = 1; n <= 20; n += stride)
                for (int k = 1; k <= n && (!runner_quick() || which == mass);
                     k += stride) {
                    pencil_open(&p, ctx, n, k, mass);
                    p.opt.solver = name;
                    p.opt.which = which ? "largest" : "smallest";
                    line(&p);
                    pencil_must_agree(&p, name);
                    pencil_close(&p);
                }
}
END_TEST

START_TEST(auto_takes_lapack_where_it_is_faster_and_says_so)
{
    pencil p;

    for (int which = 0; which < 2; which++)
        for (int mass = 0; mass < 2; mass++)
            for (int k = 1; k < 200; k += runner_quick() ? 200 : 50) {
                pencil_open(&p, ctx, k == 151 ? 600 : 200, k, mass);
                p.opt.solver = "auto";
                p.opt.which = which ? "largest" : "smallest";
                line(&p);
                for (int i = 0; i < p.n; i++) *pencil_a(&p, i, i) += 0.01 * i;
                pencil_must_agree(&p, "auto");
                ck_assert_str_eq(p.result.solver, "lapack");
                pencil_close(&p);
            }
    ck_assert_ptr_nonnull(strstr(sps_context_note(ctx, 0), "LAPACK"));
}
END_TEST

/* Second differences as a callback, on the host. */
static int differences(double alpha, const double *X, int64_t ldx, double beta,
                       double *Y, int64_t ldy, int64_t n, int k, void *stream,
                       void *data)
{
    (void)stream;
    (void)data;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double v = 2 * X[i * ldx + j];
            double *y = &Y[i * ldy + j];

            if (i > 0) v -= X[(i - 1) * ldx + j];
            if (i + 1 < n) v -= X[(i + 1) * ldx + j];
            *y = alpha * v + (beta == 0 ? 0 : beta * *y);
        }
    return 0;
}

static void filter_callback(const char *which, double sigma, double *lambda)
{
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *X = NULL;
    sps_eigen_result r = { .struct_size = sizeof r };
    sps_options o;

    sps_options_default(&o);
    o.which = which;
    o.sigma = sigma;
    o.rtol = 1e-8;
    ck_assert_int_eq(sps_operator_user(ctx, 700, differences, NULL,
                                       SPS_SYMMETRIC, &op), SPS_OK);
    ck_assert_int_eq(sps_solver_create_eigen(op, NULL, NULL, 4, &o, &s),
                     SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, 700, 4, &X), SPS_OK);
    ck_assert_int_eq(sps_solver_eigen(s, X, lambda, &r), SPS_OK);
    ck_assert_str_eq(r.solver, "chebyshev_filter");
    ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
}

/* The j-th eigenvalue of 700 second differences, j from 1. */
static double difference(int j)
{
    return 4 * pow(sin(acos(-1) * j / 1402), 2);
}

START_TEST(a_callback_is_filtered_and_gives_the_known_spectrum)
{
    static const int nearest[4] = { 350, 349, 351, 348 };
    double lambda[4];

    if (runner_place() == SPS_CUDA) runner_leave_out("callback of the host");
    filter_callback("largest", 0, lambda);
    for (int j = 0; j < 4; j++)
        ck_assert(fabs(lambda[j] - difference(700 - j)) < 1e-9);
    filter_callback("nearest", difference(350) - 1e-4, lambda);
    for (int j = 0; j < 4; j++)
        ck_assert(fabs(lambda[j] - difference(nearest[j])) < 1e-9);
}
END_TEST

/* d_ij = d_ij 2^((i + j) / 14), |i - j| < 2: a condition of 1e8. */
static void grade(double *d, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = i > 0 ? i - 1 : 0; j < n && j < i + 2; j++)
            d[(long)i * n + j] = ldexp(d[(long)i * n + j], (i + j) / 14);
}

/* The largest eigenvalues are 1e8 and more times the smallest, of a graded A or
 * with a graded M, and X must still be M-orthonormal. */
START_TEST(lapack_keeps_the_digits_of_the_lowest)
{
    pencil p;

    for (int run = 0; run < 4; run++) {
        pencil_open(&p, ctx, 200, run < 2 ? 4 : 20, run % 2);
        p.opt.solver = "auto";
        line(&p);
        for (int i = 0; i < p.n; i++) *pencil_a(&p, i, i) += 1 + 0.01 * i;
        grade(p.m ? p.m : p.a, p.n);
        pencil_must_agree(&p, "graded");
        ck_assert_str_eq(p.result.solver, "lapack");
        pencil_close(&p);
    }
}
END_TEST

/* LAPACK's rounding error for the springs' eigenvalues of 1e8 would be 1e-8 in
 * all the others; also with blocks that span the whole space, where no further
 * search direction exists. */
START_TEST(stiff_springs_leave_the_others_their_digits)
{
    static const int rows[] = { 4, 24, 57, 200 }, pairs[] = { 4, 18, 20, 6 };
    pencil p;

    for (int run = 0; run < (runner_quick() ? 2 : 16); run++) {
        int t = run % 4;

        pencil_open(&p, ctx, rows[t], pairs[t], run / 4 % 2);
        p.opt.solver = t < 3 ? "lobpcg" : "auto";
        p.opt.which = run < 8 || t == 3 ? "smallest" : "largest";
        pencil_squares(&p, (uint64_t)run + 1, rows[t] + 5, false);
        for (int i = 0; i < p.n; i++) {
            *pencil_a(&p, i, i) += i % 7 ? 1 : 1e8;
            if (p.m) pencil_mass(&p, i, i, 1 + 0.2 * (i % 3));
        }
        pencil_must_agree(&p, "springs");
        pencil_close(&p);
    }
}
END_TEST

/* All pairs of random spring systems, the stiffest first: the first Ritz
 * vectors meet the tolerance when their products with A are computed by
 * rotating those of the basis, and some do not when the products are
 * recomputed. */
START_TEST(what_converges_at_once_does_so_as_it_stands)
{
    pencil p;

    for (int seed = 1; seed <= 60; seed++)
        for (int mass = 0; mass < 2; mass++) {
            int n = 4 + seed % 5;

            pencil_open(&p, ctx, n, n, mass);
            p.opt.which = "largest";
            pencil_squares(&p, (uint64_t)seed, n + 5, false);
            for (int i = 0; i < n; i++) {
                *pencil_a(&p, i, i) += i % 7 ? 1 : 1e8;
                if (mass) pencil_mass(&p, i, i, 1 + 0.2 * (i % 3));
            }
            pencil_must_agree(&p, "springs, all pairs");
            pencil_close(&p);
        }
}
END_TEST

START_TEST(auto_filters_where_a_preconditioner_is_forbidden)
{
    static const char *method[] = { "chebyshev_filter", "chebyshev_filter",
                                    "lobpcg" };
    static const char *which[] = { "smallest", "largest", "smallest" };
    pencil p;

    for (int run = 0; run < 3; run++) {
        pencil_open(&p, ctx, 600, 4, run == 2);
        p.opt.solver = "auto";
        p.opt.precond = "none";
        p.opt.which = which[run];
        p.opt.rtol = 1e-7;
        line(&p);
        for (int i = 0; i < p.n; i++) *pencil_a(&p, i, i) += 0.01 * i;
        pencil_must_agree(&p, "no preconditioner");
        ck_assert_str_eq(p.result.solver, method[run]);
        pencil_close(&p);
    }
}
END_TEST

/* 12 times 1, 12 times 1.25, ...: the block of 20 ends within the second
 * multiple eigenvalue. */
START_TEST(a_multiple_value_at_the_end_of_the_block_is_filtered)
{
    const char *name;
    pencil p;

    FOR_EIGEN(name) {
        pencil_open(&p, ctx, 300, 17, false);
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.block = 20;
        for (int i = 0; i < p.n; i++)
            pencil_set(&p, i, i, 1 + 0.25 * (i / 12));
        pencil_must_agree(&p, name);
        ck_assert_int_lt(p.result.iterations, 100);
        pencil_close(&p);
    }
}
END_TEST

/* Z = alpha D^-1 R + beta Z, d_i = 1 + i^2. */
static int divide(double alpha, const double *R, int64_t ldr, double beta,
                  double *Z, int64_t ldz, int64_t n, int k, void *stream,
                  void *data)
{
    (void)stream;
    ++*(int *)data;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double *z = &Z[i * ldz + j];

            *z = alpha * R[i * ldr + j] / (1 + (double)(i * i)) +
                 (beta == 0 ? 0 : beta * *z);
        }
    return 0;
}

/* Solves the pencil again with T; returns the iterations, and in *calls the
 * number of applications of T. */
static int solve_with(pencil *p, const char *which, int *calls)
{
    sps_precond *T = NULL;
    sps_solver *s = NULL;
    sps_block *X = NULL;
    sps_eigen_result r = { .struct_size = sizeof r };
    double lambda[4];

    *calls = 0;
    p->opt.which = which;
    ck_assert_int_eq(sps_precond_user(ctx, p->n, divide, calls, &T), SPS_OK);
    ck_assert_int_eq(sps_solver_create_eigen(p->op, NULL, T, 4, &p->opt, &s),
                     SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, p->n, 4, &X), SPS_OK);
    ck_assert_int_eq(sps_solver_eigen(s, X, lambda, &r), SPS_OK);
    ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    for (int j = 0; !strcmp(which, "smallest") && j < 4; j++)
        ck_assert(fabs(lambda[j] - p->lambda[j]) < 1e-8);
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_precond_destroy(&T);
    return r.iterations;
}

START_TEST(a_preconditioner_of_the_caller_serves_and_is_no_help_inside)
{
    pencil p;
    int calls, plain;

    if (runner_quick() || runner_place() == SPS_CUDA)
        runner_leave_out("too long for the quick form, or callback of the host");
    pencil_open(&p, ctx, 600, 4, false);
    p.opt.precond = "none";
    p.opt.rtol = 1e-7;
    for (int i = 0; i < 600; i++) {
        pencil_set(&p, i, i, 1 + (double)i * i);
        if (i) pencil_set(&p, i, i - 1, -0.5);
    }
    pencil_must_agree(&p, "plain");
    plain = p.result.iterations;
    ck_assert_int_lt(3 * solve_with(&p, "smallest", &calls), plain);
    ck_assert_int_gt(calls, 1);
    p.opt.sigma = 30;
    (void)solve_with(&p, "nearest", &calls);
    ck_assert_int_eq(calls, 0);
    ck_assert_ptr_nonnull(strstr(sps_context_note(ctx, 0), "is ignored"));
    pencil_close(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_size_and_every_number_of_pairs),
    RUNNER_TEST(a_callback_is_filtered_and_gives_the_known_spectrum),
    RUNNER_TEST(lapack_keeps_the_digits_of_the_lowest),
    RUNNER_TEST(stiff_springs_leave_the_others_their_digits),
    RUNNER_TEST(what_converges_at_once_does_so_as_it_stands),
    RUNNER_TEST(auto_filters_where_a_preconditioner_is_forbidden),
    RUNNER_TEST(a_multiple_value_at_the_end_of_the_block_is_filtered),
    RUNNER_TEST(auto_takes_lapack_where_it_is_faster_and_says_so),
    RUNNER_TEST(a_preconditioner_of_the_caller_serves_and_is_no_help_inside),
};

RUNNER_MAIN_WITHIN("conform_eigen", tests, open_context, close_context)
