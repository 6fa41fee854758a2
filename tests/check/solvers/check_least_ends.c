/* SPDX-License-Identifier: BSD-3-Clause */
/* check_least_ends.c - lsqr and lsmr: limits, monitors, threads, callbacks, new
 * values, what auto takes, and what is refused. */
#include "tests/check/solvers/least_fixture.h"
#include "tests/support/runner.h"

/* Ill conditioned enough for some hundred steps. */
static least slow(sps_context *ctx, int k)
{
    least p = least_new(ctx, 60, 40, k);

    least_fill(&p, 4, 5);
    for (int i = 0; i < 60; i++)
        for (int j = 0; j < 40; j++) p.a[i * 40 + j] *= pow(10, -(j % 5));
    return p;
}

/* ------------------------------------------------------------------- limits */

/* Residuals never rise from one limit to the next, and none is lost. */
START_TEST(a_larger_limit_is_never_worse)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        double last[3] = { 1, 1, 1 };

        for (int limit = 1; limit < 400; limit += 1 + limit / 8) {
            least p = slow(ctx, 3);

            p.opt.solver = name;
            p.opt.rtol = 1e-14;
            p.opt.max_iterations = limit;
            OK(ctx, least_solve(&p));
            ck_assert_int_le(p.result.iterations, limit);
            for (int j = 0; j < 3; j++) {
                ck_assert_msg(p.residual[j] <= last[j] * (1 + 1e-9), "%s, %d "
                              "steps: %.17g after %.17g", name, limit,
                              p.residual[j], last[j]);
                last[j] = p.residual[j];
                least_must_be_true(&p, j, "limited");
            }
            if (limit < 10) {
                ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_ITERATIONS);
                ck_assert_int_eq(p.column[1], SPS_STOP_MAX_ITERATIONS);
            }
            least_drop(&p);
        }
        ck_assert_double_le(last[0], 0.95);
    }
    fixture_close(&ctx);
}
END_TEST

typedef struct watch { int calls, stop_at; double last; } watch;

static bool look(const sps_progress *p, void *data)
{
    watch *w = data;

    w->calls++;
    w->last = p->worst;
    return p->iteration < w->stop_at;
}

START_TEST(a_monitor_can_stop_it)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = slow(ctx, 2);
        watch w = { .stop_at = 7 };

        p.opt.solver = name;
        p.opt.monitor = look;
        p.opt.monitor_data = &w;
        OK(ctx, least_solve(&p));
        ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
        ck_assert_int_eq(p.result.iterations, 7);
        ck_assert_int_eq(w.calls, 8);
        ck_assert_double_lt(p.residual[0], 1);
        w = (watch){ .stop_at = 100000 };
        memset(p.x, 0, 80 * sizeof *p.x);
        least_must_converge(&p, "watched");
        ck_assert_double_le(w.last, p.opt.rtol * (1 + 1e-6));
        sps_cancel(ctx, true);
        OK(ctx, least_solve(&p));
        ck_assert_int_gt(p.result.stop, 0);         /* nothing left to do */
        memset(p.x, 0, 80 * sizeof *p.x);
        OK(ctx, least_solve(&p));
        ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
        ck_assert_double_eq(p.residual[0], 1);
        sps_cancel(ctx, false);
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* The first rule follows option norm, the second one rtol. */
START_TEST(norms_and_tolerances)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = slow(ctx, 2);

        p.opt.solver = name;
        p.opt.norm = SPS_NORM_ABSOLUTE;
        p.opt.atol = 1000;
        OK(ctx, least_solve(&p));
        ck_assert_int_eq(p.result.iterations, 0);
        ck_assert_int_eq(p.column[0], SPS_STOP_CONVERGED);
        p.opt.atol = 1e-300;
        OK(ctx, least_solve(&p));
        ck_assert_int_eq(p.column[0], SPS_STOP_CONVERGED_LEAST_SQUARES);
        ck_assert_double_le(p.normal[0], p.opt.rtol * (1 + 1e-6));
        p.opt.norm = SPS_NORM_BACKWARD;
        p.opt.rtol = 0.9;
        memset(p.x, 0, 80 * sizeof *p.x);
        OK(ctx, least_solve(&p));
        ck_assert_int_gt(p.column[0], 0);
        ck_assert_int_le(p.result.iterations, 3);
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------------ threads */

enum { ROWS = 30000, COLUMNS = 2000, WIDE = 6 };

