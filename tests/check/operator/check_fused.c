/* SPDX-License-Identifier: BSD-3-Clause */
/* check_fused.c - Y = D (alpha A X + gamma W) + beta Y + delta X is the same
 * for every kernel and blocks of either type, whether the kernel fuses the
 * epilogue or the operator composes it.  SPS_TEST_QUICK=1: fewer widths. */
#include <check.h>
#include <math.h>

#include "block/single.h"
#include "core/backend.h"
#include "tests/support/callback.h"
#include "tests/support/fixture.h"
#include "operator/operator.h"
#include "tests/support/oracle.h"
#include "plan/planner.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

typedef struct terms {
    bool D, W;
    double alpha, gamma, beta, delta;
} terms;

/* Every term with and without, including zero factors, whose operands must not
 * be read. */
static const terms all[] = {
    { true,  true,  -1,  1,  2,  3 }, { true,  true,   2, -1,  0, -2 },
    { true,  true,   1,  2, -1,  0 }, { true,  false,  3,  0,  0,  0 },
    { true,  false, -2,  0,  1,  1 }, { false, true,  -1,  1,  0,  0 },
    { false, true,   1, -3,  2,  1 }, { false, false,  2,  0, -1,  4 },
    { false, false,  1,  0,  0,  0 }, { true,  true,   0,  1,  1,  1 },
};

/* The expected result, on the host; y holds the old Y on entry. */
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

/* A block of n x k numbers: one of the library's, or wrapped memory with ld k,
 * which need not be aligned to pairs. */
static sps_block *room_of(int64_t n, int k, sps_dtype dtype, bool wrapped)
{
    const size_t bytes = (size_t)(n * k) * spsi_dtype_size(dtype);
    sps_block *X = NULL;
    void *data = NULL;

    if (!wrapped) {
        OK(ctx, spsi_block_create(ctx, n, k, dtype, &X));
        return X;
    }
    OK(ctx, ctx->backend->alloc(ctx, bytes, &data));
    OK(ctx, sps_block_wrap(ctx, n, k, data, k, &X));
    X->dtype = dtype;
    return X;
}

static void drop(sps_block *X, bool wrapped)
{
    const size_t bytes = (size_t)(X->n * X->width) * spsi_dtype_size(X->dtype);
    void *data = wrapped ? X->data : NULL;

    sps_block_destroy(&X);
    if (data) ctx->backend->release(ctx, data, bytes);
}

static sps_block *block_of(int64_t n, int k, const double *x, sps_dtype dtype,
                           bool wrapped)
{
    sps_block *X = room_of(n, k, dtype, wrapped), *from;

    from = fixture_block(ctx, n, k, x, k);
    OK(ctx, spsi_copy(from, X));
    sps_block_destroy(&from);
    return X;
}

static void get_numbers(const sps_block *X, double *x)
{
    sps_block *to = fixture_block(ctx, X->n, X->k, NULL, 0);

    OK(ctx, spsi_copy(X, to));
    OK(ctx, sps_block_get(to, 0, X->k, x, X->k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&to);
}

/* What is not to be read is not a number. */
static void spoil(sps_block *X)
{
    sps_block *from = fixture_block(ctx, X->n, X->k, NULL, 0);

    OK(ctx, spsi_fill(from, NAN));
    OK(ctx, spsi_copy(from, X));
    sps_block_destroy(&from);
}

static void try_terms(const sps_operator *op, const sps_csr *A, int k,
                      bool wrapped, const terms *t, const char *kernel)
{
    const int64_t n = A->nrow;
    double *x = zoo_block(n, k, k, 51, ZOO_SMALL);
    double *y = zoo_block(n, k, k, 52, ZOO_SMALL);
    double *w = zoo_block(n, k, k, 53, ZOO_SMALL);
    double *d = zoo_block(n, 1, 1, 54, ZOO_SMALL), *got = malloc(
        (size_t)(n * k + 1) * sizeof *got);
    sps_block *X = block_of(n, k, x, op->dtype, wrapped);
    sps_block *Y = block_of(n, k, y, op->dtype, wrapped);
    sps_block *W = block_of(n, k, w, op->dtype, wrapped);
    sps_block *D = block_of(n, 1, d, SPS_F64, wrapped);
    sps_block *room = room_of(n, k, op->dtype, wrapped);
    sps_epilogue e = { t->D ? D : NULL, t->W ? W : NULL, t->gamma, t->delta };
    int64_t at;

    expected(A, k, t, x, w, d, y);
    if (t->beta == 0) spoil(Y);
    if (t->gamma == 0) spoil(W);
    OK(ctx, spsi_operator_apply_fused(op, false, t->alpha, X, t->beta, Y, &e,
                                      room));
    get_numbers(Y, got);
    at = oracle_differs(n, k, got, k, y, k);
    ck_assert_msg(at < 0, "%s (%s)%s, k %d, terms %d: element %lld is %g, not "
                  "%g", kernel, op->block ? op->block->kernel->name : "none",
                  op->dtype == SPS_F32 ? ", floats" : "", k, (int)(t - all), (long long)at, got[at < 0 ? 0 : at],
                  y[at < 0 ? 0 : at]);
    drop(X, wrapped);
    drop(Y, wrapped);
    drop(W, wrapped);
    drop(D, wrapped);
    drop(room, wrapped);
    free(x);
    free(y);
    free(w);
    free(d);
    free(got);
}

/* Counts the operators of a kernel, and its runs with an epilogue, by type of
 * the blocks. */
static struct watch {
    const sps_kernel *kernel;
    sps_kernel counting;
    int made[2], fused[2];
} watch;

static sps_status count_spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    watch.fused[args->Y->dtype == SPS_F32] += args->epilogue != NULL;
    return watch.kernel->spmm(plan, args);
}

