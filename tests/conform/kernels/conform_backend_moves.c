/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_moves.c - backend operations that copy or scale: each result
 * is one rounding of known numbers, so all are compared bit for bit. */
#include "tests/conform/kernels/conform_backend.h"

#include <math.h>

#include "philox.h"

START_TEST(fill_writes_every_element_and_nothing_else)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        double *x;
        frame f = shape_frame(ctx, &s, 1, ZOO_RANDOM, &x);

        for (int64_t t = 0; t < s.n * s.k; t++) x[t] = 2.5;
        OK(ctx, spsi_fill(f.X, 2.5));
        shape_equals(&f, s.k, x, "fill");
        frame_free(&f);
        free(x);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(random_is_philox_of_seed_row_and_column)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        double *x;
        frame f = shape_frame(ctx, &s, 1, ZOO_RANDOM, &x);

        for (int64_t i = 0; i < s.n; i++)
            for (int j = 0; j < s.k; j++)
                x[i * s.k + j] = spsi_philox_at(0x123456789abcdef, i, j);
        OK(ctx, sps_block_random(f.X, 0x123456789abcdef));
        shape_equals(&f, s.k, x, "random");
        frame_free(&f);
        free(x);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(philox_gives_the_published_numbers)
{
    spsi_philox zero = {{0, 0, 0, 0}};
    spsi_philox pi = {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}};

    zero = spsi_philox_ten(zero, 0, 0);
    ck_assert_uint_eq(zero.w[0], 0x6627e8d5);
    ck_assert_uint_eq(zero.w[3], 0x9b00dbd8);
    pi = spsi_philox_ten(pi, 0xa4093822, 0x299f31d0);
    ck_assert_uint_eq(pi.w[0], 0xd16cfe09);
    ck_assert_uint_eq(pi.w[1], 0x94fdcceb);
    ck_assert_uint_eq(pi.w[2], 0x5001e420);
    ck_assert_uint_eq(pi.w[3], 0x24126ea1);
    ck_assert(spsi_philox_double(0, 0) == -0.5);
    ck_assert(spsi_philox_double(UINT32_MAX, UINT32_MAX) == 0.5 - 0x1p-53);
}
END_TEST

/* Writes columns first .. first+k-1 in one layout and reads them in another. */
static void round_trip(sps_context *ctx, const shape *s, int first, int k)
{
    double *x = zoo_block(s->n, s->k, s->k, 3, ZOO_RANDOM);
    double *cols = malloc((size_t)((s->n + 2) * k + 1) * sizeof *cols);
    double *rows = malloc((size_t)(s->n * (k + 1) + 1) * sizeof *rows);
    frame f = frame_make(ctx, s->n, s->k, s->ld, s->offset, x, s->k);

    for (int j = 0; j < k; j++)
        for (int64_t i = 0; i < s->n; i++)
            cols[j * (s->n + 2) + i] = x[i * s->k + first + j] = (double)i + j;
    OK(ctx, sps_block_set(f.X, first, k, cols, s->n + 2, SPS_COL_MAJOR,
                          SPS_HOST));
    shape_equals(&f, s->k, x, "set by columns");
    OK(ctx, sps_block_get(f.X, first, k, rows, k + 1, SPS_ROW_MAJOR,
                          SPS_HOST));
    ck_assert_int_eq(oracle_differs(s->n, k, rows, k + 1, x + first, s->k),
                     -1);
    for (int64_t i = 0; i < s->n; i++)
        for (int j = 0; j < k; j++)
            rows[i * (k + 1) + j] = x[i * s->k + first + j] = (double)i - j;
    OK(ctx, sps_block_set(f.X, first, k, rows, k + 1, SPS_ROW_MAJOR,
                          SPS_HOST));
    shape_equals(&f, s->k, x, "set by rows");
    OK(ctx, sps_block_get(f.X, first, k, cols, s->n + 2, SPS_COL_MAJOR,
                          SPS_HOST));
    for (int j = 0; j < k; j++)
        for (int64_t i = 0; i < s->n; i++)
            ck_assert(cols[j * (s->n + 2) + i] == (double)i - j);
    frame_free(&f);
    free(x);
    free(cols);
    free(rows);
}

