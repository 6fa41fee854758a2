/* SPDX-License-Identifier: BSD-3-Clause */
/* check_product_far_order.c - the order of copies, kernels and the host's work
 * in a product of sparse matrices by panels: it holds whatever is late, fails
 * as it must where a wait is left out, and ends with an error where a copy or
 * an allocation fails. */
#include "core/module.h"
#include "cuda/spgemm/csr_far_test.h"
#include "tests/conform/kernels/spgemm_fixture.h"
#include "tests/support/fail_alloc.h"

#define GPU_ONLY()                                                             \
    if (runner_place() == SPS_HOST)                                            \
    runner_leave_out("the host multiplies as a whole")

/* Tools of compute-sanitizer run kernels and copies one at a time, so that a
 * wait that is left out changes nothing. */
#define AT_ONCE_ONLY()                                                         \
    GPU_ONLY();                                                                \
    if (runner_quick()) runner_leave_out("needs kernels and copies at once")

/* Panels of A and C have as many rows each, all with ENTRIES entries, so that
 * the image of one is laid out as that of another, and a product with the wrong
 * one reads what exists. */
enum { ENTRIES = 16, PANEL = 1 << 20, ROWS = PANEL / 12 / ENTRIES,
       PANELS = 24 };

static sps_context *ctx;
static sps_csr *A, *B, *want;

static sps_status multiply(const sps_far_test *test, sps_csr **C_p)
{
    return ctx->module->multiply_far(ctx, A, B, test, C_p);
}

/* C = A D has the pattern of A. */
static void open_product(void)
{
    static const int32_t length[] = { ENTRIES };
    sps_context_options o;
    const int64_t n = ROWS * (int64_t)PANELS;

    if (runner_place() == SPS_HOST) return;
    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    OK(NULL, sps_context_create(&o, &ctx, NULL));
    A = zoo_rows(n, n, length, 1, 0, 5, ZOO_RANDOM, SPS_F64);
    B = zoo_matrix(zoo_find("diagonal"), n, 3, ZOO_RANDOM, SPS_F64);
    OK(ctx, spsi_backends[0]->csr_multiply(ctx, A, B, &want));
    ck_assert_int_eq(want->nnz, A->nnz);
}

static void close_product(void)
{
    if (!ctx) return;
    sps_csr_destroy(ctx, &want);
    zoo_free(&A);
    zoo_free(&B);
    fixture_close(&ctx);
}

static bool has_bits(const sps_csr *C)
{
    return C->nnz == want->nnz &&
           !memcmp(C->rowptr, want->rowptr,
                   (size_t)(C->nrow + 1) * sizeof *C->rowptr) &&
           !memcmp(C->col, want->col, (size_t)C->nnz * sizeof *C->col) &&
           !memcmp(C->val, want->val, (size_t)C->nnz * sizeof(double));
}

static bool right(sps_far_test test)
{
    sps_csr *C = NULL;
    bool same;

    test.panel = PANEL;
    OK(ctx, multiply(&test, &C));
    same = has_bits(C);
    sps_csr_destroy(ctx, &C);
    return same;
}

START_TEST(late_stages_and_spoilt_memory_change_no_bit)
{
    GPU_ONLY();
    for (unsigned late = 0; late <= SPS_FAR_HOST; late = late ? 2 * late : 1)
        for (int t = 0; t < 4; t += runner_quick() ? 3 : 1)
            ck_assert_msg(right((sps_far_test){
                .late = late, .poison = true, .alone = t % 2,
                .room = t / 2 ? 12 * (size_t)B->nnz : 0 }),
                "late %u, %d", late, t);
}
END_TEST

/* The memory of C has had other numbers before, so that rows that are missing
 * are noticed. */
static void leave_other_numbers(void)
{
    const sps_far_test test = { .alone = true };
    sps_csr *C = NULL;
    double *b = B->val;

    for (int64_t i = 0; i < B->nnz; i++) b[i] = -b[i];
    OK(ctx, multiply(&test, &C));
    sps_csr_destroy(ctx, &C);
    for (int64_t i = 0; i < B->nnz; i++) b[i] = -b[i];
}

