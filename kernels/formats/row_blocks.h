/* SPDX-License-Identifier: BSD-3-Clause */
/* row_blocks.h - consecutive rows grouped by their entries: the schedule of
 * CSR-Adaptive (Greathouse and Daga, SC 2014).
 *
 * A block holds whole rows with at most `size` entries together, or one row
 * with at most `reach`; a row with more is long and has several workers,
 * `reach` entries each.  A block closes before the row that would exceed
 * size, on equality, at `rows` rows (runs of empty rows), before and after a
 * row of more than `alone` entries (short rows need not wait for it), and
 * where a chunk of SPS_ROW_CHUNK rows ends: chunks are grouped apart from
 * each other, on the host or on a device, with the same blocks.
 *
 * Invariants: blocks are in order of rows; every row is in one block, a long
 * one in as many as it has workers; the entries of the blocks are 0 .. nnz-1
 * in order, none twice. */
#ifndef SPS_ROW_BLOCKS_H
#define SPS_ROW_BLOCKS_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_ROW_CHUNK 1024

/* For host and device. */
#ifdef __CUDACC__
#define SPS_ROW_INLINE static __host__ __device__ inline
#else
#define SPS_ROW_INLINE static inline
#endif

typedef enum sps_rows_kind {
    SPS_ROWS_STREAM,   /* some rows */
    SPS_ROWS_VECTOR,   /* one row with entries */
    SPS_ROWS_LONG      /* a piece of a row */
} sps_rows_kind;

typedef struct sps_row_rule {
    int32_t size;      /* entries of a block of rows */
    int32_t reach;     /* of a row by itself, >= size, at most 8191 */
    int32_t rows;      /* of a block, at most 4096 */
    int32_t alone;     /* longer rows share their block with none, <= size */
} sps_row_rule;

/* 16 bytes, one load.  what: the kind in bits 30 and 31; of a long row its
 * number among the long ones, else rows * 2^13 + entries. */
typedef struct sps_row_block {
    int64_t first;     /* entry */
    int32_t row;
    uint32_t what;
} sps_row_block;

typedef struct sps_row_blocks {
    int64_t count, longs, parts; /* blocks, long rows, workers on those */
    sps_row_block *block;        /* count */
    int64_t *part;               /* longs + 1: number of the first worker */
} sps_row_blocks;

SPS_ROW_INLINE uint32_t spsi_row_block_what(sps_rows_kind kind, uint32_t rows,
                                            uint32_t entries)
{
    return (uint32_t)kind << 30 | rows << 13 | entries;
}
SPS_ROW_INLINE sps_rows_kind spsi_row_block_kind(const sps_row_block *b)
{
    return (sps_rows_kind)(b->what >> 30);
}
SPS_ROW_INLINE int32_t spsi_row_block_rows(const sps_row_block *b)
{
    return b->what >> 30 == SPS_ROWS_LONG ? 1 : (int32_t)(b->what >> 13 &
                                                          0x1fff);
}
SPS_ROW_INLINE int32_t spsi_row_block_entries(const sps_row_block *b)
{
    return (int32_t)(b->what & 0x1fff);
}
SPS_ROW_INLINE int64_t spsi_row_block_long(const sps_row_block *b)
{
    return (int64_t)(b->what & 0x3fffffff);
}

/* What a chunk holds, or what the chunks before it do. */
typedef struct sps_row_tally {
    int64_t blocks, longs, parts;
} sps_row_tally;

/* Turns the tallies of `chunks` chunks into those of the chunks before each;
 * returns the sum of all. */
sps_row_tally spsi_row_blocks_scan(sps_row_tally *tally, int64_t chunks);
static inline int64_t spsi_row_blocks_chunks(int64_t nrow)
{
    return (nrow + SPS_ROW_CHUNK - 1) / SPS_ROW_CHUNK;
}

/* Fewer than 2^31 rows.  On failure *b holds nothing. */
sps_status spsi_row_blocks_make(sps_context *ctx, const sps_csr *A,
                                const sps_row_rule *rule, sps_row_blocks *b);
void spsi_row_blocks_free(sps_context *ctx, sps_row_blocks *b);

#ifdef __cplusplus
}
#endif
#endif
