/* SPDX-License-Identifier: BSD-3-Clause */
/* packed.h - columns stored in 16 bits, and values in 32 bits if that is exact.
 *
 * The entries of consecutive rows, a window (the rows of a block of
 * kernels/formats/row_blocks.h), use few neighbourhoods of columns: a 3-d
 * stencil has three planes.  A window has up to 8 segments of 8192 columns; an
 * entry stores the index of its segment (3 bits) and its position there (13
 * bits):
 *
 *     column = base[8 window + (delta >> 13)] + (delta & 8191).
 *
 * Any window whose columns span at most 65536 fits, since segments may be
 * adjacent; so does a stencil on a grid of any size.  A window that needs more
 * segments is not packed (`escaped`): its bases are -1 and its columns are read
 * from the matrix.  The first segment begins at the smallest column, the next
 * one at the smallest column not covered yet.
 *
 * Bytes: 2 per entry for its column instead of 4, 32 per window; 4 for a value
 * instead of 8 if all are exact in single precision
 * (kernels/cuda/plan/packed_plan.cu). */
#ifndef SPS_PACKED_H
#define SPS_PACKED_H

#include "formats/row_blocks.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_PACKED_SEGMENTS 8
#define SPS_PACKED_BITS 13
#define SPS_PACKED_REACH (1 << SPS_PACKED_BITS)
#define SPS_PACKED_SPARE 8     /* padding: deltas are loaded 8 at a time */

typedef struct sps_packed {
    int64_t nnz, windows;
    int64_t escaped;           /* number of windows that are not packed */
    uint16_t *delta;           /* spsi_packed_room(nnz) elements; zeros past the
                                  end */
    int32_t *base;             /* 8 per window; unused ones repeat the last one
                                  used */
} sps_packed;

static inline int64_t spsi_packed_room(int64_t nnz)
{
    return (nnz + 2 * SPS_PACKED_SPARE - 1) / SPS_PACKED_SPARE *
           SPS_PACKED_SPARE;
}

#ifdef __cplusplus
}
#endif
#endif
