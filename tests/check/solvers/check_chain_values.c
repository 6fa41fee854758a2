/* SPDX-License-Identifier: BSD-3-Clause */
/* check_chain_values.c - one solver auto over changing values: it starts with
 * the method that last succeeded, adapts to values that need another one, and
 * does not repeat a method that failed. */
#include <math.h>
#include <stdlib.h>

#include "core/context.h"
#include "tests/support/absent.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/chain_fixture.h"

static bool on_host(void) { return runner_place() == SPS_HOST; }

/* The next solve starts where the last one ended; values that need another
 * method get one. */
START_TEST(a_solver_remembers_and_follows_new_values)
{
    sps_csr *A = indefinite(400, 0.7), *N = nonsymmetric(400);
    sps_options opt;
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = NULL, *X = NULL;
    sps_result first = { .struct_size = sizeof first }, r = first;

    ck_assert_int_eq(A->nnz, N->nnz);
    sps_options_default(&opt);
    opt.factors = "never";
    ck_assert_int_eq(sps_operator_csr(ctx, A, 4, &opt, &op), SPS_OK);
    ck_assert_int_eq(sps_solver_create(op, NULL, 4, &opt, &s), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, 400, 4, &B), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, 400, 4, &X), SPS_OK);
    ck_assert_int_eq(sps_block_random(B, 4), SPS_OK);
    ck_assert_int_eq(sps_solver_linear(s, B, X, &first), SPS_OK);
    ck_assert_int_eq(first.stop, SPS_STOP_CONVERGED);
    sps_block_destroy(&X);
    ck_assert_int_eq(sps_block_create(ctx, 400, 4, &X), SPS_OK);
    ck_assert_int_eq(sps_solver_linear(s, B, X, &r), SPS_OK);
    ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    ck_assert_int_le(r.iterations, first.iterations);
    ck_assert_int_eq(sps_operator_set_values(op, N->val, SPS_HOST), SPS_OK);
    ck_assert_int_eq(sps_solver_linear(s, B, X, &r), SPS_OK);
    ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
    ck_assert_str_ne(r.solver, "block_cg");
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
    zoo_free(&A);
    zoo_free(&N);
}
END_TEST

/* One solver and a sequence of values. */
typedef struct sequence {
    sps_csr *A;
    sps_options opt;
    sps_operator *op;
    sps_solver *s;
    sps_block *B, *X;
    sps_result r;
} sequence;

static void begin_with(sequence *q, sps_csr *A, int k, const char *factors)
{
    *q = (sequence){ .A = A, .r.struct_size = sizeof q->r };
    sps_options_default(&q->opt);
    q->opt.factors = factors;
    ck_assert_int_eq(sps_operator_csr(ctx, A, k, &q->opt, &q->op), SPS_OK);
    ck_assert_int_eq(sps_solver_create(q->op, NULL, k, &q->opt, &q->s),
                     SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, A->nrow, k, &q->B), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, A->nrow, k, &q->X), SPS_OK);
    ck_assert_int_eq(sps_block_random(q->B, 4), SPS_OK);
}

static void begin(sequence *q, sps_csr *A, int k)
{
    begin_with(q, A, k, "never");
}

static void solve_from_zero(sequence *q)
{
    int64_t n;
    int k;
    double *zero;

    sps_block_shape(q->X, &n, &k);
    zero = calloc((size_t)(n * k), sizeof *zero);
    ck_assert_int_eq(sps_block_set(q->X, 0, k, zero, k, SPS_ROW_MAJOR,
                                   SPS_HOST), SPS_OK);
    free(zero);
    ck_assert_int_eq(sps_solver_linear(q->s, q->B, q->X, &q->r), SPS_OK);
}

/* Column j of B becomes NaN. */
static void spoil(sequence *q, int j)
{
    double *nan;
    int64_t n;

    sps_block_shape(q->B, &n, NULL);
    nan = malloc((size_t)n * sizeof *nan);
    for (int64_t i = 0; i < n; i++) nan[i] = NAN;
    ck_assert_int_eq(sps_block_set(q->B, j, 1, nan, 1, SPS_ROW_MAJOR,
                                   SPS_HOST), SPS_OK);
    free(nan);
}

