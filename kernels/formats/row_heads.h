/* SPDX-License-Identifier: BSD-3-Clause */
/* row_heads.h - the rows of a CSR matrix represented by bits on its entries, so
 * that entries can be divided into equal ranges regardless of rows.
 *
 * One bit per entry marks the first entry of a row.  Rows without entries have
 * no bit; therefore `row` lists the rows with entries, followed by those
 * without.  The row of entry p is row[r], r = number of bits set among the
 * entries 0 .. p, less 1. */
#ifndef SPS_ROW_HEADS_H
#define SPS_ROW_HEADS_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPS_HEADS_PIECE 1024   /* entries in 16 words; the array of words is
                                  padded to a multiple of 16 */

typedef struct sps_row_heads {
    int64_t nrow, nnz;
    int64_t filled;      /* number of rows with entries */
    uint64_t *heads;     /* entry p is bit p % 64 of word p / 64 */
    int32_t *row;        /* nrow elements: the rows with entries, then the
                            others */
} sps_row_heads;

static inline int64_t spsi_row_heads_words(int64_t nnz)
{
    return (nnz + SPS_HEADS_PIECE - 1) / SPS_HEADS_PIECE *
           (SPS_HEADS_PIECE / 64);
}

#ifdef __cplusplus
}
#endif
#endif
