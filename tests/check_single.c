/* SPDX-License-Identifier: BSD-3-Clause */
/* check_single.c - blocks of floats: sums, Gram and small products exact on
 * integers at every width, the passes of a step in both types; and what is
 * special to refinement: it reaches what doubles reach, and hands over where
 * floats do not serve. */
#include <math.h>

#include "fixture.h"
#include "lib/backend.h"
#include "lib/single.h"
#include "lib/steps.h"
#include "problem.h"
#include "runner.h"
#include "zoo.h"

static const int64_t lengths[] = { 1, 7, 64, 65, 1000, 5003 };
static const int widths[] = { 1, 2, 3, 5, 8, 15, 16, 17, 30, 32 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Small integers, as a block of dtype; x (ld k) has them as well. */
static sps_block *integers(sps_context *ctx, sps_dtype dtype, int64_t n, int k,
                           uint64_t seed, double **x_p)
{
    double *x = zoo_block(n, k, k, seed, ZOO_SMALL);
    sps_block *X = NULL, *D = fixture_block(ctx, n, k, x, k);

    OK(ctx, spsi_reserve(ctx, n, 32));
    OK(ctx, spsi_block_create(ctx, n, k > 1 ? k : 2, dtype, &X));
    spsi_block_narrow(X, k);
    OK(ctx, spsi_copy(D, X));
    sps_block_destroy(&D);
    *x_p = x;
    return X;
}

static void equals(const sps_block *X, const double *x, const char *what)
{
    double *y = malloc((size_t)(X->n * X->k) * sizeof *y);
    sps_block *D = fixture_block(X->ctx, X->n, X->k, NULL, 0);

    OK(X->ctx, spsi_copy(X, D));
    OK(X->ctx, sps_block_get(D, 0, X->k, y, X->k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t t = 0; t < X->n * X->k; t++)
        ck_assert_msg(y[t] == x[t], "%s: n %ld, k %d, row %ld column %d: %g, "
                      "not %g", what, (long)X->n, X->k, (long)(t / X->k),
                      (int)(t % X->k), y[t], x[t]);
    sps_block_destroy(&D);
    free(y);
}

static void try_sums(sps_context *ctx, int64_t n, int k, sps_dtype one,
                     sps_dtype other)
{
    double *x, *y;
    sps_block *X = integers(ctx, one, n, k, 3, &x);
    sps_block *Y = integers(ctx, other, n, k, 4, &y);

    OK(ctx, spsi_axpby(2.0, X, -3.0, Y));
    for (int64_t t = 0; t < n * k; t++) y[t] = 2 * x[t] - 3 * y[t];
    equals(Y, y, "axpby");
    OK(ctx, spsi_copy(X, Y));
    equals(Y, x, "copy");
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    free(y);
}

START_TEST(sums_of_floats_and_doubles_are_exact)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 0; w < WIDTHS; w++) {
            try_sums(ctx, lengths[t], widths[w], SPS_F32, SPS_F64);
            try_sums(ctx, lengths[t], widths[w], SPS_F64, SPS_F32);
            try_sums(ctx, lengths[t], widths[w], SPS_F32, SPS_F32);
        }
    fixture_close(&ctx);
}
END_TEST

/* C = X'Y exactly. */
static void is_gram(const sps_small *C, int64_t n, const double *x, int kx,
                    const double *y, int ky, const char *what)
{
    for (int a = 0; a < kx; a++)
        for (int b = 0; b < ky; b++) {
            double sum = 0;

            for (int64_t i = 0; i < n; i++) sum += x[i * kx + a] *
                                                   y[i * ky + b];
            ck_assert_msg(*spsi_small_at(C, a, b) == sum, "%s: n %ld, %d x %d "
                          "at (%d, %d): %g, not %g", what, (long)n, kx, ky, a,
                          b, *spsi_small_at(C, a, b), sum);
        }
}

