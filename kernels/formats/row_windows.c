/* SPDX-License-Identifier: BSD-3-Clause */
/* row_windows.c - condenses the columns of windows of 8 rows on the host; what
 * the device's builder (kernels/cuda/window_build.cu) must equal.
 *
 * The 8 sorted rows of a window are merged: each step takes the least column
 * that stands at the head of a row, from all rows that store it.  One pass
 * counts columns, a second writes words; windows are independent, so the
 * result is the same for any number of threads. */
#include "kernels/formats/row_windows.h"

#include <string.h>

/* What is left of the rows of a window. */
typedef struct merge {
    const int32_t *at[SPSI_WINDOW_ROWS], *end[SPSI_WINDOW_ROWS];
} merge;

/* Whether all rows are short enough for words. */
static bool merge_open(merge *m, const sps_csr *A, int64_t w, int32_t lead,
                       int32_t longest)
{
    bool fit = true;

    for (int r = 0; r < SPSI_WINDOW_ROWS; r++) {
        const int64_t i = spsi_window_row(A->nrow, lead, (int32_t)w, r);
        const int64_t p = A->rowptr[i], q = A->rowptr[i < A->nrow ? i + 1 : i];

        m->at[r] = A->col + p;
        m->end[r] = A->col + q;
        fit = fit && q - p <= longest;
    }
    return fit;
}

/* The next column; *rows: bit r where row r stores it, 0 at the end. */
static int32_t merge_next(merge *m, uint32_t *rows)
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

/* Distinct columns of what is left, and its entries. */
static int32_t merge_count(merge *m, int64_t *entries)
{
    int32_t distinct = 0;
    uint32_t rows;

    for (*entries = 0;; distinct++) {
        merge_next(m, &rows);
        if (rows == 0) return distinct;
        *entries += __builtin_popcount(rows);
    }
}

/* Words of window w; 0 where it is to be summed by rows. */
static int32_t count_window(const sps_csr *A, int64_t w, sps_window_rule rule)
{
    int32_t distinct;
    int64_t entries;
    merge m;

    if (!merge_open(&m, A, w, rule.lead, rule.longest)) return 0;
    distinct = merge_count(&m, &entries);
    return spsi_window_pays(distinct, entries, rule)
           ? spsi_window_words(distinct) : 0;
}

static void write_window(const sps_csr *A, int64_t w, int32_t lead,
                         int32_t *word, int64_t words)
{
    int32_t last = 0;
    uint32_t rows;
    merge m;

    merge_open(&m, A, w, lead, INT32_MAX);
    for (int64_t at = 0; at < words; at += SPSI_WINDOW_WORDS) {
        uint32_t mask[SPSI_WINDOW_ROWS] = { 0 };

        for (int s = 0; s < SPSI_WINDOW_GROUP &&
                        at + SPSI_WINDOW_ROWS + s < words; s++) {
            const int32_t j = merge_next(&m, &rows);

            if (rows != 0) last = j;
            for (int r = 0; r < SPSI_WINDOW_ROWS; r++)
                mask[r] |= (rows >> r & 1) << s;
            word[at + SPSI_WINDOW_ROWS + s] = last;
        }
        memcpy(word + at, mask, sizeof mask);
    }
}

enum { SAMPLE = 64, LEADS = 64, ENTRIES = 4096 };

/* Distinct columns over entries on windows spread over the rows, whose second
 * run is `lead` rows below the first; rows that do not fill windows count as
 * if they did. */
static double sample_lead(const sps_csr *A, int32_t lead)
{
    const int64_t span = A->nrow - lead - 4;
    int64_t distinct = 0, entries = 0, more;

    for (int n = 0; n < SAMPLE; n++) {
        /* Weyl's sequence: even steps would meet the grid's own period. */
        const uint64_t step = (uint64_t)n * UINT64_C(0x9e3779b97f4a7c15);
        const int64_t i = (int64_t)((step >> 32) * (uint64_t)span >> 32);
        merge m;

        for (int r = 0; r < SPSI_WINDOW_ROWS; r++) {
            const int64_t row = i + r % 4 + r / 4 * lead;

            m.at[r] = A->col + A->rowptr[row];
            m.end[r] = A->col + A->rowptr[row + 1];
            if (m.end[r] - m.at[r] > ENTRIES) m.end[r] = m.at[r] + ENTRIES;
        }
        distinct += merge_count(&m, &more);
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
        least = 0.95 * share; /* nearer rows find each other in caches */
        lead = (int32_t)d;
    }
    return lead;
}

sps_status spsi_row_windows_make(sps_context *ctx, const sps_csr *A,
                                 sps_window_rule rule, sps_row_windows *w)
{
    sps_status st;

    *w = (sps_row_windows){ .count = spsi_windows_of(A->nrow,
                                                         rule.lead) };
    SPS_TRY(SPS_NEW(ctx, w->count + 1, &w->first));
#pragma omp parallel for schedule(static) num_threads(ctx->threads)
    for (int64_t i = 0; i < w->count; i++)
        w->first[i + 1] = count_window(A, i, rule);
    w->first[0] = 0;
    for (int64_t i = 0; i < w->count; i++) w->first[i + 1] += w->first[i];
    w->words = w->first[w->count];
    SPS_TRY(SPS_NEW(ctx, w->words, &w->word));
#pragma omp parallel for schedule(static) num_threads(ctx->threads)
    for (int64_t i = 0; i < w->count; i++)
        write_window(A, i, rule.lead, w->word + w->first[i],
                     w->first[i + 1] - w->first[i]);
    return SPS_OK;

fail:
    spsi_row_windows_free(ctx, w);
    return st;
}

void spsi_row_windows_free(sps_context *ctx, sps_row_windows *w)
{
    spsi_free(ctx, w->first);
    spsi_free(ctx, w->word);
    *w = (sps_row_windows){ 0 };
}
