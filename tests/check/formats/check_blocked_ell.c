/* SPDX-License-Identifier: BSD-3-Clause */
/* check_blocked_ell.c - Blocked-ELL on the host: every pattern of the zoo, for
 * every block size, is the same after conversion there and back; padding is as
 * the head of blocked_ell.h says.  On a GPU: what the device builds equals the
 * host's, also after a refresh. */
#include <check.h>

#include "matrix/features_sample.h"
#include "tests/formats/host_formats.h"
#include "tests/support/oracle.h"
#include "tests/support/rig.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void open_place(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

static const int SIZES[] = { 1, 2, 5, 8, 16, 32 };
enum { SIZE_COUNT = (int)(sizeof SIZES / sizeof *SIZES) };

static void check_same(const sps_csr *A, const sps_csr *B, const char *what)
{
    const size_t size = A->dtype == SPS_F64 ? 8 : 4;

    ck_assert_msg(A->nrow == B->nrow && A->ncol == B->ncol &&
                  A->nnz == B->nnz && A->dtype == B->dtype,
                  "%s: another shape", what);
    ck_assert_msg(!memcmp(A->rowptr, B->rowptr,
                          (size_t)(A->nrow + 1) * sizeof *A->rowptr),
                  "%s: other offsets", what);
    if (A->nnz == 0) return;
    ck_assert_msg(!memcmp(A->col, B->col, (size_t)A->nnz * sizeof *A->col),
                  "%s: other columns", what);
    ck_assert_msg(!memcmp(A->val, B->val, (size_t)A->nnz * size),
                  "%s: other values", what);
}

/* Whether block row I of A has an entry in block column J. */
static bool *blocks_of_row(const sps_csr *A, const sps_blocked_ell *e,
                           int64_t block)
{
    bool *there = calloc((size_t)e->nb + 1, sizeof *there);

    for (int64_t i = block * e->b; i < (block + 1) * e->b && i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            there[A->col[p] / e->b] = true;
    return there;
}

/* Columns are ascending, belong to stored entries, and the last is repeated. */
static void check_columns(const sps_csr *A, const sps_blocked_ell *e)
{
    bool full = e->w == 0;

    for (int64_t block = 0; block < e->mb; block++) {
        const int32_t *column = e->column + block * e->w;
        bool *there = blocks_of_row(A, e, block);
        int64_t count = 0, s;

        for (int64_t j = 0; j < e->nb; j++) count += there[j];
        ck_assert_int_le(count, e->w);
        full = full || count == e->w;
        for (s = 0; s < count; s++) {
            ck_assert(there[column[s]]);
            ck_assert(s == 0 || column[s - 1] < column[s]);
        }
        for (; s < e->w; s++) {
            ck_assert_int_ge(column[s], 0);
            ck_assert_int_lt(column[s], e->nb);
            if (count > 0) ck_assert_int_eq(column[s], column[count - 1]);
        }
        free(there);
    }
    ck_assert(full);   /* w is not larger than necessary */
}

static void convert(int family, int64_t n, sps_dtype dtype)
{
    sps_csr *A = zoo_matrix(family, n, 7, ZOO_INTEGER, dtype);

    for (int t = 0; t < SIZE_COUNT; t++) {
        sps_blocked_ell e;
        sps_csr *B = NULL;

        OK(ctx, spsi_blocked_ell_from_csr(ctx, A, SIZES[t], &e));
        check_columns(A, &e);
        ck_assert(A->nnz == 0 ||
                  (spsi_blocked_ell_fill(&e, A->nnz) > 0 &&
                   spsi_blocked_ell_fill(&e, A->nnz) <= 1));
        OK(ctx, spsi_blocked_ell_to_csr(ctx, &e, &B));
        check_same(A, B, zoo_name(family));
        sps_csr_destroy(ctx, &B);
        spsi_blocked_ell_clear(ctx, &e);
    }
    zoo_free(&A);
}

START_TEST(the_zoo_survives_the_way_there_and_back)
{
    const int64_t sizes[] = { 0, 1, 7, 8, 31, 33, 100, 331 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 8; s++)
            for (int d = 0; d < 2; d++) convert(f, sizes[s], (sps_dtype)d);
}
END_TEST

START_TEST(new_values_equal_a_fresh_conversion)
{
    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < SIZE_COUNT; t++) {
            sps_csr *A = zoo_matrix(f, 90, 7, ZOO_INTEGER, SPS_F64);
            sps_csr *C = zoo_matrix(f, 90, 7, ZOO_RANDOM, SPS_F64);
            sps_blocked_ell a, c;

            OK(ctx, spsi_blocked_ell_from_csr(ctx, A, SIZES[t], &a));
            OK(ctx, spsi_blocked_ell_from_csr(ctx, C, SIZES[t], &c));
            spsi_blocked_ell_refresh(C, &a);
            ck_assert_int_eq(spsi_blocked_ell_slots(&a),
                             spsi_blocked_ell_slots(&c));
            ck_assert(spsi_blocked_ell_slots(&a) == 0 ||
                      !memcmp(a.val, c.val,
                              (size_t)spsi_blocked_ell_slots(&a) * 8));
            spsi_blocked_ell_clear(ctx, &a);
            spsi_blocked_ell_clear(ctx, &c);
            zoo_free(&A);
            zoo_free(&C);
        }
}
END_TEST

