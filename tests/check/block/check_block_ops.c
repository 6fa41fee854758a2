/* SPDX-License-Identifier: BSD-3-Clause */
/* check_block_ops.c - what lib/block/block_ops.c adds to the backends: norms
 * whose squares overflow or underflow, empty blocks, composed operations, and
 * the reduction over processes. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/block_fixture.h"

static sps_block *filled(sps_context *ctx, int64_t n, int k, const double *x)
{
    sps_block *X = NULL;

    ck_assert_int_eq(sps_block_create(ctx, n, k, &X), SPS_OK);
    ck_assert_int_eq(sps_block_set(X, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    return X;
}

START_TEST(norms_survive_overflow_and_underflow)
{
    enum { N = 3000, K = 9 };
    static const double scale[K] = {1,      0x1p-600, 0x1p600, 0, 0x1p-1060,
                                    0x1p1010, 3,      0x1p-500, 0x1p500};
    static double x[N * K];
    double norms[K];
    sps_context *ctx = open_with(0);
    sps_block *X;

    for (int i = 0; i < N; i++) /* 4 numbers of each column, the rest zero */
        for (int j = 0; j < K; j++)
            x[i * K + j] = i % (N / 4) == 1 ? scale[j] : 0;
    X = filled(ctx, N, K, x);
    ck_assert_int_eq(spsi_norms(X, norms), SPS_OK);
    for (int j = 0; j < K; j++) ck_assert_double_eq(norms[j], 2 * scale[j]);
    sps_block_destroy(&X);
    close_empty(&ctx);
}
END_TEST

START_TEST(norms_of_infinities_and_nans_are_those_and_spare_the_others)
{
    enum { N = 100, K = 4 };
    static double x[N * K];
    double norms[K];
    sps_context *ctx = open_with(0);
    sps_block *X;

    for (int i = 0; i < N * K; i++) x[i] = 1;
    x[50 * K + 1] = INFINITY;
    x[99 * K + 2] = NAN;
    x[98 * K + 2] = INFINITY;
    X = filled(ctx, N, K, x);
    ck_assert_int_eq(spsi_norms(X, norms), SPS_OK);
    ck_assert(norms[0] == 10 && isinf(norms[1]) && isnan(norms[2]) &&
              norms[3] == 10);
    sps_block_destroy(&X);
    close_empty(&ctx);
}
END_TEST

/* ---------------------------------------- composed operations, empty blocks */

START_TEST(operations_on_empty_blocks_do_nothing_and_sums_are_zero)
{
    sps_context *ctx = open_with(0);
    sps_block *X = NULL, *Y = NULL;
    sps_small *C = NULL;
    double sums[4] = {1, 1, 1, 1};

    ck_assert_int_eq(sps_block_create(ctx, 0, 4, &X), SPS_OK);
    ck_assert_int_eq(sps_block_create(ctx, 0, 4, &Y), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, 4, 4, &C), SPS_OK);
    ck_assert_int_eq(sps_block_random(X, 1), SPS_OK);
    ck_assert_int_eq(spsi_axpby(1, X, 1, Y), SPS_OK);
    ck_assert_int_eq(spsi_dots(X, Y, sums), SPS_OK);
    for (int j = 0; j < 4; j++) ck_assert(sums[j] == 0);
    ck_assert_int_eq(spsi_norms(X, sums), SPS_OK);
    ck_assert(sums[3] == 0);
    *spsi_small_at(C, 3, 3) = 5;
    ck_assert_int_eq(spsi_gram(X, Y, C), SPS_OK);
    ck_assert(*spsi_small_at(C, 3, 3) == 0);
    ck_assert_int_eq(spsi_mul_small(1, X, C, 0, Y), SPS_OK);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    spsi_small_destroy(&C);
    close_empty(&ctx);
}
END_TEST

/* Small integers everywhere, so that each sum is exact. */
static sps_block *integers(sps_context *ctx, int64_t n, int k, int seed)
{
    double *x = malloc((size_t)(n * k) * sizeof *x);
    sps_block *X;

    for (int64_t p = 0; p < n * k; p++)
        x[p] = (double)((p * 7919 + seed * 104729) % 17 - 8);
    X = filled(ctx, n, k, x);
    free(x);
    return X;
}

static void equal_blocks(const sps_block *X, const sps_block *Y)
{
    size_t count = (size_t)(X->n * X->k);
    double *x = malloc(count * 8), *y = malloc(count * 8);

    ck_assert(X->n == Y->n && X->k == Y->k);
    download(X, x);
    download(Y, y);
    for (size_t p = 0; p < count; p++) ck_assert_double_eq(x[p], y[p]);
    free(x);
    free(y);
}

