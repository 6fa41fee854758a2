/* SPDX-License-Identifier: BSD-3-Clause */
/* check_eigen_units.c - pencils D K D, D M D with D of powers of two over
 * twelve decades, as with mixed units (forces and moments, metres and
 * microns).  Their eigenvalues are exactly those of K and M, and their
 * eigenvectors are as accurate in doubles; but eps ||D K D|| ||x|| is far
 * above |lambda| ||M x||, so that criteria by norms fail.  And public pencils
 * of this kind, where their files are present. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/draw.h"
#include "eigen/eigen_transform.h"
#include "block/small.h"
#include "tests/problems/pencil.h"
#include "tests/support/runner.h"

#define STIFF 1e11

enum { ROWS = 26, N = 25 * ROWS };

/* 2^e, e from -20 to 20. */
static double unit_of_row(int i)
{
    draw d = { 77 + (uint64_t)i };

    draw_unit(&d);
    return ldexp(1, (int)(41 * draw_unit(&d)) - 20);
}

/* Entry (i, j) of five-point differences. */
static double differences(int i, int j)
{
    int x = abs(i % ROWS - j % ROWS), y = abs(i / ROWS - j / ROWS);

    return x + y == 0 ? 4 : x + y == 1 ? -1 : 0;
}

/* Their square, a plate in bending, on springs, one in ten of them stiff. */
static void plate(pencil *p, bool scaled)
{
    static const int step[] = { 0, 1, -1, ROWS, -ROWS };

    for (int i = 0; i < N; i++) {
        double unit = scaled ? unit_of_row(i) : 1;

        for (int s = 0; s < 25; s++) {
            int j = i + step[s / 5], k = j + step[s % 5];

            if (j < 0 || j >= N || k < 0 || k >= N) continue;
            *pencil_a(p, i, k) += differences(i, j) * differences(j, k) *
                                  (scaled ? unit * unit_of_row(k) : 1);
        }
        *pencil_a(p, i, i) += (i % 10 ? 1e-3 : STIFF) * unit * unit;
        pencil_mass(p, i, i, (1 + 0.1 * (i % 3)) * unit * unit);
    }
}

static void open_plate(pencil *p, sps_context *ctx, const char *which,
                         double sigma, bool scaled)
{
    pencil_open(p, ctx, N, 6, true);
    p->opt.which = which;
    p->opt.sigma = sigma;
    plate(p, scaled);
}

static void must_find(sps_context *ctx, const char *which, double sigma)
{
    pencil p, q;

    open_plate(&p, ctx, which, sigma, true);
    open_plate(&q, ctx, which, sigma, false);
    pencil_must_agree(&q, which);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    for (int i = 0; pencil_converged(&p) && i < p.count; i++)
        ck_assert_msg(fabs(p.lambda[i] - q.lambda[i]) <= 1e-9 * q.lambda[i],
                      "%s, sigma %g: lambda[%d] = %.17g, it is %.17g", which,
                      sigma, i, p.lambda[i], q.lambda[i]);
    pencil_close(&p);
    pencil_close(&q);
}

START_TEST(the_smallest_of_mixed_units_are_found)
{
    sps_context *ctx = pencil_context(1);

    must_find(ctx, "smallest", 0);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_shift_finds_pairs_of_mixed_units)
{
    static const double sigma[] = { 0, 0.5, 3.1 };
    sps_context *ctx = pencil_context(1);

    for (int t = 0; t < (runner_quick() ? 1 : 3); t++)
        must_find(ctx, "nearest", sigma[t]);
    sps_context_destroy(&ctx);
}
END_TEST

/* One support by penalty, and no preconditioner: the method stagnates, and
 * rounding does not explain that. */
