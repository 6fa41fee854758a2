/* SPDX-License-Identifier: BSD-3-Clause */
/* check_chain_limits.c - solver auto: limits of iterations and of time hold
 * for all steps together, and the monitor sees one solve. */
#include <time.h>

#include "tests/support/absent.h"
#include "tests/support/chain_fixture.h"

START_TEST(iterations_are_those_of_all_steps_together)
{
    problem p;

    problem_open(&p, ctx, indefinite(2500, 0.7), 4);
    p.opt.max_iterations = 30;
    p.opt.rtol = 1e-15;
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_le(p.result.iterations, 30);
    ck_assert_int_lt(p.result.stop, 0);
    ck_assert(problem_honest(&p));
    problem_close(&p);
}
END_TEST

/* A limit that is reached exactly when a step has given up is the stop reason;
 * otherwise the next step would have continued. */
START_TEST(a_limit_that_ends_the_plan_is_the_reason)
{
    int first = 0;

    for (int limited = 0; limited < 2; limited++) {
        const char *note;
        problem p;

        problem_open(&p, ctx, indefinite(900, 0.7), 4);
        p.opt.dense = p.opt.factors = "never";
        if (limited) p.opt.max_iterations = first;
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        for (int i = 0; !limited && (note = sps_context_note(ctx, i)); i++)
            sscanf(note, "auto: step 1, %*[^:]: %d iterations", &first);
        ck_assert_int_gt(first, 0);
        ck_assert_msg((p.result.stop == SPS_STOP_MAX_ITERATIONS) == limited,
                      "%s", sps_stop_string(p.result.stop));
        for (int j = 0; limited && j < 4; j++)
            ck_assert_int_eq(p.column[j], SPS_STOP_MAX_ITERATIONS);
        problem_close(&p);
        if (!limited) {
            tear_down();
            set_up();
        }
    }
}
END_TEST

enum { PAUSE = 2000000 };          /* nanoseconds */

static bool take_a_while(const sps_progress *p, void *pauses)
{
    const struct timespec pause = { .tv_nsec = PAUSE };

    (void)p;
    ++*(int *)pauses;
    nanosleep(&pause, NULL);
    return true;
}

static int steps_noted(void)
{
    const char *note;
    int count = 0;

    for (int i = 0; (note = sps_context_note(ctx, i)); i++)
        if (!strncmp(note, "auto: step ", 11))
            ck_assert_int_eq(atoi(note + 11), ++count);   /* none missing */
    return count;
}

/* Nothing reaches the tolerance, and the monitor sleeps whenever it is called.
 * The limit of the second solve is a fifth of the time that the first one slept,
 * so it does not depend on the load of the machine.  The last step may end by
 * rounding just before its time is over. */
START_TEST(time_is_that_of_all_steps_together)
{
    double whole = 0;
    int pauses = 0;

    for (int limited = 0; limited < 2; limited++) {
        problem p;

        problem_open(&p, ctx, indefinite(900, 0.7), 4);
        p.opt.rtol = 1e-300;
        p.opt.dense = p.opt.factors = "never";
        p.opt.monitor = take_a_while;
        p.opt.monitor_data = &pauses;
        p.opt.max_seconds = limited ? pauses * (PAUSE / 1e9) / 5 : 0;
        ck_assert_int_eq(problem_solve(&p), SPS_OK);
        ck_assert_msg((p.result.stop == SPS_STOP_MAX_TIME) == limited ||
                      (limited && p.result.stop == SPS_STOP_ROUNDING),
                      "%s", sps_stop_string(p.result.stop));
        ck_assert_int_ge(steps_noted(), 2);
        if (limited) ck_assert(p.result.seconds.solve < 0.7 * whole);
        whole = p.result.seconds.solve;
        problem_close(&p);
        if (!limited) {
            tear_down();
            set_up();
        }
    }
}
END_TEST

/* Where cheaper steps have failed, what is left of the time does not suffice
 * for an analysis of factors: it is not begun, instead of the factorisation
 * after it. */
START_TEST(a_late_analysis_is_not_begun_where_time_is_short)
{
    problem p;

    if (absent("factor")) runner_skip("no factor module");
    problem_open(&p, ctx, indefinite(250000, 0.7), 1);
    p.opt.max_seconds = 1;
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_lt(p.result.stop, 0);
    ck_assert(!noted("factorisation was not started"));
    ck_assert(!noted("direct factors: not finished"));
    problem_close(&p);
}
END_TEST

typedef struct seen {
    int calls, last;
    bool fell;
} seen;

static bool stop_at_40(const sps_progress *p, void *data)
{
    seen *s = data;

    s->calls++;
    s->fell |= p->iteration < s->last;
    s->last = p->iteration;
    return p->iteration < 40;
}

START_TEST(the_monitor_sees_one_solve_and_ends_it)
{
    problem p;
    seen s = { 0 };

    problem_open(&p, ctx, indefinite(2500, 0.7), 4);
    p.opt.rtol = 1e-300;
    p.opt.monitor = stop_at_40;
    p.opt.monitor_data = &s;
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_INTERRUPTED);
    ck_assert_int_eq(p.result.iterations, 40);
    ck_assert_int_eq(s.last, 40);
    ck_assert(!s.fell);
    problem_close(&p);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(iterations_are_those_of_all_steps_together),
    RUNNER_TEST(a_limit_that_ends_the_plan_is_the_reason),
    RUNNER_TEST(time_is_that_of_all_steps_together),
    RUNNER_TEST(a_late_analysis_is_not_begun_where_time_is_short),
    RUNNER_TEST(the_monitor_sees_one_solve_and_ends_it),
};
RUNNER_MAIN_WITHIN("check_chain_limits", tests, set_up, tear_down)