START_TEST(set_and_get_agree_in_both_orders)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        round_trip(ctx, &s, 0, s.k);
        if (s.k > 2) round_trip(ctx, &s, 1, s.k - 2);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(gather_and_scatter_move_the_named_columns)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        int index[128], half = (s.k + 1) / 2;
        shape h = s;
        double *x, *y;
        frame f = shape_frame(ctx, &s, 5, ZOO_RANDOM, &x), g;

        h.k = half;
        g = shape_frame(ctx, &h, 6, ZOO_RANDOM, &y);
        for (int j = 0; j < half; j++) index[j] = s.k - 1 - 2 * j;
        OK(ctx, spsi_gather(f.X, index, g.X));
        for (int64_t i = 0; i < s.n; i++)
            for (int j = 0; j < half; j++)
                y[i * half + j] = x[i * s.k + index[j]];
        shape_equals(&g, half, y, "gather");
        for (int j = 0; j < half; j++) index[j] = 2 * j;
        OK(ctx, spsi_scatter(g.X, index, f.X));
        for (int64_t i = 0; i < s.n; i++)
            for (int j = 0; j < half; j++)
                x[i * s.k + index[j]] = y[i * half + j];
        shape_equals(&f, s.k, x, "scatter");
        frame_free(&f);
        frame_free(&g);
        free(x);
        free(y);
    }
    sps_context_destroy(&ctx);
}
END_TEST

static void try_axpby(sps_context *ctx, const shape *s, double a, double b)
{
    shape other = *s;
    double *x, *y;
    frame f = shape_frame(ctx, s, 7, ZOO_INTEGER, &x), g;

    other.ld += 2;
    g = shape_frame(ctx, &other, 8, ZOO_INTEGER, &y);
    if (b == 0) OK(ctx, spsi_fill(g.X, NAN));
    OK(ctx, spsi_axpby(a, f.X, b, g.X));
    for (int64_t t = 0; t < s->n * s->k; t++)
        y[t] = a * x[t] + (b == 0 ? 0 : b * y[t]);
    shape_equals(&g, s->k, y, "axpby");
    frame_free(&f);
    frame_free(&g);
    free(x);
    free(y);
}

