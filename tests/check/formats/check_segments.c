/* SPDX-License-Identifier: BSD-3-Clause */
/* check_segments.c - rows divided into ranges and segments: every entry exactly
 * once, at every threshold; on the device: the builder makes the same lists as
 * the host's, and products with such rows are exact. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/image.h"
#include "tests/support/kernel_product.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* Ranges are ascending and cover the rows. */
static void check_ranges(const sps_segments *s, int64_t nrow)
{
    ck_assert_int_ge(s->ranges, 1);
    ck_assert_int_eq(s->range[0], 0);
    ck_assert_int_eq(s->range[s->ranges], nrow);
    for (int64_t r = 0; r < s->ranges; r++)
        ck_assert_int_le(s->range[r], s->range[r + 1]);
}

/* Segments n .. of row i cover [at, end); advances *slots and *joins. */
static int64_t check_row(const sps_segments *s, int64_t i, int64_t n,
                         int64_t at, int64_t end, int64_t *slots,
                         int64_t *joins)
{
    const int64_t first = n;

    for (; n < s->count && s->segment[n].row == i; n++) {
        ck_assert_int_eq(s->segment[n].start, at);
        ck_assert(s->segment[n].length > 0 || at == end);
        ck_assert_int_le(s->segment[n].length, s->limits.most);
        at += s->segment[n].length;
    }
    ck_assert_int_eq(at, end);
    ck_assert_int_ge(n, first + 1);
    if (n == first + 1) {
        ck_assert_int_eq(s->segment[first].slot, -1);
        return n;
    }
    ck_assert_int_lt(*joins, s->joins);
    ck_assert_int_eq(s->join[*joins].row, i);
    ck_assert_int_eq(s->join[*joins].first, *slots);
    ck_assert_int_eq(s->join[(*joins)++].count, n - first);
    for (int64_t t = first; t < n; t++)
        ck_assert_int_eq(s->segment[t].slot, (*slots)++);
    return n;
}

static bool same_columns(int64_t i, int64_t j, const int64_t *rowptr,
                         const int32_t *col)
{
    const int64_t length = rowptr[i + 1] - rowptr[i];

    return rowptr[j + 1] - rowptr[j] == length &&
           !memcmp(col + rowptr[i], col + rowptr[j],
                   (size_t)length * sizeof *col);
}

/* Row i belongs to a group of rows with the same columns. */
static bool in_group(int64_t i, int32_t size, int64_t nrow,
                     const int64_t *rowptr, const int32_t *col)
{
    const int64_t first = i / size * size;

    if (first + size > nrow) return size == 1;
    for (int64_t j = first + 1; j < first + size; j++)
        if (!same_columns(first, j, rowptr, col)) return false;
    return true;
}

/* Every entry is in a short row or in one segment: conversion back to CSR. */
static void check_rows(const sps_segments *s, int64_t nrow,
                       const int64_t *rowptr, const int32_t *col)
{
    const int32_t size = s->limits.group;
    int64_t n = 0, slots = 0, joins = 0, odd = 0;

    for (int64_t i = 0; i < nrow; i++) {
        const bool alike = in_group(i, size, nrow, rowptr, col);

        if (size > 1) ck_assert_int_eq(s->alike[i / size], alike);
        odd += !alike && i % size == 0 && i + size <= nrow;
        if (alike && rowptr[i + 1] - rowptr[i] <= s->limits.cut)
            ck_assert(n == s->count || s->segment[n].row > i);
        else
            n = check_row(s, i, n, rowptr[i], rowptr[i + 1], &slots, &joins);
    }
    ck_assert_int_eq(n, s->count);
    ck_assert_int_eq(joins, s->joins);
    ck_assert_int_eq(slots, s->slots);
    ck_assert_int_eq(odd, s->odd);
}

static void check_all(int64_t nrow, const int64_t *rowptr, const int32_t *col,
                      sps_segments_limits limits, int64_t ranges)
{
    sps_segments *s = NULL;

    OK(ctx, spsi_segments_build(ctx, nrow, rowptr, col, limits, ranges, &s));
    if (limits.group == 1) check_ranges(s, nrow);
    check_rows(s, nrow, rowptr, col);
    spsi_segments_destroy(&s);
    ck_assert_ptr_null(s);
}

