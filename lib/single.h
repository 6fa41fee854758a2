/* SPDX-License-Identifier: BSD-3-Clause */
/* single.h - blocks of floats.  Stored in floats, summed in doubles: what
 * makes them worth having is half the bytes.
 *
 * Of the block operations (block.h) they are taken by axpby and copy, X and Y
 * of either type; by stacks of blocks (basis.h), the stack alone of floats;
 * and, up to SPS_SINGLE_WIDEST columns, by gram and mul_small, all blocks of
 * floats, and by the passes of a step (steps.h), P, Q, X and R of floats and D
 * of doubles.  Gram and mul_small also take a wide X of floats, data and ld
 * even, with a Y of doubles of 2 to SPS_SINGLE_WIDEST columns: the basis of a
 * block Krylov space.  Operators are made for blocks of floats (operator.h). */
#ifndef SPS_SINGLE_H
#define SPS_SINGLE_H

#include "block.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_SINGLE_WIDEST 32

/* All memory of an own block is zero, whatever it held and of any type. */
sps_status spsi_block_clear(const sps_block *X);
/* The same shape in doubles, cleared: in new memory where X was made for
 * floats, and the old is given back afterwards; else in what it has.  ENOMEM,
 * EDEVMEM: X is as it was. */
sps_status spsi_block_widen(sps_block *X);
/* What it takes, or would take, in doubles. */
size_t spsi_block_bytes(const sps_block *X);

#ifdef __cplusplus
}
#endif
#endif
