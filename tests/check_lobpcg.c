/* SPDX-License-Identifier: BSD-3-Clause */
/* check_lobpcg.c - what other LOBPCGs stumble over: clusters, zeros, ranks
 * that run out, exact guesses, perfect preconditioners, blocks smaller than a
 * multiplicity. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "pencil.h"
#include "runner.h"

/* Seeds of a killer; the long form has a thousand, that for sanitizers one,
 * another for each killer: both ends, with and without a preconditioner. */
static int seeds(int *first)
{
    static int quick;
    const char *text = getenv("SPS_TEST_LONG");

    *first = 1;
    if (runner_quick()) return *first = 1 + quick++ % 3;
    return text && *text && strcmp(text, "0") ? 1000
         : runner_place() == SPS_CUDA ? 6 : 50;
}

static sps_context *context(uint64_t seed)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 1;
    o.seed = seed;
    ck_assert_msg(sps_context_create(&o, &ctx, &why) == SPS_OK, "%s", why);
    return ctx;
}

/* Fills the pencil, whose ctx has the seed; both ends, with k pairs. */
static void survive(void (*fill)(pencil *p, uint64_t seed), int n, int k,
                    bool mass, double atol)
{
    char what[40];
    int first, last = seeds(&first);

    for (int seed = first; seed <= last; seed++) {
        sps_context *ctx = context((uint64_t)seed);
        pencil p;

        pencil_open(&p, ctx, n, k, mass);
        p.opt.which = seed % 2 ? "smallest" : "largest";
        p.opt.atol = atol;
        if (seed % 3 == 0) p.opt.precond = "none";
        fill(&p, (uint64_t)seed);
        snprintf(what, sizeof what, "seed %d", seed);
        pencil_must_agree(&p, what);
        pencil_close(&p);
        sps_context_destroy(&ctx);
    }
}

/* Few different values, some of them many times, one zero: the diagonal of
 * issue 246 of IterativeSolvers.jl. */
static void few_values(pencil *p, uint64_t seed)
{
    static const double v[15] = { 1.25, 1.5, 1.5, 1.25, 1.5, 1.25, 1.5, 0,
                                  1.13, 1.13, 1.5, 1.13, 1.5, 1.5, 1.13 };

    (void)seed;
    for (int i = 0; i < p->n; i++) pencil_set(p, i, i, v[i % 15]);
}

START_TEST(a_diagonal_of_few_values_and_a_zero)
{
    survive(few_values, 15, 5, false, 1e-9);
}
END_TEST

/* B'B, B of rows x n numbers about normal. */
static void squares(pencil *p, uint64_t seed, int rows, double *m)
{
    draw d = { seed * 7919 };
    double *b = calloc((size_t)(rows * p->n), sizeof *b);

    for (int t = 0; t < rows * p->n; t++)
        for (int s = 0; s < 12; s++) b[t] += draw_unit(&d) - 0.5;
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;

            for (int r = 0; r < rows; r++)
                sum += b[r * p->n + i] * b[r * p->n + j];
            if (m) pencil_mass(p, i, j, sum + (i == j));
            else pencil_set(p, i, j, sum);
        }
    free(b);
}

static void small_square(pencil *p, uint64_t seed)
{
    squares(p, seed, p->n, NULL);
}

/* Issue 223 of the same: three pairs of B'B, B 5 x 5. */
START_TEST(three_pairs_of_a_random_5_by_5)
{
    survive(small_square, 5, 3, false, 1e-9);
}
END_TEST

static void deficient(pencil *p, uint64_t seed)
{
    squares(p, seed, 10, NULL);
}

/* SciPy issue 10974: rank 10 of 60, more pairs asked than there is rank. */
START_TEST(a_square_of_low_rank)
{
    if (!runner_quick()) survive(deficient, 60, 8, false, 1e-8);
    survive(deficient, 60, 14, false, 1e-8);
}
END_TEST

/* Five rings, one of them a single vertex: five zero eigenvalues. */
static void five_components(pencil *p, uint64_t seed)
{
    static const int first[6] = { 0, 1, 12, 25, 40, 60 };

    (void)seed;
    for (int c = 0; c < 5; c++) {
        int a = first[c], n = first[c + 1] - a;

        for (int i = 0; n > 1 && i < n; i++) {
            pencil_set(p, a + i, a + (i + 1) % n, -1);
            *pencil_a(p, a + i, a + i) += 2;
        }
    }
}

START_TEST(a_graph_of_five_components_one_a_vertex)
{
    survive(five_components, 60, 9, false, 1e-8);
}
END_TEST

