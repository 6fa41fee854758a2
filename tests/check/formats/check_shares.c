/* SPDX-License-Identifier: BSD-3-Clause */
/* check_shares.c - entries divided into shares: each entry is in exactly one,
 * for every share size and team; the GPU builds the same shares as the host;
 * and products with shares are exact, whichever rows they combine, split or
 * omit. */
#include <check.h>

#include "cuda/plan/share_plan.h"
#include "tests/formats/host_formats.h"
#include "tests/support/kernel_product.h"
#include "tests/problems/row_lengths.h"
#include "tests/support/runner.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* Position while going through the shares: the next entry and its row. */
typedef struct walk {
    const sps_csr *A;
    const sps_shares *s;
    int64_t at, row, rows, spans, parts;
} walk;

static int64_t length_of(const sps_csr *A, int64_t i)
{
    return A->rowptr[i + 1] - A->rowptr[i];
}

static void skip_empty(walk *w)
{
    while (w->row < w->A->nrow && length_of(w->A, w->row) == 0) w->row++;
}

static void next_row(walk *w)
{
    ck_assert_int_eq(w->at, w->A->rowptr[w->row + 1]);
    if (w->s->row) ck_assert_int_eq(w->s->row[w->rows], w->row);
    else ck_assert_int_eq(w->rows, w->row);
    w->rows++;
    w->row++;
}

static void judge_whole(walk *w, const sps_share *share)
{
    const int entries = spsi_share_entries(share->what);

    ck_assert_int_eq(spsi_share_pieces(share->what), 0);
    ck_assert_int_eq(spsi_share_span(share->what), -1);
    ck_assert_int_eq(share->ends >> (entries - 1), 1);
    for (int t = 0; t < entries; t++) {
        skip_empty(w);
        /* ck_assert writes to a pipe even when the assertion holds. */
        if ((w->at == w->A->rowptr[w->row + 1] - 1) != (share->ends >> t & 1))
            ck_abort_msg("entry %lld: wrong end", (long long)w->at);
        w->at++;
        if (share->ends >> t & 1) next_row(w);
    }
}

static void judge_span(walk *w, int64_t n, int64_t pieces)
{
    const sps_shares *s = w->s;
    const sps_share_span *span = &s->span[w->spans++];
    const int64_t blocks = (pieces + s->team - 1) / s->team;

    ck_assert_int_eq(span->first, w->parts);
    ck_assert_int_eq(span->count, blocks);
    ck_assert_int_eq(span->block, n / s->team);
    ck_assert_int_eq(n % s->team, 0);
    w->parts += blocks;
}

/* The pieces of a long row, from share n on; returns the index after them. */
static int64_t judge_pieces(walk *w, int64_t n)
{
    const sps_shares *s = w->s;
    const int64_t length = length_of(w->A, w->row);
    const int64_t pieces = (length + s->size - 1) / s->size;
    const bool spans = pieces > s->team;

    ck_assert_int_gt(length, s->size);
    if (spans) judge_span(w, n, pieces);
    else ck_assert_int_eq(n / s->team, (n + pieces - 1) / s->team);
    for (int64_t p = 0; p < pieces; p++) {
        const sps_share *share = &s->share[n + p];
        const int entries = spsi_share_entries(share->what);
        const int64_t left = pieces - p;
        const int64_t head = p % s->team ? 0 : left < s->team ? left : s->team;

        ck_assert_int_eq(share->first, w->at);
        ck_assert_int_eq(share->row, w->rows);
        ck_assert_int_eq(share->ends, 0);
        ck_assert(entries == length / pieces || entries == length / pieces + 1);
        ck_assert_int_eq(spsi_share_pieces(share->what), head);
        ck_assert_int_eq(spsi_share_span(share->what),
                         spans ? w->spans - 1 : -1);
        w->at += entries;
    }
    next_row(w);
    return n + pieces;
}

static void judge_block(const sps_shares *s, int64_t b)
{
    bool joins = false;

    for (int t = 0; t < s->team; t++) {
        const sps_share *share = &s->share[b + t];

        joins |= spsi_share_entries(share->what) > 0 && !share->ends;
    }
    for (int t = 0; t < s->team; t++)
        ck_assert(spsi_share_joins(s->share[b + t].what) == joins);
}

static void judge(const sps_csr *A, const sps_shares *s)
{
    walk w = { .A = A, .s = s };
    int64_t empty = 0;

    ck_assert_int_eq(s->count % s->team, 0);
    for (int64_t n = 0; n < s->count;) {
        const sps_share *share = &s->share[n];

        if (n % s->team == 0) judge_block(s, n);
        skip_empty(&w);
        if (spsi_share_entries(share->what) == 0) {
            ck_assert_int_eq(share->ends, 0);
            n++;
            continue;
        }
        ck_assert_int_eq(share->first, w.at);
        ck_assert_int_eq(share->row, w.rows);
        ck_assert_int_le(spsi_share_entries(share->what), s->size);
        if (share->ends) judge_whole(&w, &s->share[n++]);
        else n = judge_pieces(&w, n);
    }
    skip_empty(&w);
    ck_assert_int_eq(w.at, A->rowptr[A->nrow]);
    ck_assert_int_eq(w.row, A->nrow);
    ck_assert_int_eq(w.rows, s->rows);
    ck_assert_int_eq(w.spans, s->spans);
    ck_assert_int_eq(w.parts, s->parts);
    for (int64_t i = 0; i < A->nrow; i++)
        if (length_of(A, i) == 0)
            ck_assert_int_eq(s->no_entries[empty++], i);
    ck_assert_int_eq(empty, s->empty);
}

