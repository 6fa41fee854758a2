/* SPDX-License-Identifier: BSD-3-Clause */
/* window_plan.h - row windows (kernels/formats/row_windows.h) in device memory,
 * condensed there: on the host it would cost more than the products that it
 * serves. */
#ifndef SPS_CUDA_WINDOW_PLAN_H
#define SPS_CUDA_WINDOW_PLAN_H

#include "kernel.h"
#include "kernels/formats/row_windows.h"
#include "kernels/formats/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The plan of spmm.tiles. */
typedef struct sps_window_plan {
    sps_plan super;
    sps_window_rule rule;
    sps_row_windows windows;   /* arrays on the device */
    void *val;                 /* theirs, entries + 1 of A's type */
    size_t val_bytes;
    sps_segments parts;        /* of rows longer than rule.longest; same */
    void *part;                /* slots x ld numbers: their partial sums */
    size_t part_bytes;
    int64_t ld;
} sps_window_plan;

/* Equal to what spsi_row_windows_make gives.  Complete on return; on failure
 * *w holds nothing. */
sps_status spsi_cuda_windows_build(sps_context *ctx, const sps_csr_local *A,
                                   sps_window_rule rule, sps_row_windows *w);
/* Copies A's values to where the windows have theirs; entries + 1 of them. */
sps_status spsi_cuda_windows_values(sps_context *ctx, const sps_csr_local *A,
                                    int32_t lead, const sps_row_windows *w,
                                    void *val);
void spsi_cuda_windows_clear(sps_context *ctx, sps_row_windows *w);

#ifdef __cplusplus
}
#endif
#endif