/* What the features say: never more than the true width, and the width itself
 * where all block rows are in the sample. */
START_TEST(widths_by_sample_are_lower_bounds)
{
    for (int f = 0; f < zoo_count(); f++) {
        sps_csr *A = zoo_matrix(f, 211, 7, ZOO_INTEGER, SPS_F64);
        sps_raw_features raw = { 0 };

        for (int64_t i = 0; i < A->nrow; i++)
            if (A->rowptr[i + 1] - A->rowptr[i] > raw.longest)
                raw.longest = A->rowptr[i + 1] - A->rowptr[i];
        OK(ctx, spsi_features_sample_gpu(ctx, A, &raw));
        for (int t = 0; t < SPS_SAMPLES - SPS_SAMPLE_WIDEST; t++) {
            const int b = 8 << t;
            const int64_t w = spsi_blocked_ell_width(A, b);
            const int64_t seen = raw.sample[SPS_SAMPLE_WIDEST + t].most;

            ck_assert_int_le(seen, w);
            ck_assert_int_le((raw.longest + b - 1) / b, w);
            if (A->nnz <= SPS_WIDEST_ENTRIES &&
                spsi_sample_even(A->nrow, A->nnz, raw.longest, b))
                ck_assert_int_eq(seen, w);
        }
        zoo_free(&A);
    }
}
END_TEST

/* A 5 x 5 example with blocks of 2: block row 0 holds blocks 0 and 2, block row
 * 1 nothing, block row 2, of one row, block 1. */
START_TEST(a_small_matrix_lies_where_it_should)
{
    int64_t rowptr[] = { 0, 2, 3, 3, 3, 4 };
    int32_t col[] = { 1, 4, 0, 2 };
    double val[] = { 1, 2, 3, 4 };
    const int32_t column[] = { 0, 2, 1, 1, 1, 1 };
    const double right[] = { 0, 1, 2, 0,  3, 0, 0, 0,  0, 0, 0, 0,
                             0, 0, 0, 0,  4, 0, 0, 0,  0, 0, 0, 0 };
    sps_blocked_ell e;
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, 5, 5, 4, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    OK(ctx, spsi_blocked_ell_from_csr(ctx, A, 2, &e));
    ck_assert_int_eq(e.mb, 3);
    ck_assert_int_eq(e.nb, 3);
    ck_assert_int_eq(e.w, 2);
    ck_assert(!memcmp(e.column, column, sizeof column));
    for (int t = 0; t < 24; t++)
        ck_assert_double_eq(((double *)e.val)[t], right[t]);
    ck_assert_double_eq_tol(spsi_blocked_ell_fill(&e, 4), 4.0 / 24, 1e-15);
    spsi_blocked_ell_clear(ctx, &e);
    sps_csr_destroy(ctx, &A);
}
END_TEST

