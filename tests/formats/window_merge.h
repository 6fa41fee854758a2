/* SPDX-License-Identifier: BSD-3-Clause */
/* window_merge.h - the distinct columns of 8 sorted rows, in ascending order:
 * each step takes the smallest next column from all rows that store it. */
#ifndef SPS_WINDOW_MERGE_H
#define SPS_WINDOW_MERGE_H

#include "formats/row_windows.h"

/* The remaining entries of the rows of a window. */
typedef struct spsi_window_merge {
    const int32_t *at[SPSI_WINDOW_ROWS], *end[SPSI_WINDOW_ROWS];
} spsi_window_merge;

/* The next column; *rows: bit r is set if row r stores it, 0 at the end. */
static inline int32_t spsi_window_next(spsi_window_merge *m, uint32_t *rows)
{
    int32_t least = INT32_MAX;

    *rows = 0;
    for (int r = 0; r < SPSI_WINDOW_ROWS; r++)
        if (m->at[r] < m->end[r] && *m->at[r] < least) least = *m->at[r];
    for (int r = 0; r < SPSI_WINDOW_ROWS; r++)
        if (m->at[r] < m->end[r] && *m->at[r] == least) {
            m->at[r]++;
            *rows |= UINT32_C(1) << r;
        }
    return least;
}

/* Number of distinct columns of the remaining entries, and of the entries. */
static inline int32_t spsi_window_count(spsi_window_merge *m,
                                        int64_t *entries)
{
    int32_t distinct = 0;
    uint32_t rows;

    for (*entries = 0;; distinct++) {
        spsi_window_next(m, &rows);
        if (rows == 0) return distinct;
        *entries += __builtin_popcount(rows);
    }
}

#endif
