/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_rode_short.h - products of spmm.rode with 16 columns of floats, for
 * matrices of which no row is divided. */
#ifndef SPS_CUDA_SPMM_RODE_SHORT_H
#define SPS_CUDA_SPMM_RODE_SHORT_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether spsi_cuda_rode_short computes this product. */
bool spsi_cuda_rode_serves(const sps_plan *plan, const sps_spmm_args *args);
sps_status spsi_cuda_rode_short(const sps_plan *plan,
                                const sps_spmm_args *args);

#ifdef __cplusplus
}
#endif
#endif
