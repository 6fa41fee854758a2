/* SPDX-License-Identifier: BSD-3-Clause */
/* check_row_blocks.c - rows grouped for CSR-Adaptive: every row and entry in
 * one block, blocks as large as the rules allow, lengths at the thresholds. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/fixture.h"
#include "tests/problems/row_lengths.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

static const sps_row_rule RULES[] = {
    { 256, 4096, 256, 256 }, { 2048, 6144, 2048, 128 },
    { 4096, 4096, 4096, 4096 }, { 32, 96, 16, 32 }, { 7, 7, 5, 3 },
    { 1, 1, 1, 1 },
};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static int64_t length_of(const sps_csr *A, int64_t i)
{
    return A->rowptr[i + 1] - A->rowptr[i];
}

/* Checks a block of whole rows; returns the row after it. */
static int64_t judge_whole(const sps_csr *A, const sps_row_rule *rule,
                           const sps_row_block *b)
{
    const int64_t rows = spsi_row_block_rows(b), end = b->row + rows;
    const int64_t entries = spsi_row_block_entries(b);
    const bool one = rows == 1 && entries > 0;

    ck_assert_int_ge(rows, 1);
    ck_assert_int_le(rows, rule->rows);
    ck_assert_int_le(end, A->nrow);
    ck_assert_int_eq(b->row / SPS_ROW_CHUNK, (end - 1) / SPS_ROW_CHUNK);
    ck_assert_int_eq(entries, A->rowptr[end] - A->rowptr[b->row]);
    ck_assert_int_le(entries, one ? rule->reach : rule->size);
    ck_assert_int_eq(spsi_row_block_kind(b),
                     one ? SPS_ROWS_VECTOR : SPS_ROWS_STREAM);
    for (int64_t i = b->row; rows > 1 && i < end; i++)
        ck_assert_int_le(length_of(A, i), rule->alone);
    /* The reason why the next row is not in this block. */
    ck_assert_msg(end == A->nrow || end % SPS_ROW_CHUNK == 0 ||
                  rows == rule->rows || entries >= rule->size ||
                  entries + length_of(A, end) > rule->size ||
                  length_of(A, end) > rule->alone ||
                  length_of(A, b->row) > rule->alone,
                  "row %d: a block of %d rows closes for nothing", b->row,
                  (int)rows);
    return end;
}

/* Checks the blocks of a long row's workers; *at advances past them. */
static int64_t judge_long(const sps_csr *A, const sps_row_rule *rule,
                          const sps_row_blocks *b, int64_t *at,
                          int64_t number)
{
    const int64_t i = b->block[*at].row, length = length_of(A, i);
    const int64_t parts = (length + rule->reach - 1) / rule->reach;

    ck_assert_int_gt(length, rule->reach);
    ck_assert_int_eq(b->part[number + 1] - b->part[number], parts);
    for (int64_t w = 0; w < parts; w++) {
        const sps_row_block *piece = &b->block[*at + w];

        ck_assert_int_lt(*at + w, b->count);
        ck_assert_int_eq(spsi_row_block_kind(piece), SPS_ROWS_LONG);
        ck_assert_int_eq(spsi_row_block_rows(piece), 1);
        ck_assert_int_eq(spsi_row_block_long(piece), number);
        ck_assert_int_eq(piece->row, i);
        ck_assert_int_eq(piece->first, A->rowptr[i] + w * rule->reach);
    }
    *at += parts;
    return i + 1;
}

static void judge(const sps_csr *A, const sps_row_rule *rule,
                  const sps_row_blocks *b)
{
    int64_t row = 0, longs = 0;

    for (int64_t at = 0; at < b->count;) {
        ck_assert_int_eq(b->block[at].row, row);
        ck_assert_int_eq(b->block[at].first, A->rowptr[row]);
        if (spsi_row_block_kind(&b->block[at]) == SPS_ROWS_LONG)
            row = judge_long(A, rule, b, &at, longs++);
        else
            row = judge_whole(A, rule, &b->block[at++]);
    }
    ck_assert_int_eq(row, A->nrow);
    ck_assert_int_eq(longs, b->longs);
    ck_assert_int_eq(b->part[0], 0);
    ck_assert_int_eq(b->part[longs], b->parts);
}

