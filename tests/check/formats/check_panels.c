/* SPDX-License-Identifier: BSD-3-Clause */
/* check_panels.c - panels of rows: what is packed comes back bit for bit,
 * whatever the lengths of rows, the room of a panel and the sort of the values,
 * and from rows that come in portions, too; and sums of rows on the host. */
#include <check.h>
#include <math.h>

#include "cpu/stream/panel_sums.h"
#include "tests/problems/row_lengths.h"
#include "tests/problems/zoo.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

/* What unpacking has found so far. */
typedef struct found {
    const sps_csr *A;
    int64_t entries, panels, windows, whole, parts, shared;
    int64_t kind[3];
    int32_t *col;
    double *val;
} found;

/* The column that element `delta` of a window's lists stands for, as kernels
 * decode it. */
static int32_t column_at(const void *image, const sps_panel *p,
                         const sps_panel_window *w, int64_t delta)
{
    const uint16_t *deltas = (const uint16_t *)(const void *)
        ((const char *)image + p->deltas) + w->delta;

    if (w->whole) return ((const int32_t *)(const void *)deltas)[delta];
    return w->base[deltas[delta] >> SPS_PACKED_BITS] +
           deltas[delta] % SPS_PACKED_REACH;
}

static double value_of(const void *image, const sps_panel *p, int64_t value)
{
    const char *v = (const char *)image + p->values;

    if (p->kind == SPS_PANEL_DOUBLE)
        return ((const double *)(const void *)v)[value];
    if (p->kind == SPS_PANEL_FLOAT)
        return ((const float *)(const void *)v)[value];
    return ((const double *)(const void *)((const char *)image + p->table))
        [((const uint8_t *)v)[value]];
}

static void take_entries(found *f, const void *image, const sps_panel *p,
                         const sps_panel_window *w, int s)
{
    const sps_strip *strip = spsi_panel_strips(image, p) + w->strip + s;

    for (int e = 0; e < strip[1].value - strip[0].value; e++) {
        f->col[f->entries] = column_at(image, p, w, strip[0].delta + e);
        f->val[f->entries++] = value_of(image, p, (int64_t)w->value +
                                                  strip[0].value + e);
    }
    f->shared += s > 0 && strip[0].delta == strip[-1].delta &&
                 strip[0].value > strip[-1].value;
}

static void judge_range(const found *f, const sps_panel *p, int64_t from)
{
    int32_t least = from < f->entries ? INT32_MAX : 0;
    int32_t greatest = -1;

    for (int64_t e = from; e < f->entries; e++) {
        if (f->col[e] < least) least = f->col[e];
        if (f->col[e] > greatest) greatest = f->col[e];
    }
    ck_assert_int_eq(p->first_column, least);
    ck_assert_int_eq(p->last_column, greatest);
}

/* Appends the panel to what was found; windows are in the order of rows. */
static void unpack(found *f, const sps_packer *k, const void *image,
                   const sps_panel *p)
{
    const sps_panel_window *w = spsi_panel_windows(image);
    int64_t entries = 0;

    const int64_t from = f->entries;

    ck_assert_uint_le(p->bytes, k->room);
    for (int i = 0; i < p->windows; i++, w++) {
        f->whole += w->whole;
        ck_assert_int_ge(w->strips, 1);
        for (int s = 0; s < w->strips; s++) {
            if (w->parts) {
                ck_assert_int_eq(w->row + s, f->parts++);
                take_entries(f, image, p, w, s);
                continue;
            }
            ck_assert_int_eq(f->entries, f->A->rowptr[w->row + s]);
            take_entries(f, image, p, w, s);
        }
        entries += w->entries;
    }
    ck_assert_int_eq(entries, p->entries);
    judge_range(f, p, from);
    f->panels++;
    f->windows += p->windows;
    f->kind[p->kind]++;
}

static void judge(const sps_csr *A, const found *f, const sps_packer *k)
{
    int64_t segments = 0, longs = 0;

    ck_assert_int_eq(f->entries, A->nnz);
    ck_assert(!memcmp(f->col, A->col, (size_t)A->nnz * sizeof *A->col));
    for (int64_t e = 0; e < A->nnz; e++) {
        const double v = spsi_csr_value(A, e);

        ck_assert(!memcmp(&v, &f->val[e], sizeof v));
    }
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t n = A->rowptr[i + 1] - A->rowptr[i];

        if (n <= SPS_PANEL_SEGMENT) continue;
        ck_assert_int_eq(k->long_row[longs], i);
        ck_assert_int_eq(k->long_part[longs++], segments);
        segments += (n + SPS_PANEL_SEGMENT - 1) / SPS_PANEL_SEGMENT;
    }
    ck_assert_int_eq(k->longs, longs);
    ck_assert_int_eq(k->parts, segments);
    ck_assert_int_eq(f->parts, segments);
}