/* y = alpha x c + beta y, c column by column. */
static void times_small(int64_t n, double alpha, const double *x, int kx,
                        const sps_small *C, double beta, double *y, int ky)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < ky; j++) {
            double sum = 0;

            for (int l = 0; l < kx; l++)
                sum += x[i * kx + l] * *spsi_small_at(C, l, j);
            y[i * ky + j] = alpha * sum + (beta != 0 ? beta * y[i * ky + j]
                                                     : 0);
        }
}

static void fill_small(sps_small *C, int rows, int cols, int seed)
{
    spsi_small_shape(C, rows, cols);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            *spsi_small_at(C, i, j) = (i * 3 + j * 5 + seed) % 5 - 2;
}

static void try_products(sps_context *ctx, int64_t n, int kx, int ky)
{
    double *x, *y;
    sps_block *X = integers(ctx, SPS_F32, n, kx, 5, &x), half;
    sps_block *Y = integers(ctx, SPS_F32, n, ky, 6, &y);
    sps_small *C = NULL;

    OK(ctx, spsi_small_create(ctx, 32, 32, &C));
    OK(ctx, spsi_gram(X, Y, C));
    is_gram(C, n, x, kx, y, ky, "gram");
    fill_small(C, kx, ky, 1);
    OK(ctx, spsi_mul_small(2.0, X, C, 1.0, Y));
    times_small(n, 2, x, kx, C, 1, y, ky);
    equals(Y, y, "mul_small");
    if (ky <= kx) {
        spsi_block_view(X, 0, ky, &half);
        OK(ctx, spsi_mul_small(1.0, X, C, 0.0, &half));
        times_small(n, 1, x, kx, C, 0, y, ky);
        equals(&half, y, "mul_small in place");
    }
    spsi_small_destroy(&C);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    free(y);
}

START_TEST(gram_and_small_products_of_floats_are_exact)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 0; w < WIDTHS; w++) {
            try_products(ctx, lengths[t], widths[w], widths[w]);
            try_products(ctx, lengths[t], widths[w], widths[WIDTHS - 1 - w]);
        }
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------------- passes */

static void send(sps_steps *w, double *to, const sps_small *C)
{
    OK(w->ctx, w->ctx->backend->upload(w->ctx, to, C->v,
                                       (size_t)(C->rows * C->cols) *
                                       sizeof(double)));
}

static void fetch(sps_steps *w, const double *from, int rows, int cols,
                  sps_small *C)
{
    spsi_small_shape(C, rows, cols);
    OK(w->ctx, w->ctx->backend->download(w->ctx, C->v, from,
                                         (size_t)(rows * cols) *
                                         sizeof(double)));
}

/* One step with P of r columns, a and b made up: R -= Q a, W = Q'R, then X +=
 * P a, P = R + P b, S = P'P and C = P'R, on integers. */