START_TEST(sizes_beyond_32_bits_do_not_wrap)
{
    sps_blocked_ell e;

    spsi_blocked_ell_shape(INT64_C(1) << 22, INT64_C(1) << 22, SPS_F64, 32,
                           &e);
    e.w = 1000;
    ck_assert_int_eq(spsi_blocked_ell_slots(&e),
                     (INT64_C(1) << 22) * 32 * 1000);
    ck_assert_double_eq_tol(spsi_blocked_ell_fill(&e, INT64_C(1) << 36),
                            0.512, 1e-12);
}
END_TEST

/* ----------------------------------------------------------- on the device */

static void same_as_host(const rig *r)
{
    const sps_blocked_ell *d =
        &((const sps_blocked_ell_plan *)r->plan)->ell;
    const size_t size = spsi_dtype_size(d->dtype);
    const int64_t slots = spsi_blocked_ell_slots(d);
    int32_t *column = calloc((size_t)(d->mb * d->w) + 1, sizeof *column);
    char *val = calloc((size_t)slots + 1, size);
    sps_blocked_ell h;

    OK(ctx, spsi_blocked_ell_from_csr(ctx, r->A, d->b, &h));
    ck_assert_msg(d->mb == h.mb && d->nb == h.nb && d->w == h.w &&
                  d->nrow == h.nrow && d->ncol == h.ncol,
                  "%s: another shape, w %lld, not %lld", r->what,
                  (long long)d->w, (long long)h.w);
    OK(ctx, ctx->backend->download(ctx, column, d->column, (size_t)
                                   (d->mb * d->w) * sizeof *column));
    OK(ctx, ctx->backend->download(ctx, val, d->val, (size_t)slots * size));
    ck_assert_msg(!memcmp(column, h.column, (size_t)(d->mb * d->w) *
                          sizeof *column), "%s: other columns", r->what);
    ck_assert_msg(!memcmp(val, h.val, (size_t)slots * size),
                  "%s: other values", r->what);
    spsi_blocked_ell_clear(ctx, &h);
    free(column);
    free(val);
}

/* Y = 2 A X - Y in doubles, exactly. */
static void check_product(const rig *r, int k)
{
    double *x = zoo_block(r->A->ncol, k, k, 3, ZOO_INTEGER);
    double *y = zoo_block(r->A->nrow, k, k, 5, ZOO_INTEGER);
    sps_block *X = fixture_block(ctx, r->A->ncol, k, x, k);
    sps_block *Y = fixture_block(ctx, r->A->nrow, k, y, k);
    double *got = calloc((size_t)(r->A->nrow * k) + 1, sizeof *got);
    const sps_spmm_args args = { .alpha = 2, .X = X, .beta = -1, .Y = Y };

    oracle_spmm(r->A, 2, x, k, -1, y, k, k, NULL);
    OK(ctx, r->plan->kernel->spmm(r->plan, &args));
    OK(ctx, sps_block_get(Y, 0, k, got, k, SPS_ROW_MAJOR, SPS_HOST));
    ck_assert_msg(oracle_differs(r->A->nrow, k, got, k, y, k) < 0,
                  "%s: a wrong product, k %d", r->what, k);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    free(x);
    free(y);
    free(got);
}

/* A plan as for a machine with faster tensor cores, where larger blocks are
 * predicted to be faster. */
static bool plan_fast(const sps_kernel *kernel, rig *r, int k)
{
    sps_problem p = rig_problem(r, SPS_OP_SPMM, k);
    sps_machine fast = r->machine;
    const char *why;

    fast.copy = 1e15;
    p.pinned = true;
    p.machine = &fast;
    spsi_plan_destroy(&r->plan);
    if (!spsi_kernel_fits(kernel, &p, &why)) return false;
    OK(ctx, spsi_planner_pin(ctx, &p, kernel, &r->plan));
    return true;
}

