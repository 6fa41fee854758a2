/* SPDX-License-Identifier: BSD-3-Clause */
/* single.h - blocks in single precision: elements are stored as floats and
 * summed in double precision, for half the memory traffic.
 *
 * These block operations (block.h) accept them: axpby, axpby_cols, scale_rows
 * and copy, with X and Y of either type (the diagonal in double precision);
 * operations on stacks of blocks (basis.h), where the stack may be in single
 * precision; gram and mul_small with all blocks in single precision and up to
 * SPS_SINGLE_WIDEST columns; and the passes of a fused step (fused_cg.h), with
 * P, Q, X and R in single and D in double precision.  gram and mul_small also
 * accept a wide X in single precision, with even ld and data aligned to two
 * elements, and a Y in double precision of 2 to SPS_SINGLE_WIDEST columns: the
 * basis of a block Krylov space.  combine accepts a Z in single precision of
 * that many columns: P = Z + P b is rounded to floats, and Z becomes a copy of
 * it.  For operators on such blocks see operator.h. */
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
 * precision, new memory is allocated before the old is freed; after ENOMEM or
 * EDEVMEM, X is unchanged. */
sps_status spsi_block_widen(sps_block *X);
/* Returns the bytes that X occupies, or would occupy, in double precision. */
size_t spsi_block_bytes(const sps_block *X);

#ifdef __cplusplus
}
#endif
#endif
