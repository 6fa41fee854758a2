/* SPDX-License-Identifier: BSD-3-Clause */
/* row_blocks.h - consecutive rows grouped by their numbers of entries: the
 * schedule of CSR-Adaptive (Greathouse and Daga, SC 2014).
 *
 * A block consists of whole rows with at most `size` entries in total, or of
 * one row with at most `reach` entries.  A row with more is long: it is divided
 * among several workers (warps), with a block of up to `reach` entries for
 * each.  A block ends
 *   - before the row with which it would exceed `size`, or when it has reached
 *     `size` exactly;
 *   - when it has `rows` rows (sequences of empty rows);
 *   - before and after a row of more than `alone` entries, so that short rows
 *     do not wait for it;
 *   - where a chunk of SPS_ROW_CHUNK rows ends: chunks are grouped
 *     independently of each other, on the host or on a device, with the same
 *     blocks.
 *
 * Invariants: blocks are in the order of rows; every row is in one block, a
 * long one in one block per worker; the entries of the blocks are 0 .. nnz-1 in
 * order, without repetition. */
#ifndef SPS_ROW_BLOCKS_H
#define SPS_ROW_BLOCKS_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_ROW_CHUNK 1024

/* Functions for host and device. */
#ifdef __CUDACC__
#define SPS_ROW_INLINE static __host__ __device__ inline
#else
#define SPS_ROW_INLINE static inline
#endif

typedef enum sps_rows_kind {
    SPS_ROWS_STREAM,   /* several whole rows */
    SPS_ROWS_VECTOR,   /* one row that has entries */
    SPS_ROWS_LONG      /* a part of a long row */
} sps_rows_kind;

typedef struct sps_row_rule {
    int32_t size;      /* largest number of entries in a block of several
                          rows */
    int32_t reach;     /* largest number of entries in a block of one row: at
                          least size, at most 8191 */
    int32_t rows;      /* largest number of rows in a block, at most 4096 */
    int32_t alone;     /* rows with more entries have their own block; at most
                          size */
} sps_row_rule;

/* A block: 16 bytes, one vector load.  what: the kind in bits 30 and 31, and
 * below them for a long row its index among the long rows, otherwise rows *
 * 2^13 + entries. */
typedef struct sps_row_block {
    int64_t first;     /* index of its first entry */
    int32_t row;
    uint32_t what;
} sps_row_block;

typedef struct sps_row_blocks {
    int64_t count, longs, parts; /* numbers of blocks, of long rows, and of
                                    workers on long rows */
    sps_row_block *block;        /* count elements */
    int64_t *part;               /* longs + 1 elements: index of the first
                                    worker of each long row */
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

/* Numbers of blocks, long rows and workers in a chunk, or in all chunks before
 * it. */
typedef struct sps_row_tally {
    int64_t blocks, longs, parts;
} sps_row_tally;

static inline int64_t spsi_row_blocks_chunks(int64_t nrow)
{
    return (nrow + SPS_ROW_CHUNK - 1) / SPS_ROW_CHUNK;
}

#ifdef __cplusplus
}
#endif
#endif