START_TEST(every_entry_of_the_zoo_has_one_owner)
{
    const int32_t cuts[] = { 0, 3, 32, 64, 512 };

    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 0; n <= 1100; n = 3 * n + 2) {
            sps_csr *A = zoo_matrix(f, n, 3, ZOO_INTEGER, SPS_F64);

            for (int c = 0; c < 5; c++)
                for (int32_t most = 32; most <= 512; most *= 4)
                    for (int32_t group = 1; group <= 3; group++)
                        check_all(A->nrow, A->rowptr, A->col,
                                  (sps_segments_limits){ cuts[c], most,
                                                         group }, 1 + n / 7);
            zoo_free(&A);
        }
}
END_TEST

/* Lengths around all thresholds, one after another, beginning at offsets with
 * every residue, as inside a larger matrix. */
START_TEST(thresholds_are_exact)
{
    enum { ROWS = 64 };
    const int64_t about[] = { 0, 32, 64, 511, 543, 1024, 1535, 2048, 5120 };

    for (int residue = 0; residue < 4; residue++)
        for (int32_t cut = 31; cut <= 512; cut = 2 * cut + 1) {
            int64_t rowptr[ROWS + 1];

            rowptr[0] = residue;
            for (int i = 0; i < ROWS; i++) {
                const int64_t length = about[i % 9] + i / 9 % 5 - 2;

                rowptr[i + 1] = rowptr[i] + (length > 0 ? length : 0);
            }
            for (int64_t ranges = 1; ranges <= 2 * ROWS; ranges *= 2)
                check_all(ROWS, rowptr, NULL,
                          (sps_segments_limits){ cut, 512, 1 }, ranges);
        }
}
END_TEST

START_TEST(pieces_of_a_row_are_alike)
{
    const sps_segments_limits l = { 64, 512, 1 };

    for (int64_t length = 513; length < 20000; length += 97) {
        const int64_t pieces = spsi_segments_of(length, true, l);
        const int32_t share = spsi_segments_share(length, pieces);

        ck_assert_int_le(share, 512);
        ck_assert_int_eq(share % 32, 0);
        ck_assert_int_lt((pieces - 1) * share, length);
        ck_assert_int_ge(pieces * share, length);
    }
    ck_assert_int_eq(spsi_segments_of(0, true, l), 0);
    ck_assert_int_eq(spsi_segments_of(64, true, l), 0);
    ck_assert_int_eq(spsi_segments_of(65, true, l), 1);
    ck_assert_int_eq(spsi_segments_of(512, true, l), 1);
    ck_assert_int_eq(spsi_segments_of(513, true, l), 2);
    ck_assert_int_eq(spsi_segments_of(0, false, l), 1);
    ck_assert_int_eq(spsi_segments_of(3, false, l), 1);
}
END_TEST

/* The cost of a range exceeds its equal part by at most one row. */
START_TEST(ranges_cost_about_the_same)
{
    const sps_segments_limits l = { 64, 512, 1 };
    sps_csr *A = zoo_matrix(zoo_find("power_law"), 4000, 3, ZOO_INTEGER,
                            SPS_F64);
    sps_segments *s = NULL;
    int64_t all = 0;

    OK(ctx, spsi_segments_build(ctx, A->nrow, A->rowptr, NULL, l, 16, &s));
    for (int pass = 0; pass < 2; pass++)
        for (int64_t r = 0; r < s->ranges; r++) {
            int64_t cost = 0;

            for (int64_t i = s->range[r]; i < s->range[r + 1]; i++)
                cost += spsi_segments_cost(A->rowptr[i + 1] - A->rowptr[i], l);
            if (pass == 0) all += cost;
            else ck_assert_int_le(cost, all / 16 + 2 * (SPS_SEGMENTS_ROW +
                                                        l.cut));
        }
    spsi_segments_destroy(&s);
    zoo_free(&A);
}
END_TEST

START_TEST(a_list_pays_where_lengths_differ_or_rows_are_alike)
{
    sps_features f = { .nrow = 100000, .mean_length = 27.0, .max_length = 27,
                       .block = 1 };
    sps_segments_limits l;

    ck_assert(!spsi_segments_pay(&f, &l));
    f.max_length = 5000;
    f.deviation = 3.0;
    ck_assert(spsi_segments_pay(&f, &l));
    ck_assert_int_eq(l.cut, 45);
    f.deviation = 100.0;
    ck_assert(spsi_segments_pay(&f, &l));
    ck_assert_int_eq(l.cut, 32);
    ck_assert_int_eq(l.most % 32, 0);
    ck_assert_int_eq(l.group, 1);
    f.mean_length = f.max_length = 4000;
    ck_assert(spsi_segments_pay(&f, &l));
    ck_assert_int_le(l.cut, l.most);
    f.nrow = 1000;
    f.mean_length = f.max_length = 60;
    f.deviation = 0.0;
    ck_assert(spsi_segments_pay(&f, &l));
    ck_assert_int_le(l.cut, 32);
    f.mean_length = f.max_length = 27;
    for (f.block = 1; f.block <= 8; f.block++) {
        ck_assert(spsi_segments_pay(&f, &l) == (l.group > 1));
        ck_assert_int_eq(f.block % l.group, 0);
    }
}
END_TEST