static void try_passes(sps_context *ctx, sps_dtype type, int64_t n, int r,
                       int k)
{
    double *p, *q, *x, *res, *now = malloc((size_t)(n * k) * sizeof *now);
    sps_block *P = integers(ctx, type, n, r > k ? r : k, 7, &p);
    sps_block *Q = integers(ctx, type, n, r, 8, &q);
    sps_block *X = integers(ctx, type, n, k, 9, &x);
    sps_block *R = integers(ctx, type, n, k, 10, &res);
    sps_small *a = NULL, *b = NULL, *C = NULL;
    sps_steps *w = NULL;

    free(p);
    spsi_block_narrow(P, r);
    p = zoo_block(n, r, r, 7, ZOO_SMALL);
    {
        sps_block *D = fixture_block(ctx, n, r, p, r);
        OK(ctx, spsi_copy(D, P));
        sps_block_destroy(&D);
    }
    OK(ctx, spsi_small_create(ctx, 32, 32, &a));
    OK(ctx, spsi_small_create(ctx, 32, 32, &b));
    OK(ctx, spsi_small_create(ctx, 32, 32, &C));
    OK(ctx, spsi_steps_create(ctx, 32, false, &w));
    w->r = r;
    w->k = k;
    w->D = NULL;
    w->C = w->S + (size_t)k * (size_t)k;
    fill_small(a, r, k, 0);
    fill_small(b, r, k, 3);
    send(w, w->a, a);
    spsi_small_shape(C, r, r);
    spsi_small_clear(C);
    send(w, w->F, C);
    OK(ctx, ctx->backend->steps_residual(w, Q, R));
    times_small(n, -1, q, r, a, 1, res, k);
    equals(R, res, "residual");
    fetch(w, w->W, r, k, C);
    is_gram(C, n, q, r, res, k, "W");
    send(w, w->b, b);
    OK(ctx, ctx->backend->steps_directions(w, P, X, R));
    spsi_block_narrow(P, k);
    times_small(n, 1, p, r, a, 1, x, k);
    equals(X, x, "X");
    memcpy(now, res, (size_t)(n * k) * sizeof *now);
    times_small(n, 1, p, r, b, 1, now, k);
    equals(P, now, "P");
    fetch(w, w->S, k, k, C);
    is_gram(C, n, now, k, now, k, "S");
    fetch(w, w->C, k, k, C);
    is_gram(C, n, now, k, res, k, "C");
    spsi_steps_destroy(&w);
    spsi_small_destroy(&a);
    spsi_small_destroy(&b);
    spsi_small_destroy(&C);
    sps_block_destroy(&P);
    sps_block_destroy(&Q);
    sps_block_destroy(&X);
    sps_block_destroy(&R);
    free(p);
    free(q);
    free(x);
    free(res);
    free(now);
}

START_TEST(passes_of_a_step_are_exact_also_where_columns_have_left)
{
    static const int shape[][2] = { { 2, 2 }, { 3, 5 }, { 16, 16 }, { 20, 10 },
                                    { 5, 20 }, { 32, 14 }, { 32, 32 },
                                    { 8, 1 }, { 1, 9 } };
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
            try_passes(ctx, SPS_F64, lengths[t], shape[i][0], shape[i][1]);
            try_passes(ctx, SPS_F32, lengths[t], shape[i][0], shape[i][1]);
        }
    fixture_close(&ctx);
}
END_TEST

/* --------------------------------------------------------------- refinement */

static void open_grid(problem *p, sps_context *ctx, int64_t n, double shift,
                      int k)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), n, 5, ZOO_LAPLACIAN, SPS_F64);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] += shift * (double)(1 + i % 7);
    problem_open(p, ctx, A, k);
    p->opt.solver = "refinement";
    p->opt.precond = "jacobi";
}

static void solve(problem *p, sps_stop stop, const char *solver)
{
    ck_assert_msg(problem_solve(p) == SPS_OK, "%s",
                  sps_context_error(p->ctx));
    ck_assert_msg(p->result.stop == stop, "%s after %d iterations, worst %g",
                  sps_stop_string(p->result.stop), p->result.iterations,
                  problem_worst(p));
    ck_assert_str_eq(p->result.solver, solver);
    ck_assert(problem_honest(p));
}

START_TEST(refinement_reaches_the_accuracy_of_doubles)
{
    static const int width[] = { 1, 2, 7, 16, 32 };
    sps_context *ctx = runner_context();
    problem p;

    for (int t = 0; t < 5; t++) {
        open_grid(&p, ctx, 2500, 0.01, width[t]);
        p.opt.rtol = 1e-13;
        solve(&p, SPS_STOP_CONVERGED, "refinement");
        problem_close(&p);
    }
    fixture_close(&ctx);
}
END_TEST

START_TEST(refinement_takes_few_iterations_more_than_doubles)
{
    sps_context *ctx = runner_context();
    problem p, q;

    open_grid(&p, ctx, 10000, 1e-3, 8);
    open_grid(&q, ctx, 10000, 1e-3, 8);
    q.opt.solver = "block_cg";
    solve(&p, SPS_STOP_CONVERGED, "refinement");
    solve(&q, SPS_STOP_CONVERGED, "block_cg");
    ck_assert_msg(2 * p.result.iterations <= 3 * q.result.iterations,
                  "%d, doubles %d", p.result.iterations, q.result.iterations);
    problem_close(&p);
    problem_close(&q);
    fixture_close(&ctx);
}
END_TEST

