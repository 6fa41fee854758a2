/* SPDX-License-Identifier: BSD-3-Clause */
/* shares.h - the entries of a matrix divided into shares of at most `size`, so
 * that all groups of lanes have the same amount of work however row lengths
 * differ: the nonzero split of merge-based products (Merrill and Garland, SC
 * 2016), here with rows kept whole if they fit.
 *
 * A share is several whole rows, or a piece of one row of more than `size`
 * entries.  `team` shares are a block; the pieces of a row are in one block and
 * are summed there, except for rows of more than size * team entries, which
 * begin a block and continue in the next ones (a span): each block of a span
 * stores a partial sum, and these are added in order.  Rows are numbered
 * without the empty ones, which are listed separately.
 *
 * Invariants: shares are in ascending order; every entry is in one share; the
 * pieces of a row are consecutive and differ by at most one entry; blocks are
 * filled with empty shares. */
#ifndef SPS_SHARES_H
#define SPS_SHARES_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPS_SHARE_MOST = 32,       /* maximal entries: bits of ends */
    SPS_SHARE_TEAM = 128,      /* maximal shares of a block: limited by the bits
                                  of pieces */
    SPS_SHARE_SPANS = (1 << 17) - 1,
    SPS_SHARE_JOINS = 1 << 14  /* bit of what */
};

/* 16 bytes, one vector load.  ends: bit t is set if entry first + t is the last
 * of a whole row.  what: entries (6 bits), pieces (8), joins (1), span (17). */
typedef struct sps_share {
    int32_t first, row;        /* row: number of the first row, not counting
                                  empty ones */
    uint32_t ends, what;
} sps_share;

/* A row that extends over `count` blocks, whose partial sums are first .. first
 * + count - 1. */
typedef struct sps_share_span {
    int32_t first, count, block;
} sps_share_span;

typedef struct sps_shares {
    int32_t size, team;
    int64_t count;             /* number of shares, a multiple of team */
    int64_t spans, parts, rows, empty;
    sps_share *share;
    sps_share_span *span;
    int32_t *row;              /* rows: those with entries; NULL: all */
    int32_t *no_entries;       /* empty: rows without entries */
} sps_shares;

#ifdef __CUDACC__
#define SPS_SHARES_BOTH static __host__ __device__ inline
#else
#define SPS_SHARES_BOTH static inline
#endif

SPS_SHARES_BOTH int spsi_share_entries(uint32_t what) { return what & 63; }
/* For the first piece of a row in a block the number of its pieces in that
 * block, 0 for all other shares. */
SPS_SHARES_BOTH int spsi_share_pieces(uint32_t what) { return what >> 6 & 255; }
/* Whether some share of the block is a piece. */
SPS_SHARES_BOTH bool spsi_share_joins(uint32_t what) { return what >> 14 & 1; }
/* Index of the span, -1: none. */
SPS_SHARES_BOTH int spsi_share_span(uint32_t what)
{
    return (int)(what >> 15) - 1;
}

/* The division into shares, applied to the rows in order.  The open share holds
 * *open entries (`size` if no row can be added).  Adds a row of `length` <=
 * size entries; returns whether that row opens another share. */
SPS_SHARES_BOTH bool spsi_share_opens(int32_t *open, int32_t length,
                                      int32_t size)
{
    const bool opens = *open + length > size;

    *open = opens ? length : *open + length;
    return opens;
}
/* Number of empty shares before the pieces of a row, if `used` < team shares of
 * the block are taken: pieces that do not fit begin the next block. */
SPS_SHARES_BOTH int32_t spsi_share_gap(int32_t used, int32_t pieces,
                                       int32_t team)
{
    return used > 0 && pieces > team - used ? team - used : 0;
}
/* Piece n of row number `row`, of `length` entries from `first` on; span: its
 * index plus 1, or 0.  Pieces differ by at most one entry, the longer ones come
 * first. */
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

#ifdef __cplusplus
}
#endif
#endif
