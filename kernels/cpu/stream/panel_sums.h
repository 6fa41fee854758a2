/* SPDX-License-Identifier: BSD-3-Clause */
/* panel_sums.h - sums of a panel's rows (formats/panels.h) on the host, with
 * the same bits as on the GPU: each sum adds its products in the order of the
 * row, starting from 0, by fused multiply-adds in double precision. */
#ifndef SPS_CPU_PANEL_SUMS_H
#define SPS_CPU_PANEL_SUMS_H

#include "formats/panels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operands of the sums of a panel without segments of long rows.  x: rows of X
 * from first_column on, k doubles each, contiguous; sum: rows of A X from
 * first_row on, stored in the same way. */
typedef struct sps_panel_sums {
    const void *image;
    const sps_panel *panel;
    const double *x;
    int64_t first_column, first_row;
    int k;
    double *sum;
} sps_panel_sums;

/* Computes the sums of windows first .. last - 1 of the panel. */
void spsi_cpu_panel_sums(const sps_panel_sums *t, int32_t first, int32_t last);

#ifdef __cplusplus
}
#endif
#endif
