/* SPDX-License-Identifier: BSD-3-Clause */
/* node_plan.h - node blocks (kernels/formats/node_blocks.h) in device memory,
 * built on the device, with the same contents as on the host. */
#ifndef SPS_CUDA_NODE_PLAN_H
#define SPS_CUDA_NODE_PLAN_H

#include "formats/node_blocks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Builds the blocks of plan->A, whose rows are sorted.  n is zeroed on entry;
 * its arrays belong to the plan.  EUNFIT if they would store more than five
 * values per entry.  Only for planning: allocates memory and synchronises. */
sps_status spsi_cuda_node_plan(sps_plan *plan, int b, sps_node_blocks *n);
/* Updates the values from a csr of the same pattern; one pass, without
 * synchronisation. */
sps_status spsi_cuda_node_values(sps_context *ctx, const sps_csr_local *A,
                                 const sps_node_blocks *n);

#ifdef __cplusplus
}
#endif
#endif
