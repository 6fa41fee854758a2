/* SPDX-License-Identifier: BSD-3-Clause */
/* ic0.c - Z = L'^-1 D^-1 L^-1 R, where L D L' are the incomplete Cholesky
 * factors of a symmetric A in its own pattern and D is positive (Meijerink and
 * van der Vorst 1977).  They are computed by the elimination of ilu0, of which
 * only L and D are used, so that M is exactly symmetric.  incomplete.c
 * describes the diagonal shift. */
#include "solvers/precond/incomplete.h"
#include "solvers/precond/schwarz.h"

static sps_status build(sps_precond *M, const sps_options *opt)
{
    const bool claimed = M->A->props & (SPS_SYMMETRIC | SPS_SPD);
    sps_status st;
    bool symmetric = true;
    double difference = 0;

    spsi_incomplete_unordered(M, opt);
    if (!claimed) SPS_TRY(spsi_operator_symmetric(M->A, &symmetric, NULL));
    if (!symmetric)
        SPS_TRY(spsi_operator_symmetric(M->A, &symmetric, &difference));
    SPS_REQUIRE(M->ctx, symmetric, SPS_EUNFIT,
                "ic0 needs a symmetric matrix; this one differs from its "
                "transpose by up to %.3g: use ilu0", difference);
    SPS_TRY(spsi_incomplete_build(M, true));
fail:
    return st;
}

SPS_DEFINE(sps_precond_type, spsi_precond_ic0) = {
    .name = "ic0", .floats = true, .needs = SPS_NEEDS_CSR | SPS_NEEDS_SYMMETRIC,
    .symmetric = true, .size = sizeof(struct incomplete),
    .ranks = SPS_RANKS_OWN, .over = spsi_schwarz_over,
    .build = build, .update = spsi_incomplete_update,
    .apply = spsi_incomplete_apply, .destroy = spsi_incomplete_destroy,
};
