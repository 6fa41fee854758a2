/* SPDX-License-Identifier: BSD-3-Clause */
/* row_heads.h - the rows of a CSR matrix as marks on its entries, so that
 * entries can be split evenly over workers, whatever the rows.
 *
 * A bit for each entry says whether it is the first of its row; rows without
 * entries have no bit, so the others are listed, and behind them those.
 * The row of entry p is row[r], r = marks on entries 0 .. p, less 1. */
#ifndef SPS_ROW_HEADS_H
#define SPS_ROW_HEADS_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_HEADS_PIECE 1024   /* entries; the words are whole pieces */

typedef struct sps_row_heads {
    int64_t nrow, nnz;
    int64_t filled;      /* rows with entries */
    uint64_t *heads;     /* bit p % 64 of word p / 64 */
    int32_t *row;        /* nrow: those with entries, then the others */
} sps_row_heads;

static inline int64_t spsi_row_heads_words(int64_t nnz)
{
    return (nnz + SPS_HEADS_PIECE - 1) / SPS_HEADS_PIECE *
           (SPS_HEADS_PIECE / 64);
}

/* Fewer than 2^31 rows.  On failure *h holds nothing. */
sps_status spsi_row_heads_make(sps_context *ctx, const sps_csr *A,
                               sps_row_heads *h);
/* The offsets again: rowptr of nrow + 1. */
void spsi_row_heads_expand(const sps_row_heads *h, int64_t *rowptr);
void spsi_row_heads_free(sps_context *ctx, sps_row_heads *h);

#ifdef __cplusplus
}
#endif
#endif
