/* SPDX-License-Identifier: BSD-3-Clause */
/* check_two_way.c - products with A and A' in one pass: the zoo's tall patterns
 * with integers and factors that are powers of two, so that every sum is exact
 * and must be met bit for bit. */
#include <math.h>
#include <stdlib.h>

#include "core/backend.h"
#include "matrix/two_way.h"
#include "tests/support/frame.h"
#include "tests/support/oracle.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

#define OK(ctx, call)                                                          \
    ck_assert_msg((call) == SPS_OK, "%s: %s", #call, sps_context_error(ctx))

enum { WIDEST = 70 };

/* The operands as plain arrays with k columns, and the same in frames. */
typedef struct operands {
    int64_t nrow, ncol;
    int k;
    double *x, *u, *v, *z, a[WIDEST], b[WIDEST], c[WIDEST];
    frame X, U, V, Z;
} operands;

static operands made(sps_context *ctx, const sps_csr *A, int k)
{
    const int64_t ld = k + k % 3;
    operands o = {
        .nrow = A->nrow, .ncol = A->ncol, .k = k,
        .x = zoo_block(A->ncol, k, k, 1, ZOO_SMALL),
        .u = zoo_block(A->nrow, k, k, 2, ZOO_SMALL),
        .v = zoo_block(A->ncol, k, k, 3, ZOO_SMALL),
        .z = zoo_block(A->ncol, k, k, 4, ZOO_SMALL),
    };

    for (int j = 0; j < k; j++) {
        o.a[j] = ldexp(1, j % 3 - 1);
        o.b[j] = -ldexp(1, j % 4);
        o.c[j] = j % 5 == 4 ? 0 : ldexp(1, j % 2);
    }
    o.X = frame_make(ctx, o.ncol, k, ld, 0, o.x, k);
    o.U = frame_make(ctx, o.nrow, k, ld, 1, o.u, k);
    o.V = frame_make(ctx, o.ncol, k, k, 0, o.v, k);
    o.Z = frame_make(ctx, o.ncol, k, ld, 1, o.z, k);
    return o;
}

static void drop(operands *o)
{
    frame_free(&o->X);
    frame_free(&o->U);
    frame_free(&o->V);
    frame_free(&o->Z);
    free(o->x);
    free(o->u);
    free(o->v);
    free(o->z);
}

/* u = A x diag(c) - u and z = (A'u + 2 v) diag(a) + z diag(b), where u has the
 * rows in that order. */
static void by_hand(const sps_csr *A, const int32_t *order, operands *o)
{
    const int k = o->k;
    double *y = calloc((size_t)(A->ncol * k) + 1, sizeof *y);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < k; j++) {
            double sum = 0, *u = o->u + i * k + j;

            for (int64_t p = A->rowptr[order[i]]; p < A->rowptr[order[i] + 1];
                 p++)
                sum += spsi_csr_value(A, p) * o->x[A->col[p] * k + j];
            *u = o->c[j] * sum - *u;
            for (int64_t p = A->rowptr[order[i]]; p < A->rowptr[order[i] + 1];
                 p++)
                y[A->col[p] * k + j] += spsi_csr_value(A, p) * *u;
        }
    for (int64_t e = 0; e < A->ncol * k; e++)
        o->z[e] = o->a[e % k] * (y[e] + 2 * o->v[e]) + o->b[e % k] * o->z[e];
    free(y);
}

static void must_be(frame *f, const double *x, const double *norm)
{
    double *y = calloc((size_t)(f->n * f->k) + 1, sizeof *y), sum;

    frame_read(f, f->k, y);
    ck_assert_int_lt(oracle_differs(f->n, f->k, y, f->k, x, f->k), 0);
    for (int j = 0; j < f->k; j++) {
        sum = 0;
        for (int64_t i = 0; i < f->n; i++)
            sum += x[i * f->k + j] * x[i * f->k + j];
        ck_assert_double_eq_tol(norm[j], sqrt(sum), 1e-13 * sqrt(sum));
    }
    free(y);
}

