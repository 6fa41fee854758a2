/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_kernels.c - every listed SpMM kernel of the place against the
 * contract in kernel.h, forced by name, whoever would win the bidding.
 *
 * Integers first: all sums are exact, so results must equal the oracle bit for
 * bit in whatever order they are summed.  Then random data within the row-wise
 * bound.  SPS_TEST_KERNEL=name looks at one kernel only. */
#include <check.h>
#include <math.h>

#include "block.h"
#include "image.h"
#include "oracle.h"
#include "registry.h"
#include "rig.h"
#include "runner.h"
#include "zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

static const int WIDTHS[] = { 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64,
                              100 };
static const int FEW[] = { 1, 3, 8, 17, 33 };

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define FOR_KERNELS(kernel)                                                    \
    for (int i_ = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i_)); i_++)

/* Y = alpha A X + beta Y by the plan, compared with the oracle. */
typedef struct trial {
    const rig *r;
    int k, layout;
    double alpha, beta;
    zoo_values values;
} trial;

static void run(const rig *r, double alpha, const sps_block *X, double beta,
                sps_block *Y)
{
    const sps_spmm_args args = { .alpha = alpha, .X = X, .beta = beta,
                                 .Y = Y };

    OK(ctx, r->plan->kernel->spmm(r->plan, &args));
    OK(ctx, ctx->backend->sync(ctx));
}

static void judge(const trial *t, image *Y, const double *right,
                  const double *bound)
{
    const sps_csr *A = t->r->A;
    char what[160];

    snprintf(what, sizeof what, "%s on %s (%lld x %lld, f%d) k %d layout %d "
             "alpha %g beta %g", t->r->plan->kernel->name, t->r->what,
             (long long)A->nrow, (long long)A->ncol,
             A->dtype == SPS_F64 ? 64 : 32, t->k, t->layout, t->alpha,
             t->beta);
    image_read(Y, what);
    if (t->values == ZOO_INTEGER) {
        const int64_t at = oracle_differs(A->nrow, t->k, Y->out, Y->ld, right,
                                          t->k);

        ck_assert_msg(at < 0, "%s: row %lld column %lld is %.17g, not %.17g",
                      what, (long long)(at / t->k), (long long)(at % t->k),
                      Y->out[at / t->k * Y->ld + at % t->k], right[at]);
    } else {
        const double ratio = oracle_ratio(A->nrow, t->k, Y->out, Y->ld, right,
                                          t->k, bound, oracle_longest(A));

        ck_assert_msg(ratio <= 1.0, "%s: error is %g bounds", what, ratio);
    }
}

/* Old Y is NaN when beta = 0, X is NaN when alpha = 0. */
static void try(const trial *t)
{
    const sps_csr *A = t->r->A;
    const size_t count = (size_t)A->nrow * (size_t)t->k + 1;
    double *right = calloc(count, sizeof *right);
    double *bound = calloc(count, sizeof *bound);
    image X, Y;

    image_open(&X, ctx, A->ncol, t->k, t->layout, t->alpha == 0.0 ? 0 : 3,
               t->values);
    image_open(&Y, ctx, A->nrow, t->k, t->layout + 1, t->beta == 0.0 ? 0 : 5,
               t->values);
    for (int64_t i = 0; i < A->nrow; i++)
        memcpy(right + i * t->k, Y.data + i * Y.ld,
               (size_t)t->k * sizeof *right);
    oracle_spmm(A, t->alpha, X.data, X.ld, t->beta, right, t->k, t->k, bound);
    run(t->r, t->alpha, X.B, t->beta, Y.B);
    judge(t, &Y, right, bound);
    image_close(&X);
    image_close(&Y);
    free(right);
    free(bound);
}

/* ------------------------------------------------------------------ tests */

/* All pairs of scalars in the long suite, else two in turn. */
static void exact_on(rig *r, int k, int *layout)
{
    const double scalars[][2] = { { 1, 0 }, { -1, 1 }, { 2, -3 }, { 0, 2 },
                                  { 0, 0 } };
    const int first = fixture_env("SPS_TEST_LONG") ? 0 : *layout % 5;
    const int count = fixture_env("SPS_TEST_LONG") ? 5 : 2;

    for (int n = 0; n < count; n++) {
        const int s = (first + n) % 5;
        const trial t = { r, k, (*layout)++ % LAYOUTS, scalars[s][0],
                          scalars[s][1], ZOO_INTEGER };

        try(&t);
    }
}

