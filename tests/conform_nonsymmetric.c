/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_nonsymmetric.c - every listed method that asks nothing of the matrix,
 * on nonsymmetric, indefinite, skew and singular systems, and on those where
 * Krylov methods are known to break down. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"
#include "runner.h"
#include "zoo.h"

static sps_context *ctx;

static void open_context(void)
{
    ctx = runner_context();
}

static void close_context(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    ck_assert_int_eq(info.live_objects, 0);
    sps_context_destroy(&ctx);
}

static bool wants_symmetry(const char *name)
{
    static const char *const those[] = { "cg", "block_cg", "minres" };

    for (size_t i = 0; i < sizeof those / sizeof *those; i++)
        if (!strcmp(name, those[i])) return true;
    return false;
}

#define FOR_SOLVERS(name)                                                      \
    for (int i_ = 0; (name = sps_list(ctx, "solver", i_)); i_++)               \
        if (!wants_symmetry(name))

/* The same, and those that want symmetry but no definiteness. */
#define FOR_INDEFINITE(name)                                                   \
    for (int i_ = 0; (name = sps_list(ctx, "solver", i_)); i_++)               \
        if (strcmp(name, "cg") && strcmp(name, "block_cg"))

/* Keeps its whole Krylov space, so that it solves within n steps whatever the
 * matrix. */
static bool has_full_memory(const char *name)
{
    return !strcmp(name, "gmres") || !strcmp(name, "block_gmres") ||
           !strcmp(name, "block_gcrodr");
}

static sps_csr *zoo(const char *family, int64_t n, zoo_values values)
{
    int f = zoo_find(family);

    ck_assert_msg(f >= 0, "no family %s", family);
    return zoo_matrix(f, n, 5, values, SPS_F64);
}

/* a_ij = value(i, j) on the pattern of the family. */
static sps_csr *filled(const char *family, int64_t n,
                       double (*value)(int64_t i, int64_t j))
{
    sps_csr *A = zoo(family, n, ZOO_RANDOM);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            val[q] = value(i, A->col[q]);
    return A;
}

static void solve_ok(problem *p)
{
    sps_status st = problem_solve(p);

    ck_assert_msg(st == SPS_OK, "%s: %s", sps_status_string(st),
                  sps_context_error(p->ctx));
}

static void must_converge(problem *p, const char *what)
{
    solve_ok(p);
    ck_assert_msg(p->result.stop == SPS_STOP_CONVERGED,
                  "%s, %s, k = %d: %s, worst %g after %d iterations",
                  p->opt.solver, what, p->k, sps_stop_string(p->result.stop),
                  problem_worst(p), p->result.iterations);
    ck_assert_msg(problem_worst(p) <= p->opt.rtol * (1 + 1e-6),
                  "%s, %s, k = %d says converged at %g", p->opt.solver, what,
                  p->k, problem_worst(p));
}

static void must_be_honest(problem *p, const char *what)
{
    solve_ok(p);
    ck_assert_msg(problem_honest(p), "%s lies on %s: %d columns claimed, "
                  "worst %g", p->opt.solver, what, p->result.columns_converged,
                  problem_worst(p));
    ck_assert_msg(problem_worst(p) <= 1 + 1e-9,
                  "%s, %s: the best iterate is lost: %g", p->opt.solver, what,
                  problem_worst(p));
    for (int64_t i = 0; i < p->A->nrow * p->k; i++)
        ck_assert(isfinite(p->x[i]));
}

/* Rows dominated by their diagonal, some negative: no symmetry of values, and
 * eigenvalues on both sides. */
static sps_csr *dominant(const char *family, int64_t n, bool indefinite)
{
    sps_csr *A = zoo(family, n, ZOO_RANDOM);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = 0.1;

        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            sum += A->col[q] == i ? 0 : fabs(val[q]);
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] = indefinite && i % 5 == 0 ? -sum : sum;
    }
    return A;
}

START_TEST(nonsymmetric_systems_of_any_width_are_solved)
{
    static const char *family[] = { "tridiagonal", "band", "grid5", "grid7",
                                    "arrow", "block_dense" };
    static const int width[] = { 1, 2, 3, 7, 16, 33 };
    static const int64_t size[] = { 1, 2, 40, 700 };
    const char *name;

    FOR_SOLVERS(name)
    for (size_t f = 0; f < sizeof family / sizeof *family; f++)
        for (size_t n = 0; n < 4; n++)
            for (size_t w = 0; w < 6; w++) {
                problem p;

                if (size[n] == 700 && w % 2 == 0) continue;
                problem_open(&p, ctx, dominant(family[f], size[n], false),
                             width[w]);
                p.opt.solver = name;
                must_converge(&p, family[f]);
                problem_close(&p);
            }
}
END_TEST

