/* SPDX-License-Identifier: BSD-3-Clause */
/* check_ladder.c - solver auto: what it chooses, how it goes on where a choice
 * does not do, that limits hold for all steps together, and that it tells the
 * truth. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fail_alloc.h"
#include "ladder.h"
#include "operator.h"
#include "problem.h"
#include "runner.h"
#include "zoo.h"

static sps_context *ctx;

static void set_up(void) { ctx = runner_context(); }

static void tear_down(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    ck_assert_int_eq(info.live_objects, 0);
    sps_context_destroy(&ctx);
}

static bool noted(const char *part)
{
    const char *note;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        if (strstr(note, part)) return true;
    return false;
}

static sps_csr *zoo(const char *name, int64_t n, zoo_values values)
{
    return zoo_matrix(zoo_find(name), n, 1, values, SPS_F64);
}

/* Upper entries change their sign: a dominated nonsymmetric matrix. */
static sps_csr *nonsymmetric(int64_t n)
{
    sps_csr *A = zoo("grid5", n, ZOO_SPD);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] > i) ((double *)A->val)[p] *= -1;
    A->props = 0;
    return A;
}

/* A grid's Laplacian minus a multiple of I: symmetric, indefinite, diagonal
 * positive. */
static sps_csr *indefinite(int64_t n, double shift)
{
    sps_csr *A = zoo("grid5", n, ZOO_LAPLACIAN);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == i) ((double *)A->val)[p] -= shift;
    return A;
}

static void must_solve(problem *p, const char *what)
{
    sps_status st = problem_solve(p);

    ck_assert_msg(st == SPS_OK, "%s: %s", what, sps_context_error(ctx));
    ck_assert_msg(p->result.stop == SPS_STOP_CONVERGED, "%s: %s, %g", what,
                  sps_stop_string(p->result.stop), p->result.worst_residual);
    ck_assert_msg(problem_worst(p) <= p->opt.rtol * (1 + 1e-6), "%s: %g", what,
                  problem_worst(p));
}

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

/* minres where its few negative eigenvalues let it; factors where not. */
START_TEST(an_indefinite_matrix_is_found_out_and_solved)
{
    static const double shift[] = { 0.05, 0.7 };

    for (int t = 0; t < 2; t++) {
        problem p;

        problem_open(&p, ctx, indefinite(900, shift[t]), 5);
        must_solve(&p, "indefinite");
        ck_assert(noted("auto: step 1, block_cg with "));
        ck_assert(!noted("block_cg with ic0"));
        ck_assert_str_eq(p.result.solver, t ? "gmres" : "minres");
        ck_assert_str_eq(p.result.precond, t ? "ilut" : "jacobi");
        problem_close(&p);
    }
}
END_TEST

/* Nothing but zeros on the diagonal. */
START_TEST(zeros_on_the_diagonal_are_no_obstacle)
{
    sps_csr *A = zoo("grid5", 400, ZOO_SPD);
    problem p;

    A->props = 0;
    for (int64_t i = 0; i < A->nrow; i++)    /* columns move by half */
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            A->col[q] = (int32_t)((A->col[q] + 200) % A->nrow);
    ck_assert_int_eq(sps_csr_check(ctx, A), SPS_OK);
    problem_open(&p, ctx, A, 3);
    must_solve(&p, "zero diagonal");
    ck_assert_str_eq(p.result.precond, "ilut");
    ck_assert(noted("matching"));
    problem_close(&p);
}
END_TEST

START_TEST(iterations_are_those_of_all_steps_together)
{
    problem p;

    problem_open(&p, ctx, indefinite(2500, 0.7), 4);
    p.opt.max_iterations = 30;
    p.opt.rtol = 1e-15;
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_le(p.result.iterations, 30);
    ck_assert_int_lt(p.result.stop, 0);
    ck_assert(problem_honest(&p));
    problem_close(&p);
}
END_TEST

