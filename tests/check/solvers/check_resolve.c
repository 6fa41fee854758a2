/* SPDX-License-Identifier: BSD-3-Clause */
/* check_resolve.c - one solver over its life: new values between solves,
 * right-hand sides of every kind, callbacks that fail at any call, and no
 * growth of memory. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

enum { N = 400, K = 3 };

typedef struct life {
    sps_context *ctx;
    sps_csr *A;
    sps_operator *op;
    sps_solver *s;
    sps_block *B, *X;
    sps_options opt;
    sps_result r;
} life;

static void begin(life *l, sps_context *ctx, const char *family,
                  zoo_values values)
{
    memset(l, 0, sizeof *l);
    l->ctx = ctx;
    l->A = zoo_matrix(zoo_find(family), N, 5, values, SPS_F64);
    l->r.struct_size = sizeof l->r;
    sps_options_default(&l->opt);
    l->B = fixture_block(ctx, N, K, NULL, 0);
    l->X = fixture_block(ctx, N, K, NULL, 0);
    OK(ctx, sps_block_random(l->B, 3));
}

static void make(life *l)
{
    OK(l->ctx, sps_operator_csr(l->ctx, l->A, K, &l->opt, &l->op));
    OK(l->ctx, sps_solver_create(l->op, NULL, K, &l->opt, &l->s));
}

static void solve(life *l, sps_stop stop)
{
    OK(l->ctx, sps_solver_linear(l->s, l->B, l->X, &l->r));
    ck_assert_msg(l->r.stop == stop, "%s after %d iterations, residual %g",
                  sps_stop_string(l->r.stop), l->r.iterations,
                  l->r.worst_residual);
}

static void put(life *l, sps_block *X, const double *x)
{
    OK(l->ctx, sps_block_set(X, 0, K, x, K, SPS_ROW_MAJOR, SPS_HOST));
}

static void get(life *l, const sps_block *X, double *x)
{
    OK(l->ctx, sps_block_get(X, 0, K, x, K, SPS_ROW_MAJOR, SPS_HOST));
}

static void end(life *l)
{
    sps_solver_destroy(&l->s);
    sps_operator_destroy(&l->op);
    sps_block_destroy(&l->B);
    sps_block_destroy(&l->X);
    zoo_free(&l->A);
    fixture_close(&l->ctx);
}

/* The largest true residual ||b - A x|| / ||b|| with the present matrix. */
static double truth(life *l)
{
    static double b[N * K], x[N * K];
    const double *val = l->A->val;
    double worst = 0;

    get(l, l->B, b);
    get(l, l->X, x);
    for (int j = 0; j < K; j++) {
        double rr = 0, bb = 0;
        for (int i = 0; i < N; i++) {
            double r = b[i * K + j];
            bb += r * r;
            for (int64_t p = l->A->rowptr[i]; p < l->A->rowptr[i + 1]; p++)
                r -= val[p] * x[l->A->col[p] * K + j];
            rr += r * r;
        }
        if (sqrt(rr / bb) > worst) worst = sqrt(rr / bb);
    }
    return worst;
}

/* Adds to the diagonal and passes the new values to the operator. */
static void shift(life *l, double by)
{
    double *val = l->A->val;

    for (int i = 0; i < N; i++)
        for (int64_t p = l->A->rowptr[i]; p < l->A->rowptr[i + 1]; p++)
            if (l->A->col[p] == i) val[p] += by;
    OK(l->ctx, sps_operator_set_values(l->op, val, SPS_HOST));
}

/* A Laplacian, then one with a shift, whose solution has a component that the
 * projection would remove, then the Laplacian again. */
