/* SPDX-License-Identifier: BSD-3-Clause */
/* pencil.h - an eigenproblem A x = lambda M x for tests: dense arrays, their
 * sparse forms, the solver, and LAPACK as the judge. */
#ifndef SPS_TEST_PENCIL_H
#define SPS_TEST_PENCIL_H

#include "spsolve.h"

typedef struct pencil {
    sps_context *ctx;
    int n, count;
    double *a, *m;            /* n x n; m NULL: the identity */
    double *all;              /* every eigenvalue, ascending, by LAPACK */
    double *x, *lambda;       /* n x count, row-major (guess, result); count */
    int constraint;           /* > 0: X is kept from this unit vector */
    int nulls;                /* zeros left out: opt.nullspace, or */
    double *null;             /* n x nulls, row-major, null vectors; or NULL */
    int *unit;                /* n powers of two u: a, m are those of the judge
                                 times 2^(u_i + u_j); or NULL: 0 */
    sps_csr *A, *M;
    sps_operator *op, *mass;
    sps_precond *T;           /* the test's own, or NULL */
    sps_options opt;
    sps_eigen_result result;  /* its arrays are gone; these are copies: */
    double *residual, *bound;
    sps_stop *pair;
} pencil;

/* A context of one thread in the place under test, with this seed. */
sps_context *pencil_context(uint64_t seed);
sps_context *pencil_context_of(uint64_t seed, int threads);
/* Zero matrices, m only where generalised; solver lobpcg, rtol 1e-9.  In the
 * small set for sanitizers 6 iterations at most: all paths, no verdict. */
void pencil_open(pencil *p, sps_context *ctx, int n, int count,
                 bool generalised);
static inline double *pencil_a(pencil *p, int i, int j)
{
    return &p->a[(long)i * p->n + j];
}
/* a_ij = a_ji = value; the same of m. */
void pencil_set(pencil *p, int i, int j, double value);
void pencil_mass(pencil *p, int i, int j, double value);
/* B'B into a, or B'B + I into m; B of rows x n numbers about normal. */
void pencil_squares(pencil *p, uint64_t seed, int rows, bool mass);
/* Five-point differences on 26 x 25 points less 0.3: some eigenvalues are
 * below zero, and the lower end is dense.  With a low one hidden in one row
 * besides, which a few products with a random vector do not show. */
void pencil_sunken(pencil *p, bool hidden);
sps_status pencil_solve(pencil *p);
/* The eigenvalues wanted, in order: p->all or its end. */
double pencil_exact(const pencil *p, int i);
/* Whether all pairs have converged; unless this is the small set the test fails
 * when they have not. */
bool pencil_converged(const pencil *p);
/* Solves, and the test fails unless every pair has converged (see above), by its
 * residual in long double too, to the eigenvalues that LAPACK finds, within 1e-8
 * relative and the rounding of x'A x; where they differ by more, LAPACK on an
 * ill-conditioned pencil may be the one that is wrong, and inertia in long
 * double decides. */
void pencil_must_agree(pencil *p, const char *what);
/* The same, but pairs may be limited by rounding, where in long double they are;
 * and where norms let rounding forbid rtol, 1000 eps ||A|| ||x||, they may
 * stagnate, which is counted. */
void pencil_must_hold(pencil *p, const char *what);
/* How many pairs did, of how many. */
int pencil_stagnated(int *of);
/* Of a pencil solved: an eigenvalue lies within its bound of each lambda. */
void pencil_must_be_within_bounds(const pencil *p);
void pencil_close(pencil *p);

#endif
