/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - measures the time of a product: with one plan, and with the
 * kernels whose predicted times are lowest. */
#ifndef SPS_MEASURE_H
#define SPS_MEASURE_H

#include "plan/planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* kernel_list.c: returns the kernel of this name, or NULL if this build has
 * none. */
const sps_kernel *spsi_kernel_named(const sps_context *ctx, const char *name);

/* Times the three bids with the lowest predicted cost and the best one of
 * cuSPARSE, and fills in the measured times.  *best is the number of the
 * fastest and *plan_p its plan; *best = -1 if no plan could be made. */
sps_status spsi_measure_bids(sps_context *ctx, const sps_problem *p,
                             sps_bids *bids, sps_plan **plan_p, int *best);
/* Measures the seconds of one product with this plan of A. */
sps_status spsi_measure_plan(sps_context *ctx, const sps_csr *A,
                             const sps_plan *plan, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