/* -u'' + c u' and the like: 2 on the diagonal, -1 - c below, -1 + c above. */
static double convection(int64_t i, int64_t j)
{
    return i == j ? 4.02 : j == i - 1 ? -1.6 : j == i + 1 ? -0.4 : j < i ? -1.3
                                                                      : -0.7;
}

START_TEST(convection_is_solved_with_every_preconditioner)
{
    const char *name, *precond;

    FOR_SOLVERS(name)
    for (int i = 0; (precond = sps_list(ctx, "precond", i)); i++) {
        problem p;
        sps_status st;

        problem_open(&p, ctx, filled("grid5", 900, convection), 5);
        p.opt.solver = name;
        p.opt.precond = precond;
        st = problem_solve(&p);
        if (st == SPS_EUNFIT) { /* for symmetric matrices alone */
            problem_close(&p);
            continue;
        }
        ck_assert_int_eq(st, SPS_OK);
        must_be_honest(&p, precond);
        if (strcmp(precond, "chebyshev"))
            ck_assert_msg(p.result.stop == SPS_STOP_CONVERGED, "%s, %s: %s",
                          name, precond, sps_stop_string(p.result.stop));
        problem_close(&p);
    }
}
END_TEST

START_TEST(indefinite_systems_are_solved)
{
    const char *name;

    FOR_SOLVERS(name)
    for (int k = 1; k < 10; k += 4) {
        problem p;

        problem_open(&p, ctx, dominant("grid5", 400, true), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        must_converge(&p, "eigenvalues on both sides");
        problem_close(&p);
    }
}
END_TEST

static double symmetric_indefinite(int64_t i, int64_t j)
{
    return i != j ? -1 : i % 3 ? 5 : -3.5;
}

static double swapped(int64_t i, int64_t j)
{
    return i / 2 == j / 2 && i != j;
}

START_TEST(symmetric_indefinite_systems_are_solved)
{
    static const char *const precond[] = { "none", "jacobi" };
    static const int width[] = { 1, 6, 17 };
    const char *name;

    FOR_INDEFINITE(name)
    for (int t = 0; t < 6; t++) {
        problem p;

        problem_open(&p, ctx, filled("grid5", 900, symmetric_indefinite),
                     width[t % 3]);
        for (int i = 0; i < 900 && p.k > 5; i++) {   /* leave early */
            p.b[p.k * i] = p.b[p.k * i + 1] = 0;
            p.b[p.k * i + 2] = p.b[p.k * i + 3];
        }
        p.opt.solver = name;
        p.opt.precond = precond[t / 3];
        must_converge(&p, precond[t / 3]);
        problem_close(&p);
    }
}
END_TEST

/* Pairs [0 1; 1 0]: no curvature at all, and eigenvalues 1 and -1. */
START_TEST(matrices_without_curvature_are_solved)
{
    const char *name;

    FOR_INDEFINITE(name) {
        problem p;

        problem_open(&p, ctx, filled("tridiagonal", 64, swapped), 3);
        for (int i = 1; i < 64; i += 2)
            for (int j = 0; j < 3; j++) p.b[3 * i + j] = 0;
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 500;
        must_be_honest(&p, "swapped pairs");
        if (has_full_memory(name) || !strcmp(name, "minres")) {
            ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
            ck_assert_int_le(p.result.iterations, 3);
        }
        problem_close(&p);
    }
}
END_TEST

START_TEST(minres_refuses_a_nonsymmetric_matrix)
{
    problem p;

    problem_open(&p, ctx, filled("grid5", 100, convection), 2);
    p.opt.solver = "minres";
    ck_assert_int_eq(problem_solve(&p), SPS_EUNFIT);
    problem_close(&p);
}
END_TEST

/* Columns: 0..3 equal, 4 = sum of 5 and 6, 7 = 0, 8 = A times column 5. */
START_TEST(dependent_and_zero_right_hand_sides_are_solved_too)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        const double *val;

        problem_open(&p, ctx, filled("grid5", 900, convection), 12);
        val = p.A->val;
        for (int64_t i = 0; i < 900; i++) {
            double *b = p.b + 12 * i, sum = 0;

            b[1] = b[2] = b[3] = b[0];
            b[4] = b[5] + b[6];
            b[7] = 0;
            for (int64_t q = p.A->rowptr[i]; q < p.A->rowptr[i + 1]; q++)
                sum += val[q] * p.b[12 * (int64_t)p.A->col[q] + 5];
            b[8] = sum;
        }
        p.opt.solver = name;
        must_converge(&p, "dependent columns");
        for (int64_t i = 0; i < 900; i++) ck_assert(p.x[12 * i + 7] == 0);
        must_converge(&p, "exact guess");
        ck_assert_int_eq(p.result.iterations, 0);
        problem_close(&p);
    }
}
END_TEST

