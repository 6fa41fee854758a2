/* SPDX-License-Identifier: BSD-3-Clause */
/* check_beyond.c - matrices of about 2 GB with 1 GB of device memory: products
 * and solvers have the bits that they have with all of the GPU.  Takes 6 GB of
 * host memory and some seconds: only in the long form. */
#include "tests/check/operator/stream_fixture.h"

#define LONG_ONLY()                                                            \
    GPU_ONLY();                                                                \
    if (!runner_long()) runner_leave_out("matrices of 2 GB")

static const size_t gigabyte = 1000000000;

/* Rows of 0 to 300 entries and two of 3 M, whose segments are added as by
 * spmm.stream with all of the GPU. */
START_TEST(long_and_empty_rows_under_a_gigabyte_have_the_same_bits)
{
    const int64_t n = 1600000, ncol = 3100000;
    int64_t *lengths;
    sps_operator *one, *far;
    sps_csr *A;

    LONG_ONLY();
    lengths = malloc((size_t)n * sizeof *lengths);
    for (int64_t i = 0; i < n; i++) lengths[i] = i % 3 ? i % 301 : 0;
    lengths[7] = lengths[n - 9] = 3000000;
    A = matrix(lengths, (int)n, n, ncol);
    free(lengths);
    ck_assert_int_ge(12 * A->nnz, 1900000000);
    one = operator_with(near, A, 2, "spmm.stream");
    ck_assert_int_eq(streaming(one)->longs.rows, 2);
    ctx->opt.max_device_bytes = gigabyte;
    far = operator_with(ctx, A, 2, "auto");
    ck_assert(far->local.far);
    ck_assert_int_gt(streaming(far)->panels, 100);
    products_are(far, one, 2, 3);
    ck_assert_uint_le(ctx->memory.device_peak, gigabyte);
    sps_operator_destroy(&one);
    sps_operator_destroy(&far);
    zoo_free(&A);
}
END_TEST

/* A band of 1.8 GB, in panels of 1.5 GB; blocks leave half of them room. */
START_TEST(three_solvers_under_a_gigabyte_have_the_same_bits)
{
    static const char *const solvers[] = { "block_cg", "gmres", "minres" };
    sps_csr *A;

    LONG_ONLY();
    A = band_of(500000, 150, 99991);
    for (int s = 0; s < 3; s++) {
        answer right = solve(near, A, 4, solvers[s], "spmm.plain"), far;

        ctx->opt.max_device_bytes = gigabyte;
        far = solve(ctx, A, 4, solvers[s], "auto");
        ck_assert_int_eq(far.result.stop, SPS_STOP_CONVERGED);
        ck_assert_int_eq(far.result.iterations, right.result.iterations);
        ck_assert_msg(same(far.x, right.x, 4 * A->nrow), "%s: other bits",
                      solvers[s]);
        ck_assert_uint_le(ctx->memory.device_peak, gigabyte);
        ck_assert(fixture_noted(ctx, "stays in host memory"));
        free(right.x);
        free(far.x);
    }
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(long_and_empty_rows_under_a_gigabyte_have_the_same_bits),
    RUNNER_TEST(three_solvers_under_a_gigabyte_have_the_same_bits),
};
RUNNER_MAIN_WITHIN("beyond", tests, open_contexts, close_contexts)
