/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_sums.c - reductions and products with small matrices: exact
 * on integers, bounded on random numbers. */
#include "tests/conform/kernels/conform_backend.h"

#include <math.h>

/* --- columns */

START_TEST(dots_are_exact_on_integers)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        double out[128], *x, *y;
        frame f = shape_frame(ctx, &s, 1, ZOO_INTEGER, &x);
        frame g = shape_frame(ctx, &s, 2, ZOO_INTEGER, &y);

        OK(ctx, spsi_dots(f.X, g.X, out));
        for (int j = 0; j < s.k; j++) {
            double sum = 0;

            for (int64_t i = 0; i < s.n; i++)
                sum += x[i * s.k + j] * y[i * s.k + j];
            ck_assert_msg(out[j] == sum, "n %ld k %d column %d: %g, not %g",
                          (long)s.n, s.k, j, out[j], sum);
        }
        frame_free(&f);
        frame_free(&g);
        free(x);
        free(y);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(maxabs_finds_the_largest_and_nan)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        double out[128], *x = zoo_block(s.n, s.k, s.k, 3, ZOO_RANDOM);
        int bad = s.k / 2;
        frame f;

        x[(s.n - 1) * s.k] = -3e300;
        if (s.k > 1) x[s.n / 2 * s.k + bad] = NAN;
        if (s.k > 2) x[s.n / 3 * s.k + s.k - 1] = -INFINITY;
        f = frame_make(ctx, s.n, s.k, s.ld, s.offset, x, s.k);
        OK(ctx, ctx->backend->maxabs(f.X, out));
        for (int j = 0; j < s.k; j++) {
            double top = 0;

            for (int64_t i = 0; i < s.n; i++) {
                double a = fabs(x[i * s.k + j]);

                if (a > top || isnan(a)) top = a;
                if (isnan(a)) break;
            }
            ck_assert_msg(out[j] == top || (isnan(out[j]) && isnan(top)),
                          "n %ld k %d column %d: %g, not %g", (long)s.n, s.k,
                          j, out[j], top);
        }
        frame_free(&f);
        free(x);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(norms_survive_large_and_small_scales)
{
    sps_context *ctx = runner_context();
    shape s = {.n = 1500, .k = 7, .ld = 8, .offset = 0};
    static const double scale[] = {1, 1e300, 1e-300, 1e-160, 1e160, 0, 5e-324};
    double out[7], want[7], *x = zoo_block(s.n, s.k, s.k, 4, ZOO_RANDOM);
    frame f;

    for (int64_t t = 0; t < s.n * s.k; t++)
        x[t] = t % s.k == 6 ? 5e-324 : x[t] * scale[t % s.k];
    for (int j = 0; j < 7; j++) {
        long double sum = 0;

        for (int64_t i = 0; i < s.n; i++) {
            long double v = x[i * s.k + j];

            sum += v * v;
        }
        want[j] = (double)sqrtl(sum);
    }
    f = frame_make(ctx, s.n, s.k, s.ld, s.offset, x, s.k);
    OK(ctx, spsi_norms(f.X, out));
    for (int j = 0; j < 7; j++)
        ck_assert_msg(fabs(out[j] - want[j]) <= 1e-12 * want[j] + 5e-324,
                      "scale %g: %g, not %g", scale[j], out[j], want[j]);
    frame_free(&f);
    free(x);
    sps_context_destroy(&ctx);
}
END_TEST

/* --- Gram matrices */

/* X'Y of X with s.k columns and Y with ky. */
static void try_gram(sps_context *ctx, const shape *s, int ky,
                     zoo_values values)
{
    shape other = {.n = s->n, .k = ky, .ld = ky + s->offset,
                   .offset = s->offset};
    double *x, *y, *c = zeros((int64_t)s->k * ky);
    double *bound = zeros((int64_t)s->k * ky);
    frame f = shape_frame(ctx, s, 5, values, &x);
    frame g = shape_frame(ctx, &other, 6, values, &y);
    sps_small *C = shape_small(ctx, s->k, ky, 7, ZOO_RANDOM, NULL);

    oracle_gram(s->n, x, s->k, s->k, y, ky, ky, c, s->k, bound);
    OK(ctx, spsi_gram(f.X, g.X, C));
    if (values == ZOO_INTEGER) small_equals(C, s->k, ky, c, "gram");
    else small_near(C, s->k, ky, c, bound, s->n, "gram");
    spsi_small_destroy(&C);
    frame_free(&f);
    frame_free(&g);
    free(x);
    free(y);
    free(c);
    free(bound);
}

START_TEST(gram_is_exact_on_integers)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        try_gram(ctx, &s, s.k, ZOO_INTEGER);
        try_gram(ctx, &s, s_ % 11 + 1, ZOO_INTEGER);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(gram_keeps_its_bound_on_random_numbers)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s) try_gram(ctx, &s, s.k, ZOO_RANDOM);
    sps_context_destroy(&ctx);
}
END_TEST

/* --- products with small matrices */

