/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_solvers.c - every listed solver on the problems it says it can do,
 * and on those it must refuse or name. */
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

#define FOR_SOLVERS(name)                                                      \
    for (int i_ = 0; (name = sps_list(ctx, "solver", i_)); i_++)

/* Methods that are built on A being positive definite. */
static bool wants_spd(const char *name)
{
    return !strcmp(name, "cg") || !strcmp(name, "block_cg");
}
#define FOR_SPD_SOLVERS(name) FOR_SOLVERS(name) if (wants_spd(name))

static sps_csr *zoo(const char *family, int64_t n, zoo_values values)
{
    int f = zoo_find(family);

    ck_assert_msg(f >= 0, "no family %s", family);
    return zoo_matrix(f, n, 5, values, SPS_F64);
}

/* diag(d_0, d_1, ...), n x n. */
static sps_csr *diagonal(int64_t n, double (*value)(int64_t))
{
    sps_csr *A = zoo("diagonal", n, ZOO_SPD);
    double *val = A->val;

    for (int64_t i = 0; i < n; i++) val[i] = value(i);
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
    ck_assert_int_eq(p->result.columns_converged, p->k);
    ck_assert_msg(problem_worst(p) <= p->opt.rtol * (1 + 1e-6),
                  "%s, %s, k = %d says converged at %g", p->opt.solver, what,
                  p->k, problem_worst(p));
}

START_TEST(every_solver_solves_spd_systems_of_any_width)
{
    static const char *family[] = { "diagonal", "tridiagonal", "band",
                                    "grid5", "grid7", "grid27_dof3", "arrow",
                                    "block_dense", "ring" };
    static const int width[] = { 1, 2, 3, 7, 16, 33 };
    static const int64_t size[] = { 1, 2, 40, 700 };
    const char *name;

    FOR_SOLVERS(name)
    for (size_t f = 0; f < sizeof family / sizeof *family; f++)
        for (size_t n = 0; n < 4; n++)
            for (size_t w = 0; w < 6; w++) {
                problem p;
                if (size[n] == 700 && w % 2 == 0) continue;
                problem_open(&p, ctx, zoo(family[f], size[n], ZOO_SPD),
                             width[w]);
                p.opt.solver = name;
                must_converge(&p, family[f]);
                problem_close(&p);
            }
}
END_TEST

START_TEST(every_preconditioner_serves_every_solver)
{
    const char *name, *precond;

    FOR_SOLVERS(name)
    for (int i = 0; (precond = sps_list(ctx, "precond", i)); i++) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 900, ZOO_SPD), 5);
        p.opt.solver = name;
        p.opt.precond = precond;
        must_converge(&p, precond);
        ck_assert_str_eq(p.result.precond, precond);
        problem_close(&p);
    }
}
END_TEST

START_TEST(empty_systems_converge_at_once)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("diagonal", 0, ZOO_SPD), 4);
        p.opt.solver = name;
        must_converge(&p, "n = 0");
        ck_assert_int_eq(p.result.iterations, 0);
        problem_close(&p);
    }
}
END_TEST

/* Columns: 0..3 equal, 4 = sum of 5 and 6, 7 = 0, 8 = A times column 5. */
static void make_dependent(problem *p)
{
    int k = p->k;
    const double *val = p->A->val;

    for (int64_t i = 0; i < p->A->nrow; i++) {
        double *b = p->b + i * k, sum = 0;
        b[1] = b[2] = b[3] = b[0];
        b[4] = b[5] + b[6];
        b[7] = 0;
        for (int64_t q = p->A->rowptr[i]; q < p->A->rowptr[i + 1]; q++)
            sum += val[q] * p->b[(int64_t)p->A->col[q] * k + 5];
        b[8] = sum;
    }
}

