/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_inner.c - creates the linear solvers within an eigensolver: for A -
 * sigma M, with a preconditioner as good as a factorisation where that is
 * possible, and for M.
 *
 * On the host, A - sigma M is factored by the factor module where that is
 * predicted to take at most SECONDS.  Without the module, its inverse is formed
 * densely where n is small, and elsewhere ilut drops next to nothing.  In two
 * dimensions, where factors have few operations for each entry, ilut is used
 * first: its triangular solves of blocks are faster than those of the module
 * (0.6 to 0.9 of the processor time in all), and its arithmetic, which is by
 * rows and not by blocks, does not matter. */
#include "core/comm.h"
#include "eigen_policy.h"

#include <math.h>

#include "core/deadline.h"
#include "driver/precond.h"
#include "operator/direct.h"

#define BACKWARD 1e-13   /* backward error of solves with A - sigma M */
#define ENTRIES 8e7      /* largest number of entries of L, and of U */
#define PLANE 3e8        /* largest number of entries where factors have little
                            fill (counted as if all rows were as long as the
                            longest) */

#define FEWEST 200       /* smallest number of rows for sparse direct factors */
#define SECONDS 60       /* largest predicted seconds of their computation */
#define FLOPS 128        /* operations for each entry of the factors above
                            which the module is used first: 40 to 80 on grids in
                            two dimensions, 170 to 750 in three */

static sps_status make_solver(sps_transform *t, const sps_options *o)
{
    return sps_solver_create(t->shifted, t->factors, t->space->width, o,
                             &t->solver);
}

/* Factors A - sigma M, and creates the solver.  Returns SPS_EUNFIT if that is
 * predicted to take too long or to have less than `least` operations for each
 * entry, or if a pivot is zero to rounding. */
static sps_status by_factors(sps_transform *t, double least,
                             const sps_options *o)
{
    sps_context *ctx = t->space->pencil->ctx;
    const double before = spsi_deadline_begin(ctx, t->max_seconds);
    sps_direct *d = NULL;
    sps_status st;

    SPS_TRY(spsi_direct_analyse(t->shifted,
                                spsi_direct_operations(ctx, SECONDS), &d));
    SPS_REQUIRE(ctx, spsi_direct_factor_seconds(d) <= SECONDS, SPS_EUNFIT,
                "factors of A - sigma M are predicted to take %.2g s; at most "
                "%d s are allowed",
                spsi_direct_factor_seconds(d), SECONDS);
    SPS_REQUIRE(ctx, d->facts.flops >= least * (double)d->facts.entries,
                SPS_EUNFIT, "factors of A - sigma M have few operations "
                "per entry: ilut is faster");
    spsi_direct_keep(d);
    d = NULL;
    SPS_TRY(sps_precond_create(t->shifted, t->space->width, o, &t->factors));
    SPS_REQUIRE(ctx, !t->factors->zero_pivots, SPS_EUNFIT, "A - sigma M has "
                "pivots that are zero up to rounding: sigma may be an "
                "eigenvalue");
    SPS_TRY(make_solver(t, o));
fail:
    spsi_deadline_end(ctx, before);
    spsi_direct_destroy(&d);
    if (st != SPS_OK) sps_precond_destroy(&t->factors);
    return st;
}

static bool can_factor(const sps_transform *t)
{
    const sps_context *ctx = t->space->pencil->ctx;

    return t->direct && t->space->pencil->n >= FEWEST &&
           ctx->backend->place == SPS_HOST && !spsi_comm_many(ctx) &&
           spsi_direct_possible();
}

sps_status spsi_eigen_invert(sps_transform *t, bool any)
{
    const sps_pencil *p = t->space->pencil;
    bool sparse = spsi_eigen_fills_little(t->space->deflation);
    bool direct = can_factor(t);
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
    o.precond = "factor";
    if (direct) st = by_factors(t, FLOPS, &o);
    o.precond = "dense";
    if (st != SPS_OK && !direct && p->n <= SPS_EIGEN_DENSE) st = make_solver(t, &o);
    o.precond = "ilut";
    o.droptol = 1e-12;
    o.fill = fmin(1e6, fmax(10, (sparse ? PLANE : ENTRIES) /
                                    (double)(t->matrix->nnz + 1)));
    if (st != SPS_OK && factors) st = make_solver(t, &o);
    o.precond = "factor";
    if (st != SPS_OK && direct) st = by_factors(t, 0, &o);
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
