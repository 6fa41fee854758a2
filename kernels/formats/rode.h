/* SPDX-License-Identifier: BSD-3-Clause */
/* rode.h - rows decomposed into block parts and residual parts (RoDe, Pang et
 * al., PPoPP 2024), as lists of work over the arrays of a CSR matrix.
 *
 * Entries are counted in slots from the multiple of 4 (the alignment of vector
 * loads) at or below the row's begin; the up to 3 slots before it, the pad,
 * belong to other rows and are not computed with.  A row of L slots gives
 *   segments of 512 slots while more than 512 are left, then one of the whole
 *   tiles of 32 slots that are left, and
 *   a residual of the last L mod 32 slots.
 * Only the first piece of a row has a pad, all others begin at multiples of 4;
 * every segment is a multiple of 32 slots.  Rows of which no whole tile is
 * left are residual alone, empty rows give nothing. */
#ifndef SPS_RODE_H
#define SPS_RODE_H

#include "kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_RODE_ALIGN = 4, SPS_RODE_TILE = 32, SPS_RODE_SEGMENT = 512 };

/* Entries start .. start + length - 1 of a row.  16 bytes, loaded at once. */
typedef struct spsi_rode_item {
    int64_t start;
    int32_t row;
    int16_t length;          /* without the pad, which is start mod 4 */
    int16_t both;            /* a residual whose row has segments too */
} spsi_rode_item;

/* Both lists rise by row and by start. */
typedef struct spsi_rode {
    int64_t blocks, residuals;
    spsi_rode_item *block, *residual;
} spsi_rode;

/* A plan that begins like this can be looked into. */
typedef struct spsi_rode_plan {
    sps_plan super;
    spsi_rode parts;         /* arrays in the place */
} spsi_rode_plan;

#ifdef __CUDACC__
#define SPS_RODE_BOTH __host__ __device__ static inline
#else
#define SPS_RODE_BOTH static inline
#endif

/* Slots of the row [begin, end). */
SPS_RODE_BOTH int64_t spsi_rode_slots(int64_t begin, int64_t end)
{
    return end > begin ? end - begin + begin % SPS_RODE_ALIGN : 0;
}

/* Segments of a row of so many slots. */
SPS_RODE_BOTH int32_t spsi_rode_blocks(int64_t slots)
{
    const int64_t full = slots > 0 ? (slots - 1) / SPS_RODE_SEGMENT : 0;
    const int64_t rest = slots - full * SPS_RODE_SEGMENT;

    return (int32_t)(full + (rest >= SPS_RODE_TILE));
}

/* Residuals: 0 or 1. */
SPS_RODE_BOTH int32_t spsi_rode_residuals(int64_t slots)
{
    return slots % SPS_RODE_TILE != 0;
}

/* Writes the items of the row [begin, end) at *block and *residual, where
 * there is room for as many as the two functions above say. */
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

/* On the host.  R is cleared when this fails. */
sps_status spsi_rode_build(sps_context *ctx, int64_t nrow,
                           const int64_t *rowptr, spsi_rode *R);
void spsi_rode_clear(sps_context *ctx, spsi_rode *R);
/* Back to CSR: the nrow + 1 offsets that R (host arrays) was made from;
 * columns and values never moved.  SPS_EMATRIX when the items do not cover
 * the entries once each, in the order of rows. */
sps_status spsi_rode_offsets(sps_context *ctx, const spsi_rode *R,
                             int64_t nrow, int64_t *rowptr);

#ifdef __cplusplus
}
#endif
#endif
