/* SPDX-License-Identifier: BSD-3-Clause */
/* check_read_ranks.c - sps_csr_read by several processes: rows, notes, facts
 * and errors are those of one process, whether the file is read in parts or by
 * each as a whole; and a failure of one process ends the call on all. */
#include "tests/check/io/read_ranks_fixture.h"

/* All ranks have what one process has: their rows, or the same error; of a
 * valid matrix that cannot be divided, an error that says so. */
static void assert_same(const char *text, const found *all, int size)
{
    const sps_status st = all->st ? all->st
                        : all->nrow == 0 || all->ncol == 0 ? SPS_EMATRIX
                        : all->nrow != all->ncol ? SPS_EUNFIT : SPS_OK;
    int64_t first = 0;

    for (int r = 0; r < size; r++) {
        const found *f = &of_rank[r];

        ck_assert_msg(f->st == st, "%.300s: rank %d of %d: %d, not %d: %s",
                      text, r, size, (int)f->st, (int)st, f->error);
        if (all->st)
            ck_assert_msg(!strcmp(f->error, all->error), "%.300s: rank %d of "
                          "%d: '%s', not '%s'", text, r, size, f->error,
                          all->error);
        if (st) continue;
        if (all->nrow >= 2 * size) ck_assert_int_gt(f->nrow, 0);
        first = assert_rows(text, all, f, first);
        assert_facts(text, all, f);
    }
    if (st == SPS_OK) ck_assert_int_eq(first, all->nrow);
}

/* Reads the file by `size` ranks, and compares; in_parts: that it must have
 * been read so. */
static void compare(const char *text, const char *path, int flags,
                    const found *all, int size, bool in_parts)
{
    work w = { .path = path, .flags = flags };

    read_by(size, &w);
    ck_assert_msg(exchanges == (in_parts ? 2 : 0), "%.300s: %d exchanges",
                  text, exchanges);
    assert_same(text, all, size);
}

static bool divisible(const struct valid_mtx *v, const found *all)
{
    return strstr(v->text, "oordinate") && all->nrow > 0 &&
           all->nrow == all->ncol;
}

START_TEST(valid_files_give_the_rows_of_one_process)
{
    found all = { .st = SPS_OK };

    for (size_t i = 0; i < COUNT(valid_mtx); i++) {
        const struct valid_mtx *v = &valid_mtx[i];
        const char *path = files_text("valid.mtx", v->text);

        read_alone(path, 0, &all);
        for (int size = 2; size <= 5; size++)
            compare(v->text, path, 0, &all, size, divisible(v, &all) ||
                    strstr(v->text, " Coordinate ") != NULL);
        compare(v->text, path, STRICT * (all.info.duplicates == 0), &all, 3,
                divisible(v, &all) || strstr(v->text, " Coordinate ") != NULL);
    }
    forget(&all);
    files_clean();
}
END_TEST

START_TEST(invalid_files_give_the_error_of_one_process)
{
    found all = { .st = SPS_OK };

    for (size_t i = 0; i < COUNT(invalid_mtx); i++) {
        const struct invalid_mtx *v = &invalid_mtx[i];
        const char *path = files_bytes("invalid.mtx", v->text, v->size);

        if (v->flags & BLOCK) continue;
        read_alone(path, v->flags, &all);
        ck_assert_int_eq(all.st, v->status);
        for (int size = 2; size <= 5; size++) {
            work w = { .path = path, .flags = v->flags };

            read_by(size, &w);
            assert_same(v->text, &all, size);
        }
    }
    forget(&all);
    files_clean();
}
END_TEST

/* A comment of growing length moves every cut over every byte of a line. */
START_TEST(cuts_may_be_anywhere)
{
    static const char body[] = "4 4 7\r\n1 1 0.1\r\n4 2 0.2\n% c\n\n1 1 0.7\n"
                               "3 3 1e16\r\n3 3 1\n3 3 -1e16\n1 4 5";
    found all = { .st = SPS_OK };
    char text[256];

    for (int pad = 0; pad < 40; pad++) {
        const char *path;

        sprintf(text, "%scoordinate real general\n%%%*s\n%s", BANNER, pad, "",
                body);
        path = files_text("pad.mtx", text);
        read_alone(path, 0, &all);
        ck_assert_int_eq(all.st, SPS_OK);
        compare(text, path, 0, &all, 3, true);
        compare(text, path, 0, &all, 16, true);
    }
    forget(&all);
    files_clean();
}
END_TEST

/* --------------------------------------------------------------- long files */

static int64_t long_entries(void)
{
    return fixture_env("SPS_TEST_QUICK") ? 6000 : 40000;
}

START_TEST(long_files_give_the_rows_of_one_process)
{
    static const kind kinds[] = {
        { "real", "general", false }, { "real", "symmetric", true },
        { "real", "skew-symmetric", false }, { "pattern", "symmetric", false },
        { "complex", "general", false },
    };
    static const int sizes[] = { 2, 3, 5, 8, 16 };
    found all = { .st = SPS_OK };

    for (size_t i = 0; i < COUNT(kinds); i++) {
        char *text = long_text(&kinds[i], long_entries());
        const char *path = files_text("long.mtx", text);

        read_alone(path, 0, &all);
        ck_assert_msg(all.st == SPS_OK, "%s", all.error);
        for (size_t s = 0; s < COUNT(sizes); s++)
            compare(kinds[i].symmetry, path, 0, &all, sizes[s], true);
        for (int r = 0; r < 16; r++)       /* shares of about equal entries */
            ck_assert_int_lt(16 * of_rank[r].nnz, 2 * all.nnz);
        free(text);
    }
    forget(&all);
    files_clean();
}
END_TEST

