/* SPDX-License-Identifier: BSD-3-Clause */
/* check_segments.c - rows shared out into ranges and segments: nothing is
 * lost, nothing is done twice, at every threshold; in the place, that the
 * builder there makes the same lists as the host's, and that products over
 * such rows are exact. */
#include <check.h>

#include "image.h"
#include "kernels/formats/segments.h"
#include "oracle.h"
#include "rig.h"
#include "runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

/* Ranges ascend and cover the rows. */
static void check_ranges(const sps_segments *s, int64_t nrow)
{
    ck_assert_int_ge(s->ranges, 1);
    ck_assert_int_eq(s->range[0], 0);
    ck_assert_int_eq(s->range[s->ranges], nrow);
    for (int64_t r = 0; r < s->ranges; r++)
        ck_assert_int_le(s->range[r], s->range[r + 1]);
}

/* The offsets that short rows and segments give back: round trip to CSR. */
static void check_rows(const sps_segments *s, int64_t nrow,
                       const int64_t *rowptr)
{
    int64_t at = 0, n = 0, slots = 0, joins = 0;

    for (int64_t i = 0; i < nrow; i++) {
        const int64_t first = n;

        ck_assert_int_eq(at, rowptr[i]);
        if (rowptr[i + 1] - rowptr[i] <= s->cut) {
            ck_assert(n == s->count || s->segment[n].row > i);
            at = rowptr[i + 1];
            continue;
        }
        for (; n < s->count && s->segment[n].row == i; n++) {
            ck_assert_int_eq(s->segment[n].start, at);
            ck_assert_int_gt(s->segment[n].length, 0);
            ck_assert_int_le(s->segment[n].length, s->most);
            at += s->segment[n].length;
        }
        ck_assert_int_ge(n, first + 1);
        if (n == first + 1) {
            ck_assert_int_eq(s->segment[first].slot, -1);
            continue;
        }
        ck_assert_int_lt(joins, s->joins);
        ck_assert_int_eq(s->join[joins].row, i);
        ck_assert_int_eq(s->join[joins].first, slots);
        ck_assert_int_eq(s->join[joins++].count, n - first);
        for (int64_t t = first; t < n; t++)
            ck_assert_int_eq(s->segment[t].slot, slots++);
    }
    ck_assert_int_eq(n, s->count);
    ck_assert_int_eq(joins, s->joins);
    ck_assert_int_eq(slots, s->slots);
}

static void check_all(int64_t nrow, const int64_t *rowptr, int32_t cut,
                      int32_t most, int64_t ranges)
{
    sps_segments *s = NULL;

    OK(ctx, spsi_segments_build(ctx, nrow, rowptr, cut, most, ranges, &s));
    check_ranges(s, nrow);
    check_rows(s, nrow, rowptr);
    spsi_segments_destroy(&s);
    ck_assert_ptr_null(s);
}

START_TEST(every_entry_of_the_zoo_has_one_owner)
{
    const int32_t cuts[] = { 0, 3, 32, 64, 512 };

    for (int f = 0; f < zoo_count(); f++)
        for (int64_t n = 0; n <= 1100; n = 3 * n + 2)
            for (int c = 0; c < 5; c++)
                for (int32_t most = 32; most <= 512; most *= 4) {
                    sps_csr *A = zoo_matrix(f, n, 3, ZOO_INTEGER, SPS_F64);

                    check_all(A->nrow, A->rowptr, cuts[c], most, 1 + n / 7);
                    zoo_free(&A);
                }
}
END_TEST

/* Lengths about all limits, one after another, beginning at offsets with
 * every residue. */
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
            for (int64_t ranges = 1; ranges <= 2 * ROWS; ranges *= 2) {
                /* offsets from residue on: as inside a larger matrix */
                sps_segments *s = NULL;

                OK(ctx, spsi_segments_build(ctx, ROWS, rowptr, cut, 512,
                                            ranges, &s));
                check_ranges(s, ROWS);
                for (int64_t t = 0; t < s->count; t++)
                    ck_assert_int_ge(s->segment[t].start, residue);
                spsi_segments_destroy(&s);
                for (int i = 0; i <= ROWS; i++) rowptr[i] -= residue;
                check_all(ROWS, rowptr, cut, 512, ranges);
                for (int i = 0; i <= ROWS; i++) rowptr[i] += residue;
            }
        }
}
END_TEST

