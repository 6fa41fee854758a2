/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_inner.c - creates the linear solvers within an eigensolver: for A -
 * sigma M, with a preconditioner as good as a factorisation where that is
 * possible, and for M. */
#include "eigen_policy.h"

#include <math.h>

#define BACKWARD 1e-13   /* backward error of solves with A - sigma M */
#define ENTRIES 8e7      /* largest number of entries of L, and of U */
#define PLANE 3e8        /* the same where factors have little fill (counted as
                            if all rows were as long as the longest) */

static sps_status make_solver(sps_transform *t, const sps_options *o)
{
    return sps_solver_create(t->shifted, NULL, t->space->width, o, &t->solver);
}

sps_status spsi_eigen_invert(sps_transform *t, bool any)
{
    const sps_pencil *p = t->space->pencil;
    bool sparse = spsi_eigen_fills_little(t->space->deflation);
    bool factors = p->n <= SPS_EIGEN_FACTORS || sparse;
    sps_status st = SPS_EUNFIT;
    sps_options o;

    sps_options_default(&o);
    o.norm = SPS_NORM_BACKWARD;
    o.rtol = BACKWARD;
    o.nullspace = "none";
    o.max_iterations = 1000;
    o.max_seconds = t->max_seconds;
    o.solver = "gmres";
    o.restart = 10;
    o.precond = "dense";
    if (p->n <= SPS_EIGEN_DENSE) st = make_solver(t, &o);
    o.precond = "ilut";
    o.droptol = 1e-12;
    o.fill = fmin(1e6, fmax(10, (sparse ? PLANE : ENTRIES) /
                                    (double)(t->matrix->nnz + 1)));
    if (st != SPS_OK && factors) st = make_solver(t, &o);
    o.solver = o.precond = "auto";
    if (st != SPS_OK && (any || !factors)) st = make_solver(t, &o);
    return st;
}

sps_status spsi_eigen_solve_mass(const sps_operator *M, int columns,
                                 sps_solver **s_p)
{
    sps_options o;

    sps_options_default(&o);
    o.solver = "cg";
    o.precond = M->A ? "jacobi" : "none";
    o.nullspace = "none";
    o.rtol = 1e-6;
    o.max_iterations = 3000;
    return sps_solver_create(M, NULL, columns, &o, s_p);
}
