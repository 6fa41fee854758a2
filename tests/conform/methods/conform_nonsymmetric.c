/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_nonsymmetric.c - every listed method that requires no property of the
 * matrix, or only symmetry, on nonsymmetric and indefinite systems. */
#include "tests/support/callback.h"
#include "tests/support/methods.h"

START_TEST(nonsymmetric_systems_of_any_width_are_solved)
{
    static const char *family[] = { "tridiagonal", "band", "grid5", "grid7",
                                    "arrow", "block_dense" };
    static const int width[] = { 1, 2, 3, 7, 16, 33 };
    static const int64_t size[] = { 1, 2, 40, 700 };
    const char *name;

    FOR_GENERAL(name)
    for (size_t f = 0; f < sizeof family / sizeof *family; f++)
        for (size_t n = 0; n < 4; n++)
            for (size_t w = (f + n) % 3; w < 6;
                 w += runner_quick() ? 6 : 3) {
                problem p;

                problem_open(&p, ctx, dominant(family[f], size[n], false),
                             width[w]);
                p.opt.solver = name;
                must_converge(&p, family[f]);
                problem_close(&p);
            }
}
END_TEST

START_TEST(convection_is_solved_with_every_preconditioner)
{
    const char *name, *precond;

    FOR_GENERAL(name)
    for (int i = 0; (precond = sps_list(ctx, "precond", i)); i++)
    if (!absent(precond)) {
        problem p;
        sps_status st;

        problem_open(&p, ctx, filled("grid5", 400, convection), 5);
        p.opt.solver = name;
        p.opt.precond = precond;
        st = problem_solve(&p);
        if (st == SPS_EUNFIT) { /* methods for symmetric matrices */
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

    FOR_GENERAL(name)
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

START_TEST(symmetric_indefinite_systems_are_solved)
{
    static const char *const precond[] = { "none", "jacobi" };
    static const int width[] = { 1, 6, 17 };
    const char *name;

    FOR_INDEFINITE(name)
    for (int t = 0; t < 6; t++) {
        problem p;

        problem_open(&p, ctx, filled("grid5", 400, symmetric_indefinite),
                     width[t % 3]);
        for (int i = 0; i < 400 && p.k > 5; i++) {   /* these converge early */
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

START_TEST(minres_refuses_a_nonsymmetric_matrix)
{
    problem p;

    problem_open(&p, ctx, filled("grid5", 100, convection), 2);
    p.opt.solver = "minres";
    ck_assert_int_eq(problem_solve(&p), SPS_EUNFIT);
    problem_close(&p);
}
END_TEST

START_TEST(more_columns_than_rows_are_solved)
{
    const char *name;

    FOR_GENERAL(name) {
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

    FOR_GENERAL(name) {
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

    FOR_GENERAL(name)
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

    FOR_GENERAL(name) {
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

/* Short cycles end often, and converged columns are removed at their ends. */
START_TEST(any_length_of_cycle_solves)
{
    static const int length[] = { 1, 2, 7, 30, 1000 };
    const char *name;

    FOR_GENERAL(name)
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

/* A preconditioner that changes at each application: rows scaled by 1 to 4, in
 * a pattern that moves. */
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

    for (int t = 0; t < 2; t++) {
        int iterations[2];

        for (int flexible = 0; flexible < 2; flexible++) {
            problem p;
            sps_precond *M = NULL;
            sps_solver *s = NULL;
            sps_block *B = NULL, *X = NULL;
            int calls = 0;
            callback map = { ctx, fickle, &calls };

            problem_open(&p, ctx, filled("grid5", 900, convection), 3);
            p.opt.solver = solver[t];
            p.opt.flexible = flexible;
            p.opt.max_iterations = 400;
            p.result.struct_size = sizeof p.result;
            ck_assert_int_eq(sps_operator_csr(ctx, p.A, 3, NULL, &p.op),
                             SPS_OK);
            ck_assert_int_eq(sps_precond_user(ctx, 900, callback_anywhere, &map,
                                              &M), SPS_OK);
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
    RUNNER_TEST(minres_refuses_a_nonsymmetric_matrix),
    RUNNER_TEST(more_columns_than_rows_are_solved),
    RUNNER_TEST(units_of_matrix_and_right_hand_sides_do_not_matter),
    RUNNER_TEST(limits_end_inside_of_a_cycle_with_the_best_iterate),
    RUNNER_TEST(repeated_solves_have_the_same_bits),
    RUNNER_TEST(any_length_of_cycle_solves),
    RUNNER_TEST(flexible_methods_bear_a_preconditioner_that_changes),
};
METHODS_MAIN("conform_nonsymmetric", tests)
