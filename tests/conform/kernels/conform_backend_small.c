/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_small.c - operations give the same bits with small matrices
 * on the host and in device memory. */
#include "tests/conform/kernels/conform_backend.h"

static sps_small *near_copy(sps_context *ctx, const sps_small *C)
{
    sps_small *D = NULL;

    OK(ctx, spsi_small_create_device(ctx, C->max_rows, C->max_cols, &D));
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

/* All operations that read or write small matrices: on the host in [0], in
 * device memory in [1]. */
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
        OK(ctx, spsi_mul_small(1, P[t].X, a[t], 1, X[t].X));
        OK(ctx, spsi_subtract(Q[t].X, a[t], R[t].X, S[t]));
        OK(ctx, spsi_mul_small(1, P[t].X, a[t], 1, X[t].X));
        OK(ctx, spsi_subtract(Q[t].X, a[t], R[t].X, G[t]));
        OK(ctx, spsi_combine(X[t].X, a[t], P[t].X, C[t]));
        OK(ctx, spsi_gram(P[t].X, R[t].X, a[t]));
    }
    same_blocks(&P[0], &P[1], "combine, near");
    same_blocks(&Q[0], &Q[1], "mul_small, near");
    same_blocks(&X[0], &X[1], "mul_small in place, near");
    same_blocks(&R[0], &R[1], "subtract, near");
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

void conform_small(TCase *t)
{
    tcase_add_test(t, small_matrices_serve_alike_on_the_host_and_near);
    tcase_add_test(t, sums_over_no_rows_are_zero_in_every_place);
}
