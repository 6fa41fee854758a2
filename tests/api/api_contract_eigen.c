/* SPDX-License-Identifier: BSD-3-Clause */
/* api_contract_eigen.c - eigensolvers with every invalid argument, and the
 * lifetime of results and objects: how long results are valid, and in which
 * order objects may be destroyed. */
#include <math.h>

#include "tests/support/contract.h"

static sps_solver *eigen(const sps_operator *mass, sps_precond *T, int count)
{
    sps_solver *made = NULL;

    ck_assert_msg(sps_solver_create_eigen(op, mass, T, count, &opt, &made) ==
                      SPS_OK, "%s", sps_context_error(ctx));
    return made;
}

START_TEST(numbers_of_pairs_and_handles)
{
    static const int wrong[] = {0, -1, 1025, N + 1};
    sps_solver *made = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        NOT_MADE(sps_solver, SPS_EINVAL,
                 sps_solver_create_eigen(op, NULL, NULL, wrong[i], NULL,
                                         &made));
    REFUSED(SPS_EINVAL, sps_solver_create_eigen(op, NULL, NULL, K, NULL,
                                                NULL));
    NOWHERE(sps_solver_create_eigen(NULL, NULL, NULL, K, NULL, &made));
    NOT_MADE(sps_solver, SPS_EUNFIT,
             sps_solver_create_eigen(op_wide, NULL, NULL, K, NULL, &made));
    made = eigen(NULL, NULL, N);   /* all N pairs */
    sps_solver_destroy(&made);
}
END_TEST

