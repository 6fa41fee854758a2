/* SPDX-License-Identifier: BSD-3-Clause */
/* problem.h - a linear system for tests: matrix, operator, right-hand sides,
 * solution, and true residuals recomputed by exact.h. */
#ifndef SPS_TEST_PROBLEM_H
#define SPS_TEST_PROBLEM_H

#include "spsolve.h"

typedef struct problem {
    sps_context *ctx;
    sps_csr *A;
    sps_operator *op;
    sps_precond *M;           /* set by the test, which destroys it; or NULL */
    int k;
    double *b, *x;            /* n x k, row-major, ld k */
    sps_options opt;
    sps_result result;
    double *residual;         /* k: ||b - A x|| / ||b||, computed by exact.h */
    double *stated, *backward;/* k: as the result reports them, and why each */
    sps_stop *column;         /*    column ended */
} problem;

/* Takes ownership of A (of the zoo, zoo_free). b is random, x zero, rtol
 * 1e-10. */
void problem_open(problem *p, sps_context *ctx, sps_csr *A, int k);
/* The Laplacian of a square grid + shift I: condition about 8 / shift. */
void problem_open_grid(problem *p, sps_context *ctx, int64_t n, int k,
                       double shift);
/* Solves with p->opt; fills result and residual.  Returns the status. */
sps_status problem_solve(problem *p);
/* Sets residual from x: ||b_j - A x_j|| / ||b_j||; ||A x|| itself where b =
 * 0. */
void problem_judge(problem *p);
/* The largest residual; NaN counts as infinite. */
double problem_worst(const problem *p);
void problem_close(problem *p);
/* Whether each column reported as converged has a recomputed residual below its
 * threshold, up to the error bound of the recomputation; of a method of least
 * squares that, or the residual of the normal equations. */
bool problem_honest(const problem *p);

#endif
