/* SPDX-License-Identifier: BSD-3-Clause */
/* row_windows.h - windows of 8 rows with condensed columns and bitmaps, for
 * products on fp64 tensor cores.
 *
 * They are the row windows of TC-GNN (Wang et al., USENIX ATC 2023), used as
 * the operand with dimension 8 as in FlashSparse (Shi et al., PPoPP 2025), with
 * bitmaps instead of positions as in Acc-SpMM (Zhao et al., PPoPP 2025).
 *
 * A window consists of two runs of 4 rows, `lead` rows apart; with lead = 4
 * they are 8 consecutive rows.  On a grid, 4 points on each of two neighbouring
 * lines have fewer distinct columns than 8 points on one line: the 216 entries
 * of 8 rows of a 27-point stencil have 90 distinct columns if the rows are
 * consecutive, 72 if they are 4 points on each of two lines.  Each distinct
 * column of the window has a slot, in ascending order; 8 slots are a tile of 8
 * x 8 entries, and up to 3 tiles are a group.  A group of c tiles is described
 * by 10 c words (tile descriptors):
 *
 *   word[0 .. 2c - 1]  masks, one for each 4 slots: bit 4 r + s means that row
 *                      r of the window stores the column of slot s of these
 *   word[2c ..  ]      columns of the 8 c slots; those past the window's last
 *                      column repeat it (so that padding loads a row of X that
 *                      the window loads anyway)
 *
 * Values are stored in the order in which the tensor core operands need them:
 * by half tiles, within these by bits, so that each of the 32 lanes finds its
 * value by counting bits.  The first value is a zero, for lanes whose bit is
 * clear.
 *
 * Bytes, for d distinct columns: 8 (or 4) per entry for values, 40 ceil(d / 8)
 * for descriptors instead of 4 per entry for columns.  For a 27-point stencil
 * the descriptors take 2.2 bytes per entry, 1.7 with pairs of grid lines.
 *
 * Windows with too few entries per tile, or with a row too long for a single
 * warp, have no tiles and are summed row by row from the csr. */
#ifndef SPS_ROW_WINDOWS_H
#define SPS_ROW_WINDOWS_H

#include "matrix/windows.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPSI_WINDOW_ROWS = 8,
    SPSI_WINDOW_TILE = 8,      /* slots of a tile */
    SPSI_WINDOW_WORDS = 10,    /* words that describe a tile: 2 masks and 8
                                  columns */
    SPSI_WINDOW_GROUP = 3      /* largest number of tiles in a group */
};

/* Functions for host and device. */
#ifdef __CUDACC__
#define SPS_WINDOW_INLINE static __host__ __device__ inline
#else
#define SPS_WINDOW_INLINE static inline
#endif

/* Rule that selects the windows that have tiles. */
typedef struct sps_window_rule {
    int32_t longest;           /* rows with more entries are processed
                                  separately */
    int32_t fill;              /* smallest number of entries per tile, as the
                                  average of the window; 0 selects all
                                  windows */
    int32_t lead;              /* distance of the two runs of rows, at least
                                  4 */
} sps_window_rule;

/* A window with tiles, at[w].  Its tiles are at[w].tile .. at[w+1].tile - 1,
 * its values at[w].value .. at[w+1].value - 1. */
typedef struct sps_window {
    int64_t value;
    int32_t tile;
    uint32_t rows;             /* 4 times its first row, plus the number of rows
                                  after the first in each of its two runs */
} sps_window;

typedef struct sps_row_windows {
    int64_t count;             /* number of windows with tiles */
    int64_t tiles, entries;    /* number of tiles and of entries in these
                                  windows */
    int64_t bare;              /* number of windows without tiles */
    sps_window *at;            /* count + 1 elements */
    int32_t *word;             /* SPSI_WINDOW_WORDS words per tile */
    uint32_t *rest;            /* for each window without tiles, its `rows` as
                                  in sps_window */
} sps_row_windows;

