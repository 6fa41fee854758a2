/* SPDX-License-Identifier: BSD-3-Clause */
/* check_row_plan.c - CSR-Adaptive on the GPU, plain and with hot columns: the
 * blocks and the column order that the device computes equal the host's; rows
 * longer than a block, divided among several workers, are summed exactly, with
 * the same bits at every run and in replayed graphs. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/image.h"
#include "cuda/plan/hot_plan.h"
#include "cuda/plan/row_plan.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"
#include "tests/problems/row_lengths.h"
#include "tests/support/runner.h"

static sps_context *ctx;
static const sps_kernel *kernel; /* the kernel under test */

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const char *const NAMES[] = { "spmv.adaptive", "spmv.hot" };

static void take_kernel(int which)
{
    const sps_kernel *k;

    kernel = NULL;
    for (int i = 0; (k = spsi_registry_kernel(ctx, i)); i++)
        if (!strcmp(k->name, NAMES[which])) kernel = k;
    ck_assert_ptr_nonnull(kernel);
}

/* A rig with a matrix of the test's own. */
static void open_rig(rig *r, const char *what, sps_csr *A)
{
    rig_take(r, ctx, what, A);
    ck_assert(rig_plan(r, kernel, 1));
}

/* Thresholds: lanes, a block of rows (256), the longest row of one warp (512
 * in matrices of this size, 1024 when none is longer), the entries of one
 * worker. */
static const int64_t EDGES[] = {
    0, 1, 31, 32, 33, 127, 128, 129, 255, 0, 256, 1, 257, 511, 513, 1023, 1024,
    255, 1025, 2048, 0, 0, 2049, 2, 10240, 10241, 100, 3, 90, 7, 5, 64, 65,
    40960, 254, 2, 1, 0, 255, 1
};

/* These lengths, alternating short and very long rows, and long sequences of
 * empty rows with a long last row. */
static sps_csr *edge_matrix(int which, bool whole)
{
    static const int64_t rare[] = { 1, 10000 }, tail[] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9000
    };

    switch (which) {
    case 0: return row_lengths_matrix(EDGES, COUNT(EDGES), 90, 50000, whole);
    case 1: return row_lengths_matrix(rare, 2, 300, 10001, whole);
    case 2: return row_lengths_matrix(tail, 23, 23 * 200, 9100, whole);
    default: return NULL;
    }
}

/* Enough entries that one warp processes rows of up to 2048 and of up to 4096:
 * rows of about one, two and ten times that length, with short ones in
 * between. */
static const struct large {
    int reach;
    int64_t entries;
} LARGE[] = { { 2048, 4500000 }, { 4096, 17000000 } };

static sps_csr *large_matrix(const struct large *of)
{
    const int64_t r = of->reach, list[] = {
        r - 1, 27, r, 3, r + 1, 0, 255, 2 * r - 1, 81, 2 * r + 1, 7, 10 * r
    };
    int64_t sum = 0;

    for (int i = 0; i < COUNT(list); i++) sum += list[i];
    return row_lengths_matrix(list, COUNT(list),
                              (of->entries + sum - 1) / sum * COUNT(list),
                              50000, true);
}

/* ------------------------------------------------------------------ tests */

static void same_blocks(const rig *r)
{
    const sps_row_plan *plan = (const sps_row_plan *)r->plan;
    const sps_row_blocks *b = &plan->blocks;
    sps_row_block *block = calloc((size_t)b->count + 1, sizeof *block);
    int64_t *part = calloc((size_t)b->longs + 1, sizeof *part);
    sps_row_blocks host;

    OK(ctx, spsi_row_blocks_make(ctx, r->A, &plan->rule, &host));
    ck_assert_msg(b->count == host.count && b->longs == host.longs &&
                  b->parts == host.parts, "%s: %lld blocks, not %lld",
                  r->what, (long long)b->count, (long long)host.count);
    if (b->count > 0) {
        OK(ctx, ctx->backend->download(ctx, block, b->block, (size_t)b->count
                                       * sizeof *block));
        OK(ctx, ctx->backend->download(ctx, part, b->part, (size_t)(b->longs +
                                       1) * sizeof *part));
        for (int64_t i = 0; i < b->count; i++)
            ck_assert_msg(!memcmp(&block[i], &host.block[i], sizeof *block),
                          "%s: block %lld", r->what, (long long)i);
        ck_assert(!memcmp(part, host.part,
                          (size_t)(b->longs + 1) * sizeof *part));
    }
    spsi_row_blocks_free(ctx, &host);
    free(block);
    free(part);
}

