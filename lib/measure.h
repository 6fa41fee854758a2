/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.h - times the most promising bids. */
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

#ifdef __cplusplus
}
#endif
#endif
