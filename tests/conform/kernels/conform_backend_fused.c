/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_fused.c - fused operations equal the sequence of their parts,
 * every reduction has the same bits for any number of threads, and nothing is
 * allocated after reserve(). */
#include "tests/conform/kernels/conform_backend.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void try_gram_pair(sps_context *ctx, const shape *s, int kr)
{
    shape other = {.n = s->n, .k = kr, .ld = kr + s->offset,
                   .offset = s->offset};
    double *p, *q, *r, *c = zeros((int64_t)s->k * (kr > s->k ? kr : s->k));
    frame P = shape_frame(ctx, s, 8, ZOO_INTEGER, &p);
    frame Q = shape_frame(ctx, s, 9, ZOO_INTEGER, &q);
    frame R = shape_frame(ctx, &other, 10, ZOO_INTEGER, &r);
    sps_small *G = shape_small(ctx, s->k, s->k, 7, ZOO_RANDOM, NULL);
    sps_small *C = shape_small(ctx, s->k, kr, 7, ZOO_RANDOM, NULL);

    OK(ctx, spsi_gram_pair(P.X, Q.X, R.X, G, C));
    oracle_gram(s->n, p, s->k, s->k, q, s->k, s->k, c, s->k, NULL);
    small_equals(G, s->k, s->k, c, "gram_pair, P'Q");
    oracle_gram(s->n, p, s->k, s->k, r, kr, kr, c, s->k, NULL);
    small_equals(C, s->k, kr, c, "gram_pair, P'R");
    spsi_small_destroy(&G);
    spsi_small_destroy(&C);
    frame_free(&P);
    frame_free(&Q);
    frame_free(&R);
    free(p);
    free(q);
    free(r);
    free(c);
}

START_TEST(gram_pair_is_both_gram_matrices)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        try_gram_pair(ctx, &s, s.k);
        try_gram_pair(ctx, &s, s_ % 13 + 1);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* P and Q have r columns, X and R have s.k; gram: R'R is computed, too. */
static void try_subtract(sps_context *ctx, const shape *s, int r, bool gram)
{
    shape thin = {.n = s->n, .k = r, .ld = r + s->offset,
                  .offset = s->offset};
    double *p, *q, *x, *res, *a, *c = zeros((int64_t)s->k * s->k);
    frame P = shape_frame(ctx, &thin, 16, ZOO_INTEGER, &p);
    frame Q = shape_frame(ctx, &thin, 17, ZOO_INTEGER, &q);
    frame X = shape_frame(ctx, s, 18, ZOO_INTEGER, &x);
    frame R = shape_frame(ctx, s, 19, ZOO_INTEGER, &res);
    sps_small *C = shape_small(ctx, r, s->k, 20, ZOO_RANDOM, &a);
    sps_small *S = shape_small(ctx, gram ? s->k : 1, s->k, 7, ZOO_RANDOM, NULL);

    for (int j = 0; j < s->k; j++)     /* small |R|: squares are exact */
        for (int l = 0; l < r; l++)
            *spsi_small_at(C, l, j) = a[j * r + l] = (l + j) % 3 - 1;
    OK(ctx, spsi_mul_small(1, P.X, C, 1, X.X));
    OK(ctx, spsi_subtract(Q.X, C, R.X, S));
    oracle_mul_small(s->n, 1, p, r, r, a, r, s->k, 1, x, s->k, NULL);
    oracle_mul_small(s->n, -1, q, r, r, a, r, s->k, 1, res, s->k, NULL);
    shape_equals(&X, s->k, x, "mul_small, X");
    shape_equals(&R, s->k, res, "subtract, R");
    oracle_gram(s->n, res, s->k, s->k, res, s->k, s->k, c, s->k, NULL);
    for (int j = 0; !gram && j < s->k; j++) c[j] = c[j * s->k + j];
    small_equals(S, gram ? s->k : 1, s->k, c, "subtract, sums");
    spsi_small_destroy(&C);
    spsi_small_destroy(&S);
    frame_free(&P);
    frame_free(&Q);
    frame_free(&X);
    frame_free(&R);
    free(p);
    free(q);
    free(x);
    free(res);
    free(a);
    free(c);
}