/* A sparse tall matrix, five entries a row. */
static sps_csr *tall(sps_context *ctx)
{
    uint64_t state = 3;
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, ROWS, COLUMNS, 5 * ROWS, SPS_F64, &A));
    for (int i = 0; i < ROWS; i++) {
        for (int q = 0; q < 5; q++) {
            A->col[5 * i + q] = (i + 397 * q) % COLUMNS;
            ((double *)A->val)[5 * i + q] = least_draw(&state);
        }
        A->rowptr[i + 1] = 5 * (i + 1);
    }
    return A;
}

static double *solved_by(int threads, const char *name, double damp)
{
    sps_context *ctx = fixture_open_with(runner_place(), threads, true);
    double *x = malloc(COLUMNS * WIDE * sizeof *x);
    sps_csr *A = tall(ctx);
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B = fixture_block(ctx, ROWS, WIDE, NULL, 0);
    sps_block *X = fixture_block(ctx, COLUMNS, WIDE, NULL, 0);
    sps_options o;

    sps_options_default(&o);
    o.solver = name;
    o.damp = damp;
    o.precond = damp > 0 ? "jacobi" : "none";
    OK(ctx, sps_block_random(B, 7));
    OK(ctx, sps_operator_csr(ctx, A, WIDE, &o, &op));
    OK(ctx, sps_solver_create(op, NULL, WIDE, &o, &s));
    OK(ctx, sps_solver_linear(s, B, X, NULL));
    OK(ctx, sps_block_get(X, 0, WIDE, x, WIDE, SPS_ROW_MAJOR, SPS_HOST));
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    return x;
}

START_TEST(bits_do_not_depend_on_threads)
{
    const char *name;

    FOR_LEAST(name)
        for (int damped = 0; damped < 2; damped++) {
            double *one = solved_by(1, name, 0.1 * damped);

            for (int threads = 2; threads < 6; threads += 3) {
                double *x = solved_by(threads, name, 0.1 * damped);

                ck_assert_msg(!memcmp(one, x, COLUMNS * WIDE * sizeof *x),
                              "%s with %d threads", name, threads);
                free(x);
            }
            free(one);
        }
}
END_TEST

/* ---------------------------------------------------------------- callbacks */

static int product(const least *p, bool transposed, double alpha,
                   const double *X, int64_t ldx, double beta, double *Y,
                   int64_t ldy, int k)
{
    const int rows = transposed ? p->n : p->m, inner = transposed ? p->m : p->n;

    for (int i = 0; i < rows; i++)
        for (int c = 0; c < k; c++) {
            double sum = 0;

            for (int j = 0; j < inner; j++)
                sum += (transposed ? p->a[j * p->n + i] : p->a[i * p->n + j]) *
                       X[j * ldx + c];
            Y[i * ldy + c] = alpha * sum +
                             (beta != 0 ? beta * Y[i * ldy + c] : 0);
        }
    return 0;
}

static int forth(double alpha, const double *X, int64_t ldx, double beta,
                 double *Y, int64_t ldy, int64_t n, int k, void *stream,
                 void *data)
{
    const least *p = data;

    (void)stream;
    ck_assert_int_eq(n, p->m);
    return product(p, false, alpha, X, ldx, beta, Y, ldy, k);
}

static int back(double alpha, const double *X, int64_t ldx, double beta,
                double *Y, int64_t ldy, int64_t n, int k, void *stream,
                void *data)
{
    const least *p = data;

    (void)stream;
    ck_assert_int_eq(n, p->n);
    return product(p, true, alpha, X, ldx, beta, Y, ldy, k);
}

START_TEST(a_pair_of_functions_is_an_operator)
{
    sps_context *ctx = runner_context();
    const char *name;

    if (runner_place() == SPS_CUDA)
        runner_leave_out("these functions are host code");
    FOR_LEAST(name) {
        least p = least_new(ctx, 30, 12, 3), q = least_new(ctx, 30, 12, 3);
        sps_operator *op = NULL;

        least_fill(&p, 5, 3);
        least_fill(&q, 5, 3);
        p.opt.solver = "auto";
        q.opt.solver = name;
        OK(ctx, sps_operator_user_pair(ctx, 30, 12, forth, back, &p, &op));
        OK(ctx, least_solve_by(&p, op));
        ck_assert_str_eq(p.result.solver, "lsmr");
        ck_assert(p.result.in_doubles);
        memset(p.x, 0, 36 * sizeof *p.x);
        p.opt.solver = name;
        OK(ctx, least_solve_by(&p, op));
        least_must_converge(&q, "the matrix");
        ck_assert_int_gt(p.result.stop, 0);
        ck_assert_int_eq(p.result.iterations, q.result.iterations);
        ck_assert_double_le(least_distance(&p, q.x), 1e-12);
        sps_operator_destroy(&op);
        least_drop(&p);
        least_drop(&q);
    }
    fixture_close(&ctx);
}
END_TEST

