/* SPDX-License-Identifier: BSD-3-Clause */
/* check_scan.c - prefix sums on the device, used by the builders of plans:
 * exact at the boundaries of warps and tiles, and in 64 bits. */
#include <check.h>

#include "core/backend.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

enum { GUARD = 7 }; /* entries behind the result that must not change */

static uint32_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Counts below limit, every third of them 0. */
static void try(sps_context *ctx, int64_t n, uint32_t limit)
{
    const sps_backend *b = ctx->backend;
    const size_t count_bytes = (size_t)n * sizeof(int32_t);
    const size_t bytes = (size_t)(n + 1 + GUARD) * sizeof(int64_t);
    int32_t *count = malloc(count_bytes + 1);
    int64_t *offset = malloc(bytes), sum = 0;
    uint64_t state = (uint64_t)n + limit;
    void *d_count, *d_offset;

    for (int64_t i = 0; i < n; i++)
        count[i] = i % 3 == 1 ? 0 : (int32_t)(next(&state) % limit);
    for (int64_t i = 0; i < n + 1 + GUARD; i++) offset[i] = -1;
    OK(ctx, b->alloc(ctx, count_bytes, &d_count));
    OK(ctx, b->alloc(ctx, bytes, &d_offset));
    OK(ctx, b->upload(ctx, d_count, count, count_bytes));
    OK(ctx, b->upload(ctx, d_offset, offset, bytes));
    OK(ctx, b->scan(ctx, d_count, n, d_offset));
    OK(ctx, b->download(ctx, offset, d_offset, bytes));
    for (int64_t i = 0; i <= n; i++) {
        ck_assert_msg(offset[i] == sum, "n %lld: offset %lld is %lld, not %lld",
                      (long long)n, (long long)i, (long long)offset[i],
                      (long long)sum);
        if (i < n) sum += count[i];
    }
    for (int64_t i = n + 1; i < n + 1 + GUARD; i++)
        ck_assert_msg(offset[i] == -1, "n %lld: wrote behind the end",
                      (long long)n);
    b->release(ctx, d_count, count_bytes);
    b->release(ctx, d_offset, bytes);
    free(count);
    free(offset);
}

START_TEST(prefix_sums_are_exact_at_every_edge)
{
    const int64_t n[] = { 0, 1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 513,
                          4095, 4096, 4097, 8192, 100000 };
    sps_context *ctx = runner_context();

    for (size_t i = 0; i < sizeof n / sizeof *n; i++) try(ctx, n[i], 1000);
    fixture_close(&ctx);
}
END_TEST

START_TEST(sums_exceed_32_bits)
{
    sps_context *ctx = runner_context();

    try(ctx, 5, 0x7fffffff);
    try(ctx, 300, 0x7fffffff);
    try(ctx, 100003, 0x7fffffff);
    fixture_close(&ctx);
}
END_TEST

/* More than 1024 tiles: the scan of the tile sums takes several passes. */
START_TEST(many_tiles_are_carried)
{
    sps_context *ctx = runner_context();

    try(ctx, 5000001, 100);
    fixture_close(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(prefix_sums_are_exact_at_every_edge),
    RUNNER_TEST(sums_exceed_32_bits),
    RUNNER_TEST(many_tiles_are_carried),
};

/* The host builds its plans by plain loops and has no such operation. */
int main(void)
{
    if (runner_place() == SPS_HOST) {
        fprintf(stderr, "skipped: for GPUs\n");
        return 77;
    }
    return runner_main_("scan", tests, sizeof tests / sizeof *tests, NULL, NULL);
}
