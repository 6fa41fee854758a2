/* SPDX-License-Identifier: BSD-3-Clause */
/* check_stream.c - matrices beyond the memory that a context may take of its
 * GPU: products and solvers have the bits of those of a matrix on the GPU, what
 * is taken stays below the limit, and failures lose nothing. */
#include <math.h>
#include <stdio.h>

#include "tests/check/operator/stream_fixture.h"
#include "tests/support/fail_alloc.h"

/* ------------------------------------------------------------------ limits */

START_TEST(a_limit_of_device_memory_is_kept_and_named)
{
    sps_context_info info = { .struct_size = sizeof info };
    sps_block *X = NULL;

    GPU_ONLY();
    limit(1 << 20);
    OK(ctx, sps_context_information(ctx, &info));
    ck_assert_uint_le(info.device_free, 1 << 20);
    ck_assert_int_eq(sps_block_create(ctx, 1 << 20, 1, &X), SPS_EDEVMEM);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "max_device_bytes"));
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "8388608 bytes"));
    OK(ctx, sps_block_create(ctx, 1 << 16, 1, &X));
    sps_block_destroy(&X);
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
}
END_TEST

/* ---------------------------------------------------------------- products */

/* Far, with residents and without, and near, where everything is streamed. */
static void judge(sps_csr *A, int k, const char *right, size_t panels)
{
    sps_operator *want = operator_with(near, A, k, right);
    sps_operator *op;

    limit_for(A, k, panels);
    op = operator_with(ctx, A, k, "auto");
    ck_assert(op->local.far && op->vector == op->block);
    ck_assert_uint_gt(streaming(op)->super.streamed, 0);
    products_are(op, want, k, 3);
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    sps_operator_destroy(&op);
    op = operator_with(near, A, k, "spmm.stream");
    ck_assert(!op->local.far && streaming(op)->resident == 0);
    products_are(op, want, k, 3);
    sps_operator_destroy(&op);
    sps_operator_destroy(&want);
}

START_TEST(streamed_products_have_the_bits_of_the_plain_kernel)
{
    static const int64_t elastic[] = { 81, 300 };
    static const int64_t mixed[] = { 0, 7, 1, 27, 0, 1024 };
    static const int ks[] = { 1, 2, 3, 4, 16, 33 };
    sps_csr *A, *B;

    GPU_ONLY();
    A = matrix(elastic, 2, 20000, 20000);
    B = matrix(mixed, 6, 12000, 15000);
    for (int i = 0; i < 6; i += runner_quick() ? 3 : 1) {
        judge(A, ks[i], "spmm.plain", (size_t)6 << 20);
        judge(B, ks[i], "spmm.plain", (size_t)1 << 20);
    }
    zoo_free(&A);
    zoo_free(&B);
}
END_TEST

START_TEST(long_rows_have_the_same_bits_in_panels_of_any_number)
{
    static const int64_t lengths[] = { 3, 0, 30000, 1025, 0, 9, 2048, 200000 };
    sps_csr *A;
    sps_operator *one, *far;
    double *exact, *y;

    GPU_ONLY();
    A = matrix(lengths, 8, 200, 200000);
    one = operator_with(near, A, 5, "spmm.stream");
    ck_assert_int_gt(streaming(one)->longs.rows, 0);
    limit_for(A, 5, (size_t)700 << 10);
    far = operator_with(ctx, A, 5, "auto");
    ck_assert_int_gt(streaming(far)->panels, 32);
    products_are(far, one, 5, 3);
    sps_operator_destroy(&one);
    one = operator_with(near, A, 5, "spmm.plain");
    exact = product(one, 5);
    y = product(far, 5);
    for (int64_t e = 0; e < 5 * A->nrow; e++)
        ck_assert(fabs(y[e] - exact[e]) <= 1e-11);
    free(exact);
    free(y);
    sps_operator_destroy(&one);
    sps_operator_destroy(&far);
    zoo_free(&A);
}
END_TEST