START_TEST(pieces_of_a_row_are_alike)
{
    for (int64_t length = 513; length < 20000; length += 97) {
        const int64_t pieces = spsi_segments_of(length, 64, 512);
        const int32_t share = spsi_segments_share(length, pieces);

        ck_assert_int_le(share, 512);
        ck_assert_int_eq(share % 32, 0);
        ck_assert_int_lt((pieces - 1) * share, length);
        ck_assert_int_ge(pieces * share, length);
    }
    ck_assert_int_eq(spsi_segments_of(64, 64, 512), 0);
    ck_assert_int_eq(spsi_segments_of(65, 64, 512), 1);
    ck_assert_int_eq(spsi_segments_of(512, 64, 512), 1);
    ck_assert_int_eq(spsi_segments_of(513, 64, 512), 2);
}
END_TEST

/* No range costs more than its share and one row. */
START_TEST(ranges_cost_about_the_same)
{
    const int32_t cut = 64;
    sps_csr *A = zoo_matrix(zoo_find("power_law"), 4000, 3, ZOO_INTEGER,
                            SPS_F64);
    sps_segments *s = NULL;
    int64_t all = 0;

    OK(ctx, spsi_segments_build(ctx, A->nrow, A->rowptr, cut, 512, 16, &s));
    for (int pass = 0; pass < 2; pass++)
        for (int64_t r = 0; r < s->ranges; r++) {
            int64_t cost = 0;

            for (int64_t i = s->range[r]; i < s->range[r + 1]; i++) {
                const int64_t length = A->rowptr[i + 1] - A->rowptr[i];

                cost += SPS_SEGMENTS_ROW + (length > cut ? 0 : length);
            }
            if (pass == 0) all += cost;
            else ck_assert_int_le(cost, all / 16 + 2 * (SPS_SEGMENTS_ROW +
                                                        cut));
        }
    spsi_segments_destroy(&s);
    zoo_free(&A);
}
END_TEST

START_TEST(a_list_pays_where_lengths_differ)
{
    sps_features f = { .nrow = 1000, .mean_length = 27.0, .max_length = 27 };
    int32_t cut, most;

    ck_assert(!spsi_segments_pay(&f, &cut, &most));
    f.max_length = 5000;
    ck_assert(spsi_segments_pay(&f, &cut, &most));
    ck_assert_int_eq(cut, 54);
    ck_assert_int_eq(most % 32, 0);
    f.mean_length = f.max_length = 4000;
    ck_assert(spsi_segments_pay(&f, &cut, &most));
    ck_assert_int_le(cut, most);
}
END_TEST

/* --------------------------------------------------------------- in place */

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
    if (P->range == NULL) {          /* every row is short */
        ck_assert_int_eq(P->count, 0);
        ck_assert_int_ge(P->cut, r->op->f.max_length);
        return;
    }
    OK(ctx, spsi_segments_build(ctx, r->A->nrow, r->A->rowptr, P->cut, P->most,
                                P->ranges, &s));
    ck_assert_int_eq(P->count, s->count);
    ck_assert_int_eq(P->joins, s->joins);
    ck_assert_int_eq(P->slots, s->slots);
    same(r, "segments", P->segment, s->segment,
         (size_t)s->count * sizeof *s->segment);
    same(r, "joins", P->join, s->join, (size_t)s->joins * sizeof *s->join);
    same(r, "ranges", P->range, s->range,
         (size_t)(s->ranges + 1) * sizeof *s->range);
    spsi_segments_destroy(&s);
}