static void try_pair(sps_context *ctx, const sps_two_way *w, const sps_csr *A,
                     int k)
{
    operands o = made(ctx, A, k);
    double norm[WIDEST];

    by_hand(A, w->order, &o);
    OK(ctx, spsi_two_way_there(w, o.c, o.X.X, o.U.X, norm));
    must_be(&o.U, o.u, norm);
    OK(ctx, spsi_two_way_back(w, o.a, 2, o.V.X, o.b, o.Z.X, norm));
    must_be(&o.Z, o.z, norm);
    drop(&o);
}

/* Row i has the columns of row i mod m of a zoo matrix of m rows. */
static sps_csr *repeated(int family, int64_t nrow, int64_t m, int64_t ncol)
{
    sps_csr *A = zoo_shape(family, m, ncol, 3, ZOO_SMALL, SPS_F64), *R;
    int32_t *length = calloc((size_t)m + 1, sizeof *length);

    for (int64_t i = 0; i < m; i++)
        length[i] = (int32_t)(A->rowptr[i + 1] - A->rowptr[i]);
    R = zoo_rows(nrow, ncol, length, m, 0, 5, ZOO_SMALL, SPS_F64);
    for (int64_t i = 0; i < nrow; i++)
        memcpy(R->col + R->rowptr[i], A->col + A->rowptr[i % m],
               (size_t)length[i % m] * sizeof *A->col);
    zoo_free(&A);
    free(length);
    return R;
}

/* Tries k columns and fewer, and new values.  Returns whether there are such
 * passes for A, which is freed. */
static bool try_matrix(sps_context *ctx, sps_csr *A, int k)
{
    sps_two_way *w = NULL;
    bool made;

    OK(ctx, spsi_two_way_create(ctx, A, k, &w));
    made = w != NULL;
    for (int few = k; w && few > 0; few /= 2) try_pair(ctx, w, A, few);
    for (int64_t p = 0; p < A->nnz; p++) ((double *)A->val)[p] += 1;
    if (w) spsi_two_way_refresh(w, A);
    if (w) try_pair(ctx, w, A, k);
    spsi_two_way_destroy(&w);
    zoo_free(&A);
    return made;
}

START_TEST(sums_are_exact)
{
    static const int64_t shape[][2] = {{0, 0}, {1, 1}, {7, 3}, {60, 63},
                                       {400, 60}, {2000, 40}};
    sps_context *ctx = runner_context();
    int made = 0;

    if (!ctx->backend->two_way_there) runner_leave_out("host only");
    for (int f = 0; f < zoo_count(); f++)
        for (int s = 0; s < 6; s++) {
            const int64_t m = shape[s][0], n = shape[s][1];

            made += try_matrix(ctx, zoo_shape(f, m, n, 3, ZOO_SMALL, SPS_F64),
                               5 + s);
            made += try_matrix(ctx, repeated(f, m, 1 + m / 90, n), 16);
        }
    ck_assert_int_ge(made, 5 * zoo_count());
    sps_context_destroy(&ctx);
}
END_TEST

START_TEST(every_width_is_served_by_any_number_of_threads)
{
    if (runner_place() != SPS_HOST) runner_leave_out("threads of the host");
    for (int threads = 1; threads < 8; threads += 3) {
        sps_context *ctx = NULL;
        sps_context_options o;

        sps_context_options_default(&o);
        o.place = SPS_HOST;
        o.threads = threads;
        OK(NULL, sps_context_create(&o, &ctx, NULL));
        for (int k = 1; k < WIDEST; k += 1 + k / 4)
            ck_assert(try_matrix(ctx, repeated(zoo_find("grid5"), 5000, 400,
                                               400), k));
        sps_context_destroy(&ctx);
    }
}
END_TEST

static const runner_test tests[] = {
    RUNNER_TEST(sums_are_exact),
    RUNNER_TEST(every_width_is_served_by_any_number_of_threads),
};
RUNNER_MAIN("check_two_way", tests)
