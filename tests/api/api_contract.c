/* SPDX-License-Identifier: BSD-3-Clause */
/* api_contract.c - contexts, matrices, files and blocks with every invalid
 * argument. */
#include <stdio.h>
#include <unistd.h>

#include "tests/support/contract.h"

START_TEST(context)
{
    sps_context_info info = {.struct_size = 3};

    REFUSED(SPS_EINVAL, sps_context_information(ctx, NULL));
    REFUSED(SPS_EINVAL, sps_context_information(ctx, &info));
    NOWHERE(sps_context_information(NULL, &info));
    NOWHERE(sps_context_sync(NULL));
    ck_assert_str_ne(sps_context_error(NULL), "");
    ck_assert_ptr_null(sps_context_note(NULL, 0));
}
END_TEST

START_TEST(csr_create_and_wrap)
{
    int64_t ptr[2] = {0, 1};
    int32_t col[1] = {0};
    double val[1] = {1};
    sps_csr *made = NULL;

    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, -1, 1, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, 1, -1, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, 1, 1, -1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_create(ctx, 1, 1, 1, (sps_dtype)9, &made));
    NOT_MADE(sps_csr, SPS_EMATRIX,
             sps_csr_create(ctx, 1, (int64_t)1 << 31, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_ENOMEM,
             sps_csr_create(ctx, INT64_MAX, 1, 1, SPS_F64, &made));
    NOT_MADE(sps_csr, SPS_ENOMEM,
             sps_csr_create(ctx, 1, 1, INT64_MAX, SPS_F64, &made));
    REFUSED(SPS_EINVAL, sps_csr_create(ctx, 1, 1, 1, SPS_F64, NULL));
    NOWHERE(sps_csr_create(NULL, 1, 1, 1, SPS_F64, &made));

    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, NULL, col, val, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, NULL, val, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, NULL, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, -1, 1, 1, ptr, col, val, SPS_F64, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, (sps_dtype)7, SPS_HOST,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64, SPS_AUTO,
                          SPS_BORROW, &made));
    NOT_MADE(sps_csr, SPS_EINVAL,
             sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64, SPS_HOST,
                          (sps_own)9, &made));
    if (runner_place() == SPS_HOST)
        NOT_MADE(sps_csr, SPS_EINVAL,
                 sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64, SPS_CUDA,
                              SPS_BORROW, &made));
    REFUSED(SPS_EINVAL, sps_csr_wrap(ctx, 1, 1, 1, ptr, col, val, SPS_F64,
                                     SPS_HOST, SPS_BORROW, NULL));
    NOWHERE(sps_csr_wrap(NULL, 1, 1, 1, ptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &made));
    sps_csr_destroy(ctx, NULL);
    sps_csr_destroy(NULL, NULL);
}
END_TEST

/* A 2 x 2 matrix of the given arrays, passed to the check and to an
 * operator. */
static void broken(const int64_t *ptr, const int32_t *col, const char *says)
{
    int64_t p[3];
    int32_t c[3];
    double v[3] = {1, 1, 1};
    sps_csr *bad = NULL;

    memcpy(p, ptr, sizeof p);
    memcpy(c, col, sizeof c);
    GOOD(sps_csr_wrap(ctx, 2, 2, 3, p, c, v, SPS_F64, SPS_HOST, SPS_BORROW,
                      &bad));
    REFUSED(SPS_EMATRIX, sps_csr_check(ctx, bad));
    ck_assert_msg(strstr(sps_context_error(ctx), says), "\"%s\" names no %s",
                  sps_context_error(ctx), says);
    NOT_MADE(sps_operator, SPS_EMATRIX,
             sps_operator_csr(ctx, bad, 1, NULL, &made));
    sps_csr_destroy(ctx, &bad);
}

