/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - times plans, and the most promising bids. */
#ifndef SPS_MEASURE_H
#define SPS_MEASURE_H

#include "planner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Times the three cheapest bidders and the cheapest one of the vendor; fills
 * in what was measured.  *best: number of the fastest, its plan in *plan_p;
 * -1: none could be planned. */
sps_status spsi_measure_bids(sps_context *ctx, const sps_problem *p,
                             sps_bids *bids, sps_plan **plan_p, int *best);
/* *seconds of a product by this plan, which is one of A. */
sps_status spsi_measure_plan(sps_context *ctx, const sps_csr *A,
                             const sps_plan *plan, double *seconds);

#ifdef __cplusplus
}
#endif
#endif
