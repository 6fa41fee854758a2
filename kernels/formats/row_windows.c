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
static bool merge_open(merge *m, const sps_csr *A, uint32_t rows, int32_t lead,
                       int32_t longest)
{
    bool fit = true;

    for (int r = 0; r < SPSI_WINDOW_ROWS; r++) {
        const int64_t i = spsi_window_row(A->nrow, lead, rows, r);
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

/* Tiles of a window; 0 where it is to be summed by rows. */
static int32_t count_window(const sps_csr *A, uint32_t rows,
                            sps_window_rule rule, int64_t *entries)
{
    int32_t distinct;
    merge m;

    if (!merge_open(&m, A, rows, rule.lead, rule.longest)) return 0;
    distinct = merge_count(&m, entries);
    return spsi_window_pays(distinct, *entries, rule)
           ? spsi_window_tiles(distinct) : 0;
}

static void write_window(const sps_csr *A, uint32_t rows, int32_t lead,
                         int32_t tiles, int32_t *word)
{
    int32_t last = 0;
    merge m;

    merge_open(&m, A, rows, lead, INT32_MAX);
    for (int32_t left = tiles, c; left > 0; left -= c) {
        c = spsi_window_group(left);
        for (int h = 0; h < 2 * c; h++) {
            uint32_t mask = 0, some;

            for (int s = 0; s < 4; s++) {
                const int32_t j = merge_next(&m, &some);

                if (some != 0) last = j;
                for (int r = 0; r < SPSI_WINDOW_ROWS; r++)
                    mask |= (some >> r & 1) << (4 * r + s);
                word[2 * c + 4 * h + s] = last;
            }
            memcpy(word + h, &mask, sizeof mask);
        }
        word += SPSI_WINDOW_WORDS * c;
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

/* Lists the windows, with words or without; tile[i] of window i. */
static void list_windows(const sps_csr *A, sps_window_rule rule,
                         const int32_t *tile, const int64_t *entries,
                         sps_row_windows *w)
{
    const int64_t all = spsi_windows_of(A->nrow, rule.lead);
    sps_window next = { 1, 0, 0 };

    for (int64_t i = 0; i < all; i++) {
        next.rows = spsi_window_rows(rule.lead, i);
        if (tile[i] == 0) {
            w->rest[w->bare++] = next.rows;
            continue;
        }
        w->at[w->count++] = next;
        next.value += entries[i];
        next.tile += tile[i];
    }
    next.rows = 0;
    w->at[w->count] = next;
    w->tiles = next.tile;
    w->entries = next.value - 1;
}

sps_status spsi_row_windows_make(sps_context *ctx, const sps_csr *A,
                                 sps_window_rule rule, sps_row_windows *w)
{
    const int64_t all = spsi_windows_of(A->nrow, rule.lead);
    int32_t *tile = NULL;
    int64_t *entries = NULL;
    sps_status st;

    *w = (sps_row_windows){ 0 };
    SPS_TRY(SPS_NEW(ctx, all + 1, &tile));
    SPS_TRY(SPS_NEW(ctx, all + 1, &entries));
    SPS_TRY(SPS_NEW(ctx, all + 1, &w->at));
    SPS_TRY(SPS_NEW(ctx, all + 1, &w->rest));
#pragma omp parallel for schedule(static) num_threads(ctx->threads)
    for (int64_t i = 0; i < all; i++)
        tile[i] = count_window(A, spsi_window_rows(rule.lead, i), rule,
                               &entries[i]);
    list_windows(A, rule, tile, entries, w);
    SPS_TRY(SPS_NEW(ctx, SPSI_WINDOW_WORDS * w->tiles + 1, &w->word));
#pragma omp parallel for schedule(static) num_threads(ctx->threads)
    for (int64_t i = 0; i < w->count; i++)
        write_window(A, w->at[i].rows, rule.lead,
                     w->at[i + 1].tile - w->at[i].tile,
                     w->word + SPSI_WINDOW_WORDS * (int64_t)w->at[i].tile);
    spsi_free(ctx, tile);
    spsi_free(ctx, entries);
    return SPS_OK;

fail:
    spsi_free(ctx, tile);
    spsi_free(ctx, entries);
    spsi_row_windows_free(ctx, w);
    return st;
}

void spsi_row_windows_free(sps_context *ctx, sps_row_windows *w)
{
    spsi_free(ctx, w->at);
    spsi_free(ctx, w->word);
    spsi_free(ctx, w->rest);
    *w = (sps_row_windows){ 0 };
}