START_TEST(csr_check_and_symmetric)
{
    bool symmetric;

    broken((int64_t[]){0, 2, 1}, (int32_t[]){0, 1, 1}, "row 1");
    broken((int64_t[]){1, 2, 3}, (int32_t[]){0, 1, 1}, "rowptr");
    broken((int64_t[]){0, 2, 9}, (int32_t[]){0, 1, 1}, "9");
    broken((int64_t[]){0, -5, 3}, (int32_t[]){0, 1, 1}, "row 0");
    broken((int64_t[]){0, 2, 3}, (int32_t[]){0, 1, 2}, "row 1");
    broken((int64_t[]){0, 2, 3}, (int32_t[]){0, -1, 1}, "row 0");
    REFUSED(SPS_EINVAL, sps_csr_check(ctx, NULL));
    REFUSED(SPS_EINVAL, sps_csr_symmetric(ctx, NULL, 0, &symmetric, NULL));
    REFUSED(SPS_EINVAL, sps_csr_symmetric(ctx, A, 0, NULL, NULL));
    NOWHERE(sps_csr_check(NULL, A));
    NOWHERE(sps_csr_symmetric(NULL, A, 0, &symmetric, NULL));
}
END_TEST

/* Products need matching shapes, transposes nothing but a csr that is good. */
START_TEST(csr_products)
{
    sps_csr *made = NULL;
    int64_t ptr[] = {0, 1, 2};
    int32_t col[] = {0, 2};
    double val[] = {1, 1};
    sps_csr bad = { .nrow = 2, .ncol = 2, .nnz = 2, .rowptr = ptr, .col = col,
                    .val = val, .dtype = SPS_F64, .place = SPS_HOST,
                    .own = SPS_BORROW, .struct_size = sizeof bad };

    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_multiply(ctx, NULL, A, &made));
    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_multiply(ctx, A, NULL, &made));
    REFUSED(SPS_EINVAL, sps_csr_multiply(ctx, A, A, NULL));
    NOT_MADE(sps_csr, SPS_ESHAPE, sps_csr_multiply(ctx, wide, A, &made));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "14 columns"));
    NOT_MADE(sps_csr, SPS_EMATRIX, sps_csr_multiply(ctx, A, &bad, &made));
    NOT_MADE(sps_csr, SPS_EMATRIX, sps_csr_multiply(ctx, &bad, &bad, &made));
    NOT_MADE(sps_csr, SPS_EMATRIX, sps_csr_transpose(ctx, &bad, &made));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "row 1"));
    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_transpose(ctx, NULL, &made));
    REFUSED(SPS_EINVAL, sps_csr_transpose(ctx, A, NULL));
    bad.props = 64;
    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_transpose(ctx, &bad, &made));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "props is 64"));
    bad.props = 0;
    bad.dtype = (sps_dtype)9;
    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_transpose(ctx, &bad, &made));
    NOWHERE(sps_csr_multiply(NULL, A, A, &made));
    NOWHERE(sps_csr_transpose(NULL, A, &made));
}
END_TEST

