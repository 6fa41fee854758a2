/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_truth.c - converged means converged: stop reasons are compared with
 * true residuals of the returned X, in at least 113 bits, where doubles cannot
 * decide; right-hand sides near the limits of the range of doubles, and
 * inconsistent ones. */
#include "tests/support/methods.h"

#include "tests/support/callback.h"
#include "tests/support/fixture.h"
#include "tests/support/wide.h"

/* --- systems */

/* A dense matrix by rows, without its zeros. */
static sps_csr *small_matrix(int n, const double *a)
{
    sps_csr *D = NULL, *A;
    double *val;

    OK(ctx, sps_csr_create(ctx, n, n, (int64_t)n * n, SPS_F64, &D));
    val = D->val;
    for (int i = 0; i < n; i++) {
        int64_t q = D->rowptr[i];

        for (int j = 0; j < n; j++)
            if (a[i * n + j] != 0) {
                D->col[q] = j;
                val[q++] = a[i * n + j];
            }
        D->rowptr[i + 1] = q;
    }
    D->nnz = D->rowptr[n];
    A = zoo_copy(D);
    sps_csr_destroy(ctx, &D);
    return A;
}

static double *random_numbers(int64_t count, uint64_t seed)
{
    return zoo_block(count, 1, 1, seed, ZOO_RANDOM);
}

/* A = A - 2 v v'A / v'v, by rows or (turn) columns, v from seed. */
static void reflect(int n, double *a, bool turn, uint64_t seed)
{
    double *v = random_numbers(n, seed), vv = 0;

    for (int i = 0; i < n; i++) vv += v[i] * v[i];
    for (int c = 0; c < n; c++) {
        double sum = 0;

        for (int i = 0; i < n; i++) sum += v[i] * a[turn ? c * n + i : i * n + c];
        for (int i = 0; i < n; i++)
            a[turn ? c * n + i : i * n + c] -= 2 * sum / vv * v[i];
    }
    free(v);
}

/* A dense matrix of the given condition number: a geometric spectrum between
 * two products of reflections, the same on both sides where it is to be SPD. */
static sps_csr *conditioned(int n, double condition, bool spd, uint64_t seed)
{
    double *a = calloc((size_t)(n * n), sizeof *a);
    sps_csr *A;

    for (int i = 0; i < n; i++)
        a[i * n + i] = pow(condition, n > 1 ? -(double)i / (n - 1) : 0);
    for (int r = 0; r < 3; r++) {
        reflect(n, a, false, seed + (uint64_t)r);
        reflect(n, a, true, seed + (uint64_t)r + (spd ? 0 : 100));
    }
    for (int i = 0; spd && i < n; i++)
        for (int j = 0; j < i; j++) a[i * n + j] = a[j * n + i];
    A = small_matrix(n, a);
    free(a);
    return A;
}

static void open_system(problem *p, sps_csr *A, int k)
{
    problem_open(p, ctx, A, k);
    p->opt.rtol = 1e-8;
}

/* --- false claims of convergence, counted */

typedef struct tally {
    int claimed, wrong, within, refused;
    double worst;
} tally;

static void take(tally *t, const problem *p, const sps_stop *column)
{
    for (int j = 0; j < p->k; j++) {
        const double r = wide_residual(p->A, p->b, p->x, p->k, j);

        if (column[j] > 0) {
            t->claimed++;
            t->wrong += r > p->opt.rtol;
            t->worst = fmax(t->worst, r);
        }
        if (r <= 0.5 * p->opt.rtol) {
            t->within++;
            t->refused += column[j] < 0;
        }
    }
}

