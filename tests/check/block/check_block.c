/* SPDX-License-Identifier: BSD-3-Clause */
/* check_block.c - copies into and out of blocks, exactly. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/block_fixture.h"

static const int widths[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 100};
enum { WIDTHS = sizeof widths / sizeof *widths };

static double number(int64_t i, int j)
{
    return (double)(i * 1000 + j);
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

/* Rows consist of whole 32-byte sectors, and from 13 columns on no row touches
 * more 128-byte cache lines than necessary. */
START_TEST(rows_have_parts_in_few_lines)
{
    for (int k = 3; k <= SPS_BLOCK_MAX; k++) {
        const int64_t ld = spsi_block_ld(k), most = (k + 15) / 16;

        ck_assert(ld >= k && ld % 4 == 0);
        ck_assert(ld <= 16 * most);
        for (int i = 0; k > 12 && i < 16; i++)
            ck_assert_int_le((int)((i * ld + k - 1) / 16 - i * ld / 16),
                             (int)most - 1);
    }
}
END_TEST

/* Writes columns first .. of X in one order and reads them in the other, with a
 * leading dimension larger than necessary; the numbers in between are
 * unchanged. */
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
        runner_leave_out("on a GPU the memory is a client's: examples show it");
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

/* Rows first .. first+n-1 of random numbers, as a row-major n x k array that the
 * caller frees; first < 0: by the function for a whole block. */
static double *draw_from(int threads, int64_t first, int64_t n, int k,
                         uint64_t seed)
{
    sps_context *ctx = open_with(threads);
    double *out = malloc((size_t)(n * k) * sizeof *out);
    sps_block *X = NULL;

    ck_assert_int_eq(sps_block_create(ctx, n, k, &X), SPS_OK);
    ck_assert_int_eq(first < 0 ? sps_block_random(X, seed)
                     : sps_block_random_rows(X, seed, first), SPS_OK);
    download(X, out);
    sps_block_destroy(&X);
    close_empty(&ctx);
    return out;
}

static double *draw(int threads, int64_t n, int k, uint64_t seed)
{
    return draw_from(threads, -1, n, k, seed);
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
    for (int w = 0; w < 9; w++) { /* fewer columns or rows: the same numbers */
        int k = widths[w];
        double *part = draw(2, 1000, k, 7);

        for (int64_t i = 0; i < 1000; i++)
            ck_assert_int_eq(memcmp(part + i * k, whole + i * 33,
                                    (size_t)k * 8), 0);
        free(part);
    }
    for (int64_t first = 0; first < n; first += 1000) {     /* own rows */
        const int64_t rows = n - first < 1000 ? n - first : 1000;
        double *part = draw_from(2, first, rows, 33, 7);

        ck_assert_int_eq(memcmp(part, whole + first * 33,
                                (size_t)rows * 33 * 8), 0);
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
        for (int p = 0; p < 320; p++)
            ck_assert(data[p] == (p % 8 < 5 ? 9 : -2));
        sps_block_destroy(&X);
    }
    close_empty(&ctx);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("check_block");
    TCase *tc = tcase_create("all");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_new_block_is_zero_and_of_its_shape);
    tcase_add_test(tc, rows_have_parts_in_few_lines);
    tcase_add_test(tc, set_and_get_are_exact_in_both_orders_and_any_columns);
    tcase_add_test(tc, a_wrapped_block_is_the_callers_memory);
    tcase_add_test(tc, random_numbers_depend_on_seed_row_and_column_alone);
    tcase_add_test(
        tc, random_numbers_lie_in_the_half_open_interval_and_differ_by_seed);
    tcase_add_test(tc, padding_columns_are_never_written);
    suite_add_tcase(suite, tc);
    return runner_run(suite);
}
