/* SPDX-License-Identifier: BSD-3-Clause */
/* ilu0.c - Z = U^-1 L^-1 R, where L U are the incomplete factors of A in its
 * own pattern (Meijerink and van der Vorst 1977), shifted where a pivot
 * vanishes (incomplete.c). */
#include "solvers/precond/incomplete.h"
#include "solvers/precond/schwarz.h"

static sps_status build(sps_precond *M, const sps_options *opt)
{
    spsi_incomplete_unordered(M, opt);
    return spsi_incomplete_build(M, false);
}

SPS_DEFINE(sps_precond_type, spsi_precond_ilu0) = {
    .name = "ilu0", .floats = true, .needs = SPS_NEEDS_CSR,
    .ranks = SPS_RANKS_OWN, .over = spsi_schwarz_over,
    .size = sizeof(struct incomplete),
    .build = build, .update = spsi_incomplete_update,
    .apply = spsi_incomplete_apply, .destroy = spsi_incomplete_destroy,
};
