/* SPDX-License-Identifier: BSD-3-Clause */
/* check_row_heads.c - rows as marks on entries: conversion back to the
 * offsets. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/fixture.h"
#include "tests/problems/row_lengths.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

static void judge(const sps_csr *A)
{
    const size_t bytes = ((size_t)A->nrow + 1) * sizeof(int64_t);
    int64_t *ptr = malloc(bytes), filled = 0, marks = 0;
    sps_row_heads h;

    OK(ctx, spsi_row_heads_make(ctx, A, &h));
    for (int64_t i = 0; i < A->nrow; i++)
        filled += A->rowptr[i + 1] > A->rowptr[i];
    ck_assert_int_eq(h.filled, filled);
    for (int64_t w = 0; w < spsi_row_heads_words(A->nnz); w++)
        for (int b = 0; b < 64; b++) marks += h.heads[w] >> b & 1;
    ck_assert_int_eq(marks, filled);
    for (int64_t r = 1; r < A->nrow; r++)
        ck_assert(r == filled || h.row[r - 1] < h.row[r]);
    spsi_row_heads_expand(&h, ptr);
    ck_assert(!memcmp(ptr, A->rowptr, bytes));
    spsi_row_heads_free(ctx, &h);
    free(ptr);
}

START_TEST(marks_of_the_zoo_expand_to_the_offsets)
{
    static const int64_t sizes[] = { 0, 1, 70, 1100, 5000 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 5; s++) {
            sps_csr *A = zoo_matrix(f, sizes[s], 7, ZOO_INTEGER, SPS_F64);

            judge(A);
            zoo_free(&A);
        }
}
END_TEST

START_TEST(rows_that_fill_words_and_pieces_expand_too)
{
    static const int64_t lengths[] = { 64, 0, 1, 63, 1024, 0, 0, 128, 2, 62 };
    sps_csr *A = row_lengths_matrix(lengths, 10, 40, 2000, true);
    sps_csr *B = row_lengths_matrix(lengths, 1, 16, 100, true);

    judge(A);
    judge(B);
    zoo_free(&A);
    zoo_free(&B);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(marks_of_the_zoo_expand_to_the_offsets),
    RUNNER_TEST(rows_that_fill_words_and_pieces_expand_too),
};
RUNNER_MAIN_WITHIN("row_heads", tests, open_context, close_context)
