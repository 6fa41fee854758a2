/* SPDX-License-Identifier: BSD-3-Clause */
/* check_foreign.c - files of other formats are recognised, and the error names
 * the format and a conversion; size lines that the rest of the file contradicts
 * are rejected. (solve_run.py runs the suggested commands where SciPy is
 * installed.) */
#include "block/block.h"
#include "io/stream/size.h"
#include "tests/support/files.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

#define BANNER "%%MatrixMarket matrix "
#define NAMES(text, what, how) {text, sizeof text - 1, what, how}

static const struct {
    const char *bytes;
    size_t size;
    const char *what, *how;
} others[] = {
    NAMES("PK\3\4 \0\0\0\0\0\0\0!\0AAAABBBBCCCC\5\0\0\0a.mtxetc", "a zip archive",
          "unzip -p "),
    NAMES("MATLAB 7.3 MAT-file, Platform: GLNXA64", "version 7.3", "-v7"),
    NAMES("\2\0\0\0\2\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0A\0etc",
          "a MATLAB file of level 4", "with -v7"),
    NAMES("\x89HDF\r\n\x1a\n\0\0\0\0", "an HDF5 file", "h5py.File('"),
    NAMES("BZh91AY&SY", "compressed by bzip2", "bzip2 -dc "),
    NAMES("<!DOCTYPE html>\n<html><title>404</title>", "a page of HTML",
          "fetch the file again"),
    NAMES("\n <HTML><body>", "a page of HTML", "fetch the file again"),
    NAMES("<?xml version='1.0'?>", "a file of XML", "mmwrite"),
    NAMES("{\"rows\": 3}", "a file of JSON", "mmwrite"),
    NAMES("1 1 2.5\n1 2 -1\n", "lines of three numbers", "s.coo_matrix"),
    NAMES("# edges\n0 1\n1 2\n", "lines of two whole numbers", "graph"),
    NAMES("1.5\n2.5\n", "plain columns of numbers", "n.genfromtxt"),
    NAMES("1.5 2 3 4\n", "plain columns of numbers", "n.genfromtxt"),
    NAMES("1,2,3\n", "separated by commas", "delimiter=','"),
    NAMES("1.5;2;3\n", "separated by semicolons", "delimiter=';'"),
    NAMES("x,y\n1,2\n", "names of columns", "skip_header=1"),
    NAMES("\xff\xfe%\0%\0M\0", "text in UTF-16", "| spsolve -A -"),
    NAMES("version https://git-lfs.github.com/spec/v1\n", "Git LFS",
          "git lfs pull"),
    NAMES("\x7f" "ELF\2\1\1\0\0\0\0", "a binary file", "mmwrite"),
};

static const char *refusal(sps_context *ctx, const char *path)
{
    sps_csr *A = NULL;

    ck_assert_int_eq(sps_csr_read(ctx, path, NULL, NULL, &A), SPS_EPARSE);
    ck_assert_ptr_null(A);
    return sps_context_error(ctx);
}

static void assert_says(const char *text, const char *word)
{
    ck_assert_msg(strstr(text, word) != NULL, "no \"%s\" in \"%s\"", word,
                  text);
}

START_TEST(other_formats_are_named_with_the_way_to_convert_them)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t size = others[i].size;
        unsigned char *packed = files_pack(others[i].bytes, &size);

        for (int gzip = 0; gzip < 2; gzip++) {
            const char *says = refusal(ctx, gzip
                ? files_bytes("some-file", packed, size)
                : files_bytes("some-file", others[i].bytes, others[i].size));

            assert_says(says, "some-file:1: this is not a Matrix Market file");
            assert_says(says, others[i].what);
            assert_says(says, others[i].how);
            ck_assert_uint_lt(strlen(says), 900);
        }
        free(packed);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(a_tar_archive_is_named_packed_or_not)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    char tar[1024] = "bcsstk01/bcsstk01.mtx";
    size_t size = sizeof tar;
    unsigned char *packed;

    memcpy(tar + 257, "ustar", 5);
    packed = files_pack(tar, &size);
    assert_says(refusal(ctx, files_bytes("a.tar.gz", packed, size)),
                "a tar archive; unpack it (tar -xf ");
    free(packed);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(only_plain_names_stand_in_a_command)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    assert_says(refusal(ctx, files_text("it's a file", "BZh9")),
                "; bzip2 -dc FILE |");
    assert_says(refusal(ctx, files_text("plain-name.x", "BZh9")),
                "/plain-name.x |");
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* ------------------------------------------------------------------- sizes */