START_TEST(the_builder_of_the_place_makes_the_same_lists)
{
    if (!rode()) return;
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

enum { LENGTHS = 18, ROWS = LENGTHS * 5 * 8 };

/* Rows of lengths about the limits of cutting, after fillers that bring their
 * begins to each residue mod 4, among enough short and empty rows that these
 * limits hold. */
static sps_csr *thresholds(void)
{
    static const int about[LENGTHS] = { 16, 31, 63, 64, 66, 96, 126, 128, 255,
                                        510, 512, 515, 542, 545, 1022, 1024,
                                        1026, 1537 };
    enum { NCOL = 3000 };
    sps_csr *A = NULL;
    int64_t nnz = 0;

    for (int pass = 0; pass < 2; pass++) {
        if (pass) OK(ctx, sps_csr_create(ctx, ROWS, NCOL, nnz, SPS_F64, &A));
        nnz = 0;
        for (int64_t i = 0; i < ROWS; i++) {
            const int t = (int)(i / 8 % LENGTHS), d = (int)(i / 8 / LENGTHS);
            const int64_t length = i % 8 == 3 ? about[t] + d - 2
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
    A->rowptr[ROWS] = nnz;
    return A;
}

/* Row 0 of X, which no row of the matrix uses, is NaN. */
static void try_product(const rig *r, int k, int which, double beta)
{
    const sps_csr *A = r->A;
    double *right = calloc((size_t)(A->nrow * k), sizeof *right);
    sps_spmm_args args = { .alpha = -2.0, .beta = beta };
    image X, Y;
    int64_t at;

    image_open(&X, ctx, A->ncol, k, which, 3, ZOO_INTEGER);
    image_open(&Y, ctx, A->nrow, k, which, beta == 0.0 ? 0 : 5, ZOO_INTEGER);
    for (int j = 0; j < k; j++) X.data[j] = NAN;
    image_upload(&X);
    for (int64_t i = 0; i < A->nrow; i++)
        memcpy(right + i * k, Y.data + i * Y.ld, (size_t)k * sizeof *right);
    oracle_spmm(A, args.alpha, X.data, X.ld, beta, right, k, k, NULL);
    args.X = X.B;
    args.Y = Y.B;
    OK(ctx, r->plan->kernel->spmm(r->plan, &args));
    OK(ctx, ctx->backend->sync(ctx));
    image_read(&Y, r->what);
    at = oracle_differs(A->nrow, k, Y.out, Y.ld, right, k);
    ck_assert_msg(at < 0, "k %d layout %d beta %g: row %lld column %lld is "
                  "%.17g, not %.17g", k, which, beta, (long long)(at / k),
                  (long long)(at % k), Y.out[at / k * Y.ld + at % k],
                  right[at]);
    image_close(&X);
    image_close(&Y);
    free(right);
}

START_TEST(products_over_the_thresholds_are_exact)
{
    const int widths[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                           16, 17, 24, 25, 31, 32, 33, 48, 49, 63, 64, 65, 96,
                           97, 100, 127, 128, 129, 130, 200, 257 };
    sps_csr *A;
    rig r;

    if (!rode()) return;
    A = thresholds();
    rig_take(&r, ctx, "thresholds", A);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        ck_assert(rig_plan(&r, rode(), widths[w]));
        ck_assert_ptr_nonnull(((sps_segments_plan *)r.plan)->parts.join);
        try_product(&r, widths[w], 0, 0.0);
        try_product(&r, widths[w], 1 + (int)w % 3, w % 2 ? 3.0 : 1.0);
    }
    r.A = NULL;
    rig_close(&r);
    sps_csr_destroy(ctx, &A);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("segments");
    TCase *t = tcase_create("segments");

    tcase_set_timeout(t, RUNNER_TIMEOUT);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, every_entry_of_the_zoo_has_one_owner);
    tcase_add_test(t, thresholds_are_exact);
    tcase_add_test(t, pieces_of_a_row_are_alike);
    tcase_add_test(t, ranges_cost_about_the_same);
    tcase_add_test(t, a_list_pays_where_lengths_differ);
    tcase_add_test(t, the_builder_of_the_place_makes_the_same_lists);
    tcase_add_test(t, products_over_the_thresholds_are_exact);
    suite_add_tcase(s, t);
    return runner_run(s);
}
