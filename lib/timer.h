/* SPDX-License-Identifier: BSD-3-Clause */
/* timer.h - wall clock, and seconds by phase inside a solve. */
#ifndef SPS_TIMER_H
#define SPS_TIMER_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Monotonic seconds. */
double spsi_now(void);

/* Long loops of a set-up look here: SPS_EUNFIT, naming what was not finished,
 * when the deadline (of spsi_now(), 0: none) is over or the caller asked to
 * stop. */
sps_status spsi_in_time(sps_context *ctx, double deadline, const char *what);

/* Phases do not nest.  On a GPU the backend records events and adds them up
 * at the next synchronisation, so a phase costs no wait. */
void spsi_phase_begin(sps_context *ctx, sps_phase phase);
void spsi_phase_end(sps_context *ctx, sps_phase phase);
void spsi_phase_reset(sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
