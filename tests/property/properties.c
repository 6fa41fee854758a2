/* SPDX-License-Identifier: BSD-3-Clause */
/* properties.c - systems of every kind by every method (systems.h), and what
 * must hold for each column, checked as if in exact arithmetic (exact.h):
 *
 *  - for a column reported as converged, ||b - A x|| is at most its threshold,
 *    in the caller's units and for x as returned;
 *  - the verdict is not too strict either: of the columns whose residual is at
 *    most half of their threshold, at most 1 % end with another stop reason;
 *  - residual[] is ||b - A x|| / ||b||;
 *  - x is finite.
 *
 * SPS_TEST_LONG=1: 8 times as many, with at least 80 000 columns reported as
 * converged, 15 000 of them at a condition of 1e9 to 1e13.  SPS_TEST_NUMBER=N
 * runs system N alone; failures print N. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/exact.h"
#include "tests/problems/pencil.h"
#include "tests/support/runner.h"
#include "tests/problems/systems.h"

#define QUICK 4000           /* systems of an ordinary run */

/* Thresholds are products of norms computed in doubles: relative error n u
 * each. */
#define SLACK 1e-12L

typedef struct tally {
    int columns, claimed, untrue, unproven, ready, refused, misstated, infinite;
    long double worst;       /* largest residual / threshold of a column
                                reported as converged */
} tally;

enum { UNKNOWN, BELOW_1E3, BELOW_1E6, BELOW_1E9, BELOW_1E13, ABOVE, DECADES };

static const char *const decade_name[DECADES] = {
    "not set", "1e0 .. 1e3", "1e3 .. 1e6", "1e6 .. 1e9", "1e9 .. 1e13",
    "1e13 .. 1e16",
};

static tally all, decade[DECADES], by_kind[32];
static int unfit, systems;

static int decade_of(double condition)
{
    static const double end[] = { 1e3, 1e6, 1e9, 1e13 };
    int i = 0;

    if (condition == 0) return UNKNOWN;
    while (i < 4 && condition > end[i]) i++;
    return BELOW_1E3 + i;
}

static void add(tally *t, const tally *one)
{
    t->columns += one->columns;
    t->claimed += one->claimed;
    t->untrue += one->untrue;
    t->unproven += one->unproven;
    t->ready += one->ready;
    t->refused += one->refused;
    t->misstated += one->misstated;
    t->infinite += one->infinite;
    t->worst = fmaxl(t->worst, one->worst);
}

/* ----------------------------------------------------------------- a column */

static void report(const drawn_system *s, int j, const char *what,
                   long double residual, long double threshold)
{
    static int printed;

    if (printed++ >= 60) return;
    printf("%s: column %d of system %s: %s, residual %.6Lg, threshold %.6Lg, "
           "stated %.6g of ||b||\n", what, j, s->what,
           sps_stop_name(s->p.column[j]), residual, threshold, s->p.stated[j]);
}

static bool finite_column(const problem *p, int j)
{
    bool finite = true;

    for (int64_t i = 0; i < p->A->nrow; i++)
        finite = finite && isfinite(p->x[i * p->k + j]);
    return finite;
}

/* residual[] against the true residual; computed in twice the precision it is
 * accurate to eps relative and eps^2 |A||x| absolute; where b = 0 it is 0. */
static bool stated_well(const problem *p, int j, const exact_norms *e)
{
    const long double stated = p->stated[j];
    const long double truth = e->b > 0 ? e->residual / e->b : 0;
    const long double size = p->result.norm_A * e->x;
    const long double doubt = e->b > 0 ? 1e-28L * size / e->b : 0;

    return fabsl(stated - truth) <= 1e-10L * truth + doubt + 1e-300L;
}

