/* SPDX-License-Identifier: BSD-3-Clause */
/* tca_plan.h - the work list of TCA-SpMM on the device, and what its kernels
 * in the several precisions share on the host. */
#ifndef SPS_CUDA_TCA_PLAN_H
#define SPS_CUDA_TCA_PLAN_H

#include "kernels/formats/tca.h"
#include "kernel.h"

typedef struct sps_tca_plan {
    sps_plan super;
    spsi_tca work;           /* arrays on the device */
    void *partial;           /* sums of pieces, k numbers each */
    size_t partial_bytes;
    void *x;                 /* X in the low precision; fp16: and scales */
    size_t x_bytes;
    void *scale;             /* fp16: exponents of rows */
    size_t scale_bytes;
} sps_tca_plan;

/* The list, with room for partial sums of sum_bytes each. */
sps_status spsi_cuda_tca_plan(sps_context *ctx, const sps_kernel *kernel,
                              const sps_problem *p, size_t sum_bytes,
                              sps_plan **plan_p);
void spsi_cuda_tca_destroy(sps_plan *plan);
/* The same list as spsi_tca_build, made on the device. */
sps_status spsi_cuda_tca_build(sps_context *ctx, const sps_csr_local *A,
                               spsi_tca *w);
void spsi_cuda_tca_clear(sps_context *ctx, spsi_tca *w);
bool spsi_cuda_tca_fits(const sps_problem *p, const char **why_not);

#endif
