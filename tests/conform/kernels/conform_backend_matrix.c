/* SPDX-License-Identifier: BSD-3-Clause */
/* conform_backend_matrix.c - operations on the matrix and on connected
 * components.  An operation that a backend leaves NULL is replaced by the
 * host's implementation, which is then what is tested. */
#include "tests/conform/kernels/conform_backend.h"

#include <float.h>
#include <math.h>

/* --- means over components */

/* x minus its mean over each component, by plain loops. */
static void expected_means(const sps_components *c, const int32_t *row, int k,
                           double *x)
{
    for (int64_t t = 0; t < c->count; t++)
        for (int j = 0; j < k; j++) {
            int64_t first = c->host_start[t], last = c->host_start[t + 1];
            long double sum = 0;

            for (int64_t p = first; p < last; p++) sum += x[row[p] * k + j];
            for (int64_t p = first; p < last; p++)
                x[row[p] * k + j] -= (double)(sum / (last - first));
        }
}

static void try_means(sps_context *ctx, const char *name, int64_t n, int k,
                      bool all)
{
    sps_csr *A = zoo_matrix(zoo_find(name), n, 1, ZOO_LAPLACIAN, SPS_F64);
    shape s = {.n = n, .k = k, .ld = k + 1, .offset = 1};
    sps_components *c = NULL;
    double *x, *y = zeros(n * k);
    int32_t *row;
    frame f = shape_frame(ctx, &s, 2, ZOO_RANDOM, &x);

    if (!all)   /* one component is not projected: its rows stay unchanged */
        ((double *)A->val)[A->rowptr[n / 2]] += 1;
    OK(ctx, spsi_components_find(ctx, A, 1e-12, all, &c));
    row = malloc((size_t)(c->rows + 1) * sizeof *row);
    OK(ctx, ctx->backend->download(ctx, row, c->row,
                                   (size_t)c->rows * sizeof *row));
    if (c->count) OK(ctx, ctx->backend->remove_means(c, f.X));
    expected_means(c, row, k, x);
    frame_read(&f, k, y);
    for (int64_t t = 0; t < n * k; t++)
        ck_assert_msg(fabs(x[t] - y[t]) <= 1e-14 * (double)n, "%s n %ld k %d",
                      name, (long)n, k);
    spsi_components_destroy(&c);
    frame_free(&f);
    zoo_free(&A);
    free(row);
    free(x);
    free(y);
}

