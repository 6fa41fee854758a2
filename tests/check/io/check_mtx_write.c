/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mtx_write.c - matrices and blocks are written and read back. */
#include <dirent.h>
#include <locale.h>

#include "tests/problems/mtx_fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static uint64_t state = 7;

static double any_double(void)
{
    double x;

    do {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        memcpy(&x, &state, sizeof x);
    } while (!isfinite(x));
    return x;
}

static void round_trip(sps_context *ctx, const sps_csr *A, bool symmetric)
{
    static const char *const name[] = {"a.mtx", "a.mtx.gz"};

    for (int i = 0; i < 2; i++) {
        const char *path = files_path(name[i]);
        sps_csr *B;

        OK(ctx, sps_csr_write(ctx, path, A, symmetric));
        B = read_as(ctx, path, NULL, NULL);
        assert_equal(A, B);
        sps_csr_destroy(ctx, &B);
    }
}

START_TEST(matrices_read_back_bit_by_bit)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 0; n <= 300; n = 7 * n + 1) {
            sps_csr *A = zoo_matrix(f, n, 3, ZOO_RANDOM, SPS_F64);
            double *v = A->val;

            for (int64_t p = 0; p < A->nnz; p++) v[p] = any_double();
            round_trip(ctx, A, false);
            zoo_free(&A);
            if (!zoo_symmetric(f)) continue;
            A = zoo_matrix(f, n, 3, ZOO_SPD, SPS_F64);
            round_trip(ctx, A, true);
            zoo_free(&A);
        }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(blocks_read_back_bit_by_bit)
{
    static const int width[] = {1, 2, 7, 8, 9, 17};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (int c = 0; c < 24; c++) {
        int k = width[c % 6];
        int64_t n = c < 12 ? 10 : 2500;
        bool two = c % 12 >= 6;
        const char *path = files_path(c % 2 ? "x.mtx" : "x.mtx.gz");
        double *x = malloc(sizeof *x * (size_t)(n * k)), *y = malloc(
            sizeof *y * (size_t)(n * k));
        sps_block *X, *Y = NULL;

        for (int64_t p = 0; p < n * k; p++) x[p] = any_double();
        X = fixture_block(ctx, n, k, x, k);
        OK(ctx, sps_block_write(X, path, two));
        OK(ctx, sps_block_read(ctx, path, NULL, two, &Y));
        OK(ctx, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
        ck_assert_mem_eq(x, y, sizeof *x * (size_t)(n * k));
        sps_block_destroy(&X);
        sps_block_destroy(&Y);
        free(x);
        free(y);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(a_real_block_for_a_complex_matrix_has_no_imaginary_part)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_block *X = NULL;
    double x[4];

    OK(ctx, sps_block_read(ctx, files_text("b.mtx", "%%MatrixMarket matrix "
                           "array real general\n2 1\n5\n6\n"), NULL, true,
                           &X));
    OK(ctx, sps_block_get(X, 0, 1, x, 1, SPS_ROW_MAJOR, SPS_HOST));
    ck_assert(x[0] == 5 && x[1] == 0 && x[2] == 6 && x[3] == 0);
    sps_block_destroy(&X);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

static int count_files(void)
{
    DIR *d = opendir(files_directory);
    int n = 0;

    for (struct dirent *e; (e = readdir(d)) != NULL;) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

START_TEST(failed_writing_is_told_and_leaves_nothing)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_csr *A = zoo_matrix(0, 400, 1, ZOO_RANDOM, SPS_F64);
    const char *path = files_text("a.mtx", "precious");
    char *text;

    ck_assert_int_eq(sps_csr_write(ctx, files_path("no/such/a.mtx"), A, false),
                     SPS_EIO);
    ck_assert_int_eq(sps_csr_write(ctx, files_directory, A, false), SPS_EIO);
    ck_assert_int_eq(sps_csr_write(ctx, "", A, false), SPS_EIO);
    ck_assert_int_eq(sps_csr_write(ctx, files_path("a.npz.xz"), A, false),
                     SPS_EINVAL);
    ck_assert(strstr(sps_context_error(ctx), "compressed by gzip, not as .xz"));
    ck_assert_int_eq(sps_csr_write(ctx, files_path("a.mat"), A, false),
                     SPS_EINVAL);
    ck_assert(strstr(sps_context_error(ctx), "not written as .mat"));
    if (access("/dev/full", W_OK) == 0) {
        ck_assert_int_eq(sps_csr_write(ctx, "/dev/full", A, false), SPS_EIO);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "/dev/full"));
    }
    A->ncol++;
    ck_assert_int_eq(sps_csr_write(ctx, path, A, true), SPS_ESHAPE);
    A->ncol--;
    text = files_read(path, NULL);
    ck_assert_str_eq(text, "precious");
    free(text);
    ck_assert_int_eq(count_files(), 1);
    OK(ctx, sps_csr_write(ctx, path, A, false));   /* replaces the whole file */
    ck_assert_int_eq(count_files(), 1);
    zoo_free(&A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(writing_through_a_link_keeps_the_link)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_csr *A = zoo_matrix(0, 20, 1, ZOO_RANDOM, SPS_F64), *B;
    const char *link = files_path("link.mtx");
    struct stat info;

    ck_assert_int_eq(symlink(files_text("real.mtx", ""), link), 0);
    OK(ctx, sps_csr_write(ctx, link, A, false));
    ck_assert_int_eq(lstat(link, &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    B = read_as(ctx, files_path("real.mtx"), NULL, NULL);
    assert_equal(A, B);
    sps_csr_destroy(ctx, &B);
    zoo_free(&A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(the_locale_has_no_say)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_csr *A = zoo_matrix(0, 50, 1, ZOO_RANDOM, SPS_F64);

    if (setlocale(LC_ALL, "de_DE.UTF-8") != NULL ||
        setlocale(LC_ALL, "de_DE") != NULL)
        round_trip(ctx, A, false);
    zoo_free(&A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(matrices_read_back_bit_by_bit),
    RUNNER_TEST(blocks_read_back_bit_by_bit),
    RUNNER_TEST(a_real_block_for_a_complex_matrix_has_no_imaginary_part),
    RUNNER_TEST(failed_writing_is_told_and_leaves_nothing),
    RUNNER_TEST(writing_through_a_link_keeps_the_link),
    RUNNER_TEST(the_locale_has_no_say),
};

RUNNER_MAIN("mtx_write", tests)