static void deal_and_judge(const sps_csr *A)
{
    static const int32_t sizes[] = { 1, 5, 8, SPS_SHARE_MOST };

    for (int n = 0; n < COUNT(sizes); n++)
        for (int32_t team = 2; team <= SPS_SHARE_TEAM; team *= 8) {
            sps_shares s;

            spsi_shares_tally(A->nrow, A->rowptr, sizes[n], team, &s);
            OK(ctx, spsi_shares_fill(ctx, A->nrow, A->rowptr, &s));
            judge(A, &s);
            spsi_shares_free(ctx, &s);
            ck_assert_ptr_null(s.share);
        }
}

START_TEST(every_entry_of_the_zoo_is_in_one_share)
{
    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 0; n <= 300; n = 5 * n + 2) {
            sps_csr *A = zoo_matrix(f, n, 3, ZOO_INTEGER, SPS_F64);

            deal_and_judge(A);
            zoo_free(&A);
        }
}
END_TEST

/* Row lengths near the share sizes and near the capacity of a block. */
static const int64_t EDGES[] = { 7, 8, 9, 0, 15, 16, 17, 1, 31, 32, 33, 3, 63,
                                 64, 65, 0, 0, 127, 128, 129, 255, 256, 257, 2,
                                 511, 512, 513, 1023, 1024, 1025, 5, 2047,
                                 2048, 2049, 5000, 0 };

START_TEST(lengths_at_the_edges_are_dealt_out)
{
    for (int from = 0; from < COUNT(EDGES); from += 5) {
        sps_csr *A = row_lengths_matrix(EDGES + from, COUNT(EDGES) - from,
                                        COUNT(EDGES) - from, 6000, true);

        deal_and_judge(A);
        zoo_free(&A);
    }
}
END_TEST

/* ------------------------------------------------------------ on the device */

static const sps_kernel *kernel_here(void)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (strcmp(kernel->name, "spmm.share") == 0) break;
    return kernel;
}

/* Compares the plan's array, downloaded, with the host's; both may be NULL. */
static void same_array(const rig *r, const char *name, const void *there,
                       const void *here, int64_t count, size_t each)
{
    const size_t bytes = (size_t)count * each;
    char *got = malloc(bytes + 1);

    ck_assert_msg((here && count > 0) == (there != NULL), "%s: %s", r->what,
                  name);
    if (there) {
        OK(ctx, ctx->backend->download(ctx, got, there, bytes));
        for (int64_t n = 0; n < count; n++)
            if (memcmp(got + (size_t)n * each,
                       (const char *)here + (size_t)n * each, each))
                ck_abort_msg("%s, %lld rows, width %d: %s %lld of %lld",
                             r->what, (long long)r->A->nrow, r->plan->k, name,
                             (long long)n, (long long)count);
    }
    free(got);
}

static void same_shares(const rig *r)
{
    const sps_shares *d = &((const sps_share_plan *)r->plan)->shares;
    sps_shares h;

    spsi_shares_tally(r->A->nrow, r->A->rowptr, d->size, d->team, &h);
    ck_assert_int_eq(d->count, h.count);
    ck_assert_int_eq(d->spans, h.spans);
    ck_assert_int_eq(d->parts, h.parts);
    ck_assert_int_eq(d->rows, h.rows);
    ck_assert_int_eq(d->empty, h.empty);
    OK(ctx, spsi_shares_fill(ctx, r->A->nrow, r->A->rowptr, &h));
    same_array(r, "share", d->share, h.share, h.count, sizeof *h.share);
    same_array(r, "span", d->span, h.span, h.spans, sizeof *h.span);
    same_array(r, "row", d->row, h.row, h.rows, sizeof *h.row);
    same_array(r, "empty row", d->no_entries, h.no_entries, h.empty,
               sizeof *h.no_entries);
    spsi_shares_free(ctx, &h);
}

/* Plans for each team, alternating between offsets of 32 and of 64 bits. */
static void compare_plans(rig *r)
{
    static const int widths[] = { 2, 7, 16, 29, 64 };

    for (int n = 0; n < COUNT(widths); n++) {
        if (n == 3) rig_wide(r);
        ck_assert(rig_plan(r, kernel_here(), widths[n]));
        same_shares(r);
    }
    rig_close(r);
}

