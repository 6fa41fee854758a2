/* SPDX-License-Identifier: BSD-3-Clause */
/* api_contract_solve.c - options, operators, preconditioners and solvers with
 * every invalid argument. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "tests/support/contract.h"

START_TEST(options)
{
    REFUSED(SPS_EINVAL, sps_options_parse(ctx, NULL, "rtol=1"));
    REFUSED(SPS_EINVAL, sps_options_parse(ctx, &opt, NULL));
    REFUSED(SPS_EINVAL, sps_options_parse(ctx, &opt, "rtol=x"));
    NOWHERE(sps_options_parse(NULL, &opt, "rtol=1"));
    opt.struct_size = 0;
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, K, &opt, &made));
    NOT_MADE(sps_precond, SPS_EINVAL,
             sps_precond_create(op, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, K, &opt, &made));
    sps_options_default(&opt);
}
END_TEST

START_TEST(operators)
{
    sps_operator *made = NULL;

    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, NULL, K, NULL, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, 0, NULL, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, -3, NULL, &made));
    REFUSED(SPS_EINVAL, sps_operator_csr(ctx, A, K, NULL, NULL));
    NOWHERE(sps_operator_csr(NULL, A, K, NULL, &made));
    opt.kernel = "spmm.nonsense";
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_csr(ctx, A, K, &opt, &made));
    opt.kernel = "auto";

    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_user(ctx, N, NULL, NULL, 0, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_user(ctx, -1, copy, NULL, 0, &made));
    NOT_MADE(sps_operator, SPS_EINVAL,
             sps_operator_user(ctx, N, copy, NULL, 0x1000, &made));
    REFUSED(SPS_EINVAL, sps_operator_user(ctx, N, copy, NULL, 0, NULL));
    NOWHERE(sps_operator_user(NULL, N, copy, NULL, 0, &made));
    sps_operator_destroy(NULL);
    ck_assert_ptr_nonnull(sps_operator_kernel(NULL));
    ck_assert_uint_eq(sps_operator_describe(NULL, NULL, 0), 0);
    ck_assert_uint_eq(sps_precond_describe(NULL, NULL, 0), 0);
    ck_assert_uint_eq(sps_solver_describe(NULL, NULL, 0), 0);
    ck_assert_uint_gt(sps_operator_describe(op, NULL, 0), 0);
}
END_TEST

START_TEST(operator_apply_sample_and_values)
{
    double *val = NULL;
    sps_block *samples = NULL;

    REFUSED(SPS_ESHAPE, sps_operator_apply(op, 1, tall, 0, Y));
    REFUSED(SPS_ESHAPE, sps_operator_apply(op, 1, X, 0, tall));
    REFUSED(SPS_ESHAPE, sps_operator_apply(op, 1, X, 0, thin));
    REFUSED(SPS_ESHAPE, sps_operator_apply(op_wide, 1, X, 0, Y));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, X, 0, X));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, NULL, 0, Y));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, X, 0, NULL));
    REFUSED(SPS_EINVAL, sps_operator_apply(op, 1, foreign, 0, Y));
    NOWHERE(sps_operator_apply(NULL, 1, X, 0, Y));

    GOOD(sps_block_create(ctx, 3 * N, 1, &samples));
    val = sps_block_data(samples, NULL);
    REFUSED(SPS_ESHAPE, sps_operator_sample(op, 1, tall, Y, false, 0, val));
    REFUSED(SPS_ESHAPE, sps_operator_sample(op, 1, X, tall, false, 0, val));
    REFUSED(SPS_ESHAPE, sps_operator_sample(op, 1, X, thin, false, 0, val));
    REFUSED(SPS_EINVAL, sps_operator_sample(op, 1, NULL, Y, false, 0, val));
    REFUSED(SPS_EINVAL, sps_operator_sample(op, 1, X, NULL, false, 0, val));
    REFUSED(SPS_EINVAL, sps_operator_sample(op, 1, X, Y, false, 0, NULL));
    REFUSED(SPS_EUNFIT, sps_operator_sample(op_user, 1, X, Y, false, 0, val));
    NOWHERE(sps_operator_sample(NULL, 1, X, Y, false, 0, val));
    sps_block_destroy(&samples);

    REFUSED(SPS_EINVAL, sps_operator_set_values(op, NULL, SPS_HOST));
    REFUSED(SPS_EINVAL, sps_operator_set_values(op, A->val, SPS_AUTO));
    REFUSED(SPS_EUNFIT, sps_operator_set_values(op_user, numbers, SPS_HOST));
    NOWHERE(sps_operator_set_values(NULL, numbers, SPS_HOST));
}
END_TEST

/* Each function that takes options checks the context of their blocks. */
START_TEST(blocks_of_another_context_among_the_options)
{
    for (int i = 0; i < 4; i++) {
        if (i == 0) opt.nullspace_basis = foreign;
        if (i == 1) opt.coords = foreign;
        if (i == 2) opt.constraints = foreign;
        if (i == 3) opt.near_null_basis = foreign;
        NOT_MADE(sps_operator, SPS_EINVAL,
                 sps_operator_csr(ctx, A, K, &opt, &made));
        NOT_MADE(sps_precond, SPS_EINVAL,
                 sps_precond_create(op, K, &opt, &made));
        NOT_MADE(sps_solver, SPS_EINVAL,
                 sps_solver_create(op, NULL, K, &opt, &made));
        NOT_MADE(sps_solver, SPS_EINVAL,
                 sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
        sps_options_default(&opt);
    }
}
END_TEST

/* The last coordinate of the last node is `value`, the others are zero. */
static void coords_refused(sps_status status, int64_t nodes, int d,
                           double value)
{
    sps_block *X = NULL;
    double *x = calloc((size_t)(nodes * d), sizeof *x);

    ck_assert_int_eq(sps_block_create(ctx, nodes, d, &X), SPS_OK);
    x[nodes * d - 1] = value;
    ck_assert_int_eq(sps_block_set(X, 0, d, x, d, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    opt.coords = X;
    NOT_MADE(sps_precond, status, sps_precond_create(op, K, &opt, &made));
    NOT_MADE(sps_solver, status,
             sps_solver_create(op, NULL, K, &opt, &made));
    NOT_MADE(sps_solver, status,
             sps_solver_create_eigen(op, NULL, NULL, K, &opt, &made));
    sps_options_default(&opt);
    sps_block_destroy(&X);
    free(x);
}

START_TEST(coordinates_that_do_not_fit)
{
    coords_refused(SPS_ESHAPE, N, 4, 0.0);
    coords_refused(SPS_ESHAPE, N - 1, 2, 0.0);
    coords_refused(SPS_EINVAL, N, 2, NAN);
    coords_refused(SPS_EINVAL, N, 1, INFINITY);
}
END_TEST

START_TEST(preconds)
{
    sps_precond *made = NULL;

    NOT_MADE(sps_precond, SPS_EUNFIT,
             sps_precond_create(op_wide, K, NULL, &made));
    NOT_MADE(sps_precond, SPS_EINVAL, sps_precond_create(op, 0, NULL, &made));
    NOT_MADE(sps_precond, SPS_EINVAL,
             sps_precond_create(op, INT_MAX, NULL, &made));
    REFUSED(SPS_EINVAL, sps_precond_apply(M, foreign, Y));
    REFUSED(SPS_EINVAL, sps_precond_create(op, K, NULL, NULL));
    NOWHERE(sps_precond_create(NULL, K, NULL, &made));
    opt.precond = "magic";
    NOT_MADE(sps_precond, SPS_EINVAL, sps_precond_create(op, K, &opt, &made));
    opt.precond = "jacobi";
    NOT_MADE(sps_precond, SPS_EUNFIT,
             sps_precond_create(op_user, K, &opt, &made));

    NOT_MADE(sps_precond, SPS_EINVAL,
             sps_precond_user(ctx, N, NULL, NULL, &made));
    NOT_MADE(sps_precond, SPS_EINVAL,
             sps_precond_user(ctx, -1, copy, NULL, &made));
    REFUSED(SPS_EINVAL, sps_precond_user(ctx, N, copy, NULL, NULL));
    NOWHERE(sps_precond_user(NULL, N, copy, NULL, &made));

    REFUSED(SPS_EINVAL, sps_precond_apply(M, NULL, Y));
    REFUSED(SPS_EINVAL, sps_precond_apply(M, X, NULL));
    REFUSED(SPS_EINVAL, sps_precond_apply(M, X, X));
    REFUSED(SPS_ESHAPE, sps_precond_apply(M, tall, Y));
    REFUSED(SPS_ESHAPE, sps_precond_apply(M, X, tall));
    REFUSED(SPS_ESHAPE, sps_precond_apply(M, X, thin));
    NOWHERE(sps_precond_apply(NULL, X, Y));
    NOWHERE(sps_precond_update(NULL));
    ck_assert_ptr_nonnull(sps_precond_name(NULL));
    sps_precond_destroy(NULL);
}
END_TEST

START_TEST(solver_create)
{
    static const struct {
        sps_status code;
        const char *text;
    } bad[] = {
        {SPS_EINVAL, "rtol=0 atol=0"},
        {SPS_EINVAL, "norm=absolute"},
    };
    sps_solver *made = NULL;

    sps_options_default(&opt);
    opt.solver = "cg";
    NOT_MADE(sps_solver, SPS_EUNFIT,
             sps_solver_create(op_wide, NULL, K, &opt, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, 0, NULL, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, -1, NULL, &made));
    NOT_MADE(sps_solver, SPS_EINVAL,
             sps_solver_create(op, NULL, 1025, NULL, &made));
    REFUSED(SPS_EINVAL, sps_solver_create(op, NULL, K, NULL, NULL));
    NOWHERE(sps_solver_create(NULL, NULL, K, NULL, &made));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sps_options_default(&opt);
        GOOD(sps_options_parse(ctx, &opt, bad[i].text));
        NOT_MADE(sps_solver, bad[i].code,
                 sps_solver_create(op, NULL, K, &opt, &made));
    }
    for (int i = 0; i < 6; i++) {
        sps_options_default(&opt);
        switch (i) {
        case 0: opt.solver = "magic"; break;
        case 1: opt.precond = "magic"; break;
        case 2: opt.nullspace = "magic"; break;
        case 3: opt.rtol = -1; break;
        case 4: opt.rtol = NAN; break;
        case 5: opt.max_iterations = -1; break;
        }
        NOT_MADE(sps_solver, SPS_EINVAL,
                 sps_solver_create(op, NULL, K, &opt, &made));
    }
    sps_options_default(&opt);
    sps_solver_destroy(NULL);
}
END_TEST

START_TEST(solver_linear)
{
    sps_result result = {.struct_size = 1};

    REFUSED(SPS_EINVAL, sps_solver_linear(s, NULL, X, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, B, NULL, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, B, B, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, B, X, &result));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, tall, X, NULL));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, B, tall, NULL));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, thin, X, NULL));
    REFUSED(SPS_ESHAPE, sps_solver_linear(s, B, thin, NULL));
    REFUSED(SPS_EINVAL, sps_solver_linear(s, foreign, X, NULL));
    NOWHERE(sps_solver_linear(NULL, B, X, NULL));
}
END_TEST