static sps_status read_block(sps_context *ctx, const char *path,
                             uint64_t max_bytes)
{
    sps_read_options ro = {.struct_size = sizeof ro, .max_bytes = max_bytes};
    sps_block *X = NULL;
    sps_status st = sps_block_read(ctx, path, &ro, false, &X);

    sps_block_destroy(&X);
    return st;
}

#define ROWS "200000000"   /* 1.6 GB of rowptr or of a column */

START_TEST(memory_out_of_all_proportion_to_the_text_is_refused)
{
    static const char text[] = BANNER "coordinate real general\n"
                               ROWS " " ROWS " 1\n1 1 1\n";
    static const char column[] = BANNER "coordinate real general\n"
                                 ROWS " 1 1\n1 1 1\n";
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    size_t size = sizeof text - 1;
    unsigned char *packed = files_pack(text, &size);
    const char *says = refusal(ctx, files_text("a.mtx", text));

    assert_says(says, "would need 1.6 GB");
    assert_says(says, "-max-bytes 2G of spsolve");
    assert_says(refusal(ctx, files_bytes("a.mtx.gz", packed, size)),
                "the text has at most 77400 bytes");
    ck_assert_int_eq(read_block(ctx, files_text("b.mtx", column), 0),
                     SPS_EPARSE);
    assert_says(sps_context_error(ctx), "max_bytes of sps_read_options");
    /* Then the caller's own limit is the only one. */
    ck_assert_int_eq(read_block(ctx, files_path("b.mtx"), 1599999999),
                     SPS_ENOMEM);
    free(packed);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* 10^16 bytes, which no machine has. */
START_TEST(a_limit_takes_the_place_of_the_memory_of_the_machine)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    const spsi_size s = { .where = "b.mtx", .nrow = INT32_MAX,
                          .ncol = SPS_BLOCK_MAX, .count = INT64_C(1) << 50 };
    sps_read_options ro = { .struct_size = sizeof ro };

    ck_assert_int_eq(spsi_size_check(ctx, &ro, &s, false, UINT64_MAX),
                     SPS_ENOMEM);
    assert_says(sps_context_error(ctx), "but this machine has");
    assert_says(sps_context_error(ctx), "-max-bytes 12582929G of spsolve");
    ro.max_bytes = UINT64_C(1) << 60;
    OK(ctx, spsi_size_check(ctx, &ro, &s, false, UINT64_MAX));
    fixture_close(&ctx);
}
END_TEST

START_TEST(less_than_a_gigabyte_is_read_and_told)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_block *X = NULL;

    OK(ctx, sps_block_read(ctx, files_text("b.mtx", BANNER
                           "coordinate real general\n2000000 1 1\n1 1 1\n"),
                           NULL, false, &X));
    assert_says(sps_context_note(ctx, 0), "2000000 rows need 16.0 MB");
    sps_block_destroy(&X);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(sizes_are_told_from_the_header_alone)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    int64_t rows = 0, columns = 0, entries = 0;
    const char *path = files_text("h.mtx", BANNER "coordinate real general\n"
                                  "% a comment\n" ROWS " 7 12\n1 1 1\nnonsense");

    OK(ctx, sps_file_sizes(ctx, path, &rows, &columns, &entries));
    ck_assert_int_eq(rows, 200000000);
    ck_assert_int_eq(columns, 7);
    ck_assert_int_eq(entries, 12);
    OK(ctx, sps_file_sizes(ctx, path, NULL, NULL, NULL));
    ck_assert_int_eq(sps_file_sizes(ctx, files_path("none"), &rows, NULL,
                                    NULL), SPS_EIO);
    ck_assert_int_eq(sps_file_sizes(ctx, files_text("c.mtx", "1 1\n"), &rows,
                                    NULL, NULL), SPS_EPARSE);
    ck_assert_int_eq(sps_file_sizes(ctx, NULL, &rows, NULL, NULL), SPS_EINVAL);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(other_formats_are_named_with_the_way_to_convert_them),
    RUNNER_TEST(a_tar_archive_is_named_packed_or_not),
    RUNNER_TEST(only_plain_names_stand_in_a_command),
    RUNNER_TEST(memory_out_of_all_proportion_to_the_text_is_refused),
    RUNNER_TEST(a_limit_takes_the_place_of_the_memory_of_the_machine),
    RUNNER_TEST(less_than_a_gigabyte_is_read_and_told),
    RUNNER_TEST(sizes_are_told_from_the_header_alone),
};

RUNNER_MAIN("foreign", tests)