static void check_wait(unsigned wait, unsigned late)
{
    leave_other_numbers();
    ck_assert(right((sps_far_test){ .late = late, .alone = true }));
    leave_other_numbers();
    ck_assert(!right((sps_far_test){ .omit = wait, .late = late,
                                     .alone = true }));
}

START_TEST(a_panel_that_is_sent_before_it_is_in_its_slot_is_noticed)
{
    AT_ONCE_ONLY();
    check_wait(SPS_FAR_ENTERED, SPS_FAR_ENTER);
}
END_TEST

START_TEST(rows_that_leave_before_they_are_computed_are_noticed)
{
    AT_ONCE_ONLY();
    check_wait(SPS_FAR_COMPUTED, SPS_FAR_PRODUCT);
}
END_TEST

START_TEST(rows_that_are_read_before_they_are_there_are_noticed)
{
    AT_ONCE_ONLY();
    check_wait(SPS_FAR_THERE, SPS_FAR_DOWN);
}
END_TEST

START_TEST(rows_that_replace_those_still_in_their_slot_are_noticed)
{
    AT_ONCE_ONLY();
    check_wait(SPS_FAR_LEFT, SPS_FAR_LEAVE);
}
END_TEST

/* One thread beside the caller has no time for both pieces of the last rows. */
START_TEST(a_product_that_ends_before_its_rows_have_left_is_noticed)
{
    AT_ONCE_ONLY();
    ctx->threads = 2;
    check_wait(SPS_FAR_DONE, SPS_FAR_LEAVE);
}
END_TEST

/* ---------------------------------------------------------------- failures */

START_TEST(every_copy_may_fail_and_nothing_is_lost)
{
    sps_csr *C = NULL;
    sps_status st = SPS_EDEVICE;
    const int step = runner_quick() ? 17 : 5;

    GPU_ONLY();
    leave_other_numbers();                   /* makes scratch */
    for (int64_t n = 0; st != SPS_OK; n += n < 10 ? 1 : step) {
        const size_t device = ctx->memory.device, host = ctx->memory.host;
        const sps_far_test test = { .panel = PANEL, .fail = n + 1,
                                    .room = n % 2 ? 0 : PANEL };

        ck_assert_int_lt(n, 1000);
        st = multiply(&test, &C);
        if (st == SPS_OK) break;
        ck_assert_int_eq(st, SPS_EDEVICE);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), " bytes"));
        ck_assert_ptr_null(C);
        ck_assert_uint_eq(ctx->memory.device, device);
        ck_assert_uint_eq(ctx->memory.host, host);
    }
    ck_assert(has_bits(C));
    sps_csr_destroy(ctx, &C);
    ck_assert(right((sps_far_test){ .alone = true }));
}
END_TEST

/* Without memory for its own rows the host leaves them to the GPU. */
START_TEST(every_host_allocation_may_fail_and_nothing_is_lost)
{
    sps_context_options o;
    fail_alloc f = { .allowed = -1 };
    sps_context *all = ctx;
    int failures = 0;

    GPU_ONLY();
    sps_context_options_default(&o);
    o.place = SPS_CUDA;
    o.host = fail_alloc_host(&f);
    OK(NULL, sps_context_create(&o, &ctx, NULL));
    leave_other_numbers();                   /* makes scratch */
    for (long n = 0; n < 1000; n++) {
        const sps_far_test test = { .panel = PANEL,
                                    .room = n % 2 ? 0 : PANEL };
        const long live = f.live;
        sps_csr *C = NULL;
        sps_status st;

        fail_alloc_allow(&f, n / 2);
        st = multiply(&test, &C);
        fail_alloc_allow(&f, -1);
        if (st == SPS_OK) {
            ck_assert(has_bits(C));
            sps_csr_destroy(ctx, &C);
            if (n % 2 == 0) break;
            continue;
        }
        failures++;
        ck_assert_int_eq(st, SPS_ENOMEM);
        ck_assert_ptr_nonnull(strstr(sps_context_error(ctx), " bytes"));
        ck_assert_ptr_null(C);
        ck_assert_int_eq(f.live, live);
    }
    ck_assert_int_gt(failures, 10);
    sps_context_destroy(&ctx);
    ck_assert_int_eq(f.live, 0);
    ck_assert_int_eq(f.mismatches, 0);
    ctx = all;
}
END_TEST