START_TEST(a_null_space_comes_and_goes_with_the_values)
{
    life l;

    begin(&l, fixture_open(), "grid5", ZOO_LAPLACIAN);
    make(&l);
    solve(&l, SPS_STOP_LEAST_SQUARES);
    ck_assert_int_eq(l.r.nullspace, 1);
    shift(&l, 0.5);
    solve(&l, SPS_STOP_CONVERGED);
    ck_assert_int_eq(l.r.nullspace, 0);
    ck_assert_msg(truth(&l) <= 1.01e-8, "said converged at %g", truth(&l));
    shift(&l, -0.5);
    solve(&l, SPS_STOP_LEAST_SQUARES);
    ck_assert_int_eq(l.r.nullspace, 1);
    ck_assert(l.r.removed > 0);
    end(&l);
}
END_TEST

START_TEST(a_null_space_is_found_though_the_first_values_had_none)
{
    life l;

    begin(&l, fixture_open(), "grid5", ZOO_LAPLACIAN);
    make(&l);
    sps_solver_destroy(&l.s);
    shift(&l, 1);
    OK(l.ctx, sps_solver_create(l.op, NULL, K, &l.opt, &l.s));
    solve(&l, SPS_STOP_CONVERGED);
    ck_assert_int_eq(l.r.nullspace, 0);
    shift(&l, -1);
    solve(&l, SPS_STOP_LEAST_SQUARES);
    ck_assert_int_eq(l.r.nullspace, 1);
    end(&l);
}
END_TEST

/* With the preconditioner of the old values the iteration count would differ,
 * and chebyshev would not even be positive definite. */
START_TEST(the_solvers_own_preconditioner_follows_new_values)
{
    static const char *precond[] = { "jacobi", "block_jacobi", "chebyshev" };

    for (int t = 0; t < 3; t++) {
        life l;
        double *val;
        int fresh;

        begin(&l, fixture_open(), "grid5", ZOO_SPD);
        l.opt.precond = precond[t];
        make(&l);
        solve(&l, SPS_STOP_CONVERGED);
        val = l.A->val;
        for (int i = 0; i < N; i++) /* D A D with widely varying D */
            for (int64_t p = l.A->rowptr[i]; p < l.A->rowptr[i + 1]; p++)
                val[p] *= ldexp(1, i % 9 + l.A->col[p] % 9);
        OK(l.ctx, sps_operator_set_values(l.op, val, SPS_HOST));
        OK(l.ctx, sps_block_random(l.X, 9));
        solve(&l, SPS_STOP_CONVERGED);
        fresh = l.r.iterations;
        sps_solver_destroy(&l.s);
        OK(l.ctx, sps_solver_create(l.op, NULL, K, &l.opt, &l.s));
        OK(l.ctx, sps_block_random(l.X, 9));
        solve(&l, SPS_STOP_CONVERGED);
        ck_assert_msg(fresh == l.r.iterations, "%s: %d against %d", precond[t],
                      fresh, l.r.iterations);
        end(&l);
    }
}
END_TEST

START_TEST(right_hand_sides_inside_the_null_space_give_zero)
{
    life l;
    double b[N * K], x[N * K];

    begin(&l, fixture_open(), "grid5", ZOO_LAPLACIAN);
    make(&l);
    get(&l, l.B, b);
    for (int i = 0; i < N; i++) b[i * K] = 0.1, b[i * K + 1] = 1e9 / 3;
    put(&l, l.B, b);
    solve(&l, SPS_STOP_LEAST_SQUARES);
    get(&l, l.X, x);
    for (int i = 0; i < N; i++)
        ck_assert(x[i * K] == 0 && x[i * K + 1] == 0);
    ck_assert(l.r.removed <= 1);
    end(&l);
}
END_TEST

/* A null space component of 1e9 is removed next to a component of 1: rounding
 * of the projection must not make the remaining system inconsistent. */
START_TEST(a_small_rest_beside_a_large_null_part_is_solved)
{
    static const char *family[] = { "grid5", "components" };

    for (int f = 0; f < 2; f++) {
        life l;
        double b[N * K];

        begin(&l, fixture_open(), family[f], ZOO_LAPLACIAN);
        make(&l);
        get(&l, l.B, b);
        for (int i = 0; i < N * K; i++) b[i] += 1e9 / 3;
        put(&l, l.B, b);
        solve(&l, SPS_STOP_LEAST_SQUARES);
        end(&l);
    }
}
END_TEST

