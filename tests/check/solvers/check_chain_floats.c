/* SPDX-License-Identifier: BSD-3-Clause */
/* check_chain_floats.c - solver auto with option precision: when it chooses
 * single precision. */
#include "solvers/auto/chain.h"
#include "tests/support/chain_fixture.h"
#include "operator/operator.h"

/* Small blocks are not faster in single precision, and a note says so; a method
 * selected by name is used regardless. */
START_TEST(floats_are_not_taken_where_they_do_not_pay)
{
    problem p;

    problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 4);
    p.opt.precision = "mixed";
    p.opt.factors = "never";
    must_solve(&p, "small, mixed allowed");
    ck_assert_str_eq(p.result.solver, "block_cg");
    ck_assert(noted("auto: double precision"));
    problem_close(&p);
    problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 4);
    p.opt.solver = "block_cg";
    p.opt.precision = "mixed";
    must_solve(&p, "small, named");
    ck_assert_str_eq(p.result.solver, "refinement");
    problem_close(&p);
}
END_TEST

START_TEST(floats_are_taken_for_large_blocks_on_a_gpu)
{
    problem p;

    problem_open(&p, ctx, zoo("grid5", 300000, ZOO_SPD), 16);
    p.opt.precision = "mixed";
    p.opt.precond = "jacobi";
    p.opt.rtol = 1e-10;
    must_solve(&p, "large");
    ck_assert_str_eq(p.result.solver, runner_place() == SPS_CUDA
                     ? "refinement" : "block_cg");
    problem_close(&p);
}
END_TEST

/* D A D with D alternating between 1 and 3: as definite as A, but the rows with
 * 1 are not diagonally dominant. */
static void scale_in_turn(sps_csr *A)
{
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] *= (i % 2 ? 3 : 1) *
                                     (A->col[p] % 2 ? 3 : 1);
}

/* The reason against single precision for a matrix like A with this number of
 * rows, whose longest row is `longer` times the mean. */
static const char *against(sps_csr *A, int64_t rows, bool definite,
                           double longer)
{
    sps_operator *op = NULL;
    sps_chain l = { .ctx = ctx };
    sps_features f;
    sps_chain_traits o;

    ck_assert_int_eq(sps_operator_csr(ctx, A, 16, NULL, &op), SPS_OK);
    l.A = op;
    ck_assert_int_eq(spsi_chain_examine(&l, &o), SPS_OK);
    f = op->f;
    f.nrow = rows;
    f.max_length = (int64_t)(longer * f.mean_length + 1);
    sps_operator_destroy(&op);
    return spsi_chain_against_single(&o, definite, &f, 16);
}

START_TEST(floats_are_weighed_by_size_dominance_and_lengths_of_rows)
{
    static const char *const family[] = { "grid5", "grid27" };
    const int64_t most = 1 << 21;

    for (int i = 0; i < 2; i++) {
        sps_csr *A = zoo(family[i], 1000, ZOO_LAPLACIAN);
        const int64_t large = i == 0 ? most / 8 : most;

        ck_assert_ptr_null(against(A, large, true, 1));
        ck_assert_ptr_nonnull(strstr(against(A, large - 1, true, 1),
                                     "so few elements"));
        ck_assert_ptr_nonnull(strstr(against(A, large, true, 9), "longer"));
        ck_assert_ptr_null(against(A, large, false, 9));
        scale_in_turn(A);
        ck_assert_ptr_nonnull(strstr(against(A, large, true, 1), "dominant"));
        ck_assert_ptr_null(against(A, large, false, 1));
        zoo_free(&A);
    }
}
END_TEST

/* The host works in doubles whatever the rows: the rule cannot be observed
 * there. */
START_TEST(floats_are_not_taken_far_from_dominated_rows)
{
    problem p;
    sps_csr *A = zoo("grid5", 300000, ZOO_SPD);

    scale_in_turn(A);
    problem_open(&p, ctx, A, 16);
    p.opt.precision = "mixed";
    p.opt.precond = "jacobi";
    p.opt.rtol = 1e-2;
    must_solve(&p, "not dominated");
    ck_assert_str_eq(p.result.solver, "block_cg");
    ck_assert(noted(runner_place() == SPS_CUDA ? "not diagonally dominant"
                                               : "the host"));
    problem_close(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(floats_are_not_taken_where_they_do_not_pay),
    RUNNER_TEST(floats_are_taken_for_large_blocks_on_a_gpu),
    RUNNER_TEST(floats_are_weighed_by_size_dominance_and_lengths_of_rows),
    RUNNER_TEST(floats_are_not_taken_far_from_dominated_rows),
};
RUNNER_MAIN_WITHIN("check_chain_floats", tests, set_up, tear_down)
