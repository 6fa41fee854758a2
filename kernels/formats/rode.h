/* SPDX-License-Identifier: BSD-3-Clause */
/* rode.h - rows decomposed into segments and residuals (RoDe, Pang et al.,
 * PPoPP 2024), as work lists over the arrays of a CSR matrix.
 *
 * Entries are counted in slots from the last multiple of 4 (the alignment of
 * vector loads) that is not after the beginning of the row; the up to 3 slots
 * before the row, its pad, belong to other rows and are ignored.  A row of L
 * slots has
 *   segments of 512 slots while more than 512 are left, then one of the whole
 *   tiles of 32 slots that are left, and
 *   a residual of the last L mod 32 slots.
 * Only the first item of a row has a pad, all others begin at multiples of 4;
 * every segment is a multiple of 32 slots.  Rows without a whole tile are
 * residuals only, empty rows have no items. */
#ifndef SPS_RODE_H
#define SPS_RODE_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_RODE_ALIGN = 4, SPS_RODE_TILE = 32, SPS_RODE_SEGMENT = 512 };

/* Entries start .. start + length - 1 of a row: 16 bytes, one vector load. */
typedef struct spsi_rode_item {
    int64_t start;
    int32_t row;
    int16_t length;          /* number of entries without the pad, which is
                                start mod 4 */
    int16_t both;            /* whether this is a residual whose row has
                                segments, too */
} spsi_rode_item;

/* Both lists are in ascending order of row and start. */
typedef struct spsi_rode {
    int64_t blocks, residuals;
    spsi_rode_item *block, *residual;
} spsi_rode;

/* First members of a plan that tests can inspect. */
typedef struct spsi_rode_plan {
    sps_plan super;
    spsi_rode parts;         /* its arrays are in the memory of the backend */
} spsi_rode_plan;

#ifdef __CUDACC__
#define SPS_RODE_BOTH __host__ __device__ static inline
#else
#define SPS_RODE_BOTH static inline
#endif

/* Returns the number of slots of the row [begin, end). */
SPS_RODE_BOTH int64_t spsi_rode_slots(int64_t begin, int64_t end)
{
    return end > begin ? end - begin + begin % SPS_RODE_ALIGN : 0;
}

/* Returns the number of segments of a row of `slots` slots. */
SPS_RODE_BOTH int32_t spsi_rode_blocks(int64_t slots)
{
    const int64_t full = slots > 0 ? (slots - 1) / SPS_RODE_SEGMENT : 0;
    const int64_t rest = slots - full * SPS_RODE_SEGMENT;

    return (int32_t)(full + (rest >= SPS_RODE_TILE));
}

/* Returns the number of residuals, 0 or 1. */
SPS_RODE_BOTH int32_t spsi_rode_residuals(int64_t slots)
{
    return slots % SPS_RODE_TILE != 0;
}

/* Writes the items of the row [begin, end) to *block and *residual, whose sizes
 * must be those returned by the two functions above. */
SPS_RODE_BOTH void spsi_rode_row(int32_t row, int64_t begin, int64_t end,
                                 spsi_rode_item *block,
                                 spsi_rode_item *residual)
{
    int64_t left = spsi_rode_slots(begin, end);
    int64_t at = begin - begin % SPS_RODE_ALIGN, from = begin;
    const bool both = left >= SPS_RODE_TILE;

    while (left >= SPS_RODE_TILE) {
        const int64_t take = left > SPS_RODE_SEGMENT
                                 ? SPS_RODE_SEGMENT
                                 : left - left % SPS_RODE_TILE;

        block->start = from;
        block->row = row;
        block->length = (int16_t)(at + take - from);
        block->both = 0;
        block++;
        at += take;
        from = at;
        left -= take;
    }
    if (left > 0) {
        residual->start = from;
        residual->row = row;
        residual->length = (int16_t)(end - from);
        residual->both = both;
    }
}

#ifdef __cplusplus
}
#endif
#endif
