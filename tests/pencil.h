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
    sps_csr *A, *M;
    sps_operator *op, *mass;
    sps_options opt;
    sps_eigen_result result;  /* its arrays are gone; these are copies: */
    double *residual, *bound;
    sps_stop *pair;
} pencil;

/* A context of one thread in the place under test, with this seed. */
sps_context *pencil_context(uint64_t seed);
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
sps_status pencil_solve(pencil *p);
/* The eigenvalues wanted, in order: p->all or its end. */
double pencil_exact(const pencil *p, int i);
/* Whether all pairs have converged; unless this is the small set the test fails
 * when they have not. */
bool pencil_converged(const pencil *p);
/* Solves, and the test fails unless every pair has converged (see above) to the
 * eigenvalues LAPACK finds, to 1e-8 relative or what rounding leaves. */
void pencil_must_agree(pencil *p, const char *what);
/* The worst of ||A x - lambda M x|| / (max(|lambda|, atol / rtol) ||M x||), in
 * long double. */
double pencil_worst(const pencil *p);
void pencil_close(pencil *p);

#endif