START_TEST(spmm_equals_the_oracle_exactly_on_integers)
{
    const sps_kernel *kernel;
    const bool quick = fixture_env("SPS_TEST_QUICK");
    const int *widths = quick ? FEW : WIDTHS;
    const int count = quick ? COUNT(FEW) : COUNT(WIDTHS);
    int layout = 0;

    FOR_KERNELS(kernel) {
        int64_t fitted = 0;

        for (int f = 0; f < zoo_count(); f++)
            for (int d = 0; d < 2; d++) {
                rig r;

                rig_open(&r, ctx, f, 70, ZOO_INTEGER, (sps_dtype)d);
                for (int w = 0; w < count; w++)
                    if (rig_plan(&r, kernel, widths[w])) {
                        exact_on(&r, widths[w], &layout);
                        fitted++;
                    }
                rig_close(&r);
            }
        ck_assert_msg(fitted > 0, "%s fits nothing of the zoo", kernel->name);
    }
}
END_TEST

/* Rows of 1023, 1024, 1025 entries, and grids of more than one window. */
START_TEST(long_rows_and_many_rows_are_exact_too)
{
    const bool longer = fixture_env("SPS_TEST_LONG");
    const int64_t n = longer ? 20000 : 1100;
    const sps_kernel *kernel;
    int layout = 1;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            rig r;

            rig_open(&r, ctx, f, n, ZOO_INTEGER, SPS_F64);
            for (int w = longer ? 0 : f % 2; w < COUNT(FEW); w += 2) {
                const trial t = { &r, FEW[w], layout++ % LAYOUTS, 1.0,
                                  (double)(w % 2), ZOO_INTEGER };

                if (rig_plan(&r, kernel, FEW[w])) try(&t);
            }
            rig_close(&r);
        }
}
END_TEST

START_TEST(tiny_and_empty_matrices_are_exact)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++)
            for (int64_t n = 0; n <= 9; n += 3)
                for (int k = 1; k <= 9; k += 4) {
                    rig r;
                    const trial t = { &r, k, 2, 2.0, 1.0, ZOO_INTEGER };

                    rig_open(&r, ctx, f, n, ZOO_INTEGER, SPS_F64);
                    if (rig_plan(&r, kernel, k)) try(&t);
                    rig_close(&r);
                }
}
END_TEST

START_TEST(random_data_stays_within_the_rowwise_bound)
{
    const zoo_values values[] = { ZOO_RANDOM, ZOO_SCALES };
    const sps_kernel *kernel;
    int layout = 0;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_FULL_PRECISION)) continue;
        for (int f = 0; f < zoo_count(); f++)
            for (int d = 0; d < 4; d++) {
                rig r;

                rig_open(&r, ctx, f, 150, values[d / 2], (sps_dtype)(d % 2));
                for (int w = (f + d) % 2; w < COUNT(FEW); w += 2) {
                    const trial t = { &r, FEW[w], layout++ % LAYOUTS, 0.37,
                                      -1.25, ZOO_RANDOM };

                    if (rig_plan(&r, kernel, FEW[w])) try(&t);
                }
                rig_close(&r);
            }
    }
}
END_TEST

START_TEST(a_plan_serves_every_narrower_width)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f += 3) {
            rig r;

            rig_open(&r, ctx, f, 60, ZOO_INTEGER, SPS_F64);
            if (rig_plan(&r, kernel, 33))
                for (int k = 1; k <= 33; k++) {
                    const trial t = { &r, k, k % LAYOUTS, -1.0, 2.0,
                                      ZOO_INTEGER };

                    try(&t);
                }
            rig_close(&r);
        }
}
END_TEST

