/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_device.cuh - common code of operations that create a csr in device
 * memory: their temporary memory, and the return of the result. */
#ifndef SPS_CUDA_CSR_DEVICE_CUH
#define SPS_CUDA_CSR_DEVICE_CUH

#include "cuda/base/device.cuh"
#include "cuda/base/memory.cuh"

/* Called after the arrays of *made (with sizes and dtype) were computed with
 * status st: *C_p becomes a csr that owns them, with sorted rows; if st is a
 * failure, they are released. */
sps_status spsi_cuda_csr_finish(sps_context *ctx, sps_status st, sps_csr *made,
                                sps_csr **C_p);

#endif