START_TEST(blocks_of_the_device_equal_those_of_the_host)
{
    static const int64_t sizes[] = { 0, 1, 32, 33, 70, 1024, 1025, 13000 };
    sps_csr *A;
    rig r;

    take_kernel(0);
    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < COUNT(sizes); s++) {
            rig_open(&r, ctx, f, sizes[s], ZOO_INTEGER, SPS_F64);
            ck_assert(rig_plan(&r, kernel, 1));
            same_blocks(&r);
            rig_wide(&r);
            ck_assert(rig_plan(&r, kernel, 1));
            same_blocks(&r);
            rig_close(&r);
        }
    for (int e = 0; (A = edge_matrix(e, true)); e++) {
        open_rig(&r, "edges", A);
        same_blocks(&r);
        rig_close(&r);
    }
}
END_TEST

static void same_columns(const rig *r)
{
    const sps_hot_plan *plan = (const sps_hot_plan *)r->plan;
    const sps_csr *A = r->A;
    const size_t columns = (size_t)A->ncol * sizeof(int32_t);
    const size_t entries = (size_t)A->nnz * sizeof(int32_t);
    int32_t *column = malloc(columns + 1), *col = malloc(entries + 1);
    sps_column_order order;
    int64_t held = 0;

    OK(ctx, spsi_column_order_make(ctx, A, &order));
    if (A->nnz > 0) {
        OK(ctx, ctx->backend->download(ctx, column, plan->columns.column,
                                       columns));
        OK(ctx, ctx->backend->download(ctx, col, plan->columns.col, entries));
        ck_assert_msg(!memcmp(column, order.column, columns), "%s: %lld "
                      "columns in another order", r->what,
                      (long long)A->ncol);
    }
    for (int64_t p = 0; p < A->nnz; p++) {
        ck_assert_int_eq(col[p], order.rank[A->col[p]]);
        held += col[p] < plan->near;
    }
    ck_assert_int_eq(held, plan->columns.held);
    spsi_column_order_free(ctx, &order);
    free(column);
    free(col);
}

/* Row marks, row indices, and the row in which each range begins. */
static void same_marks(const rig *r)
{
    const sps_hot_plan *plan = (const sps_hot_plan *)r->plan;
    const sps_csr *A = r->A;
    const int64_t words = spsi_row_heads_words(A->nnz);
    const size_t bytes = (size_t)A->nrow * sizeof(int32_t);
    uint64_t *heads = calloc((size_t)words + 1, sizeof *heads);
    int32_t *row = malloc(bytes + 1);
    int32_t *first = calloc((size_t)plan->ranges + 1, sizeof *first);
    int64_t rank = -1, at = 0;
    sps_row_heads host;

    if (A->nnz == 0) return;
    OK(ctx, spsi_row_heads_make(ctx, A, &host));
    ck_assert_int_eq(host.filled, plan->rows.filled);
    OK(ctx, ctx->backend->download(ctx, heads, plan->rows.heads,
                                   (size_t)words * sizeof *heads));
    OK(ctx, ctx->backend->download(ctx, row, plan->rows.row, bytes));
    OK(ctx, ctx->backend->download(ctx, first, plan->first,
                                   (size_t)plan->ranges * sizeof *first));
    ck_assert_msg(!memcmp(heads, host.heads, (size_t)words * sizeof *heads),
                  "%s: other marks", r->what);
    ck_assert_msg(!memcmp(row, host.row, bytes), "%s: other rows", r->what);
    for (int w = 0; w < plan->ranges; w++) {
        for (; at < w * plan->reach; at++)
            rank += host.heads[at / 64] >> at % 64 & 1;
        ck_assert_int_eq(first[w], rank);
    }
    ck_assert_int_ge(plan->ranges * plan->reach, A->nnz);
    spsi_row_heads_free(ctx, &host);
    free(heads);
    free(row);
    free(first);
}

