/* SPDX-License-Identifier: BSD-3-Clause */
/* single_device.cuh - loads and stores of pairs of columns of floats, which are
 * converted to double and rounded back (device.cuh has those of doubles), and
 * the declarations of the functions of single_device.cu. */
#ifndef SPS_CUDA_SINGLE_CUH
#define SPS_CUDA_SINGLE_CUH

#include "cuda/base/device.cuh"

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

/* Loads two neighbouring floats, of which `left` (<= 0, 1, >= 2) are columns of
 * the block; the others are zero and not read.  PAIRED: p is aligned to 8
 * bytes. */
template <bool PAIRED>
__device__ __forceinline__ double2 load_pair(const float *p, int left)
{
    float2 v = make_float2(0.0f, 0.0f);

    if (PAIRED && left >= 2) {
        v = *reinterpret_cast<const float2 *>(p);
    } else {
        if (left >= 1) v.x = p[0];
        if (left >= 2) v.y = p[1];
    }
    return make_double2(v.x, v.y);
}

/* Loads a pair of neighbouring elements, or zeros if !some. */
__device__ __forceinline__ double2 whole_pair(const float *p, bool some)
{
    const float2 v = some ? *reinterpret_cast<const float2 *>(p)
                          : make_float2(0.0f, 0.0f);

    return make_double2(v.x, v.y);
}

template <bool PAIRED>
__device__ __forceinline__ double2 fetch_pair(const float *p, int left)
{
    float2 v = make_float2(0.0f, 0.0f);

    if (PAIRED && left >= 2) {
        v = __ldg(reinterpret_cast<const float2 *>(p));
    } else {
        if (left >= 1) v.x = __ldg(p);
        if (left >= 2) v.y = __ldg(p + 1);
    }
    return make_double2(v.x, v.y);
}

template <bool PAIRED>
__device__ __forceinline__ void store_pair(float *p, int left, double2 v)
{
    if (PAIRED && left >= 2) {
        *reinterpret_cast<float2 *>(p) = make_float2((float)v.x, (float)v.y);
    } else {
        if (left >= 1) p[0] = (float)v.x;
        if (left >= 2) p[1] = (float)v.y;
    }
}

} // namespace

#endif
