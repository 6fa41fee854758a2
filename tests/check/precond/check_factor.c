/* SPDX-License-Identifier: BSD-3-Clause */
/* check_factor.c - preconditioner factor: integer systems of all kinds, new
 * values, limits, and its choice by auto. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/context.h"
#include "core/deadline.h"
#include "core/factors.h"
#include "core/module.h"
#include "operator/direct.h"
#include "tests/check/precond/factor_fixture.h"
#include "tests/support/absent.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

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

enum { TREE = 200, TREES = 2 * TREE };

/* The matrix of nodes and edges of a rooted tree with its columns permuted: all
 * its minors are 0, 1 or -1, and so all numbers in its factors, whatever the
 * order and the pivots. */
static void tree(double (*N)[TREE])
{
    uint32_t state = 17;

    memset(N, 0, TREE * sizeof *N);
    for (int i = 0; i < TREE; i++) {
        const int own = (i * 7 + 3) % TREE;
        const int up = i ? (int)(state % (uint32_t)i) : 0;

        if (i) N[i][(up * 7 + 3) % TREE] = -1;
        N[i][own] = 1;
        state = state * 1664525 + 1013904223;
    }
}

/* N, or [0 N; N' 0]. */
static sps_csr *of_trees(sps_context *ctx, double (*N)[TREE], bool both)
{
    const int n = both ? TREES : TREE;
    sps_csr *A = NULL;
    int64_t q = 0;

    OK(ctx, sps_csr_create(ctx, n, n, 4 * TREE, SPS_F64, &A));
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < TREE; j++) {
            const double a = i < TREE ? N[i][j] : N[j][i - TREE];

            if (a == 0) continue;
            A->col[q] = both && i < TREE ? TREE + j : j;
            ((double *)A->val)[q++] = a;
        }
        A->rowptr[i + 1] = q;
    }
    A->nnz = q;
    return A;
}

START_TEST(factors_of_ones_are_exact)
{
    enum { K = 7 };
    static double N[TREE][TREE], b[TREES * K];

    if (absent("factor")) runner_skip("no factor module");
    tree(N);
    for (int both = 0; both < 2; both++) {
        sps_context *ctx = fixture_open();
        sps_csr *A = of_trees(ctx, N, both);
        sps_operator *op = NULL;
        sps_precond *M = NULL;
        double *z;

        multiply(A, K, b);
        OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
        OK(ctx, make(op, K, 0, &M));
        z = applied(ctx, M, b, A->nrow, K);
        for (int64_t i = 0; i < A->nrow * K; i++)
            ck_assert_msg(z[i] == number(i / K, (int)(i % K)), "x(%d, %d) = "
                          "%.17g", (int)(i / K), (int)(i % K), z[i]);
        free(z);
        sps_precond_destroy(&M);
        sps_operator_destroy(&op);
        sps_csr_destroy(ctx, &A);
        fixture_close(&ctx);
    }
}
END_TEST

/* --------------------------------------------------------------- new values */

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

/* ------------------------------------------------------------------- limits */

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
    refused(cancelled, 0, SPS_EUNFIT,
            "direct factors: interrupted by sps_cancel");
}
END_TEST

/* What comes while the analysis runs, which nothing interrupts, holds before
 * the factorisation. */
START_TEST(what_comes_during_the_analysis_holds_after_it)
{
    static const char *const says[] = {
        "direct factors: interrupted by sps_cancel",
        "the factorisation, with one solve, was not started: it may need " };

    if (absent("factor")) runner_skip("no factor module");
    for (int t = 0; t < 2; t++) {
        sps_context *ctx = fixture_open();
        sps_csr *A = grid(ctx, GENERAL, 150);
        sps_operator *op = NULL;
        sps_direct *d = NULL;
        double before;

        OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
        OK(ctx, spsi_direct_analyse(op, 0, &d));
        before = spsi_deadline_begin(ctx, t ? 0.02 : 1000);
        if (t == 0) sps_cancel(ctx, true);
        ck_assert_int_eq(spsi_direct_factor(d, 1), SPS_EUNFIT);
        ck_assert_msg(strstr(sps_context_error(ctx), says[t]), "%s",
                      sps_context_error(ctx));
        ck_assert_int_eq(d->found.entries, 0);
        sps_cancel(ctx, false);
        spsi_deadline_end(ctx, before);
        OK(ctx, spsi_direct_factor(d, 1));
        ck_assert_int_gt(d->found.entries, A->nnz);
        spsi_direct_destroy(&d);
        sps_operator_destroy(&op);
        sps_csr_destroy(ctx, &A);
        fixture_close(&ctx);
    }
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
    RUNNER_TEST(factors_of_ones_are_exact),
    RUNNER_TEST(new_values_are_followed_even_if_they_lose_the_symmetry),
    RUNNER_TEST(memory_is_predicted_and_counted),
    RUNNER_TEST(factors_take_no_more_memory_than_is_allowed),
    RUNNER_TEST(what_cannot_be_interrupted_is_not_begun),
    RUNNER_TEST(what_comes_during_the_analysis_holds_after_it),
    RUNNER_TEST(a_cancel_ends_a_solve_with_factors),
    RUNNER_TEST(auto_takes_factors_or_leaves_them),
};

RUNNER_MAIN("check_factor", tests)
