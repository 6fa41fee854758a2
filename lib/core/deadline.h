/* SPDX-License-Identifier: BSD-3-Clause */
/* deadline.h - the time limit of a set-up: long loops check the clock after
 * each part of their work, and give up after the deadline. */
#ifndef SPS_DEADLINE_H
#define SPS_DEADLINE_H

#include "core/context.h"
#include "core/team.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the deadline to `seconds` from now, unless seconds is 0 or an earlier
 * deadline is set.  Returns the previous deadline, to which
 * spsi_deadline_end(ctx, before) resets it. */
double spsi_deadline_begin(sps_context *ctx, double seconds);
void spsi_deadline_end(sps_context *ctx, double before);

/* Returns whether the deadline has passed or sps_cancel was called.  Several
 * processes use the clock and flag that they have agreed on (comm.h), which
 * change at sums only. */
bool spsi_expired(const sps_context *ctx);

/* Returns SPS_EUNFIT if spsi_expired; `what` names the unfinished work in the
 * error text. */
sps_status spsi_check_deadline(sps_context *ctx, const char *what);

/* Ends work that spsi_comm_apart has begun, as spsi_comm_back does, with the
 * status `st` so far.  A process that was interrupted or out of time, by its
 * own flag and clock, may be the only one: then all get EUNFIT, and
 * spsi_expired is true on all.  To be called before the deadline is reset. */
sps_status spsi_rejoin(sps_context *ctx, sps_comm *of, sps_status st);

/* Runs fn for items 0 .. count-1 by several calls of spsi_team_run, each of
 * about 0.1 s on one core by the estimate `ns`, with spsi_check_deadline after
 * each.  If that returns SPS_EUNFIT, the remaining items are not done. */
#define SPS_DEADLINE_PIECE 100000000   /* ns */
sps_status spsi_team_run_in_time(sps_context *ctx, int64_t count, int64_t ns,
                                 spsi_team_fn *fn, void *data,
                                 const char *what);

#ifdef __cplusplus
}
#endif
#endif
