/* SPDX-License-Identifier: BSD-3-Clause */
/* pencil.h - an eigenproblem A x = lambda M x for tests: dense arrays, their
 * sparse forms, the solver, and LAPACK as the reference. */
#ifndef SPS_TEST_PENCIL_H
#define SPS_TEST_PENCIL_H

#include "spsolve.h"

typedef struct pencil {
    sps_context *ctx;
    int n, count;
    double *a, *m;            /* n x n; m NULL: the identity */
    double *all;              /* all eigenvalues, ascending, by LAPACK */
    double *x, *lambda;       /* n x count, row-major (guess, result); count */
    int constraint;           /* > 0: X is kept orthogonal to this unit
                                 vector */
    int nulls;                /* number of zero eigenvalues deflated, by
                                 opt.nullspace or by */
    double *null;             /* n x nulls, row-major, the null vectors; or
                                 NULL */
    int *unit;                /* n powers u: the reference is computed from a, m
                                 scaled by 2^-(u_i + u_j); or NULL: 0 */
    sps_csr *A, *M;
    sps_operator *op, *mass;
    sps_precond *T;           /* set by the test, or NULL */
    sps_options opt;
    sps_eigen_result result;  /* its arrays have been freed; these are
                                 copies: */
    double *residual, *backward, *bound;
    sps_stop *pair;
} pencil;

/* A context with one thread on the device under test, with this seed. */
sps_context *pencil_context(uint64_t seed);
sps_context *pencil_context_of(uint64_t seed, int threads);
/* Zero matrices, m only for a generalised problem; solver lobpcg, rtol 1e-9.
 * In the small set for sanitizers at most 6 iterations: all paths run,
 * convergence is not checked. */
void pencil_open(pencil *p, sps_context *ctx, int n, int count,
                 bool generalised);
static inline double *pencil_a(pencil *p, int i, int j)
{
    return &p->a[(long)i * p->n + j];
}
/* a_ij = a_ji = value; the same of m. */
void pencil_set(pencil *p, int i, int j, double value);
void pencil_mass(pencil *p, int i, int j, double value);
/* B'B into a, or B'B + I into m; B is rows x n with approximately normal
 * entries. */
void pencil_squares(pencil *p, uint64_t seed, int rows, bool mass);
/* Five-point differences on 26 x 25 points minus 0.3: some eigenvalues are
 * negative, and the lower end of the spectrum is dense. hidden: with an
 * additional low eigenvalue confined to one row, which a few products with a
 * random vector do not reveal. */
void pencil_sunken(pencil *p, bool hidden);
sps_status pencil_solve(pencil *p);
/* The i-th of the wanted eigenvalues in order, taken from p->all. */
double pencil_exact(const pencil *p, int i);
/* Whether all pairs have converged; if not, the test fails, except in the small
 * set. */
bool pencil_converged(const pencil *p);
/* Solves.  The test fails unless every pair has converged (see above), also by
 * its residual in long double, to the eigenvalues that LAPACK finds, within
 * 1e-8 relative and the rounding of x'A x.  Where they differ by more, LAPACK
 * may be inaccurate on an ill-conditioned pencil, and the inertia in long
 * double decides. */
void pencil_must_agree(pencil *p, const char *what);
/* The same, but pairs may be limited by rounding where the long double residual
 * confirms it; and where the a priori rounding bound, 1000 eps ||A|| ||x||,
 * exceeds rtol, they may stagnate, which is counted. */
void pencil_must_hold(pencil *p, const char *what);
/* How many pairs stagnated, out of *of. */
int pencil_stagnated(int *of);
/* For a solved pencil: whether an eigenvalue lies within the error bound of
 * lambda_i. */
bool pencil_bounded(pencil *p, int i);
void pencil_must_be_within_bounds(pencil *p);
void pencil_close(pencil *p);

#endif