static bool take_a_while(const sps_progress *p, void *data)
{
    const struct timespec pause = { .tv_nsec = 2000000 };

    (void)p;
    (void)data;
    nanosleep(&pause, NULL);
    return true;
}

static int steps_noted(void)
{
    const char *note;
    int count = 0;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        count += !strncmp(note, "auto: step ", 11);
    return count;
}

/* Nothing reaches the tolerance: the steps take their time, and are given a
 * third of it. */
START_TEST(time_is_that_of_all_steps_together)
{
    double whole = 0;

    for (int limited = 0; limited < 2; limited++) {
        problem p;

        problem_open(&p, ctx, indefinite(900, 0.7), 4);
        p.opt.rtol = 1e-300;
        p.opt.dense = "never";
        p.opt.monitor = take_a_while;
        p.opt.max_seconds = limited ? whole / 3 : 0;
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        ck_assert_int_eq(p.result.stop == SPS_STOP_MAX_TIME, limited);
        ck_assert_int_ge(steps_noted(), 2);
        if (limited) ck_assert(p.result.seconds.solve < 0.7 * whole);
        whole = p.result.seconds.solve;
        problem_close(&p);
        if (!limited) {
            tear_down();
            set_up();
        }
    }
}
END_TEST

START_TEST(dense_factors_are_the_last_step_or_never)
{
    problem p;

    for (int never = 0; never < 2; never++) {
        problem_open(&p, ctx, indefinite(100, 0.7), 2);
        p.opt.rtol = 1e-300;                  /* nothing reaches that */
        p.opt.dense = never ? "never" : "auto";
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        ck_assert_int_lt(p.result.stop, 0);
        ck_assert_str_eq(p.result.precond, never ? "ilut" : "dense");
        ck_assert(problem_worst(&p) < 1e-12);
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
    ck_assert(noted("singular by its pattern"));
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

/* Small blocks are not faster in floats, and the caller is told; a named method
 * does as it is told. */
START_TEST(floats_are_not_taken_where_they_do_not_pay)
{
    problem p;

    problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 4);
    p.opt.precision = "mixed";
    must_solve(&p, "small, mixed allowed");
    ck_assert_str_eq(p.result.solver, "block_cg");
    ck_assert(noted("auto: in doubles"));
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

/* D A D, D of 1 and 3 in turn: as definite as A, and rows of 1 are dominated by
 * nothing. */
static void scale_in_turn(sps_csr *A)
{
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] *= (i % 2 ? 3 : 1) *
                                     (A->col[p] % 2 ? 3 : 1);
}

/* What is said against floats in a matrix like A of so many rows, with the
 * longest row so many times longer than the mean. */
static const char *against(sps_csr *A, int64_t rows, bool definite,
                           double longer)
{
    sps_operator *op = NULL;
    sps_ladder l = { .ctx = ctx };
    sps_features f;
    sps_looks o;

    ck_assert_int_eq(sps_operator_csr(ctx, A, 16, NULL, &op), SPS_OK);
    l.A = op;
    ck_assert_int_eq(spsi_ladder_look(&l, &o), SPS_OK);
    f = op->f;
    f.nrow = rows;
    f.max_length = (int64_t)(longer * f.mean_length + 1);
    sps_operator_destroy(&op);
    return spsi_ladder_against_floats(&o, definite, &f, 16);
}

START_TEST(floats_are_weighed_by_size_dominance_and_lengths_of_rows)
{
    static const char *const family[] = { "grid5", "grid27" };
    const int64_t most = 1 << 21;

    for (int i = 0; i < 2; i++) {
        sps_csr *A = zoo(family[i], 1000, ZOO_LAPLACIAN);
        const int64_t large = i == 0 ? most / 8 : most;

        ck_assert_ptr_null(against(A, large, true, 1));
        ck_assert_ptr_nonnull(strstr(against(A, large - 1, true, 1), "so few"));
        ck_assert_ptr_nonnull(strstr(against(A, large, true, 9), "longer"));
        ck_assert_ptr_null(against(A, large, false, 9));
        scale_in_turn(A);
        ck_assert_ptr_nonnull(strstr(against(A, large, true, 1), "dominated"));
        ck_assert_ptr_null(against(A, large, false, 1));
        zoo_free(&A);
    }
}
END_TEST

/* The host works in doubles whatever the rows: there is nothing to be seen
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
    ck_assert(noted(runner_place() == SPS_CUDA ? "not dominated" : "the host"));
    problem_close(&p);
}
END_TEST

/* The next solve begins where the last one ended; values that ask for another
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

/* One solver over values that change. */
typedef struct sequence {
    sps_csr *A;
    sps_options opt;
    sps_operator *op;
    sps_solver *s;
    sps_block *B, *X;
    sps_result r;
} sequence;

static void begin(sequence *q, sps_csr *A, int k)
{
    *q = (sequence){ .A = A, .r.struct_size = sizeof q->r };
    sps_options_default(&q->opt);
    ck_assert_int_eq(sps_operator_csr(ctx, A, k, &q->opt, &q->op), SPS_OK);
    ck_assert_int_eq(sps_solver_create(q->op, NULL, k, &q->opt, &q->s),
                     SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, A->nrow, k, &q->B), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, A->nrow, k, &q->X), SPS_OK);
    ck_assert_int_eq(sps_block_random(q->B, 4), SPS_OK);
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

