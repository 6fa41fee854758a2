/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - times plans, and the most promising bids. */
#ifndef SPS_MEASURE_H
#define SPS_MEASURE_H

#include "plan/planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Times the three bids of lowest predicted cost and the best one of the vendor;
 * fills in the measured times.  *best: number of the fastest, its plan in
 * *plan_p; -1: no plan could be made. */
sps_status spsi_measure_bids(sps_context *ctx, const sps_problem *p,
                             sps_bids *bids, sps_plan **plan_p, int *best);
/* *seconds of a product by this plan of A. */
sps_status spsi_measure_plan(sps_context *ctx, const sps_csr *A,
                             const sps_plan *plan, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
