/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mat5.c - MATLAB files of level 5: which matrix is taken, and what
 * malformed files are told.  (check_files.c reads the seeds, check_files_fuzz.c
 * cuts and changes them, and solve_run.py reads what SciPy writes.) */
#include "tests/problems/file_seeds.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 1, true); }

static void close_context(void)
{
    fixture_close(&ctx);
    files_clean();
}

static const double b[] = {1, 2, 3}, x[] = {4, 5, 6};

/* A sparse, b and x, one after the other. */
static const char *three(void)
{
    archive a = mat5_begin(false), m = seed_mat5_sparse(false, "A");
    const char *path;

    mat5_full(&a, false, "b", 3, 1, b);
    mat5_matrix(&a, false, &m);
    mat5_full(&a, false, "x", 3, 1, x);
    path = files_bytes("three.mat", a.bytes, a.size);
    archive_free(&a);
    return path;
}

static void block_is(const char *path, const char *name, const double *want)
{
    sps_block *X = NULL;
    char named[300];
    double got[3];

    snprintf(named, sizeof named, "%s%s%s", path, *name ? ":" : "", name);
    OK(ctx, sps_block_read(ctx, named, NULL, false, &X));
    OK(ctx, sps_block_get(X, 0, 1, got, 1, SPS_ROW_MAJOR, SPS_HOST));
    ck_assert_mem_eq(got, want, sizeof got);
    sps_block_destroy(&X);
}

static void block_is_refused(const char *path, const char *name,
                             const char *word)
{
    sps_block *X = NULL;
    char named[300];

    snprintf(named, sizeof named, "%s%s%s", path, *name ? ":" : "", name);
    ck_assert_int_eq(sps_block_read(ctx, named, NULL, false, &X), SPS_EPARSE);
    ck_assert_msg(strstr(sps_context_error(ctx), word) != NULL,
                  "no \"%s\" in \"%s\"", word, sps_context_error(ctx));
}

START_TEST(a_variable_is_taken_by_name)
{
    const char *path = three();

    block_is(path, "b", b);
    block_is(path, "x", x);
    block_is_refused(path, "y", "no matrix is named y; there are b, A, x");
    block_is_refused(path, "", "which one of b, A, x is meant? Name it by "
                               "FILE:NAME");
}
END_TEST

START_TEST(the_first_sparse_matrix_is_the_csr)
{
    sps_csr *A = NULL;
    int64_t rows, columns, entries;

    OK(ctx, sps_csr_read(ctx, three(), NULL, NULL, &A));
    ck_assert_int_eq(A->nnz, 6);
    ck_assert_int_eq(A->ncol, 4);
    sps_csr_destroy(ctx, &A);
    OK(ctx, sps_file_sizes(ctx, three(), &rows, &columns, &entries));
    ck_assert_int_eq(rows, 3);
    ck_assert_int_eq(columns, 4);
}
END_TEST

/* A file with these full matrices, all of ones. */
static const char *full(const char *first, int columns, const char *second,
                        int others)
{
    static const double ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    archive a = mat5_begin(false);
    const char *path;

    mat5_full(&a, false, first, 3, columns, ones);
    mat5_full(&a, false, second, 3, others, ones);
    path = files_bytes("full.mat", a.bytes, a.size);
    archive_free(&a);
    return path;
}

