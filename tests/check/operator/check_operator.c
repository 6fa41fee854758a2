/* SPDX-License-Identifier: BSD-3-Clause */
/* check_operator.c - operators: ownership of arrays, new values, blocks wider
 * than the plan, errors.  Callbacks: check_callback.c. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "tests/support/apply.h"
#include "block/block.h"
#include "operator/operator.h"
#include "tests/support/oracle.h"
#include "operator/reorder.h"
#include "plan/planner.h"
#include "tests/support/runner.h"
#include "driver/linear.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* The operator times integers equals the oracle, bit for bit. */
static void expect(const sps_operator *op, const sps_csr *A, int k)
{
    double *x = zoo_block(A->ncol, k, k, 3, ZOO_INTEGER);
    double *y = zeros(A->nrow * k), *right = zeros(A->nrow * k);
    int64_t at;

    oracle_spmm(A, 1.0, x, k, 0.0, right, k, k, NULL);
    apply(op, 1.0, x, 0.0, y, k);
    at = oracle_differs(A->nrow, k, y, k, right, k);
    ck_assert_msg(at < 0, "k %d: element %lld is %g, not %g", k,
                  (long long)at, y[at], right[at]);
    free(x);
    free(y);
    free(right);
}

static sps_csr *matrix(const char *family, int64_t n, zoo_values values)
{
    return zoo_matrix(zoo_find(family), n, 7, values, SPS_F64);
}

/* ---------------------------------------------------------------- ownership */

/* A 3 x 3 matrix with unsorted rows and duplicates, and the matrix it
 * represents. */
static int64_t messy_rowptr[] = { 0, 3, 5, 8 };
static int32_t messy_col[] = { 2, 0, 2, 1, 0, 1, 1, 1 };
static double messy_val[] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static void clean_values(const double *v, double *sum)
{
    const double s[] = { v[1], v[0] + v[2], v[4], v[3], v[5] + v[6] + v[7] };

    memcpy(sum, s, sizeof s);
}

static sps_csr *clean(double *sum)
{
    static int64_t rowptr[] = { 0, 2, 4, 5 };
    static int32_t col[] = { 0, 2, 0, 1, 1 };
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, 3, 3, 5, rowptr, col, sum, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    return A;
}

