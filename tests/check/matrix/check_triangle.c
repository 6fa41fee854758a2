/* SPDX-License-Identifier: BSD-3-Clause */
/* check_triangle.c - triangular solves on blocks.  The zoo's triangles with
 * integer values, a diagonal of powers of two, and B = T X with integers: every
 * sum is exact, so X must be recovered bit for bit. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/frame.h"
#include "matrix/triangle.h"
#include "tests/support/oracle.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

typedef struct shape {
    int64_t n, ld, offset;
    int k;
} shape;

static double *zeros(int64_t count)
{
    double *p = calloc((size_t)count + 1, sizeof *p);

    ck_assert_ptr_nonnull(p);
    return p;
}

/* The numbers of f must be exactly x (ld k), and the guards unchanged. */
static void shape_equals(frame *f, int k, const double *x, const char *what)
{
    double *y = zeros(f->n * k);
    int64_t at;

    frame_read(f, k, y);
    at = oracle_differs(f->n, k, y, k, x, k);
    ck_assert_msg(at < 0, "%s: n %ld k %d: row %ld column %ld is %.17g, not "
                  "%.17g", what, (long)f->n, k, (long)(at / k),
                  (long)(at % k), y[at < 0 ? 0 : at], x[at < 0 ? 0 : at]);
    free(y);
}

/* The strict triangle of a zoo matrix; values -1, 0, 1 so that sums stay exact
 * however long the dependency chains are. */
static sps_csr *strict(sps_context *ctx, int family, int64_t n, bool upper)
{
    sps_csr *A = zoo_shape(family, n, n, 3, ZOO_INTEGER, SPS_F64), *S = NULL;
    double *val;

    OK(ctx, sps_csr_create(ctx, n, n, A->nnz, SPS_F64, &S));
    val = S->val;
    S->nnz = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (upper ? A->col[p] > i : A->col[p] < i) {
                S->col[S->nnz] = A->col[p];
                val[S->nnz++] = (double)((A->col[p] + i) % 3) - 1;
            }
        S->rowptr[i + 1] = S->nnz;
    }
    zoo_free(&A);
    return S;
}

static double diagonal(int64_t i) { return ldexp(1, (int)(i % 7) - 3); }

/* B = (S + D) X, ld k. */
static double *product(const sps_csr *S, bool unit, const double *X, int k)
{
    double *B = zeros(S->nrow * k);
    const double *val = S->val;

    for (int64_t i = 0; i < S->nrow; i++)
        for (int j = 0; j < k; j++) {
            double sum = X[i * k + j] * (unit ? 1 : diagonal(i));

            for (int64_t p = S->rowptr[i]; p < S->rowptr[i + 1]; p++)
                sum += val[p] * X[S->col[p] * k + j];
            B[i * k + j] = sum;
        }
    return B;
}

static sps_status make(sps_context *ctx, sps_csr *S, double *inverse,
                       bool upper, sps_triangle **t_p)
{
    return spsi_triangle_create(ctx, &(sps_triangle_parts){
        .upper = upper, .S = S, .inverse = inverse }, t_p);
}

static void try_triangle(sps_context *ctx, int family, const shape *s,
                         bool upper, bool unit)
{
    const int64_t n = s->n;
    const int k = s->k;
    sps_csr *S = strict(ctx, family, n, upper);
    sps_triangle *t = NULL;
    double *inverse = NULL, *x = zoo_block(n, k, k, 5, ZOO_INTEGER), *b;
    frame B, X;

    if (!unit) {
        OK(ctx, SPS_NEW(ctx, n, &inverse));
        for (int64_t i = 0; i < n; i++) inverse[i] = 1 / diagonal(i);
    }
    b = product(S, unit, x, k);
    OK(ctx, make(ctx, S, inverse, upper, &t));
    B = frame_make(ctx, n, k, s->ld, s->offset, b, k);
    X = frame_make(ctx, n, k, s->ld, s->offset, NULL, k);
    OK(ctx, spsi_triangle_solve(t, B.X, X.X));
    shape_equals(&X, k, x, zoo_name(family));
    spsi_triangle_destroy(&t);
    frame_free(&B);
    frame_free(&X);
    free(x);
    free(b);
}

