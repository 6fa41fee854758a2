/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_basis.c - stacks of blocks (Krylov bases): inner products and
 * updates with many blocks at once equal those of single blocks, exactly on
 * integers, with the same bits for any number of threads, and without
 * allocating memory. */
#include "tests/conform/kernels/conform_backend.h"
#include "block/basis.h"

enum { MOST = 21 };

static const int counts[] = {1, 2, 3, 4, 5, 8, 9, 17, MOST};

/* A stack whose block l holds the numbers of zoo_block with seed l; v gets a
 * copy, n x k per block (ld k), one block after the other. */
static sps_basis *make_basis_of(sps_context *ctx, sps_dtype dtype, int64_t n,
                                int k, int count, zoo_values values, double *v)
{
    sps_basis *V = NULL;
    sps_block b, *D = NULL;

    OK(ctx, spsi_basis_create(ctx, n, k, count, dtype, &V));
    OK(ctx, sps_block_create(ctx, n, k, &D));
    for (int l = 0; l < count; l++) {
        double *x = zoo_block(n, k, k, (uint64_t)(31 + l), values);

        for (int64_t t = 0; dtype == SPS_F32 && t < n * k; t++)
            x[t] = (float)x[t];
        spsi_basis_block(V, l, &b);
        OK(ctx, sps_block_set(D, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
        OK(ctx, spsi_copy(D, &b));
        memcpy(v + l * n * k, x, (size_t)(n * k) * sizeof *v);
        free(x);
    }
    sps_block_destroy(&D);
    return V;
}

static sps_basis *make_basis(sps_context *ctx, int64_t n, int k, int count,
                             zoo_values values, double *v)
{
    return make_basis_of(ctx, SPS_F64, n, k, count, values, v);
}

static void try_dots(const sps_basis *V, int count, const double *v, frame *W,
                     const double *w)
{
    sps_context *ctx = W->ctx;
    int64_t n = V->n;
    int k = W->X->k, width = V->all->width;
    sps_small *H = shape_small(ctx, count, k, 7, ZOO_RANDOM, NULL);
    double *h = zeros((int64_t)count * k);

    OK(ctx, spsi_basis_dots(V, count, W->X, H));
    for (int l = 0; l < count; l++)
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < k; c++)
                h[c * count + l] +=
                    v[(l * n + i) * width + c] * w[i * width + c];
    small_equals(H, count, k, h, "basis_dots");
    spsi_small_destroy(&H);
    free(h);
}

/* w (ld k) gets the expected W. */
static void try_update(const sps_basis *V, int count, const double *v,
                       bool add, frame *W, double *w)
{
    sps_context *ctx = W->ctx;
    int64_t n = V->n;
    int k = W->X->k;
    sps_small *H = shape_small(ctx, count + 1, k, 7, ZOO_RANDOM, NULL);
    double norm[128], sum[128] = {0};

    for (int c = 0; c < k; c++)
        for (int l = 0; l <= count; l++)
            *spsi_small_at(H, l, c) = (l + 2 * c) % 5 - 2;
    OK(ctx, spsi_basis_update(-2, V, count, H, add, W->X, norm));
    for (int64_t t = 0; t < n * k; t++) {
        double value = add ? w[t] : 0;

        for (int l = 0; l < count; l++)
            value -= 2 * v[l * n * k + t] *
                     (double)((l + 2 * (t % k)) % 5 - 2);
        w[t] = value;
        sum[t % k] += value * value;
    }
    shape_equals(W, k, w, "basis_update");
    for (int c = 0; c < k; c++)
        ck_assert_msg(norm[c] == sum[c], "basis_update, n %ld k %d count %d, "
                      "norm %d: %.17g, not %.17g", (long)n, k, count, c,
                      norm[c], sum[c]);
    spsi_small_destroy(&H);
}

static void try_stack(sps_context *ctx, const shape *s, sps_dtype dtype,
                      int count)
{
    double *v = zeros(count * s->n * s->k), *w;
    sps_basis *V = make_basis_of(ctx, dtype, s->n, s->k, count, ZOO_INTEGER,
                                 v);
    frame W = shape_frame(ctx, s, 5, ZOO_INTEGER, &w);

    try_dots(V, count, v, &W, w);
    try_dots(V, (count + 1) / 2, v, &W, w);
    try_update(V, count, v, true, &W, w);
    try_update(V, (count + 1) / 2, v, false, &W, w);
    spsi_basis_destroy(&V);
    frame_free(&W);
    free(v);
    free(w);
}

START_TEST(sums_and_updates_of_a_stack_are_exact_on_integers)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        int count = counts[s_ % (int)(sizeof counts / sizeof *counts)];

        try_stack(ctx, &s, SPS_F64, count);
        try_stack(ctx, &s, SPS_F32, count);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Old numbers of W, NaN too, must not matter when nothing is added to them. */
START_TEST(an_update_that_does_not_add_reads_nothing)
{
    sps_context *ctx = runner_context();
    double v[3 * 40 * 5], w[40 * 5] = {0};
    sps_basis *V = make_basis(ctx, 40, 5, 3, ZOO_INTEGER, v);
    frame W = frame_make(ctx, 40, 5, 8, 0, NULL, 0);

    try_update(V, 3, v, false, &W, w);
    spsi_basis_destroy(&V);
    frame_free(&W);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(narrowed_stacks_keep_their_dropped_columns)
{
    sps_context *ctx = runner_context();
    double v[3 * 50 * 6], w[50 * 6], back[50 * 6];
    sps_basis *V = make_basis(ctx, 50, 6, 3, ZOO_INTEGER, v);
    frame W = frame_make(ctx, 50, 6, 8, 0, v, 6);
    sps_block b;

    memcpy(w, v, sizeof w);
    spsi_basis_narrow(V, 4);
    W.X->k = 4;
    try_dots(V, 3, v, &W, w);
    spsi_basis_narrow(V, 6);
    spsi_basis_block(V, 2, &b);
    OK(ctx, sps_block_get(&b, 0, 6, back, 6, SPS_ROW_MAJOR, SPS_HOST));
    ck_assert(!memcmp(back, v + 2 * 300, sizeof back));
    spsi_basis_destroy(&V);
    frame_free(&W);
    sps_context_destroy(&ctx);
}
END_TEST

/* Reductions over a stack with this number of threads, into out. */
static void all_sums(int threads, int64_t n, int k, double *out)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    double *v = zeros(MOST * n * k), *x = zoo_block(n, k, k, 9, ZOO_RANDOM);
    sps_small *H;
    sps_basis *V;
    sps_block *W = NULL;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = threads;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    V = make_basis(ctx, n, k, MOST, ZOO_RANDOM, v);
    H = shape_small(ctx, MOST, k, 7, ZOO_RANDOM, NULL);
    OK(ctx, sps_block_create(ctx, n, k, &W));
    OK(ctx, sps_block_set(W, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
    OK(ctx, spsi_basis_dots(V, MOST, W, H));
    for (int c = 0; c < k; c++)
        memcpy(out + c * MOST, spsi_small_at(H, 0, c), MOST * sizeof *out);
    OK(ctx, spsi_basis_update(-1e-4, V, MOST, H, true, W, out + MOST * k));
    spsi_basis_destroy(&V);
    spsi_small_destroy(&H);
    sps_block_destroy(&W);
    sps_context_destroy(&ctx);
    free(v);
    free(x);
}

START_TEST(a_stack_has_the_same_sums_at_any_number_of_threads)
{
    static const int k[] = {1, 5, 16};
    double one[(MOST + 1) * 16], more[(MOST + 1) * 16];

    for (int t = 0; t < 3; t++) {
        all_sums(1, 20011, k[t], one);
        for (int threads = 2; threads < 5; threads++) {
            all_sums(threads, 20011, k[t], more);
            ck_assert(!memcmp(one, more, sizeof *one * (size_t)(MOST + 1) *
                                             (size_t)k[t]));
        }
    }
}
END_TEST

void conform_basis(TCase *t)
{
    tcase_add_test(t, sums_and_updates_of_a_stack_are_exact_on_integers);
    tcase_add_test(t, an_update_that_does_not_add_reads_nothing);
    tcase_add_test(t, narrowed_stacks_keep_their_dropped_columns);
    tcase_add_test(t, a_stack_has_the_same_sums_at_any_number_of_threads);
}