START_TEST(unsorted_input_is_copied_not_changed)
{
    int64_t rowptr[4];
    int32_t col[8];
    double val[8], sum[5];
    sps_csr *A = NULL, *B;
    sps_operator *op;

    memcpy(rowptr, messy_rowptr, sizeof rowptr);
    memcpy(col, messy_col, sizeof col);
    memcpy(val, messy_val, sizeof val);
    OK(ctx, sps_csr_wrap(ctx, 3, 3, 8, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    op = operator_of(ctx, A, 4);
    ck_assert(fixture_noted(ctx, "sorted"));
    ck_assert(!memcmp(rowptr, messy_rowptr, sizeof rowptr));
    ck_assert(!memcmp(col, messy_col, sizeof col));
    ck_assert(!memcmp(val, messy_val, sizeof val));
    ck_assert_int_eq(A->nnz, 8);
    clean_values(val, sum);
    B = clean(sum);
    expect(op, B, 4);
    expect(op, B, 1);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &B);
}
END_TEST

START_TEST(new_values_come_in_the_callers_order)
{
    const double fresh[] = { -1, 10, 4, 7, 100, 1, 2, 4 };
    double sum[5];
    sps_csr *A = NULL, *B;
    sps_operator *op;

    OK(ctx, sps_csr_wrap(ctx, 3, 3, 8, messy_rowptr, messy_col, messy_val,
                         SPS_F64, SPS_HOST, SPS_BORROW, &A));
    op = operator_of(ctx, A, 4);
    OK(ctx, sps_operator_set_values(op, fresh, SPS_HOST));
    clean_values(fresh, sum);
    B = clean(sum);
    expect(op, B, 3);
    expect(op, B, 1);
    OK(ctx, sps_operator_set_values(op, messy_val, SPS_HOST));
    clean_values(messy_val, sum);
    expect(op, B, 3);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    sps_csr_destroy(ctx, &B);
}
END_TEST

START_TEST(new_values_leave_the_callers_alone)
{
    for (int d = 0; d < 2; d++) {
        sps_csr *A = zoo_matrix(zoo_find("uniform"), 60, 7, ZOO_INTEGER,
                                (sps_dtype)d);
        sps_csr *B = zoo_matrix(zoo_find("uniform"), 60, 7, ZOO_INTEGER,
                                (sps_dtype)d);
        const double before = spsi_csr_value(A, 5);
        sps_operator *op = operator_of(ctx, A, 8);

        for (int64_t p = 0; p < B->nnz; p++)
            if (d == 0)
                ((double *)B->val)[p] = (double)(p % 19);
            else
                ((float *)B->val)[p] = (float)(p % 19);
        OK(ctx, sps_operator_set_values(op, B->val, SPS_HOST));
        expect(op, B, 8);
        expect(op, B, 1);
        ck_assert(spsi_csr_value(A, 5) == before);
        OK(ctx, sps_operator_set_values(op, A->val, SPS_HOST));
        expect(op, A, 8);
        /* Changed in place, followed by a call that announces it. */
        memcpy(A->val, B->val, (size_t)A->nnz * (d == 0 ? 8 : 4));
        OK(ctx, sps_operator_set_values(op, A->val, SPS_HOST));
        expect(op, B, 8);
        sps_operator_destroy(&op);
        zoo_free(&A);
        zoo_free(&B);
    }
}
END_TEST

/* On a GPU: arrays in device memory are used without a copy. */
START_TEST(a_matrix_in_the_place_of_the_context_serves)
{
    sps_csr *A = matrix("grid7", 200, ZOO_INTEGER), *D = NULL, *C = NULL;
    sps_csr *B = matrix("grid7", 200, ZOO_INTEGER);
    sps_operator *op;
    const sps_backend *b = ctx->backend;
    const size_t bytes[] = { (size_t)(A->nrow + 1) * sizeof *A->rowptr,
                             (size_t)A->nnz * sizeof *A->col,
                             (size_t)A->nnz * sizeof(double) };
    const void *from[] = { A->rowptr, A->col, A->val };
    void *p[3];

    for (int i = 0; i < 3; i++) {
        OK(ctx, b->alloc(ctx, bytes[i], &p[i]));
        OK(ctx, b->upload(ctx, p[i], from[i], bytes[i]));
    }
    OK(ctx, sps_csr_wrap(ctx, A->nrow, A->ncol, A->nnz, p[0], p[1], p[2],
                         SPS_F64, b->place, SPS_BORROW, &D));
    OK(ctx, sps_csr_wrap(ctx, A->nrow, A->ncol, A->nnz, p[0], p[1], p[2],
                         SPS_F64, b->place, SPS_COPY, &C));
    op = operator_of(ctx, D, 8);
    ck_assert_ptr_eq(op->local.val, p[2]);
    expect(op, A, 8);
    /* New values from device memory. */
    for (int64_t q = 0; q < B->nnz; q++)
        ((double *)B->val)[q] = (double)(q % 23);
    OK(ctx, b->upload(ctx, p[2], B->val, bytes[2]));
    OK(ctx, sps_operator_set_values(op, p[2], b->place));
    expect(op, B, 8);
    OK(ctx, sps_operator_set_values(op, A->val, SPS_HOST));
    expect(op, A, 8);
    OK(ctx, sps_operator_set_values(op, p[2], b->place));
    expect(op, B, 8);
    sps_operator_destroy(&op);
    op = operator_of(ctx, C, 3);        /* the copy kept the old values */
    expect(op, A, 3);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &D);
    for (int i = 0; i < 3; i++) b->release(ctx, p[i], bytes[i]);
    zoo_free(&A);
    zoo_free(&B);
}
END_TEST