static void compare(const sps_kernel *kernel, rig *r, int *sizes)
{
    if (r->A->nnz == 0 || !plan_fast(kernel, r, 8)) return;
    *sizes |= ((const sps_blocked_ell_plan *)r->plan)->ell.b;
    same_as_host(r);
    if (r->block == SPS_F64) check_product(r, 7);
    rig_other_values(r, 300);
    same_as_host(r);
    if (r->block == SPS_F64) check_product(r, 8);
}

/* One family; the kernel with its types. */
static void compare_on(const sps_kernel *kernel, int family, int64_t n,
                       int *sizes)
{
    const sps_dtype type = strstr(kernel->name, "tf32") ? SPS_F32 : SPS_F64;
    rig r;

    rig_open(&r, ctx, family, n, ZOO_INTEGER, type);
    r.block = type;
    if (n % 2) rig_wide(&r);
    compare(kernel, &r, sizes);
    rig_close(&r);
}

START_TEST(the_device_builds_what_the_host_builds)
{
    const sps_kernel *kernel;
    int sizes = 0, found = 0;

    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++) {
        if (!strstr(kernel->name, "blocked_ell")) continue;
        found++;
        for (int f = 0; f < zoo_count(); f++)
            for (int64_t n = 1; n < 1000; n = 3 * n + 2)
                compare_on(kernel, f, n, &sizes);
        /* A pattern for which larger blocks are faster. */
        compare_on(kernel, zoo_find("blocks8"), 40003, &sizes);
    }
    ck_assert(!found || sizes == (8 | 16 | 32));
}
END_TEST

/* Whether the planner's table for an operator on this matrix, with a kernel
 * selected by name or not, contains this text. */
static bool explained(sps_context *with, sps_csr *A, const char *name,
                      const char *part)
{
    sps_operator *op = NULL;
    char text[8192];
    sps_options o;
    bool found;

    sps_options_default(&o);
    if (name) o.kernel = name;
    OK(with, sps_operator_csr(with, A, 16, &o, &op));
    sps_operator_describe(op, text, sizeof text);
    found = strstr(text, part) != NULL;
    sps_operator_destroy(&op);
    return found;
}

/* A host csr of n rows: column j is in row i where |i - j| <= half. */
static sps_csr *diagonals(sps_context *with, int64_t n, int64_t half)
{
    int64_t nnz = 0;
    sps_csr *A = NULL;

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) nnz += llabs(i - j) <= half;
    OK(with, sps_csr_create(with, n, n, nnz, SPS_F64, &A));
    nnz = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            if (llabs(i - j) > half) continue;
            A->col[nnz] = (int32_t)j;
            ((double *)A->val)[nnz++] = (double)(1 + j % 5);
        }
        A->rowptr[i + 1] = nnz;
    }
    return A;
}

/* Seven diagonals: 7 of 24 numbers of a row of three blocks of 8, 29 %: the
 * kernel is not a candidate, with the fill as the reason; selected by name it
 * runs, and a note names the requirement that was waived.  Nineteen diagonals
 * are 19 of 40 numbers, 47 %: a candidate. */
START_TEST(emptiness_is_refused_but_not_by_name)
{
    const char *const name = "spmm.blocked_ell";
    const char *const why = "blocks of 8 to 32 would be at most 30 % full";
    sps_context *with;
    sps_csr *A, *B;

    if (ctx->backend->place != SPS_CUDA) runner_skip("kernels of a GPU");
    with = fixture_open_with(SPS_CUDA, 2, false);
    A = diagonals(with, 320, 3);
    B = diagonals(with, 320, 9);
    ck_assert(explained(with, A, NULL, why));
    ck_assert(!fixture_noted(with, "auto would not choose it"));
    ck_assert(explained(with, A, name, "chosen  b "));
    ck_assert(fixture_noted(with, "auto would not choose it: blocks of 8 to 32 "
                                  "would be at most 30 % full"));
    ck_assert(!explained(with, B, NULL, "blocks of 8 to 32"));
    sps_csr_destroy(with, &A);
    sps_csr_destroy(with, &B);
    fixture_close(&with);
}
END_TEST

