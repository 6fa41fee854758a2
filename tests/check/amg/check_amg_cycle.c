/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_cycle.c - a cycle of multigrid as a linear map: symmetric, positive
 * definite, the same with and without fused products; and its test, which
 * measures how much of the error it leaves. */
#include "tests/check/amg/amg_fixture.h"
#include "tests/support/runner.h"

/* r'M z = z'M r and r'M r > 0 on several levels, for every degree; a column by
 * itself is what it is among others.  In doubles, and in floats up to their
 * rounding. */
static void try_symmetric(const char *precision, double error)
{
    enum { K = 5 };

    for (int degree = 1; degree <= 4; degree++) {
        amg_case c;
        sps_block *R = NULL, *Z = NULL, *r = NULL, *z = NULL;
        sps_small *G = NULL;
        double *many, *one;
        int64_t n;

        amg_open(&c, "poisson7 13", 2, K);
        c.opt.degree = degree;
        c.opt.precision = precision;
        ck_assert_int_gt(amg_make(&c)->levels, 1);
        n = c.A->nrow;
        many = malloc((size_t)n * K * sizeof *many);
        one = malloc((size_t)n * sizeof *one);
        R = fixture_block(c.ctx, n, K, NULL, 0);
        Z = fixture_block(c.ctx, n, K, NULL, 0);
        OK(c.ctx, sps_block_random(R, 5));
        OK(c.ctx, sps_precond_apply(c.M, R, Z));
        OK(c.ctx, spsi_small_create(c.ctx, K, K, &G));
        OK(c.ctx, spsi_gram(R, Z, G));
        for (int i = 0; i < K; i++) {
            ck_assert(*spsi_small_at(G, i, i) > 0);
            for (int j = 0; j < i; j++)
                ck_assert_double_le(fabs(*spsi_small_at(G, i, j) -
                                         *spsi_small_at(G, j, i)),
                                    error * *spsi_small_at(G, i, i));
        }
        OK(c.ctx, sps_block_get(R, 0, K, many, K, SPS_ROW_MAJOR, SPS_HOST));
        for (int64_t i = 0; i < n; i++) one[i] = many[i * K + 3];
        r = fixture_block(c.ctx, n, 1, one, 1);
        z = fixture_block(c.ctx, n, 1, NULL, 0);
        OK(c.ctx, sps_precond_apply(c.M, r, z));
        OK(c.ctx, sps_block_get(z, 0, 1, one, 1, SPS_ROW_MAJOR, SPS_HOST));
        OK(c.ctx, sps_block_get(Z, 0, K, many, K, SPS_ROW_MAJOR, SPS_HOST));
        for (int64_t i = 0; i < n; i++)
            ck_assert_double_le(fabs(one[i] - many[i * K + 3]),
                                error * (1 + fabs(one[i])));
        spsi_small_destroy(&G);
        sps_block_destroy(&R);
        sps_block_destroy(&Z);
        sps_block_destroy(&r);
        sps_block_destroy(&z);
        free(many);
        free(one);
        amg_close(&c);
    }
}

START_TEST(a_cycle_is_symmetric_and_positive)
{
    try_symmetric("double", 1e-13);
    try_symmetric("auto", 1e-6);
}
END_TEST

/* Makes all levels prolong by P and then take every smoothing step. */
static int leave_ahead(const amg *m)
{
    int had = 0;

    for (int i = 0; i + 1 < m->levels; i++) {
        amg_level *l = (amg_level *)&m->level[i];

        had += l->parts.ahead != NULL;
        sps_operator_destroy(&l->parts.ahead);
        if (!l->parts.prolong)
            OK(m->super.ctx, sps_operator_csr(m->super.ctx, l->P,
                                              m->super.width, NULL,
                                              &l->parts.prolong));
    }
    return had;
}

static double largest_of(const sps_block *X)
{
    double most[SPS_BLOCK_MAX], result = 0;

    OK(X->ctx, spsi_largest(X, most));
    for (int j = 0; j < X->k; j++) result = fmax(result, most[j]);
    return result;
}

/* Prolongation with a smoothing step in one product is both of them, for every
 * degree, also with new values. */
