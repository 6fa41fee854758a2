/* SPDX-License-Identifier: BSD-3-Clause */
/* coarsening.c - the stages of multigrid's set-up that a backend has. */
#include "core/backend.h"
#include "matrix/coarsening.h"

const sps_coarsening *spsi_coarsening(const sps_context *ctx)
{
    return ctx->backend->coarsening;
}
