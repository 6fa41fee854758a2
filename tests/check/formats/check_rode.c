/* SPDX-License-Identifier: BSD-3-Clause */
/* check_rode.c - rows decomposed into segments and residuals: lengths around
 * every threshold, every alignment of row begins, and conversion back to CSR;
 * on the device: the builder makes the same lists as the host's, and products
 * with such rows are exact. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/image.h"
#include "tests/support/kernel_product.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* Slots, that is lengths including the pad, around every threshold. */
static const int SLOTS[] = { 1, 4, 5, 28, 31, 32, 33, 36, 63, 64, 65, 480, 511,
                             512, 513, 516, 543, 544, 545, 1023, 1024, 1025,
                             1056, 1537 };

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

enum { ROWS = 4 * (COUNT(SLOTS)) * 3 };

/* Row i: a filler that moves the next begin to each residue mod 4, the row
 * under test, and an empty one. */
static void thresholds(int64_t *rowptr)
{
    int64_t i = 0, at = 0;

    rowptr[0] = 0;
    for (int s = 0; s < COUNT(SLOTS); s++)
        for (int pad = 0; pad < 4; pad++) {
            at += (pad - at % 4 + 4) % 4;
            rowptr[++i] = at;
            at += SLOTS[s] > pad ? SLOTS[s] - pad : 0;
            rowptr[++i] = at;
            rowptr[++i] = at;
        }
    ck_assert_int_eq(i, ROWS);
}

/* ----------------------------------------------------------------- format */

/* Checks what the head of rode.h says of the items of each row. */
static void judge_item(const spsi_rode_item *item, bool block,
                       const int64_t *rowptr)
{
    const int64_t begin = rowptr[item->row], end = rowptr[item->row + 1];
    const int64_t slots = item->length + item->start % SPS_RODE_ALIGN;
    const bool first = item->start == begin;

    ck_assert(item->start >= begin && item->start + item->length <= end);
    ck_assert(first || item->start % SPS_RODE_ALIGN == 0);
    ck_assert_int_gt(item->length, 0);
    if (block) {
        ck_assert_int_eq(slots % SPS_RODE_TILE, 0);
        ck_assert_int_le(slots, SPS_RODE_SEGMENT);
        /* A shorter segment must be the last of its row. */
        if (slots < SPS_RODE_SEGMENT)
            ck_assert_int_lt(end - item->start - item->length, SPS_RODE_TILE);
    } else {
        ck_assert_int_lt(slots, SPS_RODE_TILE);
        ck_assert_int_eq(item->start + item->length, end);
        ck_assert_int_eq(item->both, !first);
    }
}

/* Builds, checks, converts back to CSR. */
static void round_trip(int64_t nrow, const int64_t *rowptr)
{
    int64_t *back = malloc((size_t)(nrow + 1) * sizeof *back);
    spsi_rode R;

    OK(ctx, spsi_rode_build(ctx, nrow, rowptr, &R));
    for (int64_t b = 0; b < R.blocks; b++)
        judge_item(&R.block[b], true, rowptr);
    for (int64_t r = 0; r < R.residuals; r++)
        judge_item(&R.residual[r], false, rowptr);
    OK(ctx, spsi_rode_offsets(ctx, &R, nrow, back));
    for (int64_t i = 0; i <= nrow; i++)
        ck_assert_msg(back[i] == rowptr[i], "row %lld of %lld: %lld, not %lld",
                      (long long)i, (long long)nrow, (long long)back[i],
                      (long long)rowptr[i]);
    spsi_rode_clear(ctx, &R);
    free(back);
}

START_TEST(decomposition_keeps_every_entry_at_every_threshold)
{
    int64_t rowptr[ROWS + 1];

    thresholds(rowptr);
    round_trip(ROWS, rowptr);
}
END_TEST

START_TEST(every_family_comes_back_as_it_was)
{
    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 0; n <= 1300; n = 3 * n + 1) {
            sps_csr *A = zoo_matrix(f, n, 7, ZOO_INTEGER, SPS_F64);

            round_trip(A->nrow, A->rowptr);
            zoo_free(&A);
        }
}
END_TEST

