/* SPDX-License-Identifier: BSD-3-Clause */
/* check_eigen_nulls.c - pairs nearest to a shift with known null vectors: those
 * that A and M share, with which A - sigma M is singular for every sigma, and
 * those of A alone, with eigenvalue zero. */
#include <check.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/pencil.h"
#include "tests/support/runner.h"

/* L of a ring of n vertices: entry (i, j). */
static double ring(int n, int i, int j)
{
    int apart = (i - j + n) % n;

    return apart == 0 ? 2 : apart == 1 || apart == n - 1 ? -1 : 0;
}

/* K = L L and M = L of `rings` rings, in units 2^e of each unknown where
 * `units`: both map the constant on each ring to zero, and in its complement
 * the eigenvalues are 2 - 2 cos(2 pi j / n), twice each of each ring. */
static void open_rings(pencil *p, sps_context *ctx, int n, int rings,
                       bool units)
{
    pencil_open(p, ctx, n * rings, 6, true);
    p->opt.rtol = 1e-6;
    p->opt.verify_count = true;
    p->nulls = rings;
    p->null = calloc((size_t)(n * rings * rings), sizeof *p->null);
    for (int i = 0; i < n * rings; i++) {
        int first = i / n * n, power = units ? i * 7 % 23 - 11 : 0;

        p->null[i * rings + i / n] = ldexp(1, -power);
        for (int step = -2; step <= 2; step++) {
            int j = first + (i - first + step + n) % n, sum = 0;
            int scale = power + (units ? j * 7 % 23 - 11 : 0);

            for (int m = first; m < first + n; m++)
                sum += (int)(ring(n, i - first, m - first) *
                             ring(n, m - first, j - first));
            *pencil_a(p, i, j) = ldexp(sum, scale);
            p->m[(long)i * p->n + j] =
                ldexp(ring(n, i - first, j - first), scale);
        }
    }
}

/* The six values next to sigma, nearest first. */
static void next_to(int n, int rings, double sigma, double *exact)
{
    int count = 0;

    for (int j = 1; j < n; j++)
        for (int r = 0; r < rings; r++) {
            double value = 4 * pow(sin(acos(-1) * j / n), 2);
            int at = count < 6 ? count++ : 6;

            for (; at > 0 && fabs(exact[at - 1] - sigma) >
                             fabs(value - sigma); at--)
                if (at < 6) exact[at] = exact[at - 1];
            if (at < 6) exact[at] = value;
        }
}

static void must_find_ring(const pencil *p, int n, const char *what)
{
    double exact[6];

    next_to(n, p->nulls, p->opt.sigma, exact);
    for (int j = 0; pencil_converged(p) && j < 6; j++) {
        ck_assert_msg(fabs(p->lambda[j] - exact[j]) < 1e-9,
                      "%s, %d: lambda[%d] = %.12g, not %.12g", what, p->n, j,
                      p->lambda[j], exact[j]);
        ck_assert_msg(p->bound[j] < 1e-4, "%s, %d: +- %g", what, p->n,
                      p->bound[j]);
        ck_assert_int_eq(p->result.missed, 0);
    }
}

