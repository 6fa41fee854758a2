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
 * 4 x 2.  Each distinct column of the window has a slot, ascending; 8 slots are
 * a tile of 8 x 8 entries, up to 3 tiles a group.  A group of c tiles is a run
 * of 10 c words:
 *
 *   word[0 .. 2c - 1]  masks, one for each 4 slots: bit 4 r + s says that row
 *                      r of the window stores the column of slot s of them
 *   word[2c ..  ]      columns of the 8 c slots; those behind the window's last
 *                      column repeat it (so that padding reads what the window
 *                      reads anyway)
 *
 * Values stand in the order in which tensor cores want them: half tile by half
 * tile, bit by bit, so that 32 lanes find theirs by counting bits.  Number 0 is
 * a zero, for the lanes without one.
 *
 * Bytes, for d distinct columns: 8 (or 4) an entry for values, 40 ceil(d / 8)
 * of words instead of 4 an entry for columns; for a 27-point stencil 2.2 bytes
 * an entry, 1.7 with pairs of lines.
 *
 * Some windows have no words and are to be summed row by row from the csr: with
 * too few entries for their tiles, or with a row that is too long for one
 * owner. */
#ifndef SPS_ROW_WINDOWS_H
#define SPS_ROW_WINDOWS_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SPSI_WINDOW_ROWS = 8,
    SPSI_WINDOW_TILE = 8,      /* slots */
    SPSI_WINDOW_WORDS = 10,    /* of a tile: 2 masks and 8 columns */
    SPSI_WINDOW_GROUP = 3      /* tiles, at most */
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

/* A window with words: tiles tile .. of the next one's - 1, values likewise. */
typedef struct sps_window {
    int64_t value;
    int32_t tile;
    uint32_t rows;             /* 4 times its first row, plus how many follow
                                  that one in each of its runs */
} sps_window;

typedef struct sps_row_windows {
    int64_t count;             /* of windows with words */
    int64_t tiles, entries;    /* in them */
    int64_t bare;              /* of windows without */
    sps_window *at;            /* count + 1 */
    int32_t *word;             /* SPSI_WINDOW_WORDS a tile */
    uint32_t *rest;            /* rows, as above, of those without */
} sps_row_windows;

/* Twice `lead` rows are cut into ceil(lead / 4) windows. */
SPS_WINDOW_INLINE int64_t spsi_windows_of(int64_t nrow, int32_t lead)
{
    return (nrow + 2 * (int64_t)lead - 1) / (2 * (int64_t)lead) *
           ((lead + 3) / 4);
}
/* The rows of window w, as in sps_window; of fewer than 2^29. */
SPS_WINDOW_INLINE uint32_t spsi_window_rows(int32_t lead, int64_t w)
{
    const int32_t each = (lead + 3) / 4, j = (int32_t)(w % each) * 4;

    return (uint32_t)(4 * (w / each * 2 * lead + j) +
                      (lead - j < 4 ? lead - j - 1 : 3));
}
/* Row r of a window; nrow where there is none. */
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
/* Tiles of the next group, of `left` in the window: groups are as equal as
 * they can be, so that none of them is short. */
SPS_WINDOW_INLINE int32_t spsi_window_group(int32_t left)
{
    if (left == 4) return 2;
    return left < SPSI_WINDOW_GROUP ? left : SPSI_WINDOW_GROUP;
}
/* Whether its tiles hold enough. */
SPS_WINDOW_INLINE bool spsi_window_pays(int32_t distinct, int64_t entries,
                                        sps_window_rule rule)
{
    return distinct > 0 &&
           entries >= (int64_t)rule.fill * spsi_window_tiles(distinct);
}
/* Bytes of the arrays. */
SPS_WINDOW_INLINE size_t spsi_window_list_bytes(const sps_row_windows *w)
{
    return (size_t)(w->count + 1) * sizeof *w->at;
}
SPS_WINDOW_INLINE size_t spsi_window_word_bytes(const sps_row_windows *w)
{
    return (size_t)w->tiles * SPSI_WINDOW_WORDS * sizeof *w->word;
}
SPS_WINDOW_INLINE size_t spsi_window_rest_bytes(const sps_row_windows *w)
{
    return (size_t)w->bare * sizeof *w->rest;
}

/* The lead with the fewest distinct columns on a sample of windows; 4 where
 * none saves a tenth. */
int32_t spsi_window_lead(const sps_csr *A);

/* From a sorted host csr of fewer than 2^29 rows; arrays by spsi_new.  On
 * failure *w holds nothing. */
sps_status spsi_row_windows_make(sps_context *ctx, const sps_csr *A,
                                 sps_window_rule rule, sps_row_windows *w);
void spsi_row_windows_free(sps_context *ctx, sps_row_windows *w);

#ifdef __cplusplus
}
#endif
#endif
