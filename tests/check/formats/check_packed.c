/* SPDX-License-Identifier: BSD-3-Clause */
/* check_packed.c - 16-bit columns: conversion back to the columns, and windows
 * that cannot be packed (escaped). */
#include <check.h>

#include "matrix/features_sample.h"
#include "tests/formats/host_formats.h"
#include "tests/support/fixture.h"
#include "tests/problems/row_lengths.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

static const sps_row_rule RULES[] = {
    { 256, 1024, 256, 256 }, { 2048, 2048, 256, 2048 }, { 7, 7, 3, 4 },
};

/* Returns the number of windows that were not packed. */
static int64_t judge(const sps_csr *A, const sps_row_rule *rule)
{
    int32_t *full = malloc((size_t)(A->nnz + 1) * sizeof *full);
    int32_t *col = calloc((size_t)A->nnz + 1, sizeof *col);
    int64_t escaped = 0;
    sps_row_blocks b;
    sps_packed p;

    OK(ctx, spsi_row_blocks_make(ctx, A, rule, &b));
    OK(ctx, spsi_packed_make(ctx, A, &b, &p));
    /* The columns of packed windows are invalidated: they must not be read. */
    for (int64_t w = 0; w < p.windows; w++) {
        const bool out = p.base[SPS_PACKED_SEGMENTS * w] < 0;
        const int64_t end = w + 1 < p.windows ? b.block[w + 1].first : A->nnz;

        escaped += out;
        for (int64_t e = b.block[w].first; e < end; e++)
            full[e] = out ? A->col[e] : -1;
    }
    ck_assert_int_eq(p.escaped, escaped);
    spsi_packed_expand(&p, &b, full, col);
    ck_assert(!memcmp(col, A->col, (size_t)A->nnz * sizeof *col));
    for (int64_t e = A->nnz; e < spsi_packed_room(A->nnz); e++)
        ck_assert_int_eq(p.delta[e], 0);
    spsi_packed_free(ctx, &p);
    spsi_row_blocks_free(ctx, &b);
    free(full);
    free(col);
    return escaped;
}

START_TEST(columns_of_the_zoo_come_back)
{
    static const int64_t sizes[] = { 0, 1, 70, 1100, 5000 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 5; s++) {
            sps_csr *A = zoo_matrix(f, sizes[s], 7, ZOO_INTEGER, SPS_F64);

            for (int r = 0; r < 3; r++)
                ck_assert_int_eq(judge(A, &RULES[r]), 0);
            zoo_free(&A);
        }
}
END_TEST

/* One row: columns 0, step, 2 step, ... */
static sps_csr *strided(int64_t count, int64_t step)
{
    const int64_t length[] = { count };
    sps_csr *A = row_lengths_matrix(length, 1, 1, count * step, true);

    for (int64_t e = 0; e < count; e++) A->col[e] = (int32_t)(e * step);
    return A;
}

START_TEST(eight_segments_hold_and_a_ninth_escapes)
{
    const int64_t reach = SPS_PACKED_REACH, most = SPS_PACKED_SEGMENTS;
    sps_csr *touching = strided(4, reach / 2), *whole = strided(most, reach);
    sps_csr *far = strided(most, 100 * reach), *one = strided(most + 1, reach);
    sps_csr *below = strided(most + 1, reach - 1);

    ck_assert_int_eq(judge(touching, &RULES[1]), 0);
    ck_assert_int_eq(judge(whole, &RULES[1]), 0);
    ck_assert_int_eq(judge(far, &RULES[1]), 0);
    ck_assert_int_eq(judge(one, &RULES[1]), 1);
    ck_assert_int_eq(judge(below, &RULES[1]), 0);
    zoo_free(&touching);
    zoo_free(&whole);
    zoo_free(&far);
    zoo_free(&one);
    zoo_free(&below);
}
END_TEST

START_TEST(windows_escape_one_by_one)
{
    static const int64_t lengths[] = { 9, 3, 9, 3 };
    const sps_row_rule rule = { 9, 9, 1, 9 };
    sps_csr *A = row_lengths_matrix(lengths, 4, 4, 20 * SPS_PACKED_REACH,
                                    true);

    for (int64_t i = 0; i < 4; i++)
        for (int64_t e = A->rowptr[i]; e < A->rowptr[i + 1]; e++)
            A->col[e] = (int32_t)((e - A->rowptr[i]) * 2 * SPS_PACKED_REACH);
    ck_assert_int_eq(judge(A, &rule), 2);
    zoo_free(&A);
}
END_TEST

START_TEST(samples_foretell_what_fits)
{
    static const int64_t lengths[] = { 9 };
    sps_csr *A = row_lengths_matrix(lengths, 1, 3000, 20 * SPS_PACKED_REACH,
                                    true);
    double *value = A->val;
    sps_raw_features before = { 0 }, after = { 0 };

    OK(ctx, spsi_features_sample_gpu(ctx, A, &before));
    ck_assert_int_eq(before.near, SPS_NEAR_WINDOWS);
    ck_assert_int_eq(before.inexact, 0);
    for (int64_t e = 0; e < A->nnz; e++) {
        value[e] += 0.1;
        if (e / 9 >= 1500) A->col[e] = (int32_t)(e % 9 * 2 * SPS_PACKED_REACH);
    }
    OK(ctx, spsi_features_sample_gpu(ctx, A, &after));
    ck_assert_int_gt(after.near, 0.4 * SPS_NEAR_WINDOWS);
    ck_assert_int_lt(after.near, 0.6 * SPS_NEAR_WINDOWS);
    ck_assert_int_gt(after.inexact, 0);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(columns_of_the_zoo_come_back),
    RUNNER_TEST(eight_segments_hold_and_a_ninth_escapes),
    RUNNER_TEST(windows_escape_one_by_one),
    RUNNER_TEST(samples_foretell_what_fits),
};
RUNNER_MAIN_WITHIN("packed", tests, open_context, close_context)
