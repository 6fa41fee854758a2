/* SPDX-License-Identifier: BSD-3-Clause */
/* check_single.c - blocks of floats: sums, Gram and small products exact on
 * integers at every width, the passes of a step in both types; and how many
 * steps are queued. */
#include <math.h>

#include "fixture.h"
#include "lib/backend.h"
#include "lib/operator.h"
#include "lib/single.h"
#include "lib/steps.h"
#include "problem.h"
#include "runner.h"
#include "zoo.h"

static const int64_t lengths[] = { 1, 7, 64, 65, 1000, 5003 };
static const int widths[] = { 1, 2, 3, 5, 8, 15, 16, 17, 30, 32 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };
enum { WIDTHS = sizeof widths / sizeof *widths };

/* Small integers, as a block of dtype, and no number beside an odd last
 * column; x (ld k) has them as well. */
static sps_block *integers(sps_context *ctx, sps_dtype dtype, int64_t n, int k,
                           uint64_t seed, double **x_p)
{
    double *x = zoo_block(n, k, k, seed, ZOO_SMALL);
    sps_block *X = NULL, *D = fixture_block(ctx, n, k, x, k);
    sps_block *none = fixture_block(ctx, n, k + k % 2, NULL, 0);

    OK(ctx, spsi_reserve(ctx, n, 32));
    OK(ctx, spsi_block_create(ctx, n, k + k % 2, dtype, &X));
    OK(ctx, spsi_fill(none, NAN));
    OK(ctx, spsi_copy(none, X));
    X->k = k;
    if (k > 1) X->width = k;
    OK(ctx, spsi_copy(D, X));
    sps_block_destroy(&none);
    sps_block_destroy(&D);
    *x_p = x;
    return X;
}

static void equals(const sps_block *X, const double *x, const char *what)
{
    double *y = malloc((size_t)(X->n * X->k) * sizeof *y);
    sps_block *D = fixture_block(X->ctx, X->n, X->k, NULL, 0);

    OK(X->ctx, spsi_copy(X, D));
    OK(X->ctx, sps_block_get(D, 0, X->k, y, X->k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t t = 0; t < X->n * X->k; t++)
        ck_assert_msg(y[t] == x[t], "%s: n %ld, k %d, row %ld column %d: %g, "
                      "not %g", what, (long)X->n, X->k, (long)(t / X->k),
                      (int)(t % X->k), y[t], x[t]);
    sps_block_destroy(&D);
    free(y);
}

static void try_sums(sps_context *ctx, int64_t n, int k, sps_dtype one,
                     sps_dtype other)
{
    double *x, *y;
    sps_block *X = integers(ctx, one, n, k, 3, &x);
    sps_block *Y = integers(ctx, other, n, k, 4, &y);

    OK(ctx, spsi_axpby(2.0, X, -3.0, Y));
    for (int64_t t = 0; t < n * k; t++) y[t] = 2 * x[t] - 3 * y[t];
    equals(Y, y, "axpby");
    OK(ctx, spsi_copy(X, Y));
    equals(Y, x, "copy");
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    free(y);
}

START_TEST(sums_of_floats_and_doubles_are_exact)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 0; w < WIDTHS; w++) {
            try_sums(ctx, lengths[t], widths[w], SPS_F32, SPS_F64);
            try_sums(ctx, lengths[t], widths[w], SPS_F64, SPS_F32);
            try_sums(ctx, lengths[t], widths[w], SPS_F32, SPS_F32);
        }
    fixture_close(&ctx);
}
END_TEST

/* C = X'Y exactly. */
static void is_gram(const sps_small *C, int64_t n, const double *x, int kx,
                    const double *y, int ky, const char *what)
{
    for (int a = 0; a < kx; a++)
        for (int b = 0; b < ky; b++) {
            double sum = 0;

            for (int64_t i = 0; i < n; i++) sum += x[i * kx + a] *
                                                   y[i * ky + b];
            ck_assert_msg(*spsi_small_at(C, a, b) == sum, "%s: n %ld, %d x %d "
                          "at (%d, %d): %g, not %g", what, (long)n, kx, ky, a,
                          b, *spsi_small_at(C, a, b), sum);
        }
}

