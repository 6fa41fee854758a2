/* SPDX-License-Identifier: BSD-3-Clause */
/* row_windows.c - chooses the lead, the distance of the two runs of rows of a
 * window (row_windows.h), by a sample. */
#include "formats/row_windows.h"

/* Returns the number of distinct columns divided by that of entries.  If lead
 * is not divisible by 4, some windows have fewer rows; they count as if they
 * were full, by a factor of 4 ceil(lead / 4) / lead. */
static double share(int64_t lead, const int64_t sum[2])
{
    return sum[1] == 0 ? 1.0 : (double)sum[0] / (double)sum[1] *
           (double)((lead + 3) / 4 * 4) / (double)lead;
}

int32_t spsi_window_choose(const int64_t *lead, int count,
                           const int64_t (*sum)[2])
{
    double least = 0.9 * share(lead[0], sum[0]);
    int best = 0;

    for (int c = 1; c < count; c++) {
        const double now = share(lead[c], sum[c]);

        if (now >= least) continue;
        /* Another lead must save 5 % more: nearer rows, which share caches, are
         * preferred. */
        least = 0.95 * now;
        best = c;
    }
    return (int32_t)lead[best];
}