START_TEST(axpby_is_exact_and_ignores_y_when_b_is_zero)
{
    static const double scalar[] = {0, 1, -1, 0.25};
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        for (int t = 0; t < 16; t++)
            if (s.n < 100 || t % 5 == 0)
                try_axpby(ctx, &s, scalar[t % 4], scalar[t / 4]);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(axpby_cols_uses_the_scalars_of_each_column)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        double a[128], b[128], *x, *y;
        frame f = shape_frame(ctx, &s, 9, ZOO_INTEGER, &x);
        frame g = shape_frame(ctx, &s, 10, ZOO_INTEGER, &y);

        for (int j = 0; j < s.k; j++) {
            a[j] = j - 3;
            b[j] = 0.5 * (j % 5);
        }
        OK(ctx, spsi_axpby_cols(a, f.X, b, g.X));
        for (int64_t t = 0; t < s.n * s.k; t++)
            y[t] = a[t % s.k] * x[t] + b[t % s.k] * y[t];
        shape_equals(&g, s.k, y, "axpby_cols");
        OK(ctx, spsi_fill(g.X, NAN));
        OK(ctx, spsi_axpby_cols(a, f.X, NULL, g.X));
        for (int64_t t = 0; t < s.n * s.k; t++) y[t] = a[t % s.k] * x[t];
        shape_equals(&g, s.k, y, "axpby_cols without b");
        frame_free(&f);
        frame_free(&g);
        free(x);
        free(y);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(scale_rows_works_in_place_and_apart)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        shape column = {.n = s.n, .k = 1, .ld = 1 + s.offset,
                        .offset = s.offset};
        double *d, *x, *y;
        frame e = shape_frame(ctx, &column, 11, ZOO_INTEGER, &d);
        frame f = shape_frame(ctx, &s, 12, ZOO_INTEGER, &x);
        frame g = shape_frame(ctx, &s, 13, ZOO_INTEGER, &y);

        for (int64_t t = 0; t < s.n * s.k; t++) y[t] = d[t / s.k] * x[t];
        OK(ctx, spsi_scale_rows(e.X, f.X, g.X));
        shape_equals(&g, s.k, y, "scale_rows");
        shape_equals(&f, s.k, x, "scale_rows leaves X");
        OK(ctx, spsi_scale_rows(e.X, f.X, f.X));
        shape_equals(&f, s.k, y, "scale_rows in place");
        frame_free(&e);
        frame_free(&f);
        frame_free(&g);
        free(d);
        free(x);
        free(y);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(narrowed_blocks_keep_their_dropped_columns)
{
    sps_context *ctx = runner_context();
    shape s = {.n = 1030, .k = 16, .ld = 16, .offset = 0};
    double *x;
    frame f = shape_frame(ctx, &s, 14, ZOO_RANDOM, &x);
    sps_block view;

    spsi_block_narrow(f.X, 5);
    OK(ctx, spsi_fill(f.X, 7));
    spsi_block_narrow(f.X, 16);
    spsi_block_view(f.X, 9, 3, &view);
    OK(ctx, spsi_fill(&view, -7));
    for (int64_t t = 0; t < s.n * s.k; t++) {
        if (t % 16 < 5) x[t] = 7;
        if (t % 16 >= 9 && t % 16 < 12) x[t] = -7;
    }
    shape_equals(&f, 16, x, "narrowed and viewed");
    frame_free(&f);
    free(x);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(memory_is_aligned_and_copied_whole)
{
    sps_context *ctx = runner_context();
    const sps_backend *b = ctx->backend;

    /* The largest is uploaded in several parts, by several threads. */
    for (int64_t bytes = 1; bytes < (30 << 20); bytes = 3 * bytes + 1) {
        char *from = malloc((size_t)bytes), *to = malloc((size_t)bytes);
        void *p, *q;

        for (int64_t t = 0; t < bytes; t++) from[t] = (char)(t * 2654435761 >> 13);
        OK(ctx, b->alloc(ctx, (size_t)bytes, &p));
        OK(ctx, b->alloc(ctx, (size_t)bytes, &q));
        ck_assert_uint_eq((uintptr_t)p % 256, 0);
        OK(ctx, b->upload(ctx, p, from, (size_t)bytes));
        OK(ctx, b->copy(ctx, q, p, (size_t)bytes));
        OK(ctx, b->download(ctx, to, q, (size_t)bytes));
        ck_assert_int_eq(memcmp(from, to, (size_t)bytes), 0);
        b->release(ctx, p, (size_t)bytes);
        b->release(ctx, q, (size_t)bytes);
        free(from);
        free(to);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(memory_of_the_place_is_told)
{
    sps_context *ctx = runner_context();
    size_t free_bytes = 0, total = 0;

    OK(ctx, ctx->backend->memory(ctx, &free_bytes, &total));
    ck_assert(0 < free_bytes && free_bytes <= total);
    sps_context_destroy(&ctx);
}
END_TEST

void conform_moves(TCase *t)
{
    tcase_add_test(t, fill_writes_every_element_and_nothing_else);
    tcase_add_test(t, random_is_philox_of_seed_row_and_column);
    tcase_add_test(t, philox_gives_the_published_numbers);
    tcase_add_test(t, set_and_get_agree_in_both_orders);
    tcase_add_test(t, gather_and_scatter_move_the_named_columns);
    tcase_add_test(t, axpby_is_exact_and_ignores_y_when_b_is_zero);
    tcase_add_test(t, axpby_cols_uses_the_scalars_of_each_column);
    tcase_add_test(t, scale_rows_works_in_place_and_apart);
    tcase_add_test(t, narrowed_blocks_keep_their_dropped_columns);
    tcase_add_test(t, memory_is_aligned_and_copied_whole);
    tcase_add_test(t, memory_of_the_place_is_told);
}
