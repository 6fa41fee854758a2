/* SPDX-License-Identifier: BSD-3-Clause */
/* block_merge.c - computes the block columns of a block row by merging its
 * rows. */
#include "formats/block_merge.h"

#include <stdbool.h>
#include <string.h>

/* Whether all rows have the columns of the first, as those of a node have in
 * most matrices of finite elements. */
static bool alike(const sps_block_merge *m)
{
    const int64_t count = m->end[0] - m->at[0];

    for (int r = 1; r < m->rows; r++)
        if (m->end[r] - m->at[r] != count ||
            memcmp(m->col + m->at[r], m->col + m->at[0],
                   (size_t)count * sizeof *m->col) != 0)
            return false;
    return true;
}

void spsi_block_merge_open(sps_block_merge *m, const sps_block_rows *of,
                           int64_t block_row)
{
    const int64_t first = block_row * of->b, left = of->nrow - first;

    m->col = of->col;
    m->b = of->b;
    m->rows = left < of->b ? (int)left : of->b;
    for (int r = 0; r < m->rows; r++) {
        m->at[r] = of->rowptr[first + r];
        m->end[r] = of->rowptr[first + r + 1];
    }
    if (alike(m)) m->rows = 1; /* the blocks of one are those of all */
}

int32_t spsi_block_merge_next(sps_block_merge *m)
{
    int32_t next = INT32_MAX;
    int64_t end;

    for (int r = 0; r < m->rows; r++)
        if (m->at[r] < m->end[r] && m->col[m->at[r]] < next)
            next = m->col[m->at[r]];
    if (next == INT32_MAX) return -1;
    next /= m->b;
    end = ((int64_t)next + 1) * m->b;
    for (int r = 0; r < m->rows; r++) {
        /* Entries of a full block need not be looked at one by one. */
        if (m->end[r] - m->at[r] >= m->b && m->col[m->at[r] + m->b - 1] < end)
            m->at[r] += m->b;
        while (m->at[r] < m->end[r] && m->col[m->at[r]] < end) m->at[r]++;
    }
    return next;
}
