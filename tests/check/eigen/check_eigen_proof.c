/* SPDX-License-Identifier: BSD-3-Clause */
/* check_eigen_proof.c - the verification of pairs: bounds, counts, and the
 * reasons given where no method can succeed. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "eigen/eigen.h"
#include "tests/problems/families.h"
#include "tests/problems/pencil.h"
#include "tests/support/absent.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

/* Steps of 1 but for one pair that lies close before another: 1, 2, 4.9, 5,
 * 10, 11, ...; a block of one column begins with the eigenvector of 5. */
static void count_from_the_fourth(pencil *p)
{
    p->opt.block = 1;
    p->opt.max_iterations = 3000;
    p->opt.verify_count = true;
    for (int i = 0; i < p->n; i++)
        pencil_set(p, i, i, i < 2 ? i + 1 : i < 4 ? 4.7 + 0.1 * i : i + 6);
    p->x[3 * p->count] = 1;
}

START_TEST(the_count_finds_what_was_missed)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    pencil_open(&p, ctx, 100, 1, false);
    count_from_the_fourth(&p);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.missed, 3);
    ck_assert_int_eq(p.result.stop, SPS_STOP_MISSED);
    pencil_close(&p);
    /* 1 and 5 are found. */
    pencil_open(&p, ctx, 100, 2, false);
    count_from_the_fourth(&p);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.missed, 2);
    ck_assert_int_eq(p.result.stop, SPS_STOP_MISSED);
    pencil_close(&p);
    /* Nothing is counted where pairs have not converged. */
    pencil_open(&p, ctx, 600, 4, false);
    p.opt.verify_count = true;
    p.opt.max_iterations = 2;
    p.opt.precond = "none";
    for (int i = 0; i < 600; i++) pencil_set(&p, i, i, i + 1);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.missed, -1);
    pencil_close(&p);
    /* By a second search, since with constraints inertia does not count. */
    pencil_open(&p, ctx, 100, 1, false);
    count_from_the_fourth(&p);
    p.constraint = 50;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_ge(p.result.missed, 1);
    ck_assert_int_eq(p.result.stop, SPS_STOP_MISSED);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* The same spectrum, of too many rows for dense factors: a second search finds
 * some of the three, sparse factors count them unless they are forbidden.  At
 * t = 4.9 - the margin, pivots are distances of numbers of the diagonal from
 * t. */
START_TEST(sparse_factors_count_beyond_dense_ones)
{
    enum { N = 6000 };

    if (absent("factor")) runner_skip("no factor module");
    for (int never = 0; never < 2; never++) {
        sps_context *ctx = pencil_context(1);
        pencil p;

        pencil_open(&p, ctx, N, 1, false);
        p.opt.block = 1;
        p.opt.verify_count = true;
        if (never) p.opt.factors = "never";
        p.x[3] = 1;
        ck_assert_int_eq(sps_csr_create(ctx, N, N, N, SPS_F64, &p.A), SPS_OK);
        for (int i = 0; i < N; i++) {
            p.A->rowptr[i + 1] = i + 1;
            p.A->col[i] = i;
            ((double *)p.A->val)[i] = i < 2   ? i + 1
                                      : i < 4 ? 4.7 + 0.1 * i : i + 6;
        }
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        ck_assert_int_eq(p.result.missed == 3, !never);
        if (!never) ck_assert_int_eq(p.result.stop, SPS_STOP_MISSED);
        pencil_close(&p);
        sps_context_destroy(&ctx);
    }
}
END_TEST

/* A'A of rank 3 with 197 zeros: the pairs found are limited by rounding, and so
 * are the pivots that a factorisation has for the others. */