/* X is finite but for (c, j): where may Y be anything but right? */
static void poison(const rig *r, int k, double value)
{
    const bool strict = r->plan->kernel->gives & SPS_NAN_STAYS_IN_ROW;
    const sps_csr *A = r->A;
    const int64_t c = A->ncol / 2;
    const int j = k / 2;
    double *right = calloc((size_t)A->nrow * (size_t)k + 1, sizeof *right);
    image X, Y;

    image_open(&X, ctx, A->ncol, k, 0, 3, ZOO_INTEGER);
    image_open(&Y, ctx, A->nrow, k, 0, 0, ZOO_INTEGER);
    oracle_spmm(A, 1.0, X.data, X.ld, 0.0, right, k, k, NULL);
    X.data[c * X.ld + j] = value;
    image_upload(&X);
    run(r, 1.0, X.B, 0.0, Y.B);
    image_read(&Y, r->plan->kernel->name);
    for (int64_t i = 0; i < A->nrow; i++) {
        bool stored = false;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            stored = stored || A->col[p] == c;
        for (int l = 0; l < k; l++) {
            const double y = Y.out[i * Y.ld + l];

            if (l == j && stored)
                ck_assert_msg(!isfinite(y), "%s on %s: row %lld lost a %g",
                              r->plan->kernel->name, r->what, (long long)i,
                              value);
            else if (l != j || strict)
                ck_assert_msg(y == right[i * k + l], "%s on %s: %g at (%lld, "
                              "%d) of X reached (%lld, %d) of Y",
                              r->plan->kernel->name, r->what, value,
                              (long long)c, j, (long long)i, l);
        }
    }
    image_close(&X);
    image_close(&Y);
    free(right);
}

START_TEST(nan_and_infinity_stay_where_they_belong)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++) {
            rig r;

            rig_open(&r, ctx, f, 90, ZOO_INTEGER, SPS_F64);
            for (int w = f % 2; r.A->ncol > 0 && w < COUNT(FEW); w += 2)
                if (rig_plan(&r, kernel, FEW[w])) {
                    poison(&r, FEW[w], NAN);
                    poison(&r, FEW[w], INFINITY);
                }
            rig_close(&r);
        }
}
END_TEST

/* Runs with random data; the caller frees what comes back. */
static double *product(sps_context *with, const rig *r, int k)
{
    double *y = malloc((size_t)(r->A->nrow * k + 1) * sizeof *y);
    double *x = zoo_block(r->A->ncol, k, k, 9, ZOO_RANDOM);
    sps_block *X = fixture_block(with, r->A->ncol, k, x, k);
    sps_block *Y = fixture_block(with, r->A->nrow, k, NULL, k);
    const sps_spmm_args args = { .alpha = 0.7, .X = X, .Y = Y };

    OK(with, r->plan->kernel->spmm(r->plan, &args));
    OK(with, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    return y;
}

static void same_bits(const rig *r, int k, const double *a, const double *b,
                      const char *what)
{
    ck_assert_msg(!memcmp(a, b, (size_t)(r->A->nrow * k) * sizeof *a),
                  "%s on %s, k %d: other bits %s", r->plan->kernel->name,
                  r->what, k, what);
}

/* Runs again with the same plan, and at last with a fresh one. */
static void repeat(rig *r, const sps_kernel *kernel, int k, int runs)
{
    double *first = product(ctx, r, k);

    for (int i = 0; i < runs; i++) {
        double *again;

        if (i == runs - 1) rig_plan(r, kernel, k);
        again = product(ctx, r, k);
        same_bits(r, k, first, again, "at another run");
        free(again);
    }
    free(first);
}

START_TEST(reproducible_kernels_repeat_their_bits)
{
    const sps_kernel *kernel;
    const int runs = fixture_env("SPS_TEST_LONG") ? 20 : 2;

    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_REPRODUCIBLE)) continue;
        for (int f = 0; f < zoo_count(); f++) {
            rig r;

            rig_open(&r, ctx, f, 1500, ZOO_RANDOM, SPS_F64);
            for (int w = f % 2; w < COUNT(FEW); w += 2)
                if (rig_plan(&r, kernel, FEW[w]))
                    repeat(&r, kernel, FEW[w], runs);
            rig_close(&r);
        }
    }
}
END_TEST