START_TEST(marks_of_the_device_equal_those_of_the_host)
{
    static const int64_t sizes[] = { 1, 70, 1100, 13000 };
    sps_csr *A;
    rig r;

    take_kernel(1);
    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < COUNT(sizes); s++) {
            rig_open(&r, ctx, f, sizes[s], ZOO_INTEGER, SPS_F64);
            ck_assert(rig_plan(&r, kernel, 1));
            same_marks(&r);
            rig_close(&r);
        }
    for (int e = 0; (A = edge_matrix(e, true)); e++) {
        open_rig(&r, "edges", A);
        same_marks(&r);
        rig_close(&r);
    }
}
END_TEST

START_TEST(columns_of_the_device_stand_as_those_of_the_host)
{
    static const int64_t sizes[] = { 0, 1, 70, 1023, 1025, 40000 };
    rig r;

    take_kernel(1);
    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < COUNT(sizes); s++) {
            if (sizes[s] > 20000 && strcmp(zoo_name(f), "power_law")) continue;
            rig_open(&r, ctx, f, sizes[s], ZOO_INTEGER, SPS_F64);
            ck_assert(rig_plan(&r, kernel, 1));
            same_columns(&r);
            rig_close(&r);
        }
}
END_TEST

static void product(const rig *r, double alpha, const image *X, double beta,
                    image *Y)
{
    const sps_spmm_args args = { .alpha = alpha, .X = X->B, .beta = beta,
                                 .Y = Y->B };

    OK(ctx, kernel->spmm(r->plan, &args));
}

/* Old Y is NaN when beta = 0. */
static void exact(const rig *r, int layout, double alpha, double beta)
{
    const sps_csr *A = r->A;
    double *right = calloc((size_t)A->nrow + 1, sizeof *right);
    int64_t at;
    image X, Y;

    image_open(&X, ctx, A->ncol, 1, layout, 3, ZOO_INTEGER);
    image_open(&Y, ctx, A->nrow, 1, layout + 1, beta == 0.0 ? 0 : 5,
               ZOO_INTEGER);
    for (int64_t i = 0; i < A->nrow; i++) right[i] = Y.data[i * Y.ld];
    oracle_spmm(A, alpha, X.data, X.ld, beta, right, 1, 1, NULL);
    product(r, alpha, &X, beta, &Y);
    image_read(&Y, r->what);
    at = oracle_differs(A->nrow, 1, Y.out, Y.ld, right, 1);
    ck_assert_msg(at < 0, "%s: row %lld is %.17g, not %.17g", r->what,
                  (long long)at, Y.out[at * Y.ld], right[at]);
    image_close(&X);
    image_close(&Y);
    free(right);
}

START_TEST(rows_at_and_beyond_the_edges_are_exact)
{
    sps_csr *A;

    take_kernel(_i);
    for (int e = 0; (A = edge_matrix(e, true)); e++) {
        rig r;

        open_rig(&r, "edges", A);
        for (int layout = 0; layout < LAYOUTS; layout++) {
            if (layout == LAYOUTS - 1) {
                rig_wide(&r);
                ck_assert(rig_plan(&r, kernel, 1));
            }
            exact(&r, layout, 1.0, 0.0);
            exact(&r, layout, -2.0, 3.0);
            exact(&r, layout, 0.0, 2.0);
        }
        rig_close(&r);
    }
}
END_TEST

START_TEST(longer_reaches_have_blocks_and_sums_of_their_own)
{
    rig r;

    take_kernel(0);
    open_rig(&r, "many entries", large_matrix(&LARGE[_i]));
    ck_assert_int_eq(((const sps_row_plan *)r.plan)->rule.reach,
                     LARGE[_i].reach);
    for (int wide = 0; wide < 2; wide++) {
        same_blocks(&r);
        exact(&r, wide, 1.0, 0.0);
        exact(&r, wide, -2.0, 3.0);
        if (wide) continue;
        rig_wide(&r);
        ck_assert(rig_plan(&r, kernel, 1));
    }
    rig_close(&r);
}
END_TEST