START_TEST(rounding_is_not_counted_as_missed)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int seed = 1; seed <= (runner_quick() ? 1 : 6); seed++) {
        pencil_open(&p, ctx, 200, 1 + seed % 3, false);
        p.opt.precond = "none";
        p.opt.verify_count = true;
        pencil_squares(&p, (uint64_t)seed, 3, false);
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        ck_assert_int_le(p.result.missed, 0);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_singular_mass_matrix_is_named)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    pencil_open(&p, ctx, 60, 3, true);
    for (int i = 0; i < 60; i++) {   /* M: the Laplacian of a ring */
        pencil_set(&p, i, i, i + 1);
        pencil_mass(&p, i, i, 2);
        pencil_mass(&p, i, (i + 1) % 60, -1);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "singular"));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "nullspace"));
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(an_indefinite_mass_matrix_is_named)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    pencil_open(&p, ctx, 60, 3, true);
    for (int i = 0; i < 60; i++) {
        pencil_set(&p, i, i, i + 1);
        pencil_mass(&p, i, i, i == 30 ? -1 : 1);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "in row 31 is "));
    pencil_close(&p);
    pencil_open(&p, ctx, 60, 3, true);
    for (int i = 0; i < 60; i++) {
        pencil_set(&p, i, i, i + 1);
        pencil_mass(&p, i, i, 1);
        if (i % 2) pencil_mass(&p, i, i - 1, 3);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "definite"));
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_tolerance_below_rounding_is_named_and_never_called_converged)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    pencil_open(&p, ctx, 200, 4, false);
    for (int i = 0; i < 200; i++) {
        pencil_set(&p, i, i, 2e12);
        if (i > 0) pencil_set(&p, i, i - 1, -1e12);
    }
    for (int i = 0; i < 200; i++) *pencil_a(&p, i, i) += 1e-3 * (i % 7);
    p.opt.rtol = 1e-15;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_ne(p.result.stop, SPS_STOP_CONVERGED);
    if (!runner_quick()) {
        ck_assert_int_eq(p.result.stop, SPS_STOP_ROUNDING);
        ck_assert(p.result.worst_backward < 1e-13);
    }
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_mass_of_any_unit_has_a_bound)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int power = -200; power <= 200; power += 400) {
        pencil_open(&p, ctx, 60, 3, true);
        p.opt.rtol = 1e-8;
        for (int i = 0; i < 60; i++) {
            pencil_set(&p, i, i, i + 1);
            pencil_mass(&p, i, i, pow(10, power));
        }
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        for (int j = 0; pencil_converged(&p) && j < 3; j++) {
            double exact = (j + 1) / pow(10, power);

            ck_assert(p.bound[j] < 1e-7 * exact);
            ck_assert(fabs(p.lambda[j] - exact) <=
                      p.bound[j] + 1e-14 * exact);
        }
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* M is positive definite in all units, though x'M x is 1e-24 ||M|| ||x||^2 for
 * some x.  Residuals are insensitive to unknowns in large units then, and the
 * bounds must be larger. */
START_TEST(units_far_apart_are_no_indefinite_mass)
{
    sps_context *ctx = pencil_context(1);
    pencil p;

    for (int seed = 1; seed <= (runner_quick() ? 1 : 12); seed++) {
        pencil_open(&p, ctx, 10 + 10 * seed, 4, true);
        p.opt.which = seed % 2 ? "smallest" : "largest";
        family_far_units(&p, (uint64_t)seed);
        ck_assert_msg(pencil_solve(&p) == SPS_OK, "%s",
                      sps_context_error(ctx));
        if (pencil_converged(&p)) pencil_must_be_within_bounds(&p);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* A = diag(1, 2, ..), whose fourth row becomes NaN at a given call. */
static int ends_in_nan(double alpha, const double *X, int64_t ldx, double beta,
                       double *Y, int64_t ldy, int64_t n, int k, void *stream,
                       void *data)
{
    int *calls = data;

    (void)stream;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double v = (double)(i + 1) * X[i * ldx + j];
            double *y = &Y[i * ldy + j];

            if (i == 3 && *calls <= 0) v = NAN;
            *y = alpha * v + (beta == 0 ? 0 : beta * *y);
        }
    --*calls;
    return 0;
}

/* Numbers of the result and of X are finite, or infinite where nothing is
 * known; never NaN.  The NaN appears at the start, within, or in verification
 * alone. */
START_TEST(no_nan_comes_out_of_a_product_that_is_not_finite)
{
    static const int good[] = { 0, 1, 3, 6, 15, 40 };

    if (runner_place() == SPS_CUDA) runner_leave_out("callback of the host");
    for (int t = 0; t < 12; t++) {
        sps_context *ctx = pencil_context(1);
        sps_operator *op = NULL;
        sps_solver *s = NULL;
        sps_block *X = NULL;
        sps_eigen_result r = { .struct_size = sizeof r };
        sps_options o;
        double lambda[3] = { NAN, NAN, NAN }, x[60 * 3];
        int calls = good[t / 2];

        sps_options_default(&o);
        o.solver = t % 2 ? "lobpcg" : "chebyshev_filter";
        o.precond = "none";
        ck_assert_int_eq(sps_operator_user(ctx, 60, ends_in_nan, &calls,
                                           SPS_SYMMETRIC, &op), SPS_OK);
        ck_assert_int_eq(sps_block_create(ctx, 60, 3, &X), SPS_OK);
        if (sps_solver_create_eigen(op, NULL, NULL, 3, &o, &s) == SPS_OK &&
            sps_solver_eigen(s, X, lambda, &r) == SPS_OK) {
            ck_assert_int_eq(sps_block_get(X, 0, 3, x, 3, SPS_ROW_MAJOR,
                                           SPS_HOST), SPS_OK);
            for (int j = 0; j < 3; j++) ck_assert(isfinite(lambda[j]));
            for (int i = 0; i < 180; i++) ck_assert(isfinite(x[i]));
            ck_assert(!isnan(r.orthogonality) && !isnan(r.worst_residual));
            if (calls <= 0) ck_assert_int_eq(r.stop, SPS_STOP_NOT_FINITE);
        }
        sps_solver_destroy(&s);
        sps_block_destroy(&X);
        sps_operator_destroy(&op);
        sps_context_destroy(&ctx);
    }
}
END_TEST

/* Verifies once more, with the first pair found replaced by zeros and the third
 * by a copy of the second. */
static void verify_spoiled(sps_context *ctx, sps_eigen *e, sps_block *X)
{
    sps_proof *q = &e->proof;
    sps_block first, second, third;

    spsi_deflation_pairs(&e->deflation, 0, 1, &first, NULL);
    spsi_deflation_pairs(&e->deflation, 1, 1, &second, NULL);
    spsi_deflation_pairs(&e->deflation, 2, 1, &third, NULL);
    OK(ctx, spsi_fill(&first, 0));
    OK(ctx, spsi_copy(&second, &third));
    OK(ctx, spsi_proof_make(q, SPS_STOP_CONVERGED, X));
    ck_assert_double_eq(q->lambda[0], 0);
    ck_assert_int_eq(q->pair[0], SPS_STOP_STAGNATED);
    ck_assert(isinf(q->residual[0]) && isinf(q->backward[0]) &&
              isinf(q->bound[0]));
    ck_assert_double_eq(q->lambda[1], q->lambda[2]);
    ck_assert_int_eq(q->pair[1], SPS_STOP_CONVERGED);
    ck_assert_int_eq(q->pair[2], SPS_STOP_STAGNATED);
    ck_assert_double_eq(q->residual[1], q->residual[2]);
    ck_assert_double_eq_tol(q->orthogonality, 1, 1e-12);
    ck_assert_int_eq(q->verdict, SPS_STOP_STAGNATED);
}

/* Within a slice of the verification, and in slices of one column. */
START_TEST(neither_zeros_nor_a_second_copy_of_a_vector_make_a_pair)
{
    enum { N = 60 };

    for (int block = 0; block < 2; block++) {
        sps_context *ctx = pencil_context(1);
        sps_csr *A = NULL;
        sps_operator *op = NULL;
        sps_solver *s = NULL;
        sps_block *X = NULL;
        sps_eigen_result r = { .struct_size = sizeof r };
        sps_options o;
        double lambda[3];

        sps_options_default(&o);
        o.solver = "lobpcg";
        o.precond = "none";
        o.block = block;
        OK(ctx, sps_csr_create(ctx, N, N, N, SPS_F64, &A));
        for (int i = 0; i < N; i++) {
            A->rowptr[i + 1] = i + 1;
            A->col[i] = i;
            ((double *)A->val)[i] = i + 1;
        }
        OK(ctx, sps_operator_csr(ctx, A, 3, NULL, &op));
        OK(ctx, sps_block_create(ctx, N, 3, &X));
        OK(ctx, sps_solver_create_eigen(op, NULL, NULL, 3, &o, &s));
        OK(ctx, sps_solver_eigen(s, X, lambda, &r));
        ck_assert_int_eq(r.stop, SPS_STOP_CONVERGED);
        verify_spoiled(ctx, s->of, X);
        sps_solver_destroy(&s);
        sps_block_destroy(&X);
        sps_operator_destroy(&op);
        sps_csr_destroy(ctx, &A);
        sps_context_destroy(&ctx);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(no_nan_comes_out_of_a_product_that_is_not_finite),
    RUNNER_TEST(the_count_finds_what_was_missed),
    RUNNER_TEST(sparse_factors_count_beyond_dense_ones),
    RUNNER_TEST(rounding_is_not_counted_as_missed),
    RUNNER_TEST(neither_zeros_nor_a_second_copy_of_a_vector_make_a_pair),
    RUNNER_TEST(a_singular_mass_matrix_is_named),
    RUNNER_TEST(an_indefinite_mass_matrix_is_named),
    RUNNER_TEST(a_tolerance_below_rounding_is_named_and_never_called_converged),
    RUNNER_TEST(a_mass_of_any_unit_has_a_bound),
    RUNNER_TEST(units_far_apart_are_no_indefinite_mass),
};

RUNNER_MAIN("eigen_proof", tests)