/* Returns the number of windows: each 2 `lead` rows are divided into ceil(lead
 * / 4) windows. */
SPS_WINDOW_INLINE int64_t spsi_windows_of(int64_t nrow, int32_t lead)
{
    return (nrow + 2 * (int64_t)lead - 1) / (2 * (int64_t)lead) *
           ((lead + 3) / 4);
}
/* Returns the rows of window w, encoded as in sps_window; valid for fewer than
 * 2^29 rows. */
SPS_WINDOW_INLINE uint32_t spsi_window_rows(int32_t lead, int64_t w)
{
    const int32_t each = (lead + 3) / 4, j = (int32_t)(w % each) * 4;

    return (uint32_t)(4 * (w / each * 2 * lead + j) +
                      (lead - j < 4 ? lead - j - 1 : 3));
}
/* Returns row r of a window, or nrow if it does not exist. */
SPS_WINDOW_INLINE int64_t spsi_window_row(int64_t nrow, int32_t lead,
                                          uint32_t rows, int r)
{
    const int64_t i = (int64_t)(rows / 4) + r % 4 + r / 4 * lead;

    return r % 4 <= (int)(rows % 4) && i < nrow ? i : nrow;
}
SPS_WINDOW_INLINE int32_t spsi_window_tiles(int32_t distinct)
{
    return (distinct + SPSI_WINDOW_TILE - 1) / SPSI_WINDOW_TILE;
}
/* Returns the number of tiles of the next group if `left` tiles of the window
 * are left.  Groups are as equal as possible, so that none of them is short. */
SPS_WINDOW_INLINE int32_t spsi_window_group(int32_t left)
{
    if (left == 4) return 2;
    return left < SPSI_WINDOW_GROUP ? left : SPSI_WINDOW_GROUP;
}
/* Returns whether the tiles of a window have enough entries. */
SPS_WINDOW_INLINE bool spsi_window_pays(int32_t distinct, int64_t entries,
                                        sps_window_rule rule)
{
    return distinct > 0 &&
           entries >= (int64_t)rule.fill * spsi_window_tiles(distinct);
}
/* Limits of the choice of the lead by samples of windows.  Candidates are 4,
 * which is number 0, and the distances of the middle row from the columns of
 * its entries. */
enum {
    SPSI_LEADS = 65,           /* largest number of candidates */
    SPSI_LEAD_SAMPLE = 64,     /* windows of the sample for each candidate */
    SPSI_LEAD_ENTRIES = 4096,  /* largest number of entries examined of a row */
    SPSI_LEAD_ROWS = 64 * SPSI_WINDOW_ROWS  /* with fewer rows the lead is 4 */
};

/* Finds candidates from the columns of row nrow / 2, which are col[first ..
 * last-1]; returns their number. */
SPS_WINDOW_INLINE int spsi_window_leads(const int32_t *col, int64_t first,
                                        int64_t last, int64_t nrow,
                                        int64_t *lead)
{
    lead[0] = 4;
    return 1 + spsi_row_leads(col, first, last, nrow / 2, 1, 8, nrow / 4,
                              SPSI_LEADS - 1, lead + 1);
}
/* Returns the first row of window n of a sample.  The rows are a Weyl sequence,
 * since equidistant samples could coincide with the period of the grid. */
SPS_WINDOW_INLINE int64_t spsi_lead_row(int64_t nrow, int64_t lead, int n)
{
    const uint64_t span = (uint64_t)(nrow - lead - 4);
    const uint64_t step = (uint64_t)n * UINT64_C(0x9e3779b97f4a7c15);

    return (int64_t)((step >> 32) * span >> 32);
}
/* Returns the candidate with the fewest distinct columns, sum[c][0], for the
 * entries in its sample, sum[c][1]; returns 4 if none saves a tenth. */
int32_t spsi_window_choose(const int64_t *lead, int count,
                           const int64_t (*sum)[2]);

#ifdef __cplusplus
}
#endif
#endif
