/* SPDX-License-Identifier: BSD-3-Clause */
/* tca.h - the work list of TCA-SpMM, which assigns rows to the warps of teams
 * of 8 warps, and the matricisation, which turns a sparse dot product into a
 * product of small matrices on tensor cores.
 *
 * A row of up to 64 entries is divided into g = 1, 2, 4 or 8 chunks of 8
 * entries (bins 8, 16, 32, 64) and processed by g neighbouring warps of one
 * team; so each warp of the team has the same number of matrix products.
 * Longer rows are divided into pieces of up to 1024 entries, each of which is
 * processed by a whole team, 64 entries at a time; if there are several pieces,
 * their partial sums are added in order.  Empty rows are listed separately.
 *
 * The list does not contain entries: warps read columns and values from the CSR
 * arrays, so new values cost nothing.  Teams are packed within windows of 256
 * rows: in a window the rows with the most warps come first, otherwise the
 * order of rows is kept; so the rows of a team are close to each other, and
 * only the last team of a window has idle warps.
 *
 * Of the per-warp arrays of the method only slot (row of the warp) is stored;
 * the number of warps of that row is spsi_tca_chunks of its length, and the
 * warp's index within the row is its position in the team modulo that, as rows
 * begin at multiples of it. */
#ifndef SPS_FORMATS_TCA_H
#define SPS_FORMATS_TCA_H

#include "matrix/csr.h"

#ifdef __CUDACC__
#define SPS_TCA_INLINE static __host__ __device__ __forceinline__
#else
#define SPS_TCA_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPSI_TCA_TEAM = 8,       /* warps of a team */
    SPSI_TCA_WINDOW = 256,   /* rows that are packed together */
    SPSI_TCA_STEP = 64,      /* entries that a team processes at a time */
    SPSI_TCA_PIECE = 1024    /* largest number of entries of a piece */
};

/* A part of a row of more than 64 entries. */
typedef struct spsi_tca_piece {
    int64_t begin;           /* index of its first entry */
    int32_t row, length;
    int64_t partial;         /* index of its partial sums, or -1 if the piece is
                                the whole row */
} spsi_tca_piece;

/* A row of several pieces, whose partial sums have indices first .. first +
 * count - 1. */
typedef struct spsi_tca_split {
    int64_t first;
    int32_t row, count;
} spsi_tca_split;

/* Numbers of items, in total or in the windows before one. */
typedef struct spsi_tca_sizes {
    int64_t teams, pieces, splits, partials, empties;
} spsi_tca_sizes;

typedef struct spsi_tca {
    spsi_tca_sizes n;
    int32_t *slot;           /* 8 per team: the row of each warp, or -1 for an
                                idle warp */
    spsi_tca_piece *piece;
    spsi_tca_split *split;
    int32_t *empty;          /* the rows without entries */
} spsi_tca;

/* ---------------------------------------------------------- rows and bins */

/* Returns the number of chunks, and of warps, of a row of 1 .. 64 entries; 8
 * for longer ones. */
SPS_TCA_INLINE int spsi_tca_chunks(int64_t length)
{
    return length <= 8 ? 1 : length <= 16 ? 2 : length <= 32 ? 4 : 8;
}

/* Returns the number of pieces of a row, or 0 for a row of at most 64 entries,
 * which warps of one team process at once. */
SPS_TCA_INLINE int32_t spsi_tca_pieces(int64_t length)
{
    return length <= SPSI_TCA_STEP
               ? 0 : (int32_t)((length + SPSI_TCA_PIECE - 1) / SPSI_TCA_PIECE);
}

/* Returns the entries of each piece except the last: multiples of 64, of equal
 * size. */
SPS_TCA_INLINE int32_t spsi_tca_share(int64_t length, int32_t pieces)
{
    int64_t steps = (length + SPSI_TCA_STEP - 1) / SPSI_TCA_STEP;

    return (int32_t)((steps + pieces - 1) / pieces) * SPSI_TCA_STEP;
}

/* ---------------------------------------------------------- matricisation
 *
 * One m16n8k8 product is O = D S, with lane number 4 gid + t.  S (8 x 8) has
 * chunk q of the row in its column q.  Row r of D holds, for one column of X,
 * the 8 entries that chunk q = r mod g uses; so O[r][q] is that chunk's part of
 * the sum, and the rest of O, where chunks and columns do not match, is never
 * used: an overflow there has no effect.  A lane holds rows gid and gid + 8 of
 * D; these columns of X are adjacent, so that the lane can load both at
 * once. */

/* Returns the number of columns of X per product: 16, 8, 4 or 2. */
SPS_TCA_INLINE int spsi_tca_width(int g) { return 16 / g; }

/* Returns the chunk of rows gid and gid + 8. */
SPS_TCA_INLINE int spsi_tca_chunk(int g, int gid) { return gid & (g - 1); }

/* Returns the column of X of row gid within the product; row gid + 8 has the
 * next one. */
SPS_TCA_INLINE int spsi_tca_column(int g, int gid) { return 2 * (gid / g); }

/* Lane 4 gid + t holds O[gid][2t], O[gid][2t + 1] and the same of gid + 8.
 * These functions tell whether that includes the chunk of its rows, and in
 * which of the two elements of a row. */
SPS_TCA_INLINE int spsi_tca_diagonal(int g, int gid, int t)
{
    return t == spsi_tca_chunk(g, gid) / 2;
}
SPS_TCA_INLINE int spsi_tca_register(int g, int gid)
{
    return spsi_tca_chunk(g, gid) & 1;
}

/* The partial trace: chunk q's part is in lane 4 gid + q / 2, so an odd chunk's
 * is 4 lanes above the even one's, and pairs of chunks are 9 apart (two rows of
 * 4 lanes and one lane): adding the value from this many lanes above, in steps
 * s = 0 .. log2(g) - 1, leaves the sum in the lane of chunk 0. */
SPS_TCA_INLINE int spsi_tca_distance(int s)
{
    return s == 0 ? 4 : s == 1 ? 9 : 18;
}

/* --------------------------------------- without a trace, and narrow blocks
 *
 * If blocks are wide enough, D is 16 columns of one chunk and every column of S
 * holds that chunk's values; rows gid and gid + 8 are adjacent again.  Then all
 * columns of O are equal, and the chunks of a row are added in the
 * accumulators.
 *
 * For blocks of up to 16 / G columns, G = 2 or 4 chunks share D: lanes gid hold
 * chunk gid / (8 / G), of D and of S, and O[gid][q] is valid if columns q
 * belong to the same chunk, that is for lane t = chunk 4 / G. */
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
/* Returns the number of lanes from chunk c's lane to that of chunk c + step. */
SPS_TCA_INLINE int spsi_tca_narrow_distance(int G, int step)
{
    return G == 2 ? 18 : 9 * step;
}

#ifdef __cplusplus
}
#endif
#endif