static int fail_with_42(double alpha, const double *x, int64_t ldx,
                        double beta, double *y, int64_t ldy, int64_t n, int k,
                        void *stream, void *data)
{
    (void)alpha, (void)x, (void)ldx, (void)beta, (void)y, (void)ldy;
    (void)n, (void)k, (void)stream, (void)data;
    return 42;
}

START_TEST(failures_of_callbacks_are_euser_and_name_the_number)
{
    sps_operator *bad = NULL;
    sps_precond *worse = NULL;

    GOOD(sps_operator_user(ctx, N, fail_with_42, NULL, SPS_SPD, &bad));
    GOOD(sps_precond_user(ctx, N, fail_with_42, NULL, &worse));
    REFUSED(SPS_EUSER, sps_operator_apply(bad, 1, X, 0, Y));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "42"));
    REFUSED(SPS_EUSER, sps_precond_apply(worse, X, Y));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "42"));
    sps_precond_destroy(&worse);
    sps_operator_destroy(&bad);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(options),
    RUNNER_TEST(operators),
    RUNNER_TEST(operator_apply_sample_and_values),
    RUNNER_TEST(blocks_of_another_context_among_the_options),
    RUNNER_TEST(coordinates_that_do_not_fit),
    RUNNER_TEST(preconds),
    RUNNER_TEST(solver_create),
    RUNNER_TEST(solver_linear),
    RUNNER_TEST(failures_of_callbacks_are_euser_and_name_the_number),
};
RUNNER_MAIN_WITHIN("api_contract_solve", tests, setup, teardown)