/* --------------------------------------------------------------- new values */

START_TEST(new_values_reach_the_transpose)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name)
        for (int scaled = 0; scaled < 2; scaled++) {
            least p = least_new(ctx, 30, 12, 2), q = least_new(ctx, 30, 12, 2);
            sps_block *B, *X = fixture_block(ctx, 12, 2, NULL, 0);
            sps_csr *A, *C;
            sps_operator *op = NULL;
            sps_solver *s = NULL;
            sps_result r = { .struct_size = sizeof r };

            least_fill(&p, 5, 3);
            least_fill(&q, 5, 3);
            for (int i = 0; i < 30 * 12; i++) q.a[i] *= 1 + i % 7;
            p.opt.solver = q.opt.solver = name;
            if (scaled) p.opt.precond = q.opt.precond = "jacobi";
            A = least_csr(&p);
            C = least_csr(&q);
            B = fixture_block(ctx, 30, 2, p.b, 2);
            OK(ctx, sps_operator_csr(ctx, A, 2, &p.opt, &op));
            OK(ctx, sps_solver_create(op, NULL, 2, &p.opt, &s));
            OK(ctx, sps_solver_linear(s, B, X, &r));
            OK(ctx, sps_operator_set_values(op, C->val, SPS_HOST));
            OK(ctx, sps_block_set(X, 0, 2, p.x, 2, SPS_ROW_MAJOR, SPS_HOST));
            OK(ctx, sps_solver_linear(s, B, X, &r));
            ck_assert_int_gt(r.stop, 0);
            OK(ctx, sps_block_get(X, 0, 2, p.x, 2, SPS_ROW_MAJOR, SPS_HOST));
            least_must_converge(&q, "the new matrix");
            ck_assert_double_le(least_distance(&p, q.x), 1e-12);
            sps_solver_destroy(&s);
            sps_operator_destroy(&op);
            sps_block_destroy(&B);
            sps_block_destroy(&X);
            sps_csr_destroy(ctx, &A);
            sps_csr_destroy(ctx, &C);
            least_drop(&p);
            least_drop(&q);
        }
    fixture_close(&ctx);
}
END_TEST

/* --------------------------------------------------------- choice, refusals */

START_TEST(auto_takes_least_squares_where_they_are_meant)
{
    sps_context *ctx = runner_context();
    least wide = least_new(ctx, 4, 9, 2), square = least_new(ctx, 9, 9, 2);

    least_fill(&wide, 4, 1);
    least_fill(&square, 4, 2);
    least_must_converge(&wide, "auto");
    ck_assert_str_eq(wide.result.solver, "lsmr");
    ck_assert(fixture_noted(ctx, "4 x 9"));
    square.opt.damp = 0.25;
    least_must_converge(&square, "auto, damped");
    ck_assert_str_eq(square.result.solver, "lsmr");
    square.opt.damp = 0;
    OK(ctx, least_solve(&square));
    ck_assert_str_ne(square.result.solver, "lsmr");
    ck_assert_ptr_null(square.result.normal);
    least_drop(&wide);
    least_drop(&square);
    fixture_close(&ctx);
}
END_TEST

/* The options end in EUNFIT with a text that has the part. */
static void refused(least *p, const char *solver, const char *precond,
                    double damp, const char *part)
{
    p->opt.solver = solver;
    p->opt.precond = precond;
    p->opt.damp = damp;
    ck_assert_int_eq(least_solve(p), SPS_EUNFIT);
    ck_assert_msg(strstr(sps_context_error(p->ctx), part), "%s: %s", part,
                  sps_context_error(p->ctx));
}

static int copy(double alpha, const double *X, int64_t ldx, double beta,
                double *Y, int64_t ldy, int64_t n, int k, void *stream,
                void *data)
{
    (void)stream;
    (void)data;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < k; c++)
            Y[i * ldy + c] = alpha * X[i * ldx + c] +
                             (beta != 0 ? beta * Y[i * ldy + c] : 0);
    return 0;
}

