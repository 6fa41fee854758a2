/* SPDX-License-Identifier: BSD-3-Clause */
/* check_device_auto.c - solver auto with a csr on a GPU: what it asks of the
 * matrix is found there, equal to what the host finds, and a solve copies
 * neither the matrix nor a column of a block. */
#include <check.h>

#include "operator/operator_matrix.h"
#include "tests/check/operator/device_csr_fixture.h"
#include "tests/problems/zoo.h"
#include "tests/support/apply.h"

/* What solver auto asks of A is found where it is stored. */
static void same_examination(const sps_operator *op, const sps_csr *A,
                             const char *what)
{
    const int widths[] = { 1, 2, 3, 6 };
    double difference[2] = { 0 };
    bool symmetric[2];

    for (int projected = 0; projected < 2; projected++) {
        sps_row_kinds got, right;

        OK(ctx, spsi_matrix_kinds(op, projected, &got));
        spsi_row_kinds_count(ctx, A, projected, &right);
        ck_assert_msg(!memcmp(&got, &right, sizeof got), "%s: other rows",
                      what);
    }
    for (int w = 0; w < 4; w++) {
        int64_t known;

        OK(ctx, spsi_matrix_known(op, widths[w], &known));
        ck_assert_msg(known == spsi_rows_known(ctx, A, widths[w]),
                      "%s, nodes of %d: %lld", what, widths[w],
                      (long long)known);
    }
    OK(ctx, spsi_operator_symmetric(op, &symmetric[0], &difference[0]));
    OK(ctx, sps_csr_symmetric(ctx, A, 1e-10, &symmetric[1], &difference[1]));
    ck_assert_msg(symmetric[0] == symmetric[1] &&
                  difference[0] == difference[1], "%s: other symmetry", what);
}

static void same_inverse(const sps_operator *op, const char *what)
{
    const int64_t n = op->n;
    sps_block *D = fixture_block(ctx, n, 1, NULL, 1);
    double *d = zeros(n), *right = zeros(n);
    int64_t zero, negative, other = 0;
    sps_diagonal_kinds k;

    OK(ctx, spsi_matrix_inverse_block(op, D, &k));
    OK(ctx, sps_block_get(D, 0, 1, d, 1, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, spsi_matrix_inverse_diagonal(op, right, &zero, &negative));
    for (int64_t i = 1; i < n; i++) other |= right[i] != right[0];
    ck_assert_msg(!memcmp(d, right, (size_t)n * sizeof *d) &&
                  k.zero == zero && k.negative == negative &&
                  !k.other == !other, "%s: another inverse", what);
    sps_block_destroy(&D);
    free(d);
    free(right);
}

START_TEST(a_matrix_is_examined_where_it_is_stored)
{
    for (int f = 0; f < zoo_count(); f++)
        for (int v = 0; v < 6; v++) {
            sps_csr *A = zoo_matrix(f, v < 3 ? 333 : 5000, 7,
                                    v % 3 == 0   ? ZOO_RANDOM
                                    : v % 3 == 1 ? ZOO_SPD
                                                 : ZOO_LAPLACIAN,
                                    v % 2 ? SPS_F32 : SPS_F64);
            sps_csr *D = on_gpu() ? lay_down(A) : NULL;
            sps_operator *op = operator_of(ctx, D ? D : A, 1);

            same_examination(op, A, zoo_name(f));
            same_inverse(op, zoo_name(f));
            ck_assert_msg(!D || A->nnz == 0 || !op->A->rowptr,
                          "%s: entries on the host", zoo_name(f));
            sps_operator_destroy(&op);
            sps_csr_destroy(ctx, &D);
            zoo_free(&A);
        }
}
END_TEST

/* Sets up solver auto and solves with B and X on the GPU; returns the bytes
 * copied between host and GPU. */
static int64_t bytes_of_auto(sps_csr *A, unsigned props)
{
    sps_block *B = fixture_block(ctx, A->nrow, 4, NULL, 4);
    sps_block *X = fixture_block(ctx, A->nrow, 4, NULL, 4);
    sps_result result = { .struct_size = sizeof result };
    int64_t before;
    sps_operator *op;
    sps_solver *s = NULL;
    sps_csr *D;

    A->props = (A->props & ~(unsigned)(SPS_SYMMETRIC | SPS_SPD)) | props;
    D = lay_down(A);
    OK(ctx, sps_block_random(B, 3));
    before = bytes_moved();
    op = operator_of(ctx, D, 4);
    OK(ctx, sps_solver_create(op, NULL, 4, NULL, &s));
    OK(ctx, sps_solver_linear(s, B, X, &result));
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    before = bytes_moved() - before;
    ck_assert_ptr_null(op->A->rowptr);
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    sps_csr_destroy(ctx, &D);
    return before;
}

/* Neither the matrix, of 12 bytes an entry, nor a column of a block, of 8 a
 * row, passes the host: with 8 times the rows less than 4 bytes a row more. */
START_TEST(auto_solves_a_symmetric_matrix_without_the_host)
{
    static const char *const family[] = { "grid7", "grid27" };

    if (!on_gpu()) runner_leave_out("a csr on a GPU");
    for (int f = 0; f < 2; f++)
        for (int declared = 0; declared < 2; declared++) {
            int64_t bytes[2];

            for (int i = 0; i < 2; i++) {
                sps_csr *A = zoo_matrix(zoo_find(family[f]), i ? 64000 : 8000,
                                        7, ZOO_SPD, SPS_F64);

                bytes[i] = bytes_of_auto(A, declared ? SPS_SPD : 0);
                zoo_free(&A);
            }
            ck_assert_msg(bytes[1] - bytes[0] < 4 * 56000,
                          "%s: %lld bytes, then %lld", family[f],
                          (long long)bytes[0], (long long)bytes[1]);
        }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_matrix_is_examined_where_it_is_stored),
    RUNNER_TEST(auto_solves_a_symmetric_matrix_without_the_host),
};
RUNNER_MAIN_WITHIN("auto on the device", tests, open_context, close_context)
