/* SPDX-License-Identifier: BSD-3-Clause */
/* check_row_windows.c - row windows: conversion back to CSR, which windows have
 * tile descriptors, the order of columns, and padding that repeats the last
 * column; on the device: the builder makes the same descriptors, and spmm.tiles
 * is exact at the limits of its windows: numbers of rows that are no multiple
 * of 8, empty windows, rows longer than a window accepts, columns common to all
 * rows, NaN that must not reach other rows. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/image.h"
#include "cuda/plan/window_plan.h"
#include "tests/support/oracle.h"
#include "tests/support/kernel_product.h"
#include "tests/support/rig.h"
#include "tests/problems/row_lengths.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const sps_window_rule RULES[] = {
    { 1 << 24, 0, 4 }, { 2048, 10, 5 }, { 64, 6, 12 }, { 7, 17, 128 }
};

/* -------------------------------------------------------------------- host */

static int64_t row_length(const sps_csr *A, int64_t i)
{
    return i < A->nrow ? A->rowptr[i + 1] - A->rowptr[i] : 0;
}

/* Goes through the slots of the window's tile groups and returns their number:
 * bit r of `rows` says that row r stores `column`. */
static int32_t read_slots(const sps_row_windows *windows, int64_t w,
                          int32_t *column, uint8_t *rows)
{
    const sps_window *at = windows->at + w;
    const int32_t *word = windows->word +
                          (int64_t)at->tile * SPSI_WINDOW_WORDS;
    int32_t slot = 0;

    for (int32_t left = at[1].tile - at->tile, c; left > 0; left -= c) {
        c = spsi_window_group(left);
        for (int s = 0; s < 8 * c; s++, slot++) {
            const uint32_t mask = (uint32_t)word[s / 4];

            column[slot] = word[2 * c + s];
            rows[slot] = 0;
            for (int r = 0; r < SPSI_WINDOW_ROWS; r++)
                rows[slot] |= (uint8_t)((mask >> (4 * r + s % 4) & 1) << r);
        }
        word += SPSI_WINDOW_WORDS * c;
    }
    return slot;
}

/* Slots are ascending; those that no row uses repeat the previous one and fill
 * the last tile.  Returns the number of used ones. */
static int32_t check_slots(const int32_t *column, const uint8_t *rows,
                           int32_t slots)
{
    int32_t used = 0;

    while (used < slots && rows[used]) used++;
    for (int32_t s = 1; s < used; s++)
        ck_assert_int_gt(column[s], column[s - 1]);
    for (int32_t s = used; s < slots; s++) {
        ck_assert_int_eq(rows[s], 0);
        ck_assert_int_eq(column[s], column[used - 1]);
    }
    ck_assert_int_lt(slots - used, SPSI_WINDOW_TILE);
    return used;
}

/* Row r of the window, row i of the matrix, must be what the slots describe. */
static void check_row(const sps_csr *A, const int32_t *column,
                      const uint8_t *rows, int32_t slots, int r, int64_t i)
{
    int64_t found = 0;

    for (int32_t s = 0; s < slots; s++) {
        if (!(rows[s] >> r & 1)) continue;
        ck_assert_int_lt(found, row_length(A, i));
        ck_assert_int_eq(column[s], A->col[A->rowptr[i] + found++]);
    }
    ck_assert_int_eq(found, row_length(A, i));
}

/* Number of distinct columns of a window, by sorting. */
static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}
static int32_t distinct_columns(const sps_csr *A, const int64_t *row)
{
    int32_t *col = NULL, count = 0;
    int64_t n = 0;

    for (int r = 0; r < SPSI_WINDOW_ROWS; r++) {
        const int64_t length = row_length(A, row[r]);

        col = realloc(col, (size_t)(n + length + 1) * sizeof *col);
        if (length > 0)
            memcpy(col + n, A->col + A->rowptr[row[r]],
                   (size_t)length * sizeof *col);
        n += length;
    }
    qsort(col, (size_t)n, sizeof *col, compare);
    for (int64_t e = 0; e < n; e++) count += e == 0 || col[e] != col[e - 1];
    free(col);
    return count;
}

