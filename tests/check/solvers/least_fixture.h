/* SPDX-License-Identifier: BSD-3-Clause */
/* least_fixture.h - least-squares problems for Check tests: dense host matrices
 * with many zeros as csr, their solves, and what LAPACK and long double say. */
#ifndef SPS_TEST_LEAST_FIXTURE_H
#define SPS_TEST_LEAST_FIXTURE_H

#include <lapacke.h>
#include <math.h>

#include "tests/support/fixture.h"

static const char *const least_methods[] = { "lsqr", "lsmr" };

/* m x n and k right-hand sides, all row-major. */
typedef struct least {
    sps_context *ctx;
    int m, n, k;
    double *a, *b, *x;
    sps_options opt;
    /* After least_solve; arrays copied from the result. */
    sps_result result;
    sps_stop *column;
    double *residual, *normal;
} least;

/* Uniform in [-1, 1), from a state (Knuth's MMIX generator). */
static inline double least_draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) +
             UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

static inline least least_new(sps_context *ctx, int m, int n, int k)
{
    least p = { .ctx = ctx, .m = m, .n = n, .k = k };

    p.a = calloc((size_t)(m * n) + 1, sizeof *p.a);
    p.b = calloc((size_t)(m * k) + 1, sizeof *p.b);
    p.x = calloc((size_t)(n * k) + 1, sizeof *p.x);
    p.column = calloc((size_t)k, sizeof *p.column);
    p.residual = calloc((size_t)k, sizeof *p.residual);
    p.normal = calloc((size_t)k, sizeof *p.normal);
    sps_options_default(&p.opt);
    return p;
}

static inline void least_drop(least *p)
{
    free(p->a);
    free(p->b);
    free(p->x);
    free(p->column);
    free(p->residual);
    free(p->normal);
}

/* Random numbers in about `per_row` entries of each row, and in all of b. */
static inline void least_fill(least *p, int per_row, uint64_t seed)
{
    uint64_t state = seed * 977 + 13;

    for (int i = 0; i < p->m * p->n; i++)
        if (fabs(least_draw(&state)) * p->n < per_row)
            p->a[i] = least_draw(&state);
    for (int i = 0; i < p->m * p->k; i++) p->b[i] = least_draw(&state);
}

/* The nonzeros of a; the caller destroys it. */
static inline sps_csr *least_csr(const least *p)
{
    int64_t nnz = 0;
    sps_csr *A = NULL;

    for (int i = 0; i < p->m * p->n; i++) nnz += p->a[i] != 0;
    OK(p->ctx, sps_csr_create(p->ctx, p->m, p->n, nnz, SPS_F64, &A));
    nnz = 0;
    for (int i = 0; i < p->m; i++) {
        for (int j = 0; j < p->n; j++) {
            if (p->a[i * p->n + j] == 0) continue;
            A->col[nnz] = j;
            ((double *)A->val)[nnz++] = p->a[i * p->n + j];
        }
        A->rowptr[i + 1] = nnz;
    }
    return A;
}

static inline void least_keep(least *p)
{
    const sps_result *r = &p->result;

    for (int j = 0; j < p->k; j++) {
        p->column[j] = r->column[j];
        p->residual[j] = r->residual[j];
        p->normal[j] = r->normal ? r->normal[j] : NAN;
    }
}

/* Solves with op, from the guess p->x. */
static inline sps_status least_solve_by(least *p, const sps_operator *op)
{
    sps_block *B = fixture_block(p->ctx, p->m, p->k, p->b, p->k);
    sps_block *X = fixture_block(p->ctx, p->n, p->k, p->x, p->k);
    sps_solver *s = NULL;
    sps_status st;

    p->result = (sps_result){ .struct_size = sizeof p->result };
    st = sps_solver_create(op, NULL, p->k, &p->opt, &s);
    if (st == SPS_OK) st = sps_solver_linear(s, B, X, &p->result);
    if (st == SPS_OK) least_keep(p);
    OK(p->ctx, sps_block_get(X, 0, p->k, p->x, p->k, SPS_ROW_MAJOR, SPS_HOST));
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    return st;
}

static inline sps_status least_solve(least *p)
{
    sps_csr *A = least_csr(p);
    sps_operator *op = NULL;
    sps_status st = sps_operator_csr(p->ctx, A, p->k, &p->opt, &op);

    if (st == SPS_OK) st = least_solve_by(p, op);
    sps_operator_destroy(&op);
    sps_csr_destroy(p->ctx, &A);
    return st;
}

