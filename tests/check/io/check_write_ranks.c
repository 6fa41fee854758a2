/* SPDX-License-Identifier: BSD-3-Clause */
/* check_write_ranks.c - sps_block_write by several processes: one file with the
 * bytes of one process, or none. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/processes/crew.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/files.h"
#include "tests/support/fixture.h"

/* What all ranks share. */
typedef struct work {
    const char *path;
    int64_t n;
    int k;
    bool interleaved;
    bool unequal;               /* rank 1 has a column less */
    fail_alloc *memory;         /* of rank 1, or NULL */
    long allowed;
} work;

static crew_member member[CREW];

static sps_status write_part(sps_context *ctx, const work *w, int64_t first,
                             int64_t n, bool odd)
{
    fail_alloc *memory = odd ? w->memory : NULL;
    sps_block *X = NULL;
    sps_status st = sps_block_create(ctx, n, w->k - (odd && w->unequal), &X);

    if (!st) st = sps_block_random_rows(X, 3, first);
    if (memory) fail_alloc_allow(memory, w->allowed);
    if (!st) st = sps_block_write(X, w->path, w->interleaved);
    sps_block_destroy(&X);
    return st;
}

static void write_rank(crew_member *m)
{
    const work *w = m->data;
    const int64_t first = crew_first(w->n, m->all->size, m->rank);
    const int64_t next = crew_first(w->n, m->all->size, m->rank + 1);

    m->st = write_part(m->ctx, w, first, next - first, m->rank == 1);
}

static void write_by(int size, work *w)
{
    ck_assert_msg(crew_run(member, size, write_rank, w), "%s, %d ranks: a "
                  "deadlock, or a lost message", w->path, size);
}

static void write_alone(const work *w)
{
    sps_context *ctx = fixture_open_with(runner_place(), 1, true);

    OK(ctx, write_part(ctx, w, 0, w->n, false));
    fixture_close(&ctx);
}

/* Files in the directory of this test. */
static int files_count(void)
{
    DIR *d = opendir(files_directory);
    int count = 0;

    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static void compare(const char *suffix, int64_t n, int k)
{
    static const int sizes[] = { 2, 3, 5, 16 };
    work w = { .path = files_path("alone"), .n = n, .k = k };
    char name[2][32];
    size_t bytes, again;
    char *text, *other;

    for (int i = 0; i < 2; i++)
        sprintf(name[i], "%s%s", i ? "ranks" : "alone", suffix);
    w.path = files_path(name[0]);
    write_alone(&w);
    text = files_read(w.path, &bytes);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        w.path = files_path(name[1]);
        write_by(sizes[s], &w);
        for (int r = 0; r < sizes[s]; r++)
            ck_assert_msg(!member[r].st, "rank %d: %s", r, member[r].error);
        other = files_read(w.path, &again);
        ck_assert_uint_eq(again, bytes);
        ck_assert_msg(!memcmp(text, other, bytes), "%d x %d, %d ranks: %s",
                      (int)n, k, sizes[s], suffix);
        free(other);
    }
    free(text);
}

START_TEST(several_processes_write_the_bytes_of_one)
{
    compare(".mtx", 16, 1);
    compare(".mtx", 30000, 3);
    compare(".mtx", 700, 11);
    compare(".npy", 16, 1);
    compare(".npy", 700, 11);
    ck_assert_int_eq(files_count(), 4);    /* nothing is left beside them */
    files_clean();
}
END_TEST

static void refused(const char *path, bool interleaved)
{
    work w = { .path = path, .n = 60, .k = 2, .interleaved = interleaved };

    write_by(3, &w);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(member[r].st == SPS_EUNFIT, "%s, rank %d: %d: %s", path,
                      r, (int)member[r].st, member[r].error);
}

START_TEST(what_they_cannot_write_is_refused_on_all)
{
    refused(files_path("x.mtx.gz"), false);
    refused(files_path("x.npz"), false);
    refused(files_path("x.mtx"), true);
    refused("/dev/null", false);
    ck_assert_int_eq(files_count(), 0);
    files_clean();
}
END_TEST

START_TEST(a_folder_that_is_missing_and_unequal_columns_are_refused)
{
    work w = { .path = "/nowhere/x.mtx", .n = 60, .k = 2 };

    write_by(3, &w);
    for (int r = 0; r < 3; r++)
        ck_assert_msg(member[r].st == (r == 0 ? SPS_EIO : SPS_EPEER), "rank "
                      "%d: %d: %s", r, (int)member[r].st, member[r].error);
    w.path = files_path("x.mtx");
    w.unequal = true;
    write_by(3, &w);
    for (int r = 0; r < 3; r++) ck_assert_int_eq(member[r].st, SPS_ESHAPE);
    ck_assert_int_eq(files_count(), 0);
    files_clean();
}
END_TEST

/* A limit of the size of files, which what rank 1 writes exceeds and what rank
 * 0 writes does not, stands for a disk that is full. */
static void fill_disk(const char *name, rlim_t limit)
{
    work w = { .path = files_text(name, "older"), .n = 1000, .k = 1 };
    struct rlimit all, some;
    char *text;

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &all);
    some = all;
    some.rlim_cur = limit;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &some), 0);
    write_by(2, &w);
    setrlimit(RLIMIT_FSIZE, &all);
    ck_assert_msg(member[0].st == SPS_EPEER && member[1].st == SPS_EIO &&
                  strstr(member[1].error, "cannot write"), "%d %s, %d %s",
                  (int)member[0].st, member[0].error, (int)member[1].st,
                  member[1].error);
    text = files_read(w.path, NULL);
    ck_assert_str_eq(text, "older");
    free(text);
    ck_assert_int_eq(files_count(), 1);
    files_clean();
}

START_TEST(a_full_disk_on_one_process_leaves_the_older_file)
{
    fill_disk("x.npy", 128 + 4000);
    fill_disk("x.mtx", 12000);
}
END_TEST

START_TEST(a_process_out_of_memory_leaves_no_file)
{
    fail_alloc f;
    work w = { .n = 60, .k = 2, .memory = &f };
    int failures = 0;

    do {
        memset(&f, 0, sizeof f);
        f.allowed = -1;
        member[1].host = fail_alloc_host(&f);
        w.path = files_path("x.mtx");
        write_by(3, &w);
        if (member[1].st) {
            ck_assert_int_eq(member[1].st, SPS_ENOMEM);
            ck_assert_int_eq(files_count(), 0);
            failures++;
        }
        w.allowed++;
    } while (f.fired);
    member[1].host = NULL;
    ck_assert_int_ge(failures, 4);
    ck_assert_int_eq(files_count(), 1);
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(several_processes_write_the_bytes_of_one),
    RUNNER_TEST(what_they_cannot_write_is_refused_on_all),
    RUNNER_TEST(a_folder_that_is_missing_and_unequal_columns_are_refused),
    RUNNER_TEST(a_full_disk_on_one_process_leaves_the_older_file),
    RUNNER_TEST(a_process_out_of_memory_leaves_no_file),
};

RUNNER_MAIN("write_ranks", tests)
