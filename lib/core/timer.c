/* SPDX-License-Identifier: BSD-3-Clause */
/* timer.c - the clock, and seconds by phase.  An asynchronous backend measures
 * its phases itself.  The host's clock is used for a backend without functions
 * for that, whose work is done when a call returns, and for the phase of small
 * matrices, on which the host always works. */
#include <string.h>
#include <time.h>

#include "core/backend.h"
#include "core/timer.h"

double spsi_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool measured_there(const sps_context *ctx, sps_phase phase)
{
    return ctx->backend->phase_begin && phase != SPS_PHASE_SMALL;
}

void spsi_phase_begin(sps_context *ctx, sps_phase phase)
{
    if (measured_there(ctx, phase))
        ctx->backend->phase_begin(ctx, phase);
    else
        ctx->phase_start = spsi_now();
}

void spsi_phase_end(sps_context *ctx, sps_phase phase)
{
    if (measured_there(ctx, phase))
        ctx->backend->phase_end(ctx, phase);
    else
        ctx->phase_seconds[phase] += spsi_now() - ctx->phase_start;
}

void spsi_phase_reset(sps_context *ctx)
{
    memset(ctx->phase_seconds, 0, sizeof ctx->phase_seconds);
}
