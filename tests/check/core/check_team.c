/* SPDX-License-Identifier: BSD-3-Clause */
/* check_team.c - the host threads of a context: each item processed once, no
 * threads for small work, sleeping between parallel regions, correct with fork,
 * with several contexts, and when threads cannot be created; and the number of
 * usable cores. */
#include <check.h>
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/support/fixture.h"
#include "tests/problems/problem.h"
#include "tests/support/runner.h"
#include "core/team.h"

/* ThreadSanitizer has a thread of its own, and does not support fork with
 * several threads. */
#if defined(__SANITIZE_THREAD__)
#define NEED_NO_SANITIZER() runner_skip("not under the thread sanitizer")
#else
#define NEED_NO_SANITIZER() ((void)0)
#endif
/* The allocator of AddressSanitizer (gcc 12) holds no lock over a fork: where a
 * worker has one at that moment, threads of the child wait for it forever. */
#if defined(__SANITIZE_ADDRESS__)
#define NEED_FORK_WITH_THREADS() runner_skip("not under the address sanitizer")
#else
#define NEED_FORK_WITH_THREADS() NEED_NO_SANITIZER()
#endif

#define MUCH ((int64_t)1000000000)     /* a second of work: uses all threads */

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 4, true); }
static void close_context(void) { fixture_close(&ctx); }

/* Threads of this process, including those of other libraries. */
static int threads_now(void)
{
    DIR *d = opendir("/proc/self/task");
    int count = 0;

    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

/* A thread that was joined may still be listed for a moment. */
static bool threads_become(int count)
{
    for (int i = 0; i < 1000 && threads_now() != count; i++)
        nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
    return threads_now() == count;
}

typedef struct count_job {
    unsigned char *done;
    sps_context *inner;      /* its team is called again from inside */
    int64_t nested, odd;     /* items processed inside; calls with an empty
                                range or an invalid thread number */
    int64_t others;          /* calls on threads other than the caller's */
} count_job;

static void count_nested(void *data, int64_t first, int64_t last)
{
    spsi_team_add(data, last - first);
}

static void count_items(void *data, int64_t first, int64_t last)
{
    count_job *j = data;

    for (int64_t i = first; i < last; i++) j->done[i]++;
    spsi_team_add(&j->others, spsi_team_self() > 0);
    spsi_team_add(&j->odd, first >= last || spsi_team_self() >= 4);
    if (j->inner)
        spsi_team_run(j->inner, last - first, MUCH, count_nested, &j->nested);
}

static void every_item_once(sps_context *c, int64_t count, int64_t ns)
{
    count_job j = { .done = calloc((size_t)count + 1, 1) };
    int64_t wrong = 0;

    for (int round = 0; round < 20; round++) {
        memset(j.done, 0, (size_t)count + 1);
        j.inner = round % 2 ? c : NULL;
        j.nested = 0;
        spsi_team_run(c, count, ns, count_items, &j);
        for (int64_t i = 0; i < count; i++) wrong += j.done[i] != 1;
        wrong += j.done[count] != 0 || j.nested != (j.inner ? count : 0);
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(j.odd, 0);
    free(j.done);
}

START_TEST(every_item_is_done_once_for_any_count_and_work)
{
    static const int64_t counts[] = { 0, 1, 2, 3, 4, 5, 31, 32, 33, 1000,
                                      100003 };

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        every_item_once(ctx, counts[c], 0);
        every_item_once(ctx, counts[c], 2 * SPS_TEAM_SHARE);
        every_item_once(ctx, counts[c], MUCH);
    }
}
END_TEST

static void nothing(void *data, int64_t first, int64_t last)
{
    (void)data, (void)first, (void)last;
}

START_TEST(small_work_starts_no_thread_and_large_work_as_many_as_pay)
{
    const int before = threads_now();

    NEED_NO_SANITIZER();
    for (int i = 0; i < 100; i++)
        spsi_team_run(ctx, 100, 2 * SPS_TEAM_SHARE - 1, nothing, NULL);
    ck_assert_int_eq(threads_now(), before);
    spsi_team_run(ctx, 100, 3 * SPS_TEAM_SHARE, nothing, NULL);
    ck_assert_int_eq(threads_now(), before + 2);
    spsi_team_run(ctx, 100, MUCH, nothing, NULL);
    ck_assert_int_eq(threads_now(), before + 3);
    sps_context_destroy(&ctx);
    ck_assert(threads_become(before));
    open_context();
}
END_TEST

/* Matrix, plan, preconditioner, iterations and verification use the caller's
 * thread only. */
START_TEST(a_small_system_is_solved_without_a_thread)
{
    problem p;
    int before;

    NEED_NO_SANITIZER();
    problem_open_grid(&p, ctx, 144, 4, 0.1);
    OK(ctx, problem_solve(&p));    /* the BLAS may start its own threads at
                                      first */
    before = threads_now();
    spsi_team_run(ctx, 4, MUCH, nothing, NULL);
    ck_assert_int_eq(threads_now(), before + 3);
    problem_close(&p);
}
END_TEST

static double cpu_seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

START_TEST(threads_without_work_take_no_processor_time)
{
    const struct timespec tenth = { 0, 100000000 };
    double start;

    spsi_team_run(ctx, 100, MUCH, nothing, NULL);
    start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 3; i++) nanosleep(&tenth, NULL);
    ck_assert_double_lt(cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start, 0.03);
}
END_TEST

