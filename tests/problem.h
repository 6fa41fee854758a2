/* SPDX-License-Identifier: BSD-3-Clause */
/* problem.h - a linear system for tests: matrix, operator, right-hand sides,
 * solution, and the judge who recomputes residuals in long double. */
#ifndef SPS_TEST_PROBLEM_H
#define SPS_TEST_PROBLEM_H

#include "spsolve.h"

typedef struct problem {
    sps_context *ctx;
    sps_csr *A;
    sps_operator *op;
    sps_precond *M;           /* the test's own, which destroys it; or NULL */
    int k;
    double *b, *x;            /* n x k, row-major, ld k */
    sps_options opt;
    sps_result result;
    double *residual;         /* k: ||b - A x|| / ||b||, long double inside */
} problem;

/* Takes over A (of the zoo, zoo_free).  b is random, x zero, rtol 1e-10. */
void problem_open(problem *p, sps_context *ctx, sps_csr *A, int k);
/* The Laplacian of a square grid + shift I: condition about 8 / shift. */
void problem_open_grid(problem *p, sps_context *ctx, int64_t n, int k,
                       double shift);
/* Solves with p->opt; fills result and residual.  Returns the status. */
sps_status problem_solve(problem *p);
/* Largest residual, NaN counts as infinite. */
double problem_worst(const problem *p);
void problem_close(problem *p);
/* Whether each column that claims convergence deserves it: the recomputed
 * residual is below its threshold, rounding of the judge aside. */
bool problem_honest(const problem *p);

#endif