/* y = alpha x c + beta y, c column by column. */
static void times_small(int64_t n, double alpha, const double *x, int kx,
                        const sps_small *C, double beta, double *y, int ky)
{
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < ky; j++) {
            double sum = 0;

            for (int l = 0; l < kx; l++)
                sum += x[i * kx + l] * *spsi_small_at(C, l, j);
            y[i * ky + j] = alpha * sum + (beta != 0 ? beta * y[i * ky + j]
                                                     : 0);
        }
}

static void fill_small(sps_small *C, int rows, int cols, int seed)
{
    spsi_small_shape(C, rows, cols);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            *spsi_small_at(C, i, j) = (i * 3 + j * 5 + seed) % 5 - 2;
}

static void try_products(sps_context *ctx, int64_t n, int kx, int ky)
{
    double *x, *y;
    sps_block *X = integers(ctx, SPS_F32, n, kx, 5, &x), half;
    sps_block *Y = integers(ctx, SPS_F32, n, ky, 6, &y);
    sps_small *C = NULL;

    OK(ctx, spsi_small_create(ctx, 32, 32, &C));
    OK(ctx, spsi_gram(X, Y, C));
    is_gram(C, n, x, kx, y, ky, "gram");
    fill_small(C, kx, ky, 1);
    OK(ctx, spsi_mul_small(2.0, X, C, 1.0, Y));
    times_small(n, 2, x, kx, C, 1, y, ky);
    equals(Y, y, "mul_small");
    if (ky <= kx) {
        spsi_block_view(X, 0, ky, &half);
        OK(ctx, spsi_mul_small(1.0, X, C, 0.0, &half));
        times_small(n, 1, x, kx, C, 0, y, ky);
        equals(&half, y, "mul_small in place");
    }
    spsi_small_destroy(&C);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    free(y);
}

START_TEST(gram_and_small_products_of_floats_are_exact)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 0; w < WIDTHS; w++) {
            try_products(ctx, lengths[t], widths[w], widths[w]);
            try_products(ctx, lengths[t], widths[w], widths[WIDTHS - 1 - w]);
        }
    fixture_close(&ctx);
}
END_TEST

/* X of floats and any width, Y of doubles. */
static void try_wide(sps_context *ctx, int64_t n, int kx, int ky)
{
    double *x, *y;
    sps_block *X = integers(ctx, SPS_F32, n, kx, 5, &x);
    sps_block *Y = integers(ctx, SPS_F64, n, ky, 6, &y);
    sps_small *C = NULL;

    OK(ctx, spsi_small_create(ctx, kx, ky, &C));
    OK(ctx, spsi_gram(X, Y, C));
    is_gram(C, n, x, kx, y, ky, "wide gram");
    fill_small(C, kx, ky, 1);
    OK(ctx, spsi_mul_small(-1.0, X, C, 1.0, Y));
    times_small(n, -1, x, kx, C, 1, y, ky);
    equals(Y, y, "wide mul_small");
    OK(ctx, spsi_mul_small(2.0, X, C, 0.0, Y));
    times_small(n, 2, x, kx, C, 0, y, ky);
    equals(Y, y, "wide mul_small without Y");
    spsi_small_destroy(&C);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    free(y);
}