/* ------------------------------------------------------------------ tests */

START_TEST(every_row_of_the_zoo_is_in_one_block)
{
    static const int64_t sizes[] = { 0, 1, 2, 70, 1023, 1024, 1025, 9000 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < COUNT(sizes); s++) {
            sps_csr *A = zoo_matrix(f, sizes[s], 7, ZOO_INTEGER, SPS_F64);

            for (int r = 0; r < COUNT(RULES); r++) {
                sps_row_blocks b;

                OK(ctx, spsi_row_blocks_make(ctx, A, &RULES[r], &b));
                judge(A, &RULES[r], &b);
                spsi_row_blocks_free(ctx, &b);
            }
            zoo_free(&A);
        }
}
END_TEST

/* One row per block: the blocks equal the offsets of the matrix. */
START_TEST(blocks_of_one_row_expand_to_the_offsets)
{
    const sps_row_rule rule = { 64, 200, 1, 64 };

    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 5000, 3, ZOO_INTEGER, SPS_F64);
        int64_t *ptr = calloc((size_t)A->nrow + 1, sizeof *ptr);
        sps_row_blocks b;

        OK(ctx, spsi_row_blocks_make(ctx, A, &rule, &b));
        for (int64_t n = b.count - 1; n >= 0; n--)
            ptr[b.block[n].row] = b.block[n].first;
        ptr[A->nrow] = A->nnz;
        ck_assert(!memcmp(ptr, A->rowptr,
                          ((size_t)A->nrow + 1) * sizeof *ptr));
        spsi_row_blocks_free(ctx, &b);
        free(ptr);
        zoo_free(&A);
    }
}
END_TEST

START_TEST(lengths_at_the_edges_have_the_right_kind)
{
    const sps_row_rule rule = { 64, 192, 50, 64 };
    static const struct { int64_t length; int kind; int64_t blocks; } known[]
        = { { 0, SPS_ROWS_STREAM, 1 },   { 1, SPS_ROWS_VECTOR, 1 },
            { 63, SPS_ROWS_VECTOR, 1 },  { 64, SPS_ROWS_VECTOR, 1 },
            { 65, SPS_ROWS_VECTOR, 1 },  { 191, SPS_ROWS_VECTOR, 1 },
            { 192, SPS_ROWS_VECTOR, 1 }, { 193, SPS_ROWS_LONG, 2 },
            { 384, SPS_ROWS_LONG, 2 },   { 385, SPS_ROWS_LONG, 3 },
            { 1920, SPS_ROWS_LONG, 10 }, { 1921, SPS_ROWS_LONG, 11 } };

    for (int n = 0; n < COUNT(known); n++) {
        sps_csr *A = row_lengths_matrix(&known[n].length, 1, 1, 2000, true);
        sps_row_blocks b;

        OK(ctx, spsi_row_blocks_make(ctx, A, &rule, &b));
        judge(A, &rule, &b);
        ck_assert_int_eq(b.count, known[n].blocks);
        ck_assert_int_eq(spsi_row_block_kind(&b.block[0]), known[n].kind);
        spsi_row_blocks_free(ctx, &b);
        zoo_free(&A);
    }
}
END_TEST

/* Compares the first rows of the blocks of a matrix with these lengths. */
static void expect(const sps_row_rule *rule, const int64_t *length, int n,
                   const int *first, int count)
{
    sps_csr *A = row_lengths_matrix(length, n, n, 1000, true);
    sps_row_blocks b;

    OK(ctx, spsi_row_blocks_make(ctx, A, rule, &b));
    judge(A, rule, &b);
    ck_assert_int_eq(b.count, count);
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(b.block[i].row, first[i]);
    spsi_row_blocks_free(ctx, &b);
    zoo_free(&A);
}

