/* SPDX-License-Identifier: BSD-3-Clause */
/* row_windows.h - windows of 8 rows with condensed columns and bitmaps, for
 * products on fp64 tensor cores.
 *
 * Row windows after TC-GNN (Wang et al., USENIX ATC 2023), on the side of the
 * product that has 8 rows as in FlashSparse (Shi et al., PPoPP 2025), bitmaps
 * in place of positions as in Acc-SpMM (Zhao et al., PPoPP 2025).
 *
 * A window is two runs of 4 rows, `lead` rows apart; with lead = 4 they are 8
 * neighbours.  On a grid two lines share more columns than one: windows of a
 * 27-point stencil have 90 distinct columns of 216 as 8 neighbours, 72 as
 * 4 x 2.  Each distinct column of the window has a slot, ascending; 4 slots are
 * a tile of 8 x 4 entries, 32 slots a group.  A group is a run of words:
 *
 *   word[0 .. 7]   masks: bit s of mask r says that row r of the window
 *                  stores the column of slot s
 *   word[8 .. ]    columns of the slots: 32, in the last group of a window a
 *                  multiple of 4, filled up with the window's last column (so
 *                  that padding reads what the window reads anyway)
 *
 * The words of window w are word[first[w]] .. word[first[w + 1] - 1].  Values
 * stay in the csr: as both ascend, entry number e of a row is bit number e of
 * its masks.  So new values cost nothing, and the words replace the columns:
 * with d distinct columns they are 4 d + ceil(d / 32) 32 bytes, for a 27-point
 * stencil 2.15 bytes an entry (1.7 with pairs of lines) instead of 4.
 *
 * A window without words is to be summed row by row from the csr: one with too
 * few entries for its tiles, or with a row that is too long for one owner. */
#ifndef SPS_ROW_WINDOWS_H
#define SPS_ROW_WINDOWS_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPSI_WINDOW_ROWS = 8,
    SPSI_WINDOW_TILE = 4,      /* slots */
    SPSI_WINDOW_GROUP = 32,    /* slots */
    SPSI_WINDOW_WORDS = SPSI_WINDOW_ROWS + SPSI_WINDOW_GROUP /* of a group */
};

/* For host and device. */
#ifdef __CUDACC__
#define SPS_WINDOW_INLINE static __host__ __device__ inline
#else
#define SPS_WINDOW_INLINE static inline
#endif

/* Which windows get words. */
typedef struct sps_window_rule {
    int32_t longest;           /* rows of more entries are summed apart */
    int32_t fill;              /* entries of a tile, at the least, on average
                                  over the window's; 0: all windows */
    int32_t lead;              /* between its two runs of rows, at least 4 */
} sps_window_rule;

typedef struct sps_row_windows {
    int64_t count;             /* of windows */
    int64_t words;
    int64_t *first;            /* count + 1 */
    int32_t *word;
} sps_row_windows;

/* Twice `lead` rows are cut into ceil(lead / 4) windows. */
SPS_WINDOW_INLINE int64_t spsi_windows_of(int64_t nrow, int32_t lead)
{
    return (nrow + 2 * (int64_t)lead - 1) / (2 * (int64_t)lead) *
           ((lead + 3) / 4);
}
/* Row r of window w; nrow where there is none. */
SPS_WINDOW_INLINE int64_t spsi_window_row(int64_t nrow, int32_t lead,
                                          int32_t w, int r)
{
    const int32_t each = (lead + 3) / 4, j = w % each * 4 + r % 4;
    const int64_t i = (int64_t)(w / each) * 2 * lead + j + r / 4 * lead;

    return j < lead && i < nrow ? i : nrow;
}
/* Words of a window with so many distinct columns. */
SPS_WINDOW_INLINE int32_t spsi_window_words(int32_t distinct)
{
    const int32_t groups = (distinct + SPSI_WINDOW_GROUP - 1) /
                           SPSI_WINDOW_GROUP;
    const int32_t tiles = (distinct + SPSI_WINDOW_TILE - 1) / SPSI_WINDOW_TILE;

    return groups * SPSI_WINDOW_ROWS + tiles * SPSI_WINDOW_TILE;
}
/* Whether its tiles hold enough. */
SPS_WINDOW_INLINE bool spsi_window_pays(int32_t distinct, int64_t entries,
                                        sps_window_rule rule)
{
    const int32_t tiles = (distinct + SPSI_WINDOW_TILE - 1) / SPSI_WINDOW_TILE;

    return entries >= (int64_t)rule.fill * tiles;
}
/* Bytes of the arrays. */
SPS_WINDOW_INLINE size_t spsi_window_first_bytes(const sps_row_windows *w)
{
    return (size_t)(w->count + 1) * sizeof(int64_t);
}
SPS_WINDOW_INLINE size_t spsi_window_word_bytes(const sps_row_windows *w)
{
    return (size_t)w->words * sizeof(int32_t);
}

/* The lead with the fewest distinct columns on a sample of windows; 4 where
 * none saves a tenth. */
int32_t spsi_window_lead(const sps_csr *A);

/* From a sorted host csr of fewer than 2^31 windows; arrays by spsi_new.  On
 * failure *w holds nothing. */
sps_status spsi_row_windows_make(sps_context *ctx, const sps_csr *A,
                                 sps_window_rule rule, sps_row_windows *w);
void spsi_row_windows_free(sps_context *ctx, sps_row_windows *w);

#ifdef __cplusplus
}
#endif
#endif
