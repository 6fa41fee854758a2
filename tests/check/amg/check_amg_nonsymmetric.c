/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_nonsymmetric.c - multigrid for matrices that are far from
 * symmetric: iterations of GMRES, when that is, couplings, new values, and what
 * is refused. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/check/amg/amg_fixture.h"
#include "tests/support/runner.h"

typedef struct limit {
    const char *line;
    int iterations;
    double complexity;
    bool quick;
} limit;

/* One column to 1e-8: a cell Peclet number below 1, above it, and one for which
 * convection alone counts.  GMRES takes M for linear: its rounding to floats may
 * cost an iteration (10 for 9 in doubles in the first case). */
START_TEST(convection_takes_few_iterations)
{
    static const limit limits[] = {
        { "convection 16 -velocity 0.6", 10, 1.6, true },
        { "convection 16 -velocity 60", 16, 2.5, true },
        { "convection 24 20 16 -velocity 5", 17, 2.5, false },
        { "convection 32 -velocity 60", 21, 2.7, false },
    };
    static const char *const method[] = { "gmres", "block_gmres", "bicgstab" };

    for (size_t t = 0; t < sizeof limits / sizeof *limits; t++)
        for (int q = 0; q < 3; q++) {
            amg_case c;
            const amg *m;
            sps_result result;

            if (runner_quick() && !limits[t].quick) continue;
            amg_open(&c, limits[t].line, 2, 1);
            c.opt.solver = method[q];
            m = amg_make(&c);
            ck_assert(m->level[0].nonsymmetric && m->levels > 1);
            ck_assert_double_le(amg_complexity(m), limits[t].complexity);
            ck_assert_int_eq(m->tests, 4);   /* its rates need not ascend */
            result = amg_solve(&c);
            ck_assert_msg(result.stop == SPS_STOP_CONVERGED &&
                          result.iterations <= limits[t].iterations,
                          "%s, %s: %d iterations, %s", limits[t].line,
                          method[q], result.iterations,
                          sps_stop_string(result.stop));
            ck_assert_double_le(result.worst_residual, 1e-8);
            amg_close(&c);
        }
}
END_TEST

/* Adds s to the entries above the diagonal: ||A - A'|| = s sqrt(2 u) with u of
 * them. */
static double skew(whole *w, double s)
{
    double norm = 0, difference = 0;

    for (int64_t i = 0; i < w->g.rows; i++)
        for (int64_t p = w->rowptr[i]; p < w->rowptr[i + 1]; p++) {
            if (w->col[p] > i) {
                w->val[p] += s;
                difference += 2 * s * s;
            }
            norm += w->val[p] * w->val[p];
        }
    return sqrt(difference / norm);
}

/* On both sides of ||A - A'|| = 0.1 ||A||; both are solved. */
START_TEST(a_tenth_of_the_norm_decides)
{
    static const double part[] = { 0.2, 0.5 };

    for (int far = 0; far < 2; far++) {
        amg_case c;
        double ratio;
        sps_result result;

        amg_open(&c, "poisson7 12", 2, 3);
        sps_operator_destroy(&c.op);
        ratio = skew(&c.w, part[far] * fabs(c.w.val[1]));
        ck_assert_int_eq(ratio > 0.1, far);
        ck_assert_double_gt(ratio, 0.05);
        c.A->props &= ~(unsigned)(SPS_SYMMETRIC | SPS_SPD);
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, 3, NULL, &c.op));
        c.opt.solver = "gmres";
        ck_assert_int_eq(amg_make(&c)->level[0].nonsymmetric, far);
        ck_assert_int_eq(amg_describes(c.M, "damped Jacobi"), far);
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED &&
                      result.iterations <= 12, "%g: %d iterations", ratio,
                      result.iterations);
        amg_close(&c);
    }
}
END_TEST

/* Strong couplings go both ways, though half of the entries are missing: a
 * lower bidiagonal matrix, whose nodes are then one line. */
