/* SPDX-License-Identifier: BSD-3-Clause */
/* runner.h - main for a Check suite, and the choice of the device under test.
 *
 *     START_TEST(a_claim) { sps_context *ctx = runner_context(); ... }
 *     END_TEST
 *     static const runner_test tests[] = {
 *         RUNNER_TEST(a_claim),
 *     };
 *     RUNNER_MAIN("room", tests)
 *
 * or a Suite built by the caller, passed to runner_run().
 *
 * SPS_TEST_PLACE  cpu (default) or cuda; returned by runner_place().
 * SPS_TEST_QUICK=1  the small set of a suite that has one: few sizes, all
 *                 paths; for sanitizers.
 * SPS_TEST_LIST=1 prints `case NAME` for each case of the suite, which
 *                 CK_RUN_CASE=NAME runs alone, and runs no test.  Each test
 *                 of RUNNER_MAIN is a case with the name of the test.
 * SPS_TEST_BLAS_THREADS=8  threads of OpenBLAS, even beyond the core count.
 * SPS_TEST_DEVICE_BYTES=N  limit of device memory (limit.h).
 * CK_FORK=no      all tests in one process, for debuggers and sanitizers of
 *                 the device.
 *
 * A test that ends early has not passed.  Check has no such state, so the
 * runner prints a line `skip NAME: why`, which build-aux/summary.sh and
 * check-gpu count.
 *
 * A CUDA context does not survive fork.  So the parent process never
 * initialises CUDA: the probe for a device runs in a child, and each test,
 * forked by Check, opens its own context.  Without that device the suite exits
 * with 77 (skipped). */
#ifndef SPS_TEST_RUNNER_H
#define SPS_TEST_RUNNER_H

#include <check.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/limit.h"
#include "tests/support/marks.h"
#include "spsolve.h"

typedef struct runner_test {
    const TTest **test; /* the pointer that START_TEST declares */
    const char *name;
} runner_test;

#define RUNNER_TEST(name) { &name, #name }
/* Seconds for one test: under sanitizers too, and on a GPU beside other suites. */
#define RUNNER_TIMEOUT (runner_place() == SPS_CUDA ? 1200 : 300)

/* Two ways to end a test early (in the function that contains the macro): a
 * prerequisite is missing on this machine (skipped; on a GPU this counts as a
 * failure), or the test does not apply to this device or this form of the
 * suite. */
#define runner_skip(why) runner_end_("skip", why)
#define runner_leave_out(why) runner_end_("skip by design", why)
#define runner_end_(word, why)                                                 \
    do {                                                                       \
        runner_say_(word, __func__, why);                                      \
        return;                                                                \
    } while (0)

/* Removes the suffix _fn that Check appends to the name of a test. */
static inline void runner_say_(const char *word, const char *name,
                               const char *why)
{
    size_t length = strlen(name);

    if (length > 3 && !strcmp(name + length - 3, "_fn")) length -= 3;
    printf("%s %.*s: %s\n", word, (int)length, name, why);
    fflush(stdout);
}

static inline sps_place runner_place(void)
{
    const char *place = getenv("SPS_TEST_PLACE");

    return place && strcmp(place, "cuda") == 0 ? SPS_CUDA : SPS_HOST;
}

static inline bool runner_quick(void)
{
    const char *quick = getenv("SPS_TEST_QUICK");

    return quick && strcmp(quick, "1") == 0;
}

static inline bool runner_long(void)
{
    const char *text = getenv("SPS_TEST_LONG");

    return text && strcmp(text, "1") == 0;
}

/* Number of random problems to draw: `usual`, or a sixteenth of it on a GPU,
 * where small systems cost far more than on the host. */
static inline int runner_draws(int usual)
{
    if (runner_long()) return 8 * usual;
    if (runner_place() == SPS_CUDA) return usual / 16;
    return runner_quick() ? usual / 8 : usual;
}

static inline bool runner_lists(void)
{
    const char *list = getenv("SPS_TEST_LIST");

    return list && strcmp(list, "1") == 0;
}

/* A test case of this name, so that tests can be run together or alone. */
static inline TCase *runner_case(Suite *suite, const char *name)
{
    TCase *t = tcase_create(name);

    tcase_set_timeout(t, RUNNER_TIMEOUT);
    suite_add_tcase(suite, t);
    if (runner_lists()) printf("case %s\n", name);
    return t;
}

/* A context on the device under test; the test fails if it cannot be
 * created. */
static inline sps_context *runner_context(void)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 2;
    o.max_device_bytes = limit_device_bytes();
    ck_assert_msg(sps_context_create(&o, &ctx, &why) == SPS_OK, "%s", why);
    return ctx;
}

/* Exit code of a child process that opens a context on the device. */
static inline int runner_probe_(sps_place place)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        sps_context_options o;
        sps_context *ctx = NULL;
        const char *why = "";

        sps_context_options_default(&o);
        o.place = place;
        if (sps_context_create(&o, &ctx, &why) != SPS_OK) {
            fprintf(stderr, "skipped: %s\n", why);
            _exit(77);
        }
        sps_context_destroy(&ctx);
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* Raises the number of OpenBLAS threads by a call, since its environment
 * variables cannot exceed the number of cores. */
static inline void runner_blas_threads(void)
{
    const char *threads = getenv("SPS_TEST_BLAS_THREADS");
    void (*set)(int);

    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (set && threads) set(atoi(threads));
}

/* Runs the suite and returns the exit code of main. */
static inline int runner_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed, absent = 0;

    if (runner_lists()) {
        srunner_free(runner);
        return EXIT_SUCCESS;
    }
    if (runner_place() == SPS_CUDA) absent = runner_probe_(SPS_CUDA);
    if (absent) {
        srunner_free(runner);
        return absent;
    }
    runner_blas_threads();
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline int runner_main_(const char *name, const runner_test *tests,
                               size_t count, SFun set_up, SFun tear_down)
{
    Suite *suite = suite_create(name);

    for (size_t i = 0; i < count; i++) {
        TCase *t = runner_case(suite, tests[i].name);

        tcase_add_checked_fixture(t, set_up, tear_down);
        tcase_add_test(t, *tests[i].test);
    }
    return runner_run(suite);
}

/* set_up runs before and tear_down after each test; NULL: none. */
#define RUNNER_MAIN_WITHIN(name, tests, set_up, tear_down)                     \
    int main(void)                                                             \
    {                                                                          \
        return runner_main_(name, tests, sizeof tests / sizeof *tests, set_up, \
                            tear_down);                                        \
    }
#define RUNNER_MAIN(name, tests) RUNNER_MAIN_WITHIN(name, tests, NULL, NULL)

#endif
