/* SPDX-License-Identifier: BSD-3-Clause */
/* check_relations.c - identities that hold for any linear operator, whatever
 * its kernel: they need no oracle, so that they also detect errors that the
 * oracle shares. */
#include <check.h>
#include <math.h>

#include "tests/support/apply.h"
#include "tests/support/oracle.h"
#include "plan/planner.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* The columns of Y equal the results for single columns, within twice the error
 * bound. */
START_TEST(columns_of_a_block_equal_single_runs)
{
    const int k = 9;

    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 120, 7, ZOO_RANDOM, SPS_F64);
        sps_operator *op = operator_of(ctx, A, k);
        double *x = zoo_block(A->ncol, k, k, 3, ZOO_RANDOM);
        double *y = zeros(A->nrow * k), *bound = zeros(A->nrow * k);
        double *one = zeros(A->ncol), *single = zeros(A->nrow * k);
        double *column = zeros(A->nrow), *scratch = zeros(A->nrow * k);
        double ratio;

        apply(op, 1.0, x, 0.0, y, k);
        for (int j = 0; j < k; j++) {
            for (int64_t i = 0; i < A->ncol; i++) one[i] = x[i * k + j];
            apply(op, 1.0, one, 0.0, column, 1);
            for (int64_t i = 0; i < A->nrow; i++)
                single[i * k + j] = column[i];
        }
        oracle_spmm(A, 1.0, x, k, 0.0, scratch, k, k, bound);
        ratio = oracle_ratio(A->nrow, k, y, k, single, k, bound,
                             oracle_longest(A));
        ck_assert_msg(ratio <= 2.0, "%s: %g", zoo_name(f), ratio);
        sps_operator_destroy(&op);
        zoo_free(&A);
        free(x), free(y), free(bound), free(one);
        free(single), free(column), free(scratch);
    }
}
END_TEST

START_TEST(the_operator_is_linear)
{
    const int k = 5;

    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 120, 7, ZOO_INTEGER, SPS_F64);
        sps_operator *op = operator_of(ctx, A, k);
        double *x = zoo_block(A->ncol, k, k, 3, ZOO_INTEGER);
        double *w = zoo_block(A->ncol, k, k, 4, ZOO_INTEGER);
        double *both = zeros(A->ncol * k), *left = zeros(A->nrow * k);
        double *right = zeros(A->nrow * k);

        for (int64_t i = 0; i < A->ncol * k; i++)
            both[i] = 3.0 * x[i] - 2.0 * w[i];
        apply(op, 1.0, both, 0.0, left, k);
        apply(op, 3.0, x, 0.0, right, k);
        apply(op, -2.0, w, 1.0, right, k);
        ck_assert_int_eq(oracle_differs(A->nrow, k, left, k, right, k), -1);
        sps_operator_destroy(&op);
        zoo_free(&A);
        free(x), free(w), free(both), free(left), free(right);
    }
}
END_TEST

/* (A X)' Y = X' (A' Y): integers, so exactly. */
START_TEST(the_transpose_is_the_adjoint)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 60, 7, ZOO_INTEGER, SPS_F64), *T = NULL;
        double *x = zoo_block(A->ncol, 1, 1, 3, ZOO_INTEGER);
        double *y = zoo_block(A->nrow, 1, 1, 4, ZOO_INTEGER);
        double *ax = zeros(A->nrow), *ty = zeros(A->ncol);
        double left = 0.0, right = 0.0;
        sps_operator *op = operator_of(ctx, A, 1), *tr;

        OK(ctx, spsi_csr_transpose(ctx, A, &T));
        tr = operator_of(ctx, T, 1);
        apply(op, 1.0, x, 0.0, ax, 1);
        apply(tr, 1.0, y, 0.0, ty, 1);
        for (int64_t i = 0; i < A->nrow; i++) left += ax[i] * y[i];
        for (int64_t i = 0; i < A->ncol; i++) right += ty[i] * x[i];
        ck_assert_double_eq(left, right);
        sps_operator_destroy(&op);
        sps_operator_destroy(&tr);
        sps_csr_destroy(ctx, &T);
        zoo_free(&A);
        free(x), free(y), free(ax), free(ty);
    }
}
END_TEST

/* P A P' with the reversal P: rows and columns numbered from the end. */
START_TEST(a_permuted_matrix_gives_the_permuted_product)
{
    const int k = 4;

    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 70, 7, ZOO_INTEGER, SPS_F64), *R = NULL;
        double *x = zoo_block(A->ncol, k, k, 3, ZOO_INTEGER);
        double *flip = zeros(A->ncol * k);
        double *y = zeros(A->nrow * k), *z = zeros(A->nrow * k);
        sps_operator *op, *reversed;

        OK(ctx, sps_csr_create(ctx, A->nrow, A->ncol, A->nnz, SPS_F64, &R));
        for (int64_t i = 0, at = 0; i < A->nrow; i++) {
            const int64_t row = A->nrow - 1 - i;

            for (int64_t p = A->rowptr[row + 1] - 1; p >= A->rowptr[row];
                 p--, at++) {
                R->col[at] = (int32_t)(A->ncol - 1 - A->col[p]);
                ((double *)R->val)[at] = spsi_csr_value(A, p);
            }
            R->rowptr[i + 1] = at;
        }
        for (int64_t i = 0; i < A->ncol; i++)
            memcpy(flip + i * k, x + (A->ncol - 1 - i) * k,
                   (size_t)k * sizeof *x);
        op = operator_of(ctx, A, k);
        reversed = operator_of(ctx, R, k);
        apply(op, 1.0, x, 0.0, y, k);
        apply(reversed, 1.0, flip, 0.0, z, k);
        for (int64_t i = 0; i < A->nrow * k; i++)
            ck_assert_double_eq(y[i], z[(A->nrow - 1 - i / k) * k + i % k]);
        sps_operator_destroy(&op);
        sps_operator_destroy(&reversed);
        sps_csr_destroy(ctx, &R);
        zoo_free(&A);
        free(x), free(flip), free(y), free(z);
    }
}
END_TEST

