/* SPDX-License-Identifier: BSD-3-Clause */
/* check_block.c - numbers into blocks and out of them, exactly; norms where
 * squares leave the range of doubles; the reduction over processes. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "context.h"
#include "runner.h"

static const int widths[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 100};
enum { WIDTHS = sizeof widths / sizeof *widths };

static sps_context *open_with(int threads)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *error;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = threads;
    ck_assert_msg(sps_context_create(&o, &ctx, &error) == SPS_OK, "%s", error);
    return ctx;
}

static void close_empty(sps_context **ctx)
{
    ck_assert_int_eq((*ctx)->live, 0);
    sps_context_destroy(ctx);
}

static double number(int64_t i, int j)
{
    return (double)(i * 1000 + j);
}

static void download(const sps_block *X, double *out)
{
    int64_t n;
    int k;

    sps_block_shape(X, &n, &k);
    ck_assert_int_eq(sps_block_get(X, 0, k, out, k, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
}

START_TEST(a_new_block_is_zero_and_of_its_shape)
{
    sps_context *ctx = open_with(0);
    double out[37 * 100];

    for (int w = 0; w < WIDTHS; w++) {
        sps_block *X = NULL;
        int64_t n, ld;
        int k;

        ck_assert_int_eq(sps_block_create(ctx, 37, widths[w], &X), SPS_OK);
        sps_block_shape(X, &n, &k);
        ck_assert(n == 37 && k == widths[w]);
        ck_assert_ptr_nonnull(sps_block_data(X, &ld));
        ck_assert_int_eq((int)ld, (int)spsi_block_ld(k));
        ck_assert_int_ge((int)ld, k);
        download(X, out);
        for (int p = 0; p < 37 * k; p++) ck_assert(out[p] == 0);
        sps_block_destroy(&X);
        ck_assert_ptr_null(X);
    }
    close_empty(&ctx);
}
END_TEST

/* Into columns first.. of X in one order, out in the other, with a leading
 * dimension beyond the least; what lies between is not touched. */
static void round_trip(sps_context *ctx, int64_t n, int k, int first, int part,
                       sps_order order)
{
    int64_t ld = (order == SPS_ROW_MAJOR ? part : n) + 3;
    int64_t count = (order == SPS_ROW_MAJOR ? n : part) * ld;
    double *in = calloc((size_t)count + 1, sizeof *in);
    double *back = calloc((size_t)count + 1, sizeof *back);
    double *all = calloc((size_t)(n * k) + 1, sizeof *all);
    sps_block *X = NULL;

    for (int64_t p = 0; p < count; p++) in[p] = back[p] = -1;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < part; j++)
            in[order == SPS_ROW_MAJOR ? i * ld + j : j * ld + i] = number(i, j);
    ck_assert_int_eq(sps_block_create(ctx, n, k, &X), SPS_OK);
    ck_assert_int_eq(sps_block_set(X, first, part, in, ld, order, SPS_HOST),
                     SPS_OK);
    ck_assert_int_eq(sps_block_get(X, first, part, back, ld, order, SPS_HOST),
                     SPS_OK);
    ck_assert_int_eq(memcmp(in, back, (size_t)count * sizeof *in), 0);
    download(X, all);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            bool inside = j >= first && j < first + part;

            ck_assert(all[i * k + j] == (inside ? number(i, j - first) : 0));
        }
    sps_block_destroy(&X);
    free(in);
    free(back);
    free(all);
}

START_TEST(set_and_get_are_exact_in_both_orders_and_any_columns)
{
    static const int64_t rows[] = {0, 1, 31, 257};
    sps_context *ctx = open_with(0);

    for (int r = 0; r < 4; r++)
        for (int w = 0; w < WIDTHS; w++)
            for (int first = 0; first < widths[w]; first += 1 + first) {
                int part = (widths[w] - first + 1) / 2;

                round_trip(ctx, rows[r], widths[w], first, part,
                           SPS_ROW_MAJOR);
                round_trip(ctx, rows[r], widths[w], first, part,
                           SPS_COL_MAJOR);
                round_trip(ctx, rows[r], widths[w], first, widths[w] - first,
                           SPS_COL_MAJOR);
            }
    close_empty(&ctx);
}
END_TEST

START_TEST(a_wrapped_block_is_the_callers_memory)
{
    sps_context *ctx = open_with(0);
    double data[5 * 7], in[5 * 3];
    sps_block *X = NULL;
    int64_t ld;

    if (ctx->opt.place != SPS_HOST) {
        close_empty(&ctx);
        return; /* on a GPU the memory is a client's: examples show it */
    }
    for (int p = 0; p < 35; p++) data[p] = -2;
    for (int p = 0; p < 15; p++) in[p] = p;
    ck_assert_int_eq(sps_block_wrap(ctx, 5, 3, data, 7, &X), SPS_OK);
    ck_assert_ptr_eq(sps_block_data(X, &ld), data);
    ck_assert_int_eq((int)ld, 7);
    ck_assert_int_eq(sps_block_set(X, 0, 3, in, 3, SPS_ROW_MAJOR, SPS_HOST),
                     SPS_OK);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 7; j++)
            ck_assert(data[i * 7 + j] == (j < 3 ? in[i * 3 + j] : -2));
    sps_block_destroy(&X);
    ck_assert(data[0] == 0 && data[3] == -2);
    close_empty(&ctx);
}
END_TEST

