/* SPDX-License-Identifier: BSD-3-Clause */
/* check_tca.c - the work list of TCA-SpMM: every entry once, every row with one
 * owner, and conversion back to CSR; on a GPU: the list built there is the
 * same. */
#include <check.h>

#include "cuda/papers/tca_plan.h"
#include "tests/formats/host_formats.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* -------------------------------------------------------------- work list */

/* A CSR matrix reconstructed from what the warps process. */
typedef struct found {
    const sps_csr *A;
    int64_t *rowptr;   /* lengths, then offsets */
    int32_t *col;
    double *val;
    char *seen;        /* which entries of A were processed */
} found;

static found found_open(const sps_csr *A)
{
    found f = { .A = A };

    f.rowptr = calloc((size_t)A->nrow + 2, sizeof *f.rowptr);
    f.col = calloc((size_t)A->nnz + 1, sizeof *f.col);
    f.val = calloc((size_t)A->nnz + 1, sizeof *f.val);
    f.seen = calloc((size_t)A->nnz + 1, 1);
    return f;
}

static void found_close(found *f)
{
    free(f->rowptr);
    free(f->col);
    free(f->val);
    free(f->seen);
}

/* Entry p is processed for this row; the entries of a row come in any order. */
static void meet(found *f, int32_t row, int64_t p)
{
    ck_assert(p >= f->A->rowptr[row] && p < f->A->rowptr[row + 1]);
    ck_assert_msg(!f->seen[p], "entry %lld taken twice", (long long)p);
    f->seen[p] = 1;
    f->rowptr[row + 1]++;
    f->col[p] = f->A->col[p];
    f->val[p] = ((const double *)f->A->val)[p];
}

/* All entries of A were processed, and nothing else. */
static void found_judge(found *f, const char *what)
{
    for (int64_t i = 0; i < f->A->nrow; i++) f->rowptr[i + 1] += f->rowptr[i];
    ck_assert_msg(!memcmp(f->rowptr, f->A->rowptr,
                          (size_t)(f->A->nrow + 1) * sizeof *f->rowptr),
                  "%s: rows of other lengths", what);
    ck_assert_msg(!memcmp(f->col, f->A->col,
                          (size_t)f->A->nnz * sizeof *f->col) &&
                  !memcmp(f->val, f->A->val,
                          (size_t)f->A->nnz * sizeof *f->val),
                  "%s: other entries", what);
}

/* A warp of a team: its 8 entries, and whether all warps of its row have their
 * slots. */
static void walk_warp(found *f, const int32_t *slot, int warp)
{
    const int32_t row = slot[warp];
    int64_t begin, length;
    int g, first;

    if (row < 0) return;
    begin = f->A->rowptr[row];
    length = f->A->rowptr[row + 1] - begin;
    ck_assert(length >= 1 && length <= SPSI_TCA_STEP);
    g = spsi_tca_chunks(length);
    first = warp - warp % g;
    for (int w = 0; w < g; w++) ck_assert_int_eq(slot[first + w], row);
    for (int64_t e = 8 * (warp - first); e < length && e < 8 * (warp - first + 1);
         e++)
        meet(f, row, begin + e);
}

static void walk_pieces(found *f, const spsi_tca *w)
{
    for (int64_t s = 0; s < w->n.pieces; s++) {
        const spsi_tca_piece *p = &w->piece[s];

        ck_assert(p->length > 0 && p->length <= SPSI_TCA_PIECE);
        for (int64_t e = 0; e < p->length; e++) meet(f, p->row, p->begin + e);
    }
}

/* Partial sums are numbered row by row, in the order of the pieces of the
 * row. */
static void walk_splits(const sps_csr *A, const spsi_tca *w)
{
    int64_t at = 0, partial = 0;

    for (int64_t s = 0; s < w->n.splits; s++) {
        const spsi_tca_split *r = &w->split[s];
        int64_t begin = A->rowptr[r->row];

        ck_assert_int_eq(r->first, partial);
        ck_assert_int_gt(r->count, 1);
        while (at < w->n.pieces && w->piece[at].row != r->row) {
            ck_assert_int_eq(w->piece[at].partial, -1);
            at++;
        }
        for (int c = 0; c < r->count; c++, at++) {
            ck_assert_int_eq(w->piece[at].row, r->row);
            ck_assert_int_eq(w->piece[at].partial, partial++);
            ck_assert_int_eq(w->piece[at].begin, begin);
            begin += w->piece[at].length;
        }
        ck_assert_int_eq(begin, A->rowptr[r->row + 1]);
    }
    ck_assert_int_eq(partial, w->n.partials);
}

START_TEST(every_entry_is_taken_once)
{
    static const int64_t rows[] = { 0, 1, 7, 255, 256, 257, 1100, 5000 };

    for (int f = 0; f < zoo_count(); f++)
        for (int n = 0; n < 8; n++) {
            sps_csr *A = zoo_matrix(f, rows[n], 3, ZOO_INTEGER, SPS_F64);
            found all = found_open(A);
            spsi_tca w;

            OK(ctx, spsi_tca_build(ctx, A->nrow, A->rowptr, &w));
            for (int64_t s = 0; s < SPSI_TCA_TEAM * w.n.teams; s++)
                walk_warp(&all, w.slot + s / 8 * 8, (int)(s % 8));
            walk_pieces(&all, &w);
            walk_splits(A, &w);
            for (int64_t e = 0; e < w.n.empties; e++)
                ck_assert_int_eq(A->rowptr[w.empty[e]],
                                 A->rowptr[w.empty[e] + 1]);
            found_judge(&all, zoo_name(f));
            spsi_tca_clear(ctx, &w);
            found_close(&all);
            zoo_free(&A);
        }
}
END_TEST