/* More block rows than the limit of the grid's second dimension. */
START_TEST(block_rows_beyond_a_grid_are_multiplied)
{
    const sps_kernel *kernel;

    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++) {
        rig r;

        if (strcmp(kernel->name, "spmm.blocked_ell")) continue;
        rig_open(&r, ctx, zoo_find("block_dense"), 2100003, ZOO_INTEGER,
                 SPS_F64);
        ck_assert(plan_fast(kernel, &r, 5));
        ck_assert_int_gt(((const sps_blocked_ell_plan *)r.plan)->ell.mb,
                         65535);
        check_product(&r, 5);
        rig_close(&r);
    }
}
END_TEST

static double *random_product(const rig *r, int k, const sps_block *X,
                              sps_block *Y)
{
    double *y = calloc((size_t)(r->A->nrow * k) + 1, sizeof *y);
    const sps_spmm_args args = { .alpha = 0.7, .X = X, .Y = Y };

    OK(ctx, r->plan->kernel->spmm(r->plan, &args));
    OK(ctx, sps_block_get(Y, 0, k, y, k, SPS_ROW_MAJOR, SPS_HOST));
    return y;
}

/* 20 runs of one plan and one of a new plan. */
static void check_bits(const sps_kernel *kernel, rig *r, int k)
{
    sps_block *X = fixture_block(ctx, r->A->ncol, k, NULL, k);
    sps_block *Y = fixture_block(ctx, r->A->nrow, k, NULL, k);
    double *first;

    OK(ctx, sps_block_random(X, 1));
    ck_assert(plan_fast(kernel, r, k));
    first = random_product(r, k, X, Y);
    for (int i = 0; i < 20; i++) {
        double *again;

        if (i == 19) ck_assert(plan_fast(kernel, r, k));
        again = random_product(r, k, X, Y);
        ck_assert_msg(!memcmp(first, again, (size_t)(r->A->nrow * k) *
                              sizeof *first), "%s, n %lld, k %d: other bits "
                      "at run %d", r->what, (long long)r->A->nrow, k, i);
        free(again);
    }
    free(first);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
}

/* NVIDIA documents no reproducibility: the kernel's claim is based on this
 * test. */
START_TEST(products_repeat_their_bits)
{
    static const char *const families[] = { "blocks8", "band", "edges" };
    static const int widths[] = { 1, 3, 8, 33, 64, 100 };
    const sps_kernel *kernel;

    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++) {
        if (strcmp(kernel->name, "spmm.blocked_ell")) continue;
        for (int f = 0; f < 3; f++)
            for (int w = 0; w < 6; w++) {
                rig r;

                rig_open(&r, ctx, zoo_find(families[f]), f < 2 ? 5003 : 485,
                         ZOO_RANDOM, SPS_F64);
                check_bits(kernel, &r, widths[w]);
                rig_close(&r);
            }
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("check_blocked_ell");
    TCase *t = tcase_create("blocked_ell");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, the_zoo_survives_the_way_there_and_back);
    tcase_add_test(t, new_values_equal_a_fresh_conversion);
    tcase_add_test(t, widths_by_sample_are_lower_bounds);
    tcase_add_test(t, a_small_matrix_lies_where_it_should);
    tcase_add_test(t, sizes_beyond_32_bits_do_not_wrap);
    suite_add_tcase(s, t);
    t = tcase_create("place");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, open_place, close_context);
    tcase_add_test(t, the_device_builds_what_the_host_builds);
    tcase_add_test(t, emptiness_is_refused_but_not_by_name);
    tcase_add_test(t, block_rows_beyond_a_grid_are_multiplied);
    tcase_add_test(t, products_repeat_their_bits);
    suite_add_tcase(s, t);
    return runner_run(s);
}
