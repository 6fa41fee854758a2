/* SPDX-License-Identifier: BSD-3-Clause */
#include "problem.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "zoo.h"

void problem_open(problem *p, sps_context *ctx, sps_csr *A, int k)
{
    memset(p, 0, sizeof *p);
    p->ctx = ctx;
    p->A = A;
    p->k = k;
    p->b = zoo_block(A->nrow, k, k, 11, ZOO_RANDOM);
    p->x = calloc((size_t)(A->nrow * k) + 1, sizeof(double));
    p->residual = calloc((size_t)k, sizeof(double));
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

/* ||b_j - A x_j|| / ||b_j||; ||x|| itself where b = 0. */
static void judge(problem *p)
{
    const sps_csr *A = p->A;
    const double *val = A->val;

    for (int j = 0; j < p->k; j++) {
        long double rr = 0, bb = 0;
        for (int64_t i = 0; i < A->nrow; i++) {
            long double r = p->b[i * p->k + j];
            bb += r * r;
            for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
                r -= (long double)val[q] * p->x[(int64_t)A->col[q] * p->k + j];
            rr += r * r;
        }
        p->residual[j] = (double)(bb > 0 ? sqrtl(rr / bb) : sqrtl(rr));
    }
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
    if (st == SPS_OK) judge(p);
    sps_solver_destroy(&s);
    sps_block_destroy(&B);
    sps_block_destroy(&X);
    p->result.residual = p->result.backward = NULL;   /* died with s */
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

bool problem_honest(const problem *p)
{
    int good = 0;

    for (int j = 0; j < p->k; j++)
        good += p->residual[j] <= p->opt.rtol * (1 + 1e-6) + 1e-15;
    return p->result.columns_converged <= good;
}

void problem_close(problem *p)
{
    sps_operator_destroy(&p->op);
    zoo_free(&p->A);
    free(p->b);
    free(p->x);
    free(p->residual);
}
