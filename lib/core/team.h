/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - the host threads of a context: the caller, and workers that are
 * started when work first pays for them and sleep between regions. */
#ifndef SPS_TEAM_H
#define SPS_TEAM_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does items first .. last-1 of the work described by data. */
typedef void spsi_team_fn(void *data, int64_t first, int64_t last);

/* Runs fn for items 0 .. count-1 in ranges, in parallel where that pays;
 * returns when all are done.  Ranges and their assignment to threads are not
 * fixed: a result must depend on the item only, so partial sums are formed by
 * item and added in order afterwards.  fn must not fail, nor use the context's
 * memory, errors or notes.
 *
 * ns: the estimated time of all items on one core, in nanoseconds.  One thread
 * takes part for each SPS_TEAM_SHARE of it; below two shares the caller does
 * all of the work.  A nested call runs in the calling thread alone.
 *
 * A worker that still polls (SPS_TEAM_WATCH) responds at once; one that sleeps
 * costs a system call to wake, 4 to 5 microseconds for a region of two threads
 * (measured on two cores). */
#define SPS_TEAM_SHARE 25000
#define SPS_TEAM_WATCH 20e-6 /* seconds, and only while no other process
                                needs the core */
void spsi_team_run(sps_context *ctx, int64_t count, int64_t ns,
                   spsi_team_fn *fn, void *data);

/* Number of the thread that runs fn: 0 .. ctx->threads-1, the caller is 0. */
int spsi_team_self(void);

/* *sum += part and, below, *least = min(*least, part), atomically, to be called
 * by fn.  For integers, whose results do not depend on the order. */
static inline void spsi_team_add(int64_t *sum, int64_t part)
{
    __atomic_fetch_add(sum, part, __ATOMIC_RELAXED);
}

static inline void spsi_team_least(int64_t *least, int64_t part)
{
    int64_t old = __atomic_load_n(least, __ATOMIC_RELAXED);

    while (part < old &&
           !__atomic_compare_exchange_n(least, &old, part, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Creates the team for ctx->threads, without workers yet; ENOMEM. */
sps_status spsi_team_open(sps_context *ctx);
void spsi_team_close(sps_context *ctx);

/* Number of cores for this process: by its affinity mask, by the quotas of its
 * control groups (version 1 and 2, read below root, "" for the machine itself),
 * and by OMP_NUM_THREADS (limit; NULL: not set).  1 to SPS_TEAM_MOST. */
#define SPS_TEAM_MOST 4096
int spsi_cores(const char *root, const char *limit);

#ifdef __cplusplus
}
#endif
#endif