/* A - sigma M is singular for every sigma. */
START_TEST(a_shift_beside_null_vectors_that_both_share)
{
    static const int rows[] = { 120, 1100 };   /* by an inverse, by factors */
    static const double sigma[] = { 0.3, 2.013, 1e-3 };
    int sizes = runner_quick() || runner_place() != SPS_HOST ? 1 : 2;
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int run = 0; run < (runner_quick() ? 1 : 6 * sizes); run++) {
        int n = rows[run / 6], rings = 1 + run / 3 % 2;

        open_rings(&p, ctx, n, rings, run % 2);
        p.opt.which = "nearest";
        p.opt.sigma = sigma[run % 3];
        if (runner_quick()) p.opt.max_iterations = 3;
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        must_find_ring(&p, n, p.opt.which);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* The same pairs by shift and invert and by LAPACK. */
START_TEST(a_shift_beside_shared_null_vectors_and_a_constraint)
{
    sps_context *ctx = pencil_context(1);
    pencil p, q;

    open_rings(&p, ctx, 150, 2, true);
    open_rings(&q, ctx, 150, 2, false);
    p.constraint = q.constraint = 40;
    q.opt.solver = "auto";
    p.opt.which = "nearest";
    p.opt.sigma = -1e-3;
    if (runner_quick()) p.opt.max_iterations = q.opt.max_iterations = 3;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(pencil_solve(&q), SPS_OK);
    for (int j = 0; pencil_converged(&p) && pencil_converged(&q) && j < 6; j++)
        ck_assert_msg(fabs(p.lambda[j] - q.lambda[j]) < 1e-9,
                      "lambda[%d] = %.12g and %.12g", j, p.lambda[j],
                      q.lambda[j]);
    pencil_close(&p);
    pencil_close(&q);
    sps_context_destroy(&ctx);
}
END_TEST

/* M is definite, and the eigenvalue zero of the null vectors is left out. */
START_TEST(zero_is_no_shift_beside_known_null_vectors)
{
    sps_context *ctx = pencil_context(1);
    double exact[6];
    pencil p;

    open_rings(&p, ctx, 150, 2, false);
    p.opt.which = "nearest";
    if (runner_quick()) p.opt.max_iterations = 3;
    for (int i = 0; i < p.n; i++)
        for (int j = 0; j < p.n; j++) {
            *pencil_a(&p, i, j) = p.m[(long)i * p.n + j];
            p.m[(long)i * p.n + j] = i == j;
        }
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    next_to(150, 2, 0, exact);
    for (int j = 0; pencil_converged(&p) && j < 6; j++)
        ck_assert_msg(fabs(p.lambda[j] - exact[j]) < 1e-9, "%.12g, not %.12g",
                      p.lambda[j], exact[j]);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* diag(1, .., 6), and four constraints that all are e_2: five pairs are left.
 */
START_TEST(dependent_constraints_leave_room_for_pairs)
{
    static const double exact[] = { 1, 3, 4, 5, 6 };
    static const char *const solver[] = { "auto", "lobpcg" };
    double y[6 * 4] = { 0 };

    for (int j = 0; j < 4; j++) y[4 + j] = j + 1;
    for (int t = 0; t < 2; t++) {
        sps_context *ctx = pencil_context(1);
        sps_block *Y = NULL, *X = NULL;
        sps_eigen_result r = { .struct_size = sizeof r };
        sps_solver *s = NULL;
        pencil p;

        pencil_open(&p, ctx, 6, 5, false);
        p.opt.solver = solver[t];
        for (int i = 0; i < 6; i++) pencil_set(&p, i, i, i + 1);
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);   /* makes the operator */
        ck_assert_int_eq(sps_block_create(ctx, 6, 4, &Y), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, 6, 5, &X), SPS_OK);
        ck_assert_int_eq(sps_block_set(Y, 0, 4, y, 4, SPS_ROW_MAJOR, SPS_HOST),
                         SPS_OK);
        p.opt.constraints = Y;
        ck_assert_msg(sps_solver_create_eigen(p.op, NULL, NULL, 5, &p.opt,
                                              &s) == SPS_OK,
                      "%s", sps_context_error(ctx));
        ck_assert_int_eq(sps_solver_eigen(s, X, p.lambda, &r), SPS_OK);
        for (int j = 0; j < 5; j++)
            ck_assert(fabs(p.lambda[j] - exact[j]) < 1e-9);
        sps_solver_destroy(&s);
        ck_assert_int_eq(sps_solver_create_eigen(p.op, NULL, NULL, 6, &p.opt,
                                                 &s), SPS_EINVAL);
        sps_block_destroy(&Y);
        sps_block_destroy(&X);
        p.opt.constraints = NULL;
        pencil_close(&p);
        sps_context_destroy(&ctx);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(dependent_constraints_leave_room_for_pairs),
    RUNNER_TEST(a_shift_beside_null_vectors_that_both_share),
    RUNNER_TEST(a_shift_beside_shared_null_vectors_and_a_constraint),
    RUNNER_TEST(zero_is_no_shift_beside_known_null_vectors),
};

RUNNER_MAIN("eigen_nulls", tests)