START_TEST(products_of_a_wide_block_of_floats_and_doubles_are_exact)
{
    static const int wide[] = { 1, 16, 33, 64, 65, 130, 529, 1024 };
    static const int narrow[] = { 2, 7, 16, 17, 32 };
    sps_context *ctx = runner_context();

    for (int w = 0; w < 8; w++)
        for (int k = 0; k < 5; k++)
            for (int t = 0; t < LENGTHS - (w > 5); t++)
                try_wide(ctx, lengths[t], wide[w], narrow[k]);
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------------- passes */

/* C, times sign, to the first of the parts at `to`, each of so many numbers;
 * zeros elsewhere. */
static void send(sps_steps *w, double *to, double sign, const sps_small *C,
                 int parts, int each)
{
    double *all = calloc((size_t)(parts * each), sizeof *all);

    for (int e = 0; e < C->rows * C->cols; e++) all[e] = sign * C->v[e];
    OK(w->ctx, w->ctx->backend->upload(w->ctx, to, all, (size_t)(parts * each) *
                                                        sizeof *all));
    free(all);
}

/* The sum over parts of what begins at number `skip` of each. */
static void fetch(sps_steps *w, const double *from, int parts, int each,
                  int skip, int rows, int cols, sps_small *C)
{
    double *all = calloc((size_t)(parts * each), sizeof *all);

    spsi_small_shape(C, rows, cols);
    spsi_small_clear(C);
    OK(w->ctx, w->ctx->backend->download(w->ctx, all, from,
                                         (size_t)(parts * each) *
                                         sizeof *all));
    for (int p = 0; p < parts; p++)
        for (int e = 0; e < rows * cols; e++)
            C->v[e] += all[p * each + skip + e];
    free(all);
}

/* G = F = I, so that a = C; to be looked at from W and S on. */
static void prepare(sps_steps *w, const sps_small *a, sps_small *C)
{
    const sps_steps_state state = { .given = 1 };

    spsi_small_shape(C, w->r, w->r);
    spsi_small_clear(C);
    for (int i = 0; i < w->r; i++) *spsi_small_at(C, i, i) = 1;
    send(w, w->G, 1, C, w->most_parts, w->r * w->r);
    send(w, w->C, 1, a, 1, w->r * w->k);
    spsi_small_shape(C, w->r, w->k);
    spsi_small_clear(C);
    send(w, w->W, 1, C, w->most_parts, (w->r + 1) * w->k);
    spsi_small_shape(C, w->k, w->k);
    spsi_small_clear(C);
    send(w, w->S, 1, C, w->most_parts, 2 * w->k * w->k);
    OK(w->ctx, w->ctx->backend->upload(w->ctx, w->state, &state,
                                       sizeof state));
}

/* A diagonal of powers of two, d n numbers. */
static sps_block *diagonal(sps_context *ctx, int64_t n, double *d)
{
    for (int64_t i = 0; i < n; i++) d[i] = (double)(1 << (i * 5 % 3));
    return fixture_block(ctx, n, 1, d, 1);
}

/* One step with P of r columns, a and b made up: R -= Q a, W = Q'Z, then X +=
 * P a, P = Z + P b, S = P'P and C = P'R, on integers; Z = R or D R. */
static void try_passes(sps_context *ctx, sps_dtype type, int64_t n, int r,
                       int k, bool scaled, int64_t near)
{
    double *p, *q, *x, *res, *now = malloc((size_t)(n * k) * sizeof *now);
    double *d = malloc((size_t)n * sizeof *d);
    sps_block *D = diagonal(ctx, n, d);
    sps_block *P = integers(ctx, type, n, r > k ? r : k, 7, &p);
    sps_block *Q = integers(ctx, type, n, r, 8, &q);
    sps_block *X = integers(ctx, type, n, k, 9, &x);
    sps_block *R = integers(ctx, type, n, k, 10, &res);
    sps_small *a = NULL, *b = NULL, *C = NULL;
    sps_steps *w = NULL;

    free(p);
    spsi_block_narrow(P, r);
    p = zoo_block(n, r, r, 7, ZOO_SMALL);
    {
        sps_block *doubles = fixture_block(ctx, n, r, p, r);
        OK(ctx, spsi_copy(doubles, P));
        sps_block_destroy(&doubles);
    }
    OK(ctx, spsi_small_create(ctx, 32, 32, &a));
    OK(ctx, spsi_small_create(ctx, 32, 32, &b));
    OK(ctx, spsi_small_create(ctx, 32, 32, &C));
    OK(ctx, spsi_steps_create(ctx, r > k ? r : k, false, 1e3, &w));
    w->r = r;
    w->k = k;
    w->D = scaled ? D->data : NULL;
    w->near = near;
    fill_small(a, r, k, 0);
    fill_small(b, r, k, 3);
    prepare(w, a, C);
    OK(ctx, ctx->backend->steps_residual(w, Q, R));
    times_small(n, -1, q, r, a, 1, res, k);
    equals(R, res, "residual");
    for (int64_t e = 0; e < n * k; e++)
        now[e] = res[e] * (scaled ? d[e / k] : 1);
    fetch(w, w->W, w->most_parts, (r + 1) * k, 0, r, k, C);
    is_gram(C, n, q, r, now, k, "W");
    send(w, w->W, -1, b, w->most_parts, (r + 1) * k);
    OK(ctx, ctx->backend->steps_directions(w, P, X, R));
    spsi_block_narrow(P, k);
    times_small(n, 1, p, r, a, 1, x, k);
    equals(X, x, "X");
    times_small(n, 1, p, r, b, 1, now, k);
    equals(P, now, "P");
    fetch(w, w->S, w->most_parts, 2 * k * k, 0, k, k, C);
    is_gram(C, n, now, k, now, k, "S");
    fetch(w, w->S, w->most_parts, 2 * k * k, k * k, k, k, C);
    is_gram(C, n, now, k, res, k, "C");
    spsi_steps_destroy(&w);
    spsi_small_destroy(&a);
    spsi_small_destroy(&b);
    spsi_small_destroy(&C);
    sps_block_destroy(&P);
    sps_block_destroy(&Q);
    sps_block_destroy(&X);
    sps_block_destroy(&R);
    sps_block_destroy(&D);
    free(d);
    free(p);
    free(q);
    free(x);
    free(res);
    free(now);
}

START_TEST(passes_of_a_step_are_exact_also_where_columns_have_left)
{
    static const int shape[][2] = { { 2, 2 }, { 3, 5 }, { 16, 16 }, { 20, 10 },
                                    { 5, 20 }, { 32, 14 }, { 32, 32 },
                                    { 8, 1 }, { 1, 9 }, { 12, 12 }, { 17, 17 },
                                    { 20, 20 }, { 23, 21 }, { 24, 24 },
                                    { 18, 24 }, { 29, 27 } };
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
            const int r = shape[i][0], k = shape[i][1];

            try_passes(ctx, SPS_F64, lengths[t], r, k, i % 2,
                       SPS_STEPS_NEAR);
            try_passes(ctx, SPS_F32, lengths[t], r, k, i % 2,
                       SPS_STEPS_NEAR);
        }
    fixture_close(&ctx);
}
END_TEST

