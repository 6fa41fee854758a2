/* SPDX-License-Identifier: BSD-3-Clause */
/* check_chain.c - solver auto: what it chooses, and how it continues where a
 * choice fails.  Limits: check_chain_limits.c; single precision:
 * check_chain_floats.c; one solver over changing values:
 * check_chain_values.c. */
#include <math.h>

#include "cuda/base/machine.h"
#include "solvers/auto/chain.h"
#include "tests/support/chain_fixture.h"
#include "operator/operator.h"

START_TEST(a_nonsymmetric_matrix_gets_a_method_that_fits)
{
    problem p;

    problem_open(&p, ctx, nonsymmetric(900), 5);
    must_solve(&p, "nonsymmetric");
    ck_assert(noted("since the matrix is not symmetric"));
    ck_assert(!noted("auto: step 2"));
    problem_close(&p);
}
END_TEST

/* A Laplacian with a held boundary whose couplings to one side are 1 % larger:
 * ilu0 takes many iterations, of which a few tell so. */
static sps_csr *slow(int64_t n)
{
    sps_csr *A = zoo("grid5", n, ZOO_LAPLACIAN);

    A->props = 0;
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] = A->col[p] == i ? 4
                                    : A->col[p] > i ? -1 : -1.01;
    return A;
}

START_TEST(what_is_slow_is_left_after_a_few_iterations)
{
    problem p;

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    problem_open(&p, ctx, slow(4900), 4);
    must_solve(&p, "slow");
    ck_assert(noted("auto: step 1, bicgstab with ilu0: 6 iterations"));
    ck_assert_str_eq(p.result.precond, "ilut");
    problem_close(&p);
    problem_open(&p, ctx, nonsymmetric(4900), 4);
    must_solve(&p, "dominated");
    ck_assert_str_eq(p.result.precond, "ilu0");
    problem_close(&p);
}
END_TEST

/* A grid without symmetry whose rows are in units that differ by six orders
 * of magnitude. */
static sps_csr *scaled(int64_t n)
{
    sps_csr *A = zoo("grid5", n, ZOO_LAPLACIAN);

    A->props = 0;
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] = pow(10, (double)(i * i % 7)) *
                                    (A->col[p] == i  ? 2
                                     : A->col[p] > i ? 1 : -1);
    return A;
}

/* The residual grows thirtyfold, and falls fast after that. */
START_TEST(what_grows_first_and_falls_then_is_kept)
{
    problem p;

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    problem_open(&p, ctx, scaled(4900), 4);
    p.opt.rtol = 1e-8;
    must_solve(&p, "scaled");
    ck_assert(!noted("auto: step 2"));
    ck_assert_str_eq(p.result.precond, "ilu0");
    problem_close(&p);
}
END_TEST

/* Diagonals of twice the sum of their rows: jacobi takes half of the time of
 * ilu0. */
START_TEST(strongly_dominant_rows_get_jacobi)
{
    problem p;
    sps_csr *A = nonsymmetric(4900);

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) ((double *)A->val)[q] *= 4;
    problem_open(&p, ctx, A, 4);
    must_solve(&p, "strong");
    ck_assert(!noted("auto: step 2"));
    ck_assert_str_eq(p.result.precond, "jacobi");
    problem_close(&p);
}
END_TEST

/* A band without symmetry whose first column has an entry in every second row,
 * and whose first row has as many. */
static sps_csr *hub(int64_t n)
{
    const int32_t room = 7;
    sps_csr *A = zoo_rows(n, n, &room, 1, 0, 1, ZOO_RANDOM, SPS_F64);

    A->nnz = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            const bool joined = i == 0 ? j % 2 == 0 : j == 0 && i % 2 == 0;
            const bool near = llabs(i - j) == 1 || llabs(i - j) == 40;

            if (i != j && !joined && !near) continue;
            A->col[A->nnz] = (int32_t)j;
            ((double *)A->val)[A->nnz++] = i == j ? 3.9 : j > i ? -1.2 : -0.8;
        }
        A->rowptr[i + 1] = A->nnz;
    }
    A->props = SPS_SORTED;
    return A;
}

/* Factors fill up around hubs. */
START_TEST(short_rows_with_hubs_get_ilut_before_factors)
{
    problem p;

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    problem_open(&p, ctx, hub(1600), 4);
    must_solve(&p, "hub");
    ck_assert_str_eq(p.result.solver, "gmres");
    ck_assert_str_eq(p.result.precond, "ilut");
    ck_assert(!noted("auto: step 2"));
    problem_close(&p);
}
END_TEST

