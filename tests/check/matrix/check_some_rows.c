/* SPDX-License-Identifier: BSD-3-Clause */
/* check_some_rows.c - few rows of a matrix: those that leave a range of
 * columns, copies of rows, and matrices with rows from two others, entry for
 * entry, in host memory or that of a GPU. */
#include <stdlib.h>
#include <string.h>

#include "core/backend.h"
#include "matrix/coarsening.h"
#include "matrix/some_rows.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

enum { SOME = 37 };

/* A copy of A where the suite runs, which sps_csr_destroy frees. */
static sps_csr *there(sps_context *ctx, const sps_csr *A)
{
    sps_csr *B = NULL;

    if (spsi_coarsening(ctx))
        OK(ctx, spsi_csr_upload(ctx, A, &B));
    else
        OK(ctx, sps_csr_wrap(ctx, A->nrow, A->ncol, A->nnz, A->rowptr, A->col,
                             A->val, A->dtype, SPS_HOST, SPS_COPY, &B));
    return B;
}

static sps_csr *here(sps_context *ctx, sps_csr *A)
{
    sps_csr *B = A;

    if (A->place == SPS_HOST) return A;
    OK(ctx, spsi_csr_download(ctx, A, &B));
    sps_csr_destroy(ctx, &A);
    return B;
}

/* Row i of A, with `shift` added to its columns, is row j of B. */
static void is_row(const sps_csr *A, int64_t i, int64_t shift, const sps_csr *B,
                   int64_t j)
{
    const int64_t count = A->rowptr[i + 1] - A->rowptr[i];

    ck_assert_int_eq(B->rowptr[j + 1] - B->rowptr[j], count);
    for (int64_t p = 0; p < count; p++) {
        const int64_t a = A->rowptr[i] + p, b = B->rowptr[j] + p;

        ck_assert_int_eq(A->col[a] + shift, B->col[b]);
        ck_assert(spsi_csr_value(A, a) == spsi_csr_value(B, b));
    }
}

static void finds_rows(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                       int64_t first, int64_t last)
{
    int32_t *row = NULL;
    int64_t rows = -1, found = 0;

    OK(ctx, spsi_rows_outside(ctx, B, first, last, &row, &rows));
    for (int64_t i = 0; i < A->nrow; i++) {
        bool out = false;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            out |= A->col[p] < first || A->col[p] >= last;
        if (!out) continue;
        ck_assert(found < rows && row[found] == i);
        found++;
    }
    ck_assert_int_eq(found, rows);
    spsi_free(ctx, row);
}

static void picks_rows(sps_context *ctx, const sps_csr *A, const sps_csr *B)
{
    int32_t row[SOME];
    sps_csr *C = NULL;

    for (int t = 0; t < SOME; t++)
        row[t] = (int32_t)((t * 7919 + 5) % A->nrow);
    OK(ctx, spsi_rows_pick(ctx, B, row, SOME, &C));
    ck_assert(C->place == SPS_HOST && C->dtype == A->dtype);
    ck_assert_int_eq(C->nrow, SOME);
    for (int t = 0; t < SOME; t++) is_row(A, row[t], 0, C, t);
    sps_csr_destroy(ctx, &C);
}

/* Rows of A from row 3 on, moved by 5 columns, with rows 0, 1, 2, every 11th of
 * the others and the last two taken from A in reverse, or from nowhere. */
static void replaces_rows(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                          bool some)
{
    const int64_t n = A->nrow + 5;
    int32_t *from = malloc((size_t)n * sizeof *from);
    int32_t *row = malloc((size_t)n * sizeof *row);
    sps_csr *few = NULL, *C = NULL;
    int64_t rows = 0;

    for (int64_t i = 0; i < n; i++)
        if (some && (i < 3 || i % 11 == 0 || i >= n - 2)) {
            from[rows] = (int32_t)(A->nrow - 1 - i % A->nrow);
            row[rows++] = (int32_t)i;
        }
    OK(ctx, spsi_rows_pick(ctx, B, from, rows, &few));
    OK(ctx, spsi_rows_replace(ctx, B, &(spsi_placing){
        .nrow = n, .ncol = A->ncol + 5, .before = 3, .shift = 5, .row = row },
        some ? few : NULL, &C));
    C = here(ctx, C);
    ck_assert(C->nrow == n && C->ncol == A->ncol + 5 && C->dtype == A->dtype);
    for (int64_t i = 0, t = 0; i < n; i++) {
        if (t < rows && row[t] == i) is_row(A, from[t++], 0, C, i);
        else if (i >= 3 && i < A->nrow + 3) is_row(A, i - 3, 5, C, i);
        else ck_assert_int_eq(C->rowptr[i], C->rowptr[i + 1]);
    }
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &few);
    free(from);
    free(row);
}

START_TEST(rows_are_those_of_the_matrix)
{
    sps_context *ctx = runner_context();

    for (int f = 0; f < zoo_count(); f++)
        for (int single = 0; single < 2; single++) {
            sps_csr *A = zoo_matrix(f, 600, 1, ZOO_RANDOM,
                                    single ? SPS_F32 : SPS_F64);
            sps_csr *B = there(ctx, A);

            finds_rows(ctx, A, B, 0, A->ncol);
            finds_rows(ctx, A, B, A->ncol / 3, A->ncol / 2);
            finds_rows(ctx, A, B, 4, 4);
            if (A->nrow > 0) picks_rows(ctx, A, B);
            if (A->nrow > 0) replaces_rows(ctx, A, B, true);
            replaces_rows(ctx, A, B, false);
            sps_csr_destroy(ctx, &B);
            zoo_free(&A);
        }
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(rows_are_those_of_the_matrix),
};
RUNNER_MAIN("check_some_rows", tests)
