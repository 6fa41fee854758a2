/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca_fp16.cu - TCA-SpMM in fp16: Y = alpha A X + beta Y with values of A
 * and X rounded to 11 significant bits.  Rows of A and columns of X are first
 * scaled by powers of two into the range of fp16 (tca_half.cuh). */
#include "cuda/papers/tca_half.cuh"

namespace {

struct variant {
    template <class T>
    static sps_status product(const sps_tca_plan *plan, const blocks<T> &b)
    {
        source<uint16_t> x;

        SPS_TRY_RETURN(half_x(plan, b, &x));
        return launch_low<half_float>(plan, b, x);
    }
};

double cost(const sps_problem *p)
{
    return predicted(p, {0.39, 0.3, 0, 0.07, 1.6, 0, 0});
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca_fp16) = {
    .name = "spmm.tca_fp16",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_NAN_STAYS_IN_ROW | SPS_SINGLE_BLOCKS,
    .roundoff = 0x1p-11,
    .size = sizeof(sps_tca_plan),
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = half_plan,
    .spmm = guarded<low_spmm<variant>>,
    .refresh = half_refresh,
};
