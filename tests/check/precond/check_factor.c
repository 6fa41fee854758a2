/* SPDX-License-Identifier: BSD-3-Clause */
/* check_factor.c - preconditioner factor: integer systems of all kinds, what it
 * refuses and why, limits, and what it must not do to the process. */
#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"
#include "core/factors.h"
#include "core/module.h"
#include "tests/support/absent.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

typedef enum kind { DEFINITE, INDEFINITE, GENERAL, SADDLE } kind;

/* Entry (i, j) of an integer matrix: a grid of five points, `side` wide, with
 * the diagonal the kind asks for.  SADDLE: every fourth diagonal entry is 0. */
static double entry(kind what, int64_t i, int64_t j)
{
    if (i != j && what == GENERAL) return j > i ? -3 : 2;
    if (i != j) return -1;
    if (what == DEFINITE) return 5;
    if (what == INDEFINITE) return i % 2 ? 5 : -6;
    return what == SADDLE && i % 4 == 0 ? 0 : 9;
}

static sps_csr *grid(sps_context *ctx, kind what, int64_t side)
{
    const int64_t n = side * side;
    sps_csr *A = NULL;
    int64_t q = 0;

    OK(ctx, sps_csr_create(ctx, n, n, 5 * n, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        const int64_t near[] = { i - side, i % side ? i - 1 : -1, i,
                                 (i + 1) % side ? i + 1 : -1, i + side };

        for (int t = 0; t < 5; t++) {
            if (near[t] < 0 || near[t] >= n) continue;
            A->col[q] = (int32_t)near[t];
            ((double *)A->val)[q++] = entry(what, i, near[t]);
        }
        A->rowptr[i + 1] = q;
    }
    A->nnz = q;
    if (what == DEFINITE) A->props = SPS_SPD;
    return A;
}

/* X = 3 i - 7 j modulo 11, and B = A X: integers, exact. */
static double number(int64_t i, int j)
{
    return (double)((3 * i + 4 * j) % 11 - 5);
}

static void multiply(const sps_csr *A, int k, double *b)
{
    const double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < k; j++) {
            b[i * k + j] = 0;
            for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                b[i * k + j] += val[p] * number(A->col[p], j);
        }
}

static sps_status make(sps_operator *op, int k, double seconds,
                       sps_precond **M_p)
{
    sps_options opt;

    sps_options_default(&opt);
    opt.precond = "factor";
    opt.max_seconds = seconds;
    return sps_precond_create(op, k, &opt, M_p);
}

static double *applied(sps_context *ctx, sps_precond *M, const double *b,
                       int64_t n, int k)
{
    sps_block *B = fixture_block(ctx, n, k, b, k);
    sps_block *Z = fixture_block(ctx, n, k, NULL, k);
    double *z = calloc((size_t)(n * k), sizeof *z);

    OK(ctx, sps_precond_apply(M, B, Z));
    OK(ctx, sps_block_get(Z, 0, k, z, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&B);
    sps_block_destroy(&Z);
    return z;
}

/* A^-1 B by the factors alone, not refined. */
static void returns_the_integers(kind what, int64_t side, int k)
{
    sps_context *ctx = fixture_open();
    sps_csr *A = grid(ctx, what, side);
    const int64_t n = A->nrow;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    double *b = calloc((size_t)(n * k), sizeof *b), *z;

    multiply(A, k, b);
    OK(ctx, sps_operator_csr(ctx, A, k, NULL, &op));
    OK(ctx, make(op, k, 0, &M));
    z = applied(ctx, M, b, n, k);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++)
            ck_assert_msg(fabs(z[i * k + j] - number(i, j)) <= 1e-10,
                          "kind %d, %d x %d: x(%d, %d) is %g, not %g", what,
                          (int)n, k, (int)i, j, z[i * k + j], number(i, j));
    free(b);
    free(z);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}