/* Packs A from portions of `portion` rows, each in arrays of its own. */
static found pack(const sps_csr *A, size_t room, int64_t portion)
{
    const size_t m = (size_t)A->nnz + 1;
    found f = { .A = A, .col = malloc(m * 4), .val = malloc(m * 8) };
    char *image = aligned_alloc(64, room);
    sps_packer k;

    spsi_packer_open(&k, room);
    for (int64_t i = 0; i < A->nrow; i += portion) {
        const int64_t end = i + portion < A->nrow ? i + portion : A->nrow;
        const int64_t at = A->rowptr[i];
        const size_t value = spsi_dtype_size(A->dtype);
        int64_t *ptr = malloc((size_t)(end - i + 1) * sizeof *ptr);
        const sps_panel_rows rows = {
            i, end - i, ptr, A->col + at, (const char *)A->val + (size_t)at *
            value, A->dtype };

        for (int64_t r = i; r <= end; r++) ptr[r - i] = A->rowptr[r] - at;
        while (k.row < end) {
            sps_panel p;

            memset(image, 0xff, room);
            OK(ctx, spsi_packer_next(ctx, &k, &rows, image, &p));
            unpack(&f, &k, image, &p);
        }
        free(ptr);
    }
    judge(A, &f, &k);
    spsi_packer_close(ctx, &k);
    free(image);
    free(f.col);
    free(f.val);
    return f;
}

START_TEST(the_zoo_comes_back)
{
    static const int64_t sizes[] = { 1, 70, 1100, 5000 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 4; s++)
            for (int dtype = SPS_F64; dtype <= SPS_F32; dtype++) {
                sps_csr *A = zoo_matrix(f, sizes[s], 7, ZOO_INTEGER,
                                        (sps_dtype)dtype);

                if (A->nrow > 0) {
                    pack(A, SPS_PANEL_LEAST, A->nrow);
                    pack(A, 1 << 20, 97);
                }
                zoo_free(&A);
            }
}
END_TEST

/* Columns of `near` neighbourhoods, random values. */
static sps_csr *matrix(const int64_t *lengths, int count, int64_t nrow,
                       int64_t ncol)
{
    sps_csr *A = row_lengths_matrix(lengths, count, nrow, ncol, true);
    double *v = A->val;

    for (int64_t e = 0; e < A->nnz; e++) v[e] = 1.0 / (double)(3 * e + 7);
    return A;
}

START_TEST(rows_of_every_length_and_panels_from_one_to_hundreds)
{
    static const int64_t lengths[] = {
        0, 1, 1023, 0, 0, 1024, 1025, 3, 20000, 2048, 2049, 0, 5, 40000 };
    sps_csr *A = matrix(lengths, 14, 700, 50000);
    const found many = pack(A, SPS_PANEL_LEAST, A->nrow);
    const found one = pack(A, (size_t)64 << 20, A->nrow);
    const found some = pack(A, 1 << 19, 10);

    ck_assert_int_gt(many.panels, 200);
    ck_assert_int_eq(one.panels, 1);
    ck_assert_int_gt(some.panels, one.panels);
    ck_assert_int_eq(many.parts, one.parts);
    zoo_free(&A);
}
END_TEST

START_TEST(empty_rows_alone_are_panels_too)
{
    static const int64_t none[] = { 0 };
    sps_csr *A = matrix(none, 1, 100000, 10);
    const found f = pack(A, SPS_PANEL_LEAST, A->nrow);

    ck_assert_int_gt(f.panels, 1);
    ck_assert_int_ge(f.windows, 100000 / SPS_PANEL_STRIPS);
    zoo_free(&A);
}
END_TEST

/* The sort of values is that of the worst of a panel, bit for bit. */
START_TEST(values_take_the_fewest_bytes_that_hold_their_bits)
{
    static const int64_t lengths[] = { 20 };
    sps_csr *A = matrix(lengths, 1, 200, 400);
    double *v = A->val;

    ck_assert_int_eq(pack(A, 1 << 20, 200).kind[SPS_PANEL_DOUBLE], 1);
    for (int64_t e = 0; e < A->nnz; e++) v[e] = (double)(float)v[e];
    ck_assert_int_eq(pack(A, 1 << 20, 200).kind[SPS_PANEL_FLOAT], 1);
    for (int64_t e = 0; e < A->nnz; e++) v[e] = 1.0 / (double)(1 + e % 254);
    v[17] = -0.0;
    v[18] = 0.0;
    ck_assert_int_eq(pack(A, 1 << 20, 200).kind[SPS_PANEL_TABLE], 1);
    v[19] = 1e300;                 /* the 257th */
    ck_assert_int_eq(pack(A, 1 << 20, 200).kind[SPS_PANEL_DOUBLE], 1);
    for (int64_t e = 0; e < A->nnz; e++) v[e] = (double)(e + 1);
    v[5] = NAN;
    v[6] = -INFINITY;
    v[7] = 0x1p-149;
    pack(A, 1 << 20, 200);
    v[8] = 0x1p-150;
    ck_assert_int_eq(pack(A, 1 << 20, 200).kind[SPS_PANEL_DOUBLE], 1);
    zoo_free(&A);
}
END_TEST