/* Blocks [1 c; c 1] whose c = 1 - 1e-8 is 1 in floats, so that their matrix is
 * singular there: a condition of 2e8, but only two eigenvalues. */
static sps_csr *pairs(sps_context *ctx, int64_t n)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, n, n, 2 * n, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        A->rowptr[i + 1] = 2 * (i + 1);
        for (int j = 0; j < 2; j++) {
            A->col[2 * i + j] = (int32_t)(i / 2 * 2 + j);
            ((double *)A->val)[2 * i + j] = i % 2 == j ? 1 : 1 - 1e-8;
        }
    }
    return A;
}

START_TEST(where_floats_gain_nothing_doubles_go_on)
{
    sps_context *ctx = runner_context();
    sps_csr *A = pairs(ctx, 1000), *B = zoo_copy(A);
    problem p;

    sps_csr_destroy(ctx, &A);
    problem_open(&p, ctx, B, 4);
    p.opt.solver = "refinement";
    p.opt.precond = "jacobi";
    p.opt.rtol = 1e-6;
    solve(&p, SPS_STOP_CONVERGED, "block_cg");
    ck_assert(fixture_noted(ctx, "refinement ended"));
    problem_close(&p);
    fixture_close(&ctx);
}
END_TEST

START_TEST(what_does_not_serve_in_floats_is_said_and_solved_in_doubles)
{
    sps_context *ctx = runner_context();
    problem p;

    open_grid(&p, ctx, 900, 0.01, 4);
    p.opt.precond = "ic0";
    solve(&p, SPS_STOP_CONVERGED, "block_cg");
    ck_assert(fixture_noted(ctx, "the preconditioner is not a diagonal"));
    problem_close(&p);
    open_grid(&p, ctx, 900, 0, 4);
    for (int64_t q = 0; q < p.A->nnz; q++) ((double *)p.A->val)[q] *= 1e200;
    p.opt.nullspace = "none";
    p.opt.precond = "jacobi";
    ck_assert(problem_solve(&p) == SPS_OK);
    ck_assert_str_eq(p.result.solver, "block_cg");
    ck_assert(fixture_noted(ctx, "outside of 1e-30 to 1e30"));
    problem_close(&p);
    fixture_close(&ctx);
}
END_TEST

START_TEST(how_far_refinement_runs_ahead_changes_no_bit)
{
    sps_context *ctx = runner_context();
    problem p, q;

    open_grid(&p, ctx, 2500, 0.01, 6);
    open_grid(&q, ctx, 2500, 0.01, 6);
    q.opt.check_every = 1;
    q.opt.replay = false;
    solve(&p, SPS_STOP_CONVERGED, "refinement");
    solve(&q, SPS_STOP_CONVERGED, "refinement");
    ck_assert_int_eq(p.result.iterations, q.result.iterations);
    ck_assert(memcmp(p.x, q.x, 2500 * 6 * sizeof(double)) == 0);
    problem_close(&p);
    problem_close(&q);
    fixture_close(&ctx);
}
END_TEST

/* -------------------------------------------------- what else is in floats */

START_TEST(a_basis_in_floats_reaches_the_accuracy_of_doubles)
{
    sps_context *ctx = runner_context();
    problem p, q;

    for (int flexible = 0; flexible < 2; flexible++) {
        open_grid(&p, ctx, 2500, 0.01, 5);
        open_grid(&q, ctx, 2500, 0.01, 5);
        p.opt.solver = q.opt.solver = "gmres";
        p.opt.precond = q.opt.precond = "ilu0";
        p.opt.rtol = q.opt.rtol = 1e-12;
        p.opt.flexible = q.opt.flexible = flexible;
        p.opt.basis = "single";
        q.opt.basis = "double";
        solve(&p, SPS_STOP_CONVERGED, "gmres");
        solve(&q, SPS_STOP_CONVERGED, "gmres");
        ck_assert_msg(2 * p.result.iterations <= 3 * q.result.iterations,
                      "%d, doubles %d", p.result.iterations,
                      q.result.iterations);
        problem_close(&p);
        problem_close(&q);
    }
    fixture_close(&ctx);
}
END_TEST

