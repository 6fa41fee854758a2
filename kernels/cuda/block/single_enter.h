/* SPDX-License-Identifier: BSD-3-Clause */
/* single_enter.h - R -= Q a together with the copy of R in floats that a
 * preconditioner begins with (single_enter.cu). */
#ifndef SPS_CUDA_SINGLE_ENTER_H
#define SPS_CUDA_SINGLE_ENTER_H

#include "block/block.h"
#include "block/small.h"

/* Returns whether spsi_cuda_single_enter serves these blocks. */
bool spsi_cuda_single_enters(const sps_block *Q, const sps_small *a,
                             const sps_block *R, const sps_block *U);
/* R -= Q a; S, of one row, becomes the squared norms of the columns of R;
 * u_ij = d_i c_j r_ij.  d is n x 1; c, k numbers, is in host memory. */
sps_status spsi_cuda_single_enter(const sps_block *Q, const sps_small *a,
                                  sps_block *R, sps_small *S,
                                  const sps_block *d, const double *c,
                                  sps_block *U);

#endif
