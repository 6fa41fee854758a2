/* SPDX-License-Identifier: BSD-3-Clause */
/* host_row_windows.c - condenses the columns of windows of 8 rows on the host;
 * the reference for the device's builder (kernels/cuda/plan/window_build.cu).
 * The first pass counts columns, the second writes the tile descriptors
 * (words); windows are independent, so the result is the same for any number of
 * threads. */
#include "core/team.h"
#include "tests/formats/window_merge.h"
#include "tests/formats/host_formats.h"

#include <string.h>

/* Whether all rows are short enough for tile descriptors. */
static bool merge_open(spsi_window_merge *m, const sps_csr *A, uint32_t rows,
                       int32_t lead, int32_t longest)
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

/* Number of tiles of a window; 0 if it is to be multiplied by rows. */
static int32_t count_window(const sps_csr *A, uint32_t rows,
                            sps_window_rule rule, int64_t *entries)
{
    int32_t distinct;
    spsi_window_merge m;

    if (!merge_open(&m, A, rows, rule.lead, rule.longest)) return 0;
    distinct = spsi_window_count(&m, entries);
    return spsi_window_pays(distinct, *entries, rule)
           ? spsi_window_tiles(distinct) : 0;
}

static void write_window(const sps_csr *A, uint32_t rows, int32_t lead,
                         int32_t tiles, int32_t *word)
{
    int32_t last = 0;
    spsi_window_merge m;

    merge_open(&m, A, rows, lead, INT32_MAX);
    for (int32_t left = tiles, c; left > 0; left -= c) {
        c = spsi_window_group(left);
        for (int h = 0; h < 2 * c; h++) {
            uint32_t mask = 0, some;

            for (int s = 0; s < 4; s++) {
                const int32_t j = spsi_window_next(&m, &some);

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

/* Lists the windows with and without tile descriptors; tile[i]: tiles of window
 * i. */
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

typedef struct job {
    const sps_csr *A;
    sps_window_rule rule;
    int32_t *tile;
    int64_t *entries;
    sps_row_windows *w;
} job;

static void count_windows(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++)
        j->tile[i] = count_window(j->A, spsi_window_rows(j->rule.lead, i),
                                  j->rule, &j->entries[i]);
}

static void write_windows(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const sps_row_windows *w = j->w;

    for (int64_t i = first; i < last; i++)
        write_window(j->A, w->at[i].rows, j->rule.lead,
                     w->at[i + 1].tile - w->at[i].tile,
                     w->word + SPSI_WINDOW_WORDS * (int64_t)w->at[i].tile);
}

sps_status spsi_row_windows_make(sps_context *ctx, const sps_csr *A,
                                 sps_window_rule rule, sps_row_windows *w)
{
    const int64_t all = spsi_windows_of(A->nrow, rule.lead);
    int32_t *tile = NULL;
    int64_t *entries = NULL;
    job j;
    sps_status st;

    *w = (sps_row_windows){ 0 };
    SPS_TRY(SPS_NEW(ctx, all + 1, &tile));
    SPS_TRY(SPS_NEW(ctx, all + 1, &entries));
    SPS_TRY(SPS_NEW(ctx, all + 1, &w->at));
    SPS_TRY(SPS_NEW(ctx, all + 1, &w->rest));
    j = (job){ A, rule, tile, entries, w };
    spsi_team_run(ctx, all, 4 * A->nnz, count_windows, &j);
    list_windows(A, rule, tile, entries, w);
    SPS_TRY(SPS_NEW(ctx, SPSI_WINDOW_WORDS * w->tiles + 1, &w->word));
    spsi_team_run(ctx, w->count, 8 * A->nnz, write_windows, &j);
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

/* ------------------------------------------------------------------- leads */

/* sum: distinct columns and entries of the sample. */
static void sample_lead(const sps_csr *A, int64_t lead, int64_t sum[2])
{
    int64_t more;

    sum[0] = sum[1] = 0;
    for (int n = 0; n < SPSI_LEAD_SAMPLE; n++) {
        const int64_t i = spsi_lead_row(A->nrow, lead, n);
        spsi_window_merge m;

        for (int r = 0; r < SPSI_WINDOW_ROWS; r++) {
            const int64_t row = i + r % 4 + r / 4 * lead;

            m.at[r] = A->col + A->rowptr[row];
            m.end[r] = A->col + A->rowptr[row + 1];
            if (m.end[r] - m.at[r] > SPSI_LEAD_ENTRIES)
                m.end[r] = m.at[r] + SPSI_LEAD_ENTRIES;
        }
        sum[0] += spsi_window_count(&m, &more);
        sum[1] += more;
    }
}

int32_t spsi_window_lead(const sps_csr *A)
{
    const int64_t *middle = A->rowptr + A->nrow / 2;
    int64_t lead[SPSI_LEADS], sum[SPSI_LEADS][2];
    int count;

    if (A->nrow < SPSI_LEAD_ROWS) return 4;
    count = spsi_window_leads(A->col, middle[0], middle[1], A->nrow, lead);
    for (int c = 0; c < count; c++) sample_lead(A, lead[c], sum[c]);
    return spsi_window_choose(lead, count, (const int64_t (*)[2])sum);
}