START_TEST(what_the_method_cannot_reach_is_not_called_rounding)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    open_plate(&p, ctx, "smallest", 0, false);
    p.opt.precond = "none";
    *pencil_a(&p, 5, 5) = 1e20;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert(p.result.worst_backward < 1e-13 || runner_quick());
    ck_assert_int_ne(p.result.stop, SPS_STOP_CONVERGED);
    ck_assert_int_ne(p.result.stop, SPS_STOP_ROUNDING);
    for (int i = 0; i < p.count; i++)
        ck_assert_int_ne(p.pair[i], SPS_STOP_ROUNDING);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(what_doubles_cannot_hold_is_called_rounding)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int shifted = 0; shifted < 2; shifted++) {
        open_plate(&p, ctx, shifted ? "nearest" : "smallest", 0, true);
        p.opt.rtol = 1e-17;
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        ck_assert_int_ne(p.result.stop, SPS_STOP_CONVERGED);
        for (int i = 0; !runner_quick() && i < p.count; i++) {
            ck_assert_int_eq(p.pair[i], SPS_STOP_ROUNDING);
            ck_assert(p.residual[i] < 1e-12);
        }
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Two unknowns joined by a spring of 2^e, each held by one of 1: the smallest
 * eigenvalue is 1, and A x the difference of numbers 2^e times as large.  In
 * doubles rounding would determine the eigenvalue, with a residual of zero:
 * 1.005 +- 0 at 2^46. */
START_TEST(a_residual_that_is_luck_proves_nothing)
{
    static const char *const solver[] = { "auto", "lobpcg" };
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int t = 0; t < 4 * 49; t++) {
        const int e = 4 + t / 4;
        const bool mass = t % 2;

        pencil_open(&p, ctx, 2, 1, mass);
        p.opt.solver = solver[t / 2 % 2];
        p.opt.rtol = 1e-8;
        pencil_set(&p, 0, 0, ldexp(1, e) + 1);
        pencil_set(&p, 1, 1, ldexp(1, e) + 1);
        pencil_set(&p, 0, 1, -ldexp(1, e));
        for (int i = 0; mass && i < 2; i++) pencil_mass(&p, i, i, 1);
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        if (p.pair[0] == SPS_STOP_CONVERGED)
            ck_assert_msg(fabs(p.lambda[0] - 1) <= 1e-8,
                          "2^%d: %.17g", e, p.lambda[0]);
        ck_assert_msg(fabs(p.lambda[0] - 1) <= p.bound[0] &&
                          p.bound[0] >= DBL_EPSILON / 2,
                      "2^%d: %.17g +- %g", e, p.lambda[0], p.bound[0]);
        ck_assert_msg(p.pair[0] == SPS_STOP_CONVERGED ||
                          (e > 20 && p.pair[0] == SPS_STOP_ROUNDING),
                      "2^%d: %s", e, sps_stop_string(p.pair[0]));
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Unit vectors of a diagonal A: the residual is exactly 0, and the eigenvalue
 * accurate to the last digit, though others are 1e18 times as large. */
START_TEST(exact_eigenvectors_are_good_to_the_last_digit)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int t = 0; t < 2; t++) {
        pencil_open(&p, ctx, 40, 3, t);
        p.opt.rtol = 1e-8;
        for (int i = 0; i < 40; i++) {
            pencil_set(&p, i, i, i < 20 ? 0.1 + 0.7 * i : 1e18 * i);
            if (t) pencil_mass(&p, i, i, 1);
        }
        for (int j = 0; j < 3; j++) p.x[j * 3 + j] = 1;
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        for (int j = 0; j < 3; j++) {
            double exact = p.a[j * 41];

            ck_assert_int_eq(p.pair[j], SPS_STOP_CONVERGED);
            ck_assert_msg(p.bound[j] <= 1e-14 * exact &&
                              p.bound[j] >= DBL_EPSILON / 2 * exact,
                          "%.17g +- %g", p.lambda[j], p.bound[j]);
            ck_assert(fabs(p.lambda[j] - exact) <= p.bound[j]);
            ck_assert(p.residual[j] <= 1e-14);
        }
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Eigenvalues about 1 that differ by 1e-11, and one of 1e9, of a projected
 * matrix: LAPACK computes them within 1e-7 and thus in any order, but their
 * order decides which columns of a block come first. */
START_TEST(ritz_values_of_mixed_units_come_in_order)
{
    enum { SIZE = 12 };
    sps_context *ctx = pencil_context(1);
    sps_small *H = NULL, *V = NULL;
    sps_pencil p = { .ctx = ctx };
    sps_subspace space = { .pencil = &p, .m = SIZE - 1 };
    sps_selection wanted = { .sign = 1 };
    sps_options opt = { .rtol = 1e-8 };
    sps_ritz r = { .space = &space, .wanted = &wanted, .opt = &opt };
    sps_transform none = { .inverted = false };
    sps_stop stop = SPS_STOP_RUNNING;
    double w[SIZE];
    draw d = { 3 };

    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &H), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &V), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &r.U), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &r.C), SPS_OK);
    spsi_small_shape(H, SIZE, SIZE);
    for (int i = 0; i < SIZE; i++)
        for (int j = 0; j <= i; j++)
            *spsi_small_at(H, i, j) = *spsi_small_at(H, j, i) =
                i == 0 ? 1e9
                       : (j > 0 ? 1e-11 : 1e-3) * draw_unit(&d) + (i == j);
    ck_assert_int_eq(spsi_small_copy(H, V), SPS_OK);
    ck_assert_int_eq(spsi_ritz_solve(&r, &none, V, SIZE, w, &stop), SPS_OK);
    for (int t = 0; t < SIZE; t++) {
        double left = 0;

        ck_assert_msg(t == 0 || w[t - 1] <= w[t], "%.17g before %.17g",
                      w[t - 1], w[t]);
        for (int i = 1; t < SIZE - 1 && i < SIZE; i++) {
            double sum = -w[t] * *spsi_small_at(V, i, t);

            for (int j = 0; j < SIZE; j++)
                sum += *spsi_small_at(H, i, j) * *spsi_small_at(V, j, t);
            left = fmax(left, fabs(sum));
        }
        ck_assert_msg(left < 1e-14, "%d: %g", t, left);
    }
    spsi_small_destroy(&H);
    spsi_small_destroy(&V);
    spsi_small_destroy(&r.U);
    spsi_small_destroy(&r.C);
    sps_context_destroy(&ctx);
}
END_TEST

