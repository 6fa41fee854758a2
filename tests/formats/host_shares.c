/* SPDX-License-Identifier: BSD-3-Clause */
/* host_shares.c - divides the entries into shares: one pass over the offsets to
 * count and one to write.  On a GPU the plan does the same
 * (kernels/cuda/plan/share_plan.cuh). */
#include "tests/formats/host_formats.h"

#include "core/context.h"

static int64_t blocks_of(int64_t shares, int32_t team)
{
    return (shares + team - 1) / team;
}

static int32_t pieces_of(int64_t length, int32_t size)
{
    return (int32_t)((length + size - 1) / size);
}

/* ---------------------------------------------------------------- counting */

/* Counts a row of several pieces. */
static void tally_cut(sps_shares *s, int64_t length)
{
    const int32_t pieces = pieces_of(length, s->size);

    if (pieces > s->team) {
        s->spans++;
        s->parts += blocks_of(pieces, s->team);
    }
    s->count += spsi_share_gap((int32_t)(s->count % s->team), pieces, s->team);
    s->count += pieces;
}

void spsi_shares_tally(int64_t nrow, const int64_t *rowptr, int32_t size,
                       int32_t team, sps_shares *s)
{
    int32_t open = size;

    *s = (sps_shares){ .size = size, .team = team };
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];

        s->empty += length == 0;
        if (length <= size) {
            s->count += spsi_share_opens(&open, (int32_t)length, size);
        } else {
            tally_cut(s, length);
            open = size;
        }
    }
    s->count = blocks_of(s->count, team) * team;
    s->rows = nrow - s->empty;
}

/* ----------------------------------------------------------------- writing */

/* State of a pass. */
typedef struct dealer {
    const sps_shares *s;
    int64_t count, spans, parts, rows, empty;
    int32_t open;              /* entries in share count - 1, or size if it is
                                  closed */
} dealer;

/* A row of at most `size` entries is added to the open share if it fits
 * there. */
static void whole_row(dealer *d, int64_t first, int32_t length)
{
    sps_share *share;

    if (spsi_share_opens(&d->open, length, d->s->size))
        d->s->share[d->count++] = (sps_share){ .first = (int32_t)first,
                                               .row = (int32_t)d->rows };
    share = &d->s->share[d->count - 1];
    share->ends |= 1u << (d->open - 1);
    share->what = (uint32_t)d->open;
}

/* The number of a new span plus 1; 0: the row needs none. */
static uint32_t open_span(dealer *d, int32_t pieces)
{
    const int64_t blocks = blocks_of(pieces, d->s->team);

    if (blocks == 1) return 0;
    d->s->span[d->spans] = (sps_share_span){
        (int32_t)d->parts, (int32_t)blocks, (int32_t)(d->count / d->s->team) };
    d->parts += blocks;
    return (uint32_t)++d->spans;
}

static void cut_row(dealer *d, int64_t first, int64_t length)
{
    const sps_shares *s = d->s;
    const int32_t pieces = pieces_of(length, s->size);
    uint32_t span;

    d->count += spsi_share_gap((int32_t)(d->count % s->team), pieces, s->team);
    span = open_span(d, pieces);
    for (int32_t n = 0; n < pieces; n++)
        s->share[d->count++] = spsi_share_piece(n, pieces, (int32_t)first,
                                                (int32_t)length,
                                                (int32_t)d->rows, s->team,
                                                span);
    d->open = s->size;
}

/* What is not written is zero: empty shares, up to the end of blocks. */
static void deal(const sps_shares *s, int64_t nrow, const int64_t *rowptr)
{
    dealer d = { .s = s, .open = s->size };

    for (int64_t i = 0; i < nrow; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];

        if (length == 0) {
            s->no_entries[d.empty++] = (int32_t)i;
            continue;
        }
        if (length <= s->size) whole_row(&d, rowptr[i], (int32_t)length);
        else cut_row(&d, rowptr[i], length);
        if (s->row) s->row[d.rows] = (int32_t)i;
        d.rows++;
    }
}

/* Marks the blocks that contain pieces of rows. */
static void mark_joins(const sps_shares *s)
{
    for (int64_t b = 0; b < s->count; b += s->team) {
        sps_share *share = s->share + b;
        bool joins = false;

        for (int t = 0; t < s->team; t++)
            joins |= share[t].what && !share[t].ends;
        for (int t = 0; joins && t < s->team; t++)
            share[t].what |= SPS_SHARE_JOINS;
    }
}

sps_status spsi_shares_fill(sps_context *ctx, int64_t nrow,
                            const int64_t *rowptr, sps_shares *s)
{
    sps_status st;

    SPS_REQUIRE(ctx, s->spans <= SPS_SHARE_SPANS, SPS_EUNFIT,
                "%lld rows of more than %lld entries: at most 2^17 are dealt "
                "out", (long long)s->spans, (long long)s->size * s->team);
    SPS_TRY(SPS_NEW(ctx, s->count, &s->share));
    SPS_TRY(SPS_NEW(ctx, s->spans, &s->span));
    if (s->empty > 0) {
        SPS_TRY(SPS_NEW(ctx, s->rows, &s->row));
        SPS_TRY(SPS_NEW(ctx, s->empty, &s->no_entries));
    }
    deal(s, nrow, rowptr);
    mark_joins(s);
    return SPS_OK;

fail:
    spsi_shares_free(ctx, s);
    return st;
}

void spsi_shares_free(sps_context *ctx, sps_shares *s)
{
    spsi_free(ctx, s->share);
    spsi_free(ctx, s->span);
    spsi_free(ctx, s->row);
    spsi_free(ctx, s->no_entries);
    *s = (sps_shares){ 0 };
}