START_TEST(means_of_components_are_removed)
{
    static const int k[] = {1, 3, 8, 16, 33};
    sps_context *ctx = runner_context();

    for (int t = 0; t < 5; t++) {
        try_means(ctx, "components", 1000, k[t], true);
        try_means(ctx, "components", 1000, k[t], false);
        try_means(ctx, "grid5", 10000, k[t], true);   /* one long component */
        try_means(ctx, "diagonal", 500, k[t], true);
        try_means(ctx, "ring", 9000, k[t], true);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* --- diagonal and its blocks */

static const sps_backend *serving(const sps_context *ctx)
{
    return ctx->backend->csr_diagonal ? ctx->backend : &spsi_backend_cpu;
}

START_TEST(diagonal_is_read_and_absent_entries_are_zero)
{
    sps_context *ctx = runner_context();

    for (int f = 0; f < zoo_count(); f++)
        for (int type = 0; type < 2; type++) {
            sps_csr *A = zoo_matrix(f, 600, 3, ZOO_INTEGER,
                                    type ? SPS_F32 : SPS_F64);
            double *d = zeros(A->nrow);

            OK(ctx, serving(ctx)->csr_diagonal(ctx, A, d));
            for (int64_t i = 0; i < A->nrow; i++) {
                double want = 0;

                for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                    if (A->col[p] == i) want = spsi_csr_value(A, p);
                ck_assert_msg(d[i] == want, "%s row %ld", zoo_name(f), (long)i);
            }
            zoo_free(&A);
            free(d);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* Largest |D D^-1 - I| over the blocks, the blocks read from A. */
static double worst_identity(const sps_csr *A, const int64_t *start,
                             int64_t blocks, const double *inverse)
{
    double worst = 0;

    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = start[b], m = start[b + 1] - first;

        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < m; c++) {
                double sum = r == c ? -1 : 0;
                int64_t i = first + r;

                for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
                    int64_t l = A->col[p] - first;

                    if (l >= 0 && l < m)
                        sum += spsi_csr_value(A, p) * inverse[c * m + l];
                }
                worst = fmax(worst, fabs(sum));
            }
        inverse += m * m;
    }
    return worst;
}

START_TEST(diagonal_blocks_are_inverted)
{
    sps_context *ctx = runner_context();

    for (int size = 1; size <= 9; size++)
        for (int f = 0; f < zoo_count(); f++) {
            sps_csr *A;
            int64_t start[200], blocks = 0, bad = 7, total = 0;
            double *inverse;

            if (!zoo_symmetric(f)) continue;
            A = zoo_matrix(f, 180, 4, ZOO_SPD, SPS_F64);
            for (start[0] = 0; start[blocks] < A->nrow; blocks++) {
                int64_t m = blocks % 3 ? size : 1;   /* sizes may vary */

                start[blocks + 1] = start[blocks] + m < A->nrow
                                        ? start[blocks] + m : A->nrow;
                m = start[blocks + 1] - start[blocks];
                total += m * m;
            }
            inverse = zeros(total);
            OK(ctx, serving(ctx)->csr_block_inverse(ctx, A, start, blocks,
                                                    inverse, &bad));
            ck_assert_int_eq(bad, -1);
            ck_assert_msg(worst_identity(A, start, blocks, inverse) < 1e-12,
                          "%s, blocks of %d", zoo_name(f), size);
            zoo_free(&A);
            free(inverse);
        }
    sps_context_destroy(&ctx);
}
END_TEST

/* A dense m x m matrix as csr over the caller's arrays. */
static sps_csr dense(int m, int64_t *rowptr, int32_t *col, double *val)
{
    for (int i = 0; i <= m; i++) rowptr[i] = (int64_t)i * m;
    for (int t = 0; t < m * m; t++) col[t] = t % m;
    return (sps_csr){.nrow = m, .ncol = m, .nnz = m * m, .rowptr = rowptr,
                     .col = col, .val = val, .dtype = SPS_F64,
                     .place = SPS_HOST};
}

static int64_t first_bad(sps_context *ctx, int m, double *val, double *inverse)
{
    int64_t rowptr[5], start[2] = {0, m}, bad = 7;
    int32_t col[16];
    sps_csr A = dense(m, rowptr, col, val);

    OK(ctx, serving(ctx)->csr_block_inverse(ctx, &A, start, 1, inverse, &bad));
    return bad;
}

START_TEST(singular_blocks_are_found_and_badly_scaled_ones_are_not)
{
    sps_context *ctx = runner_context();
    double inverse[16];
    double swapped[] = {0, 2, 4, 0}, scaled[] = {1e-200, 0, 0, 1e200};
    double equal[] = {1, 1, 1, 1}, zero[] = {0}, nan[] = {1, 0, 0, NAN};
    double laplacian[] = {0.2, -0.1, -0.1, -0.1, 0.2, -0.1, -0.1, -0.1, 0.2};

    ck_assert_int_eq(first_bad(ctx, 2, swapped, inverse), -1);
    ck_assert(inverse[0] == 0 && inverse[1] == 0.5 && inverse[2] == 0.25);
    ck_assert_int_eq(first_bad(ctx, 2, scaled, inverse), -1);
    ck_assert(fabs(inverse[0] / 1e200 - 1) < 1e-15 && inverse[1] == 0);
    ck_assert_int_eq(first_bad(ctx, 2, equal, inverse), 0);
    ck_assert_int_eq(first_bad(ctx, 1, zero, inverse), 0);
    ck_assert_int_eq(first_bad(ctx, 2, nan, inverse), 0);
    ck_assert_int_eq(first_bad(ctx, 3, laplacian, inverse), 0);
    sps_context_destroy(&ctx);
}
END_TEST

void conform_matrix(TCase *t)
{
    tcase_add_test(t, means_of_components_are_removed);
    tcase_add_test(t, diagonal_is_read_and_absent_entries_are_zero);
    tcase_add_test(t, diagonal_blocks_are_inverted);
    tcase_add_test(t, singular_blocks_are_found_and_badly_scaled_ones_are_not);
}
