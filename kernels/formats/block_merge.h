/* SPDX-License-Identifier: BSD-3-Clause */
/* block_merge.h - lists the block columns of a block row in ascending order, by
 * merging its b sorted rows.  Each row has a cursor; the smallest block column
 * is next, and every cursor inside that block advances past it.  Each entry is
 * read once, and no memory is needed except the cursors.  Where all rows have
 * the same columns only the first is merged. */
#ifndef SPS_FORMAT_BLOCK_MERGE_H
#define SPS_FORMAT_BLOCK_MERGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_MERGE_MAX = 32 };   /* the largest b */

/* Row offsets and columns of a matrix, partitioned into blocks of b rows. */
typedef struct sps_block_rows {
    const int64_t *rowptr;
    const int32_t *col;
    int64_t nrow;
    int b;
} sps_block_rows;

typedef struct sps_block_merge {
    const int32_t *col;
    int b, rows;
    int64_t at[SPS_MERGE_MAX], end[SPS_MERGE_MAX];
} sps_block_merge;

void spsi_block_merge_open(sps_block_merge *m, const sps_block_rows *of,
                           int64_t block_row);
/* Returns the next block column, or -1 at the end. */
int32_t spsi_block_merge_next(sps_block_merge *m);

#ifdef __cplusplus
}
#endif

#endif
