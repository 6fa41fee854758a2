/* SPDX-License-Identifier: BSD-3-Clause */
/* check_product_far.c - C = A B on the GPU for matrices in host memory, by
 * panels of rows: the bits are those of the host in panels of any number, and
 * failures lose nothing. */
#include "tests/conform/kernels/spgemm_fixture.h"
#include "tests/support/fail_alloc.h"

#define GPU_ONLY()                                                             \
    if (runner_place() == SPS_HOST)                                            \
    runner_leave_out("the host multiplies as a whole")

static void multiply_far(sps_context *ctx, const sps_csr *A, const sps_csr *B,
                         const char *what)
{
    sps_csr *C = NULL, *want = NULL;

    OK(ctx, ctx->backend->csr_multiply(ctx, A, B, &C));
    OK(ctx, spsi_backends[0]->csr_multiply(ctx, A, B, &want));
    ck_assert_int_eq((int)C->place, SPS_HOST);
    ck_assert(C->props & SPS_SORTED);
    same_matrix(C, want, what);
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &want);
}

/* Limits ctx to B and `more` bytes. */
static void limit(sps_context *ctx, const sps_csr *B, size_t more)
{
    ctx->opt.max_device_bytes = ctx->memory.device + 12 * (size_t)B->nnz +
                                8 * (size_t)(B->nrow + 1) + more;
}

START_TEST(products_of_the_zoo_have_the_bits_of_the_host)
{
    static const size_t more[] = { 0, (size_t)1 << 20, (size_t)1 << 23 };
    const int64_t n[] = { 0, 1, runner_quick() ? 200 : 900 };
    sps_context *ctx;

    GPU_ONLY();
    ctx = runner_context();
    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 3 * 3 * 2; t++) {
            const int64_t size = n[t % 3];
            const sps_dtype type = t / 9 ? SPS_F32 : SPS_F64;
            sps_csr *A = zoo_shape(f, size + 9, size, 7, ZOO_RANDOM, type);
            sps_csr *B = zoo_shape(f, size, size + 5, 8, ZOO_RANDOM, type);

            ctx->opt.max_device_bytes = 0;
            if (more[t / 3 % 3]) limit(ctx, B, more[t / 3 % 3]);
            multiply_far(ctx, A, B, zoo_name(f));
            zoo_free(&A);
            zoo_free(&B);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* Panels of all lengths down to a few rows. */
START_TEST(a_large_product_takes_little_of_the_gpu)
{
    static const int32_t length[] = { 8, 0, 30, 1, 400, 12, 25, 81 };
    const int64_t n = runner_quick() ? 500 : 5000;
    sps_context *ctx;
    sps_csr *A, *B;

    GPU_ONLY();
    ctx = runner_context();
    A = zoo_rows(n, n, length, 8, 0, 5, ZOO_RANDOM, SPS_F64);
    B = zoo_matrix(zoo_find("grid7"), n, 3, ZOO_RANDOM, SPS_F64);
    for (size_t more = (size_t)1 << 20; more <= (size_t)64 << 20; more *= 8) {
        limit(ctx, B, more);
        multiply_far(ctx, A, B, "rows of all lengths");
        ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    }
    zoo_free(&A);
    zoo_free(&B);
    sps_context_destroy(&ctx);
}
END_TEST

/* The caller's product takes the GPU, and the host where that has no room. */
START_TEST(the_product_of_the_caller_is_the_same_with_and_without_room)
{
    const int64_t n = 500000;
    sps_context *ctx;
    sps_csr *A, *C = NULL, *want = NULL;

    GPU_ONLY();
    if (runner_quick()) runner_leave_out("a matrix of 64 MB");
    ctx = runner_context();
    A = zoo_matrix(zoo_find("grid7"), n, 3, ZOO_RANDOM, SPS_F64);
    ck_assert_int_ge(24 * A->nnz, (int64_t)64 << 20);
    OK(ctx, spsi_backends[0]->csr_multiply(ctx, A, A, &want));
    for (int room = 0; room < 2; room++) {
        const int64_t sent = ctx->memory.to_device;

        ctx->opt.max_device_bytes = room ? 0 : ctx->memory.device + 1000;
        OK(ctx, sps_csr_multiply(ctx, A, A, &C));
        same_matrix(C, want, "the caller's product");
        ck_assert((ctx->memory.to_device - sent >= 12 * A->nnz) == (room > 0));
        sps_csr_destroy(ctx, &C);
    }
    sps_csr_destroy(ctx, &want);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(every_device_allocation_may_fail_and_nothing_is_lost)
{
    sps_context_options co;
    fail_alloc f = { .allowed = -1 };
    sps_context *ctx = NULL;
    sps_csr *A, *C = NULL;
    sps_status st = SPS_EDEVMEM;

    GPU_ONLY();
    A = zoo_matrix(zoo_find("grid7"), 3000, 3, ZOO_RANDOM, SPS_F64);
    sps_context_options_default(&co);
    co.place = SPS_CUDA;
    co.gpu = fail_alloc_device(&f);
    OK(NULL, sps_context_create(&co, &ctx, NULL));
    for (long n = 0; st != SPS_OK; n++) {
        const long live = f.live;
        const size_t host = ctx->memory.host;

        ck_assert_int_lt(n, 200);
        limit(ctx, A, (size_t)1 << 20);
        fail_alloc_allow(&f, n);
        st = ctx->backend->csr_multiply(ctx, A, A, &C);
        if (st == SPS_OK) continue;
        ck_assert_int_eq(st, SPS_EDEVMEM);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), "bytes"));
        ck_assert_int_eq(f.live, live);
        ck_assert_uint_eq(ctx->memory.host, host);
    }
    sps_csr_destroy(ctx, &C);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.mismatches, 0);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(products_of_the_zoo_have_the_bits_of_the_host),
    RUNNER_TEST(a_large_product_takes_little_of_the_gpu),
    RUNNER_TEST(the_product_of_the_caller_is_the_same_with_and_without_room),
    RUNNER_TEST(every_device_allocation_may_fail_and_nothing_is_lost),
};
RUNNER_MAIN("product_far", tests)
