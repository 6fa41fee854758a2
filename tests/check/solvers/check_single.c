/* SPDX-License-Identifier: BSD-3-Clause */
/* check_single.c - blocks of floats: reductions, Gram matrices and small
 * products exact on integers at every width, the passes of an iteration in both
 * types; and how many iterations are queued ahead. */
#include <math.h>

#include "block/basis.h"
#include "operator/operator.h"
#include "tests/problems/problem.h"
#include "tests/support/runner.h"
#include "tests/support/step_data.h"

static const int64_t lengths[] = { 1, 7, 64, 65, 1000, 5003 };
static const int widths[] = { 1, 2, 3, 5, 8, 15, 16, 17, 30, 32 };
enum { LENGTHS = sizeof lengths / sizeof *lengths };
enum { WIDTHS = sizeof widths / sizeof *widths };

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

/* Scalings of columns and of rows; without b the old Y does not matter. */
static void try_scalings(sps_context *ctx, int64_t n, int k, sps_dtype one,
                         sps_dtype other)
{
    double *x, *y, *d, a[32], b[32];
    sps_block *X = integers(ctx, one, n, k, 3, &x);
    sps_block *Y = integers(ctx, other, n, k, 4, &y);
    sps_block *D = integers(ctx, SPS_F64, n, 1, 5, &d);

    for (int j = 0; j < k; j++) a[j] = 1 - j % 5, b[j] = j % 3 - 1;
    OK(ctx, spsi_axpby_cols(a, X, b, Y));
    for (int64_t t = 0; t < n * k; t++)
        y[t] = a[t % k] * x[t] + b[t % k] * y[t];
    equals(Y, y, "axpby_cols");
    OK(ctx, spsi_axpby_cols(a, X, NULL, Y));
    for (int64_t t = 0; t < n * k; t++) y[t] = a[t % k] * x[t];
    equals(Y, y, "axpby_cols without b");
    OK(ctx, spsi_scale_rows(D, X, Y));
    for (int64_t t = 0; t < n * k; t++) y[t] = d[t / k] * x[t];
    equals(Y, y, "scale_rows");
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&D);
    free(x);
    free(y);
    free(d);
}

START_TEST(sums_of_floats_and_doubles_are_exact)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 0; w < WIDTHS; w++) {
            try_sums(ctx, lengths[t], widths[w], SPS_F32, SPS_F64);
            try_sums(ctx, lengths[t], widths[w], SPS_F64, SPS_F32);
            try_sums(ctx, lengths[t], widths[w], SPS_F32, SPS_F32);
            try_scalings(ctx, lengths[t], widths[w], SPS_F32, SPS_F64);
            try_scalings(ctx, lengths[t], widths[w], SPS_F64, SPS_F32);
            try_scalings(ctx, lengths[t], widths[w], SPS_F32, SPS_F32);
        }
    fixture_close(&ctx);
}
END_TEST

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

/* -------------------------------------------------- directions kept in floats */

/* P = Z + P b with Z of floats, P of r columns and then k: rounded to floats,
 * and Z a copy of it.  `below` of an integer more in P is lost by rounding; with
 * 0 all is exact, and so is G. */
static void try_combine(sps_context *ctx, int64_t n, int r, int k, double below)
{
    const int most = r > k ? r : k;
    double *z, *p, *w;
    sps_block *Z = integers(ctx, SPS_F32, n, k, 5, &z);
    sps_block *P = integers(ctx, SPS_F64, n, most, 6, &p);
    sps_block *W = integers(ctx, SPS_F64, n, most, 7, &w);
    sps_small *b = NULL, *G = NULL;

    OK(ctx, spsi_small_create(ctx, 32, 32, &b));
    OK(ctx, spsi_small_create(ctx, 32, 32, &G));
    OK(ctx, spsi_axpby(below, W, 1.0, P));
    spsi_block_narrow(P, r);
    fill_small(b, r, k, 1);
    OK(ctx, spsi_combine(Z, b, P, G));
    ck_assert_int_eq(P->k, k);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double sum = z[i * k + j];

            for (int l = 0; l < r; l++)
                sum += (p[i * most + l] + below * w[i * most + l]) *
                       *spsi_small_at(b, l, j);
            z[i * k + j] = (float)sum;
        }
    equals(P, z, "combine with floats");
    equals(Z, z, "the floats of combine");
    if (below == 0) is_gram(G, n, z, k, z, k, "gram of combine with floats");
    spsi_small_destroy(&b);
    spsi_small_destroy(&G);
    sps_block_destroy(&Z);
    sps_block_destroy(&P);
    sps_block_destroy(&W);
    free(z);
    free(p);
    free(w);
}

START_TEST(combined_directions_are_rounded_to_floats)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 1; w < WIDTHS; w++) {
            try_combine(ctx, lengths[t], widths[w], widths[w], 0x1p-26);
            try_combine(ctx, lengths[t], widths[w], widths[w], 0);
            try_combine(ctx, lengths[t], widths[w], widths[WIDTHS - w], 0);
            try_combine(ctx, lengths[t], widths[w], 2, 0x1p-26);
        }
    fixture_close(&ctx);
}
END_TEST