static void end(sequence *q)
{
    sps_solver_destroy(&q->s);
    sps_block_destroy(&q->B);
    sps_block_destroy(&q->X);
    sps_operator_destroy(&q->op);
    zoo_free(&q->A);
}

/* Rows 40 and 41 become [1 1; 1 1] and nothing else: singular, and no random
 * right-hand side is in its range. */
static double *singular_values(const sps_csr *A)
{
    double *val = malloc((size_t)A->nnz * sizeof *val);

    memcpy(val, A->val, (size_t)A->nnz * sizeof *val);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const bool row = i / 2 == 20, col = A->col[p] / 2 == 20;

            if (row || col) val[p] = row && col;
        }
    return val;
}

/* A first solve and a second one; then one with singular values, for which
 * every step of the fallback chain fails; then the original values again. */
static void solve_after_a_failure(sps_csr *A, const char *solver,
                                  const char *precond)
{
    sequence q;
    double *singular = singular_values(A);
    int iterations;

    begin(&q, A, 4);
    solve_from_zero(&q);
    solve_from_zero(&q);
    ck_assert_int_eq(q.r.stop, SPS_STOP_CONVERGED);
    ck_assert_str_eq(q.r.solver, solver);
    ck_assert_str_eq(q.r.precond, precond);
    iterations = q.r.iterations;
    ck_assert_int_eq(sps_operator_set_values(q.op, singular, SPS_HOST),
                     SPS_OK);
    solve_from_zero(&q);
    ck_assert_int_lt(q.r.stop, 0);
    ck_assert(noted("auto: step 5"));
    ck_assert_int_eq(sps_operator_set_values(q.op, A->val, SPS_HOST), SPS_OK);
    solve_from_zero(&q);
    ck_assert_int_eq(q.r.stop, SPS_STOP_CONVERGED);
    ck_assert_str_eq(q.r.solver, solver);
    ck_assert_str_eq(q.r.precond, precond);
    ck_assert_int_eq(q.r.iterations, iterations);
    end(&q);
    free(singular);
}

START_TEST(a_step_that_did_not_work_is_forgotten)
{
    solve_after_a_failure(nonsymmetric(400), runner_place() == SPS_CUDA
                          ? "block_gmres" : "bicgstab", "ilu0");
    solve_after_a_failure(indefinite(900, 0.7), "gmres", "ilut");
}
END_TEST

/* A NaN right-hand side is not the fault of the method: no fallback. */
START_TEST(a_right_hand_side_of_nan_moves_no_step)
{
    sequence q;
    int iterations;

    begin(&q, indefinite(900, 0.7), 4);
    solve_from_zero(&q);
    solve_from_zero(&q);
    ck_assert_int_eq(q.r.stop, SPS_STOP_CONVERGED);
    ck_assert_str_eq(q.r.precond, "ilut");
    iterations = q.r.iterations;
    spoil(&q, 2);
    for (int t = 0; t < 2; t++) {
        solve_from_zero(&q);
        ck_assert_int_eq(q.r.stop, SPS_STOP_NOT_FINITE);
        ck_assert_int_eq(q.r.columns_converged, 3);
        ck_assert_str_eq(q.r.precond, "ilut");
        ck_assert_int_le(q.r.iterations, iterations + 1);
    }
    end(&q);
}
END_TEST

/* A context whose host allocator fails on request. */
static void scarce(fail_alloc *memory)
{
    sps_context_options o;

    *memory = (fail_alloc){ .allowed = -1 };
    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 2;
    o.host = fail_alloc_host(memory);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
}

/* Values that need another plan, and no memory for its first step: the next
 * solve creates it. */
START_TEST(a_plan_without_memory_is_made_by_the_next_solve)
{
    sps_csr *S = zoo("grid5", 400, ZOO_SPD);
    fail_alloc memory;
    sequence q;
    int refused = 0;

    scarce(&memory);
    begin(&q, nonsymmetric(400), 4);
    for (int n = 0; n < 60; n++) {
        const sps_csr *now = n % 2 ? q.A : S;
        sps_status st;

        ck_assert_int_eq(sps_operator_set_values(q.op, now->val, SPS_HOST),
                         SPS_OK);
        fail_alloc_allow(&memory, n);
        st = sps_solver_linear(q.s, q.B, q.X, &q.r);
        fail_alloc_allow(&memory, -1);
        ck_assert(st == SPS_OK || st == SPS_ENOMEM);
        refused += st == SPS_ENOMEM;
        solve_from_zero(&q);
        ck_assert_int_eq(q.r.stop, SPS_STOP_CONVERGED);
    }
    ck_assert_int_gt(refused, 10);
    end(&q);
    zoo_free(&S);
}
END_TEST

