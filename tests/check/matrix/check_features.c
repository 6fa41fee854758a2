/* SPDX-License-Identifier: BSD-3-Clause */
/* check_features.c - what is measured of a pattern: connected components, and
 * the features from which kernels estimate their cost. */
#include <check.h>
#include <math.h>

#include "core/backend.h"
#include "tests/support/fixture.h"
#include "plan/planner.h"
#include "tests/support/runner.h"
#include "matrix/traits.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static void open_context(void) { ctx = fixture_open_with(SPS_HOST, 2, true); }
static void close_context(void) { fixture_close(&ctx); }

/* A 3 x 3 matrix over the arrays of the test. */
static sps_csr *wrap(int64_t nnz, int64_t *rowptr, int32_t *col, double *val)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, 3, 3, nnz, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    return A;
}

/* ------------------------------------------------------------- components */

static int64_t laplacian_components(int family, int64_t n, int64_t *rows)
{
    sps_csr *A = zoo_matrix(family, n, 5, ZOO_LAPLACIAN, SPS_F64);
    sps_components *c = NULL, *all = NULL;
    int64_t count;

    OK(ctx, spsi_components_find(ctx, A, 1e-12, false, &c));
    OK(ctx, spsi_components_find(ctx, A, 0.0, true, &all));
    ck_assert_int_eq(c->count, all->count);
    ck_assert_int_eq(all->rows, A->nrow);
    for (int64_t m = 0; m < c->count; m++)
        for (int64_t s = c->host_start[m] + 1; s < c->host_start[m + 1]; s++)
            ck_assert_int_lt(c->row[s - 1], c->row[s]);
    count = c->count;
    *rows = c->rows;
    spsi_components_destroy(&c);
    spsi_components_destroy(&all);
    zoo_free(&A);
    return count;
}

START_TEST(laplacians_have_a_null_vector_for_each_component)
{
    int64_t rows;

    ck_assert_int_eq(laplacian_components(zoo_find("tridiagonal"), 100,
                                          &rows), 1);
    ck_assert_int_eq(rows, 100);
    ck_assert_int_eq(laplacian_components(zoo_find("ring"), 60, &rows), 1);
    ck_assert_int_eq(laplacian_components(zoo_find("diagonal"), 17, &rows),
                     17);
    ck_assert_int_gt(laplacian_components(zoo_find("components"), 90, &rows),
                     1);
    ck_assert_int_eq(rows, 90);
}
END_TEST