/* (|r|, ||S'r||) of column j in long double, |r| with the damping. */
static inline void least_measure(const least *p, int j, long double *r_p,
                                 long double *normal_p)
{
    const long double d = p->opt.damp;
    long double r2 = 0, s2 = 0, x2 = 0;
    long double *r = calloc((size_t)p->m + 1, sizeof *r);

    for (int i = 0; i < p->m; i++) {
        r[i] = p->b[i * p->k + j];
        for (int q = 0; q < p->n; q++)
            r[i] -= (long double)p->a[i * p->n + q] * p->x[q * p->k + j];
        r2 += r[i] * r[i];
    }
    for (int q = 0; q < p->n; q++) {
        const long double x = p->x[q * p->k + j];
        long double s = -d * d * x;

        for (int i = 0; i < p->m; i++) s += p->a[i * p->n + q] * r[i];
        s2 += s * s;
        x2 += x * x;
    }
    free(r);
    *r_p = sqrtl(r2 + d * d * x2);
    *normal_p = sqrtl(s2);
}

static inline double least_norm_b(const least *p, int j)
{
    long double sum = 0;

    for (int i = 0; i < p->m; i++)
        sum += (long double)p->b[i * p->k + j] * p->b[i * p->k + j];
    return (double)sqrtl(sum);
}

/* What is said of column j holds of the numbers. */
static inline void least_must_be_true(const least *p, int j, const char *what)
{
    const double size = hypot(p->result.norm_A, p->opt.damp);
    const double b = least_norm_b(p, j), tol = p->opt.rtol * (1 + 1e-6);
    long double r, normal;

    least_measure(p, j, &r, &normal);
    if (p->column[j] == SPS_STOP_CONVERGED)
        ck_assert_msg(r <= tol * b, "%s, %s, column %d is said to be solved at "
                      "%Lg", p->opt.solver, what, j, r / b);
    if (p->column[j] == SPS_STOP_CONVERGED_LEAST_SQUARES)
        ck_assert_msg(normal <= tol * size * r, "%s, %s, column %d is said to "
                      "be a least-squares solution at %Lg", p->opt.solver, what,
                      j, normal / (size * r));
    if (r > 1e-8 * b && size > 0)     /* else r is rounding here */
        ck_assert_msg(fabsl(p->normal[j] - normal / (size * r)) <=
                      1e-6 * p->normal[j] + 1e-13, "%s, %s, column %d: %g is "
                      "said, %Lg holds", p->opt.solver, what, j, p->normal[j],
                      normal / (size * r));
}

static inline void least_must_converge(least *p, const char *what)
{
    OK(p->ctx, least_solve(p));
    for (int j = 0; j < p->k; j++) {
        ck_assert_msg(p->column[j] > 0, "%s, %s, column %d: %s, residual %g, "
                      "normal %g, %d iterations", p->opt.solver, what, j,
                      sps_stop_string(p->column[j]), p->residual[j],
                      p->normal[j], p->result.iterations);
        least_must_be_true(p, j, what);
    }
}

/* x = the solution of least norm by LAPACK, singular values below rcond times
 * the largest being 0; *cond: the ratio of the others. */
static inline double *least_lapack(const least *p, double rcond, double *cond)
{
    const int most = p->m > p->n ? p->m : p->n;
    const int least_of = p->m < p->n ? p->m : p->n;
    double *a = malloc((size_t)(p->m * p->n) * sizeof *a);
    double *x = calloc((size_t)(most * p->k), sizeof *x);
    double *s = malloc((size_t)least_of * sizeof *s);
    lapack_int rank = 0;

    memcpy(a, p->a, (size_t)(p->m * p->n) * sizeof *a);
    memcpy(x, p->b, (size_t)(p->m * p->k) * sizeof *x);
    ck_assert_int_eq(LAPACKE_dgelsd(LAPACK_ROW_MAJOR, p->m, p->n, p->k, a, p->n,
                                    x, p->k, s, rcond, &rank), 0);
    *cond = rank > 0 ? s[0] / s[rank - 1] : 1;
    free(a);
    free(s);
    return x;
}

/* The largest ||x_j - y_j|| / ||y_j|| over the columns with y_j != 0. */
static inline double least_distance(const least *p, const double *y)
{
    double worst = 0;

    for (int j = 0; j < p->k; j++) {
        double apart = 0, size = 0;

        for (int q = 0; q < p->n; q++) {
            apart = hypot(apart, p->x[q * p->k + j] - y[q * p->k + j]);
            size = hypot(size, y[q * p->k + j]);
        }
        if (size > 0) worst = fmax(worst, apart / size);
    }
    return worst;
}

#define FOR_LEAST(name)                                                        \
    for (int i_ = 0; i_ < 2 && (name = least_methods[i_]); i_++)

#endif
