/* SPDX-License-Identifier: BSD-3-Clause */
/* check_lobpcg.c - the search: guesses, locking, an exact preconditioner,
 * updated products that drift, results that repeat bit for bit. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/pencil.h"
#include "tests/support/runner.h"

/* More lockings than failures of new products are allowed; and after an early
 * end what has not converged is never reported as converged. */
START_TEST(many_lockings_end_well_and_an_early_end_claims_nothing)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int early = runner_quick(); early < 2; early++) {
        pencil_open(&p, ctx, 200, 60, false);
        p.opt.block = 4;
        p.opt.rtol = 1e-7;
        for (int i = 0; i < 200; i++) {
            pencil_set(&p, i, i, 2);
            if (i > 0) pencil_set(&p, i, i - 1, -1);
        }
        if (!early) {
            pencil_must_agree(&p, "lockings");
        } else {
            p.opt.max_iterations = 3;
            ck_assert_int_eq(pencil_solve(&p), SPS_OK);
            ck_assert(p.result.orthogonality < 1e-10);
            for (int j = 0; j < 60; j++)
                ck_assert(p.pair[j] != SPS_STOP_CONVERGED ||
                          p.residual[j] <= 1e-7);
        }
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Eigenvectors of higher pairs as a guess, in a block of no more columns than
 * pairs: its last columns remain guard columns. */
START_TEST(a_wrong_guess_that_fills_the_block_loses_no_pair)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int block = 3; block < (runner_quick() ? 4 : 6); block++) {
        pencil_open(&p, ctx, 100, 3, false);
        p.opt.block = block;
        for (int i = 0; i < 100; i++) pencil_set(&p, i, i, i + 1);
        for (int j = 0; j < 3; j++) p.x[3 * (j + 2) + j] = 1;
        pencil_must_agree(&p, "higher pairs");
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(an_exact_guess_needs_no_iteration_and_a_wrong_end_is_left)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    pencil_open(&p, ctx, 100, 3, false);
    for (int i = 0; i < 100; i++) pencil_set(&p, i, i, i + 1);
    for (int j = 0; j < 3; j++) p.x[3 * j + j] = 1;
    pencil_must_agree(&p, "exact");
    ck_assert_int_eq(p.result.iterations, 0);
    /* The other end as a guess: eigenvectors, but not those wanted. */
    memset(p.x, 0, 300 * sizeof *p.x);
    for (int j = 0; j < 3; j++) p.x[3 * (99 - j) + j] = 1;
    pencil_must_agree(&p, "wrong end");
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(many_pairs_are_locked_block_after_block)
{
    sps_context *ctx = pencil_context(3);
    pencil p;

    int n = runner_quick() ? 100 : 400, k = runner_quick() ? 12 : 60;

    for (int which = runner_quick(); which < 2; which++)
        for (int block = 6; block <= (runner_quick() ? 6 : 24); block += 18) {
            pencil_open(&p, ctx, n, k, which);
            if (runner_quick()) {   /* some lockings, not compared */
                p.opt.rtol = 0.01;
                p.opt.max_iterations = 12;
            }
            p.opt.block = block;
            p.opt.which = which ? "largest" : "smallest";
            p.opt.precond = "ic0";
            pencil_squares(&p, 5, 20, false);
            for (int i = 0; i < n; i++) {
                *pencil_a(&p, i, i) += i + 1;
                if (p.m) pencil_mass(&p, i, i, 1 + 0.5 * (i % 4));
            }
            if (runner_quick()) ck_assert_int_eq(pencil_solve(&p), SPS_OK);
            else pencil_must_agree(&p, "locking");
            pencil_close(&p);
        }
    sps_context_destroy(&ctx);
}
END_TEST

enum { WIDE = 45, HIGH = 32, MANY = 200 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double sine(int j, int n)
{
    return 4 * pow(sin(acos(-1) * j / (2 * n + 2)), 2);
}

/* Five-point differences on a rectangle: pairs close together and apart, seven
 * and more lockings of a block of 32. */
START_TEST(two_hundred_pairs_of_a_membrane_by_a_block_of_32)
{
    int wide = runner_quick() ? 10 : WIDE, high = runner_quick() ? 12 : HIGH;
    sps_context *ctx = pencil_context(1);
    double exact[WIDE * HIGH];
    pencil p;

    pencil_open(&p, ctx, wide * high, runner_quick() ? 40 : MANY, false);
    p.opt.block = 32;
    p.opt.rtol = 1e-7;
    p.opt.verify_count = true;
    for (int i = 0; i < p.n; i++) {
        exact[i] = sine(i % wide + 1, wide) + sine(i / wide + 1, high);
        pencil_set(&p, i, i, 4);
        if (i % wide) pencil_set(&p, i, i - 1, -1);
        if (i >= wide) pencil_set(&p, i, i - wide, -1);
    }
    qsort(exact, (size_t)p.n, sizeof *exact, ascending);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.block, 32);
    for (int j = 0; pencil_converged(&p) && j < p.count; j++)
        ck_assert_msg(fabs(p.lambda[j] - exact[j]) < 1e-9,
                      "pair %d: %.12g, not %.12g", j, p.lambda[j], exact[j]);
    if (!runner_quick()) ck_assert_int_eq(p.result.missed, 0);
    ck_assert(p.result.orthogonality < 1e-10);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* ----------------------------------------------- functions of the caller */

enum { LINE = 300 };

/* [-1 d -1], d its diagonal; noise in the first products. */
typedef struct line {
    double d, noise;
    int products, noisy;
} line;

static int multiply(double alpha, const double *X, int64_t ldx, double beta,
                    double *Y, int64_t ldy, int64_t n, int k, void *stream,
                    void *data)
{
    line *l = data;
    double noise = l->products++ < l->noisy ? l->noise : 0;

    (void)stream;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double *y = &Y[i * ldy + j], v = l->d * X[i * ldx + j];

            if (i > 0) v -= X[(i - 1) * ldx + j];
            if (i + 1 < n) v -= X[(i + 1) * ldx + j];
            v *= 1 + noise * sin(37.0 * (double)i + l->products);
            *y = alpha * v + (beta == 0 ? 0 : beta * *y);
        }
    return 0;
}

/* Z = alpha A^-1 R + beta Z, by elimination: pivots d - 1 / (pivot before). */
static int divide(double alpha, const double *R, int64_t ldr, double beta,
                  double *Z, int64_t ldz, int64_t n, int k, void *stream,
                  void *data)
{
    const line *l = data;
    double pivot[LINE], x[LINE];

    (void)stream;
    for (int j = 0; j < k; j++) {
        for (int64_t i = 0; i < n; i++) {
            pivot[i] = l->d - (i ? 1 / pivot[i - 1] : 0);
            x[i] = R[i * ldr + j] + (i ? x[i - 1] / pivot[i - 1] : 0);
        }
        for (int64_t i = n - 1; i >= 0; i--) {
            double *z = &Z[i * ldz + j];

            x[i] = (x[i] + (i + 1 < n ? x[i + 1] : 0)) / pivot[i];
            *z = alpha * x[i] + (beta == 0 ? 0 : beta * *z);
        }
    }
    return 0;
}

/* T is the inverse of A, or of A - sigma with sigma just below the lowest
 * eigenvalue: T R lies nearly in the span of X then. */
START_TEST(a_perfect_preconditioner_leads_to_the_pairs_in_few_steps)
{
    static const double below[] = { 0.01, 1e-6, 1e-12 };
    sps_context *ctx;

    if (runner_place() == SPS_CUDA) runner_leave_out("callback of the host");
    ctx = pencil_context(1);
    for (int t = 0; t < 4; t++) {
        line inverse = { .d = 2.01 };
        pencil p;

        pencil_open(&p, ctx, LINE, 6, false);
        p.opt.rtol = 1e-9;
        if (t) inverse.d = 2 - sine(1, LINE) + below[t - 1];
        for (int i = 0; i < LINE; i++) {
            pencil_set(&p, i, i, 2.01);
            if (i) pencil_set(&p, i, i - 1, -1);
        }
        ck_assert_int_eq(sps_precond_user(ctx, LINE, divide, &inverse, &p.T),
                         SPS_OK);
        pencil_must_agree(&p, "perfect");
        ck_assert_int_le(p.result.iterations, 20);
        sps_precond_destroy(&p.T);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

static bool count_renewals(const sps_progress *g, void *data)
{
    if (g->event && !strcmp(g->event, "products renewed")) ++*(int *)data;
    return true;
}

/* The first products have errors, which updated products inherit, as rounding
 * errors would accumulate in a long run; new products reveal them. */
START_TEST(products_that_drift_are_found_out_and_renewed)
{
    sps_context *ctx;

    if (runner_place() == SPS_CUDA) runner_leave_out("callback of the host");
    ctx = pencil_context(1);
    for (int noisy = 0; noisy < 2; noisy++) {
        line a = { .d = 2.5, .noise = 1e-2, .noisy = noisy ? 8 : 0 };
        int renewed = 0;
        pencil p;

        pencil_open(&p, ctx, LINE, 5, false);
        p.opt.true_residual_every = 10;
        p.opt.monitor = count_renewals;
        p.opt.monitor_data = &renewed;
        ck_assert_int_eq(sps_operator_user(ctx, LINE, multiply, &a,
                                           SPS_SYMMETRIC, &p.op), SPS_OK);
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        for (int j = 0; pencil_converged(&p) && j < 5; j++)
            ck_assert(fabs(p.lambda[j] - 0.5 - sine(j + 1, LINE)) < 1e-9);
        ck_assert_int_eq(renewed > 0, noisy && !runner_quick());
        ck_assert_int_ge(p.result.restarts, renewed);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* data: the least residual of the first pair so far, and the largest one since
 * it was below 1e-12. */
static bool watch_the_first(const sps_progress *g, void *data)
{
    double *seen = data;

    if (seen[0] < 1e-12) seen[1] = fmax(seen[1], g->residual[0]);
    seen[0] = fmin(seen[0], g->residual[0]);
    return true;
}

/* The first pair is far below the others and converges long before them.
 * Rounding errors of a basis that is orthonormal by coefficients only grow from
 * one iteration to the next, to 1e-8 here, unless all inner products are formed
 * anew in time. */
START_TEST(a_converged_pair_stays_converged)
{
    sps_context *ctx = pencil_context(1);
    double seen[2] = { 1, 0 };
    pencil p;

    pencil_open(&p, ctx, 650, 6, false);
    p.opt.precond = "ilut";
    p.opt.block = 7;
    p.opt.rtol = 1e-7;
    p.opt.monitor = watch_the_first;
    p.opt.monitor_data = seen;
    pencil_sunken(&p, true);
    pencil_must_agree(&p, "a pair far below");
    ck_assert(runner_quick() || seen[0] < 1e-12);
    ck_assert_msg(seen[1] < 1e-11, "residual %g after %g", seen[1], seen[0]);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

static bool count_extensions(const sps_progress *g, void *data)
{
    if (g->event && !strcmp(g->event, "basis extended")) ++*(int *)data;
    return true;
}

/* Of 60 eigenvalues that agree to 6e-4 the block has room for 8: the basis is
 * extended, restarted when it is full, and needs a fraction of the iterations
 * of [X P W].  Spread eigenvalues leave it as it is. */
START_TEST(a_cluster_wider_than_the_block_extends_the_basis)
{
    sps_context *ctx = pencil_context(1);

    for (int cluster = 0; cluster <= 60; cluster += 60)
        for (int mass = 0; mass < 2; mass++) {
            int extended = 0;
            pencil p;

            pencil_open(&p, ctx, runner_quick() ? 200 : 500, 4, mass);
            p.opt.block = 8;
            p.opt.precond = "none";
            p.opt.monitor = count_extensions;
            p.opt.monitor_data = &extended;
            for (int i = 0; i < p.n; i++) {
                pencil_set(&p, i, i, i < cluster ? 1 + 1e-5 * i
                                                 : 2 + 0.1 * (i - cluster));
                if (mass) pencil_mass(&p, i, i, 1);
            }
            pencil_must_agree(&p, "a cluster");
            ck_assert_int_eq(extended, cluster && !runner_quick());
            ck_assert_int_le(p.result.iterations, cluster ? 300 : 400);
            pencil_close(&p);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* The parts of a solve: directions, locking, the filter, shifts. */
static const struct setting {
    const char *solver, *which, *precond;
    int count, block;
    bool mass;
} settings[] = {
    { "lobpcg", "smallest", "chebyshev", 6, 0, true },
    { "lobpcg", "smallest", "ic0", 12, 5, true },
    { "lobpcg", "largest", "none", 6, 0, false },
    { "lobpcg", "nearest", "auto", 5, 0, true },
    { "chebyshev_filter", "smallest", "none", 6, 0, false },
    { "chebyshev_filter", "nearest", "none", 3, 0, false },
};

/* More rows than two threads have chunks of (rows.h). */
static int rows(void)
{
    return runner_quick() ? 100 : 2500;
}

/* lambda and X, to be freed. */
static double *bits_of(const struct setting *s, int threads)
{
    sps_context *ctx = pencil_context_of(1, threads);
    int n = rows(), k = s->count;
    double *bits = malloc((size_t)(k + n * k) * sizeof *bits);
    pencil p;

    pencil_open(&p, ctx, n, k, s->mass);
    for (int i = 0; i < n; i++) {
        pencil_set(&p, i, i, 2 + i % 50 + 0.01 * i);
        if (p.m) pencil_mass(&p, i, i, 4);
        if (i > 0) pencil_set(&p, i, i - 1, -1);
        if (i > 0 && p.m) pencil_mass(&p, i, i - 1, 1);
    }
    p.opt.solver = s->solver;
    p.opt.which = s->which;
    p.opt.precond = s->precond;
    p.opt.block = s->block;
    p.opt.sigma = 1.3;
    p.opt.rtol = 1e-7;
    if (runner_quick()) p.opt.degree = 20;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    (void)pencil_converged(&p);
    memcpy(bits, p.lambda, (size_t)k * sizeof *bits);
    memcpy(bits + k, p.x, (size_t)n * (size_t)k * sizeof *bits);
    pencil_close(&p);
    sps_context_destroy(&ctx);
    return bits;
}

START_TEST(the_same_solve_gives_the_same_bits_whatever_the_threads)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *s = &settings[i];
        double *first = bits_of(s, 1);

        for (int threads = runner_quick() ? 2 : 1; threads <= 2; threads++) {
            double *again = bits_of(s, threads);

            ck_assert_msg(!memcmp(first, again, (size_t)(s->count *
                                                       (rows() + 1)) *
                                                  sizeof *first),
                          "%s, %s, %s, %d pairs: other bits with %d threads",
                          s->solver, s->which, s->precond, s->count, threads);
            free(again);
        }
        free(first);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(many_lockings_end_well_and_an_early_end_claims_nothing),
    RUNNER_TEST(a_wrong_guess_that_fills_the_block_loses_no_pair),
    RUNNER_TEST(an_exact_guess_needs_no_iteration_and_a_wrong_end_is_left),
    RUNNER_TEST(many_pairs_are_locked_block_after_block),
    RUNNER_TEST(two_hundred_pairs_of_a_membrane_by_a_block_of_32),
    RUNNER_TEST(a_perfect_preconditioner_leads_to_the_pairs_in_few_steps),
    RUNNER_TEST(products_that_drift_are_found_out_and_renewed),
    RUNNER_TEST(a_converged_pair_stays_converged),
    RUNNER_TEST(a_cluster_wider_than_the_block_extends_the_basis),
    RUNNER_TEST(the_same_solve_gives_the_same_bits_whatever_the_threads),
};

RUNNER_MAIN("lobpcg", tests)
