/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_plan.h - the work list of TCA-SpMM in device memory, and the host code
 * that its kernels in several precisions share. */
#ifndef SPS_CUDA_TCA_PLAN_H
#define SPS_CUDA_TCA_PLAN_H

#include "formats/tca.h"
#include "plan/kernel.h"

typedef struct sps_tca_plan {
    sps_plan super;
    spsi_tca work;           /* arrays in device memory */
    void *partial;           /* sums of pieces, k numbers each */
    void *x;                 /* X in the low precision; fp16: also the scaling
                                exponents */
    void *scale;             /* fp16: scaling exponents of rows */
} sps_tca_plan;

/* Builds the list and allocates partial sums of sum_bytes per number. */
sps_status spsi_cuda_tca_plan(sps_plan *plan, const sps_problem *p,
                              size_t sum_bytes);
/* Builds the same list as spsi_tca_build for plan->A, on the device; its arrays
 * belong to the plan. */
sps_status spsi_cuda_tca_build(sps_plan *plan, spsi_tca *w);
bool spsi_cuda_tca_fits(const sps_problem *p, const char **why_not);

#endif
