/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mtx_large.c - files larger than one buffer, and long lines. */
#include "tests/problems/mtx_fixture.h"
#include "tests/support/runner.h"

static uint64_t seen_done, seen_total;

static void watch(uint64_t done, uint64_t total, void *data)
{
    ++*(int *)data;
    ck_assert_uint_ge(done, seen_done);
    seen_done = done;
    seen_total = total;
}

/* About 10 MB with comments, blank lines and rows in random order: many chunks
 * and batches.  Entry p is in row hash(p), so that every chunk has rows of all
 * threads. */
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
        copy[size - 2] = 'y';          /* a later error, not to be reported */
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

static const runner_test tests[] = {
    RUNNER_TEST(threads_and_packing_do_not_change_a_bit),
    RUNNER_TEST(the_line_of_an_error_deep_in_a_file_is_exact),
    RUNNER_TEST(long_comments_are_skipped_but_not_without_end),
};

RUNNER_MAIN("mtx_large", tests)