/* ------------------------------------------------------------------ apply */

START_TEST(every_family_and_width_is_exact)
{
    const int widths[] = { 1, 3, 16 };

    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 0; n <= 90; n += 45)
            for (int w = 0; w < 3; w++) {
                sps_csr *A = zoo_matrix(f, n, 7, ZOO_INTEGER, SPS_F64);
                sps_operator *op = operator_of(ctx, A, widths[w]);

                expect(op, A, 1);
                expect(op, A, widths[w]);
                sps_operator_destroy(&op);
                zoo_free(&A);
            }
}
END_TEST

START_TEST(blocks_wider_than_the_plan_go_in_slices)
{
    sps_csr *A = matrix("uniform", 90, ZOO_INTEGER);
    sps_operator *op = operator_of(ctx, A, 4);

    for (int k = 1; k <= 14; k++) expect(op, A, k);
    expect(op, A, 100);
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

START_TEST(the_plain_kernel_agrees)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 80, 7, ZOO_INTEGER, SPS_F64);
        sps_operator *op = operator_of(ctx, A, 5);
        double *x = zoo_block(A->ncol, 7, 7, 3, ZOO_INTEGER);
        double *right = zeros(A->nrow * 7), *y = zeros(A->nrow * 7);
        sps_block *X = fixture_block(ctx, A->ncol, 7, x, 7);
        sps_block *Y = fixture_block(ctx, A->nrow, 7, NULL, 7);

        oracle_spmm(A, -2.0, x, 7, 0.0, right, 7, 7, NULL);
        OK(ctx, spsi_operator_apply_plain(op, -2.0, X, 0.0, Y));
        OK(ctx, sps_block_get(Y, 0, 7, y, 7, SPS_ROW_MAJOR, SPS_HOST));
        ck_assert_int_eq(oracle_differs(A->nrow, 7, y, 7, right, 7), -1);
        sps_block_destroy(&X);
        sps_block_destroy(&Y);
        sps_operator_destroy(&op);
        zoo_free(&A);
        free(x);
        free(y);
        free(right);
    }
}
END_TEST

START_TEST(one_kernel_is_for_checks)
{
    const sps_kernel *kernel;
    int count = 0;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        count += (kernel->gives & SPS_FOR_CHECKS) != 0;
    ck_assert_int_eq(count, 1);
}
END_TEST

START_TEST(wrong_arguments_are_refused_with_their_shapes)
{
    sps_csr *A = matrix("wide", 30, ZOO_INTEGER);   /* 30 x 90 */
    sps_operator *op = operator_of(ctx, A, 4), *none = NULL;
    sps_block *X = fixture_block(ctx, A->ncol, 4, NULL, 4);
    sps_block *Y = fixture_block(ctx, A->nrow, 4, NULL, 4);
    sps_block *Z = fixture_block(ctx, A->nrow, 3, NULL, 3);

    ck_assert_int_eq(sps_operator_apply(op, 1.0, Y, 0.0, X), SPS_ESHAPE);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "30 x 90"));
    ck_assert_int_eq(sps_operator_apply(op, 1.0, X, 0.0, Z), SPS_ESHAPE);
    ck_assert_int_eq(sps_operator_apply(op, 1.0, X, 0.0, X), SPS_ESHAPE);
    ck_assert_int_eq(sps_operator_apply(NULL, 1.0, X, 0.0, Y), SPS_EINVAL);
    ck_assert_int_eq(sps_operator_apply(op, 1.0, NULL, 0.0, Y), SPS_EINVAL);
    ck_assert_int_eq(sps_operator_csr(ctx, A, 0, NULL, &none), SPS_EINVAL);
    ck_assert_int_eq(sps_operator_csr(ctx, NULL, 1, NULL, &none), SPS_EINVAL);
    ck_assert_int_eq(sps_operator_csr(NULL, A, 1, NULL, &none), SPS_EINVAL);
    ck_assert_int_eq(sps_operator_set_values(op, NULL, SPS_HOST), SPS_EINVAL);
    ck_assert_int_eq(sps_operator_set_values(NULL, A->val, SPS_HOST),
                     SPS_EINVAL);
    A->col[0] = -1;
    ck_assert_int_eq(sps_operator_csr(ctx, A, 1, NULL, &none), SPS_EMATRIX);
    ck_assert_ptr_null(none);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&Z);
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