/* Tiny matrices by dense factors, sparse ones by ilut that drops nothing; none
 * with factors=never. */
START_TEST(small_systems_are_solved_by_complete_factors)
{
    static const struct { int64_t n; const char *precond; bool never; } t[] = {
        { 60, "dense", false }, { 900, "ilut", false }, { 60, NULL, true },
        { 900, NULL, true } };

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        problem p;

        problem_open(&p, ctx, indefinite(t[i].n, 0.05), 4);
        if (t[i].never) p.opt.factors = "never";
        must_solve(&p, "small");
        ck_assert_int_eq(!strcmp(p.result.solver, "direct"), !t[i].never);
        if (t[i].precond) ck_assert_str_eq(p.result.precond, t[i].precond);
        problem_close(&p);
    }
}
END_TEST

/* Factors of a chain have no fill, whatever its length. */
START_TEST(long_chains_are_solved_by_complete_factors)
{
    problem p;
    sps_csr *A;

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    A = zoo("tridiagonal", 6000, ZOO_LAPLACIAN);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            ((double *)A->val)[q] *= A->col[q] == i ? -1.001 : -1;
    problem_open(&p, ctx, A, 16);
    must_solve(&p, "chain");
    ck_assert_str_eq(p.result.solver, "direct");
    ck_assert_str_eq(p.result.precond, "ilut");
    problem_close(&p);
}
END_TEST

START_TEST(complete_factors_of_a_singular_matrix_are_left)
{
    static const int64_t n[] = { 60, 900 };

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    for (int i = 0; i < 2; i++) {
        problem p;
        sps_csr *A = zoo("grid5", n[i], ZOO_LAPLACIAN);

        for (int64_t r = 0; r < A->nrow; r++)
            for (int64_t q = A->rowptr[r]; q < A->rowptr[r + 1]; q++)
                if (r == 0 || A->col[q] == 0) ((double *)A->val)[q] = 0;
        problem_open(&p, ctx, A, 4);
        p.opt.nullspace = "none";
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        ck_assert_int_lt(p.result.stop, 0);
        ck_assert(noted("is skipped: "));
        ck_assert(problem_honest(&p));
        problem_close(&p);
    }
}
END_TEST

/* minres if it converges despite few negative eigenvalues; factors if not. */
START_TEST(an_indefinite_matrix_is_found_out_and_solved)
{
    static const double shift[] = { 0.05, 0.7 };

    for (int t = 0; t < 2; t++) {
        problem p;

        problem_open(&p, ctx, indefinite(900, shift[t]), 5);
        p.opt.factors = "never";
        must_solve(&p, "indefinite");
        ck_assert(noted("auto: step 1, block_cg with "));
        ck_assert(!noted("block_cg with ic0"));
        ck_assert_str_eq(p.result.solver, t ? "gmres" : "minres");
        ck_assert_str_eq(p.result.precond, t ? "ilut" : "jacobi");
        problem_close(&p);
    }
}
END_TEST

/* All diagonal entries are zero. */
START_TEST(zeros_on_the_diagonal_are_no_obstacle)
{
    sps_csr *A = zoo("grid5", 400, ZOO_SPD);
    problem p;

    A->props = 0;
    for (int64_t i = 0; i < A->nrow; i++)    /* shifts columns by half */
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            A->col[q] = (int32_t)((A->col[q] + 200) % A->nrow);
    ck_assert_int_eq(sps_csr_check(ctx, A), SPS_OK);
    problem_open(&p, ctx, A, 3);
    p.opt.factors = "never";
    must_solve(&p, "zero diagonal");
    ck_assert_str_eq(p.result.precond, "ilut");
    ck_assert(noted("matching"));
    problem_close(&p);
}
END_TEST

/* The driver scales the residual, but not the matrix: products of M with
 * blocks R overflow or underflow, and the next step of the fallback chain
 * continues. */
START_TEST(the_unit_of_the_matrix_may_be_any)
{
    static const int power[] = { -800, -560, 560, 700 };

    for (int t = 0; t < 4; t++) {
        sps_csr *A = zoo("grid5", 400, ZOO_SPD);
        problem p;

        for (int64_t q = 0; q < A->nnz; q++)
            ((double *)A->val)[q] = ldexp(((double *)A->val)[q], power[t]);
        problem_open(&p, ctx, A, 4);
        must_solve(&p, t < 2 ? "small unit" : "large unit");
        problem_close(&p);
    }
}
END_TEST

