/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_device.cuh - common code of operations that create a csr in device
 * memory: hands their result to the caller. */
#ifndef SPS_CUDA_CSR_DEVICE_CUH
#define SPS_CUDA_CSR_DEVICE_CUH

#include "cuda/base/device.cuh"
#include "cuda/base/memory.cuh"

/* Called after the arrays of *made (whose sizes and dtype are set) were
 * computed with status st.  On success *C_p becomes a csr, with sorted rows,
 * that owns the arrays; if st is a failure, the arrays are released. */
sps_status spsi_cuda_csr_finish(sps_context *ctx, sps_status st, sps_csr *made,
                                sps_csr **C_p);

#endif
