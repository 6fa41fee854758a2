/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/problems/problem.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problems/exact.h"
#include "tests/problems/zoo.h"
#include "tests/support/least.h"

void problem_open(problem *p, sps_context *ctx, sps_csr *A, int k)
{
    memset(p, 0, sizeof *p);
    p->ctx = ctx;
    p->A = A;
    p->k = k;
    p->b = zoo_block(A->nrow, k, k, 11, ZOO_RANDOM);
    p->x = calloc((size_t)(A->nrow * k) + 1, sizeof(double));
    p->residual = calloc((size_t)k, sizeof(double));
    p->stated = calloc((size_t)k, sizeof(double));
    p->backward = calloc((size_t)k, sizeof(double));
    p->column = calloc((size_t)k, sizeof *p->column);
    sps_options_default(&p->opt);
    p->opt.rtol = 1e-10;
}

void problem_open_grid(problem *p, sps_context *ctx, int64_t n, int k,
                       double shift)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), n, 5, ZOO_LAPLACIAN, SPS_F64);
    double *val = A->val;

    for (int64_t i = 0; i < n; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] += shift;
    problem_open(p, ctx, A, k);
}

void problem_judge(problem *p)
{
    for (int j = 0; j < p->k; j++) {
        const exact_norms e = exact_residual(p->A, p->b, p->x, p->k, j);

        p->residual[j] = (double)(e.b > 0 ? e.residual / e.b : e.residual);
    }
}

static void keep_result(problem *p)
{
    const size_t k = (size_t)p->k;

    memcpy(p->stated, p->result.residual, k * sizeof(double));
    memcpy(p->backward, p->result.backward, k * sizeof(double));
    memcpy(p->column, p->result.column, k * sizeof *p->column);
}

sps_status problem_solve(problem *p)
{
    sps_status st = SPS_OK;
    sps_block *B = NULL, *X = NULL;
    sps_solver *s = NULL;
    int64_t n = p->A->nrow;

    p->result.struct_size = sizeof p->result;
    if (!p->op) st = sps_operator_csr(p->ctx, p->A, p->k, &p->opt, &p->op);
    if (st == SPS_OK) st = sps_block_create(p->ctx, n, p->k, &B);
    if (st == SPS_OK) st = sps_block_create(p->ctx, n, p->k, &X);
    if (st == SPS_OK)
        st = sps_block_set(B, 0, p->k, p->b, p->k, SPS_ROW_MAJOR, SPS_HOST);
    if (st == SPS_OK)
        st = sps_block_set(X, 0, p->k, p->x, p->k, SPS_ROW_MAJOR, SPS_HOST);
    if (st == SPS_OK) st = sps_solver_create(p->op, p->M, p->k, &p->opt, &s);
    if (st == SPS_OK) st = sps_solver_linear(s, B, X, &p->result);
    if (st == SPS_OK)
        st = sps_block_get(X, 0, p->k, p->x, p->k, SPS_ROW_MAJOR, SPS_HOST);
    if (st == SPS_OK) keep_result(p);
    if (st == SPS_OK) problem_judge(p);
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    p->result.residual = p->result.backward = NULL;   /* freed with s */
    p->result.column = NULL;
    return st;
}

double problem_worst(const problem *p)
{
    double worst = 0;

    for (int j = 0; j < p->k; j++)
        worst = isnan(p->residual[j]) ? INFINITY
                                      : fmax(worst, p->residual[j]);
    return worst;
}

/* ||A'r|| / (||A|| ||r||) of column j in long double, ||A|| as the result has
 * it. */
static double normal_residual(const problem *p, int j)
{
    const sps_csr *A = p->A;
    const double *val = A->val;
    long double *s = calloc((size_t)A->ncol + 1, sizeof *s), r2 = 0, s2 = 0;

    for (int64_t i = 0; i < A->nrow; i++) {
        long double r = p->b[i * p->k + j];

        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            r -= (long double)val[q] * p->x[(int64_t)A->col[q] * p->k + j];
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            s[A->col[q]] += val[q] * r;
        r2 += r * r;
    }
    for (int64_t i = 0; i < A->ncol; i++) s2 += s[i] * s[i];
    free(s);
    return s2 == 0 ? 0 : (double)(sqrtl(s2 / r2) / p->result.norm_A);
}

bool problem_honest(const problem *p)
{
    const bool least = solves_least_squares(p->opt.solver);
    int good = 0;

    for (int j = 0; j < p->k; j++) {
        double r = p->residual[j];

        if (least && p->column[j] == SPS_STOP_CONVERGED_LEAST_SQUARES)
            r = normal_residual(p, j);
        good += r <= p->opt.rtol * (1 + 1e-6) + 1e-15;
    }
    return p->result.columns_converged <= good;
}

void problem_close(problem *p)
{
    sps_operator_destroy(&p->op);
    zoo_free(&p->A);
    free(p->b);
    free(p->x);
    free(p->residual);
    free(p->stated);
    free(p->backward);
    free(p->column);
}