START_TEST(input_and_output_must_not_be_the_same)
{
    sps_csr *A = matrix("grid5", 30, ZOO_INTEGER);
    sps_operator *op = operator_of(ctx, A, 2);
    sps_block *X = fixture_block(ctx, A->nrow, 2, NULL, 2);

    ck_assert_int_eq(sps_operator_apply(op, 1.0, X, 0.0, X), SPS_EINVAL);
    sps_block_destroy(&X);
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

/* X and Y of 3 columns each within one array of 2 n x 8 numbers, from column
 * `first` and row `row` on; returns whether the operator accepts them. */
static bool takes(const sps_operator *op, sps_block *whole, int x_first,
                  int y_first, int64_t y_row)
{
    int64_t ld;
    double *data = sps_block_data(whole, &ld);
    sps_block *X = NULL, *Y = NULL;
    sps_status st;

    OK(ctx, sps_block_wrap(ctx, op->n, 3, data + x_first, ld, &X));
    OK(ctx, sps_block_wrap(ctx, op->n, 3, data + y_row * ld + y_first, ld,
                           &Y));
    st = sps_operator_apply(op, 1.0, X, 0.0, Y);
    if (st != SPS_OK) {
        ck_assert_int_eq(st, SPS_EINVAL);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "share memory"));
    }
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    return st == SPS_OK;
}

START_TEST(views_that_meet_are_refused_and_neighbours_are_not)
{
    sps_csr *A = matrix("grid5", 30, ZOO_INTEGER);
    sps_operator *op = operator_of(ctx, A, 3);
    sps_block *whole = fixture_block(ctx, 2 * A->nrow, 8, NULL, 8);
    const int64_t n = A->nrow;

    ck_assert(!takes(op, whole, 0, 2, 0));
    ck_assert(!takes(op, whole, 2, 0, 0));
    ck_assert(!takes(op, whole, 0, 0, 1));
    ck_assert(!takes(op, whole, 0, 1, n - 1));
    ck_assert(!takes(op, whole, 5, 3, n - 1));
    ck_assert(takes(op, whole, 0, 3, 0));
    ck_assert(takes(op, whole, 5, 0, 0));
    ck_assert(takes(op, whole, 5, 0, 1));
    ck_assert(takes(op, whole, 0, 0, n));
    ck_assert(takes(op, whole, 0, 2, n));
    sps_block_destroy(&whole);
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

/* --------------------------------------------------------------- NaN in X */

static sps_operator *strict_operator(sps_csr *A, int width, const char *order)
{
    sps_operator *op = NULL;
    sps_options o;

    sps_options_default(&o);
    o.strict_nonfinite = true;
    o.reorder = order;
    OK(ctx, sps_operator_csr(ctx, A, width, &o, &op));
    return op;
}

/* Infinity in row c of X, column 1: rows that store column c get it, all others
 * equal the product with a finite X. */
static void spoil(const sps_operator *op, const sps_csr *A, int64_t c)
{
    double *x = zoo_block(A->ncol, 4, 4, 3, ZOO_INTEGER);
    double *right = zeros(A->nrow * 4), *y = zeros(A->nrow * 4);

    oracle_spmm(A, 1.0, x, 4, 0.0, right, 4, 4, NULL);
    x[4 * c + 1] = INFINITY;
    apply(op, 1.0, x, 0.0, y, 4);
    for (int64_t i = 0; i < A->nrow; i++) {
        double a = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == c) a = spsi_csr_value(A, p);
        if (a != 0) right[4 * i + 1] = a * INFINITY;
    }
    ck_assert_int_eq(oracle_differs(A->nrow, 4, y, 4, right, 4), -1);
    free(x);
    free(y);
    free(right);
}

