/* SPDX-License-Identifier: BSD-3-Clause */
/* check_csr.c - matrices: creation, checks, sorting, symmetry, transpose. */
#include <check.h>
#include <math.h>

#include "core/backend.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "matrix/traits.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

/* A 3 x 3 matrix over the arrays of the test. */
static sps_csr *wrap(int64_t nnz, int64_t *rowptr, int32_t *col, double *val)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, 3, 3, nnz, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    return A;
}

/* --------------------------------------------------------------- life cycle */

START_TEST(create_gives_zeroed_arrays)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, 4, 5, 7, SPS_F32, &A));
    ck_assert_int_eq(A->nrow, 4);
    ck_assert_int_eq(A->ncol, 5);
    ck_assert_int_eq(A->nnz, 7);
    for (int i = 0; i <= 4; i++) ck_assert_int_eq(A->rowptr[i], 0);
    sps_csr_destroy(ctx, &A);
    ck_assert_ptr_null(A);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(empty_matrices_are_legal)
{
    const int64_t shape[][2] = { { 0, 0 }, { 0, 3 }, { 3, 0 }, { 2, 2 } };

    for (int i = 0; i < 4; i++) {
        sps_csr *A = NULL, *T = NULL;

        OK(ctx, sps_csr_create(ctx, shape[i][0], shape[i][1], 0, SPS_F64, &A));
        OK(ctx, sps_csr_check(ctx, A));
        OK(ctx, spsi_csr_transpose(ctx, A, &T));
        ck_assert_int_eq(T->nrow, shape[i][1]);
        sps_csr_destroy(ctx, &T);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

START_TEST(shapes_out_of_range_are_refused)
{
    sps_csr *A = NULL;

    ck_assert_int_eq(sps_csr_create(ctx, -1, 1, 0, SPS_F64, &A), SPS_EINVAL);
    ck_assert_int_eq(sps_csr_create(ctx, 1, 1, -1, SPS_F64, &A), SPS_EINVAL);
    ck_assert_int_eq(sps_csr_create(ctx, 1, INT64_C(1) << 31, 0, SPS_F64, &A),
                     SPS_EMATRIX);
    ck_assert_int_eq(sps_csr_create(ctx, 1, 1, INT64_MAX, SPS_F64, &A),
                     SPS_ENOMEM);
    ck_assert_int_eq(sps_csr_create(ctx, INT64_MAX, 1, 1, SPS_F64, &A),
                     SPS_ENOMEM);
    ck_assert_int_eq(sps_csr_create(ctx, 1, 1, 1, (sps_dtype)9, &A),
                     SPS_EINVAL);
    ck_assert_ptr_null(A);
}
END_TEST

START_TEST(wrapped_copies_are_apart_from_the_callers_arrays)
{
    int64_t rowptr[] = { 0, 1, 2, 3 };
    int32_t col[] = { 0, 1, 2 };
    double val[] = { 1.0, 2.0, 3.0 };
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, 3, 3, 3, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_COPY, &A));
    val[1] = 99.0;
    ck_assert_double_eq(spsi_csr_value(A, 1), 2.0);
    sps_csr_destroy(ctx, &A);
    ck_assert_double_eq(val[0], 1.0);
}
END_TEST

START_TEST(adopted_arrays_are_freed_with_the_matrix)
{
    int64_t *rowptr = calloc(3, sizeof *rowptr);
    int32_t *col = calloc(1, sizeof *col);
    double *val = calloc(1, sizeof *val);
    sps_csr *A = NULL;

    rowptr[1] = rowptr[2] = 1;
    OK(ctx, sps_csr_wrap(ctx, 2, 2, 1, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_ADOPT, &A));
    sps_csr_destroy(ctx, &A);   /* for the leak checker */
}
END_TEST

START_TEST(wrong_wraps_are_refused)
{
    int64_t rowptr[] = { 0, 1 };
    int32_t col[] = { 0 };
    double val[] = { 1.0 };
    sps_csr *A = NULL;

#define WRAP(rows, p, c, v, place, own)                                        \
    sps_csr_wrap(ctx, rows, 1, 1, p, c, v, SPS_F64, place, own, &A)
    ck_assert_int_eq(WRAP(1, NULL, col, val, SPS_HOST, SPS_BORROW),
                     SPS_EINVAL);
    ck_assert_int_eq(WRAP(1, rowptr, NULL, val, SPS_HOST, SPS_BORROW),
                     SPS_EINVAL);
    ck_assert_int_eq(WRAP(1, rowptr, col, NULL, SPS_HOST, SPS_BORROW),
                     SPS_EINVAL);
    ck_assert_int_eq(WRAP(-1, rowptr, col, val, SPS_HOST, SPS_BORROW),
                     SPS_EINVAL);
    ck_assert_int_eq(WRAP(1, rowptr, col, val, SPS_AUTO, SPS_BORROW),
                     SPS_EINVAL);
    ck_assert_int_eq(WRAP(1, rowptr, col, val, SPS_CUDA, SPS_BORROW),
                     SPS_EINVAL);
    ck_assert_int_eq(WRAP(1, rowptr, col, val, SPS_HOST, (sps_own)7),
                     SPS_EINVAL);
#undef WRAP
    ck_assert_ptr_null(A);
}
END_TEST

