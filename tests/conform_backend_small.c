/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_small.c - small matrices on the host and near the blocks
 * serve alike, bit for bit; and the triangular solve. */
#include "conform_backend.h"

#include <float.h>
#include <math.h>

/* --- places */

static sps_small *near_copy(sps_context *ctx, const sps_small *C)
{
    sps_small *D = NULL;

    OK(ctx, spsi_small_create_near(ctx, C->max_rows, C->max_cols, &D));
    OK(ctx, spsi_small_copy(C, D));
    return D;
}

/* Frees D. */
static void same_bits(sps_context *ctx, const sps_small *C, sps_small **D,
                      const char *what)
{
    sps_small *H = NULL;

    OK(ctx, spsi_small_create(ctx, C->max_rows, C->max_cols, &H));
    OK(ctx, spsi_small_copy(*D, H));
    small_equals(H, C->rows, C->cols, C->v, what);
    spsi_small_destroy(&H);
    spsi_small_destroy(D);
}

static void same_blocks(frame *f, frame *g, const char *what)
{
    double *x = zeros(f->n * f->X->k);

    frame_read(f, f->X->k, x);
    shape_equals(g, f->X->k, x, what);
    free(x);
}

/* All slots that take or leave small matrices, host in [0] and near in [1]. */
static void try_places(sps_context *ctx, const shape *s)
{
    frame P[2], Q[2], X[2], R[2];
    sps_small *a[2], *G[2], *C[2], *S[2];

    for (int t = 0; t < 2; t++) {
        P[t] = shape_frame(ctx, s, 31, ZOO_RANDOM, NULL);
        Q[t] = shape_frame(ctx, s, 32, ZOO_RANDOM, NULL);
        X[t] = shape_frame(ctx, s, 33, ZOO_RANDOM, NULL);
        R[t] = shape_frame(ctx, s, 34, ZOO_RANDOM, NULL);
    }
    a[0] = shape_small(ctx, s->k, s->k, 35, ZOO_RANDOM, NULL);
    G[0] = shape_small(ctx, s->k, s->k, 7, ZOO_RANDOM, NULL);
    C[0] = shape_small(ctx, s->k, s->k, 7, ZOO_RANDOM, NULL);
    S[0] = shape_small(ctx, 1, s->k, 7, ZOO_RANDOM, NULL);
    a[1] = near_copy(ctx, a[0]);
    G[1] = near_copy(ctx, G[0]);
    C[1] = near_copy(ctx, C[0]);
    S[1] = near_copy(ctx, S[0]);
    for (int t = 0; t < 2; t++) {
        OK(ctx, spsi_gram_pair(P[t].X, Q[t].X, R[t].X, G[t], C[t]));
        OK(ctx, spsi_mul_small(0.5, P[t].X, C[t], -1.0, Q[t].X));
        OK(ctx, spsi_update_pair(P[t].X, Q[t].X, a[t], X[t].X, R[t].X, S[t]));
        OK(ctx, spsi_update_pair(P[t].X, Q[t].X, a[t], X[t].X, R[t].X, G[t]));
        OK(ctx, spsi_combine(X[t].X, a[t], P[t].X, C[t]));
        OK(ctx, spsi_gram(P[t].X, R[t].X, a[t]));
        OK(ctx, spsi_solve_small(C[t], R[t].X));
    }
    same_blocks(&P[0], &P[1], "combine, near");
    same_blocks(&Q[0], &Q[1], "mul_small, near");
    same_blocks(&X[0], &X[1], "update_pair, near");
    same_blocks(&R[0], &R[1], "solve_small, near");
    same_bits(ctx, a[0], &a[1], "gram, near");
    same_bits(ctx, G[0], &G[1], "R'R, near");
    same_bits(ctx, C[0], &C[1], "P'P, near");
    same_bits(ctx, S[0], &S[1], "squares of norms, near");
    for (int t = 0; t < 2; t++) {
        frame_free(&P[t]);
        frame_free(&Q[t]);
        frame_free(&X[t]);
        frame_free(&R[t]);
    }
    spsi_small_destroy(&a[0]);
    spsi_small_destroy(&G[0]);
    spsi_small_destroy(&C[0]);
    spsi_small_destroy(&S[0]);
}

START_TEST(small_matrices_serve_alike_on_the_host_and_near)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
        if (s_ % 3 || s.n > 1000) try_places(ctx, &s);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(sums_over_no_rows_are_zero_in_every_place)
{
    sps_context *ctx = runner_context();
    double c[9] = {0};
    sps_block *X = NULL;
    sps_small *C = shape_small(ctx, 3, 3, 7, ZOO_RANDOM, NULL);
    sps_small *D = near_copy(ctx, C);

    OK(ctx, sps_block_create(ctx, 0, 3, &X));
    OK(ctx, spsi_gram(X, X, C));
    OK(ctx, spsi_gram(X, X, D));
    small_equals(C, 3, 3, c, "gram of no rows");
    same_bits(ctx, C, &D, "gram of no rows, near");
    spsi_small_destroy(&C);
    sps_block_destroy(&X);
    sps_context_destroy(&ctx);
}
END_TEST