/* The random numbers of n x k, as a row-major array that the caller frees. */
static double *draw(int threads, int64_t n, int k, uint64_t seed)
{
    sps_context *ctx = open_with(threads);
    double *out = malloc((size_t)(n * k) * sizeof *out);
    sps_block *X = NULL;

    ck_assert_int_eq(sps_block_create(ctx, n, k, &X), SPS_OK);
    ck_assert_int_eq(sps_block_random(X, seed), SPS_OK);
    download(X, out);
    sps_block_destroy(&X);
    close_empty(&ctx);
    return out;
}

START_TEST(random_numbers_depend_on_seed_row_and_column_alone)
{
    const int64_t n = 3001;
    double *whole = draw(1, n, 33, 7);

    for (int threads = 2; threads <= 5; threads++) {
        double *again = draw(threads, n, 33, 7);

        ck_assert_int_eq(memcmp(whole, again, (size_t)n * 33 * 8), 0);
        free(again);
    }
    for (int w = 0; w < 9; w++) { /* fewer columns, fewer rows: the same */
        int k = widths[w];
        double *part = draw(2, 1000, k, 7);

        for (int64_t i = 0; i < 1000; i++)
            ck_assert_int_eq(memcmp(part + i * k, whole + i * 33,
                                    (size_t)k * 8), 0);
        free(part);
    }
    free(whole);
}
END_TEST

START_TEST(random_numbers_lie_in_the_half_open_interval_and_differ_by_seed)
{
    const int64_t n = 10000;
    double *a = draw(2, n, 3, 1), *b = draw(2, n, 3, 2);
    double sum = 0, squares = 0;
    int equal = 0;

    for (int64_t p = 0; p < 3 * n; p++) {
        ck_assert(a[p] >= -0.5 && a[p] < 0.5);
        sum += a[p];
        squares += a[p] * a[p];
        equal += a[p] == b[p];
    }
    ck_assert_int_eq(equal, 0);
    ck_assert(fabs(sum / (double)(3 * n)) < 0.01);            /* 6 sigma */
    ck_assert(fabs(squares / (double)(3 * n) - 1.0 / 12) < 0.003);
    free(a);
    free(b);
}
END_TEST

START_TEST(padding_columns_are_never_written)
{
    sps_context *ctx = open_with(0);
    double data[40 * 8];
    sps_block *X = NULL;

    if (ctx->opt.place == SPS_HOST) {
        for (int p = 0; p < 320; p++) data[p] = -2;
        ck_assert_int_eq(sps_block_wrap(ctx, 40, 5, data, 8, &X), SPS_OK);
        ck_assert_int_eq(sps_block_random(X, 1), SPS_OK);
        ck_assert_int_eq(spsi_axpby(2.0, X, 3.0, X), SPS_OK);
        ck_assert_int_eq(spsi_fill(X, 9.0), SPS_OK);
        for (int p = 0; p < 320; p++) ck_assert(data[p] == (p % 8 < 5 ? 9 : -2));
        sps_block_destroy(&X);
    }
    close_empty(&ctx);
}
END_TEST

/* -------------------------------------------------------------------- norms */

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

/* --------------------------------------------- composed forms, empty blocks */

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

/* Small integers in every place, so that each sum is exact. */
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

/* P = Z + P b with r columns entering and k leaving, against plain loops. */
static void combine_case(sps_context *ctx, int64_t n, int r, int k)
{
    int width = r > k ? r : k;
    sps_block *P = integers(ctx, n, width, 1), *Z = integers(ctx, n, k, 2);
    sps_small *b = NULL, *G = NULL;
    double *p = malloc((size_t)(n * width) * 8), *z = malloc((size_t)(n * k) * 8);
    double *want = malloc((size_t)(n * k) * 8);
    sps_block *W;

    ck_assert_int_eq(spsi_small_create(ctx, width, width, &b), SPS_OK);
    ck_assert_int_eq(spsi_small_create(ctx, width, width, &G), SPS_OK);
    spsi_small_shape(b, r, k);
    for (int i = 0; i < r; i++)
        for (int j = 0; j < k; j++) *spsi_small_at(b, i, j) = (i + 2 * j) % 5 - 2;
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
                                    {7, 16}, {17, 16}, {33, 33}, {0, 3}};
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

static sps_context *open_reducing(void *data)
{
    sps_context_options o;
    sps_context *ctx = NULL;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.reduce = twice;
    o.reduce_data = data;
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
    ck_assert_int_eq(spsi_update_pair_cols(X, Y, one, X, Y, many), SPS_OK);
    ck_assert_int_eq(calls, 4);
    spsi_small_destroy(&C);
    spsi_small_destroy(&c);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&x);
    sps_block_destroy(&y);
    close_empty(&ctx);
    close_empty(&alone);
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
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check_block");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_new_block_is_zero_and_of_its_shape);
    tcase_add_test(tc, set_and_get_are_exact_in_both_orders_and_any_columns);
    tcase_add_test(tc, a_wrapped_block_is_the_callers_memory);
    tcase_add_test(tc, random_numbers_depend_on_seed_row_and_column_alone);
    tcase_add_test(tc,
                   random_numbers_lie_in_the_half_open_interval_and_differ_by_seed);
    tcase_add_test(tc, padding_columns_are_never_written);
    tcase_add_test(tc, norms_survive_overflow_and_underflow);
    tcase_add_test(tc,
                   norms_of_infinities_and_nans_are_those_and_spare_the_others);
    tcase_add_test(tc, operations_on_empty_blocks_do_nothing_and_sums_are_zero);
    tcase_add_test(tc, combine_may_narrow_keep_or_widen_the_directions);
    tcase_add_test(tc, every_sum_passes_the_reduction);
    tcase_add_test(tc, a_failing_reduction_is_the_users_failure);
    suite_add_tcase(suite, tc);
    return runner_run(suite);
}