START_TEST(dependent_and_zero_right_hand_sides_are_solved_too)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 900, ZOO_SPD), 12);
        make_dependent(&p);
        p.opt.solver = name;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        for (int j = 0; j < p.k; j++)
            ck_assert_msg(p.residual[j] <= 1.000001e-10, "%s column %d: %g",
                          name, j, p.residual[j]);
        for (int64_t i = 0; i < p.A->nrow; i++)
            ck_assert(p.x[i * p.k + 7] == 0);
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_zero_right_hand_side_gives_zero_whatever_the_guess)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 100, ZOO_SPD), 3);
        memset(p.b, 0, sizeof(double) * 300);
        for (int i = 0; i < 300; i++) p.x[i] = i % 7 - 3.0;
        p.opt.solver = name;
        must_converge(&p, "b = 0");
        ck_assert_int_eq(p.result.iterations, 0);
        for (int i = 0; i < 300; i++) ck_assert(p.x[i] == 0);
        problem_close(&p);
    }
}
END_TEST

START_TEST(an_exact_guess_needs_no_iteration)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid7", 216, ZOO_SPD), 4);
        p.opt.solver = name;
        must_converge(&p, "first");
        must_converge(&p, "again");
        ck_assert_int_eq(p.result.iterations, 0);
        problem_close(&p);
    }
}
END_TEST

static double one_negative(int64_t i)
{
    return i == 3 ? -1e-3 : 1.0 + 0.01 * (double)i;
}

static double half_negative(int64_t i)
{
    return i % 2 ? -1.0 - (double)i : 1.0 + (double)i;
}

START_TEST(an_indefinite_matrix_is_named_and_never_called_converged)
{
    double (*value[])(int64_t) = { one_negative, half_negative };
    const char *name;

    FOR_SPD_SOLVERS(name)
    for (int v = 0; v < 2; v++) {
        problem p;
        problem_open(&p, ctx, diagonal(200, value[v]), 3);
        p.opt.solver = name;
        p.opt.precond = "none";
        solve_ok(&p);
        ck_assert_msg(p.result.stop == SPS_STOP_INDEFINITE, "%s: %s", name,
                      sps_stop_string(p.result.stop));
        ck_assert(problem_honest(&p));
        problem_close(&p);
    }
}
END_TEST

/* Pairs [0 1; 1 0]: p'A p = 0 although A is regular.  CG cannot go on, but
 * neither is A singular nor the system inconsistent. */