static double identity(int64_t i, int64_t j)
{
    return i == j;
}

static double three_values(int64_t i, int64_t j)
{
    return i == j ? (double)(i % 3) - 3.5 : 0;
}

/* The space is invariant after as many steps as A has eigenvalues. */
START_TEST(a_happy_breakdown_is_a_solution)
{
    const char *name;

    FOR_SOLVERS(name)
    for (int k = 1; k < 8; k += 3) {
        problem p;

        problem_open(&p, ctx, filled("diagonal", 300, identity), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        must_converge(&p, "A = I");
        ck_assert_int_le(p.result.iterations, 2);
        problem_close(&p);
        problem_open(&p, ctx, filled("diagonal", 300, three_values), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        must_converge(&p, "three eigenvalues");
        ck_assert_int_le(p.result.iterations, 8);
        problem_close(&p);
    }
}
END_TEST

/* Columns 0 and 1 are eigenvectors, column 2 is not. */
START_TEST(eigenvectors_leave_and_the_others_go_on)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;

        problem_open(&p, ctx, filled("grid5", 400, convection), 3);
        for (int i = 0; i < 400; i++)   /* diagonal rows 0 and 399 */
            for (int64_t q = p.A->rowptr[i]; q < p.A->rowptr[i + 1]; q++)
                if ((i == 0 || i == 399 || p.A->col[q] == 0 ||
                     p.A->col[q] == 399) && p.A->col[q] != i)
                    ((double *)p.A->val)[q] = 0;
        for (int i = 0; i < 400; i++) {
            p.b[3 * i] = i == 0;
            p.b[3 * i + 1] = i == 399;
        }
        p.opt.solver = name;
        p.opt.precond = "none";
        must_converge(&p, "eigenvectors");
        problem_close(&p);
    }
}
END_TEST

/* Row i has a one at column i + 1, cyclic: the residual of GMRES stands still
 * for n - 1 steps and vanishes at the n-th. */
static sps_csr *shift(int64_t n, bool cyclic)
{
    sps_csr *A = zoo("diagonal", n, ZOO_SPD);

    for (int64_t i = 0; i < n; i++) {
        A->col[i] = (int32_t)((i + 1) % n);
        ((double *)A->val)[i] = i + 1 < n || cyclic;
    }
    return A;
}

START_TEST(a_cyclic_shift_stands_still_until_the_end)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;

        problem_open(&p, ctx, shift(40, true), 1);
        for (int i = 0; i < 40; i++) p.b[i] = i == 0;
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "cyclic shift");
        if (has_full_memory(name)) {
            ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
            ck_assert_int_eq(p.result.iterations, 40);
            memset(p.x, 0, 40 * sizeof *p.x);
            p.opt.restart = 10;
            must_be_honest(&p, "cyclic shift, short cycles");
            ck_assert_int_eq(p.result.columns_converged, 0);
            ck_assert_int_eq(p.result.stop, SPS_STOP_STAGNATED);
        }
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_nilpotent_matrix_is_singular_and_said_to_be)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;

        problem_open(&p, ctx, shift(20, false), 2);
        for (int i = 0; i < 20; i++) {
            p.b[2 * i] = i == 19;
            p.b[2 * i + 1] = i == 3;
        }
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "nilpotent");
        ck_assert_int_lt(p.result.stop, 0);
        problem_close(&p);
    }
}
END_TEST

static double skew(int64_t i, int64_t j)
{
    return j == i ? 0 : j == i + 1 ? 1.5 : j == i - 1 ? -1.5 : 0;
}

