/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca_bf16.cu - TCA-SpMM in bf16: values and X rounded to 8 significant
 * bits with the range of fp32, sums in fp32. */
#include "cuda/papers/tca_low.cuh"

#include <cuda_bf16.h>

namespace {

struct bf16 : bits16 {
    static __device__ __forceinline__ uint16_t round(double v)
    {
        return __bfloat16_as_ushort(__float2bfloat16_rn((float)v));
    }
    static __device__ __forceinline__ void
    multiply(float *o, uint32_t d0, uint32_t d1, uint32_t s)
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 "
            "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
            : "+f"(o[0]), "+f"(o[1]), "+f"(o[2]), "+f"(o[3])
            : "r"(d0), "r"(d1), "r"(s));
    }
};

struct variant {
    template <class T>
    static sps_status product(const sps_tca_plan *plan, const blocks<T> &b)
    {
        source<uint16_t> x;

        SPS_TRY_RETURN((convert_x<bf16, T>(plan, b, NULL, &x)));
        return launch_low<bf16>(plan, b, x);
    }
};

double cost(const sps_problem *p)
{
    return predicted(p, {0.86, 0.38, 9e-12, 0.04, 1.2, 0, 0});
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    return low_plan(super, p, low_bytes(p, sizeof(uint16_t)));
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca_bf16) = {
    .name = "spmm.tca_bf16",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_NAN_STAYS_IN_ROW | SPS_SINGLE_BLOCKS,
    .roundoff = 0x1p-8,
    .size = sizeof(sps_tca_plan),
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<low_spmm<variant>>,
};