/* The caller waits, sleeping, for a worker that is still busy. */
static void slow_first(void *data, int64_t first, int64_t last)
{
    const struct timespec tenth = { 0, 100000000 };

    (void)data, (void)first, (void)last;
    if (spsi_team_self() > 0) nanosleep(&tenth, NULL);
    else nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
}

START_TEST(waiting_for_the_last_takes_no_processor_time)
{
    double start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);

    spsi_team_run(ctx, 4, MUCH, slow_first, NULL);
    ck_assert_double_lt(cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start, 0.03);
}
END_TEST

static double children_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static pid_t start_solve(void)
{
    pid_t child = fork();
    sps_context *own;
    problem p;

    ck_assert_int_ge(child, 0);
    if (child > 0) return child;
    own = fixture_open_with(SPS_HOST, 0, true);
    problem_open_grid(&p, own, 14400, 16, 1e-3);
    for (int i = 0; i < 3; i++)
        if (problem_solve(&p) != SPS_OK) _exit(1);
    problem_close(&p);
    fixture_close(&own);
    _exit(0);
}

static void await_solve(pid_t child)
{
    int state = 0;

    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

/* Threads that spin would take the time of the others: on two cores a hundred
 * times as much, so that the bound is far from both cases. */
START_TEST(four_solves_at_once_take_no_more_processor_time_than_in_turn)
{
    const int most = 3 * (int)sysconf(_SC_NPROCESSORS_ONLN) + 1;
    double start = children_seconds(), in_turn, at_once;
    pid_t child[64];
    int many = most < 4 ? 4 : most < 64 ? most : 64;

    NEED_NO_SANITIZER();
    for (int i = 0; i < many; i++) await_solve(start_solve());
    in_turn = children_seconds() - start;
    start = children_seconds();
    for (int i = 0; i < many; i++) child[i] = start_solve();
    for (int i = 0; i < many; i++) await_solve(child[i]);
    at_once = children_seconds() - start;
    ck_assert_msg(at_once <= 3 * in_turn + 0.5, "%d solves: %g s of "
                  "processors in turn, %g s at once", many, in_turn, at_once);
}
END_TEST

START_TEST(a_forked_child_has_threads_of_its_own)
{
    pid_t child;

    NEED_FORK_WITH_THREADS();
    every_item_once(ctx, 1000, MUCH);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        if (threads_now() != 1) _exit(1);
        every_item_once(ctx, 1000, MUCH);
        if (threads_now() != 4) _exit(2);
        sps_context_destroy(&ctx);
        _exit(threads_become(1) ? 0 : 3);
    }
    await_solve(child);
    child = fork();          /* a child that only destroys the context */
    if (child == 0) {
        sps_context_destroy(&ctx);
        _exit(0);
    }
    await_solve(child);
    every_item_once(ctx, 1000, MUCH);
}
END_TEST

static void *use_a_context(void *unused)
{
    sps_context *own = fixture_open_with(SPS_HOST, 3, true);

    (void)unused;
    for (int i = 0; i < 10; i++) every_item_once(own, 1000, MUCH);
    sps_context_destroy(&own);
    return NULL;
}

START_TEST(contexts_of_several_threads_do_not_meet)
{
    pthread_t user[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&user[i], NULL, use_a_context, NULL),
                         0);
    for (int i = 0; i < 4; i++) pthread_join(user[i], NULL);
}
END_TEST

/* ----------------------------------- regions within workers of another team */

typedef struct inside {
    sps_context *own;        /* of the worker */
    pthread_t caller;
    int64_t called, odd;     /* calls in the caller's thread; those with a wrong
                                number */
} inside;

static void see_number(void *data, int64_t first, int64_t last)
{
    inside *w = data;
    const bool caller = pthread_equal(pthread_self(), w->caller);

    (void)first, (void)last;
    if (caller != (spsi_team_self() == 0) ||
        spsi_team_self() >= w->own->threads)
        spsi_team_add(&w->odd, 1);
    spsi_team_add(&w->called, caller);
}

/* What a region with one leading thread does (csr_multiply_far.cu): it would
 * wait forever for a leader whose number is not 0. */
static void begin_region(void *data, int64_t first, int64_t last)
{
    int64_t *odd = data;
    const int number = spsi_team_self();

    for (int threads = 1; threads <= 2; threads++) {
        inside w = { .own = fixture_open_with(SPS_HOST, threads, true),
                     .caller = pthread_self() };

        spsi_team_run(w.own, 1000, MUCH, see_number, &w);
        spsi_team_run(ctx, 1000, MUCH, see_number, &w);
        spsi_team_add(odd, w.odd + !w.called + (spsi_team_self() != number));
        sps_context_destroy(&w.own);
    }
    (void)first, (void)last;
}