/* z = M r for the preconditioner of p->opt, in that precision. */
static void precondition(problem *p, const char *precision, sps_block *R,
                         double *z)
{
    sps_precond *M = NULL;
    sps_block *Z = fixture_block(p->ctx, p->A->nrow, 3, NULL, 0);

    p->opt.precond_precision = precision;
    OK(p->ctx, sps_precond_create(p->op, 3, &p->opt, &M));
    OK(p->ctx, sps_precond_update(M));
    OK(p->ctx, sps_precond_apply(M, R, Z));
    OK(p->ctx, sps_block_get(Z, 0, 3, z, 3, SPS_ROW_MAJOR, SPS_HOST));
    sps_precond_destroy(&M);
    sps_block_destroy(&Z);
}

START_TEST(preconditioners_in_floats_are_those_of_doubles_rounded)
{
    static const char *const name[] = { "fsai", "isai", "block_jacobi" };
    sps_context *ctx = runner_context();
    static double a[900 * 3], b[900 * 3];

    for (int t = 0; t < 3; t++) {
        problem p;
        sps_block *R;
        double worst = 0, largest = 0;

        open_grid(&p, ctx, 900, 0.1, 3);
        p.opt.precond = name[t];
        p.opt.block_size = 4;
        OK(ctx, sps_operator_csr(ctx, p.A, 3, NULL, &p.op));
        R = fixture_block(ctx, 900, 3, p.b, 3);
        precondition(&p, "double", R, a);
        precondition(&p, "single", R, b);
        for (int i = 0; i < 900 * 3; i++) {
            worst = fmax(worst, fabs(a[i] - b[i]));
            largest = fmax(largest, fabs(a[i]));
        }
        ck_assert_msg(worst > 0 && worst < 1e-6 * largest, "%s: %g of %g",
                      name[t], worst, largest);
        sps_block_destroy(&R);
        problem_close(&p);
    }
    fixture_close(&ctx);
}
END_TEST

START_TEST(precision_mixed_takes_refinement_for_block_cg_and_cg)
{
    sps_context *ctx = runner_context();

    for (int k = 1; k <= 4; k += 3) {
        problem p;

        open_grid(&p, ctx, 2500, 0.01, k);
        p.opt.solver = k == 1 ? "cg" : "block_cg";
        p.opt.precision = "mixed";
        solve(&p, SPS_STOP_CONVERGED, "refinement");
        problem_close(&p);
    }
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(sums_of_floats_and_doubles_are_exact),
    RUNNER_TEST(gram_and_small_products_of_floats_are_exact),
    RUNNER_TEST(passes_of_a_step_are_exact_also_where_columns_have_left),
    RUNNER_TEST(refinement_reaches_the_accuracy_of_doubles),
    RUNNER_TEST(refinement_takes_few_iterations_more_than_doubles),
    RUNNER_TEST(where_floats_gain_nothing_doubles_go_on),
    RUNNER_TEST(what_does_not_serve_in_floats_is_said_and_solved_in_doubles),
    RUNNER_TEST(how_far_refinement_runs_ahead_changes_no_bit),
    RUNNER_TEST(a_basis_in_floats_reaches_the_accuracy_of_doubles),
    RUNNER_TEST(preconditioners_in_floats_are_those_of_doubles_rounded),
    RUNNER_TEST(precision_mixed_takes_refinement_for_block_cg_and_cg),
};

RUNNER_MAIN("single", tests)
