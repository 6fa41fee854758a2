/* SPDX-License-Identifier: BSD-3-Clause */
/* leads_device.h - the distance between two runs of rows that share columns, as
 * two lines of a grid do, chosen from samples in device memory. */
#ifndef SPS_CUDA_LEADS_DEVICE_H
#define SPS_CUDA_LEADS_DEVICE_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *lead becomes the distance for windows of rows
 * (kernels/formats/row_windows.h), or for block rows of b rows (node_blocks.h).
 * Complete on return. */
sps_status spsi_cuda_window_lead(sps_context *ctx, const sps_csr_local *A,
                                 int32_t *lead);
sps_status spsi_cuda_node_lead(sps_context *ctx, const sps_csr_local *A, int b,
                               int64_t *lead);

#ifdef __cplusplus
}
#endif
#endif
