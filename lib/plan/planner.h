/* SPDX-License-Identifier: BSD-3-Clause */
/* planner.h - chooses a kernel by predicted time, by measured time or by name.
 * A bid is a kernel that fits a problem, with its predicted time. */
#ifndef SPS_PLANNER_H
#define SPS_PLANNER_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_bid {
    const sps_kernel *kernel;
    const char *why_not;     /* reason of a rejection, or NULL for a bid */
    double predicted;        /* seconds */
    double measured;         /* seconds, or 0 if it was not timed */
    double planning;         /* seconds to make its plan, or 0 if it was not
                                made */
    bool chosen, remembered; /* remembered: the choice came from wisdom */
    const sps_plan *plan;    /* if chosen: its plan, whose text follows new
                                values */
    char detail[48];         /* otherwise: the text of a plan that was timed */
} sps_bid;

typedef struct sps_bids {
    sps_opcode op;
    int k;
    int count;
    sps_bid *bid;            /* cheapest first, rejections last */
} sps_bids;

/* Chooses a kernel and makes its plan.  `name` is "auto", "measure" or the name
 * of a kernel: EUNFIT with the reason if that does not fit, EINVAL with a
 * suggestion if it is unknown; the name of a kernel for another operation is
 * ignored.  `wisdom` is a file or NULL.  *bids becomes the table, which
 * spsi_bids_clear frees. */
sps_status spsi_planner_choose(sps_context *ctx, const sps_problem *p,
                               const char *name, const char *wisdom,
                               sps_bids *bids, sps_plan **plan_p);
/* Makes the plan of a bid and records its time. */
sps_status spsi_planner_take(sps_context *ctx, const sps_problem *p,
                             sps_bid *bid, sps_plan **plan_p);
void spsi_bids_clear(sps_context *ctx, sps_bids *bids);
/* Prints the table; returns its full length. */
size_t spsi_bids_print(const sps_bids *bids, char *text, size_t size);
/* Returns whether the kernel supports the types of the problem and fits; if
 * not, *why_not is a static text. */
bool spsi_kernel_fits(const sps_kernel *kernel, const sps_problem *p,
                      const char **why_not);
/* kernel_list.c: returns kernel number i of the backend of ctx, and the name of
 * kernel number i of `place`; NULL past the last.  Without ctx these are the
 * names of the CUDA module as it would be built, whether it is present or
 * not. */
const sps_kernel *spsi_registry_kernel(const sps_context *ctx, int i);
const char *spsi_kernel_name(const sps_context *ctx, sps_place place, int i);
/* Makes the plan of a given kernel (for tests, verification and benchmarks). */
sps_status spsi_planner_pin(sps_context *ctx, const sps_problem *p,
                            const sps_kernel *kernel, sps_plan **plan_p);
void spsi_plan_destroy(sps_plan **plan_p);

/* wisdom.c: measured choices, one line each in a text file: op k types place
 * device hash version kernel microseconds.  spsi_wisdom_find returns the kernel
 * stored for problem p, or NULL. */
const char *spsi_wisdom_find(sps_context *ctx, const char *file,
                             const sps_problem *p, double *seconds);
sps_status spsi_wisdom_add(sps_context *ctx, const char *file,
                           const sps_problem *p, const char *kernel,
                           double seconds);
void spsi_wisdom_clear(sps_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