/* Dense factors are those of Cholesky, and LU once the values are not definite
 * any more, though symmetric with a positive diagonal. */
START_TEST(dense_factors_follow_values_that_are_not_definite)
{
    sps_csr *A = indefinite(60, 0.5);
    sequence q;

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    begin_with(&q, indefinite(60, -0.5), 4, "auto");
    for (int t = 0; t < 3; t++) {
        const sps_csr *now = t % 2 ? A : q.A;

        ck_assert_int_eq(sps_operator_set_values(q.op, now->val, SPS_HOST),
                         SPS_OK);
        solve_from_zero(&q);
        ck_assert_int_eq(q.r.stop, SPS_STOP_CONVERGED);
        ck_assert_str_eq(q.r.precond, "dense");
        ck_assert_int_eq(q.r.iterations, 1);
    }
    end(&q);
    zoo_free(&A);
}
END_TEST

/* Complete factors and a tolerance that no rounded x reaches, so that
 * refinement gives way to its fallback.  Returns the bytes before the solve. */
static size_t solve_beyond(fail_alloc *memory, int restart, long allowed)
{
    sequence q;
    size_t bytes;

    begin_with(&q, indefinite(60, 0.05), 4, "auto");
    sps_solver_destroy(&q.s);
    q.opt.rtol = 1e-18;
    q.opt.max_iterations = 30;
    q.opt.restart = restart;
    ck_assert_int_eq(sps_solver_create(q.op, NULL, 4, &q.opt, &q.s), SPS_OK);
    bytes = memory->bytes;
    fail_alloc_allow(memory, allowed);
    ck_assert_int_eq(sps_solver_linear(q.s, q.B, q.X, &q.r), SPS_OK);
    fail_alloc_allow(memory, -1);
    ck_assert(q.r.worst_residual < 1e-12);
    end(&q);
    return bytes;
}

START_TEST(a_fallback_takes_memory_when_it_is_needed)
{
    static fail_alloc memory;
    size_t bytes;

    if (runner_place() != SPS_HOST) runner_leave_out("the steps of a host");
    scarce(&memory);
    bytes = solve_beyond(&memory, 5, -1);
    ck_assert(noted("continued with method gmres"));
    /* Without the basis of gmres; notes of the first solve remain. */
    ck_assert_uint_lt(solve_beyond(&memory, 50, -1), bytes + 8000);
    for (long n = 0; n < 20; n++) (void)solve_beyond(&memory, 50, n);
}
END_TEST

/* ------------------------------------------------- values that do not fit */

typedef double change(int64_t i, int64_t j, double a);

static double one_nan(int64_t i, int64_t j, double a)
{
    return i == 40 && j == 41 ? NAN : a;
}

/* Off the diagonal numbers in (-1, 1) without symmetry, there next to nothing:
 * incomplete factors of that are of no use. */
static double hard(int64_t i, int64_t j, double a)
{
    (void)a;
    return i == j ? 1e-9 : sin((double)(7 * i + 3 * j + i % 5 * j));
}

/* Symmetric, every eighth diagonal entry 0: neither definite nor far from it. */
static double saddle(int64_t i, int64_t j, double a)
{
    (void)a;
    if (i != j) return -1;
    return i % 8 ? 5 : 0;
}

static double skew(int64_t i, int64_t j, double a)
{
    (void)a;
    if (i != j) return i < j ? -1 : 0.5;
    return i % 8 ? 5 : 0.25;
}

static double same(int64_t i, int64_t j, double a)
{
    (void)i;
    (void)j;
    return a;
}

