/* SPDX-License-Identifier: BSD-3-Clause */
/* check_factor_singular.c - preconditioner factor: what it solves of singular
 * systems, and which entries and patterns it refuses. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "driver/precond.h"
#include "tests/check/precond/factor_fixture.h"
#include "tests/support/absent.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

START_TEST(singular_systems_are_solved_where_b_allows_it)
{
    double residual;
    sps_context *ctx;
    sps_csr *A;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    A = singular(ctx, -1);
    ck_assert_int_eq(solved(ctx, A, 0, "auto", &residual), SPS_STOP_CONVERGED);
    ck_assert_double_le(residual, 1e-8);
    ck_assert_int_eq(solved(ctx, A, 1, "auto", &residual),
                     SPS_STOP_LEAST_SQUARES);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

/* An empty row: b = 1 there is out of reach, and nobody says converged. */
START_TEST(a_zero_row_is_told)
{
    sps_context *ctx;
    sps_csr *A;
    double residual;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    A = singular(ctx, 0);
    ck_assert_int_eq(solved(ctx, A, 1, "gmres", &residual), SPS_STOP_SINGULAR);
    ck_assert_int_eq(solved(ctx, A, 1, "auto", &residual), SPS_STOP_SINGULAR);
    ck_assert(fixture_noted(ctx, "factor: 1 of 81 pivots are zero"));
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

static void put(sps_csr *A, int col, double value)
{
    A->col[A->nnz] = col;
    ((double *)A->val)[A->nnz++] = value;
}

/* A diagonal with the pair [1 1; 1 1 + d] in rows 30 and 31; d = 2^-51, or
 * 2^-40 where scaling for L U would make a second zero pivot of it.  Row 60 is
 * zero if `symmetric`; else rows from 51 on have three entries, and row 60 is
 * equal to row 61. */
static sps_csr *pair_and_singular_row(sps_context *ctx, int n, bool symmetric)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, n, n, 3 * n, SPS_F64, &A));
    A->nnz = 0;
    for (int i = 0; i < n; i++) {
        const int r = i == 60 && !symmetric ? 61 : i;
        const bool wide = !symmetric && i > 50;

        if (i == 30 || i == 31) {
            put(A, 30, 1);
            put(A, 31, i == 31 ? 1 + (symmetric ? 0x1p-51 : 0x1p-40) : 1);
        } else {
            if (wide) put(A, r - 1, -1);
            put(A, r, symmetric && i == 60 ? 0 : 2 + r % 3);
            if (wide && r + 1 < n) put(A, r + 1, 1);
        }
        A->rowptr[i + 1] = A->nnz;
    }
    return A;
}

/* Entry (i, j) of a symmetric matrix of order FREE + BOUND whose first FREE
 * rows have entries in the last BOUND columns only: all but BOUND of their
 * pivots are postponed, and in the end zero. */
enum { FREE = 2000, BOUND = 200 };
static double postponed(int i, int j)
{
    const int low = i < j ? i : j, high = (i < j ? j : i) - FREE;

    return low < FREE && high >= 0 &&
           (high == low % BOUND || high == (3 * low + 1) % BOUND);
}

/* The working memory that is predicted for such a matrix is 1 MB, less than its
 * indices need when the spare memory for pivots is enlarged. */
START_TEST(postponed_pivots_of_a_small_matrix_find_memory)
{
    sps_context *ctx;
    sps_csr *A = NULL;
    double residual;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    OK(ctx, sps_csr_create(ctx, FREE + BOUND, FREE + BOUND, 5 * FREE, SPS_F64,
                           &A));
    A->nnz = 0;
    for (int i = 0; i < FREE + BOUND; i++) {
        for (int j = i < FREE ? FREE : 0; j < (i < FREE ? FREE + BOUND : FREE);
             j++)
            if (postponed(i, j)) put(A, j, 1);
        A->rowptr[i + 1] = A->nnz;
    }
    ck_assert_int_eq(solved(ctx, A, 1, "gmres", &residual), SPS_STOP_SINGULAR);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

/* Two columns: b = 1 in row 60, which is outside the range, and b = 1/3 in the
 * pair, whose x is too large for doubles. */
static void blames_one_column(const char *solver, bool symmetric)
{
    enum { N = 120, K = 2 };
    sps_context *ctx = fixture_open();
    sps_csr *A = pair_and_singular_row(ctx, N, symmetric);
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B, *X = fixture_block(ctx, N, K, NULL, K);
    sps_result r = { .struct_size = sizeof r };
    sps_options opt;
    double b[N * K] = { 0 };

    b[60 * K] = 1;
    b[30 * K + 1] = 1. / 3;
    B = fixture_block(ctx, N, K, b, K);
    sps_options_default(&opt);
    opt.precond = strcmp(solver, "auto") ? "factor" : "auto";
    opt.solver = solver;
    opt.nullspace = "none";
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
    OK(ctx, sps_solver_create(op, NULL, K, &opt, &s));
    OK(ctx, sps_solver_linear(s, B, X, &r));
    ck_assert_msg(r.column[0] == SPS_STOP_SINGULAR ||
                  (symmetric && r.column[0] == SPS_STOP_LEAST_SQUARES),
                  "%s, %d: %d, %g", solver, symmetric, r.column[0],
                  r.residual[0]);
    ck_assert_msg(r.column[1] != SPS_STOP_SINGULAR, "%s, %d: %g", solver,
                  symmetric, r.residual[1]);
    ck_assert(r.stop == r.column[0] || r.stop == r.column[1]);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    fixture_close(&ctx);
}

START_TEST(only_columns_outside_the_range_are_called_singular)
{
    if (absent("factor")) runner_skip("no factor module");
    /* Of auto the last step is minres, which calls all columns singular. */
    blames_one_column("gmres", true);
    blames_one_column("gmres", false);
    blames_one_column("auto", false);
    blames_one_column("auto", true);
}
END_TEST

/* What b has in two empty rows, one of them named by zero_rows, in units of its
 * other entries and of the caller; and how a solve to 1e-10 ends, whose
 * threshold is between 1e-9 and 4e-9 of these units. */
enum { ORDER = 40, K = 8, LOST = 10, NAMED = 20 };
static const struct { double lost, named, unit; sps_stop stop; } column[K] = {
    { 0, 1, 1, SPS_STOP_SINGULAR }, { 1, 0, 1, SPS_STOP_STAGNATED },
    { 0, 0, 1, SPS_STOP_CONVERGED }, { 1, 1e-9, 1, SPS_STOP_STAGNATED },
    { 1, 4e-9, 1, SPS_STOP_SINGULAR },
    { 1, 1e-9, 0x1p400, SPS_STOP_STAGNATED },
    { 1, 4e-9, 0x1p-400, SPS_STOP_SINGULAR },
    { 1, 4e-9, 0x1p-800, SPS_STOP_SINGULAR },
};

static sps_csr *with_empty_rows(sps_context *ctx, double *b)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, ORDER, ORDER, ORDER, SPS_F64, &A));
    A->nnz = 0;
    for (int i = 0; i < ORDER; i++) {
        if (i != LOST && i != NAMED) put(A, i, 2 + i % 3);
        A->rowptr[i + 1] = A->nnz;
        for (int j = 0; j < K; j++)
            b[i * K + j] = column[j].unit * (i == LOST    ? column[j].lost
                                             : i == NAMED ? column[j].named
                                             : i % 5 + j % 2);
    }
    return A;
}

