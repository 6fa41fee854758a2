/* SPDX-License-Identifier: BSD-3-Clause */
/* single_stack.h - operations of a step whose directions are stored as floats
 * (lib/block/single.h): single_combine.cu, single_wide.cu. */
#ifndef SPS_CUDA_SINGLE_STACK_H
#define SPS_CUDA_SINGLE_STACK_H

#include "block/basis.h"
#include "block/small.h"

/* P = Z + P b rounded to floats, where P has r columns before and Z->k after; Z
 * = P; G = P'P unless it is NULL. */
sps_status spsi_cuda_single_combine(const sps_block *Z, const sps_small *b,
                                    sps_block *P, sps_small *G);
/* W = a sum of V_l H_l over l < count, plus W if `add`; h is H in device
 * memory, with leading dimension ld. */
sps_status spsi_cuda_single_mul_stack(double a, const sps_basis *V, int count,
                                      const double *h, int ld, bool add,
                                      sps_block *W);

#endif