/* r'A r = 0 for every r: where BiCG and its like divide by zero. */
START_TEST(a_skew_matrix_is_solved_or_admitted)
{
    const char *name;

    FOR_SOLVERS(name)
    for (int k = 1; k < 6; k += 4) {
        problem p;

        problem_open(&p, ctx, filled("tridiagonal", 40, skew), k);
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "skew");
        if (has_full_memory(name))
            ck_assert_msg(p.result.stop == SPS_STOP_CONVERGED, "%s: %s", name,
                          sps_stop_string(p.result.stop));
        problem_close(&p);
    }
}
END_TEST

/* The last row is zero, as are the right-hand sides there; and not zero. */
START_TEST(singular_systems_are_solved_where_consistent)
{
    const char *name;

    FOR_SOLVERS(name)
    for (int consistent = 0; consistent < 2; consistent++) {
        problem p;

        problem_open(&p, ctx, dominant("tridiagonal", 60, false), 3);
        for (int64_t q = 0; q < p.A->nnz; q++)
            if (p.A->col[q] == 59 || q >= p.A->rowptr[59])
                ((double *)p.A->val)[q] = 0;
        for (int j = 0; j < 3; j++) p.b[3 * 59 + j] = consistent ? 0 : 0.1;
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.max_iterations = 2000;
        must_be_honest(&p, "a zero row");
        if (consistent)
            ck_assert_msg(p.result.stop == SPS_STOP_CONVERGED, "%s: %s", name,
                          sps_stop_string(p.result.stop));
        else
            ck_assert_int_eq(p.result.columns_converged, 0);
        problem_close(&p);
    }
}
END_TEST

START_TEST(more_columns_than_rows_are_solved)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;

        problem_open(&p, ctx, dominant("band", 12, false), 40);
        p.opt.solver = name;
        must_converge(&p, "k > n");
        problem_close(&p);
    }
}
END_TEST

START_TEST(units_of_matrix_and_right_hand_sides_do_not_matter)
{
    static const int exponent[] = { 0, 40, -480, 500 };
    const char *name;

    FOR_SOLVERS(name) {
        int iterations = 0;

        for (int e = 0; e < 4; e++) {
            problem p;
            double *val;

            problem_open(&p, ctx, filled("grid5", 400, convection), 3);
            val = p.A->val;
            for (int64_t q = 0; q < p.A->nnz; q++)
                val[q] = ldexp(val[q], exponent[e] / 10);
            for (int i = 0; i < 1200; i++) p.b[i] = ldexp(p.b[i], exponent[e]);
            p.opt.solver = name;
            p.opt.precond = "none";
            must_converge(&p, "other units");
            if (e == 0) iterations = p.result.iterations;
            ck_assert_int_eq(p.result.iterations, iterations);
            problem_close(&p);
        }
    }
}
END_TEST

START_TEST(limits_end_inside_of_a_cycle_with_the_best_iterate)
{
    const char *name;

    FOR_SOLVERS(name)
    for (int most = 1; most < 60; most += 13) {
        problem p;

        problem_open(&p, ctx, filled("grid5", 2500, convection), 4);
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.rtol = 1e-14;
        p.opt.max_iterations = most;
        must_be_honest(&p, "limited");
        if (p.result.stop != SPS_STOP_CONVERGED || most == 1) {
            ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_ITERATIONS);
            ck_assert_int_eq(p.result.iterations, most);
        }
        if (has_full_memory(name)) ck_assert(problem_worst(&p) < 1);
        problem_close(&p);
    }
}
END_TEST

START_TEST(repeated_solves_have_the_same_bits)
{
    const char *name;

    FOR_SOLVERS(name) {
        double x[2][400 * 7];

        for (int run = 0; run < 2; run++) {
            problem p;

            problem_open(&p, ctx, filled("grid5", 400, convection), 7);
            p.opt.solver = name;
            must_converge(&p, "repeat");
            memcpy(x[run], p.x, sizeof x[run]);
            problem_close(&p);
        }
        ck_assert(!memcmp(x[0], x[1], sizeof x[0]));
    }
}
END_TEST

/* Short cycles end often, and columns leave at their ends. */
START_TEST(any_length_of_cycle_solves)
{
    static const int length[] = { 1, 2, 7, 30, 1000 };
    const char *name;

    FOR_SOLVERS(name)
    for (int t = 0; t < 5; t++)
        for (int flexible = 0; flexible < 2; flexible++) {
            problem p;

            problem_open(&p, ctx, filled("grid5", 400, convection), 6);
            for (int i = 0; i < 400; i++) p.b[6 * i + 3] = i % 20 == 4;
            p.opt.solver = name;
            p.opt.restart = length[t];
            p.opt.flexible = flexible;
            must_converge(&p, flexible ? "flexible" : "fixed");
            problem_close(&p);
        }
}
END_TEST