START_TEST(files)
{
    sps_csr *read = NULL;
    sps_block *block = NULL;
    sps_read_options ro = {.struct_size = 1};
    sps_read_info info = {.struct_size = 1};
    char path[] = "/tmp/spsolve-contract-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt((int)write(fd, "%%MatrixMarket nonsense\n", 24), 0);
    close(fd);
    NOT_MADE(sps_csr, SPS_EIO,
             sps_csr_read(ctx, "/nonexistent/a.mtx", NULL, NULL, &made));
    NOT_MADE(sps_csr, SPS_EPARSE,
             sps_csr_read(ctx, path, NULL, NULL, &made));
    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_read(ctx, NULL, NULL, NULL, &made));
    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_read(ctx, path, &ro, NULL, &made));
    NOT_MADE(sps_csr, SPS_EINVAL, sps_csr_read(ctx, path, NULL, &info, &made));
    REFUSED(SPS_EINVAL, sps_csr_read(ctx, path, NULL, NULL, NULL));
    NOWHERE(sps_csr_read(NULL, path, NULL, NULL, &read));
    NOWHERE(sps_csr_read_rows(NULL, path, NULL, NULL, 0, 1, 1, &read));
    REFUSED(SPS_EINVAL, sps_csr_read_rows(ctx, path, NULL, NULL, 1, 2, 2,
                                          &read));
    REFUSED(SPS_EINVAL, sps_csr_read_rows(ctx, path, NULL, NULL, 0, 1, 2,
                                          &read));
    REFUSED(SPS_EIO, sps_csr_read_rows(ctx, "/nowhere", NULL, NULL, 0, 2, 2,
                                       &read));
    NOT_MADE(sps_block, SPS_EIO,
             sps_block_read(ctx, "/nonexistent/b.mtx", NULL, false, &made));
    NOT_MADE(sps_block, SPS_EPARSE,
             sps_block_read(ctx, path, NULL, false, &made));
    NOT_MADE(sps_block, SPS_EINVAL,
             sps_block_read(ctx, NULL, NULL, false, &made));
    REFUSED(SPS_EINVAL, sps_block_read(ctx, path, NULL, false, NULL));
    NOWHERE(sps_block_read(NULL, path, NULL, false, &block));
    NOWHERE(sps_block_read_rows(NULL, path, NULL, 0, 1, 1, &block));
    REFUSED(SPS_EINVAL, sps_block_read_rows(ctx, path, NULL, 1, 2, 2, &block));
    REFUSED(SPS_EIO, sps_block_read_rows(ctx, "/nowhere", NULL, 0, 1, 2,
                                         &block));
    REFUSED(SPS_EINVAL, sps_csr_write(ctx, NULL, A, false));
    REFUSED(SPS_EINVAL, sps_csr_write(ctx, path, NULL, false));
    REFUSED(SPS_EIO, sps_csr_write(ctx, "/nonexistent/a.mtx", A, false));
    A->col[1] += 100; /* not checked since */
    REFUSED(SPS_EMATRIX, sps_csr_write(ctx, path, A, false));
    A->col[1] -= 100;
    A->rowptr[1] += 9;
    REFUSED(SPS_EMATRIX, sps_csr_write(ctx, path, A, false));
    A->rowptr[1] -= 9;
    NOWHERE(sps_csr_write(NULL, path, A, false));
    REFUSED(SPS_EINVAL, sps_block_write(X, NULL, false));
    REFUSED(SPS_EIO, sps_block_write(X, "/nonexistent/x.mtx", false));
    NOWHERE(sps_block_write(NULL, path, false));
    unlink(path);
}
END_TEST

START_TEST(block_create_and_wrap)
{
    sps_block *made = NULL;

    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, -1, 1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, 1, 0, &made));
    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, 1, -1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE, sps_block_create(ctx, 1, 1025, &made));
    NOT_MADE(sps_block,
             runner_place() == SPS_HOST ? SPS_ENOMEM : SPS_EDEVMEM,
             sps_block_create(ctx, INT64_MAX / 8, 16, &made));
    REFUSED(SPS_EINVAL, sps_block_create(ctx, 1, 1, NULL));
    NOWHERE(sps_block_create(NULL, 1, 1, &made));

    NOT_MADE(sps_block, SPS_ESHAPE,
             sps_block_wrap(ctx, -1, 1, numbers, 1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE,
             sps_block_wrap(ctx, 1, 0, numbers, 1, &made));
    NOT_MADE(sps_block, SPS_ESHAPE,
             sps_block_wrap(ctx, 1, 4, numbers, 3, &made));
    NOT_MADE(sps_block, SPS_ESHAPE, /* 2^33 rows of 2^33 numbers */
             sps_block_wrap(ctx, (int64_t)1 << 33, 4, numbers,
                            (int64_t)1 << 33, &made));
    REFUSED(SPS_ESHAPE, sps_block_set(X, 0, K, numbers, INT64_MAX / 4,
                                      SPS_ROW_MAJOR, SPS_HOST));
    REFUSED(SPS_ESHAPE, sps_block_get(X, 0, K, numbers, INT64_MAX / 2,
                                      SPS_COL_MAJOR, SPS_HOST));
    NOT_MADE(sps_block, SPS_EINVAL,
             sps_block_wrap(ctx, 1, 1, NULL, 1, &made));
    NOT_MADE(sps_block, SPS_EINVAL,
             sps_block_wrap(ctx, 1, 1, (double *)((char *)numbers + 1), 1,
                            &made));
    REFUSED(SPS_EINVAL, sps_block_wrap(ctx, 1, 1, numbers, 1, NULL));
    NOWHERE(sps_block_wrap(NULL, 1, 1, numbers, 1, &made));
    sps_block_destroy(NULL);
}
END_TEST