static void compare_error(const char *text, int flags, const char *word)
{
    found all = { .st = SPS_OK };
    const char *path = files_text("long.mtx", text);
    work w = { .path = path, .flags = flags };

    read_alone(path, flags, &all);
    ck_assert_msg(all.st == SPS_EPARSE && strstr(all.error, word), "%s",
                  all.error);
    read_by(3, &w);
    assert_same(word, &all, 3);
    forget(&all);
}

/* One thing wrong in the part of one process, or in the whole only. */
START_TEST(errors_in_long_files_have_their_lines)
{
    const kind k = { "real", "symmetric", true };
    const int64_t entries = long_entries();
    char *text = long_text(&k, entries), *last = text + strlen(text);
    char *middle = strchr(text + strlen(text) / 2, '\n') + 1, old = *middle;

    *middle = 'x';
    compare_error(text, 0, "is not a row number");
    *middle = old;
    compare_error(text, STRICT, "given before");
    sprintf(last, "%d 1 1\n", N);
    compare_error(text, 0, "too many entries");
    last[-1] = '\0';
    *strrchr(text, '\n') = '\0';
    compare_error(text, 0, "too few entries");
    free(text);
    files_clean();
}
END_TEST

START_TEST(triangles_in_two_parts_are_refused)
{
    const kind k = { "real", "symmetric", true };
    char *text = long_text(&k, long_entries());
    char *last = text + strlen(text) - 1;

    while (last[-1] != '\n') last--;
    sprintf(last, "1 %d 1\n", N);
    compare_error(text, 0, "above the diagonal");
    compare_error(text, LENIENT, "do not make a symmetric");
    free(text);
    files_clean();
}
END_TEST

START_TEST(packed_files_are_read_whole)
{
    const kind k = { "real", "general", false };
    char *text = long_text(&k, 5000);
    size_t size = strlen(text);
    unsigned char *packed = files_pack(text, &size);
    const char *path = files_bytes("long.mtx.gz", packed, size);
    found all = { .st = SPS_OK };

    read_alone(path, 0, &all);
    compare("packed", path, 0, &all, 3, false);
    forget(&all);
    free(packed);
    free(text);
    files_clean();
}
END_TEST

/* ----------------------------------------------------------------- failures */

START_TEST(another_file_on_one_process_is_noticed)
{
    const char *one = files_text("one.mtx", valid_mtx[2].text);
    const char *two = files_text("two.mtx", valid_mtx[6].text);
    work w = { .path = one, .other = two };

    read_by(3, &w);
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(of_rank[r].st, SPS_EPARSE);
        ck_assert_ptr_nonnull(strstr(of_rank[r].error, "different files"));
    }
    w.other = "/nowhere.mtx";
    read_by(3, &w);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(of_rank[r].st == (r == 1 ? SPS_EIO : SPS_EPEER),
                      "rank %d: %d: %s", r, (int)of_rank[r].st,
                      of_rank[r].error);
    files_clean();
}
END_TEST

/* By all at once: nobody reads the whole file first. */
START_TEST(a_cancelled_process_ends_the_call_on_all)
{
    work w = { .path = files_text("one.mtx", valid_mtx[2].text),
               .cancelled = true };

    read_by(3, &w);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(of_rank[r].st == SPS_EIO &&
                      strstr(of_rank[r].error, "interrupted"), "rank %d: %d: "
                      "%s", r, (int)of_rank[r].st, of_rank[r].error);
    files_clean();
}
END_TEST

START_TEST(a_process_out_of_memory_ends_the_call_on_all)
{
    const kind k = { "real", "symmetric", false };
    char *text = long_text(&k, 500);
    fail_alloc f;
    work w = { .path = files_text("memory.mtx", text), .memory = &f };
    int failures = 0;

    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        read_by(3, &w);
        for (int r = 0; r < 3; r++)
            ck_assert_msg(of_rank[r].st == (!f.fired ? SPS_OK : r == 1
                          ? SPS_ENOMEM : SPS_EPEER) || !of_rank[1].st,
                          "allocation %d, rank %d: %d, %s", (int)w.allowed, r,
                          (int)of_rank[r].st, of_rank[r].error);
        ck_assert_int_eq(f.live, 0);
        failures += f.fired && of_rank[1].st;
        w.allowed++;
    } while (f.fired);
    member[1].host = NULL;
    ck_assert_int_gt(failures, 20);
    free(text);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(valid_files_give_the_rows_of_one_process),
    RUNNER_TEST(invalid_files_give_the_error_of_one_process),
    RUNNER_TEST(cuts_may_be_anywhere),
    RUNNER_TEST(long_files_give_the_rows_of_one_process),
    RUNNER_TEST(errors_in_long_files_have_their_lines),
    RUNNER_TEST(triangles_in_two_parts_are_refused),
    RUNNER_TEST(packed_files_are_read_whole),
    RUNNER_TEST(another_file_on_one_process_is_noticed),
    RUNNER_TEST(a_cancelled_process_ends_the_call_on_all),
    RUNNER_TEST(a_process_out_of_memory_ends_the_call_on_all),
};
RUNNER_MAIN("read_ranks", tests)
