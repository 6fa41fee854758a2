/* SPDX-License-Identifier: BSD-3-Clause */
/* check_order.c - scalings and permutations before a factorisation: orderings
 * are permutations with the intended effect, the matching is optimal (compared
 * with all others on small matrices), scaled entries are at most 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/deadline.h"
#include "matrix/order.h"
#include "tests/support/runner.h"
#include "tests/problems/shuffled.h"
#include "tests/problems/zoo.h"

static void is_permutation(const int32_t *order, int64_t n, const char *what)
{
    char *seen = calloc((size_t)n + 1, 1);

    for (int64_t i = 0; i < n; i++) {
        ck_assert_msg(order[i] >= 0 && order[i] < n && !seen[order[i]],
                      "%s: place %ld", what, (long)i);
        seen[order[i]] = 1;
    }
    free(seen);
}

START_TEST(orders_are_permutations)
{
    static const int64_t sizes[] = {0, 1, 2, 37, 500};
    sps_context *ctx = runner_context();

    for (int f = 0; f < zoo_count(); f++)
        for (int t = 0; t < 5; t++) {
            sps_csr *A = zoo_shape(f, sizes[t], sizes[t], 3, ZOO_RANDOM,
                                   SPS_F64);
            int32_t *order = calloc((size_t)sizes[t] + 1, sizeof *order);
            sps_graph g;

            OK(ctx, spsi_graph_create(ctx, A, &g));
            OK(ctx, spsi_order_rcm(ctx, &g, order));
            is_permutation(order, sizes[t], zoo_name(f));
            OK(ctx, spsi_order_degree(ctx, &g, order, NULL));
            is_permutation(order, sizes[t], zoo_name(f));
            spsi_graph_clear(ctx, &g);
            zoo_free(&A);
            free(order);
        }
    sps_context_destroy(&ctx);
}
END_TEST

static int64_t bandwidth(const sps_graph *g, const int32_t *order)
{
    int64_t *place = calloc((size_t)g->n + 1, sizeof *place), widest = 0;

    for (int64_t i = 0; i < g->n; i++) place[order[i]] = i;
    for (int64_t i = 0; i < g->n; i++)
        for (int64_t p = g->start[i]; p < g->start[i + 1]; p++)
            if (place[g->next[p]] - place[i] > widest)
                widest = place[g->next[p]] - place[i];
    free(place);
    return widest;
}

START_TEST(rcm_finds_the_band_again)
{
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 400, 1, ZOO_SPD, SPS_F64);
    sps_csr *S = shuffled(ctx, A, 137);
    int32_t order[400];
    sps_graph g;

    OK(ctx, spsi_graph_create(ctx, S, &g));
    for (int i = 0; i < 400; i++) order[i] = i;
    ck_assert_int_gt(bandwidth(&g, order), 200);
    OK(ctx, spsi_order_rcm(ctx, &g, order));
    ck_assert_int_le(bandwidth(&g, order), 22);
    spsi_graph_clear(ctx, &g);
    sps_csr_destroy(ctx, &S);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

/* Entries of the Cholesky factor in that order, by symbolic elimination. */
static int64_t fill(const sps_graph *g, const int32_t *order)
{
    const int64_t n = g->n;
    char *full = calloc((size_t)(n * n) + 1, 1);
    int64_t *place = calloc((size_t)n + 1, sizeof *place), count = 0;

    for (int64_t i = 0; i < n; i++) place[order[i]] = i;
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = g->start[i]; p < g->start[i + 1]; p++)
            full[place[i] * n + place[g->next[p]]] = 1;
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = k + 1; i < n; i++) {
            if (!full[i * n + k]) continue;
            count++;
            for (int64_t j = k + 1; j < n; j++)
                full[i * n + j] |= full[k * n + j];
        }
    free(full);
    free(place);
    return count;
}

START_TEST(minimum_degree_fills_little)
{
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("grid5"), 900, 1, ZOO_SPD, SPS_F64);
    int32_t order[900];
    int64_t natural;
    sps_graph g;

    OK(ctx, spsi_graph_create(ctx, A, &g));
    for (int i = 0; i < 900; i++) order[i] = i;
    natural = fill(&g, order);
    OK(ctx, spsi_order_degree(ctx, &g, order, NULL));
    ck_assert_msg(2 * fill(&g, order) < natural, "%ld of %ld",
                  (long)fill(&g, order), (long)natural);
    spsi_graph_clear(ctx, &g);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

