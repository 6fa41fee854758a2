/* SPDX-License-Identifier: BSD-3-Clause */
/* node_plan.h - node blocks (kernels/formats/node_blocks.h) in device memory,
 * made there, number for number what the host makes. */
#ifndef SPS_CUDA_NODE_PLAN_H
#define SPS_CUDA_NODE_PLAN_H

#include "kernels/formats/node_blocks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The blocks of a sorted device csr.  n: zeroed, to be given back by
 * spsi_cuda_node_clear even on failure.  EUNFIT when they would hold more than
 * five numbers for each entry.  For planning: takes memory and waits. */
sps_status spsi_cuda_node_plan(sps_context *ctx, const sps_csr_local *A, int b,
                               sps_node_blocks *n);
/* The values again, from a csr of the same pattern; one pass, no waiting. */
sps_status spsi_cuda_node_values(sps_context *ctx, const sps_csr_local *A,
                                 const sps_node_blocks *n);
void spsi_cuda_node_clear(sps_context *ctx, sps_node_blocks *n);

#ifdef __cplusplus
}
#endif
#endif