static void try_mul(sps_context *ctx, const shape *s, int ky, double a,
                    double b, zoo_values values)
{
    shape other = {.n = s->n, .k = ky, .ld = ky + s->offset,
                   .offset = s->offset};
    double *x, *y, *c, *z = zeros(s->n * ky), *bound = zeros(s->n * ky);
    frame f = shape_frame(ctx, s, 11, values, &x);
    frame g = shape_frame(ctx, &other, 12, values, &y);
    sps_small *C = shape_small(ctx, s->k, ky, 13, values, &c);
    double ratio;

    if (b == 0) OK(ctx, spsi_fill(g.X, NAN));
    OK(ctx, spsi_mul_small(a, f.X, C, b, g.X));
    oracle_mul_small(s->n, a, x, s->k, s->k, c, s->k, ky, b, y, ky, bound);
    if (values == ZOO_INTEGER) {
        shape_equals(&g, ky, y, "mul_small");
    } else {
        frame_read(&g, ky, z);
        ratio = oracle_ratio(s->n, ky, z, ky, y, ky, bound, s->k);
        ck_assert_msg(ratio <= 1, "mul_small n %ld %d x %d: %g times the bound",
                      (long)s->n, s->k, ky, ratio);
    }
    shape_equals(&f, s->k, x, "mul_small leaves X");
    spsi_small_destroy(&C);
    frame_free(&f);
    frame_free(&g);
    free(x);
    free(y);
    free(c);
    free(z);
    free(bound);
}

START_TEST(mul_small_is_exact_on_integers)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        try_mul(ctx, &s, s.k, 1, 0, ZOO_INTEGER);
        try_mul(ctx, &s, s.k, -1, 1, ZOO_INTEGER);
        try_mul(ctx, &s, s_ % 17 + 1, 2, -3, ZOO_INTEGER);
        try_mul(ctx, &s, s_ % 19 + 1, 1, 0, ZOO_INTEGER);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(mul_small_keeps_its_bound_on_random_numbers)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s) try_mul(ctx, &s, s.k, 0.37, -1.7, ZOO_RANDOM);
    sps_context_destroy(&ctx);
}
END_TEST

/* Y shares memory with X, as X itself or X with another number of columns: ky
 * <= s.k or C is square. */
static void try_in_place(sps_context *ctx, const shape *s, int ky)
{
    double *x, *y = zeros(s->n * ky), *c;
    frame f = shape_frame(ctx, s, 14, ZOO_INTEGER, &x);
    sps_small *C = shape_small(ctx, s->k, ky, 15, ZOO_INTEGER, &c);
    sps_block narrow = *f.X;

    spsi_block_narrow(&narrow, ky);
    OK(ctx, spsi_mul_small(1, f.X, C, 0, &narrow));
    oracle_mul_small(s->n, 1, x, s->k, s->k, c, s->k, ky, 0, y, ky, NULL);
    shape_equals(&f, ky, y, "mul_small in place");
    spsi_small_destroy(&C);
    frame_free(&f);
    free(x);
    free(y);
    free(c);
}

/* Y is a view of the last ky columns of X. */
static void try_in_last(sps_context *ctx, const shape *s, int ky)
{
    double *x, *y = zeros(s->n * s->k), *c;
    frame f = shape_frame(ctx, s, 14, ZOO_INTEGER, &x);
    sps_small *C = shape_small(ctx, s->k, ky, 15, ZOO_INTEGER, &c);
    sps_block last;

    spsi_block_view(f.X, s->k - ky, ky, &last);
    OK(ctx, spsi_mul_small(1, f.X, C, 0, &last));
    memcpy(y, x, (size_t)(s->n * s->k) * sizeof *y);
    oracle_mul_small(s->n, 1, x, s->k, s->k, c, s->k, ky, 0, y + s->k - ky,
                     s->k, NULL);
    shape_equals(&f, s->k, y, "mul_small into the last columns");
    spsi_small_destroy(&C);
    frame_free(&f);
    free(x);
    free(y);
    free(c);
}

START_TEST(mul_small_works_in_place)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        try_in_place(ctx, &s, s.k);
        if (s.k > 1) try_in_place(ctx, &s, s.k / 2);
        if (s.k > 4) try_in_place(ctx, &s, s.k - 3);
        if (s.k > 1 && s.k <= 128) try_in_last(ctx, &s, s.k / 2);
        if (s.k > 4 && s.k <= 128) try_in_last(ctx, &s, s.k / 3);
    }
    sps_context_destroy(&ctx);
}
END_TEST

void conform_sums(TCase *t)
{
    tcase_add_test(t, dots_are_exact_on_integers);
    tcase_add_test(t, maxabs_finds_the_largest_and_nan);
    tcase_add_test(t, norms_survive_large_and_small_scales);
    tcase_add_test(t, gram_is_exact_on_integers);
    tcase_add_test(t, gram_keeps_its_bound_on_random_numbers);
    tcase_add_test(t, mul_small_is_exact_on_integers);
    tcase_add_test(t, mul_small_keeps_its_bound_on_random_numbers);
    tcase_add_test(t, mul_small_works_in_place);
}