/* Window i: must be the next one in one of the two lists. */
static void check_window(const sps_csr *A, sps_window_rule rule,
                         const sps_row_windows *windows, int64_t i, int64_t *w,
                         int64_t *bare, int *owners)
{
    const uint32_t rows = spsi_window_rows(rule.lead, i);
    int64_t row[SPSI_WINDOW_ROWS], entries = 0, longest = 0;
    int32_t distinct, slots, *column;
    uint8_t *who;

    for (int r = 0; r < SPSI_WINDOW_ROWS; r++) {
        row[r] = spsi_window_row(A->nrow, rule.lead, rows, r);
        owners[row[r]]++;
        entries += row_length(A, row[r]);
        if (row_length(A, row[r]) > longest) longest = row_length(A, row[r]);
    }
    distinct = distinct_columns(A, row);
    if (entries == 0 || longest > rule.longest ||
        entries < rule.fill * ((distinct + 7) / 8)) {
        ck_assert_int_lt(*bare, windows->bare);
        ck_assert_uint_eq(windows->rest[(*bare)++], rows);
        return;
    }
    ck_assert_int_lt(*w, windows->count);
    ck_assert_uint_eq(windows->at[*w].rows, rows);
    ck_assert_int_eq(windows->at[*w + 1].value - windows->at[*w].value,
                     entries);
    column = malloc(((size_t)distinct + 8) * sizeof *column);
    who = malloc((size_t)distinct + 8);
    ck_assert_int_eq(windows->at[*w + 1].tile - windows->at[*w].tile,
                     (distinct + 7) / 8);
    slots = read_slots(windows, (*w)++, column, who);
    ck_assert_int_eq(check_slots(column, who, slots), distinct);
    for (int r = 0; r < SPSI_WINDOW_ROWS; r++)
        check_row(A, column, who, slots, r, row[r]);
    free(column);
    free(who);
}

static void check_matrix(const sps_csr *A)
{
    for (int c = 0; c < COUNT(RULES); c++) {
        const int64_t all = spsi_windows_of(A->nrow, RULES[c].lead);
        int *owners = calloc((size_t)A->nrow + 1, sizeof *owners);
        int64_t w = 0, bare = 0;
        sps_row_windows windows;

        OK(ctx, spsi_row_windows_make(ctx, A, RULES[c], &windows));
        ck_assert_int_eq(windows.at[0].tile, 0);
        ck_assert_int_eq(windows.at[0].value, 1);
        for (int64_t i = 0; i < all; i++)
            check_window(A, RULES[c], &windows, i, &w, &bare, owners);
        ck_assert_int_eq(windows.count, w);
        ck_assert_int_eq(windows.bare, bare);
        ck_assert_int_eq(windows.at[w].tile, windows.tiles);
        ck_assert_int_eq(windows.at[w].value, windows.entries + 1);
        for (int64_t i = 0; i < A->nrow; i++) ck_assert_int_eq(owners[i], 1);
        spsi_row_windows_free(ctx, &windows);
        free(owners);
    }
}

static const int64_t SIZES[] = { 0, 1, 7, 8, 9, 15, 16, 17, 33, 130, 1100 };

START_TEST(words_lead_back_to_the_csr)
{
    for (int f = 0; f < zoo_count(); f++)
        for (int n = 0; n < COUNT(SIZES); n++) {
            sps_csr *A = zoo_matrix(f, SIZES[n], 3, ZOO_INTEGER, SPS_F64);

            check_matrix(A);
            zoo_free(&A);
        }
}
END_TEST

/* Windows of 0 to 65 distinct columns: around one tile, groups of 1 to 3
 * tiles. */
START_TEST(every_count_of_columns)
{
    for (int64_t length = 0; length <= 58; length++) {
        sps_csr *A = row_lengths_matrix(&length, 1, 24, 200, true);

        check_matrix(A);
        zoo_free(&A);
    }
}
END_TEST

/* On a grid the row offset (lead) combines two neighbouring grid lines; where
 * rows have no common columns, or are few, consecutive rows. */
START_TEST(the_lead_is_that_of_the_grid)
{
    enum { N = 32 };
    sps_csr A = { .nrow = N * N * N, .ncol = N * N * N };
    int64_t nnz = 0;

    A.rowptr = calloc(N * N * N + 1, sizeof *A.rowptr);
    A.col = malloc(27 * N * N * N * sizeof *A.col);
    for (int i = 0; i < N * N * N; i++) {
        for (int d = 0; d < 27; d++) {
            const int x = i % N + d % 3 - 1, y = i / N % N + d / 3 % 3 - 1;
            const int z = i / N / N + d / 9 - 1;

            if (x >= 0 && x < N && y >= 0 && y < N && z >= 0 && z < N)
                A.col[nnz++] = x + N * (y + N * z);
        }
        A.rowptr[i + 1] = nnz;
    }
    ck_assert_int_eq(spsi_window_lead(&A), N);
    for (int i = 0; i <= N * N * N; i++) A.rowptr[i] = i;
    for (int i = 0; i < N * N * N; i++) A.col[i] = i;
    ck_assert_int_eq(spsi_window_lead(&A), 4);
    A.nrow = 9;
    ck_assert_int_eq(spsi_window_lead(&A), 4);
    free(A.rowptr);
    free(A.col);
}
END_TEST

/* ------------------------------------------------------------ on the device */

static const sps_kernel *tiles(void)
{
    const sps_kernel *k;

    for (int i = 0; (k = spsi_registry_kernel(ctx, i)); i++)
        if (!strcmp(k->name, "spmm.tiles")) return k;
    ck_assert(ctx->backend->place == SPS_HOST);
    return NULL;
}

static void same(const void *host, const void *place, size_t bytes,
                 const char *what)
{
    void *back = malloc(bytes + 1);

    if (bytes > 0) OK(ctx, ctx->backend->download(ctx, back, place, bytes));
    ck_assert_msg(!memcmp(host, back, bytes), "%s", what);
    free(back);
}

