/* SPDX-License-Identifier: BSD-3-Clause */
/* check_amg_odd.c - multigrid on matrices that have no coarser level, are tiny
 * or in other units; and what is refused. */
#include "tests/check/amg/amg_fixture.h"
#include "tests/support/callback.h"
#include "tests/support/runner.h"

/* All couplings of a mass matrix are positive: there is no coarser level, and
 * more rows than are inverted. */
START_TEST(a_matrix_without_strong_couplings)
{
    char error[160] = "";
    amg_case c = { .ctx = fixture_open(), .k = 3 };
    whole grid = make("laplace27 12 -perturb 1"), mass = grid;
    sps_result result;

    mass.g.spec.mass = GEN_CONSISTENT;
    ck_assert(gen_open(&mass.g.spec, &grid.g, error));
    ck_assert_int_eq(grid.g.nnz, mass.g.nnz);
    gen_fill(&grid.g, grid.rowptr, grid.col, grid.val);
    c.w = grid;
    c.A = amg_wrap(c.ctx, &c.w);
    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    c.opt.solver = "block_cg";
    OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
    ck_assert_int_eq(amg_make(&c)->levels, 1);
    result = amg_solve(&c);
    ck_assert_msg(result.stop == SPS_STOP_CONVERGED && result.iterations <= 15,
                  "%d iterations", result.iterations);
    amg_close(&c);
}
END_TEST

/* diag(d) is solved in one iteration if its entries are equal after scaling. */
START_TEST(diagonal_and_tiny_matrices)
{
    static const int64_t rows[] = { 1, 2, 3, 599, 600, 601, 2000 };

    for (size_t t = 0; t < sizeof rows / sizeof *rows; t++) {
        const int64_t n = rows[t];
        amg_case c = { .ctx = fixture_open(), .k = 2 };
        sps_result result;

        OK(c.ctx, sps_csr_create(c.ctx, n, n, n, SPS_F64, &c.A));
        for (int64_t i = 0; i < n; i++) {
            c.A->rowptr[i + 1] = i + 1;
            c.A->col[i] = (int32_t)i;
            ((double *)c.A->val)[i] = ldexp(1 + (double)(i % 7), (int)i % 40);
        }
        sps_options_default(&c.opt);
        c.opt.precond = "amg";
        c.opt.solver = "block_cg";
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, c.k, NULL, &c.op));
        ck_assert_int_eq(amg_make(&c)->levels, 1);
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED &&
                      result.iterations <= 2, "%d rows: %d iterations", (int)n,
                      result.iterations);
        sps_precond_destroy(&c.M);
        sps_operator_destroy(&c.op);
        sps_csr_destroy(c.ctx, &c.A);
        fixture_close(&c.ctx);
    }
}
END_TEST

/* The same iterations, since all is as if A were scaled to unit diagonal. */
START_TEST(units_do_not_matter)
{
    amg_case c;
    sps_result result;
    int iterations[2];

    for (int scaled = 0; scaled < 2; scaled++) {
        amg_open(&c, "poisson7 14", 2, 3);
        for (int64_t p = 0; scaled && p < c.A->nnz; p++)
            c.w.val[p] = ldexp(c.w.val[p], -400);
        sps_operator_destroy(&c.op);
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, 3, NULL, &c.op));
        (void)amg_make(&c);
        result = amg_solve(&c);
        ck_assert_msg(result.stop == SPS_STOP_CONVERGED, "%s",
                      sps_stop_string(result.stop));
        iterations[scaled] = result.iterations;
        amg_close(&c);
    }
    ck_assert_int_eq(iterations[0], iterations[1]);
}
END_TEST

/* ------------------------------------------------------------------ refused */

static int nothing(double alpha, const double *X, int64_t ldx, double beta,
                   double *Y, int64_t ldy, int64_t n, int k, void *stream,
                   void *data)
{
    (void)alpha, (void)X, (void)ldx, (void)beta, (void)Y, (void)ldy;
    (void)n, (void)k, (void)stream, (void)data;
    return 0;
}

START_TEST(what_does_not_fit_is_refused)
{
    static const char *const words[] = {
        "entry (8, 8) is -1", "is 0: use",
        "negative eigenvalues", "1 to 4", "is nan", "block_size",
    };

    for (int t = 0; t < 6; t++) {
        amg_case c;
        double *diagonal;

        amg_open(&c, "poisson7 10", 2, 2);
        diagonal = (double *)(uintptr_t)find(&c.w, 7, 7);
        if (t == 0) *diagonal = -1;
        if (t == 1) *diagonal = 0;
        for (int64_t i = 0; t == 2 && i < c.A->nrow; i++)
            *(double *)(uintptr_t)find(&c.w, i, i) -= 2;
        if (t == 3) c.opt.degree = 5;
        if (t == 5) c.opt.near_null = "filtered";
        if (t == 4) *diagonal = NAN;
        c.A->props = SPS_SYMMETRIC;
        sps_operator_destroy(&c.op);
        OK(c.ctx, sps_operator_csr(c.ctx, c.A, 2, NULL, &c.op));
        amg_refused(&c, t == 3 ? SPS_EINVAL : SPS_EUNFIT, words[t]);
        amg_close(&c);
    }
}
END_TEST

/* Near-null vectors of another length, too many, zero, not finite. */
START_TEST(vectors_that_do_not_fit_are_refused)
{
    static const struct { int64_t rows; int k; double x; sps_status code;
                          const char *words; } set[] = {
        { 999, 1, 1, SPS_ESHAPE, "999 rows, the matrix 1000" },
        { 1000, 13, 1, SPS_EUNFIT, "at most 12" },
        { 1000, 2, 0, SPS_EINVAL, "vector 1 of 2 is 0" },
        { 1000, 2, NAN, SPS_EINVAL, "vector 1 of 2 is nan" },
        { 1000, 1, INFINITY, SPS_EINVAL, "vector 1 of 1 is inf" },
    };

    for (size_t t = 0; t < sizeof set / sizeof *set; t++) {
        const int64_t entries = set[t].rows * set[t].k;
        double *x = malloc((size_t)entries * sizeof *x);
        amg_case c;
        sps_block *X;

        amg_open(&c, "poisson7 10", 2, 2);
        for (int64_t e = 0; e < entries; e++) x[e] = set[t].x;
        X = fixture_block(c.ctx, set[t].rows, set[t].k, x, set[t].k);
        c.opt.near_null_basis = X;
        amg_refused(&c, set[t].code, set[t].words);
        sps_block_destroy(&X);
        free(x);
        amg_close(&c);
    }
}
END_TEST

START_TEST(a_callback_is_refused)
{
    amg_case c = { .ctx = fixture_open(), .k = 2 };
    callback none = { c.ctx, nothing, NULL };

    sps_options_default(&c.opt);
    c.opt.precond = "amg";
    OK(c.ctx, sps_operator_user(c.ctx, 50, callback_anywhere, &none, SPS_SPD,
                                &c.op));
    amg_refused(&c, SPS_EUNFIT, "callback");
    sps_operator_destroy(&c.op);
    fixture_close(&c.ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_matrix_without_strong_couplings),
    RUNNER_TEST(diagonal_and_tiny_matrices),
    RUNNER_TEST(units_do_not_matter),
    RUNNER_TEST(what_does_not_fit_is_refused),
    RUNNER_TEST(vectors_that_do_not_fit_are_refused),
    RUNNER_TEST(a_callback_is_refused),
};
RUNNER_MAIN("amg_odd", tests)