START_TEST(shares_of_the_device_equal_those_of_the_host)
{
    static const int64_t sizes[] = { 0, 1, 63, 64, 65, 1025, 5000, 13000 };
    const int count = fixture_env("SPS_TEST_QUICK") ? 6 : COUNT(sizes);
    rig r;

    if (!kernel_here()) runner_skip("no kernel spmm.share here");
    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < count; s++) {
            rig_open(&r, ctx, f, sizes[s], ZOO_INTEGER, SPS_F64);
            compare_plans(&r);
        }
    for (int n = 0; n < 3; n++)
        for (int64_t from = 0; from < COUNT(EDGES); from += 7) {
            rig_take(&r, ctx, "edges", row_lengths_matrix(
                EDGES + from, COUNT(EDGES) - (int)from, 40 << 2 * n, 6000,
                true));
            compare_plans(&r);
        }
}
END_TEST

/* Products at every width; old Y and layouts alternate.  Columns are shifted by
 * one, since try_product requires column 0 to be unused. */
static void try_widths(const char *what, const int64_t *length, int count,
                       int64_t n, int64_t ncol, int step)
{
    sps_csr *A = row_lengths_matrix(length, count, n, ncol, true);
    rig r;

    A->ncol++;
    for (int64_t p = 0; p < A->nnz; p++) A->col[p]++;
    rig_take(&r, ctx, what, A);
    for (int k = 1; k <= 130; k += step) {
        ck_assert(rig_plan(&r, kernel_here(), k));
        try_product(&r, k, 0, 0.0);
        try_product(&r, k, 1 + k % 3, k % 2 ? 3.0 : 1.0);
    }
    rig_close(&r);
}

START_TEST(products_over_cut_rows_are_exact)
{
    static const int64_t hubs[] = { 3, 3, 9000, 1, 0, 5, 70, 2, 0, 0, 33, 4, 31,
                                    300, 1, 1, 1100, 2 };
    static const int64_t short_rows[] = { 1, 0, 2, 3, 0, 0, 1 };
    static const int64_t one[] = { 9000 };
    static const int64_t long_rows[] = { 40, 65, 129, 33 };
    const int step = fixture_env("SPS_TEST_QUICK") ? 7 : 1;

    if (!kernel_here()) runner_skip("no kernel spmm.share here");
    try_widths("hubs", hubs, COUNT(hubs), 90, 9000, step);
    try_widths("short rows", short_rows, COUNT(short_rows), 700, 700, step);
    try_widths("one row", one, 1, 1, 9000, step);
    try_widths("long rows", long_rows, COUNT(long_rows), 150, 150, step);
}
END_TEST

/* Number of entries of the plan's largest share, from its description. */
static int size_of(const rig *r)
{
    int size = 0;

    ck_assert_int_eq(sscanf(r->plan->detail, "%*d shares of %d", &size), 1);
    return size;
}

/* The plan uses larger shares where smaller ones would exceed what the GPU can
 * process at the same time: matrices grow until each size from `least` to
 * `most` has been used, and beyond 10^6 entries. */
static void grow(int k, int least, int most)
{
    static const int64_t length[] = { 3, 40, 0, 7, 1, 33, 9, 70, 2, 5 };
    int64_t rows = 1000, nnz = 0;
    int next = least;

    for (; next <= most || nnz < 1000000; rows += rows / 2) {
        sps_csr *A = row_lengths_matrix(length, COUNT(length), rows, 5000,
                                        true);
        rig r;

        A->ncol++;
        for (int64_t p = 0; p < A->nnz; p++) A->col[p]++;
        rig_take(&r, ctx, "shares of every size", A);
        nnz = A->nnz;
        ck_assert(rig_plan(&r, kernel_here(), k));
        same_shares(&r);
        if (size_of(&r) == next || (next > most && nnz >= 1000000)) {
            next *= next > most ? 1 : 2;
            try_product(&r, k, 0, 0.0);
            try_product(&r, k, 1 + k % 3, k % 2 ? 3.0 : 1.0);
        }
        ck_assert_int_eq(2 * size_of(&r), next);
        rig_close(&r);
    }
}

START_TEST(every_size_of_shares_is_taken_and_exact)
{
    if (!kernel_here()) runner_skip("no kernel spmm.share here");
    if (fixture_env("SPS_TEST_QUICK")) runner_leave_out("not in the quick form");
    grow(2, 8, 8);
    grow(7, 8, 16);
    grow(16, 8, 32);
    grow(29, 16, 32);
    grow(64, 16, 32);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_entry_of_the_zoo_is_in_one_share),
    RUNNER_TEST(lengths_at_the_edges_are_dealt_out),
    RUNNER_TEST(shares_of_the_device_equal_those_of_the_host),
    RUNNER_TEST(products_over_cut_rows_are_exact),
    RUNNER_TEST(every_size_of_shares_is_taken_and_exact),
};
RUNNER_MAIN_WITHIN("shares", tests, open_context, close_context)