START_TEST(panels_stay_large_where_blocks_leave_no_room)
{
    static const int64_t lengths[] = { 200 };
    sps_operator *far, *want;
    sps_block *X[14] = { 0 };
    sps_csr *A;

    GPU_ONLY();
    A = matrix(lengths, 1, 20000, 20000);
    want = operator_with(near, A, 4, "spmm.plain");
    limit_for(A, 4, 0);
    far = operator_with(ctx, A, 4, "auto");
    ck_assert_uint_ge(streaming(far)->room, 1 << 20);
    products_are(far, want, 4, 2);
    for (int i = 0; i < 14; i++)         /* twelve, and most of 4 MB */
        OK(ctx, sps_block_create(ctx, i < 12 ? A->nrow : 240000,
                                 i < 12 ? 4 : 1, &X[i]));
    for (int i = 0; i < 14; i++) sps_block_destroy(&X[i]);
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    sps_operator_destroy(&far);
    sps_operator_destroy(&want);
    zoo_free(&A);
}
END_TEST

START_TEST(all_sorts_of_values_and_columns_have_the_same_bits)
{
    static const int64_t lengths[] = { 80, 20, 0, 160 };

    GPU_ONLY();
    for (int sort = 0; sort < 4; sort++) {
        const int64_t n = runner_quick() ? 20000 : 40000;
        sps_csr *A = matrix(lengths, 4, n, 60000);
        double *v = A->val;

        for (int64_t e = 0; e < A->nnz; e++) {
            if (sort == 0) v[e] = (double)(float)v[e];
            if (sort == 1) v[e] = 1.0 / (double)(1 + e % 250);
        }
        for (int64_t i = 0; sort == 2 && i < A->nrow; i++)
            for (int64_t e = A->rowptr[i]; e < A->rowptr[i + 1]; e++)
                A->col[e] = (int32_t)((e - A->rowptr[i]) * 373 + i % 90);
        judge(A, 4, "spmm.plain", (size_t)1 << 20);
        zoo_free(&A);
    }
}
END_TEST

START_TEST(new_values_are_streamed_from_host_and_gpu)
{
    static const int64_t lengths[] = { 30 };
    sps_operator *op, *want;
    sps_csr *A, *B, *D = NULL;
    double *v;

    GPU_ONLY();
    A = matrix(lengths, 1, 30000, 30000);
    B = matrix(lengths, 1, 30000, 30000);
    v = B->val;
    for (int64_t e = 0; e < B->nnz; e++) v[e] = 2.0 - (double)(e % 7);
    want = operator_with(near, B, 4, "spmm.plain");
    limit_for(A, 4, (size_t)2 << 20);
    op = operator_with(ctx, A, 4, "auto");
    OK(ctx, sps_operator_set_values(op, B->val, SPS_HOST));
    products_are(op, want, 4, 2);
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    OK(ctx, sps_operator_set_values(op, A->val, SPS_HOST));
    limit((size_t)1 << 30);
    OK(ctx, spsi_csr_upload(ctx, B, &D));
    OK(ctx, sps_operator_set_values(op, D->val, SPS_CUDA));
    products_are(op, want, 4, 2);
    sps_csr_destroy(ctx, &D);
    sps_operator_destroy(&op);
    sps_operator_destroy(&want);
    zoo_free(&A);
    zoo_free(&B);
}
END_TEST

/* ---------------------------------------------------------------- failures */

static struct {
    sps_backend table;
    const sps_backend *real;
    int64_t allowed;
} pinning;

static sps_status share_some(sps_context *c, size_t bytes, void **p_p)
{
    if (pinning.allowed-- > 0) return pinning.real->share(c, bytes, p_p);
    return spsi_fail(c, SPS_ENOMEM, "no %zu bytes of page-locked host memory",
                     bytes);
}

static void allow_pinning(int64_t calls)
{
    if (!pinning.real) {
        pinning.real = ctx->backend;
        pinning.table = *ctx->backend;
        pinning.table.share = share_some;
    }
    ctx->backend = &pinning.table;
    pinning.allowed = calls;
}

START_TEST(memory_that_cannot_be_pinned_is_an_error_with_bytes)
{
    static const int64_t lengths[] = { 30 };
    sps_operator *op = NULL;
    sps_options o;
    sps_csr *A;
    int64_t calls = 0;
    sps_status st = SPS_ENOMEM;

    GPU_ONLY();
    A = matrix(lengths, 1, 30000, 30000);
    sps_options_default(&o);
    o.kernel = "spmm.stream";
    for (; st != SPS_OK; calls++) {
        const size_t before = ctx->memory.host, device = ctx->memory.device;

        ck_assert_int_lt(calls, 50);
        limit_for(A, 4, (size_t)2 << 20);
        allow_pinning(calls);
        st = sps_operator_csr(ctx, A, 4, &o, &op);
        if (st == SPS_OK) continue;
        ck_assert_int_eq(st, SPS_ENOMEM);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "bytes"));
        ck_assert_ptr_null(op);
        ck_assert_uint_eq(ctx->memory.device, device);
        ck_assert_uint_le(ctx->memory.host, before + 4096);
    }
    ck_assert_int_ge(calls, 5);
    sps_operator_destroy(&op);
    ctx->backend = pinning.real;
    zoo_free(&A);
}
END_TEST

