/* SPDX-License-Identifier: BSD-3-Clause */
/* single_stack.h - operations of a step of a block method whose directions are
 * stored as floats (lib/block/single.h); they are defined in single_combine.cu
 * and single_wide.cu. */
#ifndef SPS_CUDA_SINGLE_STACK_H
#define SPS_CUDA_SINGLE_STACK_H

#include "block/basis.h"
#include "block/small.h"

/* Computes P = Z + P b, rounded to floats, where P has r columns before and
 * Z->k after; then Z = P, and G = P'P unless G is NULL.  A P of floats is not
 * changed. */
sps_status spsi_cuda_single_combine(const sps_block *Z, const sps_small *b,
                                    sps_block *P, sps_small *G);
/* Computes G = P'Q and C = P'R for a P of floats and Q and R of doubles, of 16
 * columns at most. */
sps_status spsi_cuda_single_gram_pair(const sps_block *P, const sps_block *Q,
                                      const sps_block *R, sps_small *G,
                                      sps_small *C);
/* Computes W = a sum of V_l H_l over l < count, plus W if `add`; h is H in
 * device memory, with leading dimension ld. */
sps_status spsi_cuda_single_mul_stack(double a, const sps_basis *V, int count,
                                      const double *h, int ld, bool add,
                                      sps_block *W);

#endif