static void judged_by_named_row(const char *solver)
{
    static const int32_t rows[] = { NAMED + 1 };
    double b[ORDER * K];
    sps_context *ctx = fixture_open();
    sps_csr *A = with_empty_rows(ctx, b);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_solver *s = NULL;
    sps_block *B = fixture_block(ctx, ORDER, K, b, K);
    sps_block *X = fixture_block(ctx, ORDER, K, NULL, K);
    sps_result r = { .struct_size = sizeof r };
    sps_options opt;

    sps_options_default(&opt);
    opt.solver = solver;
    opt.precond = "jacobi";
    opt.nullspace = "none";
    opt.rtol = 1e-10;
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
    OK(ctx, sps_precond_create(op, K, &opt, &M));
    M->zero_pivots = 1;
    M->zero_rows = rows;
    OK(ctx, sps_solver_create(op, M, K, &opt, &s));
    OK(ctx, sps_solver_linear(s, B, X, &r));
    for (int j = 0; j < K; j++)
        ck_assert_msg(r.column[j] == column[j].stop, "%s, column %d: %s",
                      solver, j, sps_stop_string(r.column[j]));
    ck_assert_int_eq(r.stop, SPS_STOP_SINGULAR);
    sps_solver_destroy(&s);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    fixture_close(&ctx);
}

/* With jacobi in place of factors, so that no factor module is needed.  gmres
 * finds A singular, block_gmres stagnates. */
START_TEST(a_column_is_singular_by_what_it_has_in_rows_of_zero_pivots)
{
    judged_by_named_row("gmres");
    judged_by_named_row("block_gmres");
}
END_TEST

/* Two rows with the same single column: no permutation has a nonzero
 * diagonal. */
START_TEST(a_singular_pattern_is_told)
{
    enum { N = 30 };
    sps_context *ctx;
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    OK(ctx, sps_csr_create(ctx, N, N, N, SPS_F64, &A));
    for (int i = 0; i < N; i++) {
        A->rowptr[i + 1] = i + 1;
        A->col[i] = i < N - 1 ? i : 0;
        ((double *)A->val)[i] = 2;
    }
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    OK(ctx, make(op, 1, 0, &M));
    ck_assert(fixture_noted(ctx, "factor: 1 of 30 pivots are zero"));
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

START_TEST(entries_that_are_not_finite_are_refused_by_their_place)
{
    sps_context *ctx;
    sps_csr *A;
    sps_operator *op = NULL;
    sps_precond *M = NULL;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    A = grid(ctx, GENERAL, 5);
    ((double *)A->val)[A->rowptr[7]] = INFINITY;
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    ck_assert_int_eq(make(op, 1, 0, &M), SPS_EUNFIT);
    ck_assert_msg(strstr(sps_context_error(ctx),
                         "entry (8, 3) of the matrix is inf"),
                  "%s", sps_context_error(ctx));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(singular_systems_are_solved_where_b_allows_it),
    RUNNER_TEST(a_zero_row_is_told),
    RUNNER_TEST(postponed_pivots_of_a_small_matrix_find_memory),
    RUNNER_TEST(only_columns_outside_the_range_are_called_singular),
    RUNNER_TEST(a_column_is_singular_by_what_it_has_in_rows_of_zero_pivots),
    RUNNER_TEST(a_singular_pattern_is_told),
    RUNNER_TEST(entries_that_are_not_finite_are_refused_by_their_place),
};

RUNNER_MAIN("check_factor_singular", tests)
