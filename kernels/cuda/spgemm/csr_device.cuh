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

/* csr_multiply_device.cu: creates C = A B for matrices in device memory, unless
 * the entries of A times the longest row of B are more than `most`: then *C_p
 * becomes NULL. */
sps_status spsi_cuda_csr_multiply_within(sps_context *ctx, const sps_csr *A,
                                         const sps_csr *B, int64_t most,
                                         sps_csr **C_p);
/* csr_multiply_device.cu: count becomes the entries of each row of A B, in host
 * memory, for A and B in device memory. */
sps_status spsi_cuda_csr_count(sps_context *ctx, const sps_csr *A,
                               const sps_csr *B, int32_t *count);
/* csr_multiply_far.cu: creates C = A B in host memory, for A and B there with
 * values of one type, by panels of A; EDEVMEM if the device has no room for B
 * and panels. */
sps_status spsi_cuda_csr_multiply_far(sps_context *ctx, const sps_csr *A,
                                      const sps_csr *B, sps_csr **C_p);

#endif