/* ------------------------------------------------------------------ check */

/* Checks an invalid matrix: EMATRIX with these words in the error text. */
static void refuse(int64_t *rowptr, int32_t *col, const char *words)
{
    double val[8] = { 0.0 };
    sps_csr *A = wrap(4, rowptr, col, val);

    ck_assert_int_eq(sps_csr_check(ctx, A), SPS_EMATRIX);
    ck_assert_msg(strstr(sps_context_error(ctx), words) != NULL,
                  "\"%s\" does not say \"%s\"", sps_context_error(ctx), words);
    sps_csr_destroy(ctx, &A);
}

START_TEST(broken_structures_are_named_by_their_first_row)
{
    int32_t good[] = { 0, 1, 2, 0 };

    refuse((int64_t[]){ 1, 2, 3, 4 }, good, "rowptr[0] is 1");
    refuse((int64_t[]){ 0, 3, 1, 4 }, good, "row 1 ");
    refuse((int64_t[]){ 0, 1, 2, 3 }, good, "end at 3");
    refuse((int64_t[]){ 0, 2, 3, 4 }, (int32_t[]){ 0, 1, 3, -7 }, "row 1 ");
    refuse((int64_t[]){ 0, 2, 3, 4 }, (int32_t[]){ 0, 1, 2, -7 },
           "column -7");
    refuse((int64_t[]){ 0, -5, 3, 4 }, good, "row 0 ");
}
END_TEST

START_TEST(unsorted_rows_are_sorted_with_a_note)
{
    int64_t rowptr[] = { 0, 3, 3, 5 };
    int32_t col[] = { 2, 0, 1, 1, 0 };
    double val[] = { 3.0, 1.0, 2.0, 5.0, 4.0 };
    const int32_t right[] = { 0, 1, 2, 0, 1 };
    sps_csr *A = wrap(5, rowptr, col, val);

    OK(ctx, sps_csr_check(ctx, A));
    ck_assert(fixture_noted(ctx, "sorted"));
    ck_assert(A->props & SPS_SORTED);
    for (int p = 0; p < 5; p++) {
        ck_assert_int_eq(A->col[p], right[p]);
        ck_assert_double_eq(spsi_csr_value(A, p), 1.0 + p);
    }
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(duplicates_are_summed_in_their_order)
{
    int64_t rowptr[] = { 0, 4, 4, 6 };
    int32_t col[] = { 1, 0, 1, 1, 2, 2 };
    /* 1e16 + 1 + 1 from the left stays 1e16: shows the order of summation. */
    double val[] = { 1e16, 7.0, 1.0, 1.0, 2.0, 3.0 };
    sps_csr *A = wrap(6, rowptr, col, val);

    OK(ctx, sps_csr_check(ctx, A));
    ck_assert_int_eq(A->nnz, 3);
    ck_assert_int_eq(A->rowptr[1], 2);
    ck_assert_int_eq(A->rowptr[2], 2);
    ck_assert_int_eq(A->rowptr[3], 3);
    ck_assert_double_eq(spsi_csr_value(A, 0), 7.0);
    ck_assert_double_eq(spsi_csr_value(A, 1), 1e16);
    ck_assert_double_eq(spsi_csr_value(A, 2), 5.0);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(sorted_matrices_stay_untouched_and_unnoted)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 50, 1, ZOO_RANDOM, SPS_F64);
        const int64_t nnz = A->nnz;

        OK(ctx, sps_csr_check(ctx, A));
        ck_assert_int_eq(A->nnz, nnz);
        zoo_free(&A);
    }
    ck_assert(!fixture_noted(ctx, "sorted"));
}
END_TEST

/* Reverses each row and stores its first entry twice, as halves. */
static sps_csr *scramble(const sps_csr *A)
{
    sps_csr *B = NULL;
    int64_t at = 0;

    OK(ctx, sps_csr_create(ctx, A->nrow, A->ncol, A->nnz + A->nrow, A->dtype,
                           &B));
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t first = A->rowptr[i], last = A->rowptr[i + 1];

        for (int64_t p = last - 1; p >= first; p--) {
            const double a = spsi_csr_value(A, p);
            const int halves = p == first ? 2 : 1;

            for (int h = 0; h < halves; h++, at++) {
                B->col[at] = A->col[p];
                if (A->dtype == SPS_F64)
                    ((double *)B->val)[at] = a / halves;
                else
                    ((float *)B->val)[at] = (float)(a / halves);
            }
        }
        B->rowptr[i + 1] = at;
    }
    B->nnz = at;
    return B;
}

