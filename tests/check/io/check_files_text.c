/* SPDX-License-Identifier: BSD-3-Clause */
/* check_files_text.c - text files of others: Harwell-Boeing, plain columns of
 * numbers; and files compressed by xz and zstd. */
#include "tests/problems/file_seeds.h"
#include "tests/problems/mtx_fixture.h"
#include "tests/support/runner.h"

static const char *refusal(sps_context *ctx, const char *text, bool block)
{
    const char *path = files_text("bad-file", text);
    sps_csr *A = NULL;
    sps_block *X = NULL;

    ck_assert_int_eq(block ? sps_block_read(ctx, path, NULL, false, &X)
                           : sps_csr_read(ctx, path, NULL, NULL, &A),
                     SPS_EPARSE);
    return strstr(sps_context_error(ctx), "bad-file");
}

#define REFUSED(text, block, word)                                             \
    do {                                                                       \
        const char *says_ = refusal(ctx, text, block);                         \
        ck_assert_msg(says_ && strstr(says_, word), "no \"%s\" in \"%s\"",     \
                      word, sps_context_error(ctx));                           \
    } while (0)

static void assert_block(sps_context *ctx, const char *path, int64_t rows,
                         int columns, const double *by_rows)
{
    sps_block *X = NULL;
    double x[16];
    int64_t n;
    int k;

    OK(ctx, sps_block_read(ctx, path, NULL, false, &X));
    sps_block_shape(X, &n, &k);
    ck_assert_msg(n == rows && k == columns, "%s: %d x %d", path, (int)n, k);
    OK(ctx, sps_block_get(X, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
    ck_assert_mem_eq(x, by_rows, (size_t)(n * k) * sizeof *x);
    sps_block_destroy(&X);
}

/* ---------------------------------------------------------- Harwell-Boeing */

/* A 3 x 3 matrix of four entries; the lines after the title. */
#define HB(rhs, type, formats, rest)                                           \
    "title                                                                   " \
    "key\n 3 1 1 1 " rhs "\n" type "   3 3 4 0\n" formats "\n" rest
#define PLAIN "(4I3)           (4I3)           (4F6.1)             (3F6.1)"
#define LOWER "  1  3  4  5\n  1  3  2  3\n"

static void assert_hb(sps_context *ctx, const char *text, const double x[9],
                      bool symmetric, const char *field)
{
    sps_read_info info = {.struct_size = sizeof info};
    sps_csr *A = NULL;

    OK(ctx, sps_csr_read(ctx, files_text("a.hb", text), NULL, &info, &A));
    assert_dense("a.hb", A, 3, 3, x);
    ck_assert_int_eq((A->props & SPS_SYMMETRIC) != 0, symmetric);
    ck_assert_str_eq(info.field, field);
    sps_csr_destroy(ctx, &A);
}

START_TEST(symmetric_and_skew_matrices_are_completed)
{
    static const double general[] = {1, 0, 0, 0, 3, 0, 2, 0, 4},
                        full[] = {1, 0, 2, 0, 3, 0, 2, 0, 4},
                        ones[] = {1, 0, 1, 0, 1, 0, 1, 0, 1},
                        skew[] = {0, -1, -2, 1, 0, -3, 2, 3, 0};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    assert_hb(ctx, HB("0", "RUA", PLAIN, LOWER "   1.0   2.0   3.0   4.0\n"),
              general, false, "real");
    assert_hb(ctx, HB("0", "rsa", PLAIN, LOWER "   1.0   2.0   3.0   4.0\n"),
              full, true, "real");
    assert_hb(ctx, HB("", "PSA", "(4I3)           (4I3)", LOWER), ones, true,
              "pattern");
    assert_hb(ctx, HB("", "ISA", "(4I3)           (4I3)           (4I3)",
                      LOWER "  1  2  3  4\n"), full, true, "integer");
    assert_hb(ctx, "title\n 3 1 1 1\nRZA   3 3 3 0\n" PLAIN "\n"
              "  1  3  4  4\n  2  3  3\n   1.0   2.0   3.0\n", skew, false,
              "real");
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* The values 1 2 3 4 in several formats of Fortran. */
START_TEST(numbers_are_read_by_their_fortran_format)
{
    static const struct {
        const char *format, *values;
    } form[] = {
        {"(4F6.1)", "   1.0   2.0   3.0   4.0\n"},
        {"(4F6.1)", "    10    20    30    40\n"},
        {"(4F3.1)", "1.02.03.04.0\n"},
        {"(2E9.2)", " 1.00E+00 2.00D+00\n 3.00+000    4.0E0\n"},
        {"(1P,2D9.2)", "10.00D-01 2.00d+00\n0.03D2   400.D-02\n"},
        {"(1P4F5.1)", " 10.0 20.0 30.0 40.0\n"},
        {"(-1P4F5.1)", "  0.1  0.2  0.3  0.4\n"},
        {"(3(G8.3))", "   1.      2.      3.0  \n4.\n"},
        {"(4E25.16)", " 1.0E+00 2.0E+00 3.0E+00 4.0E+00\n"},  /* narrower */
    };
    static const double x[] = {1, 0, 0, 0, 3, 0, 2, 0, 4};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    char text[600];

    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        snprintf(text, sizeof text, "title\n 3 1 1 1 0\nRUA   3 3 4 0\n%-16s"
                 "%-16s%-20s\n" LOWER "%s", "(4I3)", "(4I3)", form[i].format,
                 form[i].values);
        assert_hb(ctx, text, x, false, "real");
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(right_hand_sides_of_harwell_boeing_are_a_block)
{
    static const double full[] = {1, 4, 2, 5, 3, 6}, sparse[] = {0, 7, 8, 0,
                                                                  0, 9};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    assert_block(ctx, files_text("b.hb", "title\n 5 1 1 1 2\n"
                 "RUA   3 3 4 0\n" PLAIN "\nF     2 0\n" LOWER
                 "   1.0   2.0   3.0   4.0\n   1.0   2.0   3.0\n"
                 "   4.0   5.0   6.0\n"), 3, 2, full);
    assert_block(ctx, files_text("s.hb", "title\n 5 1 1 1 3\n"
                 "PUA   3 3 4 0\n" PLAIN "\nM     2 3\n" LOWER
                 "  1  2  4\n  2  1  3\n   8.0   7.0   9.0\n"), 3, 2, sparse);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(malformed_harwell_boeing_files_are_told)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    REFUSED(HB("0", "CUA", PLAIN, LOWER), false, "complex");
    REFUSED(HB("0", "RUE", PLAIN, LOWER), false, "not assembled");
    REFUSED(HB("0", "RUA", "(4X3)           (4I3)           (4F6.1)", LOWER),
            false, "the format \"(4X3)\"");
    REFUSED(HB("0", "RUA", PLAIN, "  1  3  2  5\n  1  3  2  3\n"), false,
            "falls from 3 to 2");
    REFUSED(HB("0", "RUA", PLAIN, "  1  3  4  4\n  1  3  2  3\n"), false,
            "ends with 4");
    REFUSED(HB("0", "RUA", PLAIN, "  1  3  4  5\n  1  4  2  3\n"), false,
            "6: row 4, but the matrix has rows 1 to 3");
    REFUSED(HB("0", "RUA", PLAIN, LOWER "   1.0   2.0   x.0   4.0\n"), false,
            ":7: \"x.0\" is not a number");
    REFUSED(HB("0", "RUA", PLAIN, LOWER "   1.0   2.0   nan   4.0\n"), false,
            "not finite");
    REFUSED(HB("0", "RUA", PLAIN, LOWER "   1.0   2.0   3.0\n"), false,
            "field 4 of the values");
    REFUSED(HB("0", "RUA", PLAIN, LOWER), false, "ends before the values");
    REFUSED(HB("0", "RSA", PLAIN, "  1  3  4  5\n  1  3  1  3\n"
               "   1.0   2.0   3.0   4.0\n"), false, "stores one triangle");
    REFUSED(HB("0", "RZA", PLAIN, LOWER "   1.0   2.0   3.0   4.0\n"), false,
            "skew-symmetric");
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* ---------------------------------------------------------------- columns */

START_TEST(plain_numbers_are_a_block)
{
    static const double x[] = {1, 2.5, -3e4, 4};
    static const char *const text[] = {
        "1 2.5\n-3e4 4\n", "1,2.5\n-3e4,4\n", " 1\t2.5 \r\n-3d+4  4",
        "# a comment\n\n1 2.5\n% one more\n-30000 4\n\n", "1;2.5\n-3E4; 4\n",
        ("\xef\xbb\xbf" "1 2.5\n-3e4 4\n"), "x,y\n1,2.5\n-3e4,4\n"};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        assert_block(ctx, files_text("b.txt", text[i]), 2, 2, x);
        ck_assert(fixture_noted(ctx, "read as plain numbers"));
    }
    REFUSED("1 2\n3\n", true, ":2: this line has 1 numbers, but the rows "
            "before have 2");
    REFUSED("1 2\n3 x\n", true, ":2: \"x\" is not a number");
    REFUSED("1,2\n3,\n", true, ":2: \"\" is blank");
    REFUSED("1,5;2\n", true, "decimal commas");
    REFUSED("1 nan\n", true, "not finite");
    REFUSED("1 1e999\n", true, "beyond the largest double");
    /* As a matrix they could mean anything. */
    REFUSED("1 1 2.5\n2 2 1\n", false, "lines of three numbers");
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* ------------------------------------------------------------- compression */

/* "%%MatrixMarket matrix array real general\n2 1\n5\n6\n" */
static const unsigned char packed_xz[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46,
    0x02, 0x00, 0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3,
    0x01, 0x00, 0x30, 0x25, 0x25, 0x4d, 0x61, 0x74, 0x72, 0x69, 0x78, 0x4d,
    0x61, 0x72, 0x6b, 0x65, 0x74, 0x20, 0x6d, 0x61, 0x74, 0x72, 0x69, 0x78,
    0x20, 0x61, 0x72, 0x72, 0x61, 0x79, 0x20, 0x72, 0x65, 0x61, 0x6c, 0x20,
    0x67, 0x65, 0x6e, 0x65, 0x72, 0x61, 0x6c, 0x0a, 0x32, 0x20, 0x31, 0x0a,
    0x35, 0x0a, 0x36, 0x0a, 0x00, 0x00, 0x00, 0x00, 0x06, 0xd8, 0xcd, 0x86,
    0x7a, 0x0c, 0xeb, 0x3c, 0x00, 0x01, 0x49, 0x31, 0x5d, 0x41, 0xe3, 0x50,
    0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
};
static const unsigned char packed_zstd[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x89, 0x01, 0x00, 0x25, 0x25, 0x4d,
    0x61, 0x74, 0x72, 0x69, 0x78, 0x4d, 0x61, 0x72, 0x6b, 0x65, 0x74, 0x20,
    0x6d, 0x61, 0x74, 0x72, 0x69, 0x78, 0x20, 0x61, 0x72, 0x72, 0x61, 0x79,
    0x20, 0x72, 0x65, 0x61, 0x6c, 0x20, 0x67, 0x65, 0x6e, 0x65, 0x72, 0x61,
    0x6c, 0x0a, 0x32, 0x20, 0x31, 0x0a, 0x35, 0x0a, 0x36, 0x0a, 0xf9, 0xc9,
    0xe6, 0xa1,
};

/* Whether the library of a codec is here, as the reader finds out. */
static bool present(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW);

    if (handle) dlclose(handle);
    return handle != NULL;
}

static void check_packed(const unsigned char *packed, size_t size,
                         const char *name)
{
    static const double x[] = {5, 6, 5, 6};
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    unsigned char twice[1024];
    sps_block *X = NULL;

    assert_block(ctx, files_bytes("b", packed, size), 2, 1, x);
    for (size_t cut = 6; cut < size; cut++) {
        const sps_status st = sps_block_read(ctx, files_bytes("b", packed, cut),
                                             NULL, false, &X);

        ck_assert_int_eq(st, SPS_EPARSE);
        ck_assert_msg(strstr(sps_context_error(ctx), "cut off") != NULL,
                      "%s", sps_context_error(ctx));
    }
    memcpy(twice, packed, size);
    twice[size - 20] ^= 0x55;
    ck_assert_int_eq(sps_block_read(ctx, files_bytes("b", twice, size), NULL,
                                    false, &X), SPS_EPARSE);
    memcpy(twice, packed, size);
    memcpy(twice + size, "junk", 4);
    ck_assert_int_eq(sps_block_read(ctx, files_bytes("b", twice, size + 4),
                                    NULL, false, &X), SPS_EPARSE);
    ck_assert_msg(strstr(sps_context_error(ctx), name) != NULL, "%s",
                  sps_context_error(ctx));
    fixture_close(&ctx);
    files_clean();
}

START_TEST(files_of_xz_are_unpacked)
{
    if (!present("liblzma.so.5")) runner_skip("no liblzma.so.5");
    check_packed(packed_xz, sizeof packed_xz, "bytes that are not xz follow");
}
END_TEST

START_TEST(files_of_zstd_are_unpacked)
{
    if (!present("libzstd.so.1")) runner_skip("no libzstd.so.1");
    check_packed(packed_zstd, sizeof packed_zstd,
                 "bytes that are not zstd follow");
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(symmetric_and_skew_matrices_are_completed),
    RUNNER_TEST(numbers_are_read_by_their_fortran_format),
    RUNNER_TEST(right_hand_sides_of_harwell_boeing_are_a_block),
    RUNNER_TEST(malformed_harwell_boeing_files_are_told),
    RUNNER_TEST(plain_numbers_are_a_block),
    RUNNER_TEST(files_of_xz_are_unpacked),
    RUNNER_TEST(files_of_zstd_are_unpacked),
};

RUNNER_MAIN("files_text", tests)
