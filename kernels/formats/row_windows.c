/* SPDX-License-Identifier: BSD-3-Clause */
/* row_windows.c - chooses the distance of the two runs of rows of a window by a
 * sample. */
#include "formats/row_windows.h"

#include "formats/window_merge.h"

enum { SAMPLE = 64, LEADS = 64, ENTRIES = 4096 };

/* Number of distinct columns divided by that of entries, in a sample of windows
 * whose second run is `lead` rows after the first.  Windows with fewer rows, if
 * 4 does not divide lead, count as if they were full: a factor of 4 ceil(lead /
 * 4) / lead. */
static double sample_lead(const sps_csr *A, int32_t lead)
{
    const int64_t span = A->nrow - lead - 4;
    int64_t distinct = 0, entries = 0, more;

    for (int n = 0; n < SAMPLE; n++) {
        /* Weyl sequence: equidistant samples could coincide with the period of
         * the grid. */
        const uint64_t step = (uint64_t)n * UINT64_C(0x9e3779b97f4a7c15);
        const int64_t i = (int64_t)((step >> 32) * (uint64_t)span >> 32);
        spsi_window_merge m;

        for (int r = 0; r < SPSI_WINDOW_ROWS; r++) {
            const int64_t row = i + r % 4 + r / 4 * lead;

            m.at[r] = A->col + A->rowptr[row];
            m.end[r] = A->col + A->rowptr[row + 1];
            if (m.end[r] - m.at[r] > ENTRIES) m.end[r] = m.at[r] + ENTRIES;
        }
        distinct += spsi_window_count(&m, &more);
        entries += more;
    }
    return entries == 0 ? 1.0 : (double)distinct / (double)entries *
           ((lead + 3) / 4 * 4) / lead;
}

int32_t spsi_window_lead(const sps_csr *A)
{
    const int64_t middle = A->nrow / 2;
    double least;
    int32_t lead = 4;

    if (A->nrow < 64 * SPSI_WINDOW_ROWS) return lead;
    least = 0.9 * sample_lead(A, lead);
    for (int64_t p = A->rowptr[middle], tried = 0;
         p < A->rowptr[middle + 1] && tried < LEADS; p++) {
        const int64_t d = A->col[p] - middle;
        double share;

        if (d < 8 || d > A->nrow / 4) continue;
        tried++;
        share = sample_lead(A, (int32_t)d);
        if (share >= least) continue;
        least = 0.95 * share; /* prefers nearer rows, which share caches */
        lead = (int32_t)d;
    }
    return lead;
}
