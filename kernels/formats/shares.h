/* SPDX-License-Identifier: BSD-3-Clause */
/* shares.h - the entries of a matrix divided into shares of at most `size`
 * entries, so that all groups of lanes have the same amount of work however
 * much row lengths differ: the nonzero split of merge-based products (Merrill
 * and Garland, SC 2016), here with rows kept whole if they fit.
 *
 * A share is several whole rows, or a piece of one row of more than `size`
 * entries.  `team` shares form a block, which one thread block processes.  The
 * pieces of a row are in one block and are summed there, except for rows of
 * more than size * team entries: such a row begins a block and continues in the
 * next ones.  These blocks form a span; each of them stores a partial sum, and
 * the partial sums are added in order.  Rows are numbered without the empty
 * ones, which are listed separately.
 *
 * Invariants: shares are in ascending order; every entry is in one share; the
 * pieces of a row are consecutive and differ by at most one entry; blocks are
 * filled up with empty shares. */
#ifndef SPS_SHARES_H
#define SPS_SHARES_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPS_SHARE_MOST = 32,       /* largest number of entries: the bits of
                                  `ends` */
    SPS_SHARE_TEAM = 128,      /* largest number of shares in a block: limited
                                  by the bits for pieces in `what` */
    SPS_SHARE_SPANS = (1 << 17) - 1,
    SPS_SHARE_JOINS = 1 << 14  /* bit of `what` */
};

/* A share: 16 bytes, one vector load.  ends: bit t is set if entry first + t is
 * the last one of a whole row.  what: from the lowest bit on, number of entries
 * (6 bits), pieces (8), joins (1), span (17); see the functions below. */
typedef struct sps_share {
    int32_t first, row;        /* index of the first entry; number of the first
                                  row, not counting empty rows */
    uint32_t ends, what;
} sps_share;

/* A row that extends over `count` blocks, whose partial sums have the indices
 * first .. first + count - 1. */
typedef struct sps_share_span {
    int32_t first, count, block;
} sps_share_span;

typedef struct sps_shares {
    int32_t size, team;
    int64_t count;             /* number of shares, a multiple of team */
    int64_t spans, parts, rows, empty;
    sps_share *share;
    sps_share_span *span;
    int32_t *row;              /* `rows` elements: the rows that have entries;
                                  NULL if all rows have */
    int32_t *no_entries;       /* `empty` elements: the rows without entries */
} sps_shares;

#ifdef __CUDACC__
#define SPS_SHARES_BOTH static __host__ __device__ inline
#else
#define SPS_SHARES_BOTH static inline
#endif

SPS_SHARES_BOTH int spsi_share_entries(uint32_t what) { return what & 63; }
/* Returns, for the first piece of a row in a block, the number of its pieces in
 * that block; 0 for all other shares. */
SPS_SHARES_BOTH int spsi_share_pieces(uint32_t what) { return what >> 6 & 255; }
/* Returns whether some share of the block is a piece. */
SPS_SHARES_BOTH bool spsi_share_joins(uint32_t what) { return what >> 14 & 1; }
/* Returns the index of the span, or -1 if the share belongs to none. */
SPS_SHARES_BOTH int spsi_share_span(uint32_t what)
{
    return (int)(what >> 15) - 1;
}

/* Divides rows into shares when called for the rows in order.  The open share
 * has *open entries (`size` if no row can be added).  Adds a row of `length` <=
 * size entries; returns whether that row begins another share. */
SPS_SHARES_BOTH bool spsi_share_opens(int32_t *open, int32_t length,
                                      int32_t size)
{
    const bool opens = *open + length > size;

    *open = opens ? length : *open + length;
    return opens;
}
/* Returns the number of empty shares before the pieces of a row, if `used` <
 * team shares of the block are in use: pieces that do not fit begin the next
 * block. */
SPS_SHARES_BOTH int32_t spsi_share_gap(int32_t used, int32_t pieces,
                                       int32_t team)
{
    return used > 0 && pieces > team - used ? team - used : 0;
}
/* Returns piece n of row number `row`, which has `length` entries from `first`
 * on; span: its index plus 1, or 0.  Pieces differ by at most one entry, the
 * longer ones come first. */
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