/* Z += P b with both of floats, P of r columns, and G = Z'Z. */
static void try_combine_single(sps_context *ctx, int64_t n, int r, int k)
{
    double *z, *p;
    sps_block *Z = integers(ctx, SPS_F32, n, k, 5, &z);
    sps_block *P = integers(ctx, SPS_F32, n, r, 6, &p);
    sps_small *b = NULL, *G = NULL;

    OK(ctx, spsi_small_create(ctx, 32, 32, &b));
    OK(ctx, spsi_small_create(ctx, 32, 32, &G));
    fill_small(b, r, k, 1);
    OK(ctx, spsi_combine_single(Z, b, P, G));
    times_small(n, 1, p, r, b, 1, z, k);
    equals(Z, z, "combine of floats");
    equals(P, p, "the old directions");
    is_gram(G, n, z, k, z, k, "gram of combine of floats");
    spsi_small_destroy(&b);
    spsi_small_destroy(&G);
    sps_block_destroy(&Z);
    sps_block_destroy(&P);
    free(z);
    free(p);
}

/* G = P'Q and C = P'R with P of floats. */
static void try_pair(sps_context *ctx, int64_t n, int r, int k)
{
    double *p, *q, *v;
    sps_block *P = integers(ctx, SPS_F32, n, r, 5, &p);
    sps_block *Q = integers(ctx, SPS_F64, n, k, 6, &q);
    sps_block *R = integers(ctx, SPS_F64, n, k, 7, &v);
    sps_small *G = NULL, *C = NULL;

    OK(ctx, spsi_small_create(ctx, 32, 32, &G));
    OK(ctx, spsi_small_create(ctx, 32, 32, &C));
    OK(ctx, spsi_gram_pair(P, Q, R, G, C));
    is_gram(G, n, p, r, q, k, "gram_pair of floats, first");
    is_gram(C, n, p, r, v, k, "gram_pair of floats, second");
    spsi_small_destroy(&G);
    spsi_small_destroy(&C);
    sps_block_destroy(&P);
    sps_block_destroy(&Q);
    sps_block_destroy(&R);
    free(p);
    free(q);
    free(v);
}

START_TEST(steps_with_directions_of_floats_are_exact)
{
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 1; w < WIDTHS; w++) {
            try_combine_single(ctx, lengths[t], widths[w], widths[w]);
            try_combine_single(ctx, lengths[t], widths[w], widths[WIDTHS - w]);
            try_pair(ctx, lengths[t], widths[w], widths[w]);
            try_pair(ctx, lengths[t], widths[WIDTHS - w], widths[w]);
        }
    try_combine_single(ctx, 80003, 16, 16);
    try_pair(ctx, 80003, 16, 16);
    fixture_close(&ctx);
}
END_TEST

/* X += the sum over l of V_l H_l. */
static void try_stack(sps_context *ctx, int64_t n, int k, int count)
{
    double *x, *v[12];
    sps_block *X = integers(ctx, SPS_F64, n, k, 8, &x);
    sps_small *H = NULL, part = { .rows = k, .cols = k };
    sps_basis *V = NULL;
    double c[32 * 32];
    sps_block view;

    part.v = c;
    OK(ctx, spsi_small_create(ctx, 12 * k, k, &H));
    OK(ctx, spsi_basis_create(ctx, n, k, 12, SPS_F32, &V));
    OK(ctx, spsi_basis_square(V));
    fill_small(H, 12 * k, k, 1);
    for (int l = 0; l < count; l++) {
        sps_block *Y = integers(ctx, SPS_F32, n, k, 9 + l, &v[l]);

        spsi_basis_block(V, l, &view);
        OK(ctx, spsi_copy(Y, &view));
        for (int e = 0; e < k * k; e++)
            c[e] = *spsi_small_at(H, l * k + e % k, e / k);
        times_small(n, -1, v[l], k, &part, 1, x, k);
        sps_block_destroy(&Y);
        free(v[l]);
    }
    OK(ctx, spsi_basis_update(-1.0, V, count, H, true, X, NULL));
    equals(X, x, "a sum over a stack");
    spsi_small_destroy(&H);
    spsi_basis_destroy(&V);
    sps_block_destroy(&X);
    free(x);
}

START_TEST(sums_over_a_stack_of_floats_are_exact)
{
    static const int counts[] = { 1, 3, 4, 5, 12 };
    sps_context *ctx = runner_context();

    for (int t = 0; t < LENGTHS; t++)
        for (int w = 1; w < WIDTHS; w++)
            for (int c = 0; c < 5; c++)
                try_stack(ctx, lengths[t], widths[w], counts[c]);
    fixture_close(&ctx);
}
END_TEST

/* ------------------------------------------------------------------- passes */

