/* SPDX-License-Identifier: BSD-3-Clause */
/* check_node_blocks.c - node-block CSR: every pattern of the zoo, for every b,
 * is the same after conversion there and back, with the columns and the order
 * of values that the head of node_blocks.h specifies; what the device's kernels
 * store equals the host's, also after a refresh, and products are exact. */
#include <check.h>

#include "tests/formats/host_formats.h"
#include "tests/support/kernel_product.h"
#include "tests/support/runner.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void open_place(void) { ctx = runner_context(); }
static void close_context(void) { fixture_close(&ctx); }

static sps_csr_local host_local(const sps_csr *A)
{
    return (sps_csr_local){ .nrow = A->nrow, .ncol = A->ncol, .nnz = A->nnz,
                            .rowptr = A->rowptr, .col = A->col,
                            .val = A->val, .dtype = A->dtype };
}

/* Sets n; false if the format would need more than five numbers per entry. */
static bool convert(const sps_csr *A, int b, sps_node_blocks *n)
{
    const sps_csr_local local = host_local(A);
    const sps_status st = spsi_node_from_csr(ctx, &local, b, n);

    if (st == SPS_EUNFIT) spsi_node_clear(ctx, n);
    else OK(ctx, st);
    return st == SPS_OK;
}

static void check_same(const sps_csr *A, const sps_csr *B, const char *what)
{
    const size_t size = spsi_dtype_size(A->dtype);

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

/* Columns are ascending, and each block holds an entry. */
static void check_columns(const sps_node_blocks *n, const char *what)
{
    const int64_t numbers = n->b * n->b;

    ck_assert_int_eq(n->start[0], 0);
    ck_assert_int_eq(n->start[n->mb], n->count);
    for (int64_t I = 0; I < n->mb; I++)
        for (int64_t s = n->start[I]; s < n->start[I + 1]; s++) {
            bool some = false;

            ck_assert_int_lt(n->column[s], n->nb);
            ck_assert(s == n->start[I] || n->column[s - 1] < n->column[s]);
            for (int64_t e = s * numbers; e < (s + 1) * numbers; e++)
                some = some || (n->dtype == SPS_F64
                                    ? ((double *)n->val)[e] != 0
                                    : ((float *)n->val)[e] != 0);
            ck_assert_msg(some, "%s: an empty block", what);
        }
}

/* Converts A and back; returns whether A could be converted. */
static bool there_and_back(const sps_csr *A, int b, const char *what)
{
    sps_node_blocks n;
    sps_csr *B = NULL;

    if (!convert(A, b, &n)) return false;
    check_columns(&n, what);
    OK(ctx, spsi_node_to_csr(ctx, &n, &B));
    check_same(A, B, what);
    sps_csr_destroy(ctx, &B);
    spsi_node_clear(ctx, &n);
    return true;
}

START_TEST(the_zoo_survives_the_way_there_and_back)
{
    const int64_t sizes[] = { 0, 1, 7, 8, 31, 33, 100, 331 };
    int times[SPS_NODE_MAX + 1] = { 0 };

    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 8; s++)
            for (int d = 0; d < 2; d++) {
                sps_csr *A = zoo_matrix(f, sizes[s], 7, ZOO_INTEGER,
                                        (sps_dtype)d);

                for (int b = SPS_NODE_MIN; b <= SPS_NODE_MAX; b++)
                    times[b] += there_and_back(A, b, zoo_name(f));
                zoo_free(&A);
            }
    for (int b = SPS_NODE_MIN; b <= SPS_NODE_MAX; b++)
        ck_assert_int_gt(times[b], 100);
}
END_TEST

