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
    return paired(args->X) ? launch_direct<F, true>(plan, blocks_of(args))
                           : launch_direct<F, false>(plan, blocks_of(args));
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

bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "2^31 rows or more";
    return p->A->nrow <= INT32_MAX;
}

/* The row of X of every entry is loaded from memory to registers, an eighth of
 * each product is used; wide blocks take several passes. */
double cost(const sps_problem *p)
{
    const double longest = (double)p->f->max_length;

    return predicted(p, {0.6, 0.62, 0, 0.03, 1.1, 0, 0}) +
           8e-8 * fmin(longest, 256) + (p->k > 16 ? 2.7e-5 : 0) +
           (p->k == 1 ? 1e-5 : 0);
}

sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_context *ctx = super->ctx;
    sps_tca_plan *plan = (sps_tca_plan *)super;
    spsi_tca *w = &plan->work;

    SPS_TRY_RETURN(spsi_cuda_enter(ctx));
    SPS_TRY_RETURN(spsi_cuda_tca_build(ctx, p->local, w));
    plan->partial_bytes = (size_t)w->n.partials * (size_t)p->k *
                          sizeof(double);
    if (plan->partial_bytes > 0)
        SPS_TRY_RETURN(spsi_cuda_alloc(ctx, plan->partial_bytes,
                                       (void **)&plan->partial));
    plan->super.bytes = spsi_tca_slot_bytes(w) + spsi_tca_piece_bytes(w) +
                        spsi_tca_split_bytes(w) + spsi_tca_empty_bytes(w) +
                        plan->partial_bytes;
    return SPS_OK;
}

void destroy(sps_plan *super)
{
    sps_tca_plan *plan = (sps_tca_plan *)super;

    spsi_cuda_tca_clear(super->ctx, &plan->work);
    spsi_cuda_release(super->ctx, plan->partial, plan->partial_bytes);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_tca) = {
    .name = "spmm.tca",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .size = sizeof(sps_tca_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = guarded<spmm>,
    .destroy = destroy,
};
