/* SPDX-License-Identifier: BSD-3-Clause */
/* wire_device.h - what several processes with GPUs need from the backend: the
 * wire (core/comm.h), and copies of rows by number (backend.h, take_rows and
 * put_rows). */
#ifndef SPS_CUDA_WIRE_DEVICE_H
#define SPS_CUDA_WIRE_DEVICE_H

#include "core/comm.h"
#include "cuda/base/state.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const sps_wire spsi_wire_cuda;
void spsi_cuda_wire_close(sps_context *ctx);

/* Row i of Y becomes row index[i] of X (take), or row index[i] of Y becomes row
 * i of X (put); defined in block/rows_device.cu. */
sps_status spsi_cuda_take_rows(const sps_block *X, const int32_t *index,
                               sps_block *Y);
sps_status spsi_cuda_put_rows(const sps_block *X, const int32_t *index,
                              sps_block *Y);
/* edge.cu: see sps_wire. */
sps_status spsi_cuda_add_edge(const sps_edge *e, double alpha,
                              const sps_block *D, const sps_block *X,
                              const sps_block *operand, sps_block *Y);

#ifdef __cplusplus
}
#endif

#endif