/* Solves p and copies the stop reasons of the columns. */
static void solve_columns(problem *p, sps_stop *column)
{
    sps_block *B = NULL, *X = NULL;
    sps_solver *s = NULL;
    const int64_t n = p->A->nrow;

    p->result.struct_size = sizeof p->result;
    if (!p->op)
        OK(ctx, sps_operator_csr(ctx, p->A, p->k, &p->opt, &p->op));
    OK(ctx, sps_block_create(ctx, n, p->k, &B));
    OK(ctx, sps_block_create(ctx, n, p->k, &X));
    OK(ctx, sps_block_set(B, 0, p->k, p->b, p->k, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, sps_block_set(X, 0, p->k, p->x, p->k, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, sps_solver_create(p->op, p->M, p->k, &p->opt, &s));
    OK(ctx, sps_solver_linear(s, B, X, &p->result));
    OK(ctx, sps_block_get(X, 0, p->k, p->x, p->k, SPS_ROW_MAJOR, SPS_HOST));
    for (int j = 0; j < p->k; j++) {
        column[j] = p->result.column[j];
        p->residual[j] = p->result.residual[j];
    }
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
}

START_TEST(no_column_of_an_ill_conditioned_system_is_called_converged_wrongly)
{
    static const char *const solvers[] = { "auto", "gmres", "block_gmres",
                                           "bicgstab", "cg", "block_cg",
                                           "minres", "refinement", "idr" };
    const int draws = runner_quick() || runner_place() == SPS_CUDA ? 2 : 8;
    tally t = {0};
    sps_stop column[8];

    for (int s = 0; s < 9; s++)
        for (int e = 8; e <= 11; e++)
            for (int d = 0; d < draws; d++) {
                const bool spd = wants_symmetry(solvers[s]);
                problem p;

                open_system(&p, conditioned(3 + (7 * d + e) % 38,
                                                  pow(10, e), spd,
                                                  (uint64_t)(100 * e + d)), 4);
                p.opt.solver = solvers[s];
                p.opt.max_iterations = 400;
                solve_columns(&p, column);
                take(&t, &p, column);
                for (int j = 0; j < 4; j++) {
                    const double r = wide_residual(p.A, p.b, p.x, 4, j);

                    ck_assert_msg(fabs(p.residual[j] - r) <= 1e-9 * r,
                                  "%s: residual %g, in truth %g", solvers[s],
                                  p.residual[j], r);
                }
                problem_close(&p);
            }
    ck_assert_msg(t.wrong == 0, "%d of %d columns called converged are not, "
                  "worst %g", t.wrong, t.claimed, t.worst);
    ck_assert_int_gt(t.claimed, 10 * draws);
    ck_assert_msg(100 * t.refused <= t.within, "%d of %d refused", t.refused,
                  t.within);
}
END_TEST

/* A matrix from an application whose residual cannot be reduced below 1e-8
 * because of rounding. */
START_TEST(isooctane_is_judged_by_its_own_residual)
{
    const char *given = getenv("SPS_MATRICES"), *source = getenv("srcdir");
    char path[600];
    sps_csr *A = NULL;
    sps_stop column[2];
    problem p;

    snprintf(path, sizeof path, "%s%s/isooctane_0.mtx.gz",
             given ? given : source ? source : ".",
             given ? "" : "/../shared/matrices");
    if (access(path, R_OK) != 0) {
        runner_skip("no isooctane_0.mtx.gz");
    }
    OK(ctx, sps_csr_read(ctx, path, NULL, NULL, &A));
    open_system(&p, zoo_copy(A), 2);
    sps_csr_destroy(ctx, &A);
    solve_columns(&p, column);
    for (int j = 0; j < 2; j++) {
        const double r = wide_residual(p.A, p.b, p.x, 2, j);

        ck_assert_msg(column[j] < 0 || r <= p.opt.rtol, "called converged at "
                      "%g", r);
        ck_assert_msg(fabs(p.residual[j] - r) <= 1e-9 * r, "residual %g, in "
                      "truth %g", p.residual[j], r);
    }
    problem_close(&p);
}
END_TEST

/* --- Inf in a solve with a null space */

START_TEST(what_is_not_finite_beside_a_null_space_is_told)
{
    const double a[] = { 1, -1, 0, -1, 1, 0, 0, 0, 1 };
    const double b[] = { 1, 2, 1e308, -1, -2, -1e308, INFINITY, 3, 1.5e308 };
    sps_stop column[3];
    problem p;

    open_system(&p, small_matrix(3, a), 3);
    memcpy(p.b, b, sizeof b);
    solve_columns(&p, column);
    ck_assert_int_eq(column[0], SPS_STOP_NOT_FINITE);
    ck_assert_int_eq(p.result.stop, SPS_STOP_NOT_FINITE);
    ck_assert_int_eq(p.result.nullspace, 1);
    ck_assert(p.result.removed >= 0 && p.result.removed < 1e-15);
    for (int j = 1; j < 3; j++) {
        ck_assert_int_eq(column[j], SPS_STOP_CONVERGED);
        ck_assert(p.residual[j] <= 1e-8);
        ck_assert(wide_residual(p.A, p.b, p.x, 3, j) <= 1e-8);
        ck_assert(p.x[6 + j] != 0);
    }
    problem_close(&p);
}
END_TEST

/* --- inconsistent systems */

static void inconsistent(const char *nullspace, double last, sps_stop stop,
                         double residual)
{
    const double a[] = { 1, -1, 0, -1, 2, -1, 0, -1, 1 };
    sps_stop column[1];
    problem p;

    open_system(&p, small_matrix(3, a), 1);
    p.b[0] = 1, p.b[1] = 1, p.b[2] = last;
    p.opt.nullspace = nullspace;
    solve_columns(&p, column);
    ck_assert_msg(p.result.stop == stop, "%s, %.9g: %s, residual %g, %g",
                  nullspace, last, sps_stop_string(p.result.stop),
                  p.residual[0], p.result.worst_in_range);
    ck_assert_int_eq(column[0], stop);
    ck_assert_int_eq(p.result.columns_converged, stop > 0);
    ck_assert(fabs(p.residual[0] - residual) <= 1e-7);
    ck_assert(fabs(p.residual[0] - wide_residual(p.A, p.b, p.x, 1, 0)) <=
              1e-14);
    ck_assert(p.result.worst_in_range <= 1e-8);
    problem_close(&p);
}

/* The Laplacian of a path of three vertices; b is consistent if its mean is
 * zero. */
START_TEST(an_inconsistent_system_converges_only_where_that_was_asked_for)
{
    const double share = 3.1 / sqrt(3) / sqrt(3.21);

    inconsistent("auto", 1.1, SPS_STOP_LEAST_SQUARES, share);
    inconsistent("constant", 1.1, SPS_STOP_CONVERGED_LEAST_SQUARES, share);
    inconsistent("components", 1.1, SPS_STOP_CONVERGED_LEAST_SQUARES, share);
    inconsistent("auto", -2, SPS_STOP_CONVERGED, 0);
    inconsistent("constant", -2, SPS_STOP_CONVERGED, 0);
    /* A null space component of b near the tolerance, first below and then
     * above it, counts in the residual. */
    inconsistent("auto", -2 + 2e-8, SPS_STOP_CONVERGED, 0);
    inconsistent("auto", -2 + 6e-8, SPS_STOP_LEAST_SQUARES, 0);
}
END_TEST

/* A null space that was not specified: minres gives the same least squares
 * solution. */
START_TEST(minres_solves_in_the_sense_of_least_squares)
{
    sps_stop column[3];
    problem p;

    open_system(&p, zoo("grid5", 100, ZOO_LAPLACIAN), 3);
    p.opt.solver = "minres";
    p.opt.precond = "none";
    p.opt.nullspace = "none";
    solve_columns(&p, column);
    ck_assert_msg(p.result.stop == SPS_STOP_LEAST_SQUARES ||
                  p.result.stop == SPS_STOP_STAGNATED, "%s",
                  sps_stop_string(p.result.stop));
    ck_assert_int_eq(p.result.columns_converged, 0);
    problem_close(&p);
}
END_TEST

/* No null space is known and no x meets b: iterates grow along the null vector
 * until the rounding of A x exceeds b.  That does not make them as good as
 * doubles allow. */
START_TEST(growth_along_a_null_vector_is_no_limit_of_rounding)
{
    const double a[] = { 1, 1, 0, 0 }, b[] = { 1, 2 };
    const double graph[] = { 1, -1, 0, -1, 2, -1, 0, -1, 1 };
    sps_stop column[1];

    for (int g = 0; g < 2; g++) {
        problem p;

        open_system(&p, small_matrix(2 + g, g ? graph : a), 1);
        for (int i = 0; i < 2 + g; i++) p.b[i] = i < 2 ? b[i] : 1;
        p.opt.nullspace = "none";
        solve_columns(&p, column);
        ck_assert(p.residual[0] > 0.1);
        ck_assert_msg(p.result.stop != SPS_STOP_ROUNDING &&
                      p.result.stop < 0, "%s",
                      sps_stop_string(p.result.stop));
        problem_close(&p);
    }
}
END_TEST

/* One row makes ||A|| ||x|| so large that its rounding exceeds b; what is left
 * is far below b and limited by the rounding of x in the other rows. */
START_TEST(rounding_is_named_where_rows_differ_in_size)
{
    const double a[] = { 1e20, 0, 0, 0, 1, 1, 0, 1, 1 + 1e-10 };
    sps_stop column[1];
    problem p;

    open_system(&p, small_matrix(3, a), 1);
    p.b[0] = 1, p.b[1] = 1. / 3, p.b[2] = 1. / 7;
    p.opt.nullspace = "none";
    solve_columns(&p, column);
    ck_assert(p.residual[0] > 1e-8 && p.residual[0] < 1e-6);
    ck_assert_msg(column[0] == SPS_STOP_ROUNDING, "%s",
                  sps_stop_string(column[0]));
    problem_close(&p);
}
END_TEST

/* --- stop reasons that were once wrong */

/* The time limit expires during the iteration that reaches the tolerance. */
static bool sleep_late(const sps_progress *g, void *data)
{
    (void)data;
    if (g->iteration > 0) nanosleep(&(struct timespec){ 0, 200000000 }, NULL);
    return true;
}

/* The tolerance is slightly above the residual after one iteration. */
static void converges_late(const char *solver)
{
    sps_stop column[1];
    problem p;

    open_system(&p, zoo("grid5", 64, ZOO_SPD), 1);
    p.opt.solver = solver;
    p.opt.factors = "never";
    p.opt.max_iterations = 1;
    solve_columns(&p, column);
    ck_assert(p.residual[0] > 1e-3 && p.residual[0] < 0.7);
    p.opt.rtol = 1.15 * p.residual[0];
    p.opt.max_iterations = 100;
    p.opt.monitor = sleep_late;
    p.opt.max_seconds = 0.05;
    memset(p.x, 0, 64 * sizeof *p.x);
    solve_columns(&p, column);
    ck_assert_int_eq(p.result.iterations, 1);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    ck_assert_int_eq(column[0], SPS_STOP_CONVERGED);
    problem_close(&p);
}

START_TEST(a_solve_that_converged_met_no_limit)
{
    sps_stop column[2];

    for (int n = 4; n <= 256; n *= 4) {
        problem p;

        open_system(&p, zoo("grid5", n, ZOO_SPD), 2);
        p.opt.precond = "chebyshev";
        p.opt.rtol = 1;
        solve_columns(&p, column);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        problem_close(&p);
    }
    converges_late("cg");
    converges_late("auto");
}
END_TEST

START_TEST(minres_does_not_blame_a_matrix_for_its_preconditioner)
{
    const double a[] = { 0, -1, -1, 0 };
    sps_stop column[1];
    problem p;

    open_system(&p, small_matrix(2, a), 1);
    p.b[0] = 1, p.b[1] = 0;
    p.opt.solver = "minres";
    p.opt.precond = "ilut";
    solve_columns(&p, column);
    ck_assert_int_eq(p.result.stop, SPS_STOP_PRECOND_INDEFINITE);
    problem_close(&p);
}
END_TEST

/* --- the limits of the range of doubles */

/* One column per scaling, the last with a norm that overflows. */
START_TEST(right_hand_sides_at_the_ends_of_doubles)
{
    static const double unit[] = { 0x1p-1060, 0x1p-1000, 0x1p-700, 0x1p-500, 1,
                                   0x1p500, 0x1p950, 0x1p1022 };
    sps_stop column[8];
    problem p;

    open_system(&p, zoo("grid5", 64, ZOO_SPD), 8);
    for (int64_t q = 0; q < p.A->nnz; q++) ((double *)p.A->val)[q] *= 64;
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 8; j++) {
            double b = p.b[8 * i + j];

            p.b[8 * i + j] = unit[j] * (j < 7 ? b : b < 0 ? -1 : 1);
        }
    solve_columns(&p, column);
    for (int j = 0; j < 8; j++) {
        const double r = wide_residual(p.A, p.b, p.x, 8, j);

        ck_assert_msg(fabs(p.residual[j] - r) <= 1e-9 * r, "unit %a: residual "
                      "%g, in truth %g", unit[j], p.residual[j], r);
        ck_assert_msg((column[j] > 0) == (r <= 1e-8), "unit %a: %s at %g",
                      unit[j], sps_stop_string(column[j]), r);
        ck_assert(j == 0 || column[j] > 0);
    }
    ck_assert_int_eq(column[0], SPS_STOP_ROUNDING);
    problem_close(&p);
}
END_TEST

/* --- operators other than a csr in its own order */

static int times(double alpha, const double *X, int64_t ldx, double beta,
                 double *Y, int64_t ldy, int64_t n, int k, void *stream,
                 void *data)
{
    const sps_csr *A = data;
    const double *val = A->val;

    (void)stream;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;

            for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
                sum += val[q] * X[A->col[q] * ldx + j];
            Y[i * ldy + j] = alpha * sum +
                             (beta != 0 ? beta * Y[i * ldy + j] : 0);
        }
    return 0;
}

