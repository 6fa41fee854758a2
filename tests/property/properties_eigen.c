/* SPDX-License-Identifier: BSD-3-Clause */
/* properties_eigen.c - eigenpairs of every kind by every method, and what must
 * hold for each pair, checked as if in exact arithmetic (exact.h):
 *
 *  - for a pair reported as converged, ||A x - lambda M x|| is at most its
 *    threshold;
 *  - of the pairs whose residual is at most half of their threshold, at most
 *    1 % end with another stop reason;
 *  - residual[] and backward[] are not below the true values, nor more than a
 *    fifth above them;
 *  - an eigenvalue lies within bound[] of lambda (inertia in long double).
 *
 * Half of the pencils are families (families.h), half have prescribed spectra
 * (spectra.h), A and M scaled by 1e-120 to 1e120.  SPS_TEST_LONG=1: 8 times as
 * many.  SPS_TEST_NUMBER=N runs pencil N alone; failures print N. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/exact.h"
#include "tests/problems/families.h"
#include "tests/support/runner.h"
#include "tests/problems/spectra.h"
#include "tests/problems/zoo.h"

#define QUICK 1500
#define ROWS 36              /* at most */
#define UNITS 398            /* 2^398 = 6e119 */

static struct {
    int pencils, unfit, pairs, claimed, untrue, ready, refused, misstated;
    int loose;               /* eigenvalues outside of their bounds */
    long double worst;
} all;

static char what[240];

/* ------------------------------------------------------------------ pencils */

/* A symmetric n x n matrix scaled by 2^e; definite: SPD with this condition
 * number. */
