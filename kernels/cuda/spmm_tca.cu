/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca.cu - TCA-SpMM in fp64: Y = alpha A X + beta Y on tensor cores. */
#include "tca.cuh"

extern "C" const sps_kernel spsi_kernel_spmm_tca;

namespace {

template <int TILE>
sps_status launch(const sps_tca_plan *plan, const sps_spmm_args *args)
{
    blocks<double> b = blocks_of(args);
    source<double> x = {b.x, b.ldx, NULL};

    return paired(args->X)
        ? launch_tca<form64<TILE>, double, true>(plan, b, x)
        : launch_tca<form64<TILE>, double, false>(plan, b, x);
}

sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const sps_tca_plan *tca = (const sps_tca_plan *)plan;

    SPS_TRY_RETURN(spsi_cuda_enter(plan->ctx));
    if (args->Y->k == 0 || args->Y->n == 0) return SPS_OK;
    if (trivial(plan, args)) return scale_only(args);
    return args->Y->k <= 16 ? launch<16>(tca, args) : launch<32>(tca, args);
}

/* Every entry's row of X goes through shared memory and back. */
double cost(const sps_problem *p)
{
    return seconds(p, p->k < 16 ? 0.12 : 0.2);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    return spsi_cuda_tca_plan(ctx, &spsi_kernel_spmm_tca, p, sizeof(double),
                              plan_p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca) = {
    .name = "spmm.tca",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .roundoff = 0,
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .sddmm = NULL,
    .refresh = NULL,
    .destroy = spsi_cuda_tca_destroy,
};