START_TEST(a_callback_is_judged_in_doubles_and_the_result_says_so)
{
    sps_stop column[3];
    problem p;
    callback c = { ctx, times, NULL };

    open_system(&p, zoo("grid5", 400, ZOO_SPD), 3);
    solve_columns(&p, column);
    ck_assert(!p.result.in_doubles);
    sps_operator_destroy(&p.op);
    c.data = p.A;
    OK(ctx, sps_operator_user(ctx, 400, callback_anywhere, &c, SPS_SYMMETRIC,
                              &p.op));
    memset(p.x, 0, 1200 * sizeof *p.x);
    solve_columns(&p, column);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    ck_assert(p.result.in_doubles);
    problem_close(&p);
}
END_TEST

START_TEST(another_order_of_the_unknowns_is_judged_the_same)
{
    sps_stop column[3];
    problem p;

    open_system(&p, conditioned(30, 1e10, false, 7), 3);
    p.opt.reorder = "rcm";
    solve_columns(&p, column);
    for (int j = 0; j < 3; j++) {
        const double r = wide_residual(p.A, p.b, p.x, 3, j);

        ck_assert(fabs(p.residual[j] - r) <= 1e-9 * r);
        ck_assert_msg((column[j] > 0) == (r <= 1e-8), "%s at %.17g",
                      sps_stop_string(column[j]), r);
    }
    problem_close(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(
        no_column_of_an_ill_conditioned_system_is_called_converged_wrongly),
    RUNNER_TEST(isooctane_is_judged_by_its_own_residual),
    RUNNER_TEST(what_is_not_finite_beside_a_null_space_is_told),
    RUNNER_TEST(an_inconsistent_system_converges_only_where_that_was_asked_for),
    RUNNER_TEST(minres_solves_in_the_sense_of_least_squares),
    RUNNER_TEST(rounding_is_named_where_rows_differ_in_size),
    RUNNER_TEST(growth_along_a_null_vector_is_no_limit_of_rounding),
    RUNNER_TEST(a_solve_that_converged_met_no_limit),
    RUNNER_TEST(minres_does_not_blame_a_matrix_for_its_preconditioner),
    RUNNER_TEST(right_hand_sides_at_the_ends_of_doubles),
    RUNNER_TEST(a_callback_is_judged_in_doubles_and_the_result_says_so),
    RUNNER_TEST(another_order_of_the_unknowns_is_judged_the_same),
};
METHODS_MAIN("conform_truth", tests)