/* ------------------------------------------------------------ on the device */

static const sps_kernel *rode(void)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(kernel->name, "spmm.rode") == 0) break;
    return kernel;
}

static void same(const rig *r, const char *which, const void *place,
                 const void *right, size_t bytes)
{
    void *got = malloc(bytes + 1);

    if (bytes) OK(ctx, ctx->backend->download(ctx, got, place, bytes));
    ck_assert_msg(!memcmp(got, right, bytes), "%s: other %s", r->what, which);
    free(got);
}

static void same_lists(rig *r)
{
    const sps_segments *P;
    sps_segments *s = NULL;

    ck_assert(rig_plan(r, rode(), 17));
    P = &((const sps_segments_plan *)r->plan)->parts;
    if (!P->range && !P->alike) {    /* all rows are short */
        ck_assert_int_eq(P->count, 0);
        ck_assert_int_ge(P->limits.cut, r->op->f.max_length);
        return;
    }
    OK(ctx, spsi_segments_build(ctx, r->A->nrow, r->A->rowptr, r->A->col,
                                P->limits, P->ranges, &s));
    ck_assert_int_eq(P->count, s->count);
    ck_assert_int_eq(P->joins, s->joins);
    ck_assert_int_eq(P->slots, s->slots);
    ck_assert_int_eq(P->groups, s->groups);
    ck_assert_int_eq(P->odd, s->odd);
    same(r, "segments", P->segment, s->segment,
         (size_t)s->count * sizeof *s->segment);
    same(r, "joins", P->join, s->join, (size_t)s->joins * sizeof *s->join);
    if (P->range)
        same(r, "ranges", P->range, s->range,
             (size_t)(s->ranges + 1) * sizeof *s->range);
    else
        same(r, "groups", P->alike, s->alike, (size_t)s->groups + 1);
    spsi_segments_destroy(&s);
}

START_TEST(the_builder_of_the_place_makes_the_same_lists)
{
    if (!rode()) runner_skip("no kernel spmm.rode here");
    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 1; n <= 20000; n = 19 * n + 1) {
            rig r;

            rig_open(&r, ctx, f, n, ZOO_INTEGER, SPS_F64);
            same_lists(&r);
            rig_wide(&r);
            same_lists(&r);
            rig_close(&r);
        }
}
END_TEST

/* Row lengths around the thresholds for splitting, one such row in `spread`,
 * after fillers that move their begins to each residue mod 4; the others are
 * short or empty. */
static sps_csr *thresholds(int64_t spread)
{
    enum { LENGTHS = 18, NCOL = 3000 };
    static const int about[LENGTHS] = { 16, 31, 63, 64, 66, 96, 126, 128, 255,
                                        510, 512, 515, 542, 545, 1022, 1024,
                                        1026, 1537 };
    const int64_t rows = LENGTHS * 5 * spread;
    sps_csr *A = NULL;
    int64_t nnz = 0;

    for (int pass = 0; pass < 2; pass++) {
        if (pass) OK(ctx, sps_csr_create(ctx, rows, NCOL, nnz, SPS_F64, &A));
        nnz = 0;
        for (int64_t i = 0; i < rows; i++) {
            const int t = (int)(i / spread % LENGTHS);
            const int64_t d = i / spread / LENGTHS;
            const int64_t length = i % spread == 3 ? about[t] + d - 2
                                   : i % 8 == 6 ? 0 : 1 + (i + d) % 4;

            if (pass) A->rowptr[i] = nnz;
            for (int64_t p = 0; pass && p < length; p++) {
                A->col[nnz + p] = (int32_t)(1 + p * (NCOL - 1) / length);
                ((double *)A->val)[nnz + p] =
                    (double)((i * 31 + p * 7) % 401 - 200);
            }
            nnz += length;
        }
    }
    A->rowptr[rows] = nnz;
    return A;
}