/* A preconditioner that is another one each time: rows scaled by 1 to 4, in a
 * pattern that moves. */
static int fickle(double alpha, const double *X, int64_t ldx, double beta,
                  double *Y, int64_t ldy, int64_t n, int k, void *stream,
                  void *data)
{
    int *calls = data;

    (void)stream, (void)beta;
    ++*calls;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++)
            Y[i * ldy + j] = alpha * X[i * ldx + j] *
                             (double)(1 + (i + *calls) % 4);
    return 0;
}

START_TEST(flexible_methods_bear_a_preconditioner_that_changes)
{
    static const char *const solver[] = { "gmres", "block_gmres" };

    if (runner_place() != SPS_HOST) return;
    for (int t = 0; t < 2; t++) {
        int iterations[2];

        for (int flexible = 0; flexible < 2; flexible++) {
            problem p;
            sps_precond *M = NULL;
            sps_solver *s = NULL;
            sps_block *B = NULL, *X = NULL;
            int calls = 0;

            problem_open(&p, ctx, filled("grid5", 900, convection), 3);
            p.opt.solver = solver[t];
            p.opt.flexible = flexible;
            p.opt.max_iterations = 400;
            p.result.struct_size = sizeof p.result;
            ck_assert_int_eq(sps_operator_csr(ctx, p.A, 3, NULL, &p.op),
                             SPS_OK);
            ck_assert_int_eq(sps_precond_user(ctx, 900, fickle, &calls, &M),
                             SPS_OK);
            ck_assert_int_eq(sps_solver_create(p.op, M, 3, &p.opt, &s),
                             SPS_OK);
            ck_assert_int_eq(sps_block_create(ctx, 900, 3, &B), SPS_OK);
            ck_assert_int_eq(sps_block_create(ctx, 900, 3, &X), SPS_OK);
            ck_assert_int_eq(sps_block_random(B, 3), SPS_OK);
            ck_assert_int_eq(sps_solver_linear(s, B, X, &p.result), SPS_OK);
            iterations[flexible] = p.result.stop == SPS_STOP_CONVERGED
                                       ? p.result.iterations : 400;
            sps_solver_destroy(&s);
            sps_precond_destroy(&M);
            sps_block_destroy(&B);
            sps_block_destroy(&X);
            problem_close(&p);
        }
        ck_assert_msg(iterations[1] < 0.7 * iterations[0],
                      "%s: %d iterations, %d when not flexible", solver[t],
                      iterations[1], iterations[0]);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(nonsymmetric_systems_of_any_width_are_solved),
    RUNNER_TEST(convection_is_solved_with_every_preconditioner),
    RUNNER_TEST(indefinite_systems_are_solved),
    RUNNER_TEST(symmetric_indefinite_systems_are_solved),
    RUNNER_TEST(matrices_without_curvature_are_solved),
    RUNNER_TEST(minres_refuses_a_nonsymmetric_matrix),
    RUNNER_TEST(dependent_and_zero_right_hand_sides_are_solved_too),
    RUNNER_TEST(a_happy_breakdown_is_a_solution),
    RUNNER_TEST(eigenvectors_leave_and_the_others_go_on),
    RUNNER_TEST(a_cyclic_shift_stands_still_until_the_end),
    RUNNER_TEST(a_nilpotent_matrix_is_singular_and_said_to_be),
    RUNNER_TEST(a_skew_matrix_is_solved_or_admitted),
    RUNNER_TEST(singular_systems_are_solved_where_consistent),
    RUNNER_TEST(more_columns_than_rows_are_solved),
    RUNNER_TEST(units_of_matrix_and_right_hand_sides_do_not_matter),
    RUNNER_TEST(limits_end_inside_of_a_cycle_with_the_best_iterate),
    RUNNER_TEST(repeated_solves_have_the_same_bits),
    RUNNER_TEST(any_length_of_cycle_solves),
    RUNNER_TEST(flexible_methods_bear_a_preconditioner_that_changes),
};

int main(void)
{
    Suite *suite = suite_create("conform_nonsymmetric");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(all, open_context, close_context);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(all, *tests[i].test);
    suite_add_tcase(suite, all);
    return runner_run(suite);
}
