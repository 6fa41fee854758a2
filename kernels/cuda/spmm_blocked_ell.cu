/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocked_ell.cu - dense b x b blocks through cuSPARSE's Blocked-ELL
 * (Yamaguchi and Busato, "Accelerating matrix multiplication with block sparse
 * format and NVIDIA tensor cores", 2021), b = 8, 16 or 32, in doubles.
 *
 * For matrices that consist of blocks (discontinuous elements, many unknowns a
 * node): every slot of a block is multiplied, stored or not, on tensor cores.
 * It bids only when w mb b b <= 2.5 nnz, w the blocks of the fullest of mb
 * block rows; asked for by name it runs down to a fill of 0.2, so that the
 * crossover can be measured.  Absent entries of a block are zeros that meet X,
 * so a NaN in X reaches all rows of the blocks of its column, in its own column
 * of Y.
 *
 * Padding repeats a block column of the same block row: cuSPARSE takes -1, its
 * documented mark of an empty block, for 0 (CUDALibrarySamples, issue 80).
 *
 * It is one launch without a buffer for each panel of 32768 block rows, can be
 * recorded and takes any ld and alignment.  NVIDIA promises nothing about its
 * bits; that they repeat was observed (12.6.3 on an H200: 20 runs and a fresh
 * plan, many shapes), and tests/check_blocked_ell.c watches it.
 *
 * Bytes: slots of values (8 each), b rows of X for each block, Y once. */
#include "spmm_blocked_ell.cuh"

extern "C" const sps_kernel spsi_kernel_spmm_blocked_ell;

namespace {

bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->dtype != SPS_F64) {
        *why_not = "takes values of doubles only";
        return false;
    }
    return bell_fits(p, why_not);
}

sps_status plan(sps_context *ctx, const sps_problem *p, sps_plan **plan_p)
{
    return bell_plan_new(ctx, &spsi_kernel_spmm_blocked_ell, p, plan_p);
}

} // namespace

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_blocked_ell) = {
    .name = "spmm.blocked_ell",
    .op = SPS_OP_SPMM,
    .where = SPS_CUDA,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION,
    .fits = fits,
    .cost = bell_cost,
    .plan = plan,
    .spmm = bell_spmm,
    .sddmm = NULL,
    .refresh = bell_refresh,
    .destroy = bell_destroy,
};