/* A guess a thousand times as large as the solution, and a tolerance below the
 * attainable accuracy: the stop reason must be neither the matrix nor the
 * preconditioner. */
START_TEST(rounding_is_not_blamed_on_matrix_or_preconditioner)
{
    static const char *solver[] = { "cg", "block_cg" };
    static const char *precond[] = { "none", "jacobi", "block_jacobi",
                                     "chebyshev" };
    static const char *family[] = { "grid5", "block_dense", "arrow", "ring" };

    for (int t = 0; t < 32; t++) {
        life l;
        double x[N * K];

        begin(&l, fixture_open(), family[t / 8], ZOO_LAPLACIAN);
        l.opt.solver = solver[t % 2];
        l.opt.precond = precond[t / 2 % 4];
        l.opt.rtol = t % 3 ? 1e-17 : 1e-13;
        make(&l);
        OK(l.ctx, sps_block_random(l.X, 9));
        get(&l, l.X, x);
        for (int i = 0; i < N * K; i++) x[i] *= 1e3;
        put(&l, l.X, x);
        OK(l.ctx, sps_solver_linear(l.s, l.B, l.X, &l.r));
        ck_assert_msg(l.r.stop == SPS_STOP_STAGNATED ||
                      l.r.stop == SPS_STOP_ROUNDING ||
                      l.r.stop == SPS_STOP_LEAST_SQUARES,
                      "%s, %s, %s: %s at residual %g, backward %g",
                      family[t / 8], l.opt.solver, l.opt.precond,
                      sps_stop_string(l.r.stop), l.r.worst_residual,
                      l.r.worst_backward);
        end(&l);
    }
}
END_TEST

/* The product ||A|| ||x|| overflows and makes the threshold infinite, and the
 * residual of the guess is infinite, too. */
START_TEST(an_infinite_residual_never_converges)
{
    life l;
    double x[N * K], *val;

    begin(&l, fixture_open(), "diagonal", ZOO_SPD);
    val = l.A->val;
    for (int64_t p = 0; p < l.A->nnz; p++) val[p] = ldexp(val[p], 600);
    l.opt.norm = SPS_NORM_BACKWARD;
    make(&l);
    for (int i = 0; i < N * K; i++) x[i] = ldexp(1.0 + i % 7, 600);
    put(&l, l.X, x);
    OK(l.ctx, sps_solver_linear(l.s, l.B, l.X, &l.r));
    ck_assert_msg(l.r.stop < 0, "%s", sps_stop_string(l.r.stop));
    ck_assert_int_eq(l.r.columns_converged, 0);
    end(&l);
}
END_TEST

struct trap {
    const sps_csr *A;
    int calls, bad_from;
};

static int trap_apply(double alpha, const double *X, int64_t ldx, double beta,
                      double *Y, int64_t ldy, int64_t n, int k, void *stream,
                      void *data)
{
    struct trap *t = data;
    const double *val = t->A->val;

    (void)stream;
    if (++t->calls >= t->bad_from) return 5;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;
            for (int64_t p = t->A->rowptr[i]; p < t->A->rowptr[i + 1]; p++)
                sum += val[p] * X[t->A->col[p] * ldx + j];
            Y[i * ldy + j] = alpha * sum +
                             (beta != 0 ? beta * Y[i * ldy + j] : 0);
        }
    return 0;
}

/* Whichever call of the operator fails, X is returned in the caller's scaling
 * and order, and is no worse than the guess.  The columns differ by factors of
 * 2^30, so that a missing scale factor or permutation would show. */
