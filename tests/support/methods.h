/* SPDX-License-Identifier: BSD-3-Clause */
/* methods.h - shared by the suites that run all listed methods: which methods
 * to loop over, systems of the zoo, and what a solve must satisfy. */
#ifndef SPS_TEST_METHODS_H
#define SPS_TEST_METHODS_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/problems/problem.h"
#include "tests/support/absent.h"
#include "tests/support/least.h"
#include "tests/support/runner.h"
#include "tests/problems/zoo.h"

static sps_context *ctx;

static inline void open_context(void)
{
    ctx = runner_context();
}

static inline void close_context(void)
{
    sps_context_info info = { .struct_size = sizeof info };

    ck_assert_int_eq(sps_context_information(ctx, &info), SPS_OK);
    ck_assert_int_eq(info.live_objects, 0);
    sps_context_destroy(&ctx);
}

/* Keeps its whole Krylov basis, and so solves any regular system within n
 * steps. */
static inline bool has_full_memory(const char *name)
{
    return !strcmp(name, "gmres") || !strcmp(name, "block_gmres") ||
           !strcmp(name, "block_gcrodr");
}

#define FOR_SOLVERS(name)                                                      \
    for (int i_ = 0; (name = sps_list(ctx, "solver", i_)); i_++)
#define FOR_SPD_SOLVERS(name) FOR_SOLVERS(name) if (wants_spd(name))
/* Methods that do not require definiteness, and methods that require neither
 * definiteness nor symmetry. */
#define FOR_INDEFINITE(name) FOR_SOLVERS(name) if (!wants_spd(name))
#define FOR_GENERAL(name) FOR_SOLVERS(name) if (!wants_symmetry(name))

static inline sps_csr *zoo(const char *family, int64_t n, zoo_values values)
{
    int f = zoo_find(family);

    ck_assert_msg(f >= 0, "no family %s", family);
    return zoo_matrix(f, n, 5, values, SPS_F64);
}

/* A matrix with a_ij = value(i, j) on the pattern of the family. */
static inline sps_csr *filled(const char *family, int64_t n,
                              double (*value)(int64_t i, int64_t j))
{
    sps_csr *A = zoo(family, n, ZOO_RANDOM);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            val[q] = value(i, A->col[q]);
    return A;
}

/* Centred differences of a convection-diffusion equation on a two-dimensional
 * grid. */
static inline double convection(int64_t i, int64_t j)
{
    return i == j ? 4.02 : j == i - 1 ? -1.6 : j == i + 1 ? -0.4 : j < i ? -1.3
                                                                      : -0.7;
}

/* Diagonally dominant rows, some with a negative diagonal: nonsymmetric values,
 * and eigenvalues on both sides of zero. */
static inline sps_csr *dominant(const char *family, int64_t n,
                                bool indefinite)
{
    sps_csr *A = zoo(family, n, ZOO_RANDOM);
    double *val = A->val;

    for (int64_t i = 0; i < A->nrow; i++) {
        double sum = 0.1;

        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            sum += A->col[q] == i ? 0 : fabs(val[q]);
        for (int64_t q = A->rowptr[i]; q < A->rowptr[i + 1]; q++)
            if (A->col[q] == i) val[q] = indefinite && i % 5 == 0 ? -sum : sum;
    }
    return A;
}

/* Linearly dependent columns: 0..3 equal, 4 = sum of 5 and 6, 7 = 0, 8 = A
 * times column 5. */
static inline void make_dependent(problem *p)
{
    int k = p->k;
    const double *val = p->A->val;

    for (int64_t i = 0; i < p->A->nrow; i++) {
        double *b = p->b + i * k, sum = 0;
        b[1] = b[2] = b[3] = b[0];
        b[4] = b[5] + b[6];
        b[7] = 0;
        for (int64_t q = p->A->rowptr[i]; q < p->A->rowptr[i + 1]; q++)
            sum += val[q] * p->b[(int64_t)p->A->col[q] * k + 5];
        b[8] = sum;
    }
}

static inline void solve_ok(problem *p)
{
    sps_status st = problem_solve(p);

    ck_assert_msg(st == SPS_OK, "%s: %s", sps_status_string(st),
                  sps_context_error(p->ctx));
}

static inline void must_converge(problem *p, const char *what)
{
    solve_ok(p);
    ck_assert_msg(p->result.stop == SPS_STOP_CONVERGED,
                  "%s, %s, k = %d: %s, worst %g after %d iterations",
                  p->opt.solver, what, p->k, sps_stop_string(p->result.stop),
                  problem_worst(p), p->result.iterations);
    ck_assert_int_eq(p->result.columns_converged, p->k);
    ck_assert_msg(problem_worst(p) <= p->opt.rtol * (1 + 1e-6),
                  "%s, %s, k = %d says converged at %g", p->opt.solver, what,
                  p->k, problem_worst(p));
}

static inline void must_be_honest(problem *p, const char *what)
{
    solve_ok(p);
    ck_assert_msg(problem_honest(p), "%s lies on %s: %d columns claimed, "
                  "worst %g", p->opt.solver, what, p->result.columns_converged,
                  problem_worst(p));
    ck_assert_msg(problem_worst(p) <= 1 + 1e-9,
                  "%s, %s: the best iterate is lost: %g", p->opt.solver, what,
                  problem_worst(p));
    for (int64_t i = 0; i < p->A->nrow * p->k; i++)
        ck_assert(isfinite(p->x[i]));
}

/* Runs a suite in which each test gets a context and must destroy
 * everything. */
static inline int methods_run(const char *name, const runner_test *tests,
                              size_t count)
{
    Suite *suite = suite_create(name);

    for (size_t i = 0; i < count; i++) {
        TCase *one = runner_case(suite, tests[i].name);

        tcase_add_checked_fixture(one, open_context, close_context);
        tcase_add_test(one, *tests[i].test);
    }
    return runner_run(suite);
}

#define METHODS_MAIN(name, tests)                                              \
    int main(void)                                                             \
    {                                                                          \
        return methods_run(name, tests, sizeof tests / sizeof *tests);         \
    }

#endif