/* Nodes with `size` unknowns, each coupled to a few nodes; in every 24th node
 * one row lacks its last column, every 50th is coupled to very many.  One or
 * two rows follow the last node.  Column 0 is not used. */
static sps_csr *nodes(int size)
{
    enum { NODES = 700 };
    const int64_t nrow = NODES * size + (size > 2 ? 2 : 1);
    sps_csr *A = NULL;
    int64_t nnz = 0;

    for (int pass = 0; pass < 2; pass++) {
        if (pass) OK(ctx, sps_csr_create(ctx, nrow, nrow, nnz, SPS_F64, &A));
        nnz = 0;
        for (int64_t i = 0; i < nrow; i++) {
            const int64_t t = i / size;
            const int64_t links = t == NODES ? 1 : t % 50 == 7 ? 300
                                                               : 4 + t % 9;
            const bool odd = t % 24 == 5 && i % size == 1;

            if (pass) A->rowptr[i] = nnz;
            for (int64_t p = 0; p < links * size - odd; p++) {
                const int64_t j = p / size * (NODES / links) * size + p % size;

                if (pass) {
                    A->col[nnz] = (int32_t)(size + j < NODES * size
                                            ? size + j : j);
                    ((double *)A->val)[nnz] = (double)((i * 7 + p) % 31 - 15);
                }
                nnz++;
            }
        }
    }
    A->rowptr[nrow] = nnz;
    return A;
}

/* Few rows, most of which are processed by warps of their own, and many
 * rows. */
START_TEST(products_over_the_thresholds_are_exact)
{
    const int widths[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                           16, 17, 24, 25, 31, 32, 33, 48, 49, 63, 64, 65, 96,
                           97, 100, 127, 128, 129, 130, 200, 257 };
    const int64_t spread[] = { 8, 200 };
    const int32_t most[] = { 128, 512 };

    for (int s = 0; rode() && s < 2; s++) {
        sps_csr *A = thresholds(spread[s]);
        rig r;

        rig_take(&r, ctx, "thresholds", A);
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            const sps_segments *parts;

            ck_assert(rig_plan(&r, rode(), widths[w]));
            parts = &((sps_segments_plan *)r.plan)->parts;
            ck_assert_int_eq(parts->limits.most, most[s]);
            ck_assert_int_gt(parts->joins, 0);
            try_product(&r, widths[w], 0, 0.0);
            try_product(&r, widths[w], 1 + (int)w % 3, w % 2 ? 3.0 : 1.0);
        }
        same_lists(&r);
        r.A = NULL;
        rig_close(&r);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

START_TEST(products_over_rows_that_are_alike_are_exact)
{
    const int widths[] = { 1, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64,
                           65, 127, 128, 130 };

    for (int size = 2; size <= 3; size++) {
        sps_csr *A = nodes(size);
        sps_segments_limits l;
        rig r;

        rig_take(&r, ctx, "nodes", A);
        ck_assert(spsi_segments_pay(&r.op->f, &l));
        ck_assert_int_eq(l.group, size);
        check_all(A->nrow, A->rowptr, A->col, l, 1);
        for (size_t w = 0; rode() && w < sizeof widths / sizeof *widths; w++) {
            const sps_segments *s;

            ck_assert(rig_plan(&r, rode(), widths[w]));
            s = &((sps_segments_plan *)r.plan)->parts;
            ck_assert_int_eq(s->limits.group, size);
            ck_assert_int_gt(s->odd, 0);
            ck_assert_int_gt(s->count, 0);
            try_product(&r, widths[w], 0, 0.0);
            try_product(&r, widths[w], 1 + (int)w % 3, w % 2 ? 3.0 : 1.0);
        }
        if (rode()) same_lists(&r);
        r.A = NULL;
        rig_close(&r);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_entry_of_the_zoo_has_one_owner),
    RUNNER_TEST(thresholds_are_exact),
    RUNNER_TEST(pieces_of_a_row_are_alike),
    RUNNER_TEST(ranges_cost_about_the_same),
    RUNNER_TEST(a_list_pays_where_lengths_differ_or_rows_are_alike),
    RUNNER_TEST(the_builder_of_the_place_makes_the_same_lists),
    RUNNER_TEST(products_over_the_thresholds_are_exact),
    RUNNER_TEST(products_over_rows_that_are_alike_are_exact),
};
RUNNER_MAIN_WITHIN("segments", tests, open_context, close_context)