START_TEST(zero_curvature_of_a_regular_matrix_is_called_indefinite)
{
    const char *name;

    FOR_SPD_SOLVERS(name)
    for (int k = 1; k <= 3; k += 2) {
        problem p;
        sps_csr *A = zoo("tridiagonal", 64, ZOO_SPD);
        for (int64_t i = 0; i < A->nrow; i++)
            for (int64_t e = A->rowptr[i]; e < A->rowptr[i + 1]; e++)
                ((double *)A->val)[e] = A->col[e] / 2 == i / 2 &&
                                        A->col[e] != i;
        problem_open(&p, ctx, A, k);
        for (int64_t i = 1; i < A->nrow; i += 2)
            for (int j = 0; j < k; j++) p.b[i * k + j] = 0;
        p.opt.solver = name;
        p.opt.precond = "none";
        solve_ok(&p);
        ck_assert_msg(p.result.stop == SPS_STOP_INDEFINITE, "%s: %s", name,
                      sps_stop_string(p.result.stop));
        ck_assert(problem_honest(&p));
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_graph_laplacian_is_projected_and_solved)
{
    static const char *family[] = { "grid5", "components", "ring" };
    const char *name;

    FOR_SOLVERS(name)
    for (int f = 0; f < 3; f++) {
        problem p;
        problem_open(&p, ctx, zoo(family[f], 400, ZOO_LAPLACIAN), 4);
        p.opt.solver = name;
        p.opt.nullspace = "auto";
        solve_ok(&p);
        ck_assert_msg(p.result.stop == SPS_STOP_CONVERGED, "%s on %s: %s",
                      name, family[f], sps_stop_string(p.result.stop));
        ck_assert_int_ge(p.result.nullspace, 1);
        ck_assert(p.result.removed > 0 && p.result.removed < 1);
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_given_basis_of_the_null_space_serves_and_a_false_one_is_refused)
{
    problem p;
    sps_block *N = NULL;
    double *v;

    problem_open(&p, ctx, zoo("ring", 300, ZOO_LAPLACIAN), 3);
    v = malloc(600 * sizeof *v);
    for (int i = 0; i < 300; i++) v[2 * i] = 3, v[2 * i + 1] = -1;
    ck_assert_int_eq(sps_block_create(ctx, 300, 2, &N), SPS_OK);
    ck_assert_int_eq(sps_block_set(N, 0, 2, v, 2, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    p.opt.nullspace_basis = N;
    solve_ok(&p);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    ck_assert_int_eq(p.result.nullspace, 1);
    for (int i = 0; i < 300; i++) v[2 * i] = i;
    ck_assert_int_eq(sps_block_set(N, 0, 2, v, 2, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    ck_assert_int_eq(problem_solve(&p), SPS_EUNFIT);
    sps_block_destroy(&N);
    problem_close(&p);
    free(v);
}
END_TEST

START_TEST(a_consistent_singular_system_is_solved_without_projection)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_LAPLACIAN), 3);
        for (int j = 0; j < 3; j++) {
            double mean = 0;
            for (int i = 0; i < 400; i++) mean += p.b[3 * i + j] / 400;
            for (int i = 0; i < 400; i++) p.b[3 * i + j] -= mean;
        }
        p.opt.solver = name;
        p.opt.nullspace = "none";
        must_converge(&p, "consistent");
        problem_close(&p);
    }
}
END_TEST

START_TEST(an_inconsistent_singular_system_never_converges)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_LAPLACIAN), 3);
        p.opt.solver = name;
        p.opt.nullspace = "none";
        p.opt.max_iterations = 3000;
        solve_ok(&p);
        ck_assert_int_lt(p.result.stop, 0);
        ck_assert_int_eq(p.result.columns_converged, 0);
        for (int i = 0; i < 1200; i++) ck_assert(isfinite(p.x[i]));
        ck_assert_msg(problem_worst(&p) <= 1 + 1e-9, "best iterate lost: %g",
                      problem_worst(&p));
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_broken_right_hand_side_does_not_spoil_the_others)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 4);
        p.b[17 * 4 + 2] = NAN;
        p.x[5 * 4 + 1] = INFINITY;
        p.opt.solver = name;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_NOT_FINITE);
        ck_assert_int_eq(p.result.columns_converged, 3);
        for (int j = 0; j < 4; j++)
            if (j != 2) ck_assert(p.residual[j] <= 1.000001e-10);
        for (int i = 0; i < 1600; i++) ck_assert(isfinite(p.x[i]));
        problem_close(&p);
    }
}
END_TEST

START_TEST(limits_end_a_solve_with_the_best_iterate)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 2500, ZOO_LAPLACIAN), 4);
        p.opt.solver = name;
        p.opt.max_iterations = 7;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_ITERATIONS);
        ck_assert_int_eq(p.result.iterations, 7);
        p.opt.max_iterations = 0;
        memset(p.x, 0, sizeof(double) * 10000);
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_ITERATIONS);
        p.opt.max_iterations = 1000000;
        p.opt.max_seconds = 1e-9;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_TIME);
        problem_close(&p);
    }
}
END_TEST

static bool stop_at_three(const sps_progress *g, void *data)
{
    int *calls = data;

    ck_assert_int_eq(g->iteration, *calls);
    ck_assert_int_eq(g->k, 4);
    ck_assert(g->median <= g->worst);
    ++*calls;
    return g->iteration < 3;
}

START_TEST(a_monitor_sees_each_iteration_and_may_stop)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        int calls = 0;
        problem_open(&p, ctx, zoo("grid5", 2500, ZOO_SPD), 4);
        p.opt.solver = name;
        p.opt.monitor = stop_at_three;
        p.opt.monitor_data = &calls;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
        ck_assert_int_eq(p.result.iterations, 3);
        ck_assert_int_eq(calls, 4);
        problem_close(&p);
    }
}
END_TEST

START_TEST(cancel_stops_a_solve)
{
    problem p;

    problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 4);
    sps_cancel(ctx, true);
    solve_ok(&p);
    ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
    sps_cancel(ctx, false);
    solve_ok(&p);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    problem_close(&p);
}
END_TEST

