/* SPDX-License-Identifier: BSD-3-Clause */
/* packed.h - columns in 16 bits, values in 32 where that loses nothing.
 *
 * The entries of consecutive rows, a window (kernels/formats/row_blocks.h),
 * use few neighbourhoods of columns: a 3-d stencil has three planes.  A window
 * has up to 8 segments of 8192 columns; an entry keeps the number of its
 * segment (3 bits) and its place there (13 bits):
 *
 *     column = base[8 window + (delta >> 13)] + (delta & 8191).
 *
 * Whatever lies within 65536 columns fits, since segments may touch; so does a
 * stencil on a grid of any size.  A window that needs more segments escapes:
 * its bases are -1 and its entries are found in the columns of the matrix,
 * which stay.  The first segment begins at the least column, the next at the
 * least column that is not covered yet.
 *
 * Bytes: 2 an entry instead of 4, 32 a window; a value 4 instead of 8 if all
 * are exact in float (kernels/cuda/packed_plan.cu). */
#ifndef SPS_PACKED_H
#define SPS_PACKED_H

#include "kernels/formats/row_blocks.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_PACKED_SEGMENTS 8
#define SPS_PACKED_BITS 13
#define SPS_PACKED_REACH (1 << SPS_PACKED_BITS)
#define SPS_PACKED_SPARE 8     /* deltas are loaded 8 at a time */

typedef struct sps_packed {
    int64_t nnz, windows;
    int64_t escaped;           /* windows without segments */
    uint16_t *delta;           /* spsi_packed_room(nnz); zeros past the end */
    int32_t *base;             /* 8 a window; unused: as the last used one */
} sps_packed;

static inline int64_t spsi_packed_room(int64_t nnz)
{
    return (nnz + 2 * SPS_PACKED_SPARE - 1) / SPS_PACKED_SPARE *
           SPS_PACKED_SPARE;
}

/* The columns of A in the windows b, whose blocks are those of A.  On failure
 * *p holds nothing. */
sps_status spsi_packed_make(sps_context *ctx, const sps_csr *A,
                            const sps_row_blocks *b, sps_packed *p);
/* The columns again: nnz, those of windows that escaped copied from `full`. */
void spsi_packed_expand(const sps_packed *p, const sps_row_blocks *b,
                        const int32_t *full, int32_t *col);
void spsi_packed_free(sps_context *ctx, sps_packed *p);

/* Share of up to 64 windows of at most `size` entries, spread over the rows of
 * A, that have enough segments; and whether up to 4096 values, spread too, are
 * exact in float: for predictions.  Host arrays. */
double spsi_packed_share(const sps_csr *A, int64_t size);
bool spsi_packed_exact(const sps_csr *A);

#ifdef __cplusplus
}
#endif
#endif
