/* SPDX-License-Identifier: BSD-3-Clause */
/* window_plan.h - row windows (kernels/formats/row_windows.h) in device memory,
 * built there: on the host their construction would cost more than the products
 * that use them. */
#ifndef SPS_CUDA_WINDOW_PLAN_H
#define SPS_CUDA_WINDOW_PLAN_H

#include "plan/kernel.h"
#include "formats/row_windows.h"
#include "formats/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The plan of spmm.tiles. */
typedef struct sps_window_plan {
    sps_plan super;
    sps_window_rule rule;
    sps_row_windows windows;   /* arrays in device memory */
    void *val;                 /* values in tile order, `entries + 1` elements
                                  of the type of A */
    sps_segments parts;        /* segments of the rows longer than rule.longest,
                                  also in device memory */
    void *part;                /* partial sums of the segments, slots x ld
                                  elements */
    int64_t ld;
} sps_window_plan;

/* Builds the same as spsi_row_windows_make for plan->A; w is zeroed on entry,
 * and its arrays belong to the plan.  Complete on return. */
sps_status spsi_cuda_windows_build(sps_plan *plan, sps_window_rule rule,
                                   sps_row_windows *w);
/* Copies the values of A to tile order; entries + 1 values are written. */
sps_status spsi_cuda_windows_values(sps_context *ctx, const sps_csr_local *A,
                                    int32_t lead, const sps_row_windows *w,
                                    void *val);

#ifdef __cplusplus
}
#endif
#endif