/* As if these were: 16 columns of floats come in strips of 16 rows there, the
 * last one whole or not, in rings that go round at 70000 rows. */
START_TEST(passes_of_a_step_on_rows_beyond_a_cache_are_exact)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int i = 0; i < 2; i++) {
            try_passes(ctx, SPS_F64, lengths[t], 16, 16, i, 0);
            try_passes(ctx, SPS_F32, lengths[t], 16, 16, i, 0);
        }
    try_passes(ctx, SPS_F32, 80000, 16, 16, false, 0);
    try_passes(ctx, SPS_F32, 80003, 16, 16, true, 0);
    fixture_close(&ctx);
}
END_TEST

/* Whether a step goes on that follows a P of two unit columns with the
 * condition 3e3, S = [1 c; c 1]; if not, the reason is this one. */
static bool goes_on(sps_context *ctx, sps_dtype type, double condition)
{
    enum { n = 64, r = 2 };
    const double c = 1 - 2 / 9e6;
    double *q, *res;
    sps_block *Q = integers(ctx, type, n, r, 8, &q);
    sps_block *R = integers(ctx, type, n, r, 10, &res);
    sps_small *a = NULL, *S = NULL;
    sps_steps *w = NULL;
    sps_steps_state state = { .given = 1, .unseen = 1 };

    OK(ctx, spsi_small_create(ctx, r, r, &a));
    OK(ctx, spsi_small_create(ctx, r, r, &S));
    OK(ctx, spsi_steps_create(ctx, r, false, condition, &w));
    w->r = w->k = r;
    w->D = NULL;
    fill_small(a, r, r, 0);
    prepare(w, a, S);
    for (int e = 0; e < r * r; e++) S->v[e] = e % (r + 1) ? c : 1;
    send(w, w->S, 1, S, w->most_parts, 2 * r * r);
    OK(ctx, ctx->backend->upload(ctx, w->state, &state, sizeof state));
    OK(ctx, ctx->backend->steps_residual(w, Q, R));
    OK(ctx, ctx->backend->download(ctx, &state, w->state, sizeof state));
    ck_assert(state.stop == 0 || state.stop == SPS_STEPS_BASIS);
    spsi_steps_destroy(&w);
    spsi_small_destroy(&a);
    spsi_small_destroy(&S);
    sps_block_destroy(&Q);
    sps_block_destroy(&R);
    free(q);
    free(res);
    return state.stop == 0;
}

