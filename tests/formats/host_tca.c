/* SPDX-License-Identifier: BSD-3-Clause */
/* host_tca.c - packs rows into teams of 8 warps, on the host: a pass that
 * counts, and one that writes.  The GPU's builder
 * (kernels/cuda/papers/tca_build.cu) must make the same list. */
#include "tests/formats/host_formats.h"

#include <string.h>

enum { CLASSES = 4 }; /* rows of 8, 4, 2, 1 warps */

static int class_of(int64_t length)
{
    return length <= 8 ? 3 : length <= 16 ? 2 : length <= 32 ? 1 : 0;
}

/* Adds rows first .. last - 1 to the counts; warps[c]: number of warps of the
 * window's teams in rows of the classes before c. */
static void count_window(const int64_t *rowptr, int64_t first, int64_t last,
                         spsi_tca_sizes *n, int64_t warps[CLASSES])
{
    int64_t rows[CLASSES] = { 0 }, sum = 0;

    for (int64_t i = first; i < last; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];
        const int32_t pieces = spsi_tca_pieces(length);

        if (length == 0) n->empties++;
        else if (pieces == 0) rows[class_of(length)]++;
        n->pieces += pieces;
        if (pieces > 1) n->splits++, n->partials += pieces;
    }
    for (int c = 0; c < CLASSES; c++) {
        warps[c] = sum;
        sum += rows[c] * (SPSI_TCA_TEAM >> c);
    }
    n->teams += (sum + SPSI_TCA_TEAM - 1) / SPSI_TCA_TEAM;
}

static void write_pieces(spsi_tca *w, spsi_tca_sizes *at, int32_t row,
                         int64_t begin, int64_t length, int32_t pieces)
{
    const int32_t share = spsi_tca_share(length, pieces);
    const bool split = pieces > 1;

    if (split)
        w->split[at->splits++] = (spsi_tca_split){ at->partials, row, pieces };
    for (int32_t s = 0; s < pieces; s++) {
        const int64_t left = length - (int64_t)s * share;

        w->piece[at->pieces++] = (spsi_tca_piece){
            begin + (int64_t)s * share, row,
            (int32_t)(left < share ? left : share),
            split ? at->partials++ : -1 };
    }
}

static void write_window(spsi_tca *w, const int64_t *rowptr, int64_t first,
                         int64_t last, spsi_tca_sizes *at)
{
    int32_t *slot = w->slot + SPSI_TCA_TEAM * at->teams;
    spsi_tca_sizes more = { 0 };
    int64_t warps[CLASSES];

    count_window(rowptr, first, last, &more, warps);
    for (int64_t s = 0; s < SPSI_TCA_TEAM * more.teams; s++) slot[s] = -1;
    for (int64_t i = first; i < last; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];
        const int32_t pieces = spsi_tca_pieces(length);
        const int c = class_of(length);

        if (length == 0)
            w->empty[at->empties++] = (int32_t)i;
        else if (pieces > 0)
            write_pieces(w, at, (int32_t)i, rowptr[i], length, pieces);
        else
            for (int s = 0; s < SPSI_TCA_TEAM >> c; s++)
                slot[warps[c]++] = (int32_t)i;
    }
    at->teams += more.teams;
}

sps_status spsi_tca_build(sps_context *ctx, int64_t nrow,
                          const int64_t *rowptr, spsi_tca *w)
{
    spsi_tca_sizes at = { 0 };
    int64_t warps[CLASSES];
    sps_status st;

    memset(w, 0, sizeof *w);
    for (int64_t i = 0; i < nrow; i += SPSI_TCA_WINDOW)
        count_window(rowptr, i, i + SPSI_TCA_WINDOW < nrow
                     ? i + SPSI_TCA_WINDOW : nrow, &w->n, warps);
    SPS_TRY(SPS_NEW(ctx, SPSI_TCA_TEAM * w->n.teams, &w->slot));
    SPS_TRY(SPS_NEW(ctx, w->n.pieces, &w->piece));
    SPS_TRY(SPS_NEW(ctx, w->n.splits, &w->split));
    SPS_TRY(SPS_NEW(ctx, w->n.empties, &w->empty));
    for (int64_t i = 0; i < nrow; i += SPSI_TCA_WINDOW)
        write_window(w, rowptr, i, i + SPSI_TCA_WINDOW < nrow
                     ? i + SPSI_TCA_WINDOW : nrow, &at);
    return SPS_OK;

fail:
    spsi_tca_clear(ctx, w);
    return st;
}

void spsi_tca_clear(sps_context *ctx, spsi_tca *w)
{
    spsi_free(ctx, w->slot);
    spsi_free(ctx, w->piece);
    spsi_free(ctx, w->split);
    spsi_free(ctx, w->empty);
    memset(w, 0, sizeof *w);
}
