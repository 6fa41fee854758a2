/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca_tf32.cu - TCA-SpMM in tf32: values and X rounded to 11 bits, sums
 * in float.  Blocks of floats are gathered as they are and rounded on their
 * way into the buffer; blocks of doubles are converted first. */
#include "tca_low.cuh"

extern "C" const sps_kernel spsi_kernel_spmm_tca_tf32;

namespace {

__device__ __forceinline__ float tf32(float v)
{
    uint32_t r;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return __uint_as_float(r);
}

struct element32 {
    typedef float element;
    typedef float4 vector;
    static __device__ __forceinline__ float round(double v)
    {
        return tf32((float)v);
    }
    static __device__ __forceinline__ float4 pack(const float *v)
    {
        return make_float4(v[0], v[1], v[2], v[3]);
    }
};

/* Four neighbours of which left exist. */
template <bool ALIGNED>
__device__ __forceinline__ float4 fetch_four(const float *p, int left)
{
    float4 v = make_float4(0, 0, 0, 0);

    if (ALIGNED && left >= 4) {
        v = __ldg((const float4 *)p);
    } else {
        if (left >= 1) v.x = __ldg(p);
        if (left >= 2) v.y = __ldg(p + 1);
        if (left >= 3) v.z = __ldg(p + 2);
        if (left >= 4) v.w = __ldg(p + 3);
    }
    return v;
}

/* mma.m16n8k8; 8 x tile floats a slice. */
template <int TILE> struct form32 {
    typedef float word, number, sum, element;
    static constexpr int tile = TILE, stride = tile + 8, slice = 8 * stride + 4;
    static constexpr int products = tile / 16;

    static __device__ __forceinline__ float convert(double v, int)
    {
        return element32::round(v);
    }
    template <bool ALIGNED>
    static __device__ __forceinline__ void
    gather(float *slice, const float *x, int64_t ld, const share &s, int lane,
           int left)
    {
        constexpr int units = tile / 4, at_once = 32 / units, steps = 8 / at_once;
        int u = 4 * (lane % units), e = lane / units;
        float4 v[steps];

#pragma unroll
        for (int i = 0; i < steps; i++) {
            int entry = e + i * at_once;
            int32_t j = __shfl_sync(all_lanes, s.col, entry);

            v[i] = fetch_four<ALIGNED>(x + (int64_t)j * ld + u,
                                       entry < s.own ? left - u : 0);
        }
#pragma unroll
        for (int i = 0; i < steps; i++)
            *(float4 *)(slice + (e + i * at_once) * stride + u) =
                make_float4(tf32(v[i].x), tf32(v[i].y), tf32(v[i].z),
                            tf32(v[i].w));
    }
    struct values {
        float low, high;
    };
    static __device__ __forceinline__ values
    load_values(const float (*value)[8], int g, int gid, int t)
    {
        values s = {};

        if (gid < g) {
            s.low = value[gid][t];
            s.high = value[gid][t + 4];
        }
        return s;
    }
    static __device__ __forceinline__ void
    multiply(float *o, const float *slice, int j, int t, const values &s)
    {
        float2 a = *(const float2 *)(slice + t * stride + j);
        float2 b = *(const float2 *)(slice + (t + 4) * stride + j);

        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3])
            : "r"(__float_as_uint(a.x)), "r"(__float_as_uint(a.y)),
              "r"(__float_as_uint(b.x)), "r"(__float_as_uint(b.y)),
              "r"(__float_as_uint(s.low)), "r"(__float_as_uint(s.high)));
    }
};

template <class T, bool ALIGNED>
sps_status launch(const sps_tca_plan *plan, const blocks<T> &b,
                  const source<float> &x)
{
    return b.k <= 16 ? launch_tca<form32<16>, T, ALIGNED>(plan, b, x)
                     : launch_tca<form32<32>, T, ALIGNED>(plan, b, x);
}

sps_status spmm(const sps_plan *super, const sps_spmm_args *args)
{
    const sps_tca_plan *plan = (const sps_tca_plan *)super;

    SPS_TRY_RETURN(spsi_cuda_enter(super->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(super, args)) return scale_only(args);
    if (args->Y->dtype == SPS_F64) {
        blocks<double> b = blocks_of<double>(args);
        source<float> x;

        SPS_TRY_RETURN((convert_x<element32, double>(plan, b, NULL, &x)));
        return launch<double, true>(plan, b, x);
    }
    blocks<float> b = blocks_of<float>(args);
    source<float> x = {b.x, b.ldx, NULL};

    return b.ldx % 4 == 0 && (uintptr_t)b.x % 16 == 0
               ? launch<float, true>(plan, b, x)
               : launch<float, false>(plan, b, x);
}

double cost(const sps_problem *p)
{
    return seconds(p, p->k < 16 ? 0.12 : 0.3);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    if (p->block == SPS_F32)
        return spsi_cuda_tca_plan(ctx, &spsi_kernel_spmm_tca_tf32, p,
                                  sizeof(float), plan_p);
    return low_plan(ctx, &spsi_kernel_spmm_tca_tf32, p, sizeof(float), 0,
                    plan_p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca_tf32) = {
    .name = "spmm.tca_tf32",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_NAN_STAYS_IN_ROW | SPS_SINGLE_BLOCKS,
    .roundoff = 0x1p-11,
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = spsi_cuda_tca_destroy,
};
