/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_policy.c - the decisions of an eigensolver that name methods or
 * preconditioners: which method auto uses, and the table of functions for the
 * other decisions (eigen_policy.h). */
#include "eigen_policy.h"

#include <string.h>

extern const sps_eigen_type spsi_eigen_lobpcg, spsi_eigen_chebyshev_filter;

/* Returns whether pairs inside the spectrum of A are to be found by products
 * only.  This is so if factors of A - sigma would be large, or slow on a GPU,
 * and all rows of A have about the same scale, since polynomials of a stiff A
 * hardly separate its small eigenvalues. */
static bool folds(const sps_pencil *p, const sps_selection *wanted)
{
    bool host = p->ctx->backend->place == SPS_HOST;

    if (!wanted->nearest || p->M || !p->A->A) return false;
    return p->n > (host ? SPS_EIGEN_FACTORS : SPS_EIGEN_DENSE) &&
           spsi_pencil_uniform(p);
}

/* Returns whether a polynomial filter is used because there is no
 * preconditioner. */
static bool filters(const sps_eigen *e)
{
    bool none = !e->wanted.nearest && !strcmp(e->opt.precond, "none");

    return !e->pencil.M && !e->precond.T && (!e->pencil.A->A || none);
}

static const sps_eigen_type *choose(const sps_eigen *e)
{
    const sps_eigen_type *dense =
        spsi_eigen_dense_type(&e->pencil, e->count, e->opt.max_seconds);

    if (dense) return dense;
    if (filters(e)) {
        spsi_note(e->ctx, "solver auto: chebyshev_filter, since %sthere "
                  "is no preconditioner",
                  e->pencil.A->A ? "" : e->pencil.A->ranks
                      ? "A is spread over processes and "
                      : "A is a callback and ");
        return &spsi_eigen_chebyshev_filter;
    }
    if (!folds(&e->pencil, &e->wanted)) return &spsi_eigen_lobpcg;
    spsi_note(e->ctx, "solver auto: chebyshev_filter, since factors of "
              "A - sigma would be large");
    return &spsi_eigen_chebyshev_filter;
}

SPS_DEFINE(sps_eigen_policy, spsi_eigen_eigen_policy) = {
    .choose = choose,
    .take_precond = spsi_eigen_take_precond,
    .move_precond = spsi_eigen_move_precond,
    .invert = spsi_eigen_invert,
    .solve_mass = spsi_eigen_solve_mass,
    .count_reserve = spsi_eigen_count_reserve,
    .count = spsi_eigen_count,
};