START_TEST(what_does_not_fit_is_refused)
{
    sps_context *ctx = runner_context();
    least p = least_new(ctx, 6, 4, 1), q = least_new(ctx, 4, 4, 1);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_solver *s = NULL;

    least_fill(&p, 4, 1);
    least_fill(&q, 4, 1);
    refused(&p, "gmres", "none", 0, "6 x 4");
    refused(&p, "lsqr", "ilu0", 0, "jacobi");
    refused(&p, "auto", "amg", 0, "jacobi");
    refused(&q, "gmres", "none", 0.5, "damp = 0.5");
    OK(ctx, sps_operator_user(ctx, 4, copy, NULL, 0, &op));
    q.opt.damp = 0;
    q.opt.solver = "lsqr";
    ck_assert_int_eq(least_solve_by(&q, op), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx),
                                 "sps_operator_user_pair"));
    OK(ctx, sps_precond_user(ctx, 4, copy, NULL, &M));
    ck_assert_int_eq(sps_solver_create(op, M, 1, &q.opt, &s), SPS_EUNFIT);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(sps_operator_user_pair(ctx, 2, 3, copy, NULL, NULL, &op),
                     SPS_EINVAL);
    ck_assert_int_eq(sps_operator_user_pair(ctx, -2, 3, copy, copy, NULL, &op),
                     SPS_EINVAL);
    ck_assert_int_eq(sps_options_parse(ctx, &q.opt, "damp=-1"), SPS_EINVAL);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    least_drop(&p);
    least_drop(&q);
    fixture_close(&ctx);
}
END_TEST

/* A 3 x 2 complex matrix is 6 x 4 in its real form. */
START_TEST(complex_sizes_are_the_caller_s)
{
    sps_context *ctx = runner_context();
    least p = least_new(ctx, 6, 4, 1);
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_csr *A;

    p.a[0] = p.a[5] = 1;
    A = least_csr(&p);
    A->props |= SPS_INTERLEAVED;
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    p.opt.precond = "ilu0";
    ck_assert_int_eq(sps_precond_create(op, 1, &p.opt, &M), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "is 3 x 2; ilu0"));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    least_drop(&p);
    fixture_close(&ctx);
}
END_TEST

START_TEST(blocks_of_other_shapes_are_refused)
{
    sps_context *ctx = runner_context();
    least p = least_new(ctx, 6, 4, 1);
    sps_block *B = fixture_block(ctx, 6, 1, NULL, 0);
    sps_block *X = fixture_block(ctx, 4, 1, NULL, 0);
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_csr *A;

    least_fill(&p, 4, 1);
    A = least_csr(&p);
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    OK(ctx, sps_solver_create(op, NULL, 1, NULL, &s));
    ck_assert_int_eq(sps_solver_linear(s, X, B, NULL), SPS_ESHAPE);
    ck_assert_int_eq(sps_solver_linear(s, B, B, NULL), SPS_ESHAPE);
    OK(ctx, sps_solver_linear(s, B, X, NULL));
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_csr_destroy(ctx, &A);
    least_drop(&p);
    fixture_close(&ctx);
}
END_TEST

/* NaN or infinity in one column of b ends that one alone. */
START_TEST(numbers_that_are_not_finite)
{
    sps_context *ctx = runner_context();
    const char *name;

    FOR_LEAST(name) {
        least p = least_new(ctx, 20, 8, 3);

        least_fill(&p, 4, 1);
        p.b[3 * 4 + 1] = NAN;
        p.opt.solver = name;
        OK(ctx, least_solve(&p));
        ck_assert_int_eq(p.column[1], SPS_STOP_NOT_FINITE);
        ck_assert_int_gt(p.column[0], 0);
        ck_assert_int_gt(p.column[2], 0);
        for (int j = 0; j < 8; j++) ck_assert_double_eq(p.x[3 * j + 1], 0);
        least_drop(&p);
    }
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_larger_limit_is_never_worse),
    RUNNER_TEST(a_monitor_can_stop_it),
    RUNNER_TEST(norms_and_tolerances),
    RUNNER_TEST(bits_do_not_depend_on_threads),
    RUNNER_TEST(a_pair_of_functions_is_an_operator),
    RUNNER_TEST(new_values_reach_the_transpose),
    RUNNER_TEST(auto_takes_least_squares_where_they_are_meant),
    RUNNER_TEST(what_does_not_fit_is_refused),
    RUNNER_TEST(complex_sizes_are_the_caller_s),
    RUNNER_TEST(blocks_of_other_shapes_are_refused),
    RUNNER_TEST(numbers_that_are_not_finite),
};

RUNNER_MAIN("least squares: ends", tests)