/* Lengths of the items into which the published algorithm divides a row. */
static void pieces(int64_t begin, int64_t length, const int *want)
{
    const int64_t rowptr[] = { 0, begin, begin + length };
    const spsi_rode_item *item;
    spsi_rode R;
    int64_t b = 0;

    OK(ctx, spsi_rode_build(ctx, 2, rowptr, &R));
    while (b < R.blocks && R.block[b].row == 0) b++;
    for (; *want > 0; want++, b++) {
        ck_assert_int_lt(b, R.blocks);
        ck_assert_int_eq(R.block[b].length, *want);
    }
    ck_assert_int_eq(b, R.blocks);
    item = R.residuals > 0 ? &R.residual[R.residuals - 1] : NULL;
    ck_assert_int_eq(item && item->row == 1 ? item->length : 0, -*want);
    spsi_rode_clear(ctx, &R);
}

/* Positive: a segment; last minus the length of the residual, 0: none. */
START_TEST(pieces_are_those_of_the_paper)
{
    pieces(0, 31, (const int[]){ -31 });
    pieces(1, 31, (const int[]){ 31, 0 });
    pieces(0, 32, (const int[]){ 32, 0 });
    pieces(2, 32, (const int[]){ 30, -2 });
    pieces(0, 512, (const int[]){ 512, 0 });
    pieces(3, 512, (const int[]){ 509, -3 });
    pieces(0, 513, (const int[]){ 512, -1 });
    pieces(0, 543, (const int[]){ 512, -31 });
    pieces(0, 544, (const int[]){ 512, 32, 0 });
    pieces(1, 543, (const int[]){ 511, 32, 0 });
    pieces(0, 1024, (const int[]){ 512, 512, 0 });
    pieces(3, 1057, (const int[]){ 509, 512, 32, -4 });
}
END_TEST

/* Offsets beyond 32 bits, without arrays of entries. */
START_TEST(offsets_may_exceed_32_bits)
{
    const int64_t big = ((int64_t)1 << 33) + 3;
    const int64_t rowptr[] = { big, big + 1000 };
    spsi_rode R;

    OK(ctx, spsi_rode_build(ctx, 1, rowptr, &R));
    ck_assert_int_eq(R.blocks, 2);
    ck_assert(R.block[0].start == big && R.block[0].length == 509);
    ck_assert(R.block[1].start == big + 509 && R.block[1].length == 480);
    ck_assert_int_eq(R.residuals, 1);
    ck_assert(R.residual[0].start == big + 989 && R.residual[0].length == 11);
    spsi_rode_clear(ctx, &R);
}
END_TEST

START_TEST(lists_that_lose_entries_are_refused)
{
    const int64_t rowptr[] = { 0, 100, 700 };
    int64_t back[3];
    spsi_rode R;

    OK(ctx, spsi_rode_build(ctx, 2, rowptr, &R));
    R.block[1].start += 4;
    ck_assert_int_eq(spsi_rode_offsets(ctx, &R, 2, back), SPS_EMATRIX);
    R.block[1].start -= 4;
    R.residual[0].row = 2;
    ck_assert_int_eq(spsi_rode_offsets(ctx, &R, 2, back), SPS_EMATRIX);
    spsi_rode_clear(ctx, &R);
}
END_TEST

/* ------------------------------------------------------------ on the device */

static const sps_kernel *paper(void)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(kernel->name, "spmm.rode_paper") == 0) break;
    return kernel;
}

/* Rows of these lengths, entries spread over ncol columns, integers. */
static void open_rows(rig *r, int64_t nrow, const int64_t *rowptr,
                      int64_t ncol)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, nrow, ncol, rowptr[nrow], SPS_F64, &A));
    memcpy(A->rowptr, rowptr, (size_t)(nrow + 1) * sizeof *rowptr);
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];

        for (int64_t p = 0; p < length; p++) {
            A->col[rowptr[i] + p] = (int32_t)(1 + p * (ncol - 1) / length);
            ((double *)A->val)[rowptr[i] + p] =
                (double)((i * 31 + p * 7) % 401 - 200);
        }
    }
    rig_take(r, ctx, "thresholds", A);
}

/* rig_close, for a matrix that is not of the zoo. */
static void close_rows(rig *r)
{
    sps_csr *A = r->A;

    r->A = NULL;
    rig_close(r);
    sps_csr_destroy(ctx, &A);
}

