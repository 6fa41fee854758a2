/* SPDX-License-Identifier: BSD-3-Clause */
/* runner.h - main for a Check suite, and the place that it tests.
 *
 *     START_TEST(a_claim) { sps_context *ctx = runner_context(); ... }
 *     END_TEST
 *     static const runner_test tests[] = {
 *         RUNNER_TEST(a_claim),
 *     };
 *     RUNNER_MAIN("room", tests)
 *
 * or a Suite of one's own, given to runner_run().
 *
 * SPS_TEST_PLACE  cpu (default) or cuda; runner_place() tells it.
 * SPS_TEST_QUICK=1  the small set of a suite that has one: few sizes, all
 *                 paths; for sanitizers.
 * SPS_TEST_LIST=1 prints `case NAME` for each case of the suite, which
 *                 CK_RUN_CASE=NAME runs alone, and tests nothing.  A test of
 *                 RUNNER_MAIN is a case of its name.
 * CK_FORK=no      all tests in one process, for debuggers and sanitizers of
 *                 the device.
 *
 * A CUDA context does not survive fork.  So the parent never touches CUDA:
 * the probe for a device runs in a child, and each test, forked by Check,
 * opens a context of its own.  Without the place the suite exits 77. */
#ifndef SPS_TEST_RUNNER_H
#define SPS_TEST_RUNNER_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marks.h"
#include "spsolve.h"

typedef struct runner_test {
    const TTest **test; /* the pointer that START_TEST declares */
    const char *name;
} runner_test;

#define RUNNER_TEST(name) { &name, #name }
#define RUNNER_TIMEOUT 300 /* seconds for one test, under sanitizers too */

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

static inline bool runner_lists(void)
{
    const char *list = getenv("SPS_TEST_LIST");

    return list && strcmp(list, "1") == 0;
}

/* A case by this name, for tests that run together or alone. */
static inline TCase *runner_case(Suite *suite, const char *name)
{
    TCase *t = tcase_create(name);

    tcase_set_timeout(t, RUNNER_TIMEOUT);
    suite_add_tcase(suite, t);
    if (runner_lists()) printf("case %s\n", name);
    return t;
}

/* A context in the place under test; the test fails when there is none. */
static inline sps_context *runner_context(void)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 2;
    ck_assert_msg(sps_context_create(&o, &ctx, &why) == SPS_OK, "%s", why);
    return ctx;
}

/* Exit code of a child that opens a context in the place. */
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

/* Runs the suite; the exit code of main. */
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

/* set_up before and tear_down after each test, or NULL. */
#define RUNNER_MAIN_WITHIN(name, tests, set_up, tear_down)                     \
    int main(void)                                                             \
    {                                                                          \
        return runner_main_(name, tests, sizeof tests / sizeof *tests, set_up, \
                            tear_down);                                        \
    }
#define RUNNER_MAIN(name, tests) RUNNER_MAIN_WITHIN(name, tests, NULL, NULL)

#endif
