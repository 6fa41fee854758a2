/* SPDX-License-Identifier: BSD-3-Clause */
/* planner.h - asks for bids, chooses by estimate or measurement, pins. */
#ifndef SPS_PLANNER_H
#define SPS_PLANNER_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_bid {
    const sps_kernel *kernel;
    const char *why_not;     /* NULL: it bids */
    double predicted;        /* seconds */
    double measured;         /* seconds, 0: not timed */
    double planning;         /* seconds that its plan took, 0: none was made */
    bool chosen, remembered; /* remembered: the choice came from wisdom */
    char detail[48];
} sps_bid;

typedef struct sps_bids {
    sps_opcode op;
    int k;
    int count;
    sps_bid *bid;            /* sorted, cheapest first, refusals last */
} sps_bids;

/* Chooses and plans.  name: "auto", "measure" or a kernel's name (EUNFIT with
 * the reason when it does not fit, EINVAL with a suggestion when unknown; a
 * name of another opcode is ignored).  wisdom: file or NULL.  *bids is filled
 * for the table, freed by spsi_bids_clear. */
sps_status spsi_planner_choose(sps_context *ctx, const sps_problem *p,
                               const char *name, const char *wisdom,
                               sps_bids *bids, sps_plan **plan_p);
/* Makes the plan of a bid and notes how long that takes. */
sps_status spsi_planner_take(sps_context *ctx, const sps_problem *p,
                             sps_bid *bid, sps_plan **plan_p);
void spsi_bids_clear(sps_context *ctx, sps_bids *bids);
/* The table as text; returns its whole length. */
size_t spsi_bids_print(const sps_bids *bids, char *text, size_t size);
/* Whether the kernel takes the types of the problem and fits; *why_not is a
 * static text when not. */
bool spsi_kernel_fits(const sps_kernel *kernel, const sps_problem *p,
                      const char **why_not);
/* Bytes/s of the place that predictions assume (sps_problem.bandwidth). */
double spsi_bandwidth(const sps_context *ctx);
/* Seconds that an iteration loses when the host waits for the place, works on
 * small matrices and queues what follows. */
double spsi_wait(const sps_context *ctx);
/* Plans one named kernel, no bidding (tests, verification, benchmarks). */
sps_status spsi_planner_pin(sps_context *ctx, const sps_problem *p,
                            const sps_kernel *kernel, sps_plan **plan_p);
void spsi_plan_destroy(sps_plan **plan_p);

/* Of shape, offsets and columns: what f->hash is where it was asked for, else
 * 0 (features.c). */
uint64_t spsi_features_hash(const sps_context *ctx, const sps_csr *A);

/* wisdom.c: measured winners, one line each in a text file:
 *   op k-class dtype place device hash version kernel microseconds */
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