/* Where the panels cannot be pinned, the matrix is read over the link. */
START_TEST(without_pinned_panels_the_plain_kernel_reads_over_the_link)
{
    static const int64_t lengths[] = { 30 };
    sps_operator *op, *want;
    sps_csr *A;

    GPU_ONLY();
    A = matrix(lengths, 1, 30000, 30000);
    want = operator_with(near, A, 4, "spmm.plain");
    limit_for(A, 4, (size_t)2 << 20);
    allow_pinning(4);
    op = operator_with(ctx, A, 4, "auto");
    ck_assert_str_eq(op->block->kernel->name, "spmm.plain");
    products_are(op, want, 4, 1);
    sps_operator_destroy(&op);
    sps_operator_destroy(&want);
    ctx->backend = pinning.real;
    zoo_free(&A);
}
END_TEST

START_TEST(every_device_allocation_may_fail_and_nothing_is_lost)
{
    static const int64_t lengths[] = { 30, 3000 };
    sps_context_options co;
    fail_alloc f = { .allowed = -1 };
    sps_context *c = NULL;
    sps_operator *op = NULL;
    sps_options o;
    sps_csr *A;
    sps_status st = SPS_EDEVMEM;

    GPU_ONLY();
    A = matrix(lengths, 2, 2000, 30000);
    sps_context_options_default(&co);
    co.place = SPS_CUDA;
    co.gpu = fail_alloc_device(&f);
    OK(NULL, sps_context_create(&co, &c, NULL));
    sps_options_default(&o);
    o.kernel = "spmm.stream";
    for (long n = 0; st != SPS_OK; n++) {
        const long live = f.live;

        ck_assert_int_lt(n, 60);
        c->opt.max_device_bytes = c->memory.device +
                                  spsi_blocks_room(A->nrow, 4) + (10 << 20);
        fail_alloc_allow(&f, n);
        st = sps_operator_csr(c, A, 4, &o, &op);
        ck_assert(st == SPS_OK || st == SPS_EDEVMEM);
        if (st == SPS_OK) continue;
        ck_assert_ptr_nonnull(strstr(sps_context_error(c), "bytes"));
        ck_assert_int_eq(f.live, live);
    }
    sps_operator_destroy(&op);
    sps_context_destroy(&c);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.mismatches, 0);
    zoo_free(&A);
}
END_TEST

/* Each copy of a product fails in turn; the products after it are right,
 * with the same memory. */
START_TEST(every_copy_of_a_product_may_fail_and_nothing_is_lost)
{
    static const int64_t lengths[] = { 30 };
    sps_block *X, *Y;
    sps_operator *op, *want;
    sps_csr *A;

    GPU_ONLY();
    A = matrix(lengths, 1, 60000, 60000);
    want = operator_with(near, A, 2, "spmm.plain");
    limit_for(A, 2, (size_t)2 << 20);
    op = operator_with(ctx, A, 2, "auto");
    X = fixture_block(ctx, op->ncol, 2, NULL, 0);
    Y = fixture_block(ctx, op->n, 2, NULL, 0);
    for (int share = -1; share <= 2; share += 3) {
        sps_stream_test *test = &streaming(op)->test;
        const size_t device = ctx->memory.device, host = ctx->memory.host;

        test->share = share;
        for (int64_t n = 1;; n += runner_quick() ? 6 : 1) {
            test->fail = n;
            if (sps_operator_apply(op, 1.0, X, 0.0, Y) == SPS_OK) break;
            ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), " bytes"));
            ck_assert_int_eq(test->fail, 0);
            products_are(op, want, 2, 2);
        }
        ck_assert_int_gt(test->fail, 0);
        ck_assert_int_eq(streaming(op)->shared, share < 0 ? 0 : share);
        ck_assert_uint_eq(ctx->memory.device, device);
        ck_assert_uint_eq(ctx->memory.host, host);
        test->fail = 0;
    }
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_operator_destroy(&op);
    sps_operator_destroy(&want);
    zoo_free(&A);
}
END_TEST