/* --- triangular solve */

/* Upper triangular with NaN below, and the same with zeros in *c_p.  sharp:
 * small integers with powers of two on the diagonal, so that solving undoes
 * multiplying without any rounding. */
static sps_small *triangle(sps_context *ctx, int k, bool sharp, double **c_p)
{
    sps_small *C = shape_small(ctx, k, k, 41, ZOO_RANDOM, c_p);

    for (int j = 0; j < k; j++)
        for (int i = 0; i < k; i++) {
            double *c = *c_p + j * k + i;

            if (sharp) *c = i == j ? 1 << (i % 3) : (i * 5 + j * 3) % 3 - 1;
            else if (i == j) *c = 1 + fabs(*c);
            *spsi_small_at(C, i, j) = i <= j ? *c : NAN;
            if (i > j) *c = 0;
        }
    return C;
}

static void try_solve_exact(sps_context *ctx, const shape *s)
{
    double *x = zoo_block(s->n, s->k, s->k, 42, ZOO_INTEGER), *c;
    double *b = zeros(s->n * s->k);
    sps_small *C = triangle(ctx, s->k, true, &c);
    frame f;

    oracle_mul_small(s->n, 1, x, s->k, s->k, c, s->k, s->k, 0, b, s->k, NULL);
    f = frame_make(ctx, s->n, s->k, s->ld, s->offset, b, s->k);
    OK(ctx, spsi_solve_small(C, f.X));
    shape_equals(&f, s->k, x, "solve_small");
    spsi_small_destroy(&C);
    frame_free(&f);
    free(x);
    free(b);
    free(c);
}

START_TEST(solve_small_undoes_a_product_exactly_on_integers)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s) try_solve_exact(ctx, &s);
    for (int k = 127; k < 132; k++)
        try_solve_exact(ctx, &(shape){.n = 300, .k = k, .ld = k + k % 2});
    try_solve_exact(ctx, &(shape){.n = 40, .k = 300, .ld = 301});
    sps_context_destroy(&ctx);
}
END_TEST

/* What is left of B - X C, beside |X| |C| and |B|: a few k u. */
static void try_solve_residual(sps_context *ctx, const shape *s)
{
    double *x = zeros(s->n * s->k), *bound = zeros(s->n * s->k), *b, *c;
    double worst = 0;
    frame f = shape_frame(ctx, s, 43, ZOO_RANDOM, &b);
    sps_small *C = triangle(ctx, s->k, false, &c);

    OK(ctx, spsi_solve_small(C, f.X));
    frame_read(&f, s->k, x);
    oracle_mul_small(s->n, -1, x, s->k, s->k, c, s->k, s->k, 1, b, s->k, bound);
    for (int64_t t = 0; t < s->n * s->k; t++)
        worst = fmax(worst, fabs(b[t]) / bound[t]);
    ck_assert_msg(worst <= 64 * (s->k + 4) * DBL_EPSILON,
                  "solve_small n %ld k %d: %g", (long)s->n, s->k, worst);
    spsi_small_destroy(&C);
    frame_free(&f);
    free(x);
    free(bound);
    free(b);
    free(c);
}

START_TEST(solve_small_leaves_a_residual_of_rounding_size)
{
    sps_context *ctx = runner_context();

    EACH_SHAPE(s)
        if (s.k <= 33) try_solve_residual(ctx, &s);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(solve_small_keeps_a_nan_in_its_row)
{
    sps_context *ctx = runner_context();
    shape s = {.n = 100, .k = 16, .ld = 16};
    double *x = zoo_block(s.n, s.k, s.k, 44, ZOO_INTEGER), *y, *c;
    sps_small *C = triangle(ctx, s.k, true, &c);
    frame f;

    x[37 * s.k + 9] = NAN;
    f = frame_make(ctx, s.n, s.k, s.ld, 0, x, s.k);
    OK(ctx, spsi_solve_small(C, f.X));
    y = zeros(s.n * s.k);
    frame_read(&f, s.k, y);
    for (int64_t t = 0; t < s.n * s.k; t++)
        ck_assert(t / s.k == 37 || !isnan(y[t]));
    ck_assert(isnan(y[37 * s.k + 9]));
    for (int j = 0; j < 8; j++) ck_assert(!isnan(y[37 * s.k + j]));
    spsi_small_destroy(&C);
    frame_free(&f);
    free(x);
    free(y);
    free(c);
    sps_context_destroy(&ctx);
}
END_TEST

void conform_small(TCase *t)
{
    tcase_add_test(t, small_matrices_serve_alike_on_the_host_and_near);
    tcase_add_test(t, sums_over_no_rows_are_zero_in_every_place);
    tcase_add_test(t, solve_small_undoes_a_product_exactly_on_integers);
    tcase_add_test(t, solve_small_leaves_a_residual_of_rounding_size);
    tcase_add_test(t, solve_small_keeps_a_nan_in_its_row);
}
