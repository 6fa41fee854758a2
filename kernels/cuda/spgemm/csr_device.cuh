/* SPDX-License-Identifier: BSD-3-Clause */
/* csr_device.cuh - what operations that make a csr in device memory share:
 * their work memory, and how the result is handed over. */
#ifndef SPS_CUDA_CSR_DEVICE_CUH
#define SPS_CUDA_CSR_DEVICE_CUH

#include "cuda/base/device.cuh"

/* After st, the status of what made the arrays of *made (sizes and dtype set):
 * *C_p becomes a csr that owns them, with sorted rows; after a failure they are
 * released. */
sps_status spsi_cuda_csr_finish(sps_context *ctx, sps_status st, sps_csr *made,
                                sps_csr **C_p);

namespace {

/* Work memory of one call; released when it returns. */
class holder {
  public:
    explicit holder(sps_context *c) : ctx(c), held(0) {}
    ~holder()
    {
        while (held > 0) {
            held--;
            spsi_cuda_release(ctx, piece[held], bytes[held]);
        }
    }
    template <class X> sps_status take(int64_t n, X **p)
    {
        void *got;

        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)n * sizeof(X), &got));
        piece[held] = got;
        bytes[held++] = (size_t)n * sizeof(X);
        *p = (X *)got;
        return SPS_OK;
    }

  private:
    sps_context *ctx;
    void *piece[24];
    size_t bytes[24];
    int held;
};

} // namespace

#endif
