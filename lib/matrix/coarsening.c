/* SPDX-License-Identifier: BSD-3-Clause */
/* coarsening.c - access to the backend's functions for the set-up of
 * multigrid. */
#include "core/backend.h"
#include "matrix/coarsening.h"

const sps_coarsening *spsi_coarsening(const sps_context *ctx)
{
    return ctx->backend->coarsening;
}