/* The first pairs on their own, as of a long basis, among them a double value
 * and close ones; with `high` one value so large that all pairs have to be
 * computed and refined. */
static void check_first(bool high)
{
    enum { SIZE = 90, PAIRS = 8 };
    sps_context *ctx = pencil_context(1);
    sps_small *H = NULL, *V = NULL;
    sps_pencil p = { .ctx = ctx };
    sps_subspace space = { .pencil = &p, .m = PAIRS };
    sps_selection wanted = { .sign = 1 };
    sps_options opt = { .rtol = 1e-8 };
    sps_ritz r = { .space = &space, .wanted = &wanted, .opt = &opt };
    sps_transform none = { .inverted = false };
    sps_stop stop = SPS_STOP_RUNNING;
    double w[SIZE], own[SIZE], v[SIZE], length = 0, left;
    draw d = { 5 };

    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &H), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &V), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &r.U), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, SIZE, SIZE, &r.C), SPS_OK);
    for (int i = 0; i < SIZE; i++) {
        own[i] = i < 2 ? 1 : i < PAIRS ? 1 + 1e-6 * i : 2 + i;
        v[i] = draw_unit(&d) - 0.5;
        length += v[i] * v[i];
    }
    if (high) own[SIZE - 1] = 1e9;
    /* H = Q diag(own) Q, Q = I - 2 v v' / v'v. */
    for (int j = 0; j < SIZE; j++)
        for (int i = 0; i < SIZE; i++) {
            double sum = 0;

            for (int l = 0; l < SIZE; l++)
                sum += own[l] * ((i == l) - 2 * v[i] * v[l] / length) *
                       ((j == l) - 2 * v[j] * v[l] / length);
            *spsi_small_at(H, i, j) = sum;
        }
    ck_assert_int_eq(spsi_small_copy(H, V), SPS_OK);
    ck_assert_int_eq(spsi_ritz_solve(&r, &none, V, PAIRS, w, &stop), SPS_OK);
    ck_assert_int_eq(stop, SPS_STOP_RUNNING);
    for (int t = 0; t < PAIRS; t++) {
        ck_assert_msg(fabs(w[t] - own[t]) < (high ? 1e-6 : 1e-12), "%d: %.17g",
                      t, w[t]);
        for (int s = 0; s <= t; s++) {
            left = -(s == t);
            for (int i = 0; i < SIZE; i++)
                left += *spsi_small_at(V, i, s) * *spsi_small_at(V, i, t);
            ck_assert_msg(fabs(left) < 1e-12, "%d, %d: %g", s, t, left);
        }
    }
    spsi_small_destroy(&H);
    spsi_small_destroy(&V);
    spsi_small_destroy(&r.U);
    spsi_small_destroy(&r.C);
    sps_context_destroy(&ctx);
}

