/* SPDX-License-Identifier: BSD-3-Clause */
/* blocked_ell_run.h - the plan of the kernels on cuSPARSE's Blocked-ELL, and
 * the functions of their tables. */
#ifndef SPS_CUDA_BLOCKED_ELL_RUN_H
#define SPS_CUDA_BLOCKED_ELL_RUN_H

#include "formats/blocked_ell.h"
#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_bell_plan {
    sps_blocked_ell_plan base;
    void *buffer;
    int64_t ld;              /* leading dimension of x and y */
    void *x, *y;             /* device memory for the padded X (or NULL) and the
                                padded Y */
    uint8_t *empty;          /* mb flags, 1 for an empty block row; NULL if no
                                block row is empty */
} sps_bell_plan;

bool spsi_bell_fits(const sps_problem *p, const char **why_not);
double spsi_bell_cost(const sps_problem *p);
sps_status spsi_bell_plan(sps_plan *super, const sps_problem *p);
sps_status spsi_bell_spmm(const sps_plan *plan, const sps_spmm_args *args);
sps_status spsi_bell_refresh(sps_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
