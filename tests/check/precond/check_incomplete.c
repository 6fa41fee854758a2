/* SPDX-License-Identifier: BSD-3-Clause */
/* check_incomplete.c - incomplete factorisations: exact where nothing is
 * dropped, shifted where a pivot fails, rejected where they do not fit. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/precond.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

static sps_context *ctx;
static sps_options opt;

static void set_up(void)
{
    ctx = runner_context();
    sps_options_default(&opt);
}

static void tear_down(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    OK(ctx, sps_context_information(ctx, &info));
    ck_assert_int_eq(info.live_objects, 0);
    sps_context_destroy(&ctx);
}

static bool noted(const char *part)
{
    const char *note;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        if (strstr(note, part)) return true;
    return false;
}

/* A as csr from a dense n x n array, zeros not stored. */
static sps_csr *from_dense(int n, const double *a)
{
    sps_csr *A = NULL;
    int64_t q = 0;

    OK(ctx, sps_csr_create(ctx, n, n, n * n, SPS_F64, &A));
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            if (a[i * n + j] != 0) {
                A->col[q] = j;
                ((double *)A->val)[q++] = a[i * n + j];
            }
        A->rowptr[i + 1] = q;
    }
    A->nnz = q;
    return A;
}

/* Largest |M A x - x| over random x in [-1/2, 1/2). */
static double inverse_error(sps_csr *A, const char *name, int k)
{
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_block *X = NULL, *Y = NULL, *Z = NULL;
    double *x = calloc((size_t)(A->nrow * k + 1), sizeof *x), *z, worst = 0;

    z = calloc((size_t)(A->nrow * k + 1), sizeof *z);
    opt.precond = name;
    OK(ctx, sps_operator_csr(ctx, A, k, NULL, &op));
    OK(ctx, sps_precond_create(op, k, &opt, &M));
    OK(ctx, sps_block_create(ctx, A->nrow, k, &X));
    OK(ctx, sps_block_create(ctx, A->nrow, k, &Y));
    OK(ctx, sps_block_create(ctx, A->nrow, k, &Z));
    OK(ctx, sps_block_random(X, 11));
    OK(ctx, sps_operator_apply(op, 1, X, 0, Y));
    OK(ctx, sps_precond_apply(M, Y, Z));
    OK(ctx, sps_block_get(X, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, sps_block_get(Z, 0, k, z, k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < A->nrow * k; i++)
        worst = fmax(worst, isnan(z[i]) ? INFINITY : fabs(x[i] - z[i]));
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&Z);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    free(x);
    free(z);
    return worst;
}

/* Neither pattern has fill: the incomplete factors are the exact ones. */
START_TEST(factors_without_fill_are_the_inverse)
{
    static const char *const names[] = {"ilu0", "ic0"};
    static const char *const families[] = {"diagonal", "tridiagonal",
                                           "block_dense"};

    for (int t = 0; t < 2; t++)
        for (int f = 0; f < 3; f++)
            for (int type = 0; type < 2; type++) {
                sps_csr *A = zoo_matrix(zoo_find(families[f]), 500, 7, ZOO_SPD,
                                        type ? SPS_F32 : SPS_F64);
                double e = inverse_error(A, names[t], 5);

                ck_assert_msg(e < 1e-12, "%s %s: %g", names[t], families[f],
                              e);
                zoo_free(&A);
            }
}
END_TEST

/* Dense blocks: the pattern of the lower triangle contains its inverse. */
START_TEST(fsai_and_isai_are_the_inverse_where_the_pattern_holds_it)
{
    for (int t = 0; t < 4; t++) {
        sps_csr *A = zoo_matrix(zoo_find("block_dense"), 300, 7, ZOO_SPD,
                                SPS_F64);
        double e;

        for (int64_t i = 0; t % 2 && i < A->nrow; i++)
            for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                if (A->col[p] > i) ((double *)A->val)[p] *= -0.5;
        if (t % 2) A->props = 0;
        e = inverse_error(A, t < 2 ? "fsai" : "isai", 4);
        ck_assert_msg(e < 1e-12, "%s, %s: %g", t < 2 ? "fsai" : "isai",
                      t % 2 ? "nonsymmetric" : "symmetric", e);
        zoo_free(&A);
    }
}
END_TEST

/* All powers of a short tridiagonal matrix: the whole inverse. */
START_TEST(fsai_takes_powers_of_the_pattern)
{
    double last = INFINITY;

    for (opt.power = 1; opt.power <= 8; opt.power++) {
        sps_csr *A = zoo_matrix(zoo_find("tridiagonal"), 9, 7, ZOO_SPD,
                                SPS_F64);
        double e = inverse_error(A, "fsai", 2);

        ck_assert_msg(e < last || e < 1e-14, "power %d: %g", opt.power, e);
        last = e;
        zoo_free(&A);
    }
    ck_assert(last < 1e-13);
}
END_TEST

START_TEST(fsai_keeps_the_diagonal_where_a_row_is_not_definite)
{
    const double a[] = {1, 3, 0,
                        3, 1, 0,
                        0, 0, 2};
    sps_csr *A = from_dense(3, a);

    ck_assert(isfinite(inverse_error(A, "fsai", 1)));
    ck_assert(noted("fsai: 1 of 3 rows are reduced to their diagonal"));
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* Nothing dropped: exact for any matrix, in any order, at any scaling. */
START_TEST(ilut_without_dropping_is_the_inverse)
{
    static const char *const scales[] = {"auto", "none", "equilibrate",
                                         "match"};
    static const char *const orders[] = {"auto", "none", "rcm", "degree"};

    opt.droptol = 0;
    opt.fill = 1e6;
    for (int f = 0; f < zoo_count(); f++) {
        if (!zoo_symmetric(f)) continue;
        for (int t = 0; t < 16; t++) {
            sps_csr *A = zoo_matrix(f, 200, 7, ZOO_SPD, SPS_F64);
            double e;

            opt.scale = scales[t / 4];
            opt.order = orders[t % 4];
            for (int64_t i = 0; i < A->nrow; i++)   /* no longer symmetric */
                for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                    ((double *)A->val)[p] *= ldexp(1, (int)(i % 11)) *
                                             (A->col[p] > i ? -1 : 1);
            e = inverse_error(A, "ilut", 3);
            ck_assert_msg(e < 1e-8, "%s %s %s: %g", zoo_name(f), opt.scale,
                          opt.order, e);
            zoo_free(&A);
        }
    }
}
END_TEST

/* Zeros on the diagonal, and rows whose scales differ by 1e12. */
/* M of small integers, with ties in magnitude and with pivoting, by this number
 * of threads. */
static void apply_by(int threads, double *z, int64_t n)
{
    sps_context_options co;
    sps_context *own = NULL;
    sps_operator *op = NULL;
    sps_precond *M = NULL;
    sps_block *R = NULL, *Z = NULL;
    sps_csr *A = zoo_matrix(zoo_find("grid5"), n, 3, ZOO_RANDOM, SPS_F64);

    for (int64_t q = 0; q < A->nnz; q++)
        ((double *)A->val)[q] = (double)(q * 7 % 5) - 1;
    sps_context_options_default(&co);
    co.place = runner_place();
    co.threads = threads;
    ck_assert_int_eq(sps_context_create(&co, &own, NULL), SPS_OK);
    opt.precond = "ilut";
    opt.scale = "none";
    opt.droptol = 1e-4;
    opt.fill = 3;
    OK(own, sps_operator_csr(own, A, 1, NULL, &op));
    OK(own, sps_precond_create(op, 1, &opt, &M));
    OK(own, sps_block_create(own, A->nrow, 1, &R));
    OK(own, sps_block_create(own, A->nrow, 1, &Z));
    OK(own, sps_block_random(R, 5));
    OK(own, sps_precond_apply(M, R, Z));
    OK(own, sps_block_get(Z, 0, 1, z, 1, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&R);
    sps_block_destroy(&Z);
    sps_precond_destroy(&M);
    sps_operator_destroy(&op);
    sps_context_destroy(&own);
    zoo_free(&A);
}

START_TEST(ilut_has_the_same_bits_for_any_number_of_threads)
{
    enum { N = 900 };
    double one[N], more[N];

    apply_by(1, one, N);
    for (int threads = 2; threads < 6; threads += 3) {
        apply_by(threads, more, N);
        ck_assert(memcmp(one, more, sizeof one) == 0);
    }
    ck_assert(isfinite(one[0]));
}
END_TEST

START_TEST(ilut_moves_zeros_off_the_diagonal)
{
    const double a[] = {0, 2e12, 0, 0,
                        1, 0, 0, 3,
                        0, 0, 0, 1e-3,
                        4, 0, 5e6, 0};
    sps_csr *A = from_dense(4, a);

    opt.droptol = 0;
    ck_assert(inverse_error(A, "ilut", 1) < 1e-13);
    ck_assert(noted("4 diagonal entries are zero or small"));
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(ilut_refuses_a_matrix_singular_by_its_pattern)
{
    const double a[] = {1, 1, 1,
                        0, 0, 2,
                        0, 0, 3};
    sps_csr *A = from_dense(3, a);
    sps_operator *op = NULL;
    sps_precond *M = NULL;

    opt.precond = "ilut";
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    ck_assert_int_eq(sps_precond_create(op, 1, &opt, &M), SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(ctx), "structurally singular"));
    ck_assert(strstr(sps_context_error(ctx), "2 of 3"));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(ilut_replaces_a_pivot_that_vanishes_and_tells)
{
    const double a[] = {1, 2,
                        2, 4};
    sps_csr *A = from_dense(2, a);

    ck_assert(isfinite(inverse_error(A, "ilut", 1)));
    ck_assert(noted("ilut: 1 pivot vanished"));
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(an_empty_matrix_is_factored)
{
    sps_csr *A = zoo_matrix(zoo_find("diagonal"), 0, 7, ZOO_SPD, SPS_F64);

    ck_assert(inverse_error(A, "ilu0", 2) == 0);
    ck_assert(inverse_error(A, "ic0", 2) == 0);
    ck_assert(inverse_error(A, "ilut", 2) == 0);
    zoo_free(&A);
}
END_TEST

/* The diagonal entry is not stored, but is filled in by elimination. */
START_TEST(an_absent_diagonal_entry_may_fill_in)
{
    const double a[] = {2, 1, 0,
                        1, 0, 1,
                        0, 1, 3};
    sps_csr *A = from_dense(3, a);

    ck_assert(inverse_error(A, "ilu0", 1) < 1e-15);
    ck_assert(!noted("shifted"));
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(a_zero_pivot_is_shifted_and_told)
{
    const double a[] = {0, 1,
                        1, 0};
    sps_csr *A = from_dense(2, a);
    double e = inverse_error(A, "ilu0", 1);

    ck_assert_msg(isfinite(e), "%g", e);
    ck_assert(noted("ilu0: no usable pivot in row 1; the diagonal was"));
    ck_assert(noted("ilut permutes rows to avoid zeros"));
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* Options of ilut that ilu0 and ic0 ignore are reported in a note. */
START_TEST(an_order_that_changes_nothing_is_told)
{
    const double a[] = {2, 1,
                        1, 2};
    sps_csr *A = from_dense(2, a);

    inverse_error(A, "ilu0", 1);
    inverse_error(A, "ic0", 1);
    ck_assert(!noted("have no effect"));
    opt.order = "rcm";
    inverse_error(A, "ilu0", 1);
    ck_assert(noted("ilu0: the options scale auto and order rcm apply"));
    opt.order = "auto";
    opt.scale = "equilibrate";
    inverse_error(A, "ic0", 1);
    ck_assert(noted("ic0: the options scale equilibrate and order auto"));
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* Kershaw's matrix (1978): positive definite, but the third pivot of the
 * factorisation without fill is negative. */
START_TEST(a_negative_pivot_is_shifted_and_told)
{
    const double a[] = {3, -2, 0, 2,
                        -2, 3, -2, 0,
                        0, -2, 3, -2,
                        2, 0, -2, 3};
    sps_csr *A = from_dense(4, a);

    ck_assert(isfinite(inverse_error(A, "ic0", 1)));
    ck_assert(noted("ic0: no usable pivot in row 4"));
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(ic0_refuses_a_nonsymmetric_matrix)
{
    const double a[] = {2, 1, 0, 2};
    sps_csr *A = from_dense(2, a);
    sps_operator *op = NULL;
    sps_precond *M = NULL;

    opt.precond = "ic0";
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    ck_assert_int_eq(sps_precond_create(op, 1, &opt, &M), SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(ctx), "symmetric"));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(numbers_that_are_not_finite_are_refused)
{
    const double a[] = {NAN, 1, 1, 2};
    sps_csr *A = from_dense(2, a);
    sps_operator *op = NULL;
    sps_precond *M = NULL;

    opt.precond = "ilu0";
    OK(ctx, sps_operator_csr(ctx, A, 1, NULL, &op));
    ck_assert_int_eq(sps_precond_create(op, 1, &opt, &M), SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(ctx), "pivot"));
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(factors_without_fill_are_the_inverse),
    RUNNER_TEST(fsai_and_isai_are_the_inverse_where_the_pattern_holds_it),
    RUNNER_TEST(fsai_takes_powers_of_the_pattern),
    RUNNER_TEST(fsai_keeps_the_diagonal_where_a_row_is_not_definite),
    RUNNER_TEST(ilut_without_dropping_is_the_inverse),
    RUNNER_TEST(ilut_has_the_same_bits_for_any_number_of_threads),
    RUNNER_TEST(ilut_moves_zeros_off_the_diagonal),
    RUNNER_TEST(ilut_refuses_a_matrix_singular_by_its_pattern),
    RUNNER_TEST(ilut_replaces_a_pivot_that_vanishes_and_tells),
    RUNNER_TEST(an_empty_matrix_is_factored),
    RUNNER_TEST(an_absent_diagonal_entry_may_fill_in),
    RUNNER_TEST(a_zero_pivot_is_shifted_and_told),
    RUNNER_TEST(an_order_that_changes_nothing_is_told),
    RUNNER_TEST(a_negative_pivot_is_shifted_and_told),
    RUNNER_TEST(ic0_refuses_a_nonsymmetric_matrix),
    RUNNER_TEST(numbers_that_are_not_finite_are_refused),
};
RUNNER_MAIN_WITHIN("check_incomplete", tests, set_up, tear_down)