static void fill(double *to, int n, draw *d, bool definite, double c, int e)
{
    int kind = definite ? 0 : draw_int(d, 0, spectrum_count - 1);
    sps_csr *A;

    while (!(spectra[kind].is & SPECTRUM_SYMMETRIC) ||
           spectra[kind].is & SPECTRUM_COMPLEX)
        kind = draw_int(d, 0, spectrum_count - 1);
    A = spectra[kind].make(d, n, c);
    for (int i = 0; i < n; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            to[(long)i * n + A->col[q]] = ldexp(((double *)A->val)[q], e);
    snprintf(what + strlen(what), sizeof what - strlen(what),
             ", %s %.0e 2^%d", spectra[kind].name, c, e);
    zoo_free(&A);
}

static int unit(draw *d)
{
    return draw_int(d, 0, 2) ? 0 : draw_int(d, -UNITS, UNITS);
}

static void open_spectrum(pencil *p, sps_context *ctx, draw *d)
{
    const int n = draw_int(d, 1, ROWS);
    const bool mass = draw_bits(d) % 2;

    pencil_open(p, ctx, n, draw_int(d, 1, n < 8 ? n : 8), mass);
    fill(p->a, n, d, false, pow(10, 12 * draw_unit(d)), unit(d));
    if (mass) fill(p->m, n, d, true, pow(10, 7 * draw_unit(d)), unit(d));
    p->opt.which = draw_bits(d) % 2 ? "largest" : "smallest";
}

/* A guess for some columns: random, or huge. */
static void draw_guess(pencil *p, draw *d)
{
    for (int c = 0; c < p->count; c++) {
        const int e = draw_int(d, 0, 7) ? 0 : draw_int(d, -300, 300);

        if (draw_int(d, 0, 3)) continue;
        for (int i = 0; i < p->n; i++)
            p->x[(long)i * p->count + c] = ldexp(draw_unit(d) - 0.5, e);
    }
}

static void open_pencil(pencil *p, sps_context *ctx, uint64_t number)
{
    static const char *const precond[] = { "auto", "none", "jacobi", "ilut",
                                           "ic0", "dense" };
    static const char *const method[] = { "auto", "lobpcg", "lobpcg",
                                          "chebyshev_filter" };
    draw d = { number * 104729 + 4711 };

    snprintf(what, sizeof what, "%llu", (unsigned long long)number);
    if (draw_bits(&d) % 2) {
        const family *f = family_open(p, ctx, (int)(draw_bits(&d) % 100000),
                                      ROWS, draw_bits(&d) % 2, false);

        snprintf(what + strlen(what), sizeof what - strlen(what), ", %s",
                 f->name);
    } else {
        open_spectrum(p, ctx, &d);
    }
    draw_guess(p, &d);
    p->opt.solver = method[draw_int(&d, 0, 3)];
    p->opt.precond = precond[draw_int(&d, 0, 5)];
    p->opt.norm = draw_int(&d, 0, 3) ? SPS_NORM_RHS : SPS_NORM_BACKWARD;
    p->opt.rtol = pow(10, -4 - 9 * draw_unit(&d));
    p->opt.max_iterations = draw_int(&d, 0, 5) ? 400 : draw_int(&d, 0, 30);
    snprintf(what + strlen(what), sizeof what - strlen(what),
             ", n %d, %d pairs%s, %s / %s, %s, rtol %.1e atol %.1e, norm %d",
             p->n, p->count, p->m ? " with M" : "", p->opt.solver,
             p->opt.precond, p->opt.which, p->opt.rtol, p->opt.atol,
             (int)p->opt.norm);
}

/* ------------------------------------------------------------------- a pair */

static long double threshold(const pencil *p, int c, const exact_pair *e)
{
    const long double l = fabsl((long double)p->lambda[c]);

    if (p->opt.norm == SPS_NORM_BACKWARD)
        return fmaxl(p->opt.rtol * (p->result.norm_A + l * p->result.norm_M) *
                         e->x, p->opt.atol * e->mass);
    return fmaxl(p->opt.rtol * l, p->opt.atol) * e->mass;
}

/* Not below the true value, nor more than a fifth above it; eps: error of a
 * residual that is all rounding; eps^2: error of sums in twice the
 * precision. */
static bool stated_well(long double stated, long double truth,
                        long double size)
{
    const long double eps = ROWS * (long double)DBL_EPSILON;

    return stated >= (1 - 1e-9L) * truth - eps * eps * size &&
           stated <= 1.2L * truth + eps * size;
}

static bool pair_stated_well(const pencil *p, int c, const exact_pair *e)
{
    const long double l = fabsl((long double)p->lambda[c]);
    const long double size = (p->result.norm_A + l * p->result.norm_M) * e->x;
    const long double unit = l * e->mass;

    if (!(size > 0) || !isfinite(p->residual[c])) return true;
    return stated_well(p->backward[c], e->residual / size, 1) &&
           (unit == 0 || stated_well(p->residual[c], e->residual / unit,
                                     size / unit));
}

static void report(const char *claim, const pencil *p, int c,
                   long double residual, long double t)
{
    static int printed;

    if (printed++ >= 60) return;
    printf("%s: pair %d of pencil %s: %s, lambda %.17g, residual %.6Lg, "
           "threshold %.6Lg, stated %.6g, backward %.6g\n", claim, c, what,
           sps_stop_name(p->pair[c]), p->lambda[c], residual, t,
           p->residual[c], p->backward[c]);
}

static void judge_pair(pencil *p, int c)
{
    const exact_pair e = exact_eigen(p->A, p->M, p->lambda[c], p->x, p->count,
                                     c);
    const long double t = threshold(p, c, &e);
    const bool claims = p->pair[c] == SPS_STOP_CONVERGED;
    const bool untrue = claims && !(e.residual - e.doubt <= (1 + 1e-12L) * t);
    const bool ready = e.residual + e.doubt <= t / 2;
    const bool misstated = !pair_stated_well(p, c, &e);
    const bool loose = !pencil_bounded(p, c);

    all.pairs++;
    all.claimed += claims;
    all.untrue += untrue;
    all.ready += ready;
    all.refused += ready && !claims;
    all.misstated += misstated;
    all.loose += loose;
    if (claims && t > 0) all.worst = fmaxl(all.worst, e.residual / t);
    if (untrue) report("not converged", p, c, e.residual, t);
    if (ready && !claims) report("refused", p, c, e.residual, t);
    if (misstated) report("misstated", p, c, e.residual, t);
    if (loose) report("no eigenvalue within its bound", p, c, e.residual, t);
}

/* ------------------------------------------------------------------ the run */

static void judge_pencil(sps_context *ctx, uint64_t number)
{
    pencil p;
    sps_status st;

    open_pencil(&p, ctx, number);
    st = pencil_solve(&p);
    all.pencils++;
    all.unfit += st == SPS_EUNFIT;
    ck_assert_msg(st == SPS_OK || st == SPS_EUNFIT, "pencil %s: %s: %s", what,
                  sps_status_string(st), sps_context_error(ctx));
    for (int c = 0; st == SPS_OK && c < p.count; c++) judge_pair(&p, c);
    pencil_close(&p);
}

START_TEST(a_pair_called_converged_is_and_one_that_is_is_called_so)
{
    const char *alone = getenv("SPS_TEST_NUMBER");
    const uint64_t first = alone ? strtoull(alone, NULL, 10) : 0;
    const int count = alone ? 1 : runner_draws(QUICK);
    sps_context *ctx = pencil_context(1);

    for (int i = 0; i < count; i++) judge_pencil(ctx, first + (uint64_t)i);
    sps_context_destroy(&ctx);
    printf("%d pencils, %d that no such method fits; %d pairs, %d called "
           "converged: %d untrue, worst %.12Lg; %d ready, %d refused; %d "
           "misstated, %d outside of their bounds\n", all.pencils, all.unfit,
           all.pairs, all.claimed, all.untrue, all.worst, all.ready,
           all.refused, all.misstated, all.loose);
    fflush(stdout);
    ck_assert_int_eq(all.untrue, 0);
    ck_assert_int_eq(all.misstated, 0);
    ck_assert_int_eq(all.loose, 0);
    ck_assert_int_le(100 * all.refused, all.ready);
    ck_assert(alone || all.claimed >= count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("properties_eigen");
    TCase *t;

    if (!exact_possible()) {
        puts("skipped: long double has fewer than 64 bits");
        return 77;
    }
    t = runner_case(suite,
                    "a_pair_called_converged_is_and_one_that_is_is_called_so");
    tcase_set_timeout(t, runner_long() ? 3600 : RUNNER_TIMEOUT);
    tcase_add_test(t, a_pair_called_converged_is_and_one_that_is_is_called_so);
    return runner_run(suite);
}
