/* SPDX-License-Identifier: BSD-3-Clause */
/* check_files.c - binary files of others: one matrix from a file of every kind,
 * what is written and read back, and what malformed files are told. */
#include "tests/problems/file_seeds.h"
#include "tests/problems/mtx_fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

/* ----------------------------------------------------------------- reading */

static void assert_is_seed(const sps_csr *A, const char *name)
{
    double x[SEED_ROWS][SEED_COLUMNS] = {{0}};

    ck_assert_msg(A->nrow == SEED_ROWS && A->ncol == SEED_COLUMNS, "%s", name);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            x[i][A->col[p]] += ((const double *)A->val)[p];
    ck_assert_msg(memcmp(x, seed_dense, sizeof x) == 0, "%s", name);
}

START_TEST(a_matrix_is_the_same_from_every_kind_of_file)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    seed s[SEEDS_MOST];
    int count = seeds_make(s);

    for (int i = 0; i < count; i++)
        for (int gzip = 0; gzip < 2; gzip++) {
            size_t size = s[i].file.size;
            unsigned char *packed = files_pack(s[i].file.bytes, &size);
            const char *path = gzip
                ? files_bytes("any-name", packed, size)
                : files_bytes("any-name", s[i].file.bytes, s[i].file.size);
            sps_read_info info = {.struct_size = sizeof info};
            sps_csr *A = NULL;

            OK(ctx, sps_csr_read(ctx, path, NULL, &info, &A));
            assert_is_seed(A, s[i].name);
            ck_assert(A->props & SPS_SORTED);
            ck_assert_str_eq(info.symmetry, "general");
            sps_csr_destroy(ctx, &A);
            free(packed);
        }
    for (int i = 0; i < count; i++) archive_free(&s[i].file);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(a_block_is_the_same_from_every_kind_of_file)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    double x[SEED_ROWS][SEED_COLUMNS], z[2 * SEED_ROWS][SEED_COLUMNS];
    seed s[SEEDS_MOST];
    int count = seeds_make(s);

    for (int i = 0; i < count; i++)
        for (int complex = 0; complex < 2; complex++) {
            const char *path = files_bytes("any-name", s[i].file.bytes,
                                           s[i].file.size);
            sps_block *X = NULL;

            OK(ctx, sps_block_read(ctx, path, NULL, complex, &X));
            OK(ctx, sps_block_get(X, 0, SEED_COLUMNS, complex ? z[0] : x[0],
                                  SEED_COLUMNS, SPS_ROW_MAJOR, SPS_HOST));
            for (int r = 0; complex && r < SEED_ROWS; r++) {
                memcpy(x[r], z[2 * r], sizeof x[r]);
                for (int c = 0; c < SEED_COLUMNS; c++)
                    ck_assert(z[2 * r + 1][c] == 0);
            }
            ck_assert_msg(memcmp(x, seed_dense, sizeof x) == 0, "%s",
                          s[i].name);
            sps_block_destroy(&X);
        }
    for (int i = 0; i < count; i++) archive_free(&s[i].file);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(sizes_are_told_without_the_numbers)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    seed s[SEEDS_MOST];
    int count = seeds_make(s);

    for (int i = 0; i < count; i++) {
        int64_t rows = 0, columns = 0, entries = 0;

        OK(ctx, sps_file_sizes(ctx, files_bytes("any-name", s[i].file.bytes,
                                                s[i].file.size),
                               &rows, &columns, &entries));
        ck_assert_int_eq(rows, SEED_ROWS);
        ck_assert_int_eq(columns, SEED_COLUMNS);
        ck_assert_msg(entries >= 6 && entries <= 16, "%s: %d", s[i].name,
                      (int)entries);
        archive_free(&s[i].file);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

static void assert_block(sps_context *ctx, const char *path, int64_t rows,
                         int columns, const double *by_columns)
{
    sps_block *X = NULL;
    double x[16];
    int64_t n;
    int k;

    OK(ctx, sps_block_read(ctx, path, NULL, false, &X));
    sps_block_shape(X, &n, &k);
    ck_assert_msg(n == rows && k == columns, "%s: %d x %d", path, (int)n, k);
    OK(ctx, sps_block_get(X, 0, k, x, n, SPS_COL_MAJOR, SPS_HOST));
    ck_assert_mem_eq(x, by_columns, (size_t)(n * k) * sizeof *x);
    sps_block_destroy(&X);
}

#define BYTES(text) text, sizeof text - 1

START_TEST(vectors_of_petsc_are_the_columns_of_a_block)
{
    static const double both[] = {1, 2, 3, 4};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_csr *A = NULL;

    assert_block(ctx, files_bytes("v", BYTES(SEED_PETSC_VECTORS)), 2, 2, both);
    /* A file of A and b is the matrix, and the right-hand sides. */
    assert_block(ctx, files_bytes("Ab", BYTES(SEED_PETSC SEED_PETSC_VECTORS)),
                 2, 2, both);
    OK(ctx, sps_csr_read(ctx, files_path("Ab"), NULL, NULL, &A));
    assert_is_seed(A, "Ab");
    sps_csr_destroy(ctx, &A);
    /* The first matrix, wherever the vectors are; another pair is left out. */
    assert_block(ctx, files_bytes("AbAb", BYTES(SEED_PETSC SEED_PETSC_VECTORS
                                                SEED_PETSC SEED_PETSC_VECTORS)),
                 2, 2, both);
    OK(ctx, sps_csr_read(ctx, files_bytes("bA", BYTES(SEED_PETSC_VECTORS
                                                      SEED_PETSC)),
                         NULL, NULL, &A));
    assert_is_seed(A, "bA");
    sps_csr_destroy(ctx, &A);
    OK(ctx, sps_csr_read(ctx, files_bytes("A64", BYTES(SEED_PETSC_64)), NULL,
                         NULL, &A));
    ck_assert_int_eq(A->nnz, 1);
    ck_assert_int_eq(A->rowptr[2] - A->rowptr[1], 1);
    ck_assert_int_eq(A->col[0], 1);
    ck_assert(*(double *)A->val == -3);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(integers_beyond_doubles_are_rounded_and_told)
{
    static const uint64_t v[] = {UINT64_C(9007199254740993), UINT64_MAX, 7};
    static const double x[] = {9007199254740992.0, 0x1p64, 7};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    archive a = {0};

    archive_npy(&a, 1, "<u8", false, "(3,)", SEED_BYTES(v));
    assert_block(ctx, files_bytes("u8.npy", a.bytes, a.size), 3, 1, x);
    ck_assert(fixture_noted(ctx, "2 integers beyond 2^53 were rounded"));
    archive_free(&a);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* A matrix of 2 x 3 whose entry in row p, column q is (p + 1) + (q + 1) i. */
static void assert_complex(sps_context *ctx, const char *path)
{
    sps_block *X = NULL;
    double x[12];

    OK(ctx, sps_block_read(ctx, path, NULL, true, &X));
    OK(ctx, sps_block_get(X, 0, 3, x, 3, SPS_ROW_MAJOR, SPS_HOST));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++) {
            ck_assert_double_eq(x[2 * i * 3 + j], i + 1);
            ck_assert_double_eq(x[(2 * i + 1) * 3 + j], j + 1);
        }
    sps_block_destroy(&X);
    ck_assert_int_eq(sps_block_read(ctx, path, NULL, false, &X), SPS_EPARSE);
    ck_assert(strstr(sps_context_error(ctx), "it must be real"));
}

START_TEST(complex_arrays_are_right_hand_sides_of_complex_matrices)
{
    static const double rows[] = {1, 1, 1, 2, 1, 3, 2, 1, 2, 2, 2, 3};
    static const float columns[] = {1, 1, 2, 1, 1, 2, 2, 2, 1, 3, 2, 3};
    static const double parts[] = {1, 1, 1, 1, 2, 3, 2, 2, 2, 1, 2, 3};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    archive a = {0};
    sps_block *X = NULL;
    const char *path = files_path("written.npy");

    archive_npy(&a, 1, "<c16", false, "(2, 3)", SEED_BYTES(rows));
    assert_complex(ctx, files_bytes("rows.npy", a.bytes, a.size));
    archive_free(&a);
    archive_npy(&a, 1, "<c8", true, "(2, 3)", SEED_BYTES(columns));
    assert_complex(ctx, files_bytes("columns.npy", a.bytes, a.size));
    archive_free(&a);
    OK(ctx, sps_block_create(ctx, 4, 3, &X));
    OK(ctx, sps_block_set(X, 0, 3, parts, 3, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, sps_block_write(X, path, true));
    sps_block_destroy(&X);
    assert_complex(ctx, path);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(one_array_of_an_archive_is_taken_by_name)
{
    static const double b[] = {1, 2}, c[] = {3, 4};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_block *X = NULL;
    archive a = {0};
    char named[256];
    const char *path;

    archive_array(&a, "b.npy", 0, "<f8", false, "(2,)", SEED_BYTES(b));
    archive_array(&a, "c.npy", 0, "<f8", false, "(2,)", SEED_BYTES(c));
    archive_end(&a);
    path = files_bytes("two.npz", a.bytes, a.size);
    ck_assert_int_eq(sps_block_read(ctx, path, NULL, false, &X), SPS_EPARSE);
    ck_assert(strstr(sps_context_error(ctx), "2 arrays") != NULL);
    snprintf(named, sizeof named, "%s:c", path);
    assert_block(ctx, named, 2, 1, c);
    snprintf(named, sizeof named, "%s:d", path);
    ck_assert_int_eq(sps_block_read(ctx, named, NULL, false, &X), SPS_EPARSE);
    archive_free(&a);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* ----------------------------------------------------------------- writing */

static const char *const kinds[] = {"a.npz", "a.petsc", "a.npz.gz", "a.mtx"};

START_TEST(matrices_read_back_bit_by_bit)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);

    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 0; n <= 300; n = 7 * n + 1) {
            sps_csr *A = zoo_matrix(f, n, 3, ZOO_RANDOM, SPS_F64), *B = NULL;

            for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
                const char *path = files_path(kinds[i]);

                OK(ctx, sps_csr_write(ctx, path, A, false));
                OK(ctx, sps_csr_read(ctx, path, NULL, NULL, &B));
                assert_equal(A, B);
                sps_csr_destroy(ctx, &B);
            }
            zoo_free(&A);
        }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

static void block_round_trip(sps_context *ctx, const sps_block *X,
                             const char *path, const double *x)
{
    sps_block *Y = NULL;
    int64_t n, m;
    double *y;
    int k, l;

    OK(ctx, sps_block_write(X, path, false));
    OK(ctx, sps_block_read(ctx, path, NULL, false, &Y));
    sps_block_shape(X, &n, &k);
    sps_block_shape(Y, &m, &l);
    ck_assert_msg(n == m && k == l, "%s: %d x %d", path, (int)m, l);
    y = malloc((size_t)(n * k) * sizeof *y + 1);
    OK(ctx, sps_block_get(Y, 0, k, y, n, SPS_COL_MAJOR, SPS_HOST));
    if (n > 0) ck_assert_mem_eq(x, y, (size_t)(n * k) * sizeof *y);
    free(y);
    sps_block_destroy(&Y);
}

START_TEST(blocks_read_back_bit_by_bit)
{
    static const char *const name[] = {"x.npy", "x.npz", "x.petsc", "x.npy.gz",
                                       "x.mtx"};
    sps_context *ctx = fixture_open_with(SPS_HOST, 2, true);

    for (int k = 1; k <= 19; k += 6)
        for (int64_t n = 1; n < 20000; n = 9 * n + 2) {
            double *x = malloc((size_t)(n * k) * sizeof *x);
            sps_block *X = NULL;

            OK(ctx, sps_block_create(ctx, n, k, &X));
            OK(ctx, sps_block_random(X, 5));
            OK(ctx, sps_block_get(X, 0, k, x, n, SPS_COL_MAJOR, SPS_HOST));
            for (int i = 0; i < 5; i++)
                block_round_trip(ctx, X, files_path(name[i]), x);
            free(x);
            sps_block_destroy(&X);
        }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(the_bytes_of_petsc_are_those_of_its_definition)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_csr *A = NULL;
    size_t size;
    char *bytes;

    OK(ctx, sps_csr_read(ctx, files_text("a.mtx", SEED_MTX), NULL, NULL, &A));
    OK(ctx, sps_csr_write(ctx, files_path("a.petsc"), A, false));
    bytes = files_read(files_path("a.petsc"), &size);
    ck_assert_uint_eq(size, sizeof SEED_PETSC - 1);
    ck_assert_mem_eq(bytes, SEED_PETSC, size);
    free(bytes);
    /* A dense array holds no sparse matrix. */
    ck_assert_int_eq(sps_csr_write(ctx, files_path("a.npy"), A, false),
                     SPS_EINVAL);
    ck_assert(strstr(sps_context_error(ctx), ".npz") != NULL);
    ck_assert_int_ne(access(files_path("a.npy"), F_OK), 0);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* ---------------------------------------------------------------- refusals */

static void refused(sps_context *ctx, const archive *a, const char *word)
{
    const char *path = files_bytes("bad-file", a->bytes, a->size);
    sps_csr *A = NULL;

    ck_assert_int_eq(sps_csr_read(ctx, path, NULL, NULL, &A), SPS_EPARSE);
    ck_assert_msg(strstr(sps_context_error(ctx), word) &&
                  strstr(sps_context_error(ctx), "bad-file"),
                  "no \"%s\" in \"%s\"", word, sps_context_error(ctx));
}

/* EPARSE, or ENOMEM on a machine that has less. */
static void refused_size(sps_context *ctx, archive *a)
{
    const char *path = files_bytes("bad-file", a->bytes, a->size);
    sps_csr *A = NULL;
    sps_status st = sps_csr_read(ctx, path, NULL, NULL, &A);

    ck_assert_msg(st == SPS_EPARSE || st == SPS_ENOMEM, "status %d", (int)st);
    ck_assert(strstr(sps_context_error(ctx), "bad-file") != NULL);
    archive_free(a);
}

static void refused_npy(sps_context *ctx, const char *descr, const char *shape,
                        const char *word)
{
    archive a = {0};

    archive_npy(&a, 1, descr, false, shape, seed_dense, 32);
    refused(ctx, &a, word);
    archive_free(&a);
}

START_TEST(arrays_that_are_not_read_are_told_why)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    refused_npy(ctx, "<c16", "(2,)", "complex matrices are read only from "
                                     "Matrix Market files");
    refused_npy(ctx, "|O", "(4,)", "Python objects");
    refused_npy(ctx, "<f2", "(16,)", "a.astype(float)");
    refused_npy(ctx, "<f8", "(1, 2, 2)", "3 dimensions");
    refused_npy(ctx, "<f8", "()", "0 dimensions");
    refused_npy(ctx, "<f8", "(5,)", "5 numbers of 8 bytes");
    refused_npy(ctx, "<f8", "(3,)", "more bytes follow the array");
    refused_npy(ctx, "<f8", "(-4,)", "its shape");
    refused_npy(ctx, "<f8", "(4294967296, 4294967296)", "more than 2^63");
    refused_npy(ctx, "<f8", "(4611686018427387904,)", "shape");
    refused_npy(ctx, "<f8", "(0, 2147483648)", "at most 2147483647");
    refused_npy(ctx, "|V16", "(2,)", "type |V16");
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* A csr with some of its arrays replaced. */
static void refused_csr(sps_context *ctx, const int32_t *indptr,
                        const int32_t *indices, const double *data,
                        const char *format, const char *word)
{
    archive a = {0};

    archive_array(&a, "indices.npy", 0, "<i4", false, "(6,)",
                  indices ? indices : seed_csr_indices, 24);
    archive_array(&a, "indptr.npy", 0, "<i4", false, "(4,)",
                  indptr ? indptr : seed_csr_indptr, 16);
    seed_format(&a, 0, format);
    archive_array(&a, "data.npy", 0, "<f8", false, "(6,)",
                  data ? data : seed_csr_data, 48);
    archive_end(&a);
    refused(ctx, &a, word);
    archive_free(&a);
}

START_TEST(complex_matrices_of_petsc_are_refused)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    archive a = {0};

    archive_add(&a, BYTES("\0\x12\x7b\x50\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\1"
                          "\0\0\0\0\x3f\xf0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0"));
    refused(ctx, &a, "byte 32: what follows is not an object of PETSc");
    archive_free(&a);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(sparse_archives_that_contradict_themselves_are_told)
{
    static const int32_t falls[] = {0, 3, 2, 6}, late[] = {1, 2, 3, 6},
                         beyond[] = {0, 2, 3, 7}, column[] = {0, 4, 1, 0, 2, 3},
                         negative[] = {0, 2, -1, 0, 2, 3};
    static const double nan[] = {1, 2, NAN, 4, 5, 6};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    refused_csr(ctx, falls, NULL, NULL, "csr", "falls from 3 to 2");
    refused_csr(ctx, late, NULL, NULL, "csr", "begins with 1 instead of 0");
    refused_csr(ctx, beyond, NULL, NULL, "csr", "ends with 7");
    refused_csr(ctx, NULL, column, NULL, "csr", "indices[1] is 4");
    refused_csr(ctx, NULL, negative, NULL, "csr", "index -1");
    refused_csr(ctx, NULL, NULL, nan, "csr", "number 2 is NaN");
    refused_csr(ctx, NULL, NULL, NULL, "csc", "indptr has 4 elements");
    refused_csr(ctx, NULL, NULL, NULL, "coo", "without its row and col");
    refused_csr(ctx, NULL, NULL, NULL, "dia", "without its offsets");
    refused_csr(ctx, NULL, NULL, NULL, "bsr", "do not divide");
    refused_csr(ctx, NULL, NULL, NULL, "lil", "csr, csc, coo, bsr and dia");
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(a_changed_byte_of_an_archive_is_found)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    archive a = seed_csr(ARCHIVE_STORED);

    for (size_t i = 0; i + 8 <= a.size; i++)        /* 5.0 becomes 5.0 + ulp */
        if (memcmp(a.bytes + i, &seed_csr_data[4], 8) == 0) a.bytes[i] = 1;
    refused(ctx, &a, "checksum");
    archive_free(&a);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(duplicates_are_summed_or_refused)
{
    static const int32_t twice[] = {0, 0, 1, 2, 2, 2};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_read_options ro = {.struct_size = sizeof ro, .strict = true};
    sps_read_info info = {.struct_size = sizeof info};
    sps_csr *A = NULL;
    archive a = {0};
    const char *path;

    archive_array(&a, "indices.npy", 0, "<i4", false, "(6,)", twice, 24);
    archive_array(&a, "indptr.npy", 0, "<i4", false, "(4,)", seed_csr_indptr,
                  16);
    seed_format(&a, 0, "csr");
    archive_array(&a, "data.npy", 0, "<f8", false, "(6,)", seed_csr_data, 48);
    archive_end(&a);
    path = files_bytes("twice", a.bytes, a.size);
    ck_assert_int_eq(sps_csr_read(ctx, path, &ro, NULL, &A), SPS_EPARSE);
    ck_assert(strstr(sps_context_error(ctx), "entry (0, 0)") != NULL);
    OK(ctx, sps_csr_read(ctx, path, NULL, &info, &A));
    ck_assert_int_eq(A->nnz, 3);
    ck_assert_int_eq(info.duplicates, 3);
    ck_assert(((double *)A->val)[2] == 15);
    sps_csr_destroy(ctx, &A);
    archive_free(&a);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(memory_that_a_header_alone_promises_is_not_taken)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_context_info info = {.struct_size = sizeof info};
    archive a = {0};

    archive_add(&a, BYTES("\0\x12\x7b\x50\x7f\xff\xff\xff\0\0\0\4\0\0\0\6"));
    refused_size(ctx, &a);
    archive_add(&a, BYTES("\0\x12\x7b\x4e\x7f\xff\xff\xff\0\0\0\0\0\0\0\0"));
    refused_size(ctx, &a);
    archive_npy(&a, 1, "<f8", false, "(2000000000,)", "12345678", 8);
    refused_size(ctx, &a);
    OK(ctx, sps_context_information(ctx, &info));
    ck_assert_uint_lt(info.host_peak, 10000000);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_matrix_is_the_same_from_every_kind_of_file),
    RUNNER_TEST(a_block_is_the_same_from_every_kind_of_file),
    RUNNER_TEST(sizes_are_told_without_the_numbers),
    RUNNER_TEST(vectors_of_petsc_are_the_columns_of_a_block),
    RUNNER_TEST(integers_beyond_doubles_are_rounded_and_told),
    RUNNER_TEST(complex_arrays_are_right_hand_sides_of_complex_matrices),
    RUNNER_TEST(one_array_of_an_archive_is_taken_by_name),
    RUNNER_TEST(matrices_read_back_bit_by_bit),
    RUNNER_TEST(blocks_read_back_bit_by_bit),
    RUNNER_TEST(the_bytes_of_petsc_are_those_of_its_definition),
    RUNNER_TEST(arrays_that_are_not_read_are_told_why),
    RUNNER_TEST(complex_matrices_of_petsc_are_refused),
    RUNNER_TEST(sparse_archives_that_contradict_themselves_are_told),
    RUNNER_TEST(a_changed_byte_of_an_archive_is_found),
    RUNNER_TEST(duplicates_are_summed_or_refused),
    RUNNER_TEST(memory_that_a_header_alone_promises_is_not_taken),
};

RUNNER_MAIN("files", tests)