START_TEST(block_set_get_and_random)
{
    static const struct {
        sps_status code;
        int first, k;
        bool data;
        int64_t ld;
        sps_order order;
        sps_place place;
    } bad[] = {
        {SPS_ESHAPE, -1, 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, 0, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K + 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, K, 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 2147483647, 1, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 1, 2147483647, true, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K, true, K - 1, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K, true, N - 1, SPS_COL_MAJOR, SPS_HOST},
        {SPS_ESHAPE, 0, K, true, -N, SPS_COL_MAJOR, SPS_HOST},
        {SPS_EINVAL, 0, K, false, N, SPS_ROW_MAJOR, SPS_HOST},
        {SPS_EINVAL, 0, K, true, N, (sps_order)2, SPS_HOST},
        {SPS_EINVAL, 0, K, true, N, SPS_ROW_MAJOR, SPS_AUTO},
        {SPS_EINVAL, 0, K, true, N, SPS_ROW_MAJOR, (sps_place)7},
        {SPS_EINVAL, 0, K, true, N, SPS_ROW_MAJOR, SPS_CUDA},
    };
    size_t count = sizeof bad / sizeof *bad;

    if (runner_place() == SPS_CUDA) count--; /* valid there */
    for (size_t i = 0; i < count; i++) {
        double *data = bad[i].data ? numbers : NULL;

        REFUSED(bad[i].code,
                sps_block_set(X, bad[i].first, bad[i].k, data, bad[i].ld,
                              bad[i].order, bad[i].place));
        REFUSED(bad[i].code,
                sps_block_get(X, bad[i].first, bad[i].k, data, bad[i].ld,
                              bad[i].order, bad[i].place));
    }
    NOWHERE(sps_block_set(NULL, 0, 1, numbers, N, SPS_ROW_MAJOR, SPS_HOST));
    NOWHERE(sps_block_get(NULL, 0, 1, numbers, N, SPS_ROW_MAJOR, SPS_HOST));
    NOWHERE(sps_block_random(NULL, 1));
    NOWHERE(sps_block_random_rows(NULL, 1, 0));
    REFUSED(SPS_EINVAL, sps_block_random_rows(X, 1, -1));
    sps_block_shape(NULL, NULL, NULL);
    sps_block_shape(X, NULL, NULL);
    ck_assert_ptr_null(sps_block_data(NULL, NULL));
}
END_TEST

START_TEST(destroying_twice_is_harmless)
{
    sps_block *block = NULL;
    sps_csr *csr = NULL;

    GOOD(sps_block_create(ctx, 1, 1, &block));
    sps_block_destroy(&block);
    ck_assert_ptr_null(block);
    sps_block_destroy(&block);
    GOOD(sps_csr_create(ctx, 1, 1, 1, SPS_F64, &csr));
    sps_csr_destroy(ctx, &csr);
    ck_assert_ptr_null(csr);
    sps_csr_destroy(ctx, &csr);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(context),
    RUNNER_TEST(csr_create_and_wrap),
    RUNNER_TEST(csr_check_and_symmetric),
    RUNNER_TEST(csr_products),
    RUNNER_TEST(files),
    RUNNER_TEST(block_create_and_wrap),
    RUNNER_TEST(block_set_get_and_random),
    RUNNER_TEST(destroying_twice_is_harmless),
};
RUNNER_MAIN_WITHIN("api_contract", tests, setup, teardown)
