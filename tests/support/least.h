/* SPDX-License-Identifier: BSD-3-Clause */
/* least.h - what suites over all listed methods have to know of single ones:
 * which matrix they require.  Those for least squares call an inconsistent
 * system solved, need products with A', and take no preconditioner but the
 * scaling of columns. */
#ifndef SPS_TEST_LEAST_H
#define SPS_TEST_LEAST_H

#include <stdbool.h>
#include <string.h>

static inline bool solves_least_squares(const char *solver)
{
    return !strcmp(solver, "lsqr") || !strcmp(solver, "lsmr");
}

/* Methods that require a positive definite A. */
static inline bool wants_spd(const char *name)
{
    return !strcmp(name, "cg") || !strcmp(name, "block_cg") ||
           !strcmp(name, "refinement");
}

static inline bool wants_symmetry(const char *name)
{
    return wants_spd(name) || !strcmp(name, "minres");
}

static inline bool precond_serves(const char *solver, const char *precond)
{
    return !solves_least_squares(solver) || !strcmp(precond, "none") ||
           !strcmp(precond, "auto") || !strcmp(precond, "jacobi");
}

#endif
