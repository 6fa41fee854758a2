/* SPDX-License-Identifier: BSD-3-Clause */
/* check_diagonals.c - storage by diagonals holds every entry, symmetric values
 * once, also after new values; matrices with entries elsewhere are refused. */
#include <check.h>

#include "formats/diagonals.h"
#include "operator/operator.h"
#include "tests/support/apply.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/fixture.h"
#include "tests/support/runner.h"

extern const sps_kernel spsi_kernel_spmv_diagonals;

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

static sps_csr_local local_of(const sps_csr *A)
{
    return (sps_csr_local){ .nrow = A->nrow, .ncol = A->ncol, .nnz = A->nnz,
                            .dtype = A->dtype, .rowptr = A->rowptr,
                            .col = A->col, .val = A->val };
}

/* The 5-point stencil on SIDE^2 points, whose values differ from entry to entry
 * and are not exact in single precision unless divisor is 1. */
static sps_csr *stencil(sps_context *c, int64_t side, double divisor)
{
    const int64_t n = side * side, away[5] = { -side, -1, 0, 1, side };
    sps_csr *A;
    int64_t p = 0;

    OK(c, sps_csr_create(c, n, n, 5 * n - 4 * side, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        A->rowptr[i] = p;
        for (int d = 0; d < 5; d++) {
            const int64_t j = i + away[d];

            if (j < 0 || j >= n || (away[d] == 1 && j % side == 0) ||
                (away[d] == -1 && i % side == 0))
                continue;
            A->col[p] = (int32_t)j;
            ((double *)A->val)[p++] = (double)(1 + i + j) / divisor;
        }
    }
    A->rowptr[n] = p;
    return A;
}

/* Every entry of A is on its diagonal, and as many values are not zero. */
static void judge(const sps_csr *A, const sps_diagonals *f)
{
    for (int64_t i = 0; i < A->nrow; i++) {
        int64_t p = A->rowptr[i];

        for (int d = 0; d < f->count; d++) {
            const int64_t j = i + f->distance[d];
            double want = 0;

            if (p < A->rowptr[i + 1] && A->col[p] == j)
                want = ((const double *)A->val)[p++];
            if (j < 0 || j >= A->ncol) continue;
            ck_assert(want == (f->dtype == SPS_F64
                ? ((const double *)f->val)[f->at[d] + i]
                : (double)((const float *)f->val)[f->at[d] + i]));
        }
        ck_assert_int_eq(p, A->rowptr[i + 1]);
    }
}

static void build(sps_context *c, const sps_csr *A, sps_diagonals *f)
{
    const sps_csr_local local = local_of(A);

    ck_assert(spsi_diagonals_survey(&local, f));
    ck_assert(spsi_diagonals_hold(f, &local));
    OK(c, spsi_diagonals_from_csr(c, &local, f));
    judge(A, f);
}

START_TEST(symmetric_values_are_held_once)
{
    sps_csr *A = stencil(ctx, 40, 3);
    sps_diagonals f;

    build(ctx, A, &f);
    ck_assert(f.half && f.count == 5 && f.stored == 3 && f.dtype == SPS_F64);
    ck_assert_uint_eq(spsi_diagonals_size(&f), 3 * 1600 * 8);
    spsi_diagonals_clear(ctx, &f);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* One value that differs from its counterpart, both in rows of no sample (763,
 * 803; those of the sample are s 1599 / 63): then symmetric again, then
 * doubles. */
START_TEST(new_values_need_not_be_symmetric)
{
    sps_csr *A = stencil(ctx, 40, 1);
    const sps_csr_local local = local_of(A);
    double *a = (double *)A->val + A->rowptr[803];
    const double old = *a;
    sps_diagonals f;

    build(ctx, A, &f);
    ck_assert(f.half && f.dtype == SPS_F32);
    *a = 17;
    OK(ctx, spsi_diagonals_refresh(ctx, &local, &f));
    ck_assert(!f.half && f.stored == 5 && f.dtype == SPS_F32);
    judge(A, &f);
    *a = old;
    OK(ctx, spsi_diagonals_refresh(ctx, &local, &f));
    ck_assert(f.half && f.stored == 3);
    judge(A, &f);
    for (int64_t p = 0; p < A->nnz; p++) ((double *)A->val)[p] /= 3;
    OK(ctx, spsi_diagonals_refresh(ctx, &local, &f));
    ck_assert(f.half && f.dtype == SPS_F64);
    judge(A, &f);
    spsi_diagonals_clear(ctx, &f);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* An entry beside the diagonals in a row of no sample; and too many of them. */
START_TEST(entries_elsewhere_are_found)
{
    sps_csr *A = stencil(ctx, 40, 1);
    const sps_csr_local local = local_of(A);
    sps_diagonals f;

    A->col[A->rowptr[804] - 1]++;
    ck_assert(spsi_diagonals_survey(&local, &f));
    ck_assert(!spsi_diagonals_hold(&f, &local));
    A->col[A->rowptr[804] - 1]--;
    ck_assert(spsi_diagonals_hold(&f, &local));
    for (int64_t i = 0; i < SPS_DIAGONALS; i++) /* row 1599 has 3 entries */
        A->col[A->rowptr[(16 + i) * 1599 / 63] + 1] -= (int32_t)(2 + i);
    ck_assert(!spsi_diagonals_survey(&local, &f));
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* 17 diagonals of ones, `step` apart. */
static sps_csr *band(int64_t n, int64_t step)
{
    sps_csr *A;
    int64_t p = 0;

    OK(ctx, sps_csr_create(ctx, n, n, 17 * n - 72 * step, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        A->rowptr[i] = p;
        for (int64_t j = i - 8 * step; j <= i + 8 * step; j += step)
            if (j >= 0 && j < n) {
                A->col[p] = (int32_t)j;
                ((double *)A->val)[p++] = 1;
            }
    }
    A->rowptr[n] = p;
    return A;
}

static bool bids(const sps_csr *A, int k, bool pinned)
{
    const sps_csr_local local = local_of(A);
    const sps_problem p = { .A = A, .local = &local, .k = k,
                            .pinned = pinned };
    const char *why;

    return spsi_kernel_spmv_diagonals.fits(&p, &why);
}

/* For one column, symmetric values, and more than 16 diagonals only if the
 * planes are near. */
START_TEST(its_kernel_bids_where_it_gains)
{
    sps_csr *grid = stencil(ctx, 40, 3), *near = band(40000, 100);
    sps_csr *far = band(40000, 1000);

    ck_assert(bids(grid, 1, false) && !bids(grid, 2, false));
    for (int64_t p = 0; p < grid->nnz; p++) ((double *)grid->val)[p] += (int)p;
    ck_assert(!bids(grid, 1, false) && bids(grid, 1, true));
    ck_assert(bids(near, 1, false));
    ck_assert(!bids(far, 1, false) && bids(far, 1, true));
    sps_csr_destroy(ctx, &grid);
    sps_csr_destroy(ctx, &near);
    sps_csr_destroy(ctx, &far);
}
END_TEST

/* Also as an operator, whose kernel is chosen. */
START_TEST(a_matrix_without_entries_has_no_diagonals)
{
    double x[3] = { 1, 2, 3 }, y[3] = { 4, 5, 6 };
    sps_csr *A;
    sps_operator *op;
    sps_diagonals f;

    OK(ctx, sps_csr_create(ctx, 3, 3, 0, SPS_F64, &A));
    build(ctx, A, &f);
    ck_assert(f.count == 0 && f.stored == 0);
    spsi_diagonals_clear(ctx, &f);
    op = operator_of(ctx, A, 1);
    apply(op, 1, x, 0, y, 1);
    ck_assert(y[0] == 0 && y[1] == 0 && y[2] == 0);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* Values that are no longer symmetric need more memory: without it the refresh
 * fails, and can be repeated. */
START_TEST(a_refresh_that_lacks_memory_can_be_repeated)
{
    fail_alloc memory = { .allowed = -1 };
    sps_context_options o;
    sps_context *own = NULL;
    sps_csr_local local;
    sps_diagonals f;
    sps_csr *A;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.host = fail_alloc_host(&memory);
    ck_assert(sps_context_create(&o, &own, NULL) == SPS_OK);
    A = stencil(own, 40, 3);
    local = local_of(A);
    build(own, A, &f);
    ((double *)A->val)[A->rowptr[803]] = 17;
    fail_alloc_allow(&memory, 0);
    ck_assert(spsi_diagonals_refresh(own, &local, &f) == SPS_ENOMEM);
    fail_alloc_allow(&memory, -1);
    OK(own, spsi_diagonals_refresh(own, &local, &f));
    ck_assert(!f.half);
    judge(A, &f);
    spsi_diagonals_clear(own, &f);
    sps_csr_destroy(own, &A);
    sps_context_destroy(&own);
    ck_assert(memory.live == 0 && memory.mismatches == 0);
}
END_TEST

/* New values need larger arrays, of which each is refused in turn: a product
 * without its values fails, one with all of them does not. */
static void lose_values(const char *kernel)
{
    fail_alloc memory = { .allowed = -1 };
    sps_context_options o;
    sps_options w;
    sps_context *own = NULL;
    sps_operator *op = NULL;
    sps_block *x = NULL, *y = NULL;
    sps_csr *A;
    sps_status st = SPS_ENOMEM;
    double *val;
    int refused = 0;

    sps_context_options_default(&o);
    o.place = SPS_HOST;
    o.host = fail_alloc_host(&memory);
    ck_assert(sps_context_create(&o, &own, NULL) == SPS_OK);
    A = stencil(own, 40, 1);
    val = malloc((size_t)A->nnz * sizeof *val);
    memcpy(val, A->val, (size_t)A->nnz * sizeof *val);
    sps_options_default(&w);
    w.kernel = kernel;
    OK(own, sps_operator_csr(own, A, 1, &w, &op));
    OK(own, sps_block_create(own, A->ncol, 1, &x));
    OK(own, sps_block_create(own, A->nrow, 1, &y));
    OK(own, sps_operator_set_values(op, val, SPS_HOST));
    for (int64_t p = 0; p < A->nnz; p++) val[p] = (double)p / 3;
    for (long allowed = 0; st != SPS_OK; allowed++) {
        fail_alloc_allow(&memory, allowed);
        st = sps_operator_set_values(op, val, SPS_HOST);
        fail_alloc_allow(&memory, -1);
        if (sps_operator_apply(op, 1, x, 0, y) == SPS_OK) continue;
        ck_assert_int_eq(st, SPS_ENOMEM);
        ck_assert(strstr(sps_context_error(own), "call it again"));
        refused++;
    }
    ck_assert_int_gt(refused, 0);
    sps_block_destroy(&x);
    sps_block_destroy(&y);
    sps_operator_destroy(&op);
    sps_csr_destroy(own, &A);
    sps_context_destroy(&own);
    free(val);
    ck_assert(memory.live == 0 && memory.mismatches == 0);
}

START_TEST(a_product_without_its_values_is_refused)
{
    lose_values("spmv.diagonals");
    lose_values("spmm.runs");
}
END_TEST

/* Asserts the text of the chosen kernel and the bytes of its values. */
static void told(const sps_operator *op, const char *text, size_t bytes)
{
    char all[4096];

    ck_assert_uint_lt(sps_operator_describe(op, all, sizeof all), sizeof all);
    ck_assert_msg(strstr(all, text), "\"%s\" is not in\n%s", text, all);
    ck_assert_uint_eq(op->block->bytes, bytes);
}

/* The description and the bytes of a plan are those of the values that it
 * has. */
START_TEST(a_plan_tells_what_it_stores_now)
{
    sps_csr *A = stencil(ctx, 40, 1);
    const size_t n = 1600, nnz = (size_t)A->nnz;
    double *val = malloc(nnz * sizeof *val);
    sps_options w;
    sps_operator *op = NULL;
    size_t rest;

    memcpy(val, A->val, nnz * sizeof *val);
    sps_options_default(&w);
    w.kernel = "spmv.diagonals";
    OK(ctx, sps_operator_csr(ctx, A, 1, &w, &op));
    rest = op->block->bytes - 3 * n * 4;
    told(op, "5 diagonals, 3 stored, floats", rest + 3 * n * 4);
    val[A->rowptr[803]] = 17;
    OK(ctx, sps_operator_set_values(op, val, SPS_HOST));
    told(op, "5 diagonals, 5 stored, floats", rest + 5 * n * 4);
    val[0] = 1.0 / 3;
    OK(ctx, sps_operator_set_values(op, val, SPS_HOST));
    told(op, "5 diagonals, 5 stored  planned", rest + 5 * n * 8);
    sps_operator_destroy(&op);
    w.kernel = "spmm.runs";
    OK(ctx, sps_operator_csr(ctx, A, 1, &w, &op));
    rest = op->block->bytes;
    told(op, ", floats", rest);
    OK(ctx, sps_operator_set_values(op, val, SPS_HOST));
    told(op, "bytes per entry  planned", op->block->bytes);
    ck_assert_uint_gt(op->block->bytes, rest + 4 * nnz / 2);
    sps_operator_destroy(&op);
    sps_csr_destroy(ctx, &A);
    free(val);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(symmetric_values_are_held_once),
    RUNNER_TEST(new_values_need_not_be_symmetric),
    RUNNER_TEST(entries_elsewhere_are_found),
    RUNNER_TEST(its_kernel_bids_where_it_gains),
    RUNNER_TEST(a_matrix_without_entries_has_no_diagonals),
    RUNNER_TEST(a_refresh_that_lacks_memory_can_be_repeated),
    RUNNER_TEST(a_product_without_its_values_is_refused),
    RUNNER_TEST(a_plan_tells_what_it_stores_now),
};
RUNNER_MAIN_WITHIN("diagonals", tests, open_context, close_context)
