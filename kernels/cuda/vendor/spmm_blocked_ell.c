/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocked_ell.c - dense b x b blocks by cuSPARSE's Blocked-ELL (Yamaguchi
 * and Busato, "Accelerating matrix multiplication with block sparse format and
 * NVIDIA tensor cores", 2021), b = 8, 16 or 32, in double precision.
 *
 * For matrices that consist of blocks (discontinuous elements, many unknowns
 * per node): every slot of a block is multiplied, whether stored or not, on
 * tensor cores.  It is a candidate if w mb b b <= 2.5 nnz, where w is the
 * maximal number of blocks in one of the mb block rows; requested by name it
 * runs down to a fill of 0.2, so that the crossover can be measured.  Entries
 * of a block that the matrix does not store are zeros that are multiplied by X,
 * so a NaN in X reaches all rows of the blocks of its column, in its own column
 * of Y.
 *
 * Padding repeats a block column of the same block row: cuSPARSE treats -1, its
 * documented mark of an empty block, as 0 (CUDALibrarySamples, issue 80).
 *
 * There is one launch without a buffer for each panel of 32768 block rows; it
 * can be captured in a graph and takes any ld and alignment.  NVIDIA does not
 * guarantee reproducible bits; that they are was observed (12.6.3 on an H200:
 * 20 runs and a new plan, many shapes), and
 * tests/check/formats/check_blocked_ell.c tests it.
 *
 * Bytes: 8 per slot for values, b rows of X per block, Y once. */
#include "cuda/vendor/blocked_ell_run.h"

static bool fits(const sps_problem *p, const char **why_not)
{
    if (p->A->dtype != SPS_F64) {
        *why_not = "it multiplies matrices of doubles only";
        return false;
    }
    return spsi_bell_fits(p, why_not);
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_blocked_ell) = {
    .name = "spmm.blocked_ell",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION,
    .size = sizeof(sps_bell_plan),
    .fits = fits,
    .cost = spsi_bell_cost,
    .plan = spsi_bell_plan,
    .spmm = spsi_bell_spmm,
    .refresh = spsi_bell_refresh,
};
