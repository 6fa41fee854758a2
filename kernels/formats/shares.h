/* SPDX-License-Identifier: BSD-3-Clause */
/* shares.h - the entries of a matrix dealt out in shares of at most `size`,
 * so that no worker has more to do than another however rows differ: the
 * nonzero split of merge-based products (Merrill and Garland, SC 2016), here
 * with rows kept whole where they fit.
 *
 * A share is some whole rows, or a piece of one row of more than `size`
 * entries.  `team` shares make a block; the pieces of a row lie in one block
 * and are summed there, but for rows of more than size * team entries, which
 * begin a block and go on through the next ones: each block of such a span
 * leaves a part, and the parts are summed in order.  Rows are counted without
 * the empty ones, which are listed apart.
 *
 * Invariants: shares ascend; every entry is in one share; the pieces of a row
 * follow each other and differ by at most one entry; blocks are filled up with
 * shares of no entries. */
#ifndef SPS_SHARES_H
#define SPS_SHARES_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPS_SHARE_MOST = 32,       /* entries: bits of ends */
    SPS_SHARE_TEAM = 128,      /* shares of a block, at most: bits of pieces */
    SPS_SHARE_SPANS = (1 << 17) - 1,
    SPS_SHARE_JOINS = 1 << 14  /* in what */
};

/* 16 bytes, one load.  ends: bit t is set when entry first + t is the last of
 * a whole row.  what: entries (6 bits), pieces (8), joins (1), span (17). */
typedef struct sps_share {
    int32_t first, row;        /* row: number of the first, not counting empty
                                  ones */
    uint32_t ends, what;
} sps_share;

/* A row of several blocks, which leave parts first .. first + count - 1. */
typedef struct sps_share_span {
    int32_t first, count, block;
} sps_share_span;

typedef struct sps_shares {
    int32_t size, team;
    int64_t count;             /* of shares: whole blocks */
    int64_t spans, parts, rows, empty;
    sps_share *share;
    sps_share_span *span;
    int32_t *row;              /* rows: those with entries; NULL: all */
    int32_t *no_entries;       /* empty: the others */
} sps_shares;

#ifdef __CUDACC__
#define SPS_SHARES_BOTH static __host__ __device__ inline
#else
#define SPS_SHARES_BOTH static inline
#endif

SPS_SHARES_BOTH int spsi_share_entries(uint32_t what) { return what & 63; }
/* Pieces of this row from here to the end of the block, where this is the
 * first of them; else 0. */
SPS_SHARES_BOTH int spsi_share_pieces(uint32_t what) { return what >> 6 & 255; }
/* Whether some share of the block is a piece. */
SPS_SHARES_BOTH bool spsi_share_joins(uint32_t what) { return what >> 14 & 1; }
/* Number of the span, -1: none. */
SPS_SHARES_BOTH int spsi_share_span(uint32_t what)
{
    return (int)(what >> 15) - 1;
}

/* The rules, for whoever deals: in order of rows, with what is known of the
 * rows before.  An open share holds *open entries, `size` of them when nothing
 * can join; whether a row of at most `size` entries opens another one. */
SPS_SHARES_BOTH bool spsi_share_opens(int32_t *open, int32_t length,
                                      int32_t size)
{
    const bool opens = *open + length > size;

    *open = opens ? length : *open + length;
    return opens;
}
/* Shares left without entries in front of the pieces of a row, when `used` <
 * team of this block are taken: pieces that do not fit begin the next one. */
SPS_SHARES_BOTH int32_t spsi_share_gap(int32_t used, int32_t pieces,
                                       int32_t team)
{
    return used > 0 && pieces > team - used ? team - used : 0;
}
/* Piece n of row number `row`, of `length` entries from `first` on; span: its
 * number plus 1, or 0.  Pieces differ by one entry at most, the longer ones
 * come first. */
SPS_SHARES_BOTH sps_share spsi_share_piece(int32_t n, int32_t pieces,
                                           int32_t first, int32_t length,
                                           int32_t row, int32_t team,
                                           uint32_t span)
{
    const int32_t least = length / pieces, longer = length % pieces;
    const int32_t left = pieces - n, here = left < team ? left : team;
    sps_share s;

    s.first = first + n * least + (n < longer ? n : longer);
    s.row = row;
    s.ends = 0;
    s.what = (uint32_t)(least + (n < longer)) |
             (uint32_t)(n % team == 0 ? here : 0) << 6 | span << 15;
    return s;
}

/* How many of what there would be; *s gets the numbers and no arrays.  rowptr:
 * of fewer than 2^31 entries; size and team within the limits above. */
void spsi_shares_tally(int64_t nrow, const int64_t *rowptr, int32_t size,
                       int32_t team, sps_shares *s);
/* The arrays of what was counted.  SPS_EUNFIT: 2^17 spans or more.  On failure
 * *s holds nothing. */
sps_status spsi_shares_fill(sps_context *ctx, int64_t nrow,
                            const int64_t *rowptr, sps_shares *s);
void spsi_shares_free(sps_context *ctx, sps_shares *s);

#ifdef __cplusplus
}
#endif
#endif
