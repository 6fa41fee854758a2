/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_tca.cu - TCA-SpMM in fp64: Y = alpha A X + beta Y on tensor cores, with
 * loads from memory directly to registers (tca_direct.cuh), which is faster
 * than the paper's use of shared memory.  Only an eighth of each product is
 * used, and lanes request four rows of X from L1 at a time, so that spmm.rode,
 * which does not use tensor cores, is faster (doc/benchmarks.md, "TCA-SpMM").
 * Odd widths take more loads: k = 9 is slower than k = 16. */
#include "cuda/papers/tca_direct.cuh"

namespace {

template <class F>
sps_status launch(const sps_tca_plan *plan, const sps_spmm_args *args)
{
    blocks<double> b = blocks_of(args);
    source<double> x = {b.x, b.ldx, NULL};

    return paired(args->X) ? launch_direct<F, double, true>(plan, b, x)
                           : launch_direct<F, double, false>(plan, b, x);
}

sps_status spmm(const sps_plan *super, const sps_spmm_args *args)
{
    const sps_tca_plan *plan = (const sps_tca_plan *)super;
    int k = args->Y->k;

    return k <= 4  ? launch<narrow64<4>>(plan, args)
         : k <= 8  ? launch<narrow64<2>>(plan, args)
         : k <= 16 ? launch<direct64<1>>(plan, args)
         : k <= 32 ? launch<direct64<2>>(plan, args)
                   : launch<direct64<4>>(plan, args);
}

/* Predicted seconds.  For every entry a row of X is loaded from memory to
 * registers, and an eighth of each tensor-core product is used; blocks of more
 * than 16 columns take several passes. */
double cost(const sps_problem *p)
{
    const double longest = (double)p->f->max_length;

    return predicted(p, {0.6, 0.62, 0, 0.03, 1.1, 0, 0}) +
           8e-8 * fmin(longest, 256) + (p->k > 16 ? 2.7e-5 : 0) +
           (p->k == 1 ? 1e-5 : 0);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    return spsi_cuda_tca_plan(super, p, sizeof(double));
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca) = {
    .name = "spmm.tca",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .size = sizeof(sps_tca_plan),
    .fits = spsi_cuda_tca_fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
};