START_TEST(blocks_close_where_the_rules_say)
{
    const sps_row_rule wide = { 10, 30, 4, 10 }, apart = { 10, 30, 4, 3 };
    /* 4 + 6 = 10: full, so that the empty row begins another block. */
    static const int64_t full[] = { 4, 6, 0, 1 };
    static const int full_first[] = { 0, 2 };
    /* 4 + 7 = 11 would be too many. */
    static const int64_t over[] = { 4, 7, 3 };
    static const int over_first[] = { 0, 1 };
    static const int64_t empty[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0 };
    static const int empty_first[] = { 0, 4, 8 };
    /* A long row has its own blocks. */
    static const int64_t lasting[] = { 1, 31, 1 };
    static const int lasting_first[] = { 0, 1, 1, 2 };
    /* A row of more than 3 entries has a block of its own. */
    static const int64_t mixed[] = { 1, 3, 4, 1, 1, 5, 6 };
    static const int mixed_first[] = { 0, 2, 3, 5, 6 };

    expect(&wide, full, COUNT(full), full_first, COUNT(full_first));
    expect(&wide, over, COUNT(over), over_first, COUNT(over_first));
    expect(&wide, empty, COUNT(empty), empty_first, COUNT(empty_first));
    expect(&wide, lasting, COUNT(lasting), lasting_first,
           COUNT(lasting_first));
    expect(&apart, mixed, COUNT(mixed), mixed_first, COUNT(mixed_first));
}
END_TEST

START_TEST(a_million_empty_rows_make_few_blocks)
{
    static const int64_t none = 0, ends[] = { 0, 0, 0, 5000 };
    sps_csr *A = row_lengths_matrix(&none, 1, 1000000, 1, true);
    sps_csr *B = row_lengths_matrix(ends, 4, 20000, 6000, true);
    sps_row_blocks b;

    OK(ctx, spsi_row_blocks_make(ctx, A, &RULES[0], &b));
    judge(A, &RULES[0], &b);
    ck_assert_int_eq(b.count, 4 * 976 + 3);  /* 976 chunks and 576 rows */
    spsi_row_blocks_free(ctx, &b);
    OK(ctx, spsi_row_blocks_make(ctx, B, &RULES[0], &b));
    judge(B, &RULES[0], &b);
    ck_assert_int_eq(b.longs, 5000);
    spsi_row_blocks_free(ctx, &b);
    zoo_free(&A);
    zoo_free(&B);
}
END_TEST

START_TEST(threads_do_not_change_the_blocks)
{
    sps_csr *A = zoo_matrix(zoo_find("power_law"), 30000, 7, ZOO_INTEGER,
                            SPS_F64);
    sps_context *one = fixture_open_with(SPS_HOST, 1, true);
    sps_row_blocks a, b;

    OK(ctx, spsi_row_blocks_make(ctx, A, &RULES[3], &a));
    OK(one, spsi_row_blocks_make(one, A, &RULES[3], &b));
    ck_assert_int_eq(a.count, b.count);
    ck_assert_int_eq(a.longs, b.longs);
    ck_assert_int_gt(a.longs, 0);
    ck_assert(!memcmp(a.block, b.block, (size_t)a.count * sizeof *a.block));
    ck_assert(!memcmp(a.part, b.part, (size_t)a.longs * sizeof *a.part));
    spsi_row_blocks_free(ctx, &a);
    spsi_row_blocks_free(one, &b);
    fixture_close(&one);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_row_of_the_zoo_is_in_one_block),
    RUNNER_TEST(blocks_of_one_row_expand_to_the_offsets),
    RUNNER_TEST(lengths_at_the_edges_have_the_right_kind),
    RUNNER_TEST(blocks_close_where_the_rules_say),
    RUNNER_TEST(a_million_empty_rows_make_few_blocks),
    RUNNER_TEST(threads_do_not_change_the_blocks),
};
RUNNER_MAIN_WITHIN("row_blocks", tests, open_context, close_context)
