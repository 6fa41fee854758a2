/* SPDX-License-Identifier: BSD-3-Clause */
/* factor_fixture.h - for suites of the preconditioner factor: integer systems
 * of all kinds, and what the factors make of them. */
#ifndef SPS_TEST_FACTOR_FIXTURE_H
#define SPS_TEST_FACTOR_FIXTURE_H

#include <stdlib.h>

#include "core/context.h"
#include "tests/support/fixture.h"

typedef enum kind { DEFINITE, INDEFINITE, GENERAL, SADDLE } kind;

/* Entry (i, j) of an integer matrix: a grid of five points, `side` wide, with
 * the diagonal the kind asks for.  SADDLE: every fourth diagonal entry is 0. */
static inline double entry(kind what, int64_t i, int64_t j)
{
    if (i != j && what == GENERAL) return j > i ? -3 : 2;
    if (i != j) return -1;
    if (what == DEFINITE) return 5;
    if (what == INDEFINITE) return i % 2 ? 5 : -6;
    return what == SADDLE && i % 4 == 0 ? 0 : 9;
}

static inline sps_csr *grid(sps_context *ctx, kind what, int64_t side)
{
    const int64_t n = side * side;
    sps_csr *A = NULL;
    int64_t q = 0;

    OK(ctx, sps_csr_create(ctx, n, n, 5 * n, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        const int64_t near[] = { i - side, i % side ? i - 1 : -1, i,
                                 (i + 1) % side ? i + 1 : -1, i + side };

        for (int t = 0; t < 5; t++) {
            if (near[t] < 0 || near[t] >= n) continue;
            A->col[q] = (int32_t)near[t];
            ((double *)A->val)[q++] = entry(what, i, near[t]);
        }
        A->rowptr[i + 1] = q;
    }
    A->nnz = q;
    if (what == DEFINITE) A->props = SPS_SPD;
    return A;
}

/* X = 3 i - 7 j modulo 11, and B = A X: integers, exact. */
static inline double number(int64_t i, int j)
{
    return (double)((3 * i + 4 * j) % 11 - 5);
}

static inline void multiply(const sps_csr *A, int k, double *b)
{
    const double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int j = 0; j < k; j++) {
            b[i * k + j] = 0;
            for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
                b[i * k + j] += val[p] * number(A->col[p], j);
        }
}

static inline sps_status make(sps_operator *op, int k, double seconds,
                       sps_precond **M_p)
{
    sps_options opt;

    sps_options_default(&opt);
    opt.precond = "factor";
    opt.max_seconds = seconds;
    return sps_precond_create(op, k, &opt, M_p);
}

static inline double *applied(sps_context *ctx, sps_precond *M, const double *b,
                       int64_t n, int k)
{
    sps_block *B = fixture_block(ctx, n, k, b, k);
    sps_block *Z = fixture_block(ctx, n, k, NULL, k);
    double *z = calloc((size_t)(n * k), sizeof *z);

    OK(ctx, sps_precond_apply(M, B, Z));
    OK(ctx, sps_block_get(Z, 0, k, z, k, SPS_ROW_MAJOR, SPS_HOST));
    sps_block_destroy(&B);
    sps_block_destroy(&Z);
    return z;
}

/* Zero row sums; with `row` >= 0 that row is zero instead. */
static inline sps_csr *singular(sps_context *ctx, int64_t row)
{
    sps_csr *A = grid(ctx, DEFINITE, 9);
    double *val = A->val;

    A->props = 0;
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            if (row < 0 && A->col[p] == i)
                val[p] = (double)(A->rowptr[i + 1] - A->rowptr[i] - 1);
            if (i == row || A->col[p] == row) val[p] = 0;
        }
    return A;
}

/* Solves with B = A X, changed by `beyond` in one place; returns the stop. */
static inline sps_stop solved(sps_context *ctx, sps_csr *A, double beyond,
                              const char *solver, double *residual)
{
    enum { K = 4 };
    const int64_t n = A->nrow;
    double *b = calloc((size_t)(n * K), sizeof *b);
    sps_operator *op = NULL;
    sps_solver *s = NULL;
    sps_block *B, *X = fixture_block(ctx, n, K, NULL, K);
    sps_result r = { .struct_size = sizeof r };
    sps_options opt;

    multiply(A, K, b);
    b[0] += beyond;
    B = fixture_block(ctx, n, K, b, K);
    sps_options_default(&opt);
    opt.precond = "factor";
    opt.solver = solver;
    OK(ctx, sps_operator_csr(ctx, A, K, NULL, &op));
    OK(ctx, sps_solver_create(op, NULL, K, &opt, &s));
    OK(ctx, sps_solver_linear(s, B, X, &r));
    ck_assert_str_eq(r.precond, "factor");
    *residual = r.worst_residual;
    sps_solver_destroy(&s);
    sps_operator_destroy(&op);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    free(b);
    return r.stop;
}

#endif