START_TEST(a_failing_operator_leaves_units_and_order_alone)
{
    int failed = 0;

    if (fixture_place() != SPS_HOST) runner_leave_out("callback of the host");
    for (int bad = 1; bad < 70; bad++) {
        life l;
        struct trap trap = { .bad_from = bad };
        double b[N * K], x[N * K];
        sps_status st;

        begin(&l, fixture_open(), "grid5", ZOO_SPD);
        trap.A = l.A;
        l.opt.max_iterations = 12;
        l.opt.rtol = 1e-14;
        OK(l.ctx, sps_operator_user(l.ctx, N, trap_apply, &trap, SPS_SYMMETRIC,
                                    &l.op));
        OK(l.ctx, sps_solver_create(l.op, NULL, K, &l.opt, &l.s));
        get(&l, l.B, b);
        for (int i = 0; i < N * K; i++) b[i] = ldexp(b[i], -30 * (i % K));
        for (int j = 0; j < K; j++) b[j] = ldexp(1, -30 * j);
        put(&l, l.B, b);
        st = sps_solver_linear(l.s, l.B, l.X, NULL);
        ck_assert(st == SPS_OK || st == SPS_EUSER);
        failed += st == SPS_EUSER;
        get(&l, l.X, x);
        trap.bad_from = INT32_MAX;
        ck_assert_msg(truth(&l) <= 1 + 1e-12, "call %d: residual %g", bad,
                      truth(&l));
        for (int i = 0; i < N * K; i++) ck_assert(isfinite(x[i]));
        end(&l);
    }
    ck_assert_int_gt(failed, 10);
}
END_TEST

/* Many solves, each with its own note: memory and number of notes are
 * bounded. */
START_TEST(notes_of_many_solves_do_not_pile_up)
{
    sps_context *ctx = fixture_open();
    sps_context_info info = { .struct_size = sizeof info };
    size_t before;
    int count = 0;

    for (int64_t round = 0; round < 2; round++) {
        for (int t = 1; t <= 600; t++) {
            int64_t rowptr[2] = { 0, t + 600 * round };
            int32_t *col = calloc((size_t)rowptr[1], sizeof *col);
            double *val = calloc((size_t)rowptr[1], sizeof *val);
            sps_csr *A = NULL;

            OK(ctx, sps_csr_wrap(ctx, 1, 1, rowptr[1], rowptr, col, val,
                                 SPS_F64, SPS_HOST, SPS_COPY, &A));
            OK(ctx, sps_csr_check(ctx, A));   /* notes the duplicates */
            sps_csr_destroy(ctx, &A);
            free(col);
            free(val);
        }
        OK(ctx, sps_context_information(ctx, &info));
        if (round == 0) before = info.host_bytes;
    }
    ck_assert_msg(info.host_bytes == before, "%zu bytes, then %zu", before,
                  info.host_bytes);
    while (sps_context_note(ctx, count)) count++;
    ck_assert_int_lt(count, 400);
    fixture_close(&ctx);
}
END_TEST

START_TEST(a_preconditioner_of_another_width_or_context_is_refused)
{
    life l, other;
    sps_precond *narrow = NULL, *foreign = NULL;
    sps_solver *s = NULL;

    begin(&l, fixture_open(), "grid5", ZOO_SPD);
    begin(&other, fixture_open(), "grid5", ZOO_SPD);
    make(&l);
    make(&other);
    OK(l.ctx, sps_precond_create(l.op, K - 1, NULL, &narrow));
    OK(other.ctx, sps_precond_create(other.op, K, NULL, &foreign));
    ck_assert_int_eq(sps_solver_create(l.op, narrow, K, NULL, &s), SPS_ESHAPE);
    ck_assert_int_eq(sps_solver_create(l.op, foreign, K, NULL, &s),
                     SPS_EINVAL);
    sps_precond_destroy(&narrow);
    sps_precond_destroy(&foreign);
    end(&l);
    end(&other);
}
END_TEST