START_TEST(couplings_of_one_direction_join_aggregates)
{
    enum { N = 2000 };
    amg_case c = { .ctx = fixture_open(), .k = 2 };
    const amg *m;
    sps_result result;

    OK(c.ctx, sps_csr_create(c.ctx, N, N, 2 * N - 1, SPS_F64, &c.A));
    for (int64_t i = 0, to = 0; i < N; i++) {
        if (i > 0) {
            c.A->col[to] = (int32_t)(i - 1);
            ((double *)c.A->val)[to++] = -1;
        }
        c.A->col[to] = (int32_t)i;
        ((double *)c.A->val)[to++] = 1.25;
        c.A->rowptr[i + 1] = to;
    }
    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    c.opt.solver = "gmres";
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    m = amg_make(&c);
    ck_assert_int_gt(m->levels, 1);
    for (int64_t v = 0; v < N; v++) {
        const int64_t p = m->level[0].strong.rowptr[v];

        ck_assert_int_ge(m->level[0].aggregate[v], 0);
        ck_assert_int_eq(m->level[0].strong.rowptr[v + 1] - p,
                         v == 0 || v == N - 1 ? 1 : 2);
        ck_assert_int_eq(m->level[0].strong.col[p], v == 0 ? 1 : v - 1);
    }
    result = amg_solve(&c);
    ck_assert_msg(result.stop == SPS_STOP_CONVERGED, "%s",
                  sps_stop_string(result.stop));
    sps_precond_destroy(&c.M);
    sps_operator_destroy(&c.op);
    sps_csr_destroy(c.ctx, &c.A);
    fixture_close(&c.ctx);
}
END_TEST

/* The same bits for any number of threads, and again after new values and
 * back. */
START_TEST(hierarchies_repeat)
{
    static const int threads[] = { 1, 2, 8 };
    amg_case c[3];
    whole other = make("convection 14 -velocity 3");

    for (int q = 0; q < 3; q++) {
        amg_open(&c[q], "convection 14 -velocity 60", threads[q], 2);
        (void)amg_make(&c[q]);
        ck_assert(amg_same((const amg *)c[0].M, (const amg *)c[q].M));
    }
    OK(c[1].ctx, sps_operator_set_values(c[1].op, other.val, SPS_HOST));
    OK(c[1].ctx, sps_precond_update(c[1].M));
    ck_assert(!amg_same((const amg *)c[0].M, (const amg *)c[1].M));
    OK(c[1].ctx, sps_operator_set_values(c[1].op, c[0].w.val, SPS_HOST));
    OK(c[1].ctx, sps_precond_update(c[1].M));
    ck_assert(amg_same((const amg *)c[0].M, (const amg *)c[1].M));
    for (int q = 0; q < 3; q++) amg_close(&c[q]);
    drop(&other);
}
END_TEST

/* A negative diagonal entry; a circulant shift, I - P, singular and small, so
 * that the dense level is all; NaN. */
START_TEST(what_does_not_fit_is_refused)
{
    static const char *const words[] = { "entry (8, 8) is -1", "singular" };

    for (int t = 0; t < 2; t++) {
        enum { N = 50 };
        amg_case c = { .ctx = fixture_open(), .k = 2 };

        OK(c.ctx, sps_csr_create(c.ctx, N, N, 2 * N, SPS_F64, &c.A));
        for (int64_t i = 0; i < N; i++) {
            const int64_t next = (i + 1) % N, p = 2 * i;
            const bool last = next < i;

            c.A->rowptr[i + 1] = p + 2;
            c.A->col[p + last] = (int32_t)i;
            c.A->col[p + !last] = (int32_t)next;
            ((double *)c.A->val)[p + last] = t == 0 && i == 7 ? -1 : 1;
            ((double *)c.A->val)[p + !last] = -1;
        }
        sps_options_default(&c.opt);
        c.opt.precond = "amg";
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
        amg_refused(&c, SPS_EUNFIT, words[t]);
        sps_operator_destroy(&c.op);
        sps_csr_destroy(c.ctx, &c.A);
        fixture_close(&c.ctx);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(convection_takes_few_iterations),
    RUNNER_TEST(a_tenth_of_the_norm_decides),
    RUNNER_TEST(couplings_of_one_direction_join_aggregates),
    RUNNER_TEST(hierarchies_repeat),
    RUNNER_TEST(what_does_not_fit_is_refused),
};
RUNNER_MAIN("amg_nonsymmetric", tests)
