/* SPDX-License-Identifier: BSD-3-Clause */
/* check_replace.c - files that become visible only when they are complete, and
 * what writers that were killed leave behind.  Built twice: with files that
 * have no name until then (O_TMPFILE), where the file system of /tmp supports
 * them, and (-DSPS_REPLACE_NAMED) without. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/support/files.h"
#include "io/stream/replace.h"
#include "tests/support/runner.h"

static void put(const char *path, const char *text)
{
    spsi_replace r;

    ck_assert_msg(spsi_replace_open(&r, path, NULL, NULL), "%s", r.doing);
    ck_assert(spsi_replace_write(&r, text, strlen(text)));
    ck_assert_msg(spsi_replace_close(&r), "%s: %s", r.doing, strerror(errno));
}

static void assert_holds(const char *path, const char *text)
{
    char *got = files_read(path, NULL);

    ck_assert_str_eq(got, text);
    free(got);
}

/* Number of files in the test's directory, including links. */
static int count_files(void)
{
    DIR *d = opendir(files_directory);
    int n = 0;

    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static bool is_link(const char *path)
{
    struct stat s;

    return lstat(path, &s) == 0 && S_ISLNK(s.st_mode);
}

START_TEST(the_old_file_stays_until_the_new_one_is_whole)
{
    const char *path = files_text("x", "old");
    spsi_replace r;

    ck_assert(spsi_replace_open(&r, path, NULL, NULL));
    ck_assert(spsi_replace_write(&r, "new", 3));
    assert_holds(path, "old");
    ck_assert(spsi_replace_close(&r));
    assert_holds(path, "new");
    ck_assert(spsi_replace_open(&r, path, NULL, NULL));
    ck_assert(spsi_replace_write(&r, "bad", 3));
    spsi_replace_abandon(&r);
    assert_holds(path, "new");
    ck_assert_int_eq(count_files(), 1);
    files_clean();
}
END_TEST

START_TEST(links_stay_links_and_their_target_is_replaced)
{
    const char *target = files_text("target", "old"), *link = files_path("l");
    const char *dangling = files_path("d");

    ck_assert_int_eq(symlink("target", link), 0);
    ck_assert_int_eq(symlink("later", dangling), 0);
    put(link, "new");
    put(dangling, "first");
    ck_assert(is_link(link) && is_link(dangling));
    assert_holds(target, "new");
    assert_holds(files_path("later"), "first");
    ck_assert_int_eq(count_files(), 4);
    files_clean();
}
END_TEST

START_TEST(a_circle_of_links_is_an_error)
{
    const char *a = files_path("a"), *b = files_path("b");
    spsi_replace r;

    ck_assert_int_eq(symlink("b", a) | symlink("a", b), 0);
    ck_assert(!spsi_replace_open(&r, a, NULL, NULL));
    ck_assert_int_eq(errno, ELOOP);
    files_clean();
}
END_TEST

START_TEST(rights_of_the_old_file_are_kept)
{
    const char *path = files_text("x", "old");
    struct stat s;

    ck_assert_int_eq(chmod(path, 0620), 0);
    umask(077);
    put(path, "new");
    ck_assert_int_eq(stat(path, &s), 0);
    ck_assert_int_eq(s.st_mode & 0777, 0620);
    files_clean();
}
END_TEST

/* A child process that is killed while it writes. */
static void die_writing(const char *path)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        spsi_replace r;

        if (spsi_replace_open(&r, path, NULL, NULL)) {
            (void)spsi_replace_write(&r, "half", 4);
            raise(SIGKILL);
        }
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
}

START_TEST(what_the_dead_left_is_gone_after_the_next_writer)
{
    const char *path = files_text("x", "old");

    die_writing(path);
    die_writing(path);
    assert_holds(path, "old");
    put(path, "new");
    assert_holds(path, "new");
    ck_assert_int_eq(count_files(), 1);
    files_clean();
}
END_TEST

/* As on a system without O_TMPFILE, or after a kill between link and rename. */
START_TEST(a_name_left_by_a_dead_writer_is_taken_over)
{
    const char *path = files_text("x", "old");
    spsi_replace r;

    files_text("x.0.tmp", "half");
    ck_assert(spsi_replace_open(&r, path, NULL, NULL));
    ck_assert(spsi_replace_write(&r, "new", 3));
    ck_assert(spsi_replace_close(&r));
    assert_holds(path, "new");
    ck_assert_int_eq(count_files(), 1);
    files_clean();
}
END_TEST

START_TEST(writers_at_the_same_time_do_not_meet)
{
    const char *path = files_text("x", "old");
    spsi_replace a, b;

    ck_assert(spsi_replace_open(&a, path, NULL, NULL));
    ck_assert(spsi_replace_open(&b, path, NULL, NULL));
    ck_assert(spsi_replace_write(&a, "first", 5));
    ck_assert(spsi_replace_write(&b, "second", 6));
    ck_assert(spsi_replace_close(&b));
    assert_holds(path, "second");
    ck_assert(spsi_replace_close(&a));
    assert_holds(path, "first");
    ck_assert_int_eq(count_files(), 1);
    files_clean();
}
END_TEST

static bool asked(const void *data)
{
    int *calls = (int *)(size_t)data;

    return ++*calls > 3;
}

START_TEST(a_pipe_without_a_reader_is_given_up_when_asked)
{
    const char *path = files_path("pipe");
    int calls = 0;
    spsi_replace r;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!spsi_replace_open(&r, path, asked, &calls));
    ck_assert_int_eq(errno, EINTR);
    files_clean();
}
END_TEST

START_TEST(what_is_no_regular_file_is_written_as_it_stands)
{
    const char *path = files_path("pipe");
    char got[8] = "";
    spsi_replace r;
    int reader;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert(spsi_replace_open(&r, path, NULL, NULL));
    ck_assert(spsi_replace_write(&r, "text", 4));
    ck_assert(spsi_replace_close(&r));
    ck_assert_int_eq((int)read(reader, got, sizeof got), 4);
    ck_assert_str_eq(got, "text");
    close(reader);
    ck_assert(!spsi_replace_open(&r, files_directory, NULL, NULL));
    ck_assert_int_eq(errno, EISDIR);
    ck_assert(spsi_replace_open(&r, "/dev/null", NULL, NULL));
    ck_assert(spsi_replace_write(&r, "text", 4));
    ck_assert(spsi_replace_close(&r));
    files_clean();
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(the_old_file_stays_until_the_new_one_is_whole),
    RUNNER_TEST(links_stay_links_and_their_target_is_replaced),
    RUNNER_TEST(a_circle_of_links_is_an_error),
    RUNNER_TEST(rights_of_the_old_file_are_kept),
    RUNNER_TEST(what_the_dead_left_is_gone_after_the_next_writer),
    RUNNER_TEST(a_name_left_by_a_dead_writer_is_taken_over),
    RUNNER_TEST(writers_at_the_same_time_do_not_meet),
    RUNNER_TEST(a_pipe_without_a_reader_is_given_up_when_asked),
    RUNNER_TEST(what_is_no_regular_file_is_written_as_it_stands),
};

RUNNER_MAIN("replace", tests)