START_TEST(integer_systems_of_all_kinds_give_their_integers)
{
    static const int width[] = { 1, 2, 3, 7, 16, 33, 64 };
    static const int64_t side[] = { 1, 2, 7, 20 };

    if (absent("factor")) runner_skip("no factor module");
    for (int what = DEFINITE; what <= SADDLE; what++)
        for (int s = 0; s < 4; s++)
            for (int w = 0; w < 7; w++)
                if (what != SADDLE || s > 2)
                    returns_the_integers((kind)what, side[s], width[w]);
}
END_TEST

/* A permutation times powers of two: all that is rounded is a scaling. */
START_TEST(a_permuted_diagonal_is_inverted_to_the_last_digit)
{
    enum { N = 97, K = 5 };
    sps_context *ctx;
    sps_csr *A = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    double b[N * K], *z;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    OK(ctx, sps_csr_create(ctx, N, N, N, SPS_F64, &A));
    for (int i = 0; i < N; i++) {
        A->rowptr[i + 1] = i + 1;
        A->col[i] = (i * 5 + 3) % N;
        ((double *)A->val)[i] = ldexp(i % 2 ? 1 : -1, i % 21 - 10);
    }
    multiply(A, K, b);
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
    OK(ctx, make(op, K, 0, &M));
    z = applied(ctx, M, b, N, K);
    for (int i = 0; i < N * K; i++)
        ck_assert_msg(fabs(z[i] - number(i / K, i % K)) <= 4e-15,
                      "x(%d, %d) = %.17g", i / K, i % K, z[i]);
    free(z);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------- singular ones */

/* Zero row sums; with `row` >= 0 that row is zero instead. */
static sps_csr *singular(sps_context *ctx, int64_t row)
{
    sps_csr *A = grid(ctx, DEFINITE, 9);
    double *val = A->val;

    A->props = 0;
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            if (row < 0 && A->col[p] == i)
                val[p] = (double)(A->rowptr[i + 1] - A->rowptr[i] - 1);
            if (i == row || A->col[p] == row) val[p] = 0;
        }
    return A;
}

/* Solves with B = A X, changed by `beyond` in one place; returns the stop. */
static sps_stop solved(sps_context *ctx, sps_csr *A, double beyond,
                       const char *solver, double *residual)
{
    enum { K = 4 };
    const int64_t n = A->nrow;
    double *b = calloc((size_t)(n * K), sizeof *b);
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B, *X = fixture_block(ctx, n, K, NULL, K);
    sps_result r = { .struct_size = sizeof r };
    sps_options opt;

    multiply(A, K, b);
    b[0] += beyond;
    B = fixture_block(ctx, n, K, b, K);
    sps_options_default(&opt);
    opt.precond = "factor";
    opt.solver = solver;
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
    OK(ctx, sps_solver_create(op, NULL, K, &opt, &s));
    OK(ctx, sps_solver_linear(s, B, X, &r));
    ck_assert_str_eq(r.precond, "factor");
    *residual = r.worst_residual;
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    free(b);
    return r.stop;
}

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
    ck_assert_msg(strstr(sps_context_error(ctx), "entry (8, 3) of the matrix is "
                         "inf"), "%s", sps_context_error(ctx));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

/* ---------------------------------------------------------------- new values */

/* Values that are no longer symmetric on a symmetric pattern. */
START_TEST(new_values_are_followed_even_if_they_lose_the_symmetry)
{
    enum { K = 3 };
    sps_context *ctx;
    sps_csr *A, *B;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    double *b, *z;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    A = grid(ctx, INDEFINITE, 12);
    B = grid(ctx, GENERAL, 12);
    b = calloc((size_t)(A->nrow * K), sizeof *b);
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
    OK(ctx, make(op, K, 0, &M));
    for (int turn = 0; turn < 3; turn++) {
        sps_csr *now = turn % 2 ? A : B;

        OK(ctx, sps_operator_set_values(op, now->val, SPS_HOST));
        OK(ctx, sps_precond_update(M));
        multiply(now, K, b);
        z = applied(ctx, M, b, A->nrow, K);
        for (int64_t i = 0; i < A->nrow * K; i++)
            ck_assert_msg(fabs(z[i] - number(i / K, (int)(i % K))) <= 1e-10,
                          "turn %d: x(%d) = %g", turn, (int)i, z[i]);
        free(z);
    }
    free(b);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &B);
    fixture_close(&ctx);
}
END_TEST