START_TEST(first_ritz_pairs_are_accurate)
{
    check_first(false);
    check_first(true);
}
END_TEST

/* ------------------------------------------------------- public pencils */

static sps_csr *read_public(sps_context *ctx, const char *name)
{
    const char *given = getenv("SPS_MATRICES"), *source = getenv("srcdir");
    char path[400];
    struct stat s;
    sps_csr *A = NULL;

    snprintf(path, sizeof path, "%s%s/%s.mtx.gz",
             given ? given : source ? source : ".",
             given ? "" : "/../shared/matrices", name);
    if (stat(path, &s)) return NULL;
    ck_assert_int_eq(sps_csr_read(ctx, path, NULL, NULL, &A), SPS_OK);
    return A;
}

typedef struct pair {
    const char *A, *M, *which;
    double sigma;
    int count;
    double exact[4];   /* the first in order */
} pair;

/* bcsstk24: inverse iteration by a Cholesky factor.  bcsstk25: Lanczos on the
 * equilibrated pencil, shift and invert, residuals of 1e-10 and less. */
static const pair pairs[] = {
    { "bcsstk24", "bcsstm24", "smallest", 0, 4,
      { 4.33087112, 9.46944207, 11.8080927, 14.0707535 } },
    { "bcsstk24", "bcsstm24", "nearest", 12, 4,
      { 11.8080927, 14.0707535, 9.46944207, 17.5486231 } },
    { "bcsstk25", "bcsstm25", "smallest", 0, 4,
      { 9.614003820604e-4, 9.794752372100e-4, 9.796113659555e-4,
        9.838095727963e-4 } },
    { "bcsstk25", "bcsstm25", "nearest", 9.5e-4, 4,
      { 9.614003820604e-4, 9.794752372100e-4, 9.796113659555e-4,
        9.838095727963e-4 } },
    { "bcsstk25", "bcsstm25", "nearest", 9.858e-4, 8,
      { 9.858008246929e-4, 9.858016354929e-4, 9.858020906755e-4,
        9.858024307599e-4 } },
};

static void must_find_public(sps_context *ctx, const pair *t)
{
    pencil p;

    pencil_open(&p, ctx, 1, t->count, false);
    p.A = read_public(ctx, t->A);
    p.M = read_public(ctx, t->M);
    /* Large factors have thousands of levels: too slow on a GPU. */
    if (p.A && p.M && (p.A->nrow < 10000 || runner_place() == SPS_HOST)) {
        p.n = (int)p.A->nrow;
        free(p.x);
        p.x = calloc((size_t)p.n * (size_t)t->count, sizeof *p.x);
        p.opt.which = t->which;
        p.opt.sigma = t->sigma;
        p.opt.rtol = 1e-7;
        p.opt.solver = "auto";
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        for (int i = 0; pencil_converged(&p) && i < 4; i++)
            ck_assert_msg(fabs(p.lambda[i] - t->exact[i]) <=
                              2e-8 * t->exact[i], "%s, sigma %g: %.12g, not "
                          "%.12g", t->A, t->sigma, p.lambda[i], t->exact[i]);
    }
    pencil_close(&p);
}

START_TEST(public_pencils_of_mixed_units_converge)
{
    sps_context *ctx = pencil_context(1);

    for (size_t t = 0; !runner_quick() && t < sizeof pairs / sizeof *pairs; t++)
        must_find_public(ctx, &pairs[t]);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_residual_that_is_luck_proves_nothing),
    RUNNER_TEST(exact_eigenvectors_are_good_to_the_last_digit),
    RUNNER_TEST(ritz_values_of_mixed_units_come_in_order),
    RUNNER_TEST(first_ritz_pairs_are_accurate),
    RUNNER_TEST(the_smallest_of_mixed_units_are_found),
    RUNNER_TEST(a_shift_finds_pairs_of_mixed_units),
    RUNNER_TEST(what_the_method_cannot_reach_is_not_called_rounding),
    RUNNER_TEST(what_doubles_cannot_hold_is_called_rounding),
    RUNNER_TEST(public_pencils_of_mixed_units_converge),
};

RUNNER_MAIN("eigen_units", tests)