/* All arrival counters are zero again, as the next run requires. */
static void nobody_waits(const rig *r)
{
    const sps_row_plan *plan = (const sps_row_plan *)r->plan;
    const bool hot = !strcmp(kernel->name, "spmv.hot");
    const int64_t count = hot ? 1 : plan->blocks.longs;
    const unsigned *from = hot ? ((const sps_hot_plan *)r->plan)->done
                               : plan->arrived;
    const size_t bytes = (size_t)count * sizeof(unsigned);
    unsigned *arrived = malloc(bytes + 1);

    ck_assert_int_gt(count, 0);
    OK(ctx, ctx->backend->download(ctx, arrived, from, bytes));
    for (int64_t i = 0; i < count; i++) ck_assert_uint_eq(arrived[i], 0);
    free(arrived);
}

START_TEST(a_hundred_runs_have_the_same_bits)
{
    sps_csr *A;

    take_kernel(_i);
    for (int e = 0; (A = edge_matrix(e, false)); e++) {
        const size_t bytes = (size_t)A->nrow * sizeof(double);
        double *first = malloc(bytes);
        image X, Y;
        rig r;

        open_rig(&r, "edges", A);
        image_open(&X, ctx, A->ncol, 1, 1, 3, ZOO_RANDOM);
        image_open(&Y, ctx, A->nrow, 1, 1, 0, ZOO_RANDOM);
        for (int run = 0; run < 100; run++) {
            product(&r, 1.0, &X, 0.0, &Y);
            image_read(&Y, "edges");
            if (run == 0) memcpy(first, Y.out, bytes);
            ck_assert_msg(!memcmp(first, Y.out, bytes), "run %d", run);
        }
        nobody_waits(&r);
        image_close(&X);
        image_close(&Y);
        free(first);
        rig_close(&r);
    }
}
END_TEST

START_TEST(a_replayed_product_has_the_bits_of_a_plain_one)
{
    sps_csr *A = edge_matrix(0, false);
    const size_t bytes = (size_t)A->nrow * sizeof(double);
    double *first = malloc(bytes);
    void *recording = NULL;
    image X, Y;
    rig r;

    take_kernel(_i);
    open_rig(&r, "edges", A);
    image_open(&X, ctx, A->ncol, 1, 1, 3, ZOO_RANDOM);
    image_open(&Y, ctx, A->nrow, 1, 1, 0, ZOO_RANDOM);
    product(&r, 1.0, &X, 0.0, &Y);
    image_read(&Y, "plain");
    memcpy(first, Y.out, bytes);
    OK(ctx, ctx->backend->record_begin(ctx));
    product(&r, 1.0, &X, 0.0, &Y);
    OK(ctx, ctx->backend->record_end(ctx, &recording));
    for (int run = 0; run < 5; run++) {
        image_upload(&Y);
        OK(ctx, ctx->backend->replay(ctx, recording));
        OK(ctx, ctx->backend->sync(ctx));
        image_read(&Y, "replayed");
        ck_assert_msg(!memcmp(first, Y.out, bytes), "replay %d", run);
    }
    ctx->backend->record_drop(ctx, recording);
    nobody_waits(&r);
    image_close(&X);
    image_close(&Y);
    free(first);
    rig_close(&r);
}
END_TEST

int main(void)
{
    Suite *s;
    TCase *t;

    if (runner_place() != SPS_CUDA) {
        fprintf(stderr, "skipped: plans of the GPU\n");
        return 77;
    }
    s = suite_create("row_plan");
    t = tcase_create("row_plan");
    tcase_set_timeout(t, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, blocks_of_the_device_equal_those_of_the_host);
    tcase_add_test(t, marks_of_the_device_equal_those_of_the_host);
    tcase_add_test(t, columns_of_the_device_stand_as_those_of_the_host);
    tcase_add_loop_test(t, rows_at_and_beyond_the_edges_are_exact, 0, 2);
    tcase_add_loop_test(t, longer_reaches_have_blocks_and_sums_of_their_own, 0,
                        COUNT(LARGE));
    tcase_add_loop_test(t, a_hundred_runs_have_the_same_bits, 0, 2);
    tcase_add_loop_test(t, a_replayed_product_has_the_bits_of_a_plain_one, 0,
                        2);
    suite_add_tcase(s, t);
    return runner_run(s);
}
