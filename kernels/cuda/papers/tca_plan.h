/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_plan.h - the plan of TCA-SpMM: the work list in device memory. */
#ifndef SPS_CUDA_TCA_PLAN_H
#define SPS_CUDA_TCA_PLAN_H

#include "formats/tca.h"
#include "plan/kernel.h"

typedef struct sps_tca_plan {
    sps_plan super;
    spsi_tca work;           /* arrays in device memory */
    double *partial;         /* sums of pieces, k numbers each */
    size_t partial_bytes;
} sps_tca_plan;

/* Builds the same list as spsi_tca_build, on the device. */
sps_status spsi_cuda_tca_build(sps_context *ctx, const sps_csr_local *A,
                               spsi_tca *w);
void spsi_cuda_tca_clear(sps_context *ctx, spsi_tca *w);

#endif
