/* SPDX-License-Identifier: BSD-3-Clause */
/* tca.h - the work list of TCA-SpMM: which warp of which team of 8 takes
 * which row, and the matricisation that turns a sparse dot product into
 * a product of small matrices on tensor cores.
 *
 * A row of up to 64 entries is cut into g = 1, 2, 4 or 8 chunks of 8 entries
 * (bins 8, 16, 32, 64) and belongs to g neighbouring warps of one team; so
 * each warp of the team has the same number of matrix products to do.  Longer
 * rows are cut into pieces of up to 1024 entries, each of which belongs to a
 * whole team that takes 64 entries at a time; more than one piece leave
 * partial sums, which are added in their order.  Empty rows are listed apart.
 *
 * The list holds no entries: warps read columns and values from the CSR
 * arrays, so new values cost nothing.  Teams are packed by windows of 256
 * rows: within a window the rows of most warps come first, else the order of
 * rows is kept; rows of a team are therefore near each other, and no team but
 * the last of a window has idle warps.
 *
 * The published arrays for each warp are slot (row of the warp); warps of that
 * row is spsi_tca_chunks of its length, and the warp's number within the row is
 * its place in the team modulo that, as rows begin at multiples of it. */
#ifndef SPS_FORMATS_TCA_H
#define SPS_FORMATS_TCA_H

#include "csr.h"

#ifdef __CUDACC__
#define SPS_TCA_INLINE static __host__ __device__ __forceinline__
#else
#define SPS_TCA_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPSI_TCA_TEAM = 8,       /* warps */
    SPSI_TCA_WINDOW = 256,   /* rows packed together */
    SPSI_TCA_STEP = 64,      /* entries that a team takes at a time */
    SPSI_TCA_PIECE = 1024    /* entries of a piece at most */
};

/* A part of a row of more than 64 entries. */
typedef struct spsi_tca_piece {
    int64_t begin;           /* first entry */
    int32_t row, length;
    int64_t partial;         /* number of its partial sums; -1: all the row */
} spsi_tca_piece;

/* A row of several pieces: partial sums first .. first + count - 1. */
typedef struct spsi_tca_split {
    int64_t first;
    int32_t row, count;
} spsi_tca_split;

/* How much there is of each, and of what the windows before one have. */
typedef struct spsi_tca_sizes {
    int64_t teams, pieces, splits, partials, empties;
} spsi_tca_sizes;

typedef struct spsi_tca {
    spsi_tca_sizes n;
    int32_t *slot;           /* 8 for each team: row, or -1: an idle warp */
    spsi_tca_piece *piece;
    spsi_tca_split *split;
    int32_t *empty;          /* rows without entries */
} spsi_tca;

/* Bytes of the arrays. */
SPS_TCA_INLINE size_t spsi_tca_slot_bytes(const spsi_tca *w)
{
    return (size_t)w->n.teams * SPSI_TCA_TEAM * sizeof(int32_t);
}
SPS_TCA_INLINE size_t spsi_tca_piece_bytes(const spsi_tca *w)
{
    return (size_t)w->n.pieces * sizeof(spsi_tca_piece);
}
SPS_TCA_INLINE size_t spsi_tca_split_bytes(const spsi_tca *w)
{
    return (size_t)w->n.splits * sizeof(spsi_tca_split);
}
SPS_TCA_INLINE size_t spsi_tca_empty_bytes(const spsi_tca *w)
{
    return (size_t)w->n.empties * sizeof(int32_t);
}

/* ---------------------------------------------------------- rows and bins */

/* Chunks, and warps, of a row of 1 .. 64 entries; 8 for longer ones. */
SPS_TCA_INLINE int spsi_tca_chunks(int64_t length)
{
    return length <= 8 ? 1 : length <= 16 ? 2 : length <= 32 ? 4 : 8;
}

/* Pieces of a row; none for one that fits a team. */
SPS_TCA_INLINE int32_t spsi_tca_pieces(int64_t length)
{
    return length <= SPSI_TCA_STEP
               ? 0 : (int32_t)((length + SPSI_TCA_PIECE - 1) / SPSI_TCA_PIECE);
}

