/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_plan.h - the work list of TCA-SpMM in device memory, and the host code
 * that its kernels in several precisions share. */
#ifndef SPS_CUDA_TCA_PLAN_H
#define SPS_CUDA_TCA_PLAN_H

#include "formats/tca.h"
#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_tca_plan {
    sps_plan super;
    spsi_tca work;           /* the work list; its arrays are in device
                                memory */
    void *partial;           /* partial sums of pieces, k numbers for each
                                piece */
    void *x;                 /* X in the low precision; in fp16 also the scaling
                                exponents of its columns */
    void *scale;             /* scaling exponents of the rows of A (fp16
                                only) */
} sps_tca_plan;

/* Builds the work list and allocates memory for the partial sums, with
 * sum_bytes bytes per number. */
sps_status spsi_cuda_tca_plan(sps_plan *plan, const sps_problem *p,
                              size_t sum_bytes);
/* Builds the work list for plan->A on the device, with the same contents as
 * spsi_tca_build on the host; its arrays belong to the plan. */
sps_status spsi_cuda_tca_build(sps_plan *plan, spsi_tca *w);
bool spsi_cuda_tca_fits(const sps_problem *p, const char **why_not);

#ifdef __cplusplus
}
#endif

#endif