START_TEST(a_product_is_added_and_another_taken_off_with_sums)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        try_subtract(ctx, &s, s.k, false);
        try_subtract(ctx, &s, s.k, true);
        try_subtract(ctx, &s, s_ % 15 + 1, s_ % 2);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(subtract_cols_uses_the_scalars_of_each_column)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        double a[128], norm[128], sum[128] = {0}, *q, *r;
        frame Q = shape_frame(ctx, &s, 22, ZOO_INTEGER, &q);
        frame R = shape_frame(ctx, &s, 24, ZOO_INTEGER, &r);

        for (int j = 0; j < s.k; j++) a[j] = j % 7 - 2;
        OK(ctx, spsi_subtract_cols(Q.X, a, R.X, norm));
        for (int64_t t = 0; t < s.n * s.k; t++) {
            r[t] -= a[t % s.k] * q[t];
            sum[t % s.k] += r[t] * r[t];
        }
        shape_equals(&R, s.k, r, "subtract_cols, R");
        for (int j = 0; j < s.k; j++) ck_assert(norm[j] == sum[j]);
        frame_free(&Q);
        frame_free(&R);
        free(q);
        free(r);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* P has room for s.k columns and r in use at entry; Z has kz. */
static void try_combine(sps_context *ctx, const shape *s, int r, int kz,
                        bool gram)
{
    shape thin = {.n = s->n, .k = kz, .ld = kz + s->offset,
                  .offset = s->offset};
    double *p, *z, *b, *g = zeros((int64_t)kz * kz);
    frame P = shape_frame(ctx, s, 25, ZOO_INTEGER, &p);
    frame Z = shape_frame(ctx, &thin, 26, ZOO_INTEGER, &z);
    sps_small *B = shape_small(ctx, r, kz, 27, ZOO_RANDOM, &b), *G = NULL;

    for (int j = 0; j < kz; j++)
        for (int l = 0; l < r; l++)
            *spsi_small_at(B, l, j) = b[j * r + l] = (l + 2 * j) % 3 - 1;
    if (gram) OK(ctx, spsi_small_create(ctx, s->k, s->k, &G));
    spsi_block_narrow(P.X, r);
    OK(ctx, spsi_combine(Z.X, B, P.X, G));
    ck_assert_int_eq(P.X->k, kz);
    oracle_mul_small(s->n, 1, p, s->k, r, b, r, kz, 1, z, kz, NULL);
    shape_equals(&P, kz, z, "combine");
    oracle_gram(s->n, z, kz, kz, z, kz, kz, g, kz, NULL);
    if (gram) small_equals(G, kz, kz, g, "combine, P'P");
    spsi_small_destroy(&B);
    spsi_small_destroy(&G);
    frame_free(&P);
    frame_free(&Z);
    free(p);
    free(z);
    free(b);
    free(g);
}