/* The first one used to be taken without a word. */
START_TEST(one_of_two_full_matrices_must_be_named)
{
    const char *path = full("K", 3, "M", 3);
    char named[300];
    sps_csr *A = NULL;

    ck_assert_int_eq(sps_csr_read(ctx, path, NULL, NULL, &A), SPS_EPARSE);
    ck_assert(strstr(sps_context_error(ctx), "which one of K, M is meant? Name "
                                             "it by FILE:NAME"));
    snprintf(named, sizeof named, "%s:M", path);
    OK(ctx, sps_csr_read(ctx, named, NULL, NULL, &A));
    ck_assert_int_eq(A->nnz, 9);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(a_vector_is_no_matrix_beside_a_full_one)
{
    sps_csr *A = NULL;

    for (int i = 0; i < 2; i++) {
        OK(ctx, sps_csr_read(ctx, i == 0 ? full("b", 1, "A", 3)
                                         : full("A", 3, "b", 1), NULL, NULL,
                             &A));
        ck_assert_int_eq(A->ncol, 3);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

START_TEST(a_single_number_beside_the_only_vector_is_passed_over)
{
    static const double rate = 0.5;
    archive a = mat5_begin(true);

    mat5_full(&a, true, "rate", 1, 1, &rate);
    mat5_full(&a, true, "b", 3, 1, b);
    block_is(files_bytes("one.mat", a.bytes, a.size), "", b);
    archive_free(&a);
}
END_TEST

START_TEST(fields_are_named_by_their_struct)
{
    archive a = seed_mat5_struct();
    const char *path = files_bytes("struct.mat", a.bytes, a.size);
    sps_csr *A = NULL;
    char named[300];

    snprintf(named, sizeof named, "%s:Problem.A", path);
    OK(ctx, sps_csr_read(ctx, named, NULL, NULL, &A));
    ck_assert_int_eq(A->nnz, 6);
    sps_csr_destroy(ctx, &A);
    block_is_refused(path, "Problem.title", "\"Problem.title\" is not a matrix "
                     "of numbers");
    archive_free(&a);
}
END_TEST

/* ---------------------------------------------------------------- refusals */

static void refused(archive *a, const char *word)
{
    const char *path = files_bytes("bad-file", a->bytes, a->size);
    sps_csr *A = NULL;

    ck_assert_int_eq(sps_csr_read(ctx, path, NULL, NULL, &A), SPS_EPARSE);
    ck_assert_msg(strstr(sps_context_error(ctx), word) &&
                  strstr(sps_context_error(ctx), "bad-file"),
                  "no \"%s\" in \"%s\"", word, sps_context_error(ctx));
    archive_free(a);
}

/* The sparse matrix with one number of rows and starts replaced. */
static void refused_sparse(int at, int32_t value, int values, uint32_t flags,
                           const char *word)
{
    int32_t n[] = {0, 2, 1, 0, 2, 2, 0, 2, 3, 5, 6};
    static const double v[6] = {1, 2, 3, 4, 5, 6};
    archive a = mat5_begin(false), m = {0};

    if (at >= 0) n[at] = value;
    mat5_head(&m, false, MAT5_SPARSE | flags, 3, 4, "A");
    mat5_element(&m, false, MAT5_INT32, n, 6, 4);
    mat5_element(&m, false, MAT5_INT32, n + 6, 5, 4);
    mat5_element(&m, false, MAT5_DOUBLE, v, values, 8);
    mat5_matrix(&a, false, &m);
    refused(&a, word);
}

START_TEST(wrong_entries_are_named)
{
    refused_sparse(4, 3, 6, 0, "entry 4 of \"A\", counted from 0, is in row 3 "
                   "of 3");
    refused_sparse(0, -1, 6, 0, "is in row -1 of 3");
    refused_sparse(8, 1, 6, 0, "jc");
    refused_sparse(10, 7, 6, 0, "more entries than rows of entries");
    refused_sparse(-1, 0, 5, 0, "fewer values than entries");
    refused_sparse(-1, 0, 6, MAT5_IS_COMPLEX, "\"A\" is complex");
}
END_TEST

START_TEST(broken_files_are_told_where)
{
    archive a = seed_mat5(false, true), empty = mat5_begin(false);

    a.bytes[a.size - 3] ^= 1;              /* the checksum */
    refused(&a, "a compressed variable is broken");
    a = seed_mat5(false, true);
    a.size -= 6;
    refused(&a, "cut off near byte");
    a = seed_mat5(false, false);
    a.size -= 20;
    refused(&a, "cut off after");
    a = seed_mat5(false, false);
    memcpy(a.bytes + 126, "XX", 2);
    refused(&a, "byte 126: the byte order");
    refused(&empty, "no matrix of numbers is there");
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_variable_is_taken_by_name),
    RUNNER_TEST(the_first_sparse_matrix_is_the_csr),
    RUNNER_TEST(one_of_two_full_matrices_must_be_named),
    RUNNER_TEST(a_vector_is_no_matrix_beside_a_full_one),
    RUNNER_TEST(a_single_number_beside_the_only_vector_is_passed_over),
    RUNNER_TEST(fields_are_named_by_their_struct),
    RUNNER_TEST(wrong_entries_are_named),
    RUNNER_TEST(broken_files_are_told_where),
};
RUNNER_MAIN_WITHIN("mat5", tests, open_context, close_context)