START_TEST(scrambled_zoo_comes_back_bit_for_bit)
{
    for (int f = 0; f < zoo_count(); f++) {
        const sps_dtype dtype = f % 2 ? SPS_F32 : SPS_F64;
        sps_csr *A = zoo_matrix(f, 1500, 3, ZOO_INTEGER, dtype);
        sps_csr *B = scramble(A);

        OK(ctx, sps_csr_check(ctx, B));
        ck_assert_int_eq(B->nnz, A->nnz);
        ck_assert(!memcmp(B->rowptr, A->rowptr,
                          (size_t)(A->nrow + 1) * sizeof *A->rowptr));
        for (int64_t p = 0; p < A->nnz; p++) {
            ck_assert_int_eq(B->col[p], A->col[p]);
            ck_assert_double_eq(spsi_csr_value(B, p), spsi_csr_value(A, p));
        }
        sps_csr_destroy(ctx, &B);
        zoo_free(&A);
    }
}
END_TEST

/* --------------------------------------------------- symmetry, transpose */

static void transpose_twice(sps_csr *A)
{
    sps_csr *T = NULL, *B = NULL;

    OK(ctx, spsi_csr_transpose(ctx, A, &T));
    OK(ctx, sps_csr_check(ctx, T));
    OK(ctx, spsi_csr_transpose(ctx, T, &B));
    ck_assert_int_eq(B->nnz, A->nnz);
    for (int64_t i = 0; i <= A->nrow; i++)
        ck_assert_int_eq(B->rowptr[i], A->rowptr[i]);
    for (int64_t p = 0; p < A->nnz; p++) {
        ck_assert_int_eq(B->col[p], A->col[p]);
        ck_assert_double_eq(spsi_csr_value(B, p), spsi_csr_value(A, p));
    }
    sps_csr_destroy(ctx, &T);
    sps_csr_destroy(ctx, &B);
    zoo_free(&A);
}

/* The rows of the last matrix are divided into several parts. */
START_TEST(transposing_twice_is_the_identity)
{
    for (int f = 0; f < zoo_count(); f++)
        transpose_twice(zoo_matrix(f, 200, 5, ZOO_RANDOM, SPS_F64));
    transpose_twice(zoo_matrix(zoo_find("grid5"), 200 * 200, 5, ZOO_RANDOM,
                               SPS_F64));
}
END_TEST

START_TEST(symmetry_agrees_with_the_transpose)
{
    for (int f = 0; f < zoo_count(); f++) {
        const bool spd = zoo_symmetric(f);
        sps_csr *A = zoo_matrix(f, 200, 5, spd ? ZOO_SPD : ZOO_RANDOM,
                                SPS_F64);
        sps_csr *T = NULL;
        bool symmetric, same;
        double gap = -1.0;

        OK(ctx, spsi_csr_transpose(ctx, A, &T));
        same = T->nrow == A->nrow && T->nnz == A->nnz &&
               !memcmp(T->rowptr, A->rowptr,
                       (size_t)(A->nrow + 1) * sizeof *A->rowptr) &&
               !memcmp(T->col, A->col, (size_t)A->nnz * sizeof *A->col) &&
               !memcmp(T->val, A->val, (size_t)A->nnz * sizeof(double));
        OK(ctx, sps_csr_check(ctx, A));
        OK(ctx, sps_csr_symmetric(ctx, A, 0.0, &symmetric, &gap));
        ck_assert_msg(symmetric == same, "%s", zoo_name(f));
        if (spd) ck_assert(symmetric && gap == 0.0);
        sps_csr_destroy(ctx, &T);
        zoo_free(&A);
    }
}
END_TEST

/* An entry without a mirror image, on either side of the diagonal, counts as a
 * difference from 0: below it where no entry above leads to it. */