/* One iteration with P of r columns and given a and b: R -= Q a, W = Q'Z, then
 * X += P a, P = Z + P b, S = P'P and C = P'R, on integers; Z = R or D R. */
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
    sps_owner own = { .ctx = ctx };
    sps_fused_cg *w = NULL;

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
    OK(ctx, spsi_fused_cg_create(&own, r > k ? r : k, false, 1e3, &w));
    w->r = r;
    w->k = k;
    w->D = scaled ? D->data : NULL;
    w->cached = near;
    fill_small(a, r, k, 0);
    fill_small(b, r, k, 3);
    prepare(w, a, C);
    OK(ctx, ctx->backend->fused_cg_residual(w, Q, R));
    times_small(n, -1, q, r, a, 1, res, k);
    equals(R, res, "residual");
    for (int64_t e = 0; e < n * k; e++)
        now[e] = res[e] * (scaled ? d[e / k] : 1);
    fetch(w, w->W, w->most_parts, (r + 1) * k, 0, r, k, C);
    is_gram(C, n, q, r, now, k, "W");
    send(w, w->W, -1, b, w->most_parts, (r + 1) * k);
    OK(ctx, ctx->backend->fused_cg_directions(w, P, X, R));
    spsi_block_narrow(P, k);
    times_small(n, 1, p, r, a, 1, x, k);
    equals(X, x, "X");
    times_small(n, 1, p, r, b, 1, now, k);
    equals(P, now, "P");
    fetch(w, w->S, w->most_parts, 2 * k * k, 0, k, k, C);
    is_gram(C, n, now, k, now, k, "S");
    fetch(w, w->S, w->most_parts, 2 * k * k, k * k, k, k, C);
    is_gram(C, n, now, k, res, k, "C");
    spsi_owner_release(&own);
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
                       SPS_FUSED_CACHED);
            try_passes(ctx, SPS_F32, lengths[t], r, k, i % 2,
                       SPS_FUSED_CACHED);
        }
    fixture_close(&ctx);
}
END_TEST

/* Sizes as for blocks larger than the cache: there 16 columns of floats are
 * processed in tiles of 16 rows, the last one full or not, and at 70000 rows
 * the ring buffers of the staged pipelines wrap around. */
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

/* Whether the iteration continues after a P of two unit columns with the
 * condition 3e3, S = [1 c; c 1]; if not, checks the stop reason. */
static bool goes_on(sps_context *ctx, sps_dtype type, double condition)
{
    enum { n = 64, r = 2 };
    const double c = 1 - 2 / 9e6;
    double *q, *res;
    sps_block *Q = integers(ctx, type, n, r, 8, &q);
    sps_block *R = integers(ctx, type, n, r, 10, &res);
    sps_small *a = NULL, *S = NULL;
    sps_owner own = { .ctx = ctx };
    sps_fused_cg *w = NULL;
    sps_fused_cg_state state = { .given = 1, .unchecked = 1 };

    OK(ctx, spsi_small_create(ctx, r, r, &a));
    OK(ctx, spsi_small_create(ctx, r, r, &S));
    OK(ctx, spsi_fused_cg_create(&own, r, false, condition, &w));
    w->r = w->k = r;
    w->D = NULL;
    fill_small(a, r, r, 0);
    prepare(w, a, S);
    for (int e = 0; e < r * r; e++) S->v[e] = e % (r + 1) ? c : 1;
    send(w, w->S, 1, S, w->most_parts, 2 * r * r);
    OK(ctx, ctx->backend->upload(ctx, w->state, &state, sizeof state));
    OK(ctx, ctx->backend->fused_cg_residual(w, Q, R));
    OK(ctx, ctx->backend->download(ctx, &state, w->state, sizeof state));
    ck_assert(state.stop == 0 || state.stop == SPS_FUSED_BASIS);
    spsi_owner_release(&own);
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
    sps_block block;          /* in device memory */
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

/* Products of a solve with up to `every` iterations queued. */
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

/* A converged column ends the queued iterations, twice in a solve; without any
 * prediction of convergence that would leave 45 products more, and half of 16
 * for each stop on average; so does an iteration that is held back to keep the
 * best iterate, of which there are 11. */
START_TEST(few_products_are_made_behind_the_last_step)
{
    static const int64_t rows[] = { 900, 1225, 1600, 2025, 2500, 3025 };
    sps_context *ctx = runner_context();
    int64_t behind = 0;

    for (int t = 0; t < 6; t++)
        behind += products_of(ctx, rows[t], 16) - products_of(ctx, rows[t], 1);
    ck_assert_msg(behind < 90, "%d", (int)behind);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(sums_of_floats_and_doubles_are_exact),
    RUNNER_TEST(gram_and_small_products_of_floats_are_exact),
    RUNNER_TEST(products_of_a_wide_block_of_floats_and_doubles_are_exact),
    RUNNER_TEST(combined_directions_are_rounded_to_floats),
    RUNNER_TEST(steps_with_directions_of_floats_are_exact),
    RUNNER_TEST(sums_over_a_stack_of_floats_are_exact),
    RUNNER_TEST(passes_of_a_step_are_exact_also_where_columns_have_left),
    RUNNER_TEST(passes_of_a_step_on_rows_beyond_a_cache_are_exact),
    RUNNER_TEST(a_basis_is_looked_at_above_the_condition_that_was_named),
    RUNNER_TEST(few_products_are_made_behind_the_last_step),
};

RUNNER_MAIN("single", tests)