START_TEST(dense_factors_are_the_last_step_or_never)
{
    problem p;

    for (int never = 0; never < 2; never++) {
        problem_open(&p, ctx, indefinite(100, 0.7), 2);
        p.opt.rtol = 1e-300;                  /* cannot be reached */
        p.opt.dense = never ? "never" : "auto";
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        ck_assert_int_lt(p.result.stop, 0);
        ck_assert_str_eq(p.result.precond, never ? "ilut" : "dense");
        ck_assert(problem_worst(&p) < 1e-12);
        problem_close(&p);
    }
}
END_TEST

/* The Laplacian of a graph with four isolated vertices: these are projected
 * out, and the remaining matrix is definite.  Otherwise they would be zeros on
 * the diagonal. */
START_TEST(empty_rows_are_no_sign_of_an_indefinite_matrix)
{
    for (int left = 0; left < 2; left++) {
        sps_csr *A = zoo("grid5", 400, ZOO_LAPLACIAN);
        int64_t to = 0, q = 0;
        problem p;

        for (int64_t i = 0; i < A->nrow; i++) {
            for (; q < A->rowptr[i + 1]; q++) {
                if (i % 100 == 0 || A->col[q] % 100 == 0) continue;
                ((double *)A->val)[to] = ((double *)A->val)[q];
                A->col[to++] = A->col[q];
            }
            A->rowptr[i + 1] = to;
        }
        A->nnz = to;
        problem_open(&p, ctx, A, 3);
        p.opt.factors = "never";
        if (left) p.opt.nullspace = "none";
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        ck_assert_int_eq(noted("(4 zero, 0 negative diagonal"), left);
        ck_assert(left || p.result.stop == SPS_STOP_LEAST_SQUARES);
        ck_assert(left || !strcmp(p.result.solver, "block_cg"));
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_matrix_singular_by_its_pattern_ends_with_a_reason)
{
    sps_csr *A = nonsymmetric(100);
    problem p;

    for (int64_t q = A->rowptr[40]; q < A->rowptr[41]; q++)
        ((double *)A->val)[q] = 0;
    problem_open(&p, ctx, A, 2);
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_lt(p.result.stop, 0);
    ck_assert(noted("structurally singular"));
    problem_close(&p);
}
END_TEST

START_TEST(own_preconditioners_are_respected)
{
    problem p;

    problem_open(&p, ctx, nonsymmetric(400), 3);
    p.opt.precond = "jacobi";
    must_solve(&p, "own");
    ck_assert_str_eq(p.result.precond, "jacobi");
    problem_close(&p);
}
END_TEST

/* Where it cannot be set up, another one takes its place, and a note says so. */
START_TEST(a_preconditioner_that_was_asked_for_and_is_not_there_is_told)
{
    sps_csr *A = nonsymmetric(100);
    problem p;

    for (int64_t q = A->rowptr[40]; q < A->rowptr[41]; q++)
        ((double *)A->val)[q] = 0;
    problem_open(&p, ctx, A, 2);
    p.opt.precond = "ilut";
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_str_eq(p.result.precond, "jacobi");
    ck_assert(noted("auto: gmres with jacobi, since no method could be set up "
                    "with preconditioner ilut"));
    problem_close(&p);
}
END_TEST

/* Second differences with both ends fixed. */
static sps_csr *rod(int64_t n)
{
    sps_csr *A = zoo("tridiagonal", n, ZOO_LAPLACIAN);
    double *val = A->val;

    for (int64_t p = 0; p < A->nnz; p++)
        if (val[p] > 0) val[p] = 2;
    return A;
}

/* For a rod the residuals of conjugate gradients stagnate for n / k iterations,
 * before they vanish; no other method is better with the same preconditioner.
 * An earlier rule gave up after 500 iterations. */
START_TEST(definite_matrices_keep_conjugate_gradients)
{
    static const int columns[] = { 1, 2 };
    problem p;

    for (int i = 0; i < 2; i++) {
        problem_open(&p, ctx, rod(1600 * columns[i]), columns[i]);
        p.opt.precond = "jacobi";
        must_solve(&p, "a rod");
        ck_assert_int_gt(p.result.iterations, 1000);
        ck_assert(strstr(p.result.solver, "cg"));
        problem_close(&p);
    }
}
END_TEST

/* Number of the first step with this preconditioner on a GPU, for a matrix with
 * the pattern of A that is not symmetric; -1: none.  A is freed. */
static int step_on_a_gpu(sps_csr *A, const char *precond)
{
    const sps_place place = ctx->opt.place;
    sps_operator *op = NULL;
    sps_chain l = { .ctx = ctx, .k = 4 };
    sps_chain_traits o;
    int at = -1;

    for (int64_t i = 0; i < A->nrow; i += 2)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] *= 3;
    A->props = 0;
    ck_assert_int_eq(sps_operator_csr(ctx, A, 4, NULL, &op), SPS_OK);
    l.A = op;
    sps_options_default(&l.opt);
    ctx->opt.place = SPS_CUDA;
    ctx->machine.level = spsi_machine_fitted().level;
    ck_assert_int_eq(spsi_chain_examine(&l, &o), SPS_OK);
    ck_assert_int_eq(spsi_chain_plan(&l, &o), SPS_OK);
    ctx->opt.place = place;
    ctx->machine.level = 0;
    for (int i = l.count - 1; i >= 0; i--)
        if (!strcmp(l.step[i].precond, precond)) at = i;
    sps_operator_destroy(&op);
    zoo_free(&A);
    return at;
}