/* Mass matrices and preconditioners of another size, context or kind. */
START_TEST(mass_and_preconditioner)
{
    sps_operator *small = NULL, *away = NULL, *plain = NULL;
    sps_precond *tiny = NULL, *narrow = NULL, *far = NULL;

    GOOD(sps_operator_user(ctx, N - 1, copy, NULL, SPS_SPD, &small));
    GOOD(sps_operator_user(ctx, N, copy, NULL, 0, &plain));
    GOOD(sps_precond_user(ctx, N - 1, copy, NULL, &tiny));
    GOOD(sps_precond_create(op, 1, NULL, &narrow));
    ck_assert_int_eq(sps_operator_user(other, N, copy, NULL, SPS_SPD, &away),
                     SPS_OK);
    ck_assert_int_eq(sps_precond_user(other, N, copy, NULL, &far), SPS_OK);
    opt.solver = "lobpcg";
    NOT_MADE(sps_solver, SPS_ESHAPE,
             sps_solver_create_eigen(op, small, NULL, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_EUNFIT,
             sps_solver_create_eigen(op, op_wide, NULL, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_EUNFIT,
             sps_solver_create_eigen(plain, NULL, NULL, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create_eigen(op, away, NULL, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_ESHAPE,
             sps_solver_create_eigen(op, NULL, tiny, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_ESHAPE,
             sps_solver_create_eigen(op, NULL, narrow, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create_eigen(op, NULL, far, K, &opt, &made));
    sps_options_default(&opt);
    sps_operator_destroy(&small);
    sps_operator_destroy(&away);
    sps_operator_destroy(&plain);
    sps_precond_destroy(&tiny);
    sps_precond_destroy(&narrow);
    sps_precond_destroy(&far);
}
END_TEST

START_TEST(options)
{
    sps_block *full = NULL;

    for (int i = 0; i < 13; i++) {
        sps_options_default(&opt);
        switch (i) {
        case 0: opt.solver = "cg"; break;      /* a solver for linear systems */
        case 1: opt.precond = "magic"; opt.solver = "lobpcg"; break;
        case 2: opt.which = "middle"; break;
        case 3: opt.which = ""; break;
        case 4: opt.nullspace = "magic"; break;
        case 5: opt.sigma = NAN; opt.which = "nearest"; break;
        case 6: opt.sigma = INFINITY; opt.which = "nearest"; break;
        case 7: opt.rtol = 0; break;
        case 8: opt.rtol = NAN; break;
        case 9: opt.block = -1; break;
        case 10: opt.norm = SPS_NORM_START; break;
        case 11: opt.true_residual_every = 0; break;
        case 12: opt.struct_size = 12; break;
        }
        NOT_MADE(sps_solver, SPS_EINVAL,
                 sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
    }
    sps_options_default(&opt);
    opt.constraints = tall;
    NOT_MADE(sps_solver, SPS_ESHAPE,
             sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
    opt.constraints = foreign;
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
    /* Constraints alone, or pairs and constraints together, exceed the
     * dimension. */
    GOOD(sps_block_create(ctx, N, N - K + 1, &full));
    GOOD(sps_block_random(full, 3));
    opt.constraints = full;
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
    sps_block_destroy(&full);
    /* Not finite. */
    for (int i = 0; i < N * K; i++) numbers[i] = i == 7 ? NAN : 1;
    GOOD(sps_block_set(Y, 0, K, numbers, K, SPS_ROW_MAJOR, SPS_HOST));
    opt.constraints = Y;
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
    /* The operator has no null space. */
    GOOD(sps_block_random(Y, 4));
    opt.constraints = NULL;
    opt.nullspace_basis = Y;
    NOT_MADE(sps_solver, SPS_EUNFIT,
             sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
    sps_options_default(&opt);
}
END_TEST

START_TEST(solving)
{
    sps_solver *e = eigen(NULL, NULL, K);
    sps_eigen_result result = {.struct_size = 1};
    sps_result linear = {.struct_size = sizeof linear};
    double lambda[K] = {-7, -7, -7};

    REFUSED(SPS_EINVAL, sps_solver_eigen(e, NULL, lambda, NULL));
    REFUSED(SPS_EINVAL, sps_solver_eigen(e, X, lambda, &result));
    REFUSED(SPS_ESHAPE, sps_solver_eigen(e, thin, lambda, NULL));
    REFUSED(SPS_ESHAPE, sps_solver_eigen(e, tall, lambda, NULL));
    REFUSED(SPS_EINVAL, sps_solver_eigen(e, foreign, lambda, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(e, B, X, &linear));
    REFUSED(SPS_EINVAL, sps_solver_eigen(s, X, lambda, NULL));
    NOWHERE(sps_solver_eigen(NULL, X, lambda, NULL));
    for (int j = 0; j < K; j++) ck_assert(lambda[j] == -7);
    sps_solver_destroy(&e);
}
END_TEST

static double exact(int j)
{
    return 3 - 2 * cos(acos(-1) * (j + 1) / (N + 1));
}

/* A guess of zeros, of NaN, of the eigenvectors themselves; lambda and result
 * NULL. */
START_TEST(guesses_and_second_calls)
{
    static const char *solver[] = {"lobpcg", "chebyshev_filter", "auto"};

    for (int run = 0; run < 3; run++) {
        sps_eigen_result result = {.struct_size = sizeof result};
        double lambda[K];
        sps_solver *e;

        opt.solver = solver[run];
        e = eigen(NULL, NULL, K);
        for (int guess = 0; guess < 3; guess++) {
            for (int i = 0; i < N * K; i++) numbers[i] = guess ? NAN : 0;
            if (guess < 2)
                GOOD(sps_block_set(X, 0, K, numbers, K, SPS_ROW_MAJOR,
                                   SPS_HOST));
            GOOD(sps_solver_eigen(e, X, lambda, &result));
            ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
            for (int j = 0; j < K; j++) {
                ck_assert(fabs(lambda[j] - exact(j)) < 1e-7);
                ck_assert(result.lambda[j] == lambda[j]);
                ck_assert(result.residual[j] <= opt.rtol);
            }
        }
        GOOD(sps_solver_eigen(e, X, NULL, NULL));
        /* The solver's arrays are still valid here. */
        ck_assert(fabs(result.lambda[K - 1] - exact(K - 1)) < 1e-7);
        sps_solver_destroy(&e);
    }
    sps_options_default(&opt);
}
END_TEST

/* Objects destroyed in the wrong order: freed memory is not read. */
START_TEST(operators_that_go_before_the_solver_do_no_harm)
{
    sps_operator *a = NULL, *m = NULL;
    sps_precond *T = NULL;
    sps_solver *e = NULL;
    sps_block *Y0 = NULL;

    for (int run = 0; run < 3; run++) {
        sps_options_default(&opt);
        opt.solver = "lobpcg";
        if (run == 1) opt.which = "nearest";
        GOOD(sps_operator_csr(ctx, A, K, NULL, &a));
        GOOD(sps_operator_csr(ctx, A, K, NULL, &m));
        GOOD(sps_block_create(ctx, N, 1, &Y0));
        GOOD(sps_block_random(Y0, 5));
        opt.constraints = run ? NULL : Y0;
        if (run == 2) GOOD(sps_precond_create(a, N, NULL, &T));
        GOOD(sps_solver_create_eigen(a, m, T, K, &opt, &e));
        if (run < 2) GOOD(sps_solver_eigen(e, X, NULL, NULL));
        sps_block_destroy(&Y0);
        sps_precond_destroy(&T);
        sps_operator_destroy(&a);
        sps_operator_destroy(&m);
        sps_solver_destroy(&e);
    }
    sps_options_default(&opt);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(numbers_of_pairs_and_handles),
    RUNNER_TEST(mass_and_preconditioner),
    RUNNER_TEST(options),
    RUNNER_TEST(solving),
    RUNNER_TEST(guesses_and_second_calls),
    RUNNER_TEST(operators_that_go_before_the_solver_do_no_harm),
};
RUNNER_MAIN_WITHIN("api_contract_eigen", tests, setup, teardown)
