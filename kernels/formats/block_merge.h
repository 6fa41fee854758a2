/* SPDX-License-Identifier: BSD-3-Clause */
/* block_merge.h - the block columns of a block row, ascending: a merge of its b
 * sorted rows.  One cursor in each; the smallest block column is next, and
 * every cursor inside that block moves past it.  Each entry is looked at once;
 * no memory but the cursors. */
#ifndef SPS_FORMAT_BLOCK_MERGE_H
#define SPS_FORMAT_BLOCK_MERGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_MERGE_MAX = 32 };   /* the largest b */

/* Offsets and columns of a matrix, rows in order, in blocks of b. */
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
/* The next block column, -1 when there is none. */
int32_t spsi_block_merge_next(sps_block_merge *m);

#ifdef __cplusplus
}
#endif

#endif