/* ----------------------------------------------------------------- solvers */

START_TEST(solvers_have_the_bits_of_a_matrix_on_the_gpu)
{
    static const char *const solvers[] = { "block_cg", "gmres", "bicgstab" };
    sps_csr *A;

    GPU_ONLY();
    A = band(20000);
    for (int s = 0; s < 3; s++) {
        answer right = solve(near, A, 4, solvers[s], "spmm.plain"), far;

        limit_for(A, 4, (size_t)5 << 20);
        far = solve(ctx, A, 4, solvers[s], "auto");
        ck_assert_int_eq(right.result.stop, SPS_STOP_CONVERGED);
        ck_assert_int_eq(far.result.stop, SPS_STOP_CONVERGED);
        ck_assert_int_eq(far.result.iterations, right.result.iterations);
        ck_assert_msg(same(far.x, right.x, 4 * A->nrow), "%s: other bits",
                      solvers[s]);
        ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
        free(right.x);
        free(far.x);
        ctx->opt.max_device_bytes = 0;
    }
    zoo_free(&A);
}
END_TEST

/* X of A X = B by block_cg, whose blocks are all within the limit. */
static double *conjugate(sps_operator *op, const char *precond)
{
    sps_context *c = op->ctx;
    double *x = malloc((size_t)op->n * 16 * sizeof *x);
    sps_block *B = fixture_block(c, op->n, 16, NULL, 0);
    sps_block *X = fixture_block(c, op->n, 16, NULL, 0);
    sps_result result = { .struct_size = sizeof result };
    sps_solver *s = NULL;
    sps_options o;

    sps_options_default(&o);
    o.solver = "block_cg";
    o.precond = precond;
    OK(c, sps_block_random(B, 5));
    OK(c, sps_solver_create(op, NULL, 16, &o, &s));
    OK(c, sps_solver_linear(s, B, X, &result));
    ck_assert_int_eq(result.stop, SPS_STOP_CONVERGED);
    OK(c, sps_block_get(X, 0, 16, x, 16, SPS_ROW_MAJOR, SPS_HOST));
    sps_solver_destroy(&s);
    sps_block_destroy(&X);
    sps_block_destroy(&B);
    return x;
}

static sps_operator *for_conjugate(sps_csr *A, const char *precond)
{
    sps_operator *op = NULL;
    sps_options o;

    sps_options_default(&o);
    o.solver = "block_cg";
    o.precond = precond;
    OK(ctx, sps_operator_csr(ctx, A, 16, &o, &op));
    return op;
}

/* The memory of A, and of so many blocks of 16 columns and 4 MB. */
static void limit_to(const sps_csr *A, int blocks)
{
    limit(12 * (size_t)A->nnz + 8 * ((size_t)A->nrow + 1) + ((size_t)4 << 20) +
          (size_t)blocks * (size_t)A->nrow * 16 * sizeof(double));
}

/* Seven blocks are too few for any solver, and enough for block_cg with B and
 * the best iterate in host memory. */
START_TEST(conjugate_gradients_by_name_leave_the_matrix_on_the_gpu)
{
    sps_operator *op, *right;
    double *x, *want;
    sps_csr *A;

    GPU_ONLY();
    A = band(60000);
    limit_to(A, 7);
    op = operator_with(ctx, A, 16, "auto");
    ck_assert(op->local.far);
    sps_operator_destroy(&op);
    op = for_conjugate(A, "jacobi");
    ck_assert(!op->local.far);
    x = conjugate(op, "jacobi");
    ck_assert(fixture_noted(ctx, "kept in host memory"));
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    right = operator_with(near, A, 16, op->block->kernel->name);
    want = conjugate(right, "jacobi");
    ck_assert(same(x, want, 16 * A->nrow));
    free(x);
    free(want);
    sps_operator_destroy(&op);
    sps_operator_destroy(&right);
    zoo_free(&A);
}
END_TEST

START_TEST(conjugate_gradients_by_name_leave_more_panels_on_the_gpu)
{
    static const char *const name[] = { "jacobi", "chebyshev", "auto" };
    sps_csr *A;

    GPU_ONLY();
    A = band(60000);
    for (int i = 0; i < 3; i++) {
        sps_operator *op;
        size_t streamed;
        double *x;

        limit_to(A, 5);
        op = operator_with(ctx, A, 16, "auto");
        streamed = streaming(op)->super.streamed;
        sps_operator_destroy(&op);
        op = for_conjugate(A, name[i]);
        ck_assert_uint_lt(streaming(op)->super.streamed, streamed);
        x = conjugate(op, name[i]);
        ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
        free(x);
        sps_operator_destroy(&op);
    }
    zoo_free(&A);
}
END_TEST

