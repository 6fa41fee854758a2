/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca_tf32.cu - TCA-SpMM in tf32: values and X rounded to 11 significant
 * bits, sums in fp32.  Single-precision blocks are gathered as they are and
 * rounded in registers; double-precision blocks are converted first. */
#include "cuda/papers/tca_low.cuh"

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

/* Variant for tf32, by mma.m16n8k8: a lane holds 2 * parts consecutive columns
 * of X for entries t and t + 4 of a chunk. */
template <int PARTS> struct direct32 {
    typedef float sum, element, number;
    static constexpr int parts = PARTS, tile = 16 * parts;
    static constexpr int at_once = parts == 4 ? 2 : 4;
    static constexpr int threads = 512, rows_held = parts == 1 ? 2 : 1;
    static constexpr int pieces_held = rows_held;
    struct rows {
        float low[2 * PARTS], high[2 * PARTS];
    };
    struct values {
        float v[2];
    };
    static __device__ __forceinline__ int column(int f, int gid)
    {
        return 2 * (parts * gid + f);
    }
    static __device__ __forceinline__ float round(double v, int)
    {
        return element32::round(v);
    }
    template <bool ALIGNED>
    static __device__ __forceinline__ void
    row(const float *x, int64_t ld, int32_t entry, int left, int gid, float *v)
    {
        const float *p = row_of(x, entry, ld) + column(0, gid);

        left = entry >= 0 ? left - column(0, gid) : 0;
        if constexpr (parts == 1) {
            float2 two = load_two<ALIGNED>(p, left);

            v[0] = two.x;
            v[1] = two.y;
        } else {
#pragma unroll
            for (int i = 0; i < 2 * parts; i += 4) {
                float4 four = load_four<ALIGNED>(p + i, left - i);

                v[i] = four.x;
                v[i + 1] = four.y;
                v[i + 2] = four.z;
                v[i + 3] = four.w;
            }
        }
    }
    template <bool ALIGNED>
    static __device__ __forceinline__ void
    load(const float *x, int64_t ld, int32_t col, int c, int left, int gid,
         int t, rows *r)
    {
        int32_t low = __shfl_sync(all_lanes, col, 8 * c + t);
        int32_t high = __shfl_sync(all_lanes, col, 8 * c + t + 4);

        row<ALIGNED>(x, ld, low, left, gid, r->low);
        row<ALIGNED>(x, ld, high, left, gid, r->high);
    }
    static __device__ __forceinline__ values spread(float v, int c, int t)
    {
        return values{{__shfl_sync(all_lanes, v, 8 * c + t),
                       __shfl_sync(all_lanes, v, 8 * c + t + 4)}};
    }
    static __device__ __forceinline__ void
    multiply(float (*o)[4], const rows &r, const values &s)
    {
#pragma unroll
        for (int f = 0; f < parts; f++)
            mma(o[f], tf32(r.low[2 * f]), tf32(r.low[2 * f + 1]),
                tf32(r.high[2 * f]), tf32(r.high[2 * f + 1]), s.v[0], s.v[1]);
    }
    static __device__ __forceinline__ void mma(float *o, float d0, float d1,
                                               float d2, float d3, float s0,
                                               float s1)
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3])
            : "r"(__float_as_uint(d0)), "r"(__float_as_uint(d1)),
              "r"(__float_as_uint(d2)), "r"(__float_as_uint(d3)),
              "r"(__float_as_uint(s0)), "r"(__float_as_uint(s1)));
    }
};

template <class T, bool ALIGNED>
sps_status launch(const sps_tca_plan *plan, const blocks<T> &b,
                  const source<float> &x)
{
    return b.k <= 16 ? launch_direct<direct32<1>, T, ALIGNED>(plan, b, x)
         : b.k <= 32 ? launch_direct<direct32<2>, T, ALIGNED>(plan, b, x)
                     : launch_direct<direct32<4>, T, ALIGNED>(plan, b, x);
}

sps_status spmm(const sps_plan *super, const sps_spmm_args *args)
{
    const sps_tca_plan *plan = (const sps_tca_plan *)super;

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
    return predicted(p, {0.59, 1, 0, 0.17, 1.4, 0, 0});
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    if (p->block == SPS_F32)
        return spsi_cuda_tca_plan(super, p, sizeof(float));
    return low_plan(super, p, low_bytes(p, sizeof(float)));
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca_tf32) = {
    .name = "spmm.tca_tf32",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_NAN_STAYS_IN_ROW | SPS_SINGLE_BLOCKS,
    .roundoff = 0x1p-11,
    .size = sizeof(sps_tca_plan),
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
};