START_TEST(strict_operators_take_kernels_that_keep_nan_in_its_rows)
{
    static const char *const families[] = { "grid27_dof3", "blocks8",
                                            "nodes6", "uniform" };

    for (int f = 0; f < 4; f++) {
        sps_csr *A = matrix(families[f], 600, ZOO_INTEGER);
        sps_operator *op = strict_operator(A, 4, f == 0 ? "rcm" : "none");
        char text[16384];

        ck_assert(op->block->kernel->gives & SPS_NAN_STAYS_IN_ROW);
        ck_assert(op->vector->kernel->gives & SPS_NAN_STAYS_IN_ROW);
        if (op->reordered) {
            ck_assert(op->reordered->inner->strict);
            ck_assert(op->reordered->forth->strict);
        }
        sps_operator_describe(op, text, sizeof text);
        ck_assert_ptr_nonnull(strstr(text, "no: lets NaN spread to other rows"));
        spoil(op, A, 0);
        spoil(op, A, A->ncol / 2);
        sps_operator_destroy(&op);
        zoo_free(&A);
    }
}
END_TEST

static double norm_of(const sps_csr *A)
{
    double scratch[8], norm = -1;
    sps_operator *op = NULL;
    sps_block *V = fixture_block(ctx, A->nrow, 4, NULL, 0);
    sps_block *W = fixture_block(ctx, A->nrow, 4, NULL, 0);

    OK(ctx, sps_operator_csr(ctx, (sps_csr *)A, 4, NULL, &op));
    OK(ctx, spsi_norm_estimate(op, V, W, scratch, &norm));
    sps_operator_destroy(&op);
    sps_block_destroy(&V);
    sps_block_destroy(&W);
    return norm;
}

/* The Laplacian of a grid: ||A|| is slightly below 8.  Symmetric matrices are
 * estimated with fewer products, and scaling must not change the estimate. */
START_TEST(the_norm_is_estimated_from_below_in_any_unit)
{
    sps_csr *A = matrix("grid5", 900, ZOO_LAPLACIAN);
    const double norm = norm_of(A);

    ck_assert_msg(norm > 6.4 && norm < 8, "%g", norm);
    for (int e = -900; e <= 900; e += 300) {
        sps_csr *B = matrix("grid5", 900, ZOO_LAPLACIAN);

        for (int64_t p = 0; p < B->nnz; p++)
            ((double *)B->val)[p] = ldexp(((double *)A->val)[p], e);
        for (int general = 0; general < 2; general++) {
            if (general) B->props = 0;
            ck_assert_msg(fabs(ldexp(norm_of(B), -e) - norm) < 1e-12, "%d %d %g", e, general, ldexp(norm_of(B), -e));
        }
        zoo_free(&B);
    }
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(unsorted_input_is_copied_not_changed),
    RUNNER_TEST(new_values_come_in_the_callers_order),
    RUNNER_TEST(new_values_leave_the_callers_alone),
    RUNNER_TEST(a_matrix_in_the_place_of_the_context_serves),
    RUNNER_TEST(every_family_and_width_is_exact),
    RUNNER_TEST(blocks_wider_than_the_plan_go_in_slices),
    RUNNER_TEST(the_plain_kernel_agrees),
    RUNNER_TEST(one_kernel_is_for_checks),
    RUNNER_TEST(wrong_arguments_are_refused_with_their_shapes),
    RUNNER_TEST(input_and_output_must_not_be_the_same),
    RUNNER_TEST(views_that_meet_are_refused_and_neighbours_are_not),
    RUNNER_TEST(strict_operators_take_kernels_that_keep_nan_in_its_rows),
    RUNNER_TEST(the_norm_is_estimated_from_below_in_any_unit),
};
RUNNER_MAIN_WITHIN("operator", tests, open_context, close_context)