/* 50 times 1, then 2, 3, ... */
static void cluster(pencil *p, uint64_t seed)
{
    for (int i = 0; i < p->n; i++) {
        pencil_set(p, i, i, i < 50 ? 1 + 1e-12 * (double)(seed % 3) * i
                                   : i - 48);
        if (p->m) pencil_mass(p, i, i, i < 50 ? 1 : 1 + (i % 3));
    }
}

START_TEST(fifty_equal_values_and_blocks_smaller_than_that)
{
    if (!runner_quick()) survive(cluster, 120, 8, false, 0);
    survive(cluster, 120, 20, true, 0);
}
END_TEST

/* The 50 lie within 1e-10 of each other: residuals of 1e-9 do not
 * tell which of them are the lowest.  The seed is one that went on exchanging
 * them. */
START_TEST(a_cluster_as_narrow_as_the_tolerance_is_no_stagnation)
{
    sps_context *ctx = context(869);
    pencil p;

    pencil_open(&p, ctx, 120, 20, true);
    cluster(&p, 869);
    pencil_must_agree(&p, "cluster");
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

static void mass_alike(pencil *p, uint64_t seed)
{
    squares(p, seed, p->n, p->m);
    memcpy(p->a, p->m, (size_t)p->n * (size_t)p->n * sizeof *p->a);
}

START_TEST(a_pencil_of_two_equal_matrices)
{
    survive(mass_alike, 40, 6, true, 0);
}
END_TEST

static void nothing(pencil *p, uint64_t seed)
{
    (void)seed;
    pencil_set(p, 0, 0, 0);
}

START_TEST(a_zero_matrix)
{
    survive(nothing, 30, 4, false, 0);
}
END_TEST

static void spread(pencil *p, uint64_t seed)
{
    draw d = { seed };

    for (int i = 0; i < p->n; i++)
        pencil_set(p, i, i, pow(10, 8 * draw_unit(&d)));
    p->opt.rtol = 1e-6;   /* rounding forbids less */
    p->opt.precond = "jacobi";
}

START_TEST(a_diagonal_over_eight_decades)
{
    survive(spread, 100, 6, false, 0);
}
END_TEST

/* More lockings than a failing verification is granted; and what an early end
 * leaves unfound is never called a pair. */
START_TEST(many_lockings_end_well_and_an_early_end_claims_nothing)
{
    sps_context *ctx = context(1);
    pencil p;

    for (int early = runner_quick(); early < 2; early++) {
        pencil_open(&p, ctx, 200, 60, false);
        p.opt.block = 4;
        p.opt.rtol = 1e-7;
        for (int i = 0; i < 200; i++) {
            pencil_set(&p, i, i, 2);
            if (i > 0) pencil_set(&p, i, i - 1, -1);
        }
        if (!early) {
            pencil_must_agree(&p, "lockings");
        } else {
            p.opt.max_iterations = 3;
            ck_assert_int_eq(pencil_solve(&p), SPS_OK);
            ck_assert_int_eq(p.result.stop, SPS_STOP_MAX_ITERATIONS);
            ck_assert(p.result.orthogonality < 1e-10);
            for (int j = 0; j < 60; j++)
                ck_assert(p.pair[j] != SPS_STOP_CONVERGED ||
                          p.residual[j] <= 1e-7);
        }
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(the_smallest_of_an_indefinite_matrix_are_the_most_negative)
{
    sps_context *ctx = context(1);
    pencil p;

    pencil_open(&p, ctx, 600, 4, false);
    for (int i = 0; i < 600; i++) {
        pencil_set(&p, i, i, i - 300.25);
        if (i > 0) pencil_set(&p, i, i - 1, 1);
    }
    pencil_must_agree(&p, "indefinite");
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* Five-point differences on 26 x 25 points less 0.3: some eigenvalues are
 * below zero, and the lower end is dense.  With a low one hidden in one row
 * besides, which a few products with a random vector do not show. */
static void sunken(pencil *p, bool hidden)
{
    for (int i = 0; i < p->n; i++) {
        pencil_set(p, i, i, hidden ? 4 : 3.7);
        if (i % 26) pencil_set(p, i, i - 1, -1);
        if (i >= 26) pencil_set(p, i, i - 26, -1);
        if (p->m) pencil_mass(p, i, i, 2 + i % 3);
        if (p->m && i % 26) pencil_mass(p, i, i - 1, 0.5);
    }
    if (hidden) pencil_set(p, 300, 300, 0.9);
}

START_TEST(an_indefinite_matrix_is_preconditioned_from_below_its_spectrum)
{
    static const char *precond[] = { "auto", "ilut", "ic0", "chebyshev" };
    sps_context *ctx = context(1);
    pencil p;

    for (int run = 0; run < 12; run += runner_quick() ? 5 : 1) {
        char what[60];

        snprintf(what, sizeof what, "%s, run %d", precond[run % 4], run);
        pencil_open(&p, ctx, 650, 6, run / 4 == 1);
        p.opt.precond = precond[run % 4];
        p.opt.block = run % 3 ? 0 : 7;
        p.opt.rtol = 1e-7;
        sunken(&p, run / 4 == 2);
        pencil_must_agree(&p, what);
        ck_assert_msg(p.result.iterations < 120, "%s: %d iterations", what,
                      p.result.iterations);
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_singular_mass_matrix_is_named)
{
    sps_context *ctx = context(1);
    pencil p;

    pencil_open(&p, ctx, 60, 3, true);
    for (int i = 0; i < 60; i++) {   /* M: the Laplacian of a ring */
        pencil_set(&p, i, i, i + 1);
        pencil_mass(&p, i, i, 2);
        pencil_mass(&p, i, (i + 1) % 60, -1);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "singular"));
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* Steps of 1 but for one pair that lies close before another: 1, 2, 4.9, 5,
 * 10, 11, ...; a block of one column begins with the eigenvector of 5. */
static void count_from_the_fourth(pencil *p)
{
    p->opt.block = 1;
    p->opt.verify_count = true;
    for (int i = 0; i < p->n; i++)
        pencil_set(p, i, i, i < 2 ? i + 1 : i < 4 ? 4.7 + 0.1 * i : i + 6);
    p->x[3 * p->count] = 1;
}

START_TEST(the_count_finds_what_was_missed)
{
    sps_context *ctx = context(1);
    pencil p;

    pencil_open(&p, ctx, 100, 1, false);
    count_from_the_fourth(&p);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.missed, 3);
    ck_assert_int_eq(p.result.stop, SPS_STOP_MISSED);
    pencil_close(&p);
    /* 1 and 5 are found. */
    pencil_open(&p, ctx, 100, 2, false);
    count_from_the_fourth(&p);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.missed, 2);
    ck_assert_int_eq(p.result.stop, SPS_STOP_MISSED);
    pencil_close(&p);
    /* What did not converge is not counted. */
    pencil_open(&p, ctx, 600, 4, false);
    p.opt.verify_count = true;
    p.opt.max_iterations = 2;
    p.opt.precond = "none";
    for (int i = 0; i < 600; i++) pencil_set(&p, i, i, i + 1);
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.missed, -1);
    pencil_close(&p);
    /* By a second search, where constraints leave no inertia. */
    pencil_open(&p, ctx, 100, 1, false);
    count_from_the_fourth(&p);
    p.constraint = 50;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_ge(p.result.missed, 1);
    ck_assert_int_eq(p.result.stop, SPS_STOP_MISSED);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

/* Eigenvectors of higher pairs as a guess, in a block of no more columns than
 * pairs: its last columns are guards all the same. */
START_TEST(a_wrong_guess_that_fills_the_block_loses_no_pair)
{
    sps_context *ctx = context(1);
    pencil p;

    for (int block = 3; block < 6; block++) {
        pencil_open(&p, ctx, 100, 3, false);
        p.opt.block = block;
        for (int i = 0; i < 100; i++) pencil_set(&p, i, i, i + 1);
        for (int j = 0; j < 3; j++) p.x[3 * (j + 2) + j] = 1;
        pencil_must_agree(&p, "higher pairs");
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(an_exact_guess_needs_no_iteration_and_a_wrong_end_is_left)
{
    sps_context *ctx = context(1);
    pencil p;

    pencil_open(&p, ctx, 100, 3, false);
    for (int i = 0; i < 100; i++) pencil_set(&p, i, i, i + 1);
    for (int j = 0; j < 3; j++) p.x[3 * j + j] = 1;
    pencil_must_agree(&p, "exact");
    ck_assert_int_eq(p.result.iterations, 0);
    /* The other end as a guess: eigenvectors, but not those wanted. */
    memset(p.x, 0, 300 * sizeof *p.x);
    for (int j = 0; j < 3; j++) p.x[3 * (99 - j) + j] = 1;
    pencil_must_agree(&p, "wrong end");
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(many_pairs_are_locked_block_after_block)
{
    sps_context *ctx = context(3);
    pencil p;

    for (int which = 0; which < 2; which++)
        for (int block = runner_quick() ? 24 : 6; block <= 24; block += 18) {
            pencil_open(&p, ctx, 400, 60, which);
            p.opt.block = block;
            p.opt.which = which ? "largest" : "smallest";
            p.opt.precond = "ic0";
            squares(&p, 5, 20, NULL);
            for (int i = 0; i < 400; i++) {
                *pencil_a(&p, i, i) += i + 1;
                if (p.m) pencil_mass(&p, i, i, 1 + 0.5 * (i % 4));
            }
            pencil_must_agree(&p, "locking");
            pencil_close(&p);
        }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(pairs_inside_the_spectrum_are_found_from_a_shift)
{
    sps_context *ctx = context(2);
    int shifts = runner_quick() ? 1 : runner_place() == SPS_CUDA ? 2 : 4;
    pencil p;

    for (int solver = 0; solver < 2; solver++)
        for (int mass = 0; mass < 2; mass++)
            for (int t = 0; t < shifts; t++) {
                pencil_open(&p, ctx, 300, 7, mass);
                p.opt.solver = solver ? "auto" : "lobpcg";
                p.opt.which = "nearest";
                p.opt.sigma = -1 + 21.7 * t;
                squares(&p, 5 + (uint64_t)t, 6, NULL);
                for (int i = 0; i < 300; i++) {
                    *pencil_a(&p, i, i) += 0.2 * i - 20;
                    if (p.m) pencil_mass(&p, i, i, 1 + 0.5 * (i % 4));
                    if (p.m && i) pencil_mass(&p, i, i - 1, 0.2);
                }
                pencil_must_agree(&p, "shift");
                pencil_close(&p);
            }
    sps_context_destroy(&ctx);
}
END_TEST

/* Seven-point differences on 13^3 points: more rows than the inverse is taken
 * for, and factors that fill. */
static double distance_from_shift(int t)
{
    double sum = 0;

    for (int d = 0; d < 3; d++, t /= 13)
        sum += 4 * pow(sin(acos(-1) * (t % 13 + 1) / 28), 2);
    return fabs(sum - 3.3);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

START_TEST(pairs_inside_a_box_are_found_by_complete_factors)
{
    static const int stride[3] = { 1, 13, 169 };
    sps_context *ctx = context(1);
    static double exact[2197], found[9];
    pencil p;

    pencil_open(&p, ctx, 2197, 9, false);
    p.opt.which = "nearest";
    p.opt.sigma = 3.3;
    p.opt.rtol = 1e-7;
    for (int i = 0; i < p.n; i++) {
        exact[i] = distance_from_shift(i);
        pencil_set(&p, i, i, 6);
        for (int d = 0; d < 3; d++)
            if (i / stride[d] % 13) pencil_set(&p, i, i - stride[d], -1);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    for (int j = 0; j < 9; j++) found[j] = fabs(p.lambda[j] - 3.3);
    qsort(exact, 2197, sizeof *exact, ascending);
    qsort(found, 9, sizeof *found, ascending);
    for (int j = 0; j < 9; j++)
        ck_assert(fabs(found[j] - exact[j]) < 1e-8);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_shift_that_is_an_eigenvalue_is_moved)
{
    sps_context *ctx = context(2);
    pencil p;

    pencil_open(&p, ctx, 700, 6, false);
    p.opt.which = "nearest";
    p.opt.sigma = 7;
    p.opt.rtol = 1e-8;
    /* Five equal values each; above 7 they are moved, for no two may be as
     * far from the shift as each other on either side. */
    for (int i = 0; i < 700; i++)
        pencil_set(&p, i, i, 1 + i / 5 + (i / 5 > 6 ? 0.5 : 0));
    pencil_must_agree(&p, "shift");
    ck_assert_ptr_nonnull(strstr(sps_context_note(ctx, 0), "sigma"));
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

static double *line_up(const sps_context *ctx, int run)
{
    pencil p;
    double *x = malloc(500 * 6 * sizeof *x);

    pencil_open(&p, (sps_context *)ctx, 500, 6, true);
    for (int i = 0; i < 500; i++) {
        pencil_set(&p, i, i, 2);
        pencil_mass(&p, i, i, 4);
        if (i > 0) pencil_set(&p, i, i - 1, -1);
        if (i > 0) pencil_mass(&p, i, i - 1, 1);
    }
    p.opt.precond = "chebyshev";
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    memcpy(x, p.x, 500 * 6 * sizeof *x);
    pencil_close(&p);
    (void)run;
    return x;
}

START_TEST(the_same_solve_gives_the_same_bits)
{
    sps_context *ctx = context(1);
    double *first = line_up(ctx, 0);

    for (int run = 1; run < 3; run++) {
        double *x = line_up(ctx, run);

        ck_assert(!memcmp(first, x, 500 * 6 * sizeof *x));
        free(x);
    }
    free(first);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_tolerance_below_rounding_is_named_and_never_called_converged)
{
    sps_context *ctx = context(1);
    pencil p;

    pencil_open(&p, ctx, 200, 4, false);
    for (int i = 0; i < 200; i++) {
        pencil_set(&p, i, i, 2e12);
        if (i > 0) pencil_set(&p, i, i - 1, -1e12);
    }
    for (int i = 0; i < 200; i++) *pencil_a(&p, i, i) += 1e-3 * (i % 7);
    p.opt.rtol = 1e-15;
    ck_assert_int_eq(pencil_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_ROUNDING);
    ck_assert(p.result.worst_backward < 1e-13);
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(a_mass_of_any_unit_has_a_bound)
{
    sps_context *ctx = context(1);
    pencil p;

    for (int power = -200; power <= 200; power += 400) {
        pencil_open(&p, ctx, 60, 3, true);
        p.opt.rtol = 1e-8;
        for (int i = 0; i < 60; i++) {
            pencil_set(&p, i, i, i + 1);
            pencil_mass(&p, i, i, pow(10, power));
        }
        ck_assert_int_eq(pencil_solve(&p), SPS_OK);
        ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
        for (int j = 0; j < 3; j++) {
            double exact = (j + 1) / pow(10, power);

            ck_assert(p.bound[j] < 1e-7 * exact);
            ck_assert(fabs(p.lambda[j] - exact) <=
                      p.bound[j] + 1e-14 * exact);
        }
        pencil_close(&p);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(an_indefinite_mass_matrix_is_named)
{
    sps_context *ctx = context(1);
    pencil p;

    pencil_open(&p, ctx, 60, 3, true);
    for (int i = 0; i < 60; i++) {
        pencil_set(&p, i, i, i + 1);
        pencil_mass(&p, i, i, i == 30 ? -1 : 1);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "row 31"));
    pencil_close(&p);
    pencil_open(&p, ctx, 60, 3, true);
    for (int i = 0; i < 60; i++) {
        pencil_set(&p, i, i, i + 1);
        pencil_mass(&p, i, i, 1);
        if (i % 2) pencil_mass(&p, i, i - 1, 3);
    }
    ck_assert_int_eq(pencil_solve(&p), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "definite"));
    pencil_close(&p);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_diagonal_of_few_values_and_a_zero),
    RUNNER_TEST(three_pairs_of_a_random_5_by_5),
    RUNNER_TEST(a_square_of_low_rank),
    RUNNER_TEST(a_graph_of_five_components_one_a_vertex),
    RUNNER_TEST(fifty_equal_values_and_blocks_smaller_than_that),
    RUNNER_TEST(a_cluster_as_narrow_as_the_tolerance_is_no_stagnation),
    RUNNER_TEST(a_pencil_of_two_equal_matrices),
    RUNNER_TEST(a_zero_matrix),
    RUNNER_TEST(a_diagonal_over_eight_decades),
    RUNNER_TEST(many_lockings_end_well_and_an_early_end_claims_nothing),
    RUNNER_TEST(the_smallest_of_an_indefinite_matrix_are_the_most_negative),
    RUNNER_TEST(
        an_indefinite_matrix_is_preconditioned_from_below_its_spectrum),
    RUNNER_TEST(a_singular_mass_matrix_is_named),
    RUNNER_TEST(the_count_finds_what_was_missed),
    RUNNER_TEST(a_wrong_guess_that_fills_the_block_loses_no_pair),
    RUNNER_TEST(an_exact_guess_needs_no_iteration_and_a_wrong_end_is_left),
    RUNNER_TEST(many_pairs_are_locked_block_after_block),
    RUNNER_TEST(pairs_inside_the_spectrum_are_found_from_a_shift),
    RUNNER_TEST(pairs_inside_a_box_are_found_by_complete_factors),
    RUNNER_TEST(a_shift_that_is_an_eigenvalue_is_moved),
    RUNNER_TEST(the_same_solve_gives_the_same_bits),
    RUNNER_TEST(a_tolerance_below_rounding_is_named_and_never_called_converged),
    RUNNER_TEST(a_mass_of_any_unit_has_a_bound),
    RUNNER_TEST(an_indefinite_mass_matrix_is_named),
};

RUNNER_MAIN("lobpcg", tests)
