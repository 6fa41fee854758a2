/* SPDX-License-Identifier: BSD-3-Clause */
/* single.h - blocks in single precision: stored in single, summed in double
 * precision, for half the memory traffic.
 *
 * Block operations (block.h) that accept them: axpby, axpby_cols, scale_rows
 * and copy, X and Y of either type (a diagonal in double precision); operations
 * on stacks of blocks (basis.h), the stack only in single precision; gram and
 * mul_small up to SPS_SINGLE_WIDEST columns, all blocks in single precision;
 * and the passes of a fused step (fused_cg.h), P, Q, X and R in single and D in
 * double precision.  Gram and mul_small also accept a wide X in single
 * precision, data and ld even, with a Y in double precision of 2 to
 * SPS_SINGLE_WIDEST columns: the basis of a block Krylov space.  combine accepts
 * a Z in single precision of so many columns: P = Z + P b is rounded to floats,
 * and Z becomes a copy of it.  Operators on such blocks: operator.h. */
#ifndef SPS_SINGLE_H
#define SPS_SINGLE_H

#include "block/block.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_SINGLE_WIDEST 32

/* Zeroes all memory of an allocated block, of any type. */
sps_status spsi_block_clear(const sps_block *X);
/* Changes X to double precision and clears it.  If X was allocated in single
 * precision, new memory is allocated before the old is freed.  ENOMEM, EDEVMEM:
 * X is unchanged. */
sps_status spsi_block_widen(sps_block *X);
/* Bytes that X takes, or would take, in double precision. */
size_t spsi_block_bytes(const sps_block *X);

#ifdef __cplusplus
}
#endif
#endif
