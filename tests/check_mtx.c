/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mtx.c - Matrix Market files that must be read, and written ones. */
#include <dirent.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>

#include "files.h"
#include "fixture.h"
#include "runner.h"
#include "valid_mtx.h"
#include "zoo.h"

static sps_csr *read_as(sps_context *ctx, const char *path,
                        const sps_read_options *ro, sps_read_info *info)
{
    sps_csr *A = NULL;

    if (info) *info = (sps_read_info){.struct_size = sizeof *info};
    OK(ctx, sps_csr_read(ctx, path, ro, info, &A));
    ck_assert(A->props & SPS_SORTED);
    return A;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void assert_equal(const sps_csr *A, const sps_csr *B)
{
    ck_assert_int_eq(A->nrow, B->nrow);
    ck_assert_int_eq(A->ncol, B->ncol);
    ck_assert_int_eq(A->nnz, B->nnz);
    for (int64_t i = 0; i <= A->nrow; i++)
        ck_assert_int_eq(A->rowptr[i], B->rowptr[i]);
    for (int64_t p = 0; p < A->nnz; p++) {
        ck_assert_int_eq(A->col[p], B->col[p]);
        ck_assert_uint_eq(bits_of(((double *)A->val)[p]),
                          bits_of(((double *)B->val)[p]));
    }
}

/* A equals the dense row-major x; an entry of the csr may be a zero. */
static void assert_dense(const char *name, const sps_csr *A, int64_t nrow,
                         int64_t ncol, const double *x)
{
    double *y = calloc((size_t)(nrow * ncol) + 1, sizeof *y);

    ck_assert_msg(A->nrow == nrow && A->ncol == ncol, "%s: %d x %d", name,
                  (int)A->nrow, (int)A->ncol);
    for (int64_t i = 0; i < nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            y[i * ncol + A->col[p]] = ((double *)A->val)[p];
    for (int64_t p = 0; p < nrow * ncol; p++)
        ck_assert_msg(x[p] == y[p], "%s: (%d, %d) is %g, not %g", name,
                      (int)(p / ncol), (int)(p % ncol), y[p], x[p]);
    free(y);
}

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

/* ------------------------------------------------------------- writing */

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
    OK(ctx, sps_csr_write(ctx, path, A, false));   /* replaces it whole */
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

/* --------------------------------------------------------- large files */

static uint64_t seen_done, seen_total;

static void watch(uint64_t done, uint64_t total, void *data)
{
    ++*(int *)data;
    ck_assert_uint_ge(done, seen_done);
    seen_done = done;
    seen_total = total;
}

/* Some 10 MB with comments, blank lines and rows in no order: many pieces and
 * batches.  Entry p has row hash(p), so that no thread owns a whole piece. */
static char *large_text(int64_t n, int64_t entries, size_t *size)
{
    char *text = malloc((size_t)entries * 64 + 1024), *t = text;

    t += sprintf(t, "%%%%MatrixMarket matrix coordinate real general\n"
                 "%lld %lld %lld\n", (long long)n, (long long)n,
                 (long long)entries);
    for (int64_t p = 0; p < entries; p++) {
        uint64_t h = (uint64_t)p * UINT64_C(0x9e3779b97f4a7c15);
        if (p % 1000 == 999) t += sprintf(t, "%% a comment, line by line\n\n");
        t += sprintf(t, "%llu %llu %.17g\n",
                     (unsigned long long)(h >> 40) % (uint64_t)n + 1,
                     (unsigned long long)(h >> 8 & 0xffffff) % (uint64_t)n + 1,
                     (double)(int64_t)h / 3e17);
    }
    *size = (size_t)(t - text);
    return text;
}

START_TEST(threads_and_packing_do_not_change_a_bit)
{
    size_t size, packed_size;
    char *text = large_text(3000, 200000, &size);
    unsigned char *packed;
    sps_csr *first = NULL;
    sps_context *owner = NULL;

    packed_size = size;
    packed = files_pack(text, &packed_size);
    files_bytes("large.mtx", text, size);
    files_bytes("large.mtx.gz", packed, packed_size);
    for (int c = 0; c < 6; c++) {
        sps_context *ctx = fixture_open_with(SPS_HOST, 1 + c / 2 * 2, true);
        sps_read_options ro = {.struct_size = sizeof ro, .progress = watch};
        sps_read_info info;
        int calls = 0;
        sps_csr *A;

        seen_done = 0;
        ro.progress_data = &calls;
        A = read_as(ctx, files_path(c % 2 ? "large.mtx.gz" : "large.mtx"), &ro,
                    &info);
        ck_assert_int_gt(calls, 1);
        ck_assert_uint_eq(seen_done, seen_total);
        ck_assert_uint_eq(seen_done, c % 2 ? packed_size : size);
        ck_assert_int_eq(info.lines, 200000 + 2 + 400);
        ck_assert_int_eq(info.duplicates, 200000 - A->nnz);
        if (first) {
            assert_equal(first, A);
            sps_csr_destroy(ctx, &A);
            fixture_close(&ctx);
        } else {
            first = A;
            owner = ctx;
        }
    }
    sps_csr_destroy(owner, &first);
    fixture_close(&owner);
    free(text);
    free(packed);
    files_clean();
}
END_TEST

START_TEST(the_line_of_an_error_deep_in_a_file_is_exact)
{
    size_t size;
    char *text = large_text(3000, 200000, &size), word[32];

    for (int c = 0; c < 6; c++) {
        sps_context *ctx = fixture_open_with(SPS_HOST, 1 + c % 3, true);
        char *copy = malloc(size + 1), *at = copy + size / 7 * (size_t)(c + 1);
        int64_t line = 1;
        sps_csr *A = NULL;

        memcpy(copy, text, size);
        at = strchr(at, '\n') + 1;
        if (*at == '%' || *at == '\n') at = strchr(at + 30, '\n') + 1;
        *at = 'x';
        copy[size - 2] = 'y';          /* a later one must not win */
        for (char *p = copy; p < at; p++) line += *p == '\n';
        ck_assert_int_eq(sps_csr_read(ctx, files_bytes("bad.mtx", copy, size),
                                      NULL, NULL, &A), SPS_EPARSE);
        snprintf(word, sizeof word, "bad.mtx:%lld:", (long long)line);
        ck_assert_msg(strstr(sps_context_error(ctx), word) != NULL,
                      "%s: not line %d", sps_context_error(ctx), (int)line);
        fixture_close(&ctx);
        free(copy);
    }
    free(text);
    files_clean();
}
END_TEST

START_TEST(long_comments_are_skipped_but_not_without_end)
{
    sps_context *ctx = fixture_open_with(SPS_HOST, 1, true);
    size_t size = (size_t)3 << 20, most = (size_t)18 << 20;
    char *text = malloc(most + 256);
    sps_csr *A = NULL;
    int head = sprintf(text, "%%%%MatrixMarket matrix coordinate real general"
                       "\n%%");

    memset(text + head, 'x', most);
    strcpy(text + head + size, "\n1 1 1\n1 1 2.5\n");
    A = read_as(ctx, files_text("long.mtx", text), NULL, NULL);
    assert_dense("long", A, 1, 1, (double[]){2.5});
    sps_csr_destroy(ctx, &A);
    memset(text + head, 'x', most);
    strcpy(text + head + most, "\n1 1 1\n1 1 2.5\n");
    ck_assert_int_eq(sps_csr_read(ctx, files_text("longer.mtx", text), NULL,
                                  NULL, &A), SPS_EPARSE);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "longer.mtx:2:"));
    free(text);
    fixture_close(&ctx);
    files_clean();
}
END_TEST

/* ------------------------------------------------- files of other people */

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
        /* Counted from 0, which the format does not allow. */
        if (strstr(e->d_name, "russell__ok_rectangular")) wanted = false;
        /* Too much for 8-bit indices, 32-bit values: we have more. */
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
    RUNNER_TEST(matrices_read_back_bit_by_bit),
    RUNNER_TEST(blocks_read_back_bit_by_bit),
    RUNNER_TEST(a_real_block_for_a_complex_matrix_has_no_imaginary_part),
    RUNNER_TEST(failed_writing_is_told_and_leaves_nothing),
    RUNNER_TEST(writing_through_a_link_keeps_the_link),
    RUNNER_TEST(the_locale_has_no_say),
    RUNNER_TEST(options_and_facts),
    RUNNER_TEST(files_that_cannot_be_opened_are_io_errors),
    RUNNER_TEST(threads_and_packing_do_not_change_a_bit),
    RUNNER_TEST(the_line_of_an_error_deep_in_a_file_is_exact),
    RUNNER_TEST(long_comments_are_skipped_but_not_without_end),
    RUNNER_TEST(public_collections_are_read_or_refused_as_they_should),
};

RUNNER_MAIN("mtx", tests)