START_TEST(triangles_are_solved_exactly)
{
    sps_context *ctx = runner_context();

    for (int f = 0; f < zoo_count(); f++)
        for (int i = 0; i < 4; i++) {
            const shape s[] = {{0, 4, 0, 4}, {1, 1, 1, 1}, {700, 5, 1, 5},
                               {2500, 32, 0, 16}};

            try_triangle(ctx, f, &s[i], i % 2, i < 2);
            try_triangle(ctx, f, &s[i], !(i % 2), i >= 2);
        }
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(every_width_is_served)
{
    sps_context *ctx = runner_context();
    const int grid = zoo_find("grid5");

    for (int k = 1; k <= 67; k++) {
        shape s = {.n = 300, .k = k, .ld = k + k % 3, .offset = k % 2};

        try_triangle(ctx, grid, &s, k % 2, k % 4 < 2);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* Wide levels: level scheduling must give the same bits as the other
 * methods. */
START_TEST(wide_levels_are_solved_exactly)
{
    sps_context *ctx = runner_context();
    shape s = {.n = 80000, .k = 7, .ld = 7};

    try_triangle(ctx, zoo_find("diagonal"), &s, false, false);
    try_triangle(ctx, zoo_find("components"), &s, false, false);
    try_triangle(ctx, zoo_find("grid27"), &s, true, false);
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(results_do_not_depend_on_threads)
{
    double *first = NULL;

    if (runner_place() != SPS_HOST) runner_leave_out("threads of the host");
    for (int threads = 1; threads <= 8; threads *= 2) {
        sps_context_options o;
        sps_context *ctx = NULL;
        sps_csr *S;
        sps_triangle *t = NULL;
        sps_block *B = NULL, *X = NULL;
        double *inverse = NULL, *x = zeros(60000 * 8);

        sps_context_options_default(&o);
        o.place = SPS_HOST;
        o.threads = threads;
        ck_assert_int_eq(sps_context_create(&o, &ctx, NULL), SPS_OK);
        S = strict(ctx, zoo_find("components"), 60000, false);
        for (int64_t p = 0; p < S->nnz; p++) ((double *)S->val)[p] /= 7;
        OK(ctx, make(ctx, S, inverse, false, &t));
        OK(ctx, sps_block_create(ctx, 60000, 8, &B));
        OK(ctx, sps_block_create(ctx, 60000, 8, &X));
        OK(ctx, sps_block_random(B, 3));
        OK(ctx, spsi_triangle_solve(t, B, X));
        OK(ctx, sps_block_get(X, 0, 8, x, 8, SPS_ROW_MAJOR, SPS_HOST));
        if (!first) first = x;
        ck_assert(oracle_differs(60000, 8, x, 8, first, 8) < 0);
        if (x != first) free(x);
        sps_block_destroy(&B);
        sps_block_destroy(&X);
        spsi_triangle_destroy(&t);
        sps_context_destroy(&ctx);
    }
    free(first);
}
END_TEST

START_TEST(new_values_are_taken)
{
    sps_context *ctx = runner_context();
    sps_csr *S = strict(ctx, zoo_find("grid5"), 900, false);
    sps_triangle *t = NULL;
    double *inverse = NULL, *x = zoo_block(900, 3, 3, 5, ZOO_INTEGER), *b;
    frame B, X;

    OK(ctx, SPS_NEW(ctx, 900, &inverse));
    for (int i = 0; i < 900; i++) inverse[i] = 4;
    OK(ctx, make(ctx, S, inverse, false, &t));
    for (int64_t p = 0; p < t->part.S->nnz; p++)
        ((double *)t->part.S->val)[p] = p % 2;
    for (int i = 0; i < 900; i++) t->part.inverse[i] = 1 / diagonal(i);
    OK(ctx, spsi_triangle_refresh(t));
    b = product(t->part.S, false, x, 3);
    B = frame_make(ctx, 900, 3, 3, 0, b, 3);
    X = frame_make(ctx, 900, 3, 3, 0, NULL, 3);
    OK(ctx, spsi_triangle_solve(t, B.X, X.X));
    shape_equals(&X, 3, x, "new values");
    spsi_triangle_destroy(&t);
    frame_free(&B);
    frame_free(&X);
    free(x);
    free(b);
    sps_context_destroy(&ctx);
}
END_TEST

/* Solve with L of a permuted matrix: T P' X = Q B. */
START_TEST(permutations_are_taken_along)
{
    sps_context *ctx = runner_context();
    enum { N = 900, K = 5 };

    for (int upper = 0; upper < 2; upper++) {
        sps_csr *S = strict(ctx, zoo_find("grid5"), N, upper);
        sps_triangle *t = NULL;
        double *y = zoo_block(N, K, K, 5, ZOO_INTEGER), *c, *b = zeros(N * K);
        double *x = zeros(N * K);
        int32_t *from = NULL, *to = NULL;
        frame B, X;

        OK(ctx, SPS_NEW(ctx, N, &from));
        OK(ctx, SPS_NEW(ctx, N, &to));
        c = product(S, true, y, K);
        for (int i = 0; i < N; i++) {
            from[i] = (i * 7 + 3) % N;
            to[i] = (i * 11 + 5) % N;
            for (int j = 0; j < K; j++) {
                b[from[i] * K + j] = c[i * K + j];
                x[to[i] * K + j] = y[i * K + j];
            }
        }
        OK(ctx, spsi_triangle_create(ctx, &(sps_triangle_parts){
            .upper = upper, .S = S, .from = from, .to = to }, &t));
        B = frame_make(ctx, N, K, K, 0, b, K);
        X = frame_make(ctx, N, K, K, 0, NULL, K);
        OK(ctx, spsi_triangle_solve(t, B.X, X.X));
        shape_equals(&X, K, x, "permuted");
        spsi_triangle_destroy(&t);
        frame_free(&B);
        frame_free(&X);
        free(x);
        free(y);
        free(b);
        free(c);
    }
    sps_context_destroy(&ctx);
}
END_TEST

/* A NaN in one column must not affect the others, nor stop the solve. */
START_TEST(a_nan_stays_in_its_column)
{
    sps_context *ctx = runner_context();
    sps_csr *S = strict(ctx, zoo_find("grid5"), 900, false);
    sps_triangle *t = NULL;
    double *inverse = NULL, *x = zoo_block(900, 3, 3, 5, ZOO_INTEGER), *b;
    double *got = zeros(900 * 3);
    frame B, X;

    b = product(S, true, x, 3);
    for (int i = 0; i < 900; i++) b[i * 3 + 1] = NAN;
    OK(ctx, make(ctx, S, inverse, false, &t));
    B = frame_make(ctx, 900, 3, 3, 0, b, 3);
    X = frame_make(ctx, 900, 3, 3, 0, NULL, 3);
    OK(ctx, spsi_triangle_solve(t, B.X, X.X));
    frame_read(&X, 3, got);
    for (int i = 0; i < 900; i++) {
        ck_assert(isnan(got[i * 3 + 1]));
        ck_assert(got[i * 3] == x[i * 3] && got[i * 3 + 2] == x[i * 3 + 2]);
    }
    spsi_triangle_destroy(&t);
    frame_free(&B);
    frame_free(&X);
    free(x);
    free(b);
    free(got);
    sps_context_destroy(&ctx);
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(triangles_are_solved_exactly),
    RUNNER_TEST(every_width_is_served),
    RUNNER_TEST(wide_levels_are_solved_exactly),
    RUNNER_TEST(results_do_not_depend_on_threads),
    RUNNER_TEST(new_values_are_taken),
    RUNNER_TEST(permutations_are_taken_along),
    RUNNER_TEST(a_nan_stays_in_its_column),
};
RUNNER_MAIN("check_triangle", tests)