/* -------------------------------------------------------------------- limits */

/* The status and the text of a factorisation with the limits of `limit`. */
static void refused(void (*limit)(sps_context *ctx), double seconds,
                    sps_status expected, const char *says)
{
    sps_context *ctx = fixture_open();
    sps_csr *A = grid(ctx, GENERAL, 250);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    size_t before;

    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    if (limit) limit(ctx);
    before = ctx->memory.host;
    ck_assert_int_eq(make(op, 1, seconds, &M), expected);
    ck_assert_msg(strstr(sps_context_error(ctx), says), "%s",
                  sps_context_error(ctx));
    ck_assert_uint_eq(ctx->memory.host, before);
    sps_cancel(ctx, false);
    ctx->memory.host_limit = 0;
    OK(ctx, make(op, 1, 0, &M));         /* and then it works */
    ck_assert_uint_gt(ctx->memory.host, before + 8 * 62500);
    sps_precond_destroy(&M);
    ck_assert_uint_eq(ctx->memory.host, before);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}

/* What the entries take, twice 5 MB, fits; the factors do not. */
static void little_memory(sps_context *ctx)
{
    ctx->memory.host_limit = ctx->memory.host + ((size_t)20 << 20);
}

static void cancelled(sps_context *ctx)
{
    sps_cancel(ctx, true);
}

START_TEST(memory_is_predicted_and_counted)
{
    if (absent("factor")) runner_skip("no factor module");
    refused(little_memory, 0, SPS_ENOMEM, ", the factors: ");
}
END_TEST

/* A full matrix of ones with 300 on the diagonal, by coordinates. */
static sps_factor_matrix full(int32_t n)
{
    const int64_t nnz = (int64_t)n * n;
    sps_factor_matrix C = { .kind = SPS_FACTOR_GENERAL, .n = n, .nnz = nnz };

    C.row = malloc((size_t)nnz * sizeof *C.row);
    C.col = malloc((size_t)nnz * sizeof *C.col);
    C.val = malloc((size_t)nnz * sizeof *C.val);
    for (int64_t p = 0; p < nnz; p++) {
        C.row[p] = (int32_t)(p / n) + 1;
        C.col[p] = (int32_t)(p % n) + 1;
        C.val[p] = C.row[p] == C.col[p] ? 300 : 1;
    }
    return C;
}

START_TEST(factors_take_no_more_memory_than_is_allowed)
{
    const sps_factor_library *m;
    sps_factor_matrix C;
    sps_factor_facts facts;
    char why[200];
    void *of;

    if (absent("factor")) runner_skip("no factor module");
    C = full(700);
    m = spsi_module_factor(why, sizeof why);
    ck_assert_int_eq(m->analyse(&C, 0, &of, &facts), SPS_FACTOR_OK);
    ck_assert_int_ge(facts.bytes, 700 * 700 * 8);
    ck_assert_int_eq(m->factor(of, &C, SPS_FACTOR_SPARE, facts.bytes / 3,
                               &facts), SPS_FACTOR_MORE);
    m->close(of);
    ck_assert_int_eq(m->analyse(&C, 0, &of, &facts), SPS_FACTOR_OK);
    ck_assert_int_eq(m->factor(of, &C, SPS_FACTOR_SPARE, facts.bytes, &facts),
                     SPS_FACTOR_OK);
    m->close(of);
    free(C.row);
    free(C.col);
    free(C.val);
}
END_TEST

/* The analysis by minimum fill would fit into a second, that by nested
 * dissection may not. */
START_TEST(what_cannot_be_interrupted_is_not_begun)
{
    if (absent("factor")) runner_skip("no factor module");
    refused(NULL, 1, SPS_EUNFIT, "the analysis was not started: it may "
            "need ");
    refused(cancelled, 0, SPS_EUNFIT, "factor: interrupted by sps_cancel");
}
END_TEST

typedef struct canceller {
    sps_context *ctx;
    double seconds;
} canceller;