START_TEST(an_entry_without_a_mirror_image_is_found)
{
    for (int below = 0; below < 2; below++) {
        int64_t rowptr[] = { 0, 1, 2, 4 };
        int32_t col[] = { 0, 1, 0, 2 };
        int64_t upper[] = { 0, 2, 3, 4 };
        double val[] = { 1, 1, 3, 1 };
        sps_csr *A = wrap(4, below ? rowptr : upper, col, val);
        bool symmetric;
        double gap;

        if (!below) col[1] = 2, col[2] = 1, val[1] = 3, val[2] = 1;
        OK(ctx, sps_csr_check(ctx, A));
        OK(ctx, sps_csr_symmetric(ctx, A, 0.5, &symmetric, &gap));
        ck_assert(!symmetric && gap == 3);
        OK(ctx, sps_csr_symmetric(ctx, A, 0.5, &symmetric, NULL));
        ck_assert(!symmetric);
        OK(ctx, sps_csr_symmetric(ctx, A, 3, &symmetric, NULL));
        ck_assert(symmetric);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

START_TEST(symmetry_measures_the_largest_difference)
{
    int64_t rowptr[] = { 0, 2, 4, 5 };
    int32_t col[] = { 0, 1, 0, 1, 2 };
    double val[] = { 1.0, 2.0, 2.5, 1.0, 1.0 };
    sps_csr *A = wrap(5, rowptr, col, val);
    bool symmetric;
    double gap;

    OK(ctx, sps_csr_check(ctx, A));
    OK(ctx, sps_csr_symmetric(ctx, A, 0.0, &symmetric, &gap));
    ck_assert(!symmetric && gap == 0.5);
    OK(ctx, sps_csr_symmetric(ctx, A, 0.2, &symmetric, NULL));
    ck_assert(symmetric);
    col[2] = 2;       /* (1,2) instead of (1,0): both lack their transpose */
    col[3] = 2;
    rowptr[2] = 3;
    sps_csr_destroy(ctx, &A);
    val[0] = NAN;
    col[2] = 0;
    col[3] = 1;
    rowptr[2] = 4;
    A = wrap(5, rowptr, col, val);
    OK(ctx, sps_csr_check(ctx, A));
    OK(ctx, sps_csr_symmetric(ctx, A, 1.0, &symmetric, &gap));
    ck_assert(!symmetric && gap == INFINITY);
    val[0] = 1.0;
    for (int t = 0; t < 2; t++) {
        val[1] = t ? INFINITY : NAN;   /* rows behind it are symmetric */
        OK(ctx, sps_csr_symmetric(ctx, A, 1.0, &symmetric, &gap));
        ck_assert(!symmetric && gap == INFINITY);
    }
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* A finite element code sums in different orders above and below the diagonal:
 * entries that cancel to zero are left with rounding errors of the diagonal's
 * size, with or without a transposed entry. */
START_TEST(symmetry_forgives_rounding_of_the_diagonal_s_size)
{
    int64_t rowptr[] = { 0, 3, 5, 6 };
    int32_t col[] = { 0, 1, 2, 0, 1, 2 };
    double val[] = { 4.0, 1e-15, 2e-15, -3e-15, 9.0, 1.0 };
    sps_csr *A = wrap(6, rowptr, col, val);
    bool symmetric;
    double gap;

    OK(ctx, sps_csr_check(ctx, A));
    OK(ctx, sps_csr_symmetric(ctx, A, 1e-10, &symmetric, &gap));
    ck_assert(symmetric && gap == 4e-15);
    OK(ctx, sps_csr_symmetric(ctx, A, 1e-16, &symmetric, NULL));
    ck_assert(!symmetric);
    val[2] = 1e-9;    /* compared with sqrt(4 * 1): not a rounding error */
    OK(ctx, sps_csr_symmetric(ctx, A, 1e-10, &symmetric, NULL));
    ck_assert(!symmetric);
    val[0] = 0.0;     /* a zero diagonal entry allows no error */
    val[2] = 2e-15;
    OK(ctx, sps_csr_symmetric(ctx, A, 1e-10, &symmetric, NULL));
    ck_assert(!symmetric);
    sps_csr_destroy(ctx, &A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(create_gives_zeroed_arrays),
    RUNNER_TEST(empty_matrices_are_legal),
    RUNNER_TEST(shapes_out_of_range_are_refused),
    RUNNER_TEST(wrapped_copies_are_apart_from_the_callers_arrays),
    RUNNER_TEST(adopted_arrays_are_freed_with_the_matrix),
    RUNNER_TEST(wrong_wraps_are_refused),
    RUNNER_TEST(broken_structures_are_named_by_their_first_row),
    RUNNER_TEST(unsorted_rows_are_sorted_with_a_note),
    RUNNER_TEST(duplicates_are_summed_in_their_order),
    RUNNER_TEST(sorted_matrices_stay_untouched_and_unnoted),
    RUNNER_TEST(scrambled_zoo_comes_back_bit_for_bit),
    RUNNER_TEST(transposing_twice_is_the_identity),
    RUNNER_TEST(symmetry_agrees_with_the_transpose),
    RUNNER_TEST(an_entry_without_a_mirror_image_is_found),
    RUNNER_TEST(symmetry_measures_the_largest_difference),
    RUNNER_TEST(symmetry_forgives_rounding_of_the_diagonal_s_size),
};
RUNNER_MAIN_WITHIN("csr", tests, open_context, close_context)