/* P = Z + P b with r columns before and k after, compared with plain loops. */
static void combine_case(sps_context *ctx, int64_t n, int r, int k)
{
    int width = r > k ? r : k;
    sps_block *P = integers(ctx, n, width, 1), *Z = integers(ctx, n, k, 2);
    sps_small *b = NULL, *G = NULL;
    double *p = malloc((size_t)(n * width) * 8);
    double *z = malloc((size_t)(n * k) * 8);
    double *want = malloc((size_t)(n * k) * 8);
    sps_block *W;

    ck_assert_int_eq(spsi_small_create(ctx, width, width, &b), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, width, width, &G), SPS_OK);
    spsi_small_shape(b, r, k);
    for (int i = 0; i < r; i++)
        for (int j = 0; j < k; j++)
            *spsi_small_at(b, i, j) = (i + 2 * j) % 5 - 2;
    download(P, p);
    download(Z, z);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = z[i * k + j];

            for (int l = 0; l < r; l++)
                sum += p[i * width + l] * *spsi_small_at(b, l, j);
            want[i * k + j] = sum;
        }
    spsi_block_narrow(P, r);
    ck_assert_int_eq(spsi_combine(Z, b, P, G), SPS_OK);
    W = filled(ctx, n, k, want);
    equal_blocks(P, W);
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;

            for (int64_t l = 0; l < n; l++)
                sum += want[l * k + i] * want[l * k + j];
            ck_assert_double_eq(*spsi_small_at(G, i, j), sum);
        }
    sps_block_destroy(&P);
    sps_block_destroy(&Z);
    sps_block_destroy(&W);
    spsi_small_destroy(&b);
    spsi_small_destroy(&G);
    free(p);
    free(z);
    free(want);
}

START_TEST(combine_may_narrow_keep_or_widen_the_directions)
{
    static const int shapes[][2] = {{1, 1}, {4, 4}, {5, 3}, {3, 5},  {16, 7},
                                    {7, 16}, {17, 16}, {33, 33}, {0, 3},
                                    {20, 24}, {23, 18}, {9, 24}, {26, 31}};
    sps_context *ctx = open_with(0);

    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        combine_case(ctx, 301, shapes[s][0], shapes[s][1]);
    close_empty(&ctx);
}
END_TEST

/* ---------------------------------------------------------------- reduction */

static int calls;

static int twice(double *values, int count, void *data)
{
    calls++;
    for (int i = 0; i < count; i++) values[i] *= 2;
    return data ? 5 : 0;
}

static const sps_comm_calls calls_twice = {
    .struct_size = sizeof calls_twice, .sum = twice,
};
static sps_comm *comm;

static sps_context *open_reducing(void *data)
{
    sps_context_options o;
    sps_context *ctx = NULL;

    sps_context_options_default(&o);
    o.place = runner_place();
    ck_assert_int_eq(sps_comm_user(0, 2, &calls_twice, data, &comm), SPS_OK);
    o.comm = comm;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    return ctx;
}

/* Two processes with the same rows: all sums double, norms grow by sqrt 2. */
START_TEST(every_sum_passes_the_reduction)
{
    sps_context *ctx = open_reducing(NULL), *alone = open_with(0);
    sps_block *X = integers(ctx, 64, 4, 1), *Y = integers(ctx, 64, 4, 2);
    sps_block *x = integers(alone, 64, 4, 1), *y = integers(alone, 64, 4, 2);
    sps_small *C = NULL, *c = NULL;
    double many[4], one[4];

    ck_assert_int_eq(spsi_small_create(ctx, 6, 6, &C), SPS_OK);
    ck_assert_int_eq(spsi_small_create(alone, 6, 6, &c), SPS_OK);
    ck_assert_int_eq(spsi_dots(X, Y, many), SPS_OK);
    ck_assert_int_eq(spsi_dots(x, y, one), SPS_OK);
    for (int j = 0; j < 4; j++) ck_assert(many[j] == 2 * one[j]);
    ck_assert_int_eq(spsi_norms(X, many), SPS_OK);
    ck_assert_int_eq(spsi_dots(x, x, one), SPS_OK);
    for (int j = 0; j < 4; j++) ck_assert(many[j] == sqrt(2 * one[j]));
    ck_assert_int_eq(spsi_gram(X, Y, C), SPS_OK);
    ck_assert_int_eq(spsi_gram(x, y, c), SPS_OK);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            ck_assert(*spsi_small_at(C, i, j) == 2 * *spsi_small_at(c, i, j));
    ck_assert_int_eq(spsi_subtract_cols(X, one, Y, many), SPS_OK);
    ck_assert_int_eq(calls, 4);
    spsi_small_destroy(&C);
    spsi_small_destroy(&c);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&x);
    sps_block_destroy(&y);
    close_empty(&ctx);
    close_empty(&alone);
    sps_comm_destroy(&comm);
}
END_TEST

START_TEST(a_failing_reduction_is_the_users_failure)
{
    sps_context *ctx = open_reducing(&calls);
    sps_block *X = integers(ctx, 64, 4, 1);
    double sums[4];

    ck_assert_int_eq(spsi_norms(X, sums), SPS_EUSER);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "returned 5"));
    sps_block_destroy(&X);
    close_empty(&ctx);
    sps_comm_destroy(&comm);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(norms_survive_overflow_and_underflow),
    RUNNER_TEST(norms_of_infinities_and_nans_are_those_and_spare_the_others),
    RUNNER_TEST(operations_on_empty_blocks_do_nothing_and_sums_are_zero),
    RUNNER_TEST(combine_may_narrow_keep_or_widen_the_directions),
    RUNNER_TEST(every_sum_passes_the_reduction),
    RUNNER_TEST(a_failing_reduction_is_the_users_failure),
};
RUNNER_MAIN("check_block_ops", tests)