/* An arrow matrix in its worst order: an order without fill exists. */
START_TEST(minimum_degree_keeps_an_arrow_sparse)
{
    enum { N = 60 };
    sps_context *ctx = runner_context();
    sps_csr *A = NULL;
    int32_t order[N];
    int64_t q = 0;
    sps_graph g;

    OK(ctx, sps_csr_create(ctx, N, N, 3 * N - 2, SPS_F64, &A));
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++)
            if (i == 0 || j == 0 || i == j) {
                A->col[q] = j;
                ((double *)A->val)[q++] = 1;
            }
        A->rowptr[i + 1] = q;
    }
    OK(ctx, spsi_graph_create(ctx, A, &g));
    OK(ctx, spsi_order_degree(ctx, &g, order, NULL));
    ck_assert_int_eq(fill(&g, order), N - 1);
    spsi_graph_clear(ctx, &g);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
}
END_TEST

/* ---------------------------------------------------------------- matching */

typedef struct trial {
    int n;
    double a[36];
    double best;              /* sum of logarithms; -INFINITY: no matching */
    int most;                 /* rows that can be matched */
} trial;

static void try_all(trial *t, int row, unsigned used, double sum, int matched)
{
    if (row == t->n) {
        if (matched > t->most) t->most = matched;
        if (matched == t->n) t->best = fmax(t->best, sum);
        return;
    }
    for (int j = 0; j < t->n; j++)
        if (!(used >> j & 1) && t->a[row * t->n + j] != 0)
            try_all(t, row + 1, used | 1u << j,
                    sum + log(fabs(t->a[row * t->n + j])), matched + 1);
    try_all(t, row + 1, used, sum, matched);
}

static sps_csr *from_dense(sps_context *ctx, int n, const double *a)
{
    sps_csr *A = NULL;
    int64_t q = 0;

    OK(ctx, sps_csr_create(ctx, n, n, n * n, SPS_F64, &A));
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            if (a[i * n + j] != 0) {
                A->col[q] = j;
                ((double *)A->val)[q++] = a[i * n + j];
            }
        A->rowptr[i + 1] = q;
    }
    A->nnz = q;
    return A;
}

static void check_matching(sps_context *ctx, const trial *t)
{
    sps_csr *A = from_dense(ctx, t->n, t->a);
    int32_t column[6];
    double row[6], col[6], sum = 0;
    unsigned used = 0;
    int64_t rank;

    OK(ctx, spsi_match(ctx, A, column, row, col, &rank));
    ck_assert_int_eq((int)rank, t->most);
    for (int i = 0; i < t->n; i++) {
        if (column[i] < 0) continue;
        ck_assert(!(used >> column[i] & 1));
        used |= 1u << column[i];
        sum += log(fabs(t->a[i * t->n + column[i]]));
    }
    if (rank == t->n) {
        ck_assert_msg(fabs(sum - t->best) <= 1e-9 * (1 + fabs(sum)),
                      "product exp(%g), best exp(%g)", sum, t->best);
        for (int i = 0; i < t->n; i++)
            for (int j = 0; j < t->n; j++)   /* exact up to a factor of 2 */
                ck_assert(row[i] * fabs(t->a[i * t->n + j]) * col[j] <= 2.1);
        for (int i = 0; i < t->n; i++)
            ck_assert(row[i] * fabs(t->a[i * t->n + column[i]]) *
                      col[column[i]] >= 0.45);
    }
    sps_csr_destroy(ctx, &A);
}

/* An expired deadline gives a reason, not an incomplete result.  Row 1 must
 * search for its column, since row 0 took its best one. */
