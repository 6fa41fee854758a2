/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/problems/pencil.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/draw.h"
#include "tests/support/runner.h"

sps_context *pencil_context(uint64_t seed)
{
    return pencil_context_of(seed, 1);
}

sps_context *pencil_context_of(uint64_t seed, int threads)
{
    sps_context_options o;
    sps_context *ctx = NULL;
    const char *why = "";

    sps_context_options_default(&o);
    o.place = runner_place();
    o.threads = threads;
    o.seed = seed;
    ck_assert_msg(sps_context_create(&o, &ctx, &why) == SPS_OK, "%s", why);
    return ctx;
}

void pencil_open(pencil *p, sps_context *ctx, int n, int count,
                 bool generalised)
{
    size_t nn = (size_t)n * (size_t)n;

    memset(p, 0, sizeof *p);
    p->ctx = ctx;
    p->n = n;
    p->count = count;
    p->a = calloc(nn + 1, sizeof(double));
    if (generalised) p->m = calloc(nn + 1, sizeof(double));
    p->x = calloc((size_t)n * (size_t)count + 1, sizeof(double));
    p->lambda = calloc((size_t)count, sizeof(double));
    p->residual = calloc((size_t)count, sizeof(double));
    p->backward = calloc((size_t)count, sizeof(double));
    p->bound = calloc((size_t)count, sizeof(double));
    p->pair = calloc((size_t)count, sizeof *p->pair);
    sps_options_default(&p->opt);
    p->opt.solver = "lobpcg";
    p->opt.rtol = 1e-9;
    p->opt.max_iterations = runner_quick() ? 6 : 3000;
}

void pencil_set(pencil *p, int i, int j, double value)
{
    p->a[(long)i * p->n + j] = p->a[(long)j * p->n + i] = value;
}

void pencil_mass(pencil *p, int i, int j, double value)
{
    p->m[(long)i * p->n + j] = p->m[(long)j * p->n + i] = value;
}

void pencil_squares(pencil *p, uint64_t seed, int rows, bool mass)
{
    draw d = { seed * 7919 };
    double *b = calloc((size_t)(rows * p->n), sizeof *b);

    for (int t = 0; t < rows * p->n; t++)
        for (int s = 0; s < 12; s++) b[t] += draw_unit(&d) - 0.5;
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0;

            for (int r = 0; r < rows; r++)
                sum += b[r * p->n + i] * b[r * p->n + j];
            if (mass) pencil_mass(p, i, j, sum + (i == j));
            else pencil_set(p, i, j, sum);
        }
    free(b);
}

void pencil_sunken(pencil *p, bool hidden)
{
    for (int i = 0; i < p->n; i++) {
        pencil_set(p, i, i, hidden ? 4 : 3.7);
        if (i % 26) pencil_set(p, i, i - 1, -1);
        if (i >= 26) pencil_set(p, i, i - 26, -1);
        if (p->m) pencil_mass(p, i, i, 2 + i % 3);
        if (p->m && i % 26) pencil_mass(p, i, i - 1, 0.5);
    }
    if (hidden) pencil_set(p, 300, 300, 0.9);
}

static sps_csr *sparse(pencil *p, const double *d)
{
    int64_t nnz = 0, q = 0;
    sps_csr *A = NULL;

    for (long t = 0; t < (long)p->n * p->n; t++) nnz += d[t] != 0;
    ck_assert_int_eq(sps_csr_create(p->ctx, p->n, p->n, nnz, SPS_F64, &A),
                     SPS_OK);
    for (int i = 0; i < p->n; i++) {
        for (int j = 0; j < p->n; j++)
            if (d[(long)i * p->n + j] != 0) {
                A->col[q] = j;
                ((double *)A->val)[q++] = d[(long)i * p->n + j];
            }
        A->rowptr[i + 1] = q;
    }
    return A;
}

static void keep_result(pencil *p)
{
    size_t k = (size_t)p->count;

    memcpy(p->residual, p->result.residual, k * sizeof(double));
    memcpy(p->backward, p->result.backward, k * sizeof(double));
    memcpy(p->bound, p->result.bound, k * sizeof(double));
    memcpy(p->pair, p->result.pair, k * sizeof *p->pair);
}

static sps_status unit_vector(pencil *p, sps_block **Y_p)
{
    double *y = calloc((size_t)p->n, sizeof *y);
    sps_status st = sps_block_create(p->ctx, p->n, 1, Y_p);

    y[p->constraint - 1] = 1;
    if (st == SPS_OK)
        st = sps_block_set(*Y_p, 0, 1, y, 1, SPS_ROW_MAJOR, SPS_HOST);
    free(y);
    return st;
}

static sps_status null_vectors(pencil *p, sps_block **N_p)
{
    sps_status st = sps_block_create(p->ctx, p->n, p->nulls, N_p);

    if (st == SPS_OK)
        st = sps_block_set(*N_p, 0, p->nulls, p->null, p->nulls,
                           SPS_ROW_MAJOR, SPS_HOST);
    return st;
}

sps_status pencil_solve(pencil *p)
{
    sps_status st = SPS_OK;
    sps_block *X = NULL, *Y = NULL, *N = NULL;
    sps_solver *s = NULL;

    if (!p->A) p->A = sparse(p, p->a);
    if (!p->M && p->m) p->M = sparse(p, p->m);
    if (!p->op) st = sps_operator_csr(p->ctx, p->A, 16, NULL, &p->op);
    if (st == SPS_OK && p->M && !p->mass)
        st = sps_operator_csr(p->ctx, p->M, 16, NULL, &p->mass);
    if (st == SPS_OK && p->constraint) st = unit_vector(p, &Y);
    if (st == SPS_OK && p->null) st = null_vectors(p, &N);
    p->opt.constraints = Y;
    p->opt.nullspace_basis = N;
    if (st == SPS_OK)
        st = sps_solver_create_eigen(p->op, p->mass, p->T, p->count, &p->opt,
                                     &s);
    if (st == SPS_OK) st = sps_block_create(p->ctx, p->n, p->count, &X);
    if (st == SPS_OK)
        st = sps_block_set(X, 0, p->count, p->x, p->count, SPS_ROW_MAJOR,
                           SPS_HOST);
    p->result.struct_size = sizeof p->result;
    if (st == SPS_OK) st = sps_solver_eigen(s, X, p->lambda, &p->result);
    if (st == SPS_OK) keep_result(p);
    if (st == SPS_OK)
        st = sps_block_get(X, 0, p->count, p->x, p->count, SPS_ROW_MAJOR,
                           SPS_HOST);
    sps_block_destroy(&X);
    sps_block_destroy(&Y);
    sps_block_destroy(&N);
    p->opt.constraints = NULL;
    p->opt.nullspace_basis = NULL;
    sps_solver_destroy(&s);
    return st;
}

void pencil_close(pencil *p)
{
    sps_operator_destroy(&p->op);
    sps_operator_destroy(&p->mass);
    if (p->A) sps_csr_destroy(p->ctx, &p->A);
    if (p->M) sps_csr_destroy(p->ctx, &p->M);
    free(p->a);
    free(p->m);
    free(p->all);
    free(p->null);
    free(p->unit);
    free(p->x);
    free(p->lambda);
    free(p->residual);
    free(p->backward);
    free(p->bound);
    free(p->pair);
}
