/* SPDX-License-Identifier: BSD-3-Clause */
/* floats.h - for suites about methods that use single precision internally: a
 * system that single precision can solve, and one that it cannot. */
#ifndef SPS_TEST_FLOATS_H
#define SPS_TEST_FLOATS_H

#include <check.h>
#include <string.h>

#include "tests/support/fixture.h"
#include "tests/problems/problem.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static inline void open_grid(problem *p, sps_context *ctx, int64_t n,
                             double shift, int k)
{
    sps_csr *A = zoo_matrix(zoo_find("grid5"), n, 5, ZOO_LAPLACIAN, SPS_F64);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] += shift * (double)(1 + i % 7);
    problem_open(p, ctx, A, k);
    p->opt.solver = "refinement";
    p->opt.precond = "jacobi";
}

static inline void solve(problem *p, sps_stop stop, const char *solver)
{
    ck_assert_msg(problem_solve(p) == SPS_OK, "%s",
                  sps_context_error(p->ctx));
    ck_assert_msg(p->result.stop == stop, "%s after %d iterations, worst %g",
                  sps_stop_string(p->result.stop), p->result.iterations,
                  problem_worst(p));
    ck_assert_str_eq(p->result.solver, solver);
    ck_assert(problem_honest(p));
}

/* Blocks [1 c; c 1] with c = 1 - 1e-8, which rounds to 1 in single precision,
 * so that the rounded matrix is singular.  The condition number is 2e8, with
 * only two distinct eigenvalues. */
static inline sps_csr *pairs(sps_context *ctx, int64_t n)
{
    sps_csr *A = NULL;

    OK(ctx, sps_csr_create(ctx, n, n, 2 * n, SPS_F64, &A));
    for (int64_t i = 0; i < n; i++) {
        A->rowptr[i + 1] = 2 * (i + 1);
        for (int j = 0; j < 2; j++) {
            A->col[2 * i + j] = (int32_t)(i / 2 * 2 + j);
            ((double *)A->val)[2 * i + j] = i % 2 == j ? 1 : 1 - 1e-8;
        }
    }
    return A;
}

#endif