static void same_list(const rig *r, const char *which, int64_t count,
                      const spsi_rode_item *place, int64_t right_count,
                      const spsi_rode_item *right)
{
    const size_t bytes = (size_t)count * sizeof *right;
    spsi_rode_item *got = malloc(bytes + 1);

    ck_assert_msg(count == right_count, "%s: %lld %s, not %lld", r->what,
                  (long long)count, which, (long long)right_count);
    OK(ctx, ctx->backend->download(ctx, got, place, bytes));
    ck_assert_msg(!memcmp(got, right, bytes), "%s: other %s", r->what, which);
    free(got);
}

static void same_lists(rig *r)
{
    const spsi_rode *P;
    spsi_rode R;

    ck_assert(rig_plan(r, paper(), 32));
    P = &((const spsi_rode_plan *)r->plan)->parts;
    OK(ctx, spsi_rode_build(ctx, r->A->nrow, r->A->rowptr, &R));
    same_list(r, "segments", P->blocks, P->block, R.blocks, R.block);
    same_list(r, "residuals", P->residuals, P->residual, R.residuals,
              R.residual);
    spsi_rode_clear(ctx, &R);
}

START_TEST(the_builder_of_the_place_makes_the_same_lists)
{
    int64_t rowptr[ROWS + 1];
    rig r;

    if (!paper()) runner_skip("no kernel spmm.rode_paper here");
    thresholds(rowptr);
    open_rows(&r, ROWS, rowptr, 2000);
    same_lists(&r);
    close_rows(&r);
    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 1; n <= 20000; n = 19 * n + 1) {
            rig_open(&r, ctx, f, n, ZOO_INTEGER, SPS_F64);
            same_lists(&r);
            rig_close(&r);
        }
}
END_TEST

START_TEST(products_over_the_thresholds_are_exact)
{
    const int widths[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                           16, 17, 31, 32, 33, 63, 64, 65, 96, 100, 127, 128,
                           130 };
    int64_t rowptr[ROWS + 1];
    rig r;

    if (!paper()) runner_skip("no kernel spmm.rode_paper here");
    thresholds(rowptr);
    open_rows(&r, ROWS, rowptr, 2000);
    for (int w = 0; w < COUNT(widths); w++) {
        ck_assert(rig_plan(&r, paper(), widths[w]));
        try_product(&r, widths[w], 0, 0.0);
        try_product(&r, widths[w], 1 + w % 3, w % 2 ? 3.0 : 1.0);
    }
    close_rows(&r);
}
END_TEST

/* Moves columns and values on the device to addresses that have only the
 * alignment of their type. */
static void shift(rig *r, char **memory, size_t *bytes)
{
    const size_t nnz = (size_t)r->A->nnz;
    char *col, *val;

    *bytes = nnz * 12 + 24;
    OK(ctx, ctx->backend->alloc(ctx, *bytes, (void **)memory));
    val = *memory + 8;
    col = val + 8 * nnz + 4;
    OK(ctx, ctx->backend->upload(ctx, val, r->A->val, 8 * nnz));
    OK(ctx, ctx->backend->upload(ctx, col, r->A->col, 4 * nnz));
    r->local.val = val;
    r->local.col = (const int32_t *)col;
}

START_TEST(arrays_of_any_alignment_serve)
{
    const int widths[] = { 9, 32, 64 };
    int64_t rowptr[ROWS + 1];
    char *memory;
    size_t bytes;
    rig r;

    if (!paper()) runner_skip("no kernel spmm.rode_paper here");
    thresholds(rowptr);
    open_rows(&r, ROWS, rowptr, 2000);
    shift(&r, &memory, &bytes);
    for (int w = 0; w < COUNT(widths); w++) {
        ck_assert(rig_plan(&r, paper(), widths[w]));
        try_product(&r, widths[w], 0, -1.0);
    }
    close_rows(&r);
    ctx->backend->release(ctx, memory, bytes);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(decomposition_keeps_every_entry_at_every_threshold),
    RUNNER_TEST(every_family_comes_back_as_it_was),
    RUNNER_TEST(pieces_are_those_of_the_paper),
    RUNNER_TEST(offsets_may_exceed_32_bits),
    RUNNER_TEST(lists_that_lose_entries_are_refused),
    RUNNER_TEST(the_builder_of_the_place_makes_the_same_lists),
    RUNNER_TEST(products_over_the_thresholds_are_exact),
    RUNNER_TEST(arrays_of_any_alignment_serve),
};
RUNNER_MAIN_WITHIN("rode", tests, open_context, close_context)