/* Plans that copy A must not take the memory of the blocks: X, B, and six
 * others. */
START_TEST(blocks_have_room_beside_the_plans_of_a_matrix)
{
    int copied = 0;

    GPU_ONLY();
    for (int i = 0; i < 2; i++) {
        static const int64_t lengths[] = { 81 };
        sps_csr *A = i ? matrix(lengths, 1, 60000, 60000) : band(60000);
        sps_operator *op = operator_with(near, A, 16, "auto");
        sps_block *X[8] = { 0 };
        const size_t plans = op->block->bytes + op->vector->bytes;

        sps_operator_destroy(&op);
        limit_to(A, 8);
        ctx->opt.max_device_bytes += plans / 2;
        op = operator_with(ctx, A, 16, "auto");
        ck_assert(!op->local.far);
        for (int b = 0; b < 8; b++)
            OK(ctx, sps_block_create(ctx, A->nrow, 16, &X[b]));
        for (int b = 0; b < 8; b++) sps_block_destroy(&X[b]);
        copied += plans > (size_t)A->nrow * 16 * sizeof(double);
        sps_operator_destroy(&op);
        zoo_free(&A);
    }
    ck_assert_int_gt(copied, 0);
}
END_TEST

START_TEST(multigrid_is_refused_where_the_matrix_has_no_room)
{
    sps_precond *M = NULL;
    sps_operator *op;
    sps_options o;
    sps_csr *A;

    GPU_ONLY();
    A = band(20000);
    limit_for(A, 4, (size_t)5 << 20);
    op = operator_with(ctx, A, 4, "auto");
    sps_options_default(&o);
    o.precond = "amg";
    ck_assert_int_eq(sps_precond_create(op, 4, &o, &M), SPS_EUNFIT);
    ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "no room for it"));
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

START_TEST(what_is_resident_and_streamed_is_told)
{
    static const int64_t lengths[] = { 30 };
    sps_operator *op;
    char text[8192], want[128];
    sps_csr *A;

    GPU_ONLY();
    A = matrix(lengths, 1, 30000, 30000);
    limit_for(A, 4, (size_t)2 << 20);
    op = operator_with(ctx, A, 4, "auto");
    sps_operator_describe(op, text, sizeof text);
    ck_assert_uint_gt(op->block->resident, 0);
    snprintf(want, sizeof want, "%zu bytes stay on the GPU, %zu are copied "
             "there in each product; predicted", op->block->resident,
             op->block->streamed);
    ck_assert_msg(strstr(text, want) != NULL, "%s", text);
    ck_assert(fixture_noted(ctx, "stays in host memory"));
    sps_operator_destroy(&op);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(a_limit_of_device_memory_is_kept_and_named),
    RUNNER_TEST(streamed_products_have_the_bits_of_the_plain_kernel),
    RUNNER_TEST(long_rows_have_the_same_bits_in_panels_of_any_number),
    RUNNER_TEST(panels_stay_large_where_blocks_leave_no_room),
    RUNNER_TEST(all_sorts_of_values_and_columns_have_the_same_bits),
    RUNNER_TEST(new_values_are_streamed_from_host_and_gpu),
    RUNNER_TEST(memory_that_cannot_be_pinned_is_an_error_with_bytes),
    RUNNER_TEST(without_pinned_panels_the_plain_kernel_reads_over_the_link),
    RUNNER_TEST(every_device_allocation_may_fail_and_nothing_is_lost),
    RUNNER_TEST(every_copy_of_a_product_may_fail_and_nothing_is_lost),
    RUNNER_TEST(solvers_have_the_bits_of_a_matrix_on_the_gpu),
    RUNNER_TEST(conjugate_gradients_by_name_leave_the_matrix_on_the_gpu),
    RUNNER_TEST(conjugate_gradients_by_name_leave_more_panels_on_the_gpu),
    RUNNER_TEST(blocks_have_room_beside_the_plans_of_a_matrix),
    RUNNER_TEST(multigrid_is_refused_where_the_matrix_has_no_room),
    RUNNER_TEST(what_is_resident_and_streamed_is_told),
};
RUNNER_MAIN_WITHIN("stream", tests, open_contexts, close_contexts)