/* The first solve and a second one; then one of singular values, which sends
 * every step of the ladder away; then the old values again. */
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

/* It asks nothing of the ladder. */
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

/* A context whose memory on the host ends when told. */
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

/* Values that ask for another plan, and no memory for its first step: the next
 * solve makes it. */
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

typedef struct seen {
    int calls, last;
    bool fell;
} seen;

static bool stop_at_40(const sps_progress *p, void *data)
{
    seen *s = data;

    s->calls++;
    s->fell |= p->iteration < s->last;
    s->last = p->iteration;
    return p->iteration < 40;
}

START_TEST(the_monitor_sees_one_solve_and_ends_it)
{
    problem p;
    seen s = { 0 };

    problem_open(&p, ctx, indefinite(2500, 0.7), 4);
    p.opt.rtol = 1e-300;
    p.opt.monitor = stop_at_40;
    p.opt.monitor_data = &s;
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
    ck_assert_int_eq(p.result.iterations, 40);
    ck_assert_int_eq(s.last, 40);
    ck_assert(!s.fell);
    problem_close(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check_ladder");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_nonsymmetric_matrix_gets_a_method_that_fits);
    tcase_add_test(tc, an_indefinite_matrix_is_found_out_and_solved);
    tcase_add_test(tc, zeros_on_the_diagonal_are_no_obstacle);
    tcase_add_test(tc, iterations_are_those_of_all_steps_together);
    tcase_add_test(tc, time_is_that_of_all_steps_together);
    tcase_add_test(tc, dense_factors_are_the_last_step_or_never);
    tcase_add_test(tc, a_matrix_singular_by_its_pattern_ends_with_a_reason);
    tcase_add_test(tc, own_preconditioners_are_respected);
    tcase_add_test(tc, floats_are_not_taken_where_they_do_not_pay);
    tcase_add_test(tc, floats_are_taken_for_large_blocks_on_a_gpu);
    tcase_add_test(tc, floats_are_weighed_by_size_dominance_and_lengths_of_rows);
    tcase_add_test(tc, floats_are_not_taken_far_from_dominated_rows);
    tcase_add_test(tc, a_solver_remembers_and_follows_new_values);
    tcase_add_test(tc, a_step_that_did_not_work_is_forgotten);
    tcase_add_test(tc, a_right_hand_side_of_nan_moves_no_step);
    tcase_add_test(tc, a_plan_without_memory_is_made_by_the_next_solve);
    tcase_add_test(tc, the_monitor_sees_one_solve_and_ends_it);
    suite_add_tcase(suite, tc);
    return runner_run(suite);
}
