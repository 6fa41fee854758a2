/* SPDX-License-Identifier: BSD-3-Clause */
/* timer.h - wall clock, and seconds by phase inside a solve. */
#ifndef SPS_TIMER_H
#define SPS_TIMER_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a monotonic time in seconds. */
double spsi_now(void);

/* Phases do not nest.  On a GPU the backend records events and evaluates them
 * at the next synchronisation, so that timing a phase does not synchronise. */
void spsi_phase_begin(sps_context *ctx, sps_phase phase);
void spsi_phase_end(sps_context *ctx, sps_phase phase);
void spsi_phase_reset(sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
