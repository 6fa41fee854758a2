/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.cuh - device memory for the duration of a call, released at the end of
 * its scope. */
#ifndef SPS_CUDA_MEMORY_CUH
#define SPS_CUDA_MEMORY_CUH

#include "cuda/base/state.h"

namespace {

/* Owns temporary device memory of a call. */
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
    template <class T> sps_status take(int64_t count, T **p_p)
    {
        void *got;

        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, (size_t)count * sizeof(T), &got));
        piece[held] = got;
        bytes[held++] = (size_t)count * sizeof(T);
        *p_p = (T *)got;
        return SPS_OK;
    }
    template <class T> sps_status take_zeros(int64_t count, T **p_p)
    {
        SPS_TRY_RETURN(take(count, p_p));
        SPS_CUDA(ctx, cudaMemsetAsync(*p_p, 0, (size_t)count * sizeof(T),
                                      spsi_cuda_state(ctx)->stream));
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
