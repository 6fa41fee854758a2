/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - the host threads of a context: the calling thread, and workers that
 * are started when there is first enough work for them and sleep between
 * parallel regions. */
#ifndef SPS_TEAM_H
#define SPS_TEAM_H

#include "core/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does items first .. last-1 of the work described by data. */
typedef void spsi_team_fn(void *data, int64_t first, int64_t last);

/* Runs fn for items 0 .. count-1 in ranges, in parallel if there is enough
 * work; returns when all are done.  Ranges and their assignment to threads
 * vary: a result may depend on its item only, so partial sums are formed for
 * each item and added in order afterwards.  fn must not fail, and must not use
 * the memory, errors or notes of the context.
 *
 * `ns` is the estimated time of all items on one core, in nanoseconds.  One
 * thread takes part for each SPS_TEAM_SHARE nanoseconds of it; below two shares
 * the calling thread does all the work.  A nested call runs in the calling
 * thread only.
 *
 * A worker that still polls (SPS_TEAM_WATCH) responds at once; waking one that
 * sleeps needs a system call, 4 to 5 microseconds for a region of two threads
 * (measured on two cores). */
#define SPS_TEAM_SHARE 25000
#define SPS_TEAM_WATCH 20e-6 /* seconds for which an idle worker polls, if no
                                other process needs its core */
void spsi_team_run(sps_context *ctx, int64_t count, int64_t ns,
                   spsi_team_fn *fn, void *data);

/* Returns the number of the thread that runs fn, 0 .. ctx->threads-1; that of
 * the thread that called spsi_team_run is 0, also if it is a worker within
 * another region.  So two workers of a team that make nested calls are both 0:
 * work areas that are chosen by the number belong to one call. */
int spsi_team_self(void);

/* *sum += part and, in the function below, *least = min(*least, part),
 * atomically; for use in fn.  Only for integers, whose results do not depend on
 * the order. */
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

/* Creates the team for ctx->threads threads, without workers yet; ENOMEM. */
sps_status spsi_team_open(sps_context *ctx);
void spsi_team_close(sps_context *ctx);

/* Returns the number of cores for this process, 1 to SPS_TEAM_MOST: by its
 * affinity mask, by the quotas of its control groups (versions 1 and 2, read
 * below the folder `root`, which is "" for the machine itself), and by
 * OMP_NUM_THREADS (`limit`, or NULL if it is not set). */
#define SPS_TEAM_MOST 4096
int spsi_cores(const char *root, const char *limit);

#ifdef __cplusplus
}
#endif
#endif
