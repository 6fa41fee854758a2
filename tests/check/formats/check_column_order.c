/* SPDX-License-Identifier: BSD-3-Clause */
/* check_column_order.c - columns sorted by number of uses: a permutation,
 * descending keys, equal keys in order of the column index. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

START_TEST(keys_fall_with_use_and_are_close)
{
    uint32_t last = spsi_column_key(0);

    ck_assert_uint_eq(last, SPS_COLUMN_KEYS - 1);
    for (uint32_t uses = 1; uses < 100000; uses++) {
        const uint32_t key = spsi_column_key(uses);

        ck_assert_uint_le(key, last);
        /* Numbers of uses with the same key differ by less than an eighth. */
        ck_assert_uint_lt(spsi_column_key(uses + uses / 8 + 1), key);
        last = key;
    }
    for (uint32_t uses = 1; uses < 16; uses++)
        ck_assert_uint_lt(spsi_column_key(uses), spsi_column_key(uses - 1));
    ck_assert_uint_lt(spsi_column_key(INT32_MAX), SPS_COLUMN_KEYS);
    ck_assert_uint_lt(spsi_column_key(INT32_MAX), spsi_column_key(1u << 30));
}
END_TEST

static void judge(const sps_csr *A, const sps_column_order *order)
{
    uint32_t *uses = calloc((size_t)A->ncol + 1, sizeof *uses);

    for (int64_t p = 0; p < A->nnz; p++) uses[A->col[p]]++;
    for (int64_t at = 0; at < A->ncol; at++) {
        const int32_t j = order->column[at];

        ck_assert(j >= 0 && j < A->ncol);
        ck_assert_int_eq(order->rank[j], at);
        if (at > 0) {
            const int32_t before = order->column[at - 1];
            const uint32_t a = spsi_column_key(uses[before]);
            const uint32_t b = spsi_column_key(uses[j]);

            ck_assert_msg(a < b || (a == b && before < j),
                          "column %d stands before %d", before, j);
        }
    }
    free(uses);
}

START_TEST(columns_of_the_zoo_are_sorted)
{
    static const int64_t sizes[] = { 0, 1, 70, 1100, 5000 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 5; s++) {
            sps_csr *A = zoo_matrix(f, sizes[s], 7, ZOO_INTEGER, SPS_F64);
            sps_column_order order;

            OK(ctx, spsi_column_order_make(ctx, A, &order));
            judge(A, &order);
            spsi_column_order_free(ctx, &order);
            zoo_free(&A);
        }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(keys_fall_with_use_and_are_close),
    RUNNER_TEST(columns_of_the_zoo_are_sorted),
};
RUNNER_MAIN_WITHIN("column_order", tests, open_context, close_context)