/* Entries of each piece but the last: whole steps, shared out evenly. */
SPS_TCA_INLINE int32_t spsi_tca_share(int64_t length, int32_t pieces)
{
    int64_t steps = (length + SPSI_TCA_STEP - 1) / SPSI_TCA_STEP;

    return (int32_t)((steps + pieces - 1) / pieces) * SPSI_TCA_STEP;
}

/* ---------------------------------------------------------- matricisation
 *
 * One m16n8k8 product O = D S, lane = 4 gid + t.  S (8 x 8) holds chunk q of
 * the row in its column q.  Row r of D holds, of one column of X, the 8
 * entries that chunk q = r mod g asks for; so O[r][q] is that chunk's share of
 * the sum, and the rest of O, where chunks and columns do not belong together,
 * is never looked at: whatever overflows there stays there.  A lane holds rows
 * gid and gid + 8 of D; they are neighbours in X, so that it can load both at
 * once. */

/* Columns of X that one product serves: 16, 8, 4, 2. */
SPS_TCA_INLINE int spsi_tca_width(int g) { return 16 / g; }

/* Chunk of rows gid and gid + 8. */
SPS_TCA_INLINE int spsi_tca_chunk(int g, int gid) { return gid & (g - 1); }

/* Column of row gid within the product; row gid + 8 has the next one. */
SPS_TCA_INLINE int spsi_tca_column(int g, int gid) { return 2 * (gid / g); }

/* Lane 4 gid + t holds O[gid][2t], O[gid][2t + 1] and the same of gid + 8.
 * Whether it holds the chunk of its rows, and in which of the two. */
SPS_TCA_INLINE int spsi_tca_diagonal(int g, int gid, int t)
{
    return t == spsi_tca_chunk(g, gid) / 2;
}
SPS_TCA_INLINE int spsi_tca_register(int g, int gid)
{
    return spsi_tca_chunk(g, gid) & 1;
}

/* The partial trace: chunk q's share sits in lane 4 gid + q / 2, so an odd
 * chunk's is 4 lanes above the even one's, and pairs of chunks are 9 apart
 * (two rows of 4 lanes and one lane): adding what lies this many lanes above,
 * in steps s = 0 .. log2(g) - 1, leaves the sum in the lane of chunk 0. */
SPS_TCA_INLINE int spsi_tca_distance(int s)
{
    return s == 0 ? 4 : s == 1 ? 9 : 18;
}

/* --------------------------------------- the same without a trace, and narrow
 *
 * Where blocks are wide enough, D is 16 columns of one chunk and every column
 * of S that chunk's values; rows gid and gid + 8 are neighbours again.  Then
 * all columns of O are alike, and chunks of a row are added in place.
 *
 * For blocks of up to 16 / G columns, G = 2 or 4 chunks share D: lanes gid hold
 * chunk gid / (8 / G), of D and of S, and O[gid][q] is good where columns q
 * belong to the same chunk, so for lane t = chunk 4 / G. */
SPS_TCA_INLINE int spsi_tca_narrow_chunk(int G, int gid)
{
    return gid / (8 / G);
}
SPS_TCA_INLINE int spsi_tca_narrow_column(int G, int gid)
{
    return 2 * (gid % (8 / G));
}
SPS_TCA_INLINE int spsi_tca_narrow_lane(int G, int gid)
{
    return spsi_tca_narrow_chunk(G, gid) * (4 / G);
}
/* From chunk c's lane to that of chunk c + step. */
SPS_TCA_INLINE int spsi_tca_narrow_distance(int G, int step)
{
    return G == 2 ? 18 : 9 * step;
}

/* ------------------------------------------------------------------- host */

/* The work list of a host matrix; arrays by spsi_new. */
sps_status spsi_tca_build(sps_context *ctx, int64_t nrow,
                          const int64_t *rowptr, spsi_tca *w);
void spsi_tca_clear(sps_context *ctx, spsi_tca *w);

#ifdef __cplusplus
}
#endif
#endif