START_TEST(the_caller_of_a_region_is_number_0_within_a_worker_too)
{
    int64_t odd = 0;

    spsi_team_run(ctx, 16, MUCH, begin_region, &odd);
    ck_assert_int_eq(odd, 0);
}
END_TEST

/* No memory for a thread's stack: the work is done by the existing threads. */
/* Leaves no memory for another thread: stacks of threads that have ended, which
 * libc keeps for new ones, are smaller than those asked for. */
static void forbid_threads(void)
{
    struct rlimit tight = { 1 << 20, 1 << 20 };
    pthread_attr_t large;

    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, (size_t)1 << 28);
    pthread_setattr_default_np(&large);
    setrlimit(RLIMIT_AS, &tight);
}

START_TEST(threads_that_cannot_be_had_are_done_without)
{
    pid_t child;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    runner_skip("sanitizers need the address space themselves");
#endif
    child = fork();
    if (child == 0) {
        unsigned char done[100] = { 0 };
        count_job j = { .done = done };
        bool good = true;

        forbid_threads();
        spsi_team_run(ctx, 100, MUCH, count_items, &j);
        for (int i = 0; i < 100; i++) good = good && done[i] == 1;
        _exit(good && j.others == 0 ? 0 : 1);
    }
    await_solve(child);
}
END_TEST

/* ----------------------------------------------------------------- cores */

static char root[] = "/tmp/spsolve-cores-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/'));
         slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static int cores_here(void)
{
    char command[PATH_MAX + 16];
    int cores = spsi_cores(root, NULL);

    snprintf(command, sizeof command, "rm -rf %s/*", root);
    ck_assert_int_eq(system(command), 0);
    return cores;
}

START_TEST(quotas_of_both_versions_narrow_the_cores)
{
    const int all = spsi_cores("", NULL);
    int mask;

    ck_assert_ptr_nonnull(mkdtemp(root));
    mask = cores_here();                         /* no control groups at all */
    ck_assert_int_ge(mask, all);
    write_file("proc/self/cgroup", "0::/a/b\n");
    write_file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    ck_assert_int_eq(cores_here(), mask);
    write_file("proc/self/cgroup", "0::/a/b\n");
    write_file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    write_file("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    ck_assert_int_eq(cores_here(), 1);
    write_file("proc/self/cgroup", "0::/\n");    /* as in a container */
    write_file("sys/fs/cgroup/cpu.max", "50000 100000\n");
    ck_assert_int_eq(cores_here(), 1);
    write_file("proc/self/cgroup", "0::/\n");
    write_file("sys/fs/cgroup/cpu.max", "150000 100000\n");
    ck_assert_int_eq(cores_here(), mask < 2 ? mask : 2);
    write_file("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x/y\n0::/\n");
    write_file("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n");
    write_file("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(cores_here(), 1);
    write_file("proc/self/cgroup", "4:cpu:/not/mounted/here\n3:cpuset:/\n");
    write_file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write_file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    ck_assert_int_eq(cores_here(), mask);
    rmdir(root);
}
END_TEST

START_TEST(omp_num_threads_is_a_limit_and_no_wish_for_more)
{
    const int all = spsi_cores("", NULL);

    ck_assert_int_eq(spsi_cores("", "1"), 1);
    ck_assert_int_eq(spsi_cores("", "1,4"), 1);
    ck_assert_int_eq(spsi_cores("", "100000"), all);
    ck_assert_int_eq(spsi_cores("", "0"), all);
    ck_assert_int_eq(spsi_cores("", "-3"), all);
    ck_assert_int_eq(spsi_cores("", "x"), all);
    ck_assert_int_eq(spsi_cores("", ""), all);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_item_is_done_once_for_any_count_and_work),
    RUNNER_TEST(small_work_starts_no_thread_and_large_work_as_many_as_pay),
    RUNNER_TEST(a_small_system_is_solved_without_a_thread),
    RUNNER_TEST(threads_without_work_take_no_processor_time),
    RUNNER_TEST(waiting_for_the_last_takes_no_processor_time),
    RUNNER_TEST(four_solves_at_once_take_no_more_processor_time_than_in_turn),
    RUNNER_TEST(a_forked_child_has_threads_of_its_own),
    RUNNER_TEST(contexts_of_several_threads_do_not_meet),
    RUNNER_TEST(the_caller_of_a_region_is_number_0_within_a_worker_too),
    RUNNER_TEST(threads_that_cannot_be_had_are_done_without),
    RUNNER_TEST(quotas_of_both_versions_narrow_the_cores),
    RUNNER_TEST(omp_num_threads_is_a_limit_and_no_wish_for_more),
};

RUNNER_MAIN_WITHIN("team", tests, open_context, close_context)
