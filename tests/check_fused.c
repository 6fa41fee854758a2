/* SPDX-License-Identifier: BSD-3-Clause */
/* check_fused.c - Y = D (alpha A X + gamma W) + beta Y + delta X is the same by
 * every kernel, whether it fuses the epilogue or the operator composes it. */
#include <check.h>
#include <math.h>

#include "fixture.h"
#include "operator.h"
#include "oracle.h"
#include "registry.h"
#include "runner.h"
#include "zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

typedef struct terms {
    bool D, W;
    double alpha, gamma, beta, delta;
} terms;

/* Every term with and without, and factors that hide what they meet. */
static const terms all[] = {
    { true,  true,  -1,  1,  2,  3 }, { true,  true,   2, -1,  0, -2 },
    { true,  true,   1,  2, -1,  0 }, { true,  false,  3,  0,  0,  0 },
    { true,  false, -2,  0,  1,  1 }, { false, true,  -1,  1,  0,  0 },
    { false, true,   1, -3,  2,  1 }, { false, false,  2,  0, -1,  4 },
    { false, false,  1,  0,  0,  0 }, { true,  true,   0,  1,  1,  1 },
};

/* What is right, on the host; y enters with the old Y. */
static void expected(const sps_csr *A, int k, const terms *t, const double *x,
                     const double *w, const double *d, double *y)
{
    double *s = calloc((size_t)(A->nrow * k) + 1, sizeof *s);

    oracle_spmm(A, t->alpha, x, k, 0.0, s, k, k, NULL);
    for (int64_t e = 0; e < A->nrow * k; e++) {
        if (t->W) s[e] += t->gamma * w[e];
        if (t->D) s[e] *= d[e / k];
        if (t->beta != 0) s[e] += t->beta * y[e];
        if (t->delta != 0) s[e] += t->delta * x[e];
        y[e] = s[e];
    }
    free(s);
}

static void try_terms(const sps_operator *op, const sps_csr *A, int k,
                      const terms *t, const char *kernel)
{
    const int64_t n = A->nrow;
    double *x = zoo_block(n, k, k, 51, ZOO_SMALL);
    double *y = zoo_block(n, k, k, 52, ZOO_SMALL);
    double *w = zoo_block(n, k, k, 53, ZOO_SMALL);
    double *d = zoo_block(n, 1, 1, 54, ZOO_SMALL), *got = malloc(
        (size_t)(n * k + 1) * sizeof *got);
    sps_block *X = fixture_block(ctx, n, k, x, k);
    sps_block *Y = fixture_block(ctx, n, k, y, k);
    sps_block *W = fixture_block(ctx, n, k, w, k);
    sps_block *D = fixture_block(ctx, n, 1, d, 1);
    sps_block *room = fixture_block(ctx, n, k, NULL, 0);
    sps_epilogue e = { t->D ? D : NULL, t->W ? W : NULL, t->gamma, t->delta };
    int64_t at;

    expected(A, k, t, x, w, d, y);
    if (t->beta == 0) OK(ctx, spsi_fill(Y, NAN));
    if (t->gamma == 0) OK(ctx, spsi_fill(W, NAN));
    OK(ctx, spsi_operator_apply_fused(op, false, t->alpha, X, t->beta, Y, &e,
                                      room));
    OK(ctx, sps_block_get(Y, 0, k, got, k, SPS_ROW_MAJOR, SPS_HOST));
    at = oracle_differs(n, k, got, k, y, k);
    ck_assert_msg(at < 0, "%s (%s), k %d, terms %d: element %lld is %g, not "
                  "%g", kernel, op->block ? op->block->kernel->name : "none",
                  k, (int)(t - all), (long long)at, got[at < 0 ? 0 : at],
                  y[at < 0 ? 0 : at]);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&W);
    sps_block_destroy(&D);
    sps_block_destroy(&room);
    free(x);
    free(y);
    free(w);
    free(d);
    free(got);
}

/* Integers are no matter where terms are added. */
static void try_kernel(const char *name, const char *family, int width)
{
    static const int k[] = { 1, 2, 3, 5, 8, 13, 16, 17, 33, 64 };
    sps_csr *A = zoo_matrix(zoo_find(family), 300, 7, ZOO_SMALL, SPS_F64);
    sps_options o;
    sps_operator *op = NULL;

    sps_options_default(&o);
    o.kernel = name;
    if (sps_operator_csr(ctx, A, width, &o, &op) == SPS_OK)
        for (size_t i = 0; i < sizeof k / sizeof *k; i++)
            for (size_t t = 0; t < sizeof all / sizeof *all; t++)
                try_terms(op, A, k[i], &all[t], name);
    sps_operator_destroy(&op);
    zoo_free(&A);
}

START_TEST(epilogues_are_exact_by_every_kernel)
{
    static const char *family[] = { "grid7", "power_law", "nodes6" };
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++) {
        if (kernel->op != SPS_OP_SPMM ||
            !(kernel->gives & SPS_FULL_PRECISION) ||
            !(kernel->gives & SPS_REPRODUCIBLE)) continue;
        for (int f = 0; f < 3; f++) {
            try_kernel(kernel->name, family[f], 16);
            try_kernel(kernel->name, family[f], 64);
            try_kernel(kernel->name, family[f], 1);
        }
    }
}
END_TEST

static int twice(double alpha, const double *X, int64_t ldx, double beta,
                 double *Y, int64_t ldy, int64_t n, int k, void *stream,
                 void *data)
{
    (void)stream, (void)data;
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < k; j++) {
            double *y = Y + i * ldy + j;

            *y = 2 * alpha * X[i * ldx + j] + (beta != 0 ? beta * *y : 0);
        }
    return 0;
}

START_TEST(epilogues_of_callbacks_are_composed)
{
    sps_csr *A = zoo_matrix(zoo_find("diagonal"), 50, 7, ZOO_SMALL, SPS_F64);
    sps_operator *op = NULL;

    if (ctx->backend->place != SPS_HOST) {   /* the callback is of the host */
        zoo_free(&A);
        return;
    }
    for (int64_t p = 0; p < A->nnz; p++) ((double *)A->val)[p] = 2;
    OK(ctx, sps_operator_user(ctx, A->nrow, twice, NULL, SPS_SPD, &op));
    for (size_t t = 0; t < sizeof all / sizeof *all; t++)
        try_terms(op, A, 5, &all[t], "callback");
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fused");
    TCase *t = tcase_create("epilogues");

    tcase_set_timeout(t, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, epilogues_are_exact_by_every_kernel);
    tcase_add_test(t, epilogues_of_callbacks_are_composed);
    suite_add_tcase(s, t);
    return runner_run(s);
}