START_TEST(units_of_the_right_hand_sides_do_not_matter)
{
    static const int exponent[] = { 0, 40, -40, 500, -480 };
    const char *name;

    FOR_SOLVERS(name) {
        double *x = NULL;
        int iterations = 0;
        for (int e = 0; e < 5; e++) {
            problem p;
            problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 3);
            for (int i = 0; i < 1200; i++) p.b[i] = ldexp(p.b[i], exponent[e]);
            p.opt.solver = name;
            must_converge(&p, "scaled b");
            if (e == 0) {
                x = malloc(1200 * sizeof *x);
                memcpy(x, p.x, 1200 * sizeof *x);
                iterations = p.result.iterations;
            }
            ck_assert_int_eq(p.result.iterations, iterations);
            for (int i = 0; i < 1200; i++)
                ck_assert(p.x[i] == ldexp(x[i], exponent[e]));
            problem_close(&p);
        }
        free(x);
    }
}
END_TEST

START_TEST(units_of_the_matrix_do_not_matter)
{
    static const int exponent[] = { 0, 60, -60 };
    const char *name;

    FOR_SOLVERS(name) {
        int iterations = 0;
        for (int e = 0; e < 3; e++) {
            problem p;
            double *val;
            problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 3);
            val = p.A->val;
            for (int64_t q = 0; q < p.A->nnz; q++)
                val[q] = ldexp(val[q], exponent[e]);
            p.opt.solver = name;
            must_converge(&p, "scaled A");
            if (e == 0) iterations = p.result.iterations;
            ck_assert_int_eq(p.result.iterations, iterations);
            problem_close(&p);
        }
    }
}
END_TEST

START_TEST(columns_of_very_different_size_converge_each_by_its_own_measure)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 900, ZOO_SPD), 13);
        for (int i = 0; i < 900; i++)
            for (int j = 0; j < 13; j++) p.b[i * 13 + j] *= pow(10, -j);
        p.opt.solver = name;
        must_converge(&p, "1 .. 1e-12");
        problem_close(&p);
    }
}
END_TEST

static double spread(int64_t i)
{
    return pow(10, -12.0 * (double)i / 299);
}

START_TEST(an_unreachable_tolerance_is_admitted)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        problem_open(&p, ctx, zoo("tridiagonal", 300, ZOO_LAPLACIAN), 4);
        double *val = p.A->val;      /* D T D: condition about 1e12 and more */
        for (int64_t i = 0; i < 300; i++)
            for (int64_t q = p.A->rowptr[i]; q < p.A->rowptr[i + 1]; q++)
                val[q] = (val[q] + (p.A->col[q] == i ? 1e-6 : 0)) *
                         sqrt(spread(i) * spread(p.A->col[q]));
        p.opt.solver = name;
        p.opt.precond = "none";
        p.opt.rtol = 1e-15;
        p.opt.max_iterations = 4000;
        solve_ok(&p);
        ck_assert_msg(problem_honest(&p), "%s lies: %d columns claimed, "
                      "worst %g", name, p.result.columns_converged,
                      problem_worst(&p));
        problem_close(&p);
    }
}
END_TEST

START_TEST(norms_mean_what_they_say)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p;
        double size = 0;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 2);
        p.opt.solver = name;
        p.opt.norm = SPS_NORM_ABSOLUTE;
        p.opt.rtol = 0;
        p.opt.atol = 1e-3;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        for (int i = 0; i < 400; i++) size += p.b[2 * i] * p.b[2 * i];
        ck_assert(p.residual[0] * sqrt(size) <= 1e-3 * (1 + 1e-9));
        ck_assert(p.residual[0] * sqrt(size) >= 1e-7);
        p.opt.norm = SPS_NORM_START;   /* from here: relative to that */
        p.opt.rtol = 1e-2;
        p.opt.atol = 0;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        ck_assert(p.residual[0] * sqrt(size) <= 1e-5 * (1 + 1e-9));
        p.opt.norm = SPS_NORM_BACKWARD;
        p.opt.rtol = 1e-14;
        solve_ok(&p);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        ck_assert(p.result.worst_backward <= 1e-14);
        problem_close(&p);
    }
}
END_TEST