static void judge_column(const drawn_system *s, int j)
{
    const problem *p = &s->p;
    const exact_norms e = exact_residual(p->A, p->b, p->x, p->k, j);
    const long double t = system_threshold(s, j);
    const bool claims = p->column[j] == SPS_STOP_CONVERGED;
    const bool finite = finite_column(p, j);
    tally one = { .columns = 1, .claimed = claims, .infinite = !finite };

    if (claims && t > 0) one.worst = e.residual / t;
    one.untrue = claims && !(e.residual - e.doubt <= (1 + SLACK) * t);
    one.unproven = claims && !one.untrue &&
                   !(e.residual + e.doubt <= (1 + 1e-6L) * t);
    one.ready = finite && e.residual + e.doubt <= t / 2;
    one.refused = one.ready && !claims;
    one.misstated = finite && !stated_well(p, j, &e);
    if (one.untrue) report(s, j, "not converged", e.residual, t);
    if (one.unproven) report(s, j, "not known", e.residual, t);
    if (one.refused) report(s, j, "refused", e.residual, t);
    if (one.misstated) report(s, j, "misstated", e.residual, t);
    if (one.infinite) report(s, j, "not finite", e.residual, t);
    add(&all, &one);
    add(&decade[decade_of(s->condition)], &one);
    add(&by_kind[s->kind - spectra], &one);
}

/* ------------------------------------------------------------------ the run */

static void judge_system(sps_context *ctx, uint64_t number)
{
    drawn_system s;
    sps_status st;

    system_open(&s, ctx, number);
    st = problem_solve(&s.p);
    systems++;
    if (st == SPS_EABSENT) st = SPS_EUNFIT;   /* a module is not built here */
    unfit += st == SPS_EUNFIT;
    ck_assert_msg(st == SPS_OK || st == SPS_EUNFIT, "system %s: %s: %s", s.what,
                  sps_status_string(st), sps_context_error(ctx));
    for (int j = 0; st == SPS_OK && j < s.p.k; j++) judge_column(&s, j);
    system_close(&s);
}

static void print_tally(const char *name, const tally *t)
{
    printf("  %-16s%7d columns, %6d called converged: %3d untrue, %d not "
           "known, worst %.12Lg; %6d ready, %3d refused; %d misstated, %d not "
           "finite\n", name, t->columns, t->claimed, t->untrue, t->unproven,
           t->worst, t->ready, t->refused, t->misstated, t->infinite);
}

static void print_all(void)
{
    printf("%d systems, %d that no such method fits\n", systems, unfit);
    for (int i = 0; i < DECADES; i++) print_tally(decade_name[i], &decade[i]);
    for (int i = 0; i < spectrum_count; i++)
        print_tally(spectra[i].name, &by_kind[i]);
    print_tally("all", &all);
    fflush(stdout);
}

START_TEST(what_is_called_converged_is_and_what_is_is_called_so)
{
    const char *alone = getenv("SPS_TEST_NUMBER");
    const uint64_t first = alone ? strtoull(alone, NULL, 10) : 0;
    const int count = alone ? 1 : runner_draws(QUICK);
    sps_context *ctx = pencil_context(1);

    for (int i = 0; i < count; i++) judge_system(ctx, first + (uint64_t)i);
    sps_context_destroy(&ctx);
    print_all();
    ck_assert_int_eq(all.untrue, 0);
    ck_assert_int_eq(all.unproven, 0);
    ck_assert_int_eq(all.infinite, 0);
    ck_assert_int_eq(all.misstated, 0);
    ck_assert_int_le(100 * all.refused, all.ready);
    if (!alone) {
        ck_assert_int_ge(3 * all.claimed, count);
        ck_assert_int_ge(10 * decade[BELOW_1E13].claimed, count);
    }
    if (!alone && runner_long()) {
        ck_assert_int_ge(all.claimed, 80000);
        ck_assert_int_ge(decade[BELOW_1E13].claimed, 15000);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("properties");
    TCase *t;

    if (!exact_possible()) {
        puts("skipped: long double has fewer than 64 bits");
        return 77;
    }
    t = runner_case(suite,
                    "what_is_called_converged_is_and_what_is_is_called_so");
    tcase_set_timeout(t, runner_long() ? 3600 : RUNNER_TIMEOUT);
    tcase_add_test(t, what_is_called_converged_is_and_what_is_is_called_so);
    return runner_run(suite);
}
