/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_low.cuh - TCA-SpMM in 16 bits, and how X gets into a low precision.
 *
 * X is converted once for a product, into memory of the plan: rows of whole
 * vectors, zero beyond the last column.  Then the gather, which reads a row of
 * X for each entry, moves half or a quarter of the bytes. */
#ifndef SPS_CUDA_TCA_LOW_CUH
#define SPS_CUDA_TCA_LOW_CUH

#include "tca.cuh"

namespace {

/* Columns of a converted row. */
inline int64_t low_ld(int k) { return (k + 3) / 4 * 4; }

/* E: a struct with element, vector (4 elements) and round(double) and
 * pack(element[4]).  A group of `lanes` threads takes a row of `units` vectors;
 * exponent: of the columns, or NULL. */
template <class E, class T>
__global__ void __launch_bounds__(256)
convert_kernel(const T *__restrict__ x, int64_t ldx, int64_t n, int k,
               const int *__restrict__ exponent, int lanes,
               typename E::element *__restrict__ y)
{
    int units = (k + 3) / 4, rows = 256 / lanes;
    int64_t i = (int64_t)blockIdx.x * rows + (int)threadIdx.x / lanes;

    if (i >= n) return;
    for (int u = (int)threadIdx.x % lanes; u < units; u += lanes) {
        typename E::element v[4];

#pragma unroll
        for (int l = 0; l < 4; l++) {
            int j = 4 * u + l;
            double a = j < k ? (double)__ldg(x + i * ldx + j) : 0.0;

            v[l] = E::round(exponent && j < k ? scalbn(a, -exponent[j]) : a);
        }
        ((typename E::vector *)y)[i * units + u] = E::pack(v);
    }
}

template <class E, class T>
sps_status convert_x(const sps_tca_plan *plan, const blocks<T> &b,
                     const int *exponent, source<typename E::element> *x)
{
    sps_context *ctx = plan->super.ctx;
    int lanes = power_above((b.k + 3) / 4);
    typename E::element *y = (typename E::element *)plan->x;
    int64_t n = plan->super.A->ncol;

    if (lanes > 256) lanes = 256;
    convert_kernel<E, T>
        <<<(unsigned)ceil_div(n, 256 / lanes), 256, 0,
           spsi_cuda_state(ctx)->stream>>>(b.x, b.ldx, n, b.k, exponent, lanes,
                                           y);
    SPS_LAUNCHED(ctx);
    *x = source<typename E::element>{y, low_ld(b.k), exponent};
    return SPS_OK;
}

/* --- 16 bits: mma.m16n8k8 with floats as sums.  A word of the buffer holds
 * entries 2p and 2p + 1 of one column, as the instruction wants them.  E also
 * has multiply(o, d0, d1, s). */
template <class E, int TILE> struct form16 {
    typedef uint32_t word;
    typedef uint16_t number, element;
    typedef float sum;
    static constexpr int tile = TILE, stride = tile + 8, slice = 4 * stride + 4;
    static constexpr int products = tile / 16;

    static __device__ __forceinline__ uint16_t convert(double v, int exponent)
    {
        return E::round(exponent ? scalbn(v, -exponent) : v);
    }
    template <bool ALIGNED>
    static __device__ __forceinline__ void
    gather(uint32_t *slice, const uint16_t *x, int64_t ld, const share &s,
           int lane, int left)
    {
        constexpr int units = tile / 4, all = 4 * units;
        constexpr int steps = (all + 31) / 32;
        uint2 v[steps][2];

#pragma unroll
        for (int i = 0; i < steps; i++) {
            int n = lane + 32 * i, u = 4 * (n % units), entry = 2 * (n / units);

#pragma unroll
            for (int h = 0; h < 2; h++) {
                int32_t j = __shfl_sync(all_lanes, s.col, (entry + h) % 8);

                v[i][h] = make_uint2(0, 0);
                if (n < all && entry + h < s.own && u < left)
                    v[i][h] = __ldg((const uint2 *)(x + (int64_t)j * ld + u));
            }
        }
#pragma unroll
        for (int i = 0; i < steps; i++) {
            int n = lane + 32 * i, u = 4 * (n % units), p = n / units;
            uint2 a = v[i][0], b = v[i][1];

            if (n < all)
                *(uint4 *)(slice + p * stride + u) =
                    make_uint4(__byte_perm(a.x, b.x, 0x5410),
                               __byte_perm(a.x, b.x, 0x7632),
                               __byte_perm(a.y, b.y, 0x5410),
                               __byte_perm(a.y, b.y, 0x7632));
        }
    }
    typedef uint32_t values;
    static __device__ __forceinline__ values
    load_values(const uint16_t (*value)[8], int g, int gid, int t)
    {
        return gid < g ? *(const uint32_t *)(value[gid] + 2 * t) : 0u;
    }
    static __device__ __forceinline__ void
    multiply(float *o, const uint32_t *slice, int j, int t, values s)
    {
        uint2 d = *(const uint2 *)(slice + t * stride + j);

        E::multiply(o, d.x, d.y, s);
    }
};

/* Elements of 16 bits, four in a vector. */
struct bits16 {
    typedef uint16_t element;
    typedef uint2 vector;
    static __device__ __forceinline__ uint2 pack(const uint16_t *v)
    {
        return make_uint2(v[0] | (uint32_t)v[1] << 16,
                          v[2] | (uint32_t)v[3] << 16);
    }
};

/* A plan with room for X in elements of this size, and more bytes. */
inline sps_status low_plan(sps_context *ctx, const sps_kernel *kernel,
                           const sps_problem *p, size_t element, size_t more,
                           sps_plan **plan_p)
{
    sps_tca_plan *plan;

    SPS_TRY_RETURN(spsi_cuda_tca_plan(ctx, kernel, p, sizeof(float), plan_p));
    plan = (sps_tca_plan *)*plan_p;
    plan->x_bytes = (size_t)p->local->ncol * (size_t)low_ld(p->k) * element +
                    more;
    if (plan->x_bytes > 0)
        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, plan->x_bytes, &plan->x));
    plan->super.bytes += plan->x_bytes;
    return SPS_OK;
}

} // namespace

#endif
