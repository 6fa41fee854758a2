/* SPDX-License-Identifier: BSD-3-Clause */
/* shares.c - deals the entries out: one pass over the offsets to count, one to
 * fill. */
#include "shares.h"

#include "lib/context.h"

enum { SPANS = (1 << 17) - 1, JOINS = 1 << 14 };

/* Where a pass is; the arrays of s are written once they are there. */
typedef struct dealer {
    sps_shares *s;
    sps_share open;            /* of whole rows, not yet put down */
    int32_t entries;           /* of it */
} dealer;

static void put(sps_shares *s, sps_share share)
{
    if (s->share) s->share[s->count] = share;
    s->count++;
}

static void close_share(dealer *d)
{
    if (d->entries == 0) return;
    d->open.what = (uint32_t)d->entries;
    put(d->s, d->open);
    d->entries = 0;
}

static void close_block(sps_shares *s)
{
    while (s->count % s->team) put(s, (sps_share){ 0 });
}

/* A row that fits joins the open share, if it still fits that. */
static void whole_row(dealer *d, int64_t first, int32_t length)
{
    if (d->entries + length > d->s->size) close_share(d);
    if (d->entries == 0)
        d->open = (sps_share){ .first = (int32_t)first,
                               .row = (int32_t)d->s->rows };
    d->entries += length;
    d->open.ends |= 1u << (d->entries - 1);
}

/* The number of a new span, 0: the row needs none. */
static uint32_t open_span(sps_shares *s, int64_t pieces)
{
    const int64_t blocks = (pieces + s->team - 1) / s->team;

    if (blocks == 1) return 0;
    if (s->span)
        s->span[s->spans] = (sps_share_span){ (int32_t)s->parts,
                                              (int32_t)blocks,
                                              (int32_t)(s->count / s->team) };
    s->parts += blocks;
    return (uint32_t)++s->spans;
}

/* Pieces of equal length but for one entry, in as few blocks as can be. */
static void cut_row(dealer *d, int64_t first, int64_t length)
{
    sps_shares *s = d->s;
    const int64_t pieces = (length + s->size - 1) / s->size;
    uint32_t span;

    close_share(d);
    if (s->count % s->team + pieces > s->team) close_block(s);
    span = open_span(s, pieces);
    for (int64_t n = 0; n < pieces; n++) {
        const int64_t left = pieces - n, share = (length + left - 1) / left;
        const bool head = n % s->team == 0;
        const int64_t here = left < s->team ? left : s->team;

        put(s, (sps_share){ (int32_t)first, (int32_t)s->rows, 0,
                            (uint32_t)share |
                            (uint32_t)(head ? here : 0) << 6 | span << 15 });
        first += share;
        length -= share;
    }
}

static void deal(sps_shares *s, int64_t nrow, const int64_t *rowptr)
{
    dealer d = { .s = s };

    s->count = s->spans = s->parts = s->rows = s->empty = 0;
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];

        if (length == 0) {
            if (s->no_entries) s->no_entries[s->empty] = (int32_t)i;
            s->empty++;
            continue;
        }
        if (length <= s->size) whole_row(&d, rowptr[i], (int32_t)length);
        else cut_row(&d, rowptr[i], length);
        if (s->row) s->row[s->rows] = (int32_t)i;
        s->rows++;
    }
    close_share(&d);
    close_block(s);
}

/* Blocks in which there are pieces. */
static void mark_joins(sps_shares *s)
{
    for (int64_t b = 0; b < s->count; b += s->team) {
        sps_share *share = s->share + b;
        bool joins = false;

        for (int t = 0; t < s->team; t++)
            joins |= share[t].what && !share[t].ends;
        for (int t = 0; joins && t < s->team; t++) share[t].what |= JOINS;
    }
}

sps_status spsi_shares_make(sps_context *ctx, int64_t nrow,
                            const int64_t *rowptr, int32_t size, int32_t team,
                            sps_shares *s)
{
    sps_status st;

    *s = (sps_shares){ .size = size, .team = team };
    deal(s, nrow, rowptr);
    SPS_REQUIRE(ctx, s->spans <= SPANS, SPS_EUNFIT,
                "%lld rows of more than %lld entries: at most 2^17 are dealt "
                "out", (long long)s->spans, (long long)size * team);
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

int64_t spsi_shares_count(int64_t nrow, const int64_t *rowptr, int32_t size,
                          int32_t team)
{
    sps_shares s = { .size = size, .team = team };

    deal(&s, nrow, rowptr);
    return s.count;
}

void spsi_shares_free(sps_context *ctx, sps_shares *s)
{
    spsi_free(ctx, s->share);
    spsi_free(ctx, s->span);
    spsi_free(ctx, s->row);
    spsi_free(ctx, s->no_entries);
    *s = (sps_shares){ 0 };
}