START_TEST(combine_narrows_and_widens_the_directions)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
    {
        try_combine(ctx, &s, s.k, s.k, true);
        try_combine(ctx, &s, s.k, s.k, false);
        try_combine(ctx, &s, (s.k + 1) / 2, s.k, true);
        try_combine(ctx, &s, s.k, (s.k + 2) / 3, true);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* --- many rows of wide blocks, so that the ring buffers of the staged
 * pipelines wrap around.  Products are checked by multiplying with a vector,
 * which costs n k and not n k^2.  |numbers| <= 1024 and n <= 2^17 keep
 * everything below 2^53. */

static const int wide_widths[] = {24, 17, 20, 48, 32, 33, 96, 64, 66, 128, 100,
                                  127, 49, 41, 63, 36, 52, 75, 88, 112, 119};
enum { WIDE = 128 };

/* The host has no ring buffers: a tenth of the rows takes all of its paths. */
static int64_t many(void) { return runner_place() == SPS_CUDA ? 70001 : 7001; }

/* s = X'(Y v). */
static void oracle_gram_times(const double *X, const double *Y, int k,
                              const double *v, double *s)
{
    for (int j = 0; j < k; j++) s[j] = 0;
    for (int64_t i = 0; i < many(); i++) {
        double y = 0;

        for (int j = 0; j < k; j++) y += Y[i * k + j] * v[j];
        for (int j = 0; j < k; j++) s[j] += X[i * k + j] * y;
    }
}

static void gram_is(const sps_small *G, const double *X, const double *Y, int k,
                    const char *what)
{
    double v[WIDE], s[WIDE];

    for (int j = 0; j < k; j++) v[j] = j % 7 - 3 + (j % 7 > 2);
    oracle_gram_times(X, Y, k, v, s);
    for (int i = 0; i < k; i++) {
        double sum = 0;

        for (int j = 0; j < k; j++) sum += *spsi_small_at(G, i, j) * v[j];
        ck_assert_msg(sum == s[i], "%s, k = %d, row %d: %.17g for %.17g", what,
                      k, i, sum, s[i]);
    }
}

static void norms_are(const sps_small *S, const double *X, int k,
                      const char *what)
{
    double sum[WIDE] = {0};

    for (int64_t i = 0; i < many(); i++)
        for (int j = 0; j < k; j++) sum[j] += X[i * k + j] * X[i * k + j];
    for (int j = 0; j < k; j++)
        ck_assert_msg(sum[j] == *spsi_small_at(S, 0, j),
                      "%s, k = %d, column %d: %.17g for %.17g", what, k, j,
                      *spsi_small_at(S, 0, j), sum[j]);
}

/* C has one +-1 in each column, in row 5 j mod k + j / 16 for column j: each
 * number of Y += sign X C is a sum of two integers. */
static int row_of(int j, int k) { return (5 * j + j / 16) % k; }

static void add_columns(double *Y, const double *X, int k, int sign)
{
    for (int64_t i = 0; i < many(); i++)
        for (int j = 0; j < k; j++)
            Y[i * k + j] += sign * (j % 2 ? -1 : 1) * X[i * k + row_of(j, k)];
}

static sps_block *upload(sps_context *ctx, int k, uint64_t seed, double **x_p)
{
    sps_block *X;

    *x_p = zoo_block(many(), k, k, seed, ZOO_INTEGER);
    OK(ctx, sps_block_create(ctx, many(), k, &X));
    OK(ctx, sps_block_set(X, 0, k, *x_p, k, SPS_ROW_MAJOR, SPS_HOST));
    return X;
}

static void block_is(sps_context *ctx, const sps_block *X, int k,
                     const double *x, const char *what)
{
    double *y = zeros(many() * k);

    OK(ctx, sps_block_get(X, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < many() * k; i++)
        ck_assert_msg(x[i] == y[i], "%s, k = %d: number %lld is %.17g for %.17g",
                      what, k, (long long)i, y[i], x[i]);
    free(y);
}

static void try_wide(sps_context *ctx, int k)
{
    sps_block *B[4];
    sps_small *G, *C, *M;
    double *b[4];

    for (int t = 0; t < 4; t++) B[t] = upload(ctx, k, (uint64_t)t + 1, &b[t]);
    OK(ctx, spsi_small_create(ctx, k, k, &G));
    OK(ctx, spsi_small_create(ctx, k, k, &C));
    OK(ctx, spsi_small_create(ctx, k, k, &M));
    spsi_small_shape(M, k, k);
    for (int j = 0; j < k * k; j++) M->v[j] = 0;
    for (int j = 0; j < k; j++)
        *spsi_small_at(M, row_of(j, k), j) = j % 2 ? -1 : 1;
    OK(ctx, spsi_gram(B[0], B[1], G));
    gram_is(G, b[0], b[1], k, "gram");
    OK(ctx, spsi_gram(B[0], B[0], G));
    gram_is(G, b[0], b[0], k, "gram of one");
    OK(ctx, spsi_gram_pair(B[0], B[1], B[2], G, C));
    gram_is(G, b[0], b[1], k, "gram_pair, first");
    gram_is(C, b[0], b[2], k, "gram_pair, second");
    OK(ctx, spsi_mul_small(1, B[0], M, 1, B[2]));
    OK(ctx, spsi_subtract(B[1], M, B[3], G));
    add_columns(b[2], b[0], k, 1);
    add_columns(b[3], b[1], k, -1);
    block_is(ctx, B[2], k, b[2], "mul_small, X");
    block_is(ctx, B[3], k, b[3], "subtract, R");
    gram_is(G, b[3], b[3], k, "subtract, R'R");
    spsi_small_shape(G, 1, k);
    OK(ctx, spsi_mul_small(1, B[0], M, 1, B[2]));
    OK(ctx, spsi_subtract(B[1], M, B[3], G));
    add_columns(b[2], b[0], k, 1);
    add_columns(b[3], b[1], k, -1);
    block_is(ctx, B[2], k, b[2], "mul_small again, X");
    block_is(ctx, B[3], k, b[3], "subtract with norms, R");
    norms_are(G, b[3], k, "subtract, norms");
    OK(ctx, spsi_combine(B[0], M, B[1], G));
    add_columns(b[0], b[1], k, 1);
    block_is(ctx, B[1], k, b[0], "combine");
    gram_is(G, b[0], b[0], k, "combine, P'P");
    memset(b[3], 0, (size_t)many() * (size_t)k * sizeof *b[3]);
    add_columns(b[3], b[2], k, 1);
    OK(ctx, spsi_mul_small(1.0, B[2], M, 0.0, B[3]));
    block_is(ctx, B[3], k, b[3], "mul_small");
    spsi_small_destroy(&G);
    spsi_small_destroy(&C);
    spsi_small_destroy(&M);
    for (int t = 0; t < 4; t++) {
        sps_block_destroy(&B[t]);
        free(b[t]);
    }
}

START_TEST(wide_blocks_of_many_rows_are_right)
{
    sps_context *ctx = runner_context();
    int count = sizeof wide_widths / sizeof *wide_widths;

    for (int w = 0; w < count; w += runner_quick() ? 3 : 1)
        try_wide(ctx, wide_widths[w]);
    sps_context_destroy(&ctx);
}
END_TEST

/* --- threads and memory */

/* All reductions on random blocks with this number of threads, into out. */
static int all_sums(int threads, int64_t n, int k, double *out)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    sps_block *P, *Q, *X, *R;
    sps_small *G, *C, *S;
    int at = 0;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = threads;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    OK(ctx, sps_block_create(ctx, n, k, &P));
    OK(ctx, sps_block_create(ctx, n, k, &Q));
    OK(ctx, sps_block_create(ctx, n, k, &X));
    OK(ctx, sps_block_create(ctx, n, k, &R));
    OK(ctx, spsi_small_create(ctx, k, k, &G));
    OK(ctx, spsi_small_create(ctx, k, k, &C));
    OK(ctx, spsi_small_create(ctx, 1, k, &S));
    OK(ctx, sps_block_random(P, 1));
    OK(ctx, sps_block_random(Q, 2));
    OK(ctx, sps_block_random(R, 3));
    OK(ctx, spsi_gram_pair(P, Q, R, G, C));
    memcpy(out + at, C->v, (size_t)(k * k) * sizeof *out);
    at += k * k;
    OK(ctx, spsi_mul_small(1, P, C, 1, X));
    OK(ctx, spsi_subtract(Q, C, R, S));
    memcpy(out + at, S->v, (size_t)k * sizeof *out);
    OK(ctx, spsi_axpby_cols(out, P, out, X));
    OK(ctx, spsi_subtract_cols(Q, out, R, out + at + k));
    OK(ctx, spsi_dots(X, R, out + at + 2 * k));
    at += 3 * k;
    OK(ctx, spsi_mul_small(1, P, C, 1, X));
    OK(ctx, spsi_subtract(Q, C, R, G));
    memcpy(out + at, G->v, (size_t)(k * k) * sizeof *out);
    at += k * k;
    OK(ctx, spsi_combine(X, C, P, G));
    memcpy(out + at, G->v, (size_t)(k * k) * sizeof *out);
    spsi_small_destroy(&G);
    spsi_small_destroy(&C);
    spsi_small_destroy(&S);
    sps_block_destroy(&P);
    sps_block_destroy(&Q);
    sps_block_destroy(&X);
    sps_block_destroy(&R);
    sps_context_destroy(&ctx);
    return at + k * k;
}

START_TEST(any_number_of_threads_gives_the_same_bits)
{
    static const int k[] = {1, 5, 16, 23, 70};

    for (int t = 0; t < 5; t++) {
        double *one = zeros(4 * 70 * 70), *more = zeros(4 * 70 * 70);
        int64_t n = k[t] > 20 ? 3000 : 20011;
        int count = all_sums(1, n, k[t], one);

        for (int threads = 2; threads < 5; threads++) {
            all_sums(threads, n, k[t], more);
            ck_assert_int_eq(oracle_differs(1, count, one, count, more, count),
                             -1);
        }
        free(one);
        free(more);
    }
}
END_TEST

static int allowed;

static void *rationed(size_t bytes, void *data)
{
    (void)data;
    return allowed ? malloc(bytes) : NULL;
}

static void give_back(void *p, size_t bytes, void *data)
{
    (void)bytes, (void)data;
    free(p);
}

START_TEST(nothing_allocates_host_memory_after_reserve)
{
    const sps_allocator hooks = {sizeof hooks, rationed, give_back, NULL};
    sps_context_options o;
    sps_context *ctx = NULL;
    sps_block *B[4];
    sps_small *G, *C, *S;
    double a[33] = {0}, norm[33];
    const int k = 33;

    allowed = 1;
    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 2;
    o.host = &hooks;
    ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
    for (int t = 0; t < 4; t++) {
        OK(ctx, sps_block_create(ctx, 9000, k, &B[t]));
        OK(ctx, sps_block_random(B[t], (uint64_t)t));
    }
    OK(ctx, spsi_small_create(ctx, k, k, &G));
    OK(ctx, spsi_small_create(ctx, k, k, &C));
    OK(ctx, spsi_small_create(ctx, 1, k, &S));
    OK(ctx, ctx->backend->reserve(ctx, 9000, k));
    allowed = 0;
    OK(ctx, spsi_gram_pair(B[0], B[1], B[2], G, C));
    OK(ctx, spsi_gram(B[0], B[1], G));
    OK(ctx, spsi_mul_small(1, B[0], C, 0, B[1]));
    OK(ctx, spsi_mul_small(1, B[0], C, 1, B[2]));
    OK(ctx, spsi_subtract(B[1], C, B[3], S));
    OK(ctx, spsi_mul_small(1, B[0], C, 1, B[2]));
    OK(ctx, spsi_subtract(B[1], C, B[3], G));
    OK(ctx, spsi_subtract_cols(B[1], a, B[3], norm));
    OK(ctx, spsi_combine(B[0], C, B[1], G));
    OK(ctx, spsi_norms(B[0], norm));
    allowed = 1;
    spsi_small_destroy(&G);
    spsi_small_destroy(&C);
    spsi_small_destroy(&S);
    for (int t = 0; t < 4; t++) sps_block_destroy(&B[t]);
    sps_context_destroy(&ctx);
}
END_TEST

/* Products of one width, again and again, in a context of this thread. */
typedef struct one_width {
    int k;
    sps_status st;
    char error[256];
} one_width;

/* The host has no limit that threads could disturb: ten products suffice. */
static sps_status multiply_often(sps_context *ctx, int k)
{
    const int times = runner_place() == SPS_CUDA ? 300 : 10;
    sps_block *X = NULL, *Y = NULL;
    sps_small *C = NULL, *G = NULL;
    sps_status st = sps_block_create(ctx, 3000, k, &X);

    if (!st) st = sps_block_create(ctx, 3000, k, &Y);
    if (!st) st = spsi_small_create(ctx, k, k, &G);
    if (!st) st = spsi_small_create(ctx, k, k, &C);
    for (int j = 0; !st && j < k * k; j++) C->v[j] = 0;
    if (!st) st = sps_block_random(X, 1);
    if (!st) st = sps_block_random(Y, 2);
    for (int i = 0; !st && i < times; i++) {
        st = spsi_gram(X, Y, G);
        if (!st) st = spsi_mul_small(1, X, C, 1, Y);
        if (!st) st = spsi_subtract(X, C, Y, G);
    }
    spsi_small_destroy(&C);
    spsi_small_destroy(&G);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    return st;
}

static void *in_a_thread(void *data)
{
    one_width *w = data;
    sps_context_options o;
    sps_context *ctx = NULL;

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = 1;
    w->st = sps_context_create(&o, &ctx, NULL);
    if (!w->st) w->st = multiply_often(ctx, w->k);
    snprintf(w->error, sizeof w->error, "%s", sps_context_error(ctx));
    sps_context_destroy(&ctx);
    return NULL;
}

/* The shared memory of a launch depends on the width; its limit is a property of
 * the kernel, which all threads of the process share. */
START_TEST(threads_with_blocks_of_different_widths_do_not_disturb_each_other)
{
    one_width w[] = { { .k = 24 }, { .k = 128 }, { .k = 48 }, { .k = 96 } };
    pthread_t thread[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, in_a_thread, &w[i]),
                         0);
    for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(!w[i].st, "%d columns: %s", w[i].k, w[i].error);
}
END_TEST

void conform_fused(TCase *t)
{
    tcase_add_test(t, gram_pair_is_both_gram_matrices);
    tcase_add_test(t, a_product_is_added_and_another_taken_off_with_sums);
    tcase_add_test(t, subtract_cols_uses_the_scalars_of_each_column);
    tcase_add_test(t, combine_narrows_and_widens_the_directions);
    tcase_add_test(t, wide_blocks_of_many_rows_are_right);
    tcase_add_test(t, any_number_of_threads_gives_the_same_bits);
    tcase_add_test(
        t, threads_with_blocks_of_different_widths_do_not_disturb_each_other);
    tcase_add_test(t, nothing_allocates_host_memory_after_reserve);
}
