/* SPDX-License-Identifier: BSD-3-Clause */
/* shares.c - deals the entries out: one pass over the offsets to count, for
 * each size that is tried, and one to write. */
#include "shares.h"

#include "lib/context.h"

enum { SPANS = (1 << 17) - 1, JOINS = 1 << 14 };

static int64_t whole_blocks(int64_t count, int32_t team)
{
    return (count + team - 1) / team * team;
}

/* Where pieces of a row go when `count` shares are there: into this block if
 * they fit, else to the next one. */
static int64_t place_of(int64_t count, int64_t pieces, int32_t team)
{
    return count % team + pieces > team ? whole_blocks(count, team) : count;
}

/* ---------------------------------------------------------------- counting */

/* A row of several pieces, when `count` shares are there. */
static int64_t tally_cut(sps_shares *s, int64_t count, int64_t length)
{
    const int64_t pieces = (length + s->size - 1) / s->size;

    if (pieces > s->team) {
        s->spans++;
        s->parts += (pieces + s->team - 1) / s->team;
    }
    return place_of(count, pieces, s->team) + pieces;
}

bool spsi_shares_tally(int64_t nrow, const int64_t *rowptr, int32_t size,
                       int32_t team, int64_t most, sps_shares *s)
{
    int64_t count = 0, empty = 0, open = 0;    /* open: entries of a share of
                                                  whole rows */

    *s = (sps_shares){ .size = size, .team = team };
    for (int64_t i = 0; i < nrow && count <= most; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];
        const bool next = open + length > size;

        empty += length == 0;
        count += next && open > 0;
        open = next ? length : open + length;
        if (length <= size) continue;
        count = tally_cut(s, count, length);
        open = 0;
    }
    s->count = whole_blocks(count + (open > 0), team);
    s->rows = nrow - empty;
    s->empty = empty;
    return s->count <= most;
}

/* ----------------------------------------------------------------- writing */

/* Where a pass is. */
typedef struct dealer {
    const sps_shares *s;
    int64_t count, spans, parts, rows, empty;
    sps_share open;            /* of whole rows, not yet put down */
    int32_t entries;           /* of it */
} dealer;

static void close_share(dealer *d)
{
    if (d->entries == 0) return;
    d->open.what = (uint32_t)d->entries;
    d->s->share[d->count++] = d->open;
    d->entries = 0;
}

/* A row that fits joins the open share, if it still fits that. */
static void whole_row(dealer *d, int64_t first, int32_t length)
{
    if (d->entries + length > d->s->size) close_share(d);
    if (d->entries == 0)
        d->open = (sps_share){ .first = (int32_t)first,
                               .row = (int32_t)d->rows };
    d->entries += length;
    d->open.ends |= 1u << (d->entries - 1);
}

/* The number of a new span, 0: the row needs none. */
static uint32_t open_span(dealer *d, int64_t pieces)
{
    const int64_t blocks = (pieces + d->s->team - 1) / d->s->team;

    if (blocks == 1) return 0;
    d->s->span[d->spans] = (sps_share_span){
        (int32_t)d->parts, (int32_t)blocks, (int32_t)(d->count / d->s->team) };
    d->parts += blocks;
    return (uint32_t)++d->spans;
}

/* Pieces of equal length but for one entry, in as few blocks as can be. */
static void cut_row(dealer *d, int64_t first, int64_t length)
{
    const sps_shares *s = d->s;
    const int64_t pieces = (length + s->size - 1) / s->size;
    const int64_t least = length / pieces, longer = length % pieces;
    uint32_t span;

    close_share(d);
    d->count = place_of(d->count, pieces, s->team);
    span = open_span(d, pieces);
    for (int64_t n = 0; n < pieces; n++) {
        const int64_t left = pieces - n, share = least + (n < longer);
        const bool head = n % s->team == 0;
        const int64_t here = left < s->team ? left : s->team;

        s->share[d->count++] = (sps_share){
            (int32_t)first, (int32_t)d->rows, 0,
            (uint32_t)share | (uint32_t)(head ? here : 0) << 6 | span << 15 };
        first += share;
    }
}

/* What is not written is zero: shares of no entries, to the end of blocks. */
static void deal(const sps_shares *s, int64_t nrow, const int64_t *rowptr)
{
    dealer d = { .s = s };

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
    close_share(&d);
}

/* Blocks in which there are pieces. */
static void mark_joins(const sps_shares *s)
{
    for (int64_t b = 0; b < s->count; b += s->team) {
        sps_share *share = s->share + b;
        bool joins = false;

        for (int t = 0; t < s->team; t++)
            joins |= share[t].what && !share[t].ends;
        for (int t = 0; joins && t < s->team; t++) share[t].what |= JOINS;
    }
}

sps_status spsi_shares_fill(sps_context *ctx, int64_t nrow,
                            const int64_t *rowptr, sps_shares *s)
{
    sps_status st;

    SPS_REQUIRE(ctx, s->spans <= SPANS, SPS_EUNFIT,
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
