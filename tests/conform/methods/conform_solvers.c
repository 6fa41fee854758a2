/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_solvers.c - every listed solver on the problems it supports, and on
 * those it must reject or report. */
#include "tests/support/methods.h"

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
            for (size_t w = (f + n) % 3; w < 6; w += 3) {
                problem p;
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
    for (int i = 0; (precond = sps_list(ctx, "precond", i)); i++)
    if (!absent(precond)) {
        problem p;
        problem_open(&p, ctx, zoo("grid5", 400, ZOO_SPD), 5);
        p.opt.solver = name;
        p.opt.precond = precond;
        if (precond_serves(name, precond)) {
            must_converge(&p, precond);
            ck_assert_str_eq(p.result.precond, precond);
        } else {
            ck_assert_int_eq(problem_solve(&p), SPS_EUNFIT);
        }
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

/* diag(d_0, d_1, ...), n x n. */
static sps_csr *diagonal(int64_t n, double (*value)(int64_t))
{
    sps_csr *A = zoo("diagonal", n, ZOO_SPD);
    double *val = A->val;

    for (int64_t i = 0; i < n; i++) val[i] = value(i);
    return A;
}

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

/* Pairs [0 1; 1 0]: p'A p = 0 although A is regular.  CG breaks down, but A is
 * neither singular nor is the system inconsistent. */
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
    for (int f = 0, named = 0; f < 3; f += named, named = !named) {
        problem p;
        problem_open(&p, ctx, zoo(family[f], 400, ZOO_LAPLACIAN), 4);
        p.opt.solver = name;
        p.opt.nullspace = named ? "components" : "auto";
        solve_ok(&p);
        if (solves_least_squares(name)) {   /* which project nothing */
            ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED_LEAST_SQUARES);
            ck_assert_int_eq(p.result.nullspace, 0);
            ck_assert(problem_honest(&p));
            problem_close(&p);
            continue;
        }
        ck_assert_msg(p.result.stop == (named
                          ? SPS_STOP_CONVERGED_LEAST_SQUARES
                          : SPS_STOP_LEAST_SQUARES), "%s on %s: %s",
                      name, family[f], sps_stop_string(p.result.stop));
        ck_assert_int_eq(p.result.columns_converged, named ? 4 : 0);
        ck_assert(p.result.worst_in_range <= p.opt.rtol);
        ck_assert(fabs(p.result.worst_residual / problem_worst(&p) - 1) <
                  1e-9);
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
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED_LEAST_SQUARES);
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

static const runner_test tests[] = {
    RUNNER_TEST(every_solver_solves_spd_systems_of_any_width),
    RUNNER_TEST(every_preconditioner_serves_every_solver),
    RUNNER_TEST(empty_systems_converge_at_once),
    RUNNER_TEST(dependent_and_zero_right_hand_sides_are_solved_too),
    RUNNER_TEST(a_zero_right_hand_side_gives_zero_whatever_the_guess),
    RUNNER_TEST(an_exact_guess_needs_no_iteration),
    RUNNER_TEST(an_indefinite_matrix_is_named_and_never_called_converged),
    RUNNER_TEST(zero_curvature_of_a_regular_matrix_is_called_indefinite),
    RUNNER_TEST(a_graph_laplacian_is_projected_and_solved),
    RUNNER_TEST(
        a_given_basis_of_the_null_space_serves_and_a_false_one_is_refused),
    RUNNER_TEST(a_consistent_singular_system_is_solved_without_projection),
    RUNNER_TEST(a_nonsymmetric_matrix_is_refused_with_its_difference),
};
METHODS_MAIN("conform_solvers", tests)
