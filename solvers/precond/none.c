/* SPDX-License-Identifier: BSD-3-Clause */
/* none.c - the identity as a preconditioner, so that "none" is a registered
 * name. */
#include "driver/precond.h"

static sps_status build(sps_precond *M, const sps_options *opt)
{
    (void)opt;
    M->identity = true;
    return SPS_OK;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    (void)M;
    return spsi_copy(R, Z);
}

static int64_t room(int width)
{
    (void)width;
    return 0;
}

SPS_DEFINE(sps_precond_type, spsi_precond_none) = {
    .name = "none", .symmetric = true, .ranks = SPS_RANKS_SAME,
    .size = sizeof(sps_precond), .build = build, .apply = apply, .room = room,
};