/* Full rows are converted to blocks without reading their column indices. */
START_TEST(full_matrices_survive_it_too)
{
    for (int64_t n = 1; n < 40; n += 3)
        for (int d = 0; d < 2; d++) {
            sps_csr *A = zoo_full(n, ZOO_INTEGER, (sps_dtype)d);

            for (int b = SPS_NODE_MIN; b <= SPS_NODE_MAX; b++)
                ck_assert(there_and_back(A, b, "full") || n < b);
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
    const int64_t start[] = { 0, 2, 2, 3 };
    const int32_t column[] = { 0, 2, 1 };
    const double right[] = { 0, 3, 1, 0,  2, 0, 0, 0,  4, 0, 0, 0 };
    sps_node_blocks n;
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, 5, 5, 4, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    ck_assert(convert(A, 2, &n));
    ck_assert_int_eq(n.mb, 3);
    ck_assert_int_eq(n.nb, 3);
    ck_assert_int_eq(n.count, 3);
    ck_assert(!memcmp(n.start, start, sizeof start));
    ck_assert(!memcmp(n.column, column, sizeof column));
    for (int t = 0; t < 12; t++)
        ck_assert_double_eq(((double *)n.val)[t], right[t]);
    spsi_node_clear(ctx, &n);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* The fewest bytes: full blocks of 8 are chosen although blocks of 4 and 2 fit
 * inside; explicit zeros count. */
START_TEST(the_choice_stores_the_fewest_bytes)
{
    const struct { const char *family; int b; } known[] = {
        { "grid27_dof3", 3 }, { "block_dense", 4 }, { "blocks5", 5 },
        { "blocks8", 8 },     { "nodes2", 2 },      { "nodes6", 6 },
        { "nodes7", 7 },
    };

    for (int i = 0; i < 7; i++) {
        rig r;

        rig_open(&r, ctx, zoo_find(known[i].family), 1512, ZOO_RANDOM,
                 SPS_F64);
        ck_assert_msg(spsi_node_choose(&r.op->f, 8) == known[i].b,
                      "%s: %d", r.what, spsi_node_choose(&r.op->f, 8));
        rig_close(&r);
    }
}
END_TEST

/* Nodes on grid lines of 20, each with its 8 neighbours, b unknowns per
 * node. */
static sps_csr *node_lines(int lines, int b)
{
    const int n = 20 * lines * b;
    int64_t *rowptr = calloc((size_t)n + 1, sizeof *rowptr);
    int32_t *col = calloc((size_t)n * 9 * (size_t)b, sizeof *col);
    double *val = calloc((size_t)n * 9 * (size_t)b, sizeof *val);
    sps_csr *A = NULL;

    for (int i = 0; i < n; i++) {
        const int x = i / b % 20, y = i / b / 20;

        rowptr[i + 1] = rowptr[i];
        for (int t = 0; t < 9; t++) {
            const int s = x + t % 3 - 1, u = y + t / 3 - 1;

            for (int c = 0; s >= 0 && s < 20 && u >= 0 && u < lines && c < b;
                 c++)
                col[rowptr[i + 1]++] = (20 * u + s) * b + c;
        }
    }
    OK(ctx, sps_csr_wrap(ctx, n, n, rowptr[n], rowptr, col, val, SPS_F64,
                         SPS_HOST, SPS_COPY, &A));
    free(rowptr);
    free(col);
    free(val);
    return A;
}

START_TEST(lines_of_nodes_are_found)
{
    for (int b = SPS_NODE_MIN; b <= SPS_NODE_MAX; b++) {
        sps_csr *A = node_lines(40, b), *line = node_lines(1, b);

        ck_assert_int_eq(spsi_node_lead(A, b), 20);
        ck_assert_int_eq(spsi_node_lead(line, b), 0);
        sps_csr_destroy(ctx, &A);
        sps_csr_destroy(ctx, &line);
    }
}
END_TEST

/* ------------------------------------------------------------ on the device */

static void same_as_host(const rig *r)
{
    const sps_node_blocks *d = &((const sps_node_plan *)r->plan)->blocks;
    const size_t bytes = (size_t)(d->count * d->b * d->b) *
                         spsi_dtype_size(d->dtype);
    int64_t *start = calloc((size_t)d->mb + 1, sizeof *start);
    int32_t *column = calloc((size_t)d->count + 1, sizeof *column);
    char *val = calloc(bytes + 1, 1);
    sps_node_blocks h;

    ck_assert(convert(r->A, d->b, &h));
    ck_assert_msg(d->mb == h.mb && d->nb == h.nb && d->count == h.count &&
                  d->nrow == h.nrow && d->ncol == h.ncol,
                  "%s: another shape, %lld blocks, not %lld", r->what,
                  (long long)d->count, (long long)h.count);
    OK(ctx, ctx->backend->download(ctx, start, d->start,
                                   (size_t)(d->mb + 1) * sizeof *start));
    OK(ctx, ctx->backend->download(ctx, column, d->column,
                                   (size_t)d->count * sizeof *column));
    OK(ctx, ctx->backend->download(ctx, val, d->val, bytes));
    ck_assert_msg(!memcmp(start, h.start, (size_t)(d->mb + 1) * sizeof *start),
                  "%s: other block rows", r->what);
    ck_assert_msg(!memcmp(column, h.column, (size_t)d->count *
                          sizeof *column), "%s: other columns", r->what);
    ck_assert_msg(!memcmp(val, h.val, bytes), "%s: other values", r->what);
    spsi_node_clear(ctx, &h);
    free(start);
    free(column);
    free(val);
}

/* Sets bit b of *sizes for each b that the kernel accepted. */
static void compare_on(const sps_kernel *kernel, int family, int64_t n,
                       sps_dtype type, int *sizes)
{
    rig r;

    rig_open(&r, ctx, family, n, ZOO_INTEGER, type);
    if (n % 2) rig_wide(&r);
    if (rig_plan(&r, kernel, 3)) {
        *sizes |= 1 << ((const sps_node_plan *)r.plan)->blocks.b;
        same_as_host(&r);
        rig_other_values(&r, 300);
        same_as_host(&r);
    }
    rig_close(&r);
}

START_TEST(plans_hold_what_the_host_builds)
{
    const sps_kernel *kernel;
    int found = 0;

    for (int i = 0; (kernel = rig_kernel(ctx, SPS_OP_SPMM, i)); i++) {
        int sizes = 0;

        if (!strstr(kernel->name, ".blocks")) continue;
        found++;
        for (int f = 0; f < zoo_count(); f++)
            for (int64_t n = 1; n < 2200; n = 3 * n + 2)
                for (int d = 0; d < 2; d++)
                    compare_on(kernel, f, n, (sps_dtype)d, &sizes);
        ck_assert_int_eq(sizes, 0x1fc); /* bits 2 .. 8 */
    }
    if (!getenv("SPS_TEST_KERNEL")) ck_assert_int_eq(found, 1);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("check_node_blocks");
    TCase *t = tcase_create("node_blocks");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, open_context, close_context);
    tcase_add_test(t, the_zoo_survives_the_way_there_and_back);
    tcase_add_test(t, full_matrices_survive_it_too);
    tcase_add_test(t, a_small_matrix_lies_where_it_should);
    tcase_add_test(t, the_choice_stores_the_fewest_bytes);
    tcase_add_test(t, lines_of_nodes_are_found);
    suite_add_tcase(s, t);
    t = tcase_create("place");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, open_place, close_context);
    tcase_add_test(t, plans_hold_what_the_host_builds);
    suite_add_tcase(s, t);
    return runner_run(s);
}