START_TEST(a_nonsymmetric_matrix_is_refused_with_its_difference)
{
    problem p;

    problem_open(&p, ctx, zoo("bidiagonal", 50, ZOO_RANDOM), 2);
    p.opt.solver = "cg";
    ck_assert_int_eq(problem_solve(&p), SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(ctx), "symmetric"));
    problem_close(&p);
}
END_TEST

START_TEST(the_same_solve_gives_the_same_bits)
{
    const char *name;

    FOR_SOLVERS(name) {
        double *x = NULL;
        for (int run = 0; run < 3; run++) {
            problem p;
            problem_open(&p, ctx, zoo("grid7", 1000, ZOO_SPD), 8);
            p.opt.solver = name;
            must_converge(&p, "repeat");
            if (!x) {
                x = malloc(8000 * sizeof *x);
                memcpy(x, p.x, 8000 * sizeof *x);
            }
            ck_assert(!memcmp(x, p.x, 8000 * sizeof *x));
            problem_close(&p);
        }
        free(x);
    }
}
END_TEST

START_TEST(permuted_right_hand_sides_give_permuted_solutions)
{
    const char *name;

    FOR_SOLVERS(name) {
        problem p, q;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 5);
        problem_open(&q, ctx, zoo("grid5", 400, ZOO_SPD), 5);
        for (int i = 0; i < 400; i++)
            for (int j = 0; j < 5; j++) q.b[5 * i + j] = p.b[5 * i + 4 - j];
        p.opt.solver = q.opt.solver = name;
        must_converge(&p, "plain");
        must_converge(&q, "permuted");
        for (int i = 0; i < 400; i++)
            for (int j = 0; j < 5; j++)
                ck_assert(fabs(q.x[5 * i + j] - p.x[5 * i + 4 - j]) < 1e-7);
        problem_close(&p);
        problem_close(&q);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conform_solvers");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, open_context, close_context);
    tcase_add_test(tc, every_solver_solves_spd_systems_of_any_width);
    tcase_add_test(tc, every_preconditioner_serves_every_solver);
    tcase_add_test(tc, empty_systems_converge_at_once);
    tcase_add_test(tc, dependent_and_zero_right_hand_sides_are_solved_too);
    tcase_add_test(tc, a_zero_right_hand_side_gives_zero_whatever_the_guess);
    tcase_add_test(tc, an_exact_guess_needs_no_iteration);
    tcase_add_test(tc, an_indefinite_matrix_is_named_and_never_called_converged);
    tcase_add_test(tc, zero_curvature_of_a_regular_matrix_is_called_indefinite);
    tcase_add_test(tc, a_graph_laplacian_is_projected_and_solved);
    tcase_add_test(tc,
        a_given_basis_of_the_null_space_serves_and_a_false_one_is_refused);
    tcase_add_test(tc, a_consistent_singular_system_is_solved_without_projection);
    tcase_add_test(tc, an_inconsistent_singular_system_never_converges);
    tcase_add_test(tc, a_broken_right_hand_side_does_not_spoil_the_others);
    tcase_add_test(tc, limits_end_a_solve_with_the_best_iterate);
    tcase_add_test(tc, a_monitor_sees_each_iteration_and_may_stop);
    tcase_add_test(tc, cancel_stops_a_solve);
    tcase_add_test(tc, units_of_the_right_hand_sides_do_not_matter);
    tcase_add_test(tc, units_of_the_matrix_do_not_matter);
    tcase_add_test(tc,
        columns_of_very_different_size_converge_each_by_its_own_measure);
    tcase_add_test(tc, an_unreachable_tolerance_is_admitted);
    tcase_add_test(tc, norms_mean_what_they_say);
    tcase_add_test(tc, a_nonsymmetric_matrix_is_refused_with_its_difference);
    tcase_add_test(tc, the_same_solve_gives_the_same_bits);
    tcase_add_test(tc, permuted_right_hand_sides_give_permuted_solutions);
    suite_add_tcase(suite, tc);
    return runner_run(suite);
}