static void set(sequence *q, change *f)
{
    const sps_csr *A = q->A;
    double *val = malloc((size_t)A->nnz * sizeof *val);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            val[p] = f(i, A->col[p], ((double *)A->val)[p]);
    ck_assert_int_eq(sps_operator_set_values(q->op, val, SPS_HOST), SPS_OK);
    free(val);
}

/* Solves; a failure is the solve's, not the call's. */
static void solves(sequence *q, change *f, const char *precond)
{
    set(q, f);
    solve_from_zero(q);
    ck_assert_msg(q->r.stop == SPS_STOP_CONVERGED, "%s",
                  sps_stop_string(q->r.stop));
    if (precond) ck_assert_str_eq(q->r.precond, precond);
}

/* A grid with these values: of SMALL rows, for which auto takes complete
 * factors by ilut, or of LARGE ones, for which it takes the module's. */
enum { SMALL = 900, LARGE = 4900 };

static sps_csr *valued(change *f, int64_t n)
{
    sps_csr *A = zoo("grid5", n, ZOO_SPD);

    A->props = 0;
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] = f(i, A->col[p], 0);
    return A;
}

START_TEST(factors_that_refuse_new_values_give_way)
{
    if (absent("factor")) runner_skip("no factor module");
    for (int large = 0; large < 2; large++) {
        sequence q;

        begin_with(&q, valued(saddle, large ? LARGE : SMALL), 3, "auto");
        solves(&q, same, !on_host() ? NULL : large ? "factor" : "ilut");
        set(&q, one_nan);
        solve_from_zero(&q);
        ck_assert_int_eq(q.r.stop, SPS_STOP_NOT_FINITE);
        solves(&q, same, NULL);
        end(&q);
    }
}
END_TEST

/* They had no memory for the values before: these are others, which nothing
 * cheap can solve. */
START_TEST(factors_are_tried_again_with_new_values)
{
    sequence q;

    if (absent("factor")) runner_skip("no factor module");
    if (!on_host()) runner_leave_out("the steps of a host");
    begin_with(&q, valued(saddle, LARGE), 3, "auto");
    solves(&q, same, "factor");
    /* Room for small arrays, but not for the factors. */
    ctx->memory.host_limit = ctx->memory.host + (64 << 10);
    solves(&q, same, "jacobi");
    ctx->memory.host_limit = 0;
    solves(&q, hard, "factor");
    end(&q);
}
END_TEST

START_TEST(minres_gives_way_to_values_that_are_not_symmetric)
{
    sequence q;

    begin(&q, valued(saddle, SMALL), 3);
    solves(&q, same, "jacobi");
    ck_assert_str_eq(q.r.solver, "minres");
    solves(&q, skew, NULL);
    ck_assert(noted("auto: minres with jacobi is skipped: the matrix is not"));
    end(&q);
}
END_TEST

/* The first step that runs need not be the first of the plan, which may have
 * refused a NaN. */
START_TEST(a_matrix_with_nan_ends_with_the_first_step_that_runs)
{
    sequence q;
    sps_csr *A = nonsymmetric(900);

    ((double *)A->val)[A->rowptr[40]] = NAN;
    begin_with(&q, A, 3, "auto");
    solve_from_zero(&q);
    ck_assert_int_eq(q.r.stop, SPS_STOP_NOT_FINITE);
    ck_assert(!noted("auto: step 2"));
    end(&q);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(factors_that_refuse_new_values_give_way),
    RUNNER_TEST(factors_are_tried_again_with_new_values),
    RUNNER_TEST(minres_gives_way_to_values_that_are_not_symmetric),
    RUNNER_TEST(a_matrix_with_nan_ends_with_the_first_step_that_runs),
    RUNNER_TEST(a_solver_remembers_and_follows_new_values),
    RUNNER_TEST(a_step_that_did_not_work_is_forgotten),
    RUNNER_TEST(a_right_hand_side_of_nan_moves_no_step),
    RUNNER_TEST(a_plan_without_memory_is_made_by_the_next_solve),
    RUNNER_TEST(dense_factors_follow_values_that_are_not_definite),
    RUNNER_TEST(a_fallback_takes_memory_when_it_is_needed),
};
RUNNER_MAIN_WITHIN("check_chain_values", tests, set_up, tear_down)