START_TEST(threads_do_not_change_bits_on_the_host)
{
    const sps_kernel *kernel;

    if (ctx->backend->place != SPS_HOST) return;
    FOR_KERNELS(kernel) {
        if (!(kernel->gives & SPS_REPRODUCIBLE)) continue;
        for (int f = 0; f < zoo_count(); f++) {
            sps_context *one = fixture_open_with(SPS_HOST, 1, true);
            sps_context *three = fixture_open_with(SPS_HOST, 3, true);
            double *a, *b;
            rig r, s;

            rig_open(&r, one, f, 2100, ZOO_RANDOM, SPS_F64);
            rig_open(&s, three, f, 2100, ZOO_RANDOM, SPS_F64);
            for (int w = 0; w < COUNT(FEW); w++)
                if (rig_plan(&r, kernel, FEW[w]) &&
                    rig_plan(&s, kernel, FEW[w])) {
                    a = product(one, &r, FEW[w]);
                    b = product(three, &s, FEW[w]);
                    same_bits(&r, FEW[w], a, b, "with other threads");
                    free(a);
                    free(b);
                }
            rig_close(&r);
            rig_close(&s);
            fixture_close(&one);
            fixture_close(&three);
        }
    }
}
END_TEST

START_TEST(refreshed_values_equal_a_fresh_plan)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++)
            for (int d = 0; d < 2; d++) {
                rig r;
                const trial t = { &r, 9, 0, 1.0, 0.0, ZOO_INTEGER };

                rig_open(&r, ctx, f, 120, ZOO_INTEGER, (sps_dtype)d);
                if (rig_plan(&r, kernel, 9)) {
                    try(&t);
                    rig_new_values(&r);
                    try(&t);
                }
                rig_close(&r);
            }
}
END_TEST

START_TEST(bids_are_positive_numbers_and_refusals_have_a_reason)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f++)
            for (int w = 0; w < COUNT(WIDTHS); w++) {
                const char *why = NULL;
                sps_problem p;
                rig r;

                rig_open(&r, ctx, f, 40, ZOO_INTEGER, SPS_F64);
                p = rig_problem(&r, SPS_OP_SPMM, WIDTHS[w]);
                if (kernel->fits(&p, &why))
                    ck_assert_msg(isfinite(kernel->cost(&p)) &&
                                  kernel->cost(&p) > 0.0, "%s bids %g on %s",
                                  kernel->name, kernel->cost(&p), r.what);
                else
                    ck_assert_msg(why && *why, "%s refuses %s without a word",
                                  kernel->name, r.what);
                rig_close(&r);
            }
}
END_TEST

START_TEST(a_product_allocates_nothing)
{
    const sps_kernel *kernel;

    FOR_KERNELS(kernel)
        for (int f = 0; f < zoo_count(); f += 2) {
            sps_context_info before = { .struct_size = sizeof before };
            sps_context_info after = { .struct_size = sizeof after };
            image X, Y;
            rig r;

            rig_open(&r, ctx, f, 300, ZOO_RANDOM, SPS_F64);
            if (rig_plan(&r, kernel, 16)) {
                image_open(&X, ctx, r.A->ncol, 16, 0, 3, ZOO_RANDOM);
                image_open(&Y, ctx, r.A->nrow, 16, 0, 0, ZOO_RANDOM);
                /* Fresh peaks: what is held now is the most there was. */
                ctx->host_peak = ctx->host_bytes;
                ctx->device_peak = ctx->device_bytes;
                sps_context_information(ctx, &before);
                run(&r, 1.0, X.B, 0.0, Y.B);
                sps_context_information(ctx, &after);
                ck_assert_msg(after.host_peak == before.host_peak &&
                              after.device_peak == before.device_peak,
                              "%s allocated", kernel->name);
                image_close(&X);
                image_close(&Y);
            }
            rig_close(&r);
        }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("conform_kernels");
    TCase *t = tcase_create("spmm");

    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, spmm_equals_the_oracle_exactly_on_integers);
    tcase_add_test(t, long_rows_and_many_rows_are_exact_too);
    tcase_add_test(t, tiny_and_empty_matrices_are_exact);
    tcase_add_test(t, random_data_stays_within_the_rowwise_bound);
    tcase_add_test(t, a_plan_serves_every_narrower_width);
    tcase_add_test(t, nan_and_infinity_stay_where_they_belong);
    tcase_add_test(t, reproducible_kernels_repeat_their_bits);
    tcase_add_test(t, threads_do_not_change_bits_on_the_host);
    tcase_add_test(t, refreshed_values_equal_a_fresh_plan);
    tcase_add_test(t, bids_are_positive_numbers_and_refusals_have_a_reason);
    tcase_add_test(t, a_product_allocates_nothing);
    suite_add_tcase(s, t);
    return runner_run(s);
}