START_TEST(one_row_with_a_sum_takes_its_component_out)
{
    /* 0 - 1 and 2 - 3 - 4, path Laplacians; the diagonal of row 2 is increased.
     * 5 is isolated. */
    int64_t rowptr[] = { 0, 2, 4, 6, 9, 11, 11 };
    int32_t col[] = { 0, 1, 0, 1, 2, 3, 2, 3, 4, 3, 4 };
    double val[] = { 1, -1, -1, 1, 1.5, -1, -1, 2, -1, -1, 1 };
    sps_components *c = NULL;
    sps_csr *A = NULL;

    OK(ctx, sps_csr_wrap(ctx, 6, 6, 11, rowptr, col, val, SPS_F64, SPS_HOST,
                         SPS_BORROW, &A));
    OK(ctx, spsi_components_find(ctx, A, 1e-12, false, &c));
    ck_assert_int_eq(c->count, 2);
    ck_assert_int_eq(c->rows, 3);
    ck_assert_int_eq(c->row[0], 0);
    ck_assert_int_eq(c->row[1], 1);
    ck_assert_int_eq(c->row[2], 5);
    spsi_components_destroy(&c);
    val[10] = 2.0;
    val[0] = 2.0;
    OK(ctx, spsi_components_find(ctx, A, 1e-12, false, &c));
    ck_assert_int_eq(c->count, 1);
    spsi_components_destroy(&c);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* Zero row sums do not imply zero column sums, and sums that overflow imply
 * nothing. */
START_TEST(columns_count_and_so_do_infinite_sums)
{
    int64_t rowptr[] = { 0, 2, 4, 6 };
    int32_t col[] = { 0, 1, 1, 2, 0, 2 };
    double val[] = { 1, -1, 2, -2, -4, 4 }, ring[] = { 1, -1, 1, -1, -1, 1 };
    double large[] = { 1e308, 1e308, 1e308, 1e308, 1e308, 1e308 };
    double *all[] = { val, ring, large };

    for (int i = 0; i < 3; i++) {
        sps_components *c = NULL;
        sps_csr *A = wrap(6, rowptr, col, all[i]);

        OK(ctx, spsi_components_find(ctx, A, 1e-12, false, &c));
        ck_assert_int_eq(c->count, i == 1);
        spsi_components_destroy(&c);
        sps_csr_destroy(ctx, &A);
    }
}
END_TEST

START_TEST(one_way_links_join_components)
{
    /* Only (0, 2) and (1, 2) connect the rows: the pattern of A + A' counts. */
    int64_t rowptr[] = { 0, 1, 2, 2 };
    int32_t col[] = { 2, 2 };
    double val[] = { 1, 1 };
    sps_components *c = NULL;
    sps_csr *A = wrap(2, rowptr, col, val);

    OK(ctx, spsi_components_find(ctx, A, 0.0, true, &c));
    ck_assert_int_eq(c->count, 1);
    spsi_components_destroy(&c);
    OK(ctx, spsi_components_find(ctx, A, 1e-12, false, &c));
    ck_assert_int_eq(c->count, 0);   /* row 2 is empty, rows 0 and 1 are not
                                        singular */
    spsi_components_destroy(&c);
    sps_csr_destroy(ctx, &A);
}
END_TEST

/* --------------------------------------------------------------- features */

static sps_features measure(const sps_csr *A)
{
    sps_features f;

    OK(ctx, spsi_features_measure(ctx, A, &f));
    return f;
}

START_TEST(features_count_rows_exactly)
{
    for (int t = 0; t < zoo_count(); t++) {
        sps_csr *A = zoo_matrix(t, 333, 7, ZOO_RANDOM, SPS_F64);
        const sps_features f = measure(A);
        int64_t rows = 0, widest = 0, longest = 0, shortest = INT64_MAX;

        for (int b = 0; b < SPS_LENGTH_BINS; b++) rows += f.lengths[b];
        ck_assert_int_eq(rows, A->nrow);
        for (int64_t i = 0; i < A->nrow; i++) {
            const int64_t l = A->rowptr[i + 1] - A->rowptr[i];

            longest = l > longest ? l : longest;
            shortest = l < shortest ? l : shortest;
            for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                if (llabs(i - A->col[p]) > widest)
                    widest = llabs(i - A->col[p]);
        }
        ck_assert_int_eq(f.max_length, longest);
        ck_assert_int_eq(f.min_length, shortest);
        ck_assert_int_eq(f.bandwidth, widest);
        ck_assert(f.distinct8 >= 0.0 && f.distinct8 <= 1.0);
        ck_assert(f.distinct64 <= f.distinct8 + 1e-12 || A->nrow < 64 ||
                  f.distinct64 <= 1.0);
        zoo_free(&A);
    }
}
END_TEST

START_TEST(features_find_blocks)
{
    const struct { const char *family; int block; } known[] = {
        { "grid27_dof3", 3 }, { "blocks5", 5 }, { "diagonal", 1 },
        { "tridiagonal", 1 }, { "grid7", 1 },
    };

    for (int i = 0; i < 5; i++) {
        sps_csr *A = zoo_matrix(zoo_find(known[i].family), 1500, 7,
                                ZOO_RANDOM, SPS_F64);
        const sps_features f = measure(A);

        ck_assert_msg(f.block == known[i].block, "%s: block %d fill %g",
                      known[i].family, f.block, f.block_fill);
        zoo_free(&A);
    }
}
END_TEST

/* Number of entries divided by the size of the nonempty aligned blocks. */
START_TEST(features_measure_the_fill_of_blocks)
{
    const struct { const char *family; int b; double fill; } known[] = {
        { "grid27_dof3", 3, 1.0 }, { "block_dense", 4, 1.0 },
        { "block_dense", 2, 1.0 }, { "block_dense", 8, 0.5 },
        { "nodes6", 6, 1.0 },      { "nodes6", 3, 1.0 },
        { "nodes7", 7, 0.9 },      { "tridiagonal", 2, 0.5 },
        { "diagonal", 5, 0.2 },    { "empty", 4, 0.0 },
    };

    for (int i = 0; i < 10; i++) {
        sps_csr *A = zoo_matrix(zoo_find(known[i].family), 1512, 7,
                                ZOO_RANDOM, SPS_F64);
        const sps_features f = measure(A);

        ck_assert_msg(fabs(f.fill[known[i].b] - known[i].fill) < 0.02,
                      "%s: fill %g in blocks of %d", known[i].family,
                      f.fill[known[i].b], known[i].b);
        zoo_free(&A);
    }
}
END_TEST

START_TEST(features_see_reuse_of_columns)
{
    sps_csr *band = zoo_matrix(zoo_find("band"), 2000, 7, ZOO_RANDOM, SPS_F64);
    sps_csr *diagonal = zoo_matrix(zoo_find("diagonal"), 2000, 7, ZOO_RANDOM,
                                   SPS_F64);
    const sps_features f = measure(band), g = measure(diagonal);

    /* 8 consecutive rows of 13 entries use 20 columns, 64 rows use 76. */
    ck_assert_double_eq_tol(f.distinct8, 20.0 / 104.0, 0.01);
    ck_assert_double_eq_tol(f.distinct64, 76.0 / 832.0, 0.01);
    ck_assert_double_eq(g.distinct8, 1.0);
    zoo_free(&band);
    zoo_free(&diagonal);
}
END_TEST

/* Full rows are not examined entry by entry; with one more, empty column they
 * are. */
START_TEST(full_rows_count_as_if_they_were_looked_at)
{
    const int64_t size[] = { 1, 7, 30, 49, 520 };

    for (int i = 0; i < 5; i++) {
        const int64_t n = size[i];
        sps_csr *A = zoo_full(n, ZOO_RANDOM, SPS_F64);
        sps_features f = measure(A), g;

        A->ncol = n + 1;
        g = measure(A);
        g.ncol = n;
        ck_assert_msg(!memcmp(&f, &g, sizeof f), "%d rows", (int)n);
        if (n == 49) ck_assert(f.block == 8 && f.fill[7] == 1);
        zoo_free(&A);
    }
}
END_TEST

START_TEST(hash_sees_the_pattern_and_nothing_else)
{
    sps_csr *A = zoo_matrix(zoo_find("uniform"), 20000, 7, ZOO_RANDOM,
                            SPS_F64);
    sps_context *one = fixture_open_with(SPS_HOST, 1, true);
    sps_features f = measure(A), g;
    const uint64_t hash = spsi_features_hash(ctx, A);
    int32_t *last = &A->col[A->nnz - 1];

    OK(one, spsi_features_measure(one, A, &g));
    ck_assert(!memcmp(&f, &g, sizeof f));     /* for any number of threads */
    ck_assert(spsi_features_hash(one, A) == hash);
    ((double *)A->val)[0] += 1.0;
    ck_assert(spsi_features_hash(ctx, A) == hash);
    *last += *last + 1 < A->ncol ? 1 : -1;
    ck_assert(spsi_features_hash(ctx, A) != hash);
    fixture_close(&one);
    zoo_free(&A);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(laplacians_have_a_null_vector_for_each_component),
    RUNNER_TEST(one_row_with_a_sum_takes_its_component_out),
    RUNNER_TEST(columns_count_and_so_do_infinite_sums),
    RUNNER_TEST(one_way_links_join_components),
    RUNNER_TEST(features_count_rows_exactly),
    RUNNER_TEST(features_find_blocks),
    RUNNER_TEST(features_measure_the_fill_of_blocks),
    RUNNER_TEST(features_see_reuse_of_columns),
    RUNNER_TEST(full_rows_count_as_if_they_were_looked_at),
    RUNNER_TEST(hash_sees_the_pattern_and_nothing_else),
};
RUNNER_MAIN_WITHIN("features", tests, open_context, close_context)