static void *cancel_after(void *data)
{
    canceller *c = data;

    usleep((useconds_t)(1e6 * c->seconds));
    sps_cancel(c->ctx, true);
    return NULL;
}

/* Wherever the request comes: in an application of the factors, or between two
 * of them.  Applications begun after it change nothing. */
START_TEST(a_cancel_ends_a_solve_with_factors)
{
    enum { K = 64 };
    sps_context *ctx;
    sps_csr *A;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_precond *M = NULL;
    sps_block *B, *X;
    sps_options opt;

    if (absent("factor")) runner_skip("no factor module");
    ctx = fixture_open();
    A = grid(ctx, GENERAL, runner_quick() ? 60 : 200);
    B = fixture_block(ctx, A->nrow, K, NULL, K);
    X = fixture_block(ctx, A->nrow, K, NULL, K);
    OK(ctx, sps_block_random(B, 1));
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
    sps_options_default(&opt);
    opt.precond = "factor";
    opt.rtol = 1e-17;
    for (int t = 0; t < 12; t++) {
        sps_result r = { .struct_size = sizeof r };
        canceller c = { ctx, 2e-3 * t };
        pthread_t thread;

        opt.solver = t % 2 ? "gmres" : "auto";
        OK(ctx, sps_solver_create(op, NULL, K, &opt, &s));
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_after, &c), 0);
        OK(ctx, sps_solver_linear(s, B, X, &r));
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_assert_msg(r.stop == SPS_STOP_INTERRUPTED ||
                      r.stop == SPS_STOP_ROUNDING ||
                      r.stop == SPS_STOP_STAGNATED, "%s",
                      sps_stop_string(r.stop));
        sps_cancel(ctx, false);
        sps_solver_destroy(&s);
    }
    OK(ctx, make(op, K, 0, &M));
    sps_cancel(ctx, true);
    ck_assert_int_eq(sps_precond_apply(M, B, X), SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(ctx), "interrupted"));
    sps_cancel(ctx, false);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    fixture_close(&ctx);
}
END_TEST

/* ---------------------------------------------------------------- the process */

/* Factors and solves, and returns what came out. */
static double *once(kind what, int k)
{
    sps_context *ctx = fixture_open();
    sps_csr *A = grid(ctx, what, 40);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    double *b = calloc((size_t)(A->nrow * k), sizeof *b), *z;

    multiply(A, k, b);
    OK(ctx, sps_operator_csr(ctx, A, k, NULL, &op));
    OK(ctx, make(op, k, 0, &M));
    z = applied(ctx, M, b, A->nrow, k);
    free(b);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    return z;
}

static void *in_thread(void *what)
{
    return once(*(kind *)what, 8);
}

START_TEST(bits_repeat_beside_other_threads_and_whatever_blas_has)
{
    static kind kinds[] = { DEFINITE, INDEFINITE, GENERAL, SADDLE };
    void (*set)(int) = NULL;
    pthread_t thread[4];

    if (absent("factor")) runner_skip("no factor module");
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, in_thread,
                                        &kinds[i]), 0);
    for (int i = 0; i < 4; i++) {
        double *alone;
        void *beside;

        if (set) set(1 + i % 2);
        alone = once(kinds[i], 8);
        ck_assert_int_eq(pthread_join(thread[i], &beside), 0);
        ck_assert_msg(!memcmp(alone, beside, 1600 * 8 * sizeof *alone),
                      "kind %d", kinds[i]);
        free(alone);
        free(beside);
    }
}
END_TEST

/* Neither output nor the process's random numbers are touched. */
START_TEST(nothing_is_printed_and_no_number_drawn)
{
    char path[] = "/tmp/spsolve-output-XXXXXX";
    const int file = mkstemp(path), out = dup(1), err = dup(2);
    int drawn[2];
    double residual;
    off_t length;

    if (absent("factor")) runner_skip("no factor module");
    fflush(NULL);
    dup2(file, 1);
    dup2(file, 2);
    for (int with = 0; with < 2; with++) {
        srand(7);
        (void)rand();
        if (with) {
            sps_context *ctx = fixture_open();
            sps_csr *A = singular(ctx, 0);

            for (int what = DEFINITE; what <= SADDLE; what++)
                free(once((kind)what, 2));
            (void)solved(ctx, A, 1, "gmres", &residual);
            sps_csr_destroy(ctx, &A);
            fixture_close(&ctx);
        }
        drawn[with] = rand();
    }
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    length = lseek(file, 0, SEEK_END);
    close(file);
    unlink(path);
    ck_assert_int_eq((int)length, 0);
    ck_assert_int_eq(drawn[0], drawn[1]);
}
END_TEST