/* Every row is written exactly once: by a team, a piece, the sum of a split
 * row, or as an empty row. */
START_TEST(every_row_has_one_owner)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 3000, 3, ZOO_INTEGER, SPS_F64);
        int *owners = calloc((size_t)A->nrow + 1, sizeof *owners);
        spsi_tca w;

        OK(ctx, spsi_tca_build(ctx, A->nrow, A->rowptr, &w));
        for (int64_t s = 0; s < SPSI_TCA_TEAM * w.n.teams; s++)
            if (w.slot[s] >= 0 && (s % 8 == 0 || w.slot[s] != w.slot[s - 1]))
                owners[w.slot[s]]++;
        for (int64_t s = 0; s < w.n.pieces; s++)
            owners[w.piece[s].row] += w.piece[s].partial < 0;
        for (int64_t s = 0; s < w.n.splits; s++) owners[w.split[s].row]++;
        for (int64_t s = 0; s < w.n.empties; s++) owners[w.empty[s]]++;
        for (int64_t i = 0; i < A->nrow; i++) ck_assert_int_eq(owners[i], 1);
        free(owners);
        spsi_tca_clear(ctx, &w);
        zoo_free(&A);
    }
}
END_TEST

/* Idle warps: less than a team for each window of rows. */
START_TEST(teams_are_full)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 5000, 3, ZOO_INTEGER, SPS_F64);
        int64_t idle = 0;
        spsi_tca w;

        OK(ctx, spsi_tca_build(ctx, A->nrow, A->rowptr, &w));
        for (int64_t s = 0; s < SPSI_TCA_TEAM * w.n.teams; s++)
            idle += w.slot[s] < 0;
        ck_assert_int_le(idle, (SPSI_TCA_TEAM - 1) *
                         ((A->nrow + SPSI_TCA_WINDOW - 1) / SPSI_TCA_WINDOW));
        spsi_tca_clear(ctx, &w);
        zoo_free(&A);
    }
}
END_TEST

/* Lengths around the limits of pieces: about equal pieces, none empty. */
START_TEST(pieces_share_a_row_evenly)
{
    for (int64_t length = 65; length < 70000; length += length < 4200 ? 1 : 61) {
        const int32_t pieces = spsi_tca_pieces(length);
        const int32_t share = spsi_tca_share(length, pieces);

        ck_assert_int_le(share, SPSI_TCA_PIECE);
        ck_assert_int_eq(share % SPSI_TCA_STEP, 0);
        ck_assert_int_lt((int64_t)(pieces - 1) * share, length);
        ck_assert_int_le(length, (int64_t)pieces * share);
    }
}
END_TEST

static void same(const void *host, const void *place, size_t bytes,
                 const char *what)
{
    void *back = malloc(bytes + 1);

    if (bytes > 0) OK(ctx, ctx->backend->download(ctx, back, place, bytes));
    ck_assert_msg(!memcmp(host, back, bytes), "%s", what);
    free(back);
}

static void same_list(const sps_csr *A, const spsi_tca *w)
{
    spsi_tca h;

    OK(ctx, spsi_tca_build(ctx, A->nrow, A->rowptr, &h));
    ck_assert(!memcmp(&h.n, &w->n, sizeof h.n));
    same(h.slot, w->slot,
         (size_t)h.n.teams * SPSI_TCA_TEAM * sizeof *h.slot, "slots");
    same(h.piece, w->piece, (size_t)h.n.pieces * sizeof *h.piece, "pieces");
    same(h.split, w->split, (size_t)h.n.splits * sizeof *h.split, "splits");
    same(h.empty, w->empty, (size_t)h.n.empties * sizeof *h.empty,
         "empty rows");
    spsi_tca_clear(ctx, &h);
}

START_TEST(the_device_makes_the_same_list)
{
    static const int64_t rows[] = { 0, 1, 255, 256, 257, 1100, 5000 };
    const sps_kernel *kernel = NULL;

    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        if (!strcmp(kernel->name, "spmm.tca")) break;
    ck_assert(kernel || ctx->backend->place == SPS_HOST);
    for (int f = 0; kernel && f < zoo_count(); f++)
        for (int n = 0; n < 14; n++) {
            rig r;

            rig_open(&r, ctx, f, rows[n % 7], ZOO_INTEGER, SPS_F64);
            if (n >= 7) rig_wide(&r);
            ck_assert(rig_plan(&r, kernel, 4));
            same_list(r.A, &((const sps_tca_plan *)r.plan)->work);
            rig_close(&r);
        }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(every_entry_is_taken_once),
    RUNNER_TEST(every_row_has_one_owner),
    RUNNER_TEST(teams_are_full),
    RUNNER_TEST(pieces_share_a_row_evenly),
    RUNNER_TEST(the_device_makes_the_same_list),
};
RUNNER_MAIN_WITHIN("tca", tests, open_context, close_context)
