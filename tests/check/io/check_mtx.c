/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mtx.c - Matrix Market files that must be accepted. */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>

#include "tests/problems/mtx_fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/valid_mtx.h"

START_TEST(every_kind_of_header_is_read)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (size_t i = 0; i < sizeof valid_mtx / sizeof *valid_mtx; i++) {
        const struct valid_mtx *v = &valid_mtx[i];
        const char *path = files_text("valid.mtx", v->text);
        sps_csr *A = read_as(ctx, path, NULL, NULL);

        assert_dense(v->text, A, v->nrow, v->ncol, v->value);
        ck_assert_msg((A->props & ~(unsigned)SPS_SORTED) == v->props,
                      "%s: properties %u", v->text, A->props);
        if (v->note)
            ck_assert_msg(fixture_noted(ctx, v->note), "%s: no note of %s",
                          v->text, v->note);
        sps_csr_destroy(ctx, &A);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* The same files as blocks: without and, when complex, with interleaving. */
START_TEST(every_kind_of_header_is_read_as_block)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (size_t i = 0; i < sizeof valid_mtx / sizeof *valid_mtx; i++) {
        const struct valid_mtx *v = &valid_mtx[i];
        bool two = v->props & SPS_INTERLEAVED;
        int64_t n = 0, ncol = two ? v->ncol / 2 : v->ncol;
        sps_block *X = NULL;
        double *x;
        int k = 0;

        if (ncol == 0) continue;
        OK(ctx, sps_block_read(ctx, files_text("valid.mtx", v->text), NULL,
                               two, &X));
        sps_block_shape(X, &n, &k);
        ck_assert_int_eq(n, v->nrow);
        ck_assert_int_eq(k, ncol);
        x = calloc((size_t)(n * k) + 1, sizeof *x);
        OK(ctx, sps_block_get(X, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
        for (int64_t r = 0; r < n; r++)
            for (int c = 0; c < k; c++)
                ck_assert_msg(x[r * k + c] ==
                              v->value[r * v->ncol + (two ? 2 * c : c)],
                              "%s: (%d, %d) is %g", v->text, (int)r, c,
                              x[r * k + c]);
        free(x);
        sps_block_destroy(&X);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(line_ends_and_missing_last_newline_do_not_matter)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (size_t i = 0; i < sizeof valid_mtx / sizeof *valid_mtx; i++) {
        const struct valid_mtx *v = &valid_mtx[i];
        char *text = malloc(2 * strlen(v->text) + 8), *t = text;
        sps_csr *A;

        for (const char *p = v->text; *p; p++) {
            if (*p == '\n' && p > v->text && p[-1] != '\r') *t++ = '\r';
            *t++ = *p;
        }
        *t = '\0';
        A = read_as(ctx, files_text("crlf.mtx", text), NULL, NULL);
        assert_dense(v->text, A, v->nrow, v->ncol, v->value);
        sps_csr_destroy(ctx, &A);
        if (t > text && t[-1] == '\n') {
            strcpy(text, v->text);
            text[strlen(text) - 1] = '\0';
            A = read_as(ctx, files_text("open.mtx", text), NULL, NULL);
            assert_dense(v->text, A, v->nrow, v->ncol, v->value);
            sps_csr_destroy(ctx, &A);
        }
        free(text);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(gzip_is_known_by_its_bytes)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    for (size_t i = 0; i < sizeof valid_mtx / sizeof *valid_mtx; i++) {
        const struct valid_mtx *v = &valid_mtx[i];
        size_t length = strlen(v->text), half = length / 2, size = length;
        size_t size1 = half, size2 = length - half;
        unsigned char *packed = files_pack(v->text, &size);
        unsigned char *one = files_pack(v->text, &size1);
        unsigned char *two = files_pack(v->text + half, &size2);
        sps_csr *A = read_as(ctx, files_bytes("plain.mtx", packed, size), NULL,
                             NULL);

        assert_dense(v->text, A, v->nrow, v->ncol, v->value);
        sps_csr_destroy(ctx, &A);
        one = realloc(one, size1 + size2 + 7);   /* two members, zeros */
        memcpy(one + size1, two, size2);
        memset(one + size1 + size2, 0, 7);
        A = read_as(ctx, files_bytes("two.mtx.gz", one, size1 + size2 + 7),
                    NULL, NULL);
        assert_dense(v->text, A, v->nrow, v->ncol, v->value);
        sps_csr_destroy(ctx, &A);
        free(packed);
        free(one);
        free(two);
    }
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(standard_input_and_output)
{
    static const char text[] = "%%MatrixMarket matrix coordinate real general\n"
                               "2 2 2\n1 1 0.1\n2 2 -4\n";
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_read_info info;
    int in = open(files_text("in.mtx", text), O_RDONLY), saved, out;
    sps_csr *A;
    char *back;

    ck_assert_int_ge(dup2(in, STDIN_FILENO), 0);
    A = read_as(ctx, "-", NULL, &info);
    ck_assert_int_eq(info.lines, 4);
    fflush(stdout);
    saved = dup(STDOUT_FILENO);
    out = open(files_path("out.mtx"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_ge(dup2(out, STDOUT_FILENO), 0);
    OK(ctx, sps_csr_write(ctx, "-", A, false));
    ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
    back = files_read(files_path("out.mtx"), NULL);
    ck_assert_str_eq(back, text);
    free(back);
    close(in);
    close(out);
    close(saved);
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(a_pipe_is_read)
{
    static const char text[] = "%%MatrixMarket matrix array real general\n"
                               "1 3\n1\n2\n3\n";
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    int fd[2];
    sps_block *X = NULL;
    double x[3];

    ck_assert_int_eq(pipe(fd), 0);
    ck_assert_int_eq(write(fd[1], text, sizeof text - 1), sizeof text - 1);
    close(fd[1]);
    dup2(fd[0], STDIN_FILENO);
    OK(ctx, sps_block_read(ctx, "-", NULL, false, &X));
    OK(ctx, sps_block_get(X, 0, 3, x, 3, SPS_ROW_MAJOR, SPS_HOST));
    ck_assert(x[0] == 1 && x[1] == 2 && x[2] == 3);
    sps_block_destroy(&X);
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------- options */

START_TEST(options_and_facts)
{
    static const char both[] = "%%MatrixMarket matrix coordinate real "
                               "symmetric\n2 2 3\n1 1 2\n2 1 1\n1 2 1\n";
    static const char wild[] = "%%MatrixMarket matrix coordinate real general"
                               "\n2 2 5\n1 1 nan\n1 2 -inf\n2 1 1e400\n"
                               "2 2 1e-310\n2 2 1e-400\n";
    static const char twice[] = "%%MatrixMarket matrix coordinate real "
                                "symmetric\n% c\n\n2 2 5\n2 1 1\n2 1 2\n"
                                "2 2 3\n2 2 4\n2 1 5\n";
    static const char large[] = "%%MatrixMarket matrix coordinate integer "
                                "general\n2 2 4\n1 1 9007199254740993\n"
                                "1 2 9007199254740992\n2 1 -9223372036854775807"
                                "\n2 2 123456789012345678901234567890\n";
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_read_options ro = {.struct_size = sizeof ro};
    sps_read_info info;
    sps_csr *A;
    double *v;

    ro.lenient = true;
    A = read_as(ctx, files_text("both.mtx", both), &ro, &info);
    assert_dense(both, A, 2, 2, (double[]){2, 1, 1, 0});
    ck_assert(A->props & SPS_SYMMETRIC);
    ck_assert_str_eq(info.symmetry, "symmetric");
    sps_csr_destroy(ctx, &A);

    ro = (sps_read_options){.struct_size = sizeof ro, .allow_nonfinite = true};
    A = read_as(ctx, files_text("wild.mtx", wild), &ro, &info);
    v = A->val;
    ck_assert(isnan(v[0]) && v[1] == -INFINITY && v[2] == INFINITY);
    ck_assert_int_eq(info.underflows, 2);
    ck_assert_int_eq(info.duplicates, 1);
    sps_csr_destroy(ctx, &A);

    A = read_as(ctx, files_text("twice.mtx", twice), NULL, &info);
    assert_dense(twice, A, 2, 2, (double[]){0, 8, 8, 7});
    ck_assert_int_eq(info.duplicates, 3);
    ck_assert_int_eq(info.stored, 5);
    ck_assert_int_eq(info.lines, 9);
    ck_assert(fixture_noted(ctx, "duplicate"));
    sps_csr_destroy(ctx, &A);

    A = read_as(ctx, files_text("large.mtx", large), NULL, &info);
    assert_dense(large, A, 2, 2, (double[]){9007199254740992.0,
                 9007199254740992.0, -9223372036854775808.0,
                 123456789012345678901234567890.0});
    ck_assert_int_eq(info.rounded, 3);
    ck_assert_str_eq(info.field, "integer");
    ck_assert(fixture_noted(ctx, "rounded"));
    sps_csr_destroy(ctx, &A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

START_TEST(files_that_cannot_be_opened_are_io_errors)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    sps_csr *A = NULL;

    ck_assert_int_eq(sps_csr_read(ctx, files_path("none.mtx"), NULL, NULL, &A),
                     SPS_EIO);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "none.mtx"));
    ck_assert_int_eq(sps_csr_read(ctx, files_directory, NULL, NULL, &A),
                     SPS_EIO);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "directory"));
    ck_assert_int_eq(sps_csr_read(ctx, NULL, NULL, NULL, &A), SPS_EINVAL);
    ck_assert_ptr_null(A);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* -------------------------------------------------- files of other projects */

static int read_folder(sps_context *ctx, const char *root, const char *name,
                       bool good)
{
    char folder[512], path[1024];
    int count = 0;
    DIR *d;

    snprintf(folder, sizeof folder, "%s/formats/%s", root, name);
    d = opendir(folder);
    if (d == NULL) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        sps_csr *A = NULL;
        sps_status st;
        bool wanted = good;

        if (e->d_name[0] == '.') continue;
        /* 0-based indices, which the format does not allow. */
        if (strstr(e->d_name, "russell__ok_rectangular")) wanted = false;
        /* Overflows 8-bit indices or 32-bit values there; these types are wider
         * here. */
        if (strstr(e->d_name, "overflow_index_gt_int8") ||
            strstr(e->d_name, "overflow_value_gt_int32")) wanted = true;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        st = sps_csr_read(ctx, path, NULL, NULL, &A);
        ck_assert_msg((st == SPS_OK) == wanted, "%s: %s", path,
                      st ? sps_context_error(ctx) : "was read");
        if (st) ck_assert_int_eq(st, SPS_EPARSE);
        sps_csr_destroy(ctx, &A);
        count++;
    }
    closedir(d);
    return count;
}

START_TEST(public_collections_are_read_or_refused_as_they_should)
{
    const char *given = getenv("SPS_MATRICES"), *source = getenv("srcdir");
    char root[256];
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);

    snprintf(root, sizeof root, "%s/../shared/matrices",
             source ? source : ".");
    if (given) snprintf(root, sizeof root, "%s", given);
    read_folder(ctx, root, "valid", true);
    read_folder(ctx, root, "permissive", true);
    read_folder(ctx, root, "invalid", false);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_kind_of_header_is_read),
    RUNNER_TEST(every_kind_of_header_is_read_as_block),
    RUNNER_TEST(line_ends_and_missing_last_newline_do_not_matter),
    RUNNER_TEST(gzip_is_known_by_its_bytes),
    RUNNER_TEST(standard_input_and_output),
    RUNNER_TEST(a_pipe_is_read),
    RUNNER_TEST(options_and_facts),
    RUNNER_TEST(files_that_cannot_be_opened_are_io_errors),
    RUNNER_TEST(public_collections_are_read_or_refused_as_they_should),
};

RUNNER_MAIN("mtx", tests)
