/* SPDX-License-Identifier: BSD-3-Clause */
/* single_device.cuh - operations on blocks of floats, and of floats and
 * doubles. */
#ifndef SPS_CUDA_SINGLE_CUH
#define SPS_CUDA_SINGLE_CUH

#include "cuda/base/device.cuh"

/* single_device.cu: blocks of floats. */
sps_status spsi_cuda_single_axpby(double a, const sps_block *X, double b,
                                  sps_block *Y);
sps_status spsi_cuda_single_gram(const sps_block *X, const sps_block *Y,
                                 sps_small *C);
sps_status spsi_cuda_single_mul_small(double a, const sps_block *X,
                                      const sps_small *C, double b,
                                      sps_block *Y);
/* single_wide.cu: X'Y and Y = a X C + b Y for a block X of floats with any
 * number of columns and a block Y of doubles with up to 32. */
sps_status spsi_cuda_single_gram_wide(const sps_block *X, const sps_block *Y,
                                      sps_small *C);
sps_status spsi_cuda_single_mul_wide(double a, const sps_block *X,
                                     const sps_small *C, double b,
                                     sps_block *Y);

namespace {

/* Loads a pair of neighbouring floats, or zeros if !some. */
__device__ __forceinline__ double2 whole_pair(const float *p, bool some)
{
    const float2 v = some ? *reinterpret_cast<const float2 *>(p)
                          : make_float2(0.0f, 0.0f);

    return make_double2(v.x, v.y);
}

} // namespace

#endif
