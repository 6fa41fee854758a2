/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocked_ell_tf32.c - dense b x b blocks by cuSPARSE's Blocked-ELL, in
 * single precision (spmm_blocked_ell.c has the same in double). cuSPARSE's
 * type of computation is called CUDA_R_32F, but it multiplies on tensor cores
 * in tf32, to which it rounds values and X (12.6.3: ties away from zero, as
 * cvt.rna; errors of 2.5e-4 of the largest sum), and accumulates in single
 * precision. */
#include "cuda/vendor/blocked_ell_run.h"

static bool fits(const sps_problem *p, const char **why_not)
{
    if (p->block != SPS_F32) {
        *why_not = "it multiplies blocks of floats only";
        return false;
    }
    return spsi_bell_fits(p, why_not);
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_blocked_ell_tf32) = {
    .name = "spmm.blocked_ell_tf32",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_SINGLE_BLOCKS,
    .roundoff = 0x1p-11,
    .size = sizeof(sps_bell_plan),
    .fits = fits,
    .cost = spsi_bell_cost,
    .plan = spsi_bell_plan,
    .spmm = spsi_bell_spmm,
    .refresh = spsi_bell_refresh,
};