START_TEST(a_basis_is_looked_at_above_the_condition_that_was_named)
{
    static const sps_dtype type[] = { SPS_F64, SPS_F32 };
    sps_context *ctx = runner_context();

    for (int i = 0; i < 2; i++) {
        ck_assert(!goes_on(ctx, type[i], 1e3));
        ck_assert(!goes_on(ctx, type[i], 2.9e3));
        ck_assert(goes_on(ctx, type[i], 3.1e3));
        ck_assert(goes_on(ctx, type[i], 1e4));
    }
    fixture_close(&ctx);
}
END_TEST

/* -------------------------------------------------------------------- queue */

/* An operator that counts its products. */
typedef struct products {
    sps_operator *op;
    sps_block block;          /* of the place */
    int64_t calls;
} products;

static int count_product(double alpha, const double *X, int64_t ldx,
                         double beta, double *Y, int64_t ldy, int64_t n, int k,
                         void *stream, void *data)
{
    products *c = data;
    sps_block x = c->block, y = c->block;

    (void)n, (void)stream;
    x.data = (void *)(uintptr_t)X;
    y.data = Y;
    x.ld = ldx;
    y.ld = ldy;
    x.k = y.k = k;
    c->calls++;
    return sps_operator_apply(c->op, alpha, &x, beta, &y) != SPS_OK;
}

/* Products of a solve with up to so many steps at once. */
static int64_t products_of(sps_context *ctx, int64_t n, int every)
{
    products c = { 0 };
    problem p;
    sps_block *X;

    problem_open_grid(&p, ctx, n, 2, 0.01);
    p.opt.solver = "block_cg";
    p.opt.precond = "none";
    p.opt.check_every = every;
    OK(ctx, sps_operator_csr(ctx, p.A, 2, NULL, &c.op));
    OK(ctx, sps_block_create(ctx, n, 2, &X));
    c.block = *X;
    OK(ctx, sps_operator_user(ctx, n, count_product, &c, SPS_SPD, &p.op));
    ck_assert_int_eq(problem_solve(&p), SPS_OK);
    ck_assert_int_eq(p.result.stop, SPS_STOP_CONVERGED);
    sps_operator_destroy(&c.op);
    sps_block_destroy(&X);
    problem_close(&p);
    return c.calls;
}

/* A column that is done ends the queue, twice in a solve; without foresight
 * that leaves 45 products, and half of 16 for each on average. */
START_TEST(few_products_are_made_behind_the_last_step)
{
    static const int64_t rows[] = { 900, 1225, 1600, 2025, 2500, 3025 };
    sps_context *ctx = runner_context();
    int64_t behind = 0;

    for (int t = 0; t < 6; t++)
        behind += products_of(ctx, rows[t], 16) - products_of(ctx, rows[t], 1);
    ck_assert_msg(behind < 36, "%d", (int)behind);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(sums_of_floats_and_doubles_are_exact),
    RUNNER_TEST(gram_and_small_products_of_floats_are_exact),
    RUNNER_TEST(products_of_a_wide_block_of_floats_and_doubles_are_exact),
    RUNNER_TEST(passes_of_a_step_are_exact_also_where_columns_have_left),
    RUNNER_TEST(passes_of_a_step_on_rows_beyond_a_cache_are_exact),
    RUNNER_TEST(a_basis_is_looked_at_above_the_condition_that_was_named),
    RUNNER_TEST(few_products_are_made_behind_the_last_step),
};

RUNNER_MAIN("single", tests)