/* A with each entry split into two, v - 3 and 3, and rows reversed with the two
 * parts far apart: as a finite element assembly may produce it. */
static sps_csr *messy(const sps_csr *A)
{
    sps_csr *B = NULL;

    OK(ctx, sps_csr_create(ctx, A->nrow, A->ncol, 2 * A->nnz, SPS_F64, &B));
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t first = A->rowptr[i], last = A->rowptr[i + 1];

        B->rowptr[i + 1] = 2 * last;
        for (int64_t p = first; p < last; p++) {
            const int64_t back = first + last - 1 - p, at = first + p;

            B->col[at] = A->col[back];
            B->col[at + last - first] = A->col[p];
            ((double *)B->val)[at] = spsi_csr_value(A, back) - 3.0;
            ((double *)B->val)[at + last - first] = 3.0;
        }
    }
    return B;
}

/* The product by this kernel, if it fits, is exact; also after a refresh. */
static void check_messy(sps_csr *B, const sps_kernel *kernel, const double *x,
                        const double *right, int k, const char *family)
{
    double *y = zeros(B->nrow * k);
    sps_operator *op = NULL;
    sps_options o;

    sps_options_default(&o);
    o.kernel = kernel->name;
    if (sps_operator_csr(ctx, B, k, &o, &op) == SPS_OK)
        for (int turn = 0; turn < 2; turn++) {
            apply(op, 1.0, x, 0.0, y, k);
            ck_assert_msg(oracle_differs(B->nrow, k, y, k, right, k) < 0,
                          "%s on %s, k %d%s", kernel->name, family, k,
                          turn ? ", refreshed" : "");
            OK(ctx, sps_operator_set_values(op, B->val, SPS_HOST));
        }
    sps_operator_destroy(&op);
    free(y);
}

/* Kernels get sorted rows without duplicates, whatever the caller's matrix is
 * like. */
START_TEST(unsorted_duplicates_reach_no_kernel)
{
    const sps_kernel *kernel;

    for (int f = 0; f < zoo_count(); f++)
        for (int k = 1; k <= 4; k += 3) {
            sps_csr *A = zoo_matrix(f, 90, 7, ZOO_INTEGER, SPS_F64);
            sps_csr *B = messy(A);
            double *x = zoo_block(A->ncol, k, k, 3, ZOO_SMALL);
            double *right = zeros(A->nrow * k);

            oracle_spmm(A, 1.0, x, k, 0.0, right, k, k, NULL);
            for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
                if (kernel->op == SPS_OP_SPMM &&
                    kernel->gives & SPS_FULL_PRECISION)
                    check_messy(B, kernel, x, right, k, zoo_name(f));
            sps_csr_destroy(ctx, &B);
            zoo_free(&A);
            free(x), free(right);
        }
}
END_TEST

/* Powers of two change exponents only: the bits must scale exactly. */
START_TEST(powers_of_two_scale_exactly)
{
    const int k = 6;

    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 120, 7, ZOO_RANDOM, SPS_F64);
        double *x = zoo_block(A->ncol, k, k, 3, ZOO_RANDOM);
        double *y = zeros(A->nrow * k), *z = zeros(A->nrow * k);
        sps_operator *op = operator_of(ctx, A, k);

        apply(op, 1.0, x, 0.0, y, k);
        for (int64_t p = 0; p < A->nnz; p++)
            ((double *)A->val)[p] = ldexp(((double *)A->val)[p], 30);
        for (int64_t i = 0; i < A->ncol * k; i++) x[i] = ldexp(x[i], -17);
        OK(ctx, sps_operator_set_values(op, A->val, SPS_HOST));
        apply(op, 0.25, x, 0.0, z, k);
        for (int64_t i = 0; i < A->nrow * k; i++)
            ck_assert_double_eq(z[i], ldexp(y[i], 11));
        sps_operator_destroy(&op);
        zoo_free(&A);
        free(x), free(y), free(z);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(columns_of_a_block_equal_single_runs),
    RUNNER_TEST(the_operator_is_linear),
    RUNNER_TEST(the_transpose_is_the_adjoint),
    RUNNER_TEST(a_permuted_matrix_gives_the_permuted_product),
    RUNNER_TEST(unsorted_duplicates_reach_no_kernel),
    RUNNER_TEST(powers_of_two_scale_exactly),
};
RUNNER_MAIN_WITHIN("relations", tests, open_context, close_context)
