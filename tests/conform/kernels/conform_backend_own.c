/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_own.c - blocks that the library owns: the padding behind
 * their columns, NaN here, must not influence any result, and columns set
 * aside by narrowing must be unchanged afterwards.  Compared with the same
 * operations on wrapped blocks without padding; integer data, so that every
 * sum is exact. */
#include "tests/conform/kernels/conform_backend.h"

#include <math.h>
#include <string.h>

enum { BLOCKS = 4 };                 /* P, Q, X, R */
static const double kept = 7.5;      /* in columns that are set aside */

typedef struct work {
    sps_block *W[BLOCKS];
    sps_small *a;                    /* coefficients */
    sps_small *G, *C, *S;
} work;

/* Entries -1, 0, 1. */
static void open_small(sps_context *ctx, int k, work *w)
{
    sps_small **all[] = {&w->a, &w->G, &w->C, &w->S};

    for (int i = 0; i < 4; i++)
        OK(ctx, spsi_small_create(ctx, k, k, all[i]));
    for (int i = 0; i < 3; i++) spsi_small_shape(*all[i], k, k);
    for (int j = 0; j < k; j++)
        for (int i = 0; i < k; i++)
            *spsi_small_at(w->a, i, j) = (i + 2 * j) % 3 - 1;
}

static void close_small(work *w)
{
    sps_small **all[] = {&w->a, &w->G, &w->C, &w->S};

    for (int i = 0; i < 4; i++) spsi_small_destroy(all[i]);
}

/* x: n x k numbers; behind them NaN, or `aside` columns of constants. */
static sps_block *own_block(sps_context *ctx, int64_t n, int k, int aside,
                            const double *x)
{
    sps_block *X = NULL;
    double *raw, *columns = zeros(n);

    OK(ctx, sps_block_create(ctx, n, k + aside, &X));
    raw = zeros(n * X->ld);
    for (int64_t t = 0; t < n * X->ld; t++) raw[t] = NAN;
    OK(ctx, ctx->backend->upload(ctx, X->data, raw,
                                 (size_t)(n * X->ld) * sizeof *raw));
    OK(ctx, sps_block_set(X, 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < n; i++) columns[i] = kept;
    if (aside)
        OK(ctx, sps_block_set(X, k, 1, columns, 1, SPS_ROW_MAJOR, SPS_HOST));
    spsi_block_narrow(X, k);
    free(raw);
    free(columns);
    return X;
}

static void columns_aside_are_kept(sps_context *ctx, sps_block *X)
{
    double *x = zeros(X->n);
    int k = X->k;

    spsi_block_narrow(X, k + 1);
    OK(ctx, sps_block_get(X, k, 1, x, 1, SPS_ROW_MAJOR, SPS_HOST));
    spsi_block_narrow(X, k);
    for (int64_t i = 0; i < X->n; i++)
        ck_assert_msg(x[i] == kept, "k %d: row %ld of the column that was set "
                      "aside is %g", k, (long)i, x[i]);
    free(x);
}

static void same_small(const sps_small *C, const sps_small *D,
                       const char *what)
{
    small_equals(C, D->rows, D->cols, D->v, what);
}

/* Each operation on both kinds of blocks, and a comparison of the results. */
static void run_both(sps_context *ctx, work *own, work *wrapped)
{
    work *both[2] = {wrapped, own};

#define BOTH(call)                                                             \
    for (int t_ = 0; t_ < 2; t_++) {                                           \
        work *w = both[t_];                                                    \
        sps_block *P = w->W[0], *Q = w->W[1], *X = w->W[2], *R = w->W[3];      \
        (void)P, (void)Q, (void)X, (void)R;                                    \
        OK(ctx, call);                                                         \
    }
#define ALIKE(C, what) same_small(own->C, wrapped->C, what)
    BOTH(spsi_gram(P, Q, w->G));
    ALIKE(G, "gram");
    BOTH(spsi_gram(P, P, w->G));
    ALIKE(G, "gram of one");
    BOTH(spsi_gram_pair(P, Q, R, w->G, w->C));
    ALIKE(G, "gram_pair, P'Q");
    ALIKE(C, "gram_pair, P'R");
    BOTH(spsi_mul_small(1, P, w->a, 0, X));
    BOTH(spsi_mul_small(2, Q, w->a, -1, X));
    spsi_small_shape(own->S, 1, own->a->cols);
    spsi_small_shape(wrapped->S, 1, own->a->cols);
    BOTH(spsi_mul_small(1, P, w->a, 1, X));
    BOTH(spsi_subtract(Q, w->a, R, w->S));
    ALIKE(S, "subtract, norms");
    BOTH(spsi_mul_small(1, P, w->a, 1, X));
    BOTH(spsi_subtract(Q, w->a, R, w->G));
    ALIKE(G, "subtract, R'R");
    BOTH(spsi_combine(Q, w->a, P, w->C));
    ALIKE(C, "combine, P'P");
#undef BOTH
#undef ALIKE
}

static void try_own(sps_context *ctx, int64_t n, int k, int aside)
{
    work own = {0}, wrapped = {0};
    frame f[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        double *x = zoo_block(n, k, k, 41 + (uint64_t)i, ZOO_SMALL);

        f[i] = frame_make(ctx, n, k, k, 0, x, k);
        wrapped.W[i] = f[i].X;
        own.W[i] = own_block(ctx, n, k, aside, x);
        free(x);
    }
    open_small(ctx, k, &own);
    open_small(ctx, k, &wrapped);
    run_both(ctx, &own, &wrapped);
    for (int i = 0; i < BLOCKS; i++) {
        double *x = zeros(n * k);

        OK(ctx, sps_block_get(own.W[i], 0, k, x, k, SPS_ROW_MAJOR, SPS_HOST));
        shape_equals(&f[i], k, x, i == 0   ? "P"
                                  : i == 1 ? "Q"
                                  : i == 2 ? "X"
                                           : "R");
        if (aside) columns_aside_are_kept(ctx, own.W[i]);
        sps_block_destroy(&own.W[i]);
        frame_free(&f[i]);
        free(x);
    }
    close_small(&own);
    close_small(&wrapped);
}

START_TEST(what_lies_behind_the_columns_of_own_blocks_reaches_no_result)
{
    sps_context *ctx = runner_context();

    for (int k = 1; k <= 128; k += k < 33 ? 1 : 5)
        if (!runner_quick() || k % 3 == 0) try_own(ctx, k < 9 ? 1025 : 77, k, 0);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(columns_that_a_block_was_narrowed_by_are_kept)
{
    sps_context *ctx = runner_context();

    for (int k = 1; k < 128; k += k < 33 ? 1 : 5)
        if (!runner_quick() || k % 3 == 2) try_own(ctx, k < 9 ? 1025 : 77, k, 1);
    sps_context_destroy(&ctx);
}
END_TEST

void conform_own(TCase *t)
{
    tcase_add_test(
        t, what_lies_behind_the_columns_of_own_blocks_reaches_no_result);
    tcase_add_test(t, columns_that_a_block_was_narrowed_by_are_kept);
}
