/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_fixture.h - for suites about solver auto: a context for each test, and
 * matrices for which its first choice of method fails. */
#ifndef SPS_TEST_CHAIN_FIXTURE_H
#define SPS_TEST_CHAIN_FIXTURE_H

#include <check.h>

#include "tests/support/fixture.h"
#include "tests/support/runner.h"
#include "tests/problems/problem.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static inline void set_up(void) { ctx = runner_context(); }

static inline void tear_down(void) { fixture_close(&ctx); }

static inline bool noted(const char *part)
{
    return fixture_noted(ctx, part);
}

static inline sps_csr *zoo(const char *name, int64_t n, zoo_values values)
{
    return zoo_matrix(zoo_find(name), n, 1, values, SPS_F64);
}

/* The sign of the upper triangle is changed: a diagonally dominant nonsymmetric
 * matrix. */
static inline sps_csr *nonsymmetric(int64_t n)
{
    sps_csr *A = zoo("grid5", n, ZOO_SPD);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] > i) ((double *)A->val)[p] *= -1;
    A->props = 0;
    return A;
}

/* Grid Laplacian minus shift I: symmetric, indefinite, with positive
 * diagonal. */
static inline sps_csr *indefinite(int64_t n, double shift)
{
    sps_csr *A = zoo("grid5", n, ZOO_LAPLACIAN);

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            if (A->col[p] == i) ((double *)A->val)[p] -= shift;
    return A;
}

static inline void must_solve(problem *p, const char *what)
{
    sps_status st = problem_solve(p);

    ck_assert_msg(st == SPS_OK, "%s: %s", what, sps_context_error(ctx));
    ck_assert_msg(p->result.stop == SPS_STOP_CONVERGED, "%s: %s, %g", what,
                  sps_stop_string(p->result.stop), p->result.worst_residual);
    ck_assert_msg(problem_worst(p) <= p->opt.rtol * (1 + 1e-6), "%s: %g", what,
                  problem_worst(p));
}

#endif