START_TEST(matching_and_ordering_end_at_their_deadline)
{
    static const double a[] = {1, 1, 1, 0.1};
    sps_context *ctx = runner_context();
    sps_csr *A = from_dense(ctx, 2, a);
    int32_t order[2];
    double row[2], col[2];
    int64_t rank;
    sps_graph g;

    OK(ctx, spsi_graph_create(ctx, A, &g));
    ck_assert(spsi_deadline_begin(ctx, 1e-9) == 0);
    ck_assert_int_eq(spsi_order_degree(ctx, &g, order, NULL), SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(ctx), "ordering: not finished"));
    ck_assert_int_eq(spsi_match(ctx, A, order, row, col, &rank),
                     SPS_EUNFIT);
    ck_assert(strstr(sps_context_error(ctx), "matching: not finished"));
    spsi_deadline_end(ctx, 0);
    OK(ctx, spsi_match(ctx, A, order, row, col, &rank));
    ck_assert_int_eq(order[0], 1);
    spsi_graph_clear(ctx, &g);
    sps_csr_destroy(ctx, &A);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(the_matching_is_the_best_of_all)
{
    sps_context *ctx = runner_context();

    for (int seed = 0; seed < 400; seed++) {
        trial t = {.n = 1 + seed % 6, .best = -INFINITY};
        double *x = zoo_block(36, 2, 2, (uint64_t)seed, ZOO_RANDOM);

        for (int e = 0; e < t.n * t.n; e++)
            if (x[2 * e] + 0.5 < 0.2 + 0.15 * (seed % 5))
                t.a[e] = ldexp(x[2 * e + 1], (int)(40 * x[2 * e]));
        try_all(&t, 0, 0, 0, 0);
        check_matching(ctx, &t);
        free(x);
    }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(equilibration_brings_rows_and_columns_near_one)
{
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("uniform"), 300, 5, ZOO_SCALES, SPS_F64);
    double row[300], col[300], widest[300] = {0};

    OK(ctx, spsi_equilibrate(ctx, A, row, col));
    for (int i = 0; i < 300; i++) {
        double largest = 0;

        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            double a = row[i] * fabs(((double *)A->val)[p]) * col[A->col[p]];

            largest = fmax(largest, a);
            widest[A->col[p]] = fmax(widest[A->col[p]], a);
        }
        ck_assert(A->rowptr[i] == A->rowptr[i + 1] ||
                  (largest > 0.1 && largest < 10));
    }
    for (int j = 0; j < 300; j++)
        ck_assert(widest[j] == 0 || (widest[j] > 0.1 && widest[j] < 10));
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(equilibration_keeps_symmetry)
{
    sps_context *ctx = runner_context();
    sps_csr *A = zoo_matrix(zoo_find("grid7"), 343, 5, ZOO_SPD, SPS_F64);
    double row[343], col[343];

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            ((double *)A->val)[p] *= ldexp(1, (int)(i % 9 + A->col[p] % 9));
    OK(ctx, spsi_equilibrate(ctx, A, row, col));
    for (int64_t i = 0; i < A->nrow; i++) ck_assert(row[i] == col[i]);
    zoo_free(&A);
    sps_context_destroy(&ctx);
}
END_TEST

/* A 4 x 4 grid by rows, y first: cells of 2 x 2 one after the other. */
START_TEST(morton_goes_through_quarters_of_quarters)
{
    static const int32_t want[] = { 0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10,
                                    14, 11, 15 };
    sps_context *ctx = runner_context();
    double x[64];
    int32_t order[64];

    for (int i = 0; i < 16; i++) {
        x[2 * i] = 10 + 0.5 * (i % 4);
        x[2 * i + 1] = -3 + 0.5 * (i / 4);
    }
    OK(ctx, spsi_order_morton(ctx, x, 16, 2, 1, order));
    for (int i = 0; i < 16; i++) ck_assert_int_eq(order[i], want[i]);
    OK(ctx, spsi_order_morton(ctx, x, 16, 2, 3, order));
    for (int i = 0; i < 48; i++)
        ck_assert_int_eq(order[i], 3 * want[i / 3] + i % 3);
    /* Three dimensions, and one; nodes with equal coordinates keep their
     * order. */
    for (int i = 0; i < 8; i++)
        for (int a = 0; a < 3; a++) x[3 * i + a] = i >> a & 1;
    OK(ctx, spsi_order_morton(ctx, x, 8, 3, 1, order));
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(order[i], (i & 1) << 2 | (i & 2) | i >> 2);
    for (int i = 0; i < 9; i++) x[i] = 1e9 * (4 * i % 9);
    OK(ctx, spsi_order_morton(ctx, x, 9, 1, 1, order));
    for (int i = 0; i < 9; i++) ck_assert_int_eq(4 * order[i] % 9, i);
    for (int i = 0; i < 9; i++) x[i] = 7;
    OK(ctx, spsi_order_morton(ctx, x, 3, 3, 2, order));
    for (int i = 0; i < 6; i++) ck_assert_int_eq(order[i], i);
    x[4] = NAN;
    ck_assert_int_eq(spsi_order_morton(ctx, x, 3, 3, 1, order), SPS_EINVAL);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(orders_are_permutations),
    RUNNER_TEST(rcm_finds_the_band_again),
    RUNNER_TEST(minimum_degree_fills_little),
    RUNNER_TEST(minimum_degree_keeps_an_arrow_sparse),
    RUNNER_TEST(the_matching_is_the_best_of_all),
    RUNNER_TEST(matching_and_ordering_end_at_their_deadline),
    RUNNER_TEST(equilibration_brings_rows_and_columns_near_one),
    RUNNER_TEST(equilibration_keeps_symmetry),
    RUNNER_TEST(morton_goes_through_quarters_of_quarters),
};
RUNNER_MAIN("check_order", tests)
