/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_device.cuh - what operations that make a csr in device memory share:
 * their work memory, and how the result is handed over. */
#ifndef SPS_CUDA_CSR_DEVICE_CUH
#define SPS_CUDA_CSR_DEVICE_CUH

#include "cuda/base/device.cuh"
#include "cuda/base/memory.cuh"

/* After st, the status of what made the arrays of *made (sizes and dtype set):
 * *C_p becomes a csr that owns them, with sorted rows; after a failure they are
 * released. */
sps_status spsi_cuda_csr_finish(sps_context *ctx, sps_status st, sps_csr *made,
                                sps_csr **C_p);

#endif