static void watch_kernel(const sps_kernel *kernel)
{
    watch = (struct watch){ .kernel = kernel, .counting = *kernel };
    watch.counting.spmm = count_spmm;
}

/* Starts or stops counting the plan's runs, if it is a plan of that kernel. */
static void watch_plan(sps_plan *plan, bool begin)
{
    const sps_kernel *other = begin ? watch.kernel : &watch.counting;

    if (plan && plan->kernel == other)
        plan->kernel = begin ? &watch.counting : watch.kernel;
}

/* With small integers the order in which terms are added does not matter.
 * Blocks have the type of the matrix. */
static void try_widths(const sps_csr *A, int width, const int *k, int count,
                       bool wrapped)
{
    sps_options o;
    sps_operator *op = NULL;

    sps_options_default(&o);
    o.kernel = watch.kernel->name;
    if (spsi_operator_create(ctx, (sps_csr *)A, width, A->dtype, &o, false,
                             &op) !=
        SPS_OK)
        return;
    watch.made[A->dtype == SPS_F32]++;
    for (int begin = 1; begin >= 0; begin--) {
        watch_plan(op->block, begin);
        watch_plan(op->vector, begin);
        for (int i = 0; begin && i < count; i++)
            for (size_t t = 0; t < sizeof all / sizeof *all; t++)
                try_terms(op, A, k[i], wrapped, &all[t], watch.kernel->name);
    }
    sps_operator_destroy(&op);
}

static void try_family(const char *family, sps_dtype dtype)
{
    static const int k[] = { 1, 5, 16, 33, 2, 3, 8, 13, 17, 64 };
    static const int width[] = { 16, 64, 1 };
    const int widths = runner_quick() ? 1 : 3, count = runner_quick() ? 4 : 10;
    sps_csr *A = zoo_matrix(zoo_find(family), 300, 7, ZOO_SMALL, dtype);

    for (int w = 0; w < widths; w++)
        try_widths(A, width[w], k, count, false);
    try_widths(A, 16, (const int[]){ 13, 1 }, 2, true);
    zoo_free(&A);
}

/* A row longer than what any kernel assigns to one group of threads. */
static void try_long_row(sps_dtype dtype)
{
    sps_csr *A = zoo_matrix(zoo_find("arrow"), 5000, 7, ZOO_SMALL, dtype);

    try_widths(A, 16, (const int[]){ 13, 16 }, 2, false);
    try_widths(A, 1, (const int[]){ 1 }, 1, false);
    zoo_free(&A);
}

static void try_kernel(const sps_kernel *kernel)
{
    static const char *const family[] = { "grid7", "power_law", "nodes6" };
    const bool takes[2] = { true, kernel->gives & SPS_SINGLE_BLOCKS };

    watch_kernel(kernel);
    for (int s = 0; s < 2; s++) {
        const sps_dtype dtype = s ? SPS_F32 : SPS_F64;

        for (int f = 0; takes[s] && f < 3; f++) try_family(family[f], dtype);
        if (takes[s]) try_long_row(dtype);
        ck_assert_msg(!kernel->fuses || !watch.made[s] || watch.fused[s] > 0,
                      "%s fuses epilogues, but was given none%s", kernel->name,
                      s ? " in floats" : "");
        ck_assert_msg(kernel->fuses || watch.fused[s] == 0,
                      "%s was given epilogues", kernel->name);
    }
    ck_assert_msg(!kernel->fuses || watch.made[takes[1]] > 0,
                  "%s fuses, but fits nothing here", kernel->name);
}

/* Kernels that round operands, or are not reproducible, are excluded. */
static bool exact(const sps_kernel *kernel)
{
    const unsigned all_bits = SPS_FULL_PRECISION | SPS_REPRODUCIBLE;
    bool is = (kernel->gives & all_bits) == all_bits;

    ck_assert_msg(is || !kernel->fuses, "%s fuses, and nobody tests it",
                  kernel->name);
    return is;
}

/* SPS_TEST_KERNEL=name selects one kernel. */
static bool chosen(const sps_kernel *kernel)
{
    const char *only = getenv("SPS_TEST_KERNEL");

    return !only || !strcmp(only, kernel->name);
}

START_TEST(epilogues_are_exact_by_every_kernel)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (kernel->op == SPS_OP_SPMM && exact(kernel) && chosen(kernel))
            try_kernel(kernel);
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
    callback c = { ctx, twice, NULL };

    for (int64_t p = 0; p < A->nnz; p++) ((double *)A->val)[p] = 2;
    OK(ctx, sps_operator_user(ctx, A->nrow, callback_anywhere, &c, SPS_SPD,
                              &op));
    for (size_t t = 0; t < sizeof all / sizeof *all; t++)
        try_terms(op, A, 5, false, &all[t], "callback");
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(epilogues_are_exact_by_every_kernel),
    RUNNER_TEST(epilogues_of_callbacks_are_composed),
};
RUNNER_MAIN_WITHIN("fused", tests, open_context, close_context)