/* ------------------------------------------------------------------- parts */

/* Rows of A may name more of B than there is room for. */
START_TEST(parts_on_the_gpu_have_the_bits_of_the_host)
{
    const int64_t n = runner_quick() ? 200 : 900;

    GPU_ONLY();
    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 4; t += runner_quick() ? 3 : 1) {
            const sps_dtype type = t % 2 ? SPS_F32 : SPS_F64;
            sps_csr *a = zoo_shape(f, n + 9, n, 7, ZOO_RANDOM, type);
            sps_csr *b = zoo_shape(f, n, n + 5, 8, ZOO_RANDOM, type);
            sps_csr *C = NULL, *c = NULL;
            const sps_far_test test = {
                .poison = true,
                .room = 1000 + (size_t)b->nnz * (t / 2 ? 5 : 1) };
            sps_status st;

            OK(ctx, spsi_backends[0]->csr_multiply(ctx, a, b, &c));
            st = ctx->module->multiply_far(ctx, a, b, &test, &C);
            if (st == SPS_OK) same_matrix(C, c, zoo_name(f));
            else ck_assert_int_eq(st, SPS_EDEVMEM);
            sps_csr_destroy(ctx, &C);
            sps_csr_destroy(ctx, &c);
            zoo_free(&a);
            zoo_free(&b);
        }
}
END_TEST

/* B is twice as large as what may be taken of the GPU. */
START_TEST(the_gpu_multiplies_by_a_matrix_that_it_cannot_hold)
{
    const int64_t n = 1500000;
    sps_csr *grid, *C = NULL, *c = NULL;
    int64_t sent;

    GPU_ONLY();
    if (runner_quick()) runner_leave_out("a matrix of 130 MB");
    grid = zoo_matrix(zoo_find("grid7"), n, 3, ZOO_RANDOM, SPS_F64);
    OK(ctx, spsi_backends[0]->csr_multiply(ctx, grid, grid, &c));
    ctx->opt.max_device_bytes = ctx->memory.device +
                                6 * (size_t)grid->nnz;
    sent = ctx->memory.to_device;
    OK(ctx, sps_csr_multiply(ctx, grid, grid, &C));
    ck_assert_int_ge(ctx->memory.to_device - sent, 12 * grid->nnz);
    ck_assert_uint_le(ctx->memory.device_peak, ctx->opt.max_device_bytes);
    same_matrix(C, c, "a grid squared");
    ctx->opt.max_device_bytes = 0;
    sps_csr_destroy(ctx, &C);
    sps_csr_destroy(ctx, &c);
    zoo_free(&grid);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(late_stages_and_spoilt_memory_change_no_bit),
    RUNNER_TEST(a_panel_that_is_sent_before_it_is_in_its_slot_is_noticed),
    RUNNER_TEST(rows_that_leave_before_they_are_computed_are_noticed),
    RUNNER_TEST(rows_that_are_read_before_they_are_there_are_noticed),
    RUNNER_TEST(rows_that_replace_those_still_in_their_slot_are_noticed),
    RUNNER_TEST(a_product_that_ends_before_its_rows_have_left_is_noticed),
    RUNNER_TEST(every_copy_may_fail_and_nothing_is_lost),
    RUNNER_TEST(every_host_allocation_may_fail_and_nothing_is_lost),
    RUNNER_TEST(parts_on_the_gpu_have_the_bits_of_the_host),
    RUNNER_TEST(the_gpu_multiplies_by_a_matrix_that_it_cannot_hold),
};
RUNNER_MAIN_WITHIN("product_far_order", tests, open_product, close_product)