START_TEST(without_a_module_the_text_says_what_to_install)
{
    sps_context *ctx = fixture_open();
    sps_csr *A = grid(ctx, DEFINITE, 3);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_solver *s = NULL;
    sps_options opt;

    sps_options_default(&opt);
    opt.precond = "factor";
    ck_assert_int_eq(setenv("SPSOLVE_MODULE_PATH", "/nonexistent/m.so", 1), 0);
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    ck_assert_int_eq(make(op, 1, 0, &M), SPS_EABSENT);
    ck_assert_msg(strstr(sps_context_error(ctx), "/nonexistent/"
                         "spsolve_factor.so (absent)"), "%s",
                  sps_context_error(ctx));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "libmumps-seq-dev"));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "PATH names its"));
    /* auto does not put another one in its place. */
    ck_assert_int_eq(sps_solver_create(op, NULL, 1, &opt, &s), SPS_EABSENT);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
}
END_TEST

/* -------------------------------------------------------------- solver auto */

START_TEST(auto_takes_factors_or_leaves_them)
{
    static const char *const whether[] = { "auto", "never" };

    if (absent("factor")) runner_skip("no factor module");
    for (int t = 0; t < 2; t++) {
        sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);
        sps_csr *A = grid(ctx, SADDLE, 70);
        sps_operator *op = NULL;
        sps_solver *s = NULL;
        sps_block *B = fixture_block(ctx, 4900, 3, NULL, 3);
        sps_block *X = fixture_block(ctx, 4900, 3, NULL, 3);
        sps_result r = { .struct_size = sizeof r };
        sps_options opt;

        sps_options_default(&opt);
        opt.factors = whether[t];
        OK(ctx, sps_block_random(B, 1));
        OK(ctx, sps_operator_csr(ctx, A, 3, NULL, &op));
        OK(ctx, sps_solver_create(op, NULL, 3, &opt, &s));
        OK(ctx, sps_solver_linear(s, B, X, &r));
        ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
        ck_assert_int_eq(!strcmp(r.precond, "factor"), t == 0);
        sps_solver_destroy(&s);
        sps_operator_destroy(&op);
        sps_block_destroy(&B);
        sps_block_destroy(&X);
        sps_csr_destroy(ctx, &A);
        fixture_close(&ctx);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(integer_systems_of_all_kinds_give_their_integers),
    RUNNER_TEST(a_permuted_diagonal_is_inverted_to_the_last_digit),
    RUNNER_TEST(singular_systems_are_solved_where_b_allows_it),
    RUNNER_TEST(a_zero_row_is_told),
    RUNNER_TEST(only_columns_outside_the_range_are_called_singular),
    RUNNER_TEST(a_singular_pattern_is_told),
    RUNNER_TEST(entries_that_are_not_finite_are_refused_by_their_place),
    RUNNER_TEST(new_values_are_followed_even_if_they_lose_the_symmetry),
    RUNNER_TEST(memory_is_predicted_and_counted),
    RUNNER_TEST(factors_take_no_more_memory_than_is_allowed),
    RUNNER_TEST(what_cannot_be_interrupted_is_not_begun),
    RUNNER_TEST(a_cancel_ends_a_solve_with_factors),
    RUNNER_TEST(bits_repeat_beside_other_threads_and_whatever_blas_has),
    RUNNER_TEST(nothing_is_printed_and_no_number_drawn),
    RUNNER_TEST(without_a_module_the_text_says_what_to_install),
    RUNNER_TEST(auto_takes_factors_or_leaves_them),
};

RUNNER_MAIN("check_factor", tests)
