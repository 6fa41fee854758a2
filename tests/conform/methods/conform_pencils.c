/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_pencils.c - every listed eigensolver against LAPACK on pencils of many
 * kinds (families.c). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/families.h"
#include "tests/support/runner.h"

static bool long_form(void)
{
    const char *text = getenv("SPS_TEST_LONG");

    return text && *text && strcmp(text, "0");
}

/* The long form has a thousand pencils, the one for sanitizers two;
 * SPS_TEST_PENCIL selects one. */
static int pencils(void)
{
    if (runner_quick()) return 2;
    return long_form() ? 1000 : runner_place() == SPS_CUDA ? 38 : 200;
}

static int most_rows(void)
{
    if (runner_quick()) return 60;
    return long_form() ? 500 : runner_place() == SPS_CUDA ? 150 : 300;
}

static void try(sps_context *ctx, const char *solver, int number, bool mass,
                bool easy)
{
    char what[80];
    pencil p;
    const family *f = family_open(&p, ctx, number, most_rows(), mass, easy);

    snprintf(what, sizeof what, "%s, pencil %d, %s", solver, number, f->name);
    p.opt.solver = solver;
    p.opt.verify_count = true;
    pencil_must_hold(&p, what);
    if (p.result.stop == SPS_STOP_CONVERGED)
        ck_assert_msg(p.result.missed == 0, "%s: missed %d", what,
                      p.result.missed);
    pencil_close(&p);
}

/* Pairs that neither converge nor are limited by rounding are failures of the
 * method: at most one in a hundred. */
static void few_may_stagnate(const char *solver)
{
    int all, stagnated = pencil_stagnated(&all);

    ck_assert_msg(100 * stagnated <= all, "%s: %d of %d pairs stagnated",
                  solver, stagnated, all);
    printf("%s: %d of %d pairs stagnated\n", solver, stagnated, all);
}

static void go_through(const char *solver, bool mass, bool easy)
{
    sps_context *ctx = pencil_context(1);
    const char *only = getenv("SPS_TEST_PENCIL");
    int first = only ? atoi(only) : 0, end = only ? first + 1 : pencils();

    for (int number = first; number < end; number++)
        try(ctx, solver, number, mass, easy);
    if (!only) few_may_stagnate(solver);
    sps_context_destroy(&ctx);
}

START_TEST(lobpcg_finds_every_pair_of_every_family)
{
    go_through("lobpcg", true, false);
}
END_TEST

START_TEST(auto_finds_every_pair_of_every_family)
{
    go_through("auto", true, false);
}
END_TEST

START_TEST(a_filter_finds_every_pair_of_the_easy_families)
{
    go_through("chebyshev_filter", false, true);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(lobpcg_finds_every_pair_of_every_family),
    RUNNER_TEST(auto_finds_every_pair_of_every_family),
    RUNNER_TEST(a_filter_finds_every_pair_of_the_easy_families),
};

RUNNER_MAIN("conform_pencils", tests)