/* Each row of a rod depends on the one above it: a triangular solve on a GPU
 * takes 1.5 microseconds for each row.  Hundreds of iterations with ilu0 came
 * before factors of ilut there, of a network with 20 000 nodes for a minute. */
START_TEST(substitution_row_by_row_is_avoided_on_a_gpu)
{
    static const int64_t rows[] = { 3600, 10000, 40000, 200000 };

    for (int i = 0; i < 4; i++) {
        int ilut = step_on_a_gpu(rod(rows[i]), "ilut");

        ck_assert_int_ge(ilut, 0);
        ck_assert_int_lt(ilut, step_on_a_gpu(rod(rows[i]), "ilu0"));
        ck_assert_int_gt(step_on_a_gpu(zoo("grid5", rows[i], ZOO_SPD), "ilut"),
                         step_on_a_gpu(zoo("grid5", rows[i], ZOO_SPD), "ilu0"));
    }
}
END_TEST

/* Factors in place of those substitutions may take no longer: their fill is
 * known once they are ordered. */
START_TEST(factors_that_take_longer_than_allowed_are_refused)
{
    static const double allowed[] = { 0.01, 10 };
    sps_csr *A = zoo("grid5", 10000, ZOO_SPD);
    sps_operator *op = NULL;
    sps_options opt;

    sps_options_default(&opt);
    opt.precond = "ilut";
    opt.droptol = 1e-6;
    opt.fill = 50;
    ck_assert_int_eq(sps_operator_csr(ctx, A, 1, NULL, &op), SPS_OK);
    for (int i = 0; i < 2; i++) {
        sps_precond *M = NULL;

        op->cache->worth = allowed[i];
        ck_assert_int_eq(sps_precond_create(op, 1, &opt, &M),
                         i ? SPS_OK : SPS_EUNFIT);
        sps_precond_destroy(&M);
    }
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_nonsymmetric_matrix_gets_a_method_that_fits),
    RUNNER_TEST(what_is_slow_is_left_after_a_few_iterations),
    RUNNER_TEST(what_grows_first_and_falls_then_is_kept),
    RUNNER_TEST(strongly_dominant_rows_get_jacobi),
    RUNNER_TEST(short_rows_with_hubs_get_ilut_before_factors),
    RUNNER_TEST(small_systems_are_solved_by_complete_factors),
    RUNNER_TEST(long_chains_are_solved_by_complete_factors),
    RUNNER_TEST(complete_factors_of_a_singular_matrix_are_left),
    RUNNER_TEST(an_indefinite_matrix_is_found_out_and_solved),
    RUNNER_TEST(zeros_on_the_diagonal_are_no_obstacle),
    RUNNER_TEST(the_unit_of_the_matrix_may_be_any),
    RUNNER_TEST(dense_factors_are_the_last_step_or_never),
    RUNNER_TEST(empty_rows_are_no_sign_of_an_indefinite_matrix),
    RUNNER_TEST(a_matrix_singular_by_its_pattern_ends_with_a_reason),
    RUNNER_TEST(own_preconditioners_are_respected),
    RUNNER_TEST(a_preconditioner_that_was_asked_for_and_is_not_there_is_told),
    RUNNER_TEST(definite_matrices_keep_conjugate_gradients),
    RUNNER_TEST(substitution_row_by_row_is_avoided_on_a_gpu),
    RUNNER_TEST(factors_that_take_longer_than_allowed_are_refused),
};
RUNNER_MAIN_WITHIN("check_chain", tests, set_up, tear_down)