/* Values of the windows in the order of their masks; value 0 is a zero. */
static double *ordered_values(const sps_csr *A, sps_window_rule rule,
                              const sps_row_windows *h)
{
    double *val = calloc((size_t)h->entries + 1, sizeof *val), *to = val + 1;

    for (int64_t w = 0; w < h->count; w++) {
        const int32_t slots = (h->at[w + 1].tile - h->at[w].tile) * 8;
        int32_t *column = malloc((size_t)slots * sizeof *column);
        uint8_t *rows = malloc((size_t)slots);
        const double *from[SPSI_WINDOW_ROWS];

        read_slots(h, w, column, rows);
        for (int r = 0; r < SPSI_WINDOW_ROWS; r++)
            from[r] = (const double *)A->val + A->rowptr[
                spsi_window_row(A->nrow, rule.lead, h->at[w].rows, r)];
        for (int32_t s = 0; s < slots; s += 4)
            for (int bit = 0; bit < 32; bit++)
                if (rows[s + bit % 4] >> (bit / 4) & 1)
                    *to++ = *from[bit / 4]++;
        free(column);
        free(rows);
    }
    return val;
}

static void same_windows(const rig *r)
{
    const sps_window_plan *plan = (const sps_window_plan *)r->plan;
    sps_row_windows h;
    double *val;

    OK(ctx, spsi_row_windows_make(ctx, r->A, plan->rule, &h));
    ck_assert_int_eq(plan->windows.count, h.count);
    ck_assert_int_eq(plan->windows.tiles, h.tiles);
    ck_assert_int_eq(plan->windows.bare, h.bare);
    if (r->A->nrow > 0)
        same(h.at, plan->windows.at, (size_t)(h.count + 1) * sizeof *h.at,
             r->what);
    same(h.word, plan->windows.word,
         (size_t)h.tiles * SPSI_WINDOW_WORDS * sizeof *h.word, r->what);
    same(h.rest, plan->windows.rest, (size_t)h.bare * sizeof *h.rest, r->what);
    val = ordered_values(r->A, plan->rule, &h);
    if (h.count > 0)
        same(val, plan->val, ((size_t)h.entries + 1) * sizeof *val, r->what);
    free(val);
    spsi_row_windows_free(ctx, &h);
}

START_TEST(the_device_makes_the_same_words)
{
    const sps_kernel *kernel = tiles();

    for (int f = 0; kernel && f < zoo_count(); f++)
        for (int n = 0; n < 2 * COUNT(SIZES); n++) {
            rig r;

            rig_open(&r, ctx, f, SIZES[n % COUNT(SIZES)], ZOO_INTEGER,
                     SPS_F64);
            if (n >= COUNT(SIZES)) rig_wide(&r);
            ck_assert(rig_plan(&r, kernel, 16));
            same_windows(&r);
            rig_close(&r);
        }
}
END_TEST

/* Row lengths, repeated cyclically; rows with an even index have contiguous
 * columns, the others scattered ones.  Long rows next to short ones, windows of
 * empty rows only, full windows, one row as long as a window accepts, and one
 * longer. */
static const struct {
    int64_t nrow, ncol;
    int count;
    int32_t length[24];
} EDGES[] = {
    { 203, 90, 1, { 40 } },
    { 100, 5000, 3, { 1, 2500, 7 } },
    { 129, 70, 24, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 31, 32,
                     33, 0, 4, 3, 5, 64 } },
    { 31, 4200, 8, { 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048 } },
    { 31, 4200, 8, { 2048, 2048, 2049, 1, 0, 4000, 16, 2047 } },
    { 9, 60, 1, { 59 } },
    { 70, 25, 1, { 24 } },
    { 20, 2, 1, { 1 } },
};

START_TEST(products_at_the_edges_are_exact)
{
    static const int widths[] = { 1, 3, 8, 9, 15, 16, 17, 24, 32, 33, 48, 64,
                                  65, 130 };
    const sps_kernel *kernel = tiles();

    for (int e = 0; kernel && e < COUNT(EDGES); e++) {
        rig r;

        rig_take(&r, ctx, "edges",
                 zoo_rows(EDGES[e].nrow, EDGES[e].ncol, EDGES[e].length,
                          EDGES[e].count, 1, 3, ZOO_INTEGER, SPS_F64));
        for (int k = 0; k < COUNT(widths); k++) {
            ck_assert(rig_plan(&r, kernel, widths[k]));
            same_windows(&r);
            for (int layout = 0; layout < LAYOUTS; layout++)
                try_product(&r, widths[k], layout, layout % 2 ? -1.0 : 0.0);
        }
        rig_close(&r);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(words_lead_back_to_the_csr),
    RUNNER_TEST(every_count_of_columns),
    RUNNER_TEST(the_lead_is_that_of_the_grid),
    RUNNER_TEST(the_device_makes_the_same_words),
    RUNNER_TEST(products_at_the_edges_are_exact),
};
RUNNER_MAIN_WITHIN("row windows", tests, open_context, close_context)
