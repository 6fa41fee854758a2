/* SPDX-License-Identifier: BSD-3-Clause */
/* panel_sums.h - sums of a panel's rows on the host (formats/panels.h), with
 * the bits of the GPU's: each in the order of the row, from 0, by fused
 * multiply-adds in double precision. */
#ifndef SPS_CPU_PANEL_SUMS_H
#define SPS_CPU_PANEL_SUMS_H

#include "formats/panels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A panel without segments of long rows; x: rows first_column .. of X, k
 * numbers each, one after the other; sum: the same for rows first_row .. of A
 * X. */
typedef struct sps_panel_sums {
    const void *image;
    const sps_panel *panel;
    const double *x;
    int64_t first_column, first_row;
    int k;
    double *sum;
} sps_panel_sums;

/* Windows first .. last - 1 of the panel. */
void spsi_cpu_panel_sums(const sps_panel_sums *t, int32_t first, int32_t last);

#ifdef __cplusplus
}
#endif
#endif