START_TEST(a_step_ahead_changes_nothing)
{
    static const char *const line[] = {
        "poisson7 24", "laplace27 12 -jump", "elasticity 8",
        "convection 24 -velocity 0.6",
    };

    for (int t = 0; t < 16; t++) {
        amg_case c;
        sps_block *R, *Y, *Z;

        amg_open(&c, line[t % 4], 2, 5);
        c.opt.degree = 1 + t / 4;
        c.opt.precision = "double";
        (void)amg_make(&c);
        if (t % 3 == 0) OK(c.ctx, sps_precond_update(c.M));
        R = fixture_block(c.ctx, c.A->nrow, 5, NULL, 0);
        Y = fixture_block(c.ctx, c.A->nrow, 5, NULL, 0);
        Z = fixture_block(c.ctx, c.A->nrow, 5, NULL, 0);
        OK(c.ctx, sps_block_random(R, 5));
        OK(c.ctx, sps_precond_apply(c.M, R, Y));
        ck_assert_msg(leave_ahead((const amg *)c.M) > 0, "%s", line[t % 4]);
        OK(c.ctx, sps_precond_apply(c.M, R, Z));
        OK(c.ctx, spsi_axpby(-1.0, Z, 1.0, Y));
        ck_assert_double_le(largest_of(Y), 1e-13 * largest_of(Z));
        sps_block_destroy(&R);
        sps_block_destroy(&Y);
        sps_block_destroy(&Z);
        amg_close(&c);
    }
}
END_TEST

/* -------------------------------------------------------- test of the cycle */

/* Four cycles are left to where the rate of the first ones says little: it
 * doubles from the first to the second where couplings have a direction.  In
 * elasticity rates grow more slowly from small ones. */
START_TEST(a_steady_cycle_is_tested_twice)
{
    static const struct { const char *line; int cycles; } system[] = {
        { "poisson7 16", 2 }, { "laplace27 16 -perturb 1", 2 },
        { "poisson7 16 -neumann", 2 }, { "laplace27 16 -aniso 0.1", 4 },
        { "elasticity 8", 3 },
    };

    for (size_t t = 0; t < sizeof system / sizeof *system; t++) {
        amg_case c;

        amg_open(&c, system[t].line, 2, 4);
        ck_assert_msg(amg_make(&c)->tests == system[t].cycles,
                      "%s: %d cycles, %g", system[t].line,
                      ((const amg *)c.M)->tests, c.M->rate);
        OK(c.ctx, sps_precond_update(c.M));
        ck_assert_int_eq(((const amg *)c.M)->tests, system[t].cycles);
        amg_close(&c);
    }
}
END_TEST

/* Smoothers for a part of the spectrum: the rates of four cycles are 0.13,
 * 0.38, 0.59, 0.64 for 0.85 of it, 0.22, 0.86, 1.11, 1.19 for 0.8. */
START_TEST(a_cycle_that_grows_worse_is_tested_to_the_end)
{
    for (int t = 0; t < 2; t++) {
        amg_case c;
        amg *m;

        amg_open(&c, "poisson7 16", 2, 4);
        (void)amg_make(&c);
        m = (amg *)c.M;
        for (int i = 0; i < m->level[0].smoother.degree; i++)
            m->level[0].smoother.root[i] *= t ? 0.8 : 0.85;
        ck_assert_int_eq(spsi_amg_test(m), t ? SPS_EUNFIT : SPS_OK);
        ck_assert_int_eq(m->tests, 4);
        ck_assert_double_ge(m->super.rate, t ? 1.1 : 0.55);
        if (t)
            ck_assert_ptr_nonnull(strstr(sps_context_error(c.ctx),
                                         "does not converge"));
        amg_close(&c);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_cycle_is_symmetric_and_positive),
    RUNNER_TEST(a_step_ahead_changes_nothing),
    RUNNER_TEST(a_steady_cycle_is_tested_twice),
    RUNNER_TEST(a_cycle_that_grows_worse_is_tested_to_the_end),
};
RUNNER_MAIN("amg_cycle", tests)