START_TEST(rows_of_a_node_store_their_columns_once)
{
    static const int64_t lengths[] = { 30 };
    sps_csr *A = matrix(lengths, 1, 300, 900);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int e = 0; e < 30; e++)
            A->col[A->rowptr[i] + e] = (int32_t)(i / 3 * 3 + e);
    ck_assert_int_ge(pack(A, 1 << 20, 300).shared, 190);
    zoo_free(&A);
}
END_TEST

START_TEST(columns_too_far_apart_are_stored_whole)
{
    static const int64_t lengths[] = { 9, 0, 3, 1500 };
    sps_csr *A = matrix(lengths, 4, 900, INT32_MAX);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t e = A->rowptr[i]; e < A->rowptr[i + 1]; e++)
            A->col[e] = (int32_t)((e - A->rowptr[i]) * 10007 + i % 3);
    ck_assert_int_gt(pack(A, SPS_PANEL_LEAST, 900).whole, 0);
    zoo_free(&A);
}
END_TEST

/* ---------------------------------------------------------------- host sums */

/* Sums of A X with k columns, by panels, are chains of fused multiply-adds. */
static void judge_sums(const sps_csr *A, int k)
{
    const sps_panel_rows rows = { 0, A->nrow, A->rowptr, A->col, A->val,
                                  A->dtype };
    double *x = zoo_block(A->ncol, k, k, 3, ZOO_RANDOM);
    double *y = malloc((size_t)A->nrow * (size_t)k * sizeof *y);
    char *image = aligned_alloc(64, 1 << 17);
    sps_packer packer;
    sps_panel p;

    spsi_packer_open(&packer, 1 << 17);
    while (packer.row < A->nrow) {
        OK(ctx, spsi_packer_next(ctx, &packer, &rows, image, &p));
        spsi_cpu_panel_sums(&(sps_panel_sums){
            image, &p, x + (int64_t)p.first_column * k, p.first_column, p.row,
            k, y + p.row * k }, 0, p.windows);
    }
    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0;

            for (int64_t e = A->rowptr[i]; e < A->rowptr[i + 1]; e++)
                sum = fma(spsi_csr_value(A, e), x[A->col[e] * k + j], sum);
            ck_assert_msg(!memcmp(&sum, &y[i * k + j], sizeof sum),
                          "k %d, row %d, column %d: other bits", k, (int)i, j);
        }
    spsi_packer_close(ctx, &packer);
    free(image);
    free(x);
    free(y);
}

START_TEST(sums_on_the_host_are_chains_of_fused_multiply_adds)
{
    static const int64_t lengths[] = { 27, 27, 27, 27, 27, 0, 3, 1024, 1, 1 };

    for (int sort = 0; sort < 4; sort++) {
        sps_csr *A = matrix(lengths, 10, 600, 20000);
        double *v = A->val;

        for (int64_t e = 0; e < A->nnz; e++)
            v[e] = sort == 0 ? 1.0 / (double)(1 + e % 250)
                   : sort == 1 ? (double)(float)v[e] : v[e];
        for (int64_t i = 0; i < A->nrow; i += 10)  /* rows with one list */
            for (int e = 27; e < 135; e++)
                A->col[A->rowptr[i] + e] = A->col[A->rowptr[i] + e % 27];
        for (int64_t i = 0; sort == 3 && i < A->nrow; i++)
            for (int64_t e = A->rowptr[i]; e < A->rowptr[i + 1]; e++)
                A->col[e] = (int32_t)((e - A->rowptr[i]) * 19);
        for (int k = 1; k <= 33; k += k < 20 ? 1 : 13) judge_sums(A, k);
        zoo_free(&A);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(sums_on_the_host_are_chains_of_fused_multiply_adds),
    RUNNER_TEST(the_zoo_comes_back),
    RUNNER_TEST(rows_of_every_length_and_panels_from_one_to_hundreds),
    RUNNER_TEST(empty_rows_alone_are_panels_too),
    RUNNER_TEST(values_take_the_fewest_bytes_that_hold_their_bits),
    RUNNER_TEST(rows_of_a_node_store_their_columns_once),
    RUNNER_TEST(columns_too_far_apart_are_stored_whole),
};
RUNNER_MAIN_WITHIN("panels", tests, open_context, close_context)