/* One step of cg on diag(1, 1e4, 1, ..) from zero with b = (1, 0.01, ..): the
 * residual becomes 50 times ||b||, and the answer is the guess, not that of the
 * solve before. */
START_TEST(a_guess_of_zero_stays_the_best_after_other_solves)
{
    static double b[N * K], zeros[N * K], x[N * K];
    life l;
    double *val;

    begin(&l, fixture_open(), "grid5", ZOO_SPD);
    l.opt.solver = "cg";
    l.opt.precond = "none";
    l.opt.max_iterations = 1;
    val = l.A->val;
    for (int i = 0; i < N; i++)
        for (int64_t p = l.A->rowptr[i]; p < l.A->rowptr[i + 1]; p++)
            val[p] = l.A->col[p] != i ? 0 : i % 2 ? 1e4 : 1;
    make(&l);
    for (int e = 0; e < N * K; e++) b[e] = 1, x[e] = 0.5;
    put(&l, l.B, b);
    put(&l, l.X, x);
    solve(&l, SPS_STOP_MAX_ITERATIONS);
    for (int e = 0; e < N * K; e++) b[e] = e / K % 2 ? 0.01 : 1;
    put(&l, l.B, b);
    put(&l, l.X, zeros);
    solve(&l, SPS_STOP_MAX_ITERATIONS);
    get(&l, l.X, x);
    for (int e = 0; e < N * K; e++) ck_assert_double_eq(x[e], 0);
    end(&l);
}
END_TEST

static const sps_backend *fixture_backend;
static int twofold_products;

static sps_status count_twofold(const sps_csr_local *A,
                                const sps_twofold_args *args)
{
    twofold_products++;
    return fixture_backend->twofold(A, args);
}

/* Returns the number of products in twice the working precision of a solve
 * from X = 0. */
static int count_of(life *l, double rtol)
{
    static const double zeros[N * K];
    sps_backend counting = *l->ctx->backend;

    fixture_backend = l->ctx->backend;
    counting.twofold = count_twofold;
    l->opt.rtol = rtol;
    make(l);
    put(l, l->X, zeros);
    twofold_products = 0;
    l->ctx->backend = &counting;
    solve(l, SPS_STOP_CONVERGED);
    l->ctx->backend = fixture_backend;
    ck_assert_double_le(truth(l), 1.01 * rtol);
    sps_solver_destroy(&l->s);
    sps_operator_destroy(&l->op);
    return twofold_products;
}

/* The verdict is in twice the working precision; the end of the loop is as well
 * where residuals in doubles are not accurate enough. */
START_TEST(the_loop_ends_by_doubles_where_their_rounding_does_not_matter)
{
    life l;

    begin(&l, fixture_open(), "grid5", ZOO_SPD);
    l.opt.solver = "cg";
    ck_assert_int_eq(count_of(&l, 1e-8), 1);
    ck_assert_int_gt(count_of(&l, 1e-13), 1);
    end(&l);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(the_loop_ends_by_doubles_where_their_rounding_does_not_matter),
    RUNNER_TEST(a_null_space_comes_and_goes_with_the_values),
    RUNNER_TEST(a_null_space_is_found_though_the_first_values_had_none),
    RUNNER_TEST(the_solvers_own_preconditioner_follows_new_values),
    RUNNER_TEST(right_hand_sides_inside_the_null_space_give_zero),
    RUNNER_TEST(a_small_rest_beside_a_large_null_part_is_solved),
    RUNNER_TEST(rounding_is_not_blamed_on_matrix_or_preconditioner),
    RUNNER_TEST(an_infinite_residual_never_converges),
    RUNNER_TEST(a_failing_operator_leaves_units_and_order_alone),
    RUNNER_TEST(a_guess_of_zero_stays_the_best_after_other_solves),
    RUNNER_TEST(notes_of_many_solves_do_not_pile_up),
    RUNNER_TEST(a_preconditioner_of_another_width_or_context_is_refused),
};

RUNNER_MAIN("resolve", tests)
