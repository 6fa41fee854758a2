/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.c - shares rows out; two passes over the offsets, one to count and
 * one to fill. */
#include "segments.h"

enum { ENTRIES = 512, SHORTEST = 32 };

bool spsi_segments_pay(const sps_features *f, int32_t *cut, int32_t *most)
{
    const double twice = 2.0 * f->mean_length;

    *most = ENTRIES;
    *cut = twice > ENTRIES ? ENTRIES : twice < SHORTEST ? SHORTEST
                                                        : (int32_t)twice;
    return f->max_length > ENTRIES ||
           (f->max_length > *cut && (double)f->max_length > 2.0 * twice);
}

/* What the rows come to. */
static void count(sps_segments *s, int64_t nrow, const int64_t *rowptr,
                  int64_t *cost)
{
    *cost = 0;
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];
        const int64_t pieces = spsi_segments_of(length, s->cut, s->most);

        s->count += pieces;
        s->slots += pieces > 1 ? pieces : 0;
        s->joins += pieces > 1;
        *cost += SPS_SEGMENTS_ROW + (pieces ? 0 : length);
    }
}

static void add_row(sps_segments *s, int64_t row, int64_t start,
                    int64_t length)
{
    const int64_t pieces = spsi_segments_of(length, s->cut, s->most);
    const int32_t share = pieces ? spsi_segments_share(length, pieces) : 0;

    if (pieces > 1)
        s->join[s->joins++] = (sps_join){ row, (int32_t)s->slots,
                                          (int32_t)pieces };
    for (int64_t n = 0; n < pieces; n++) {
        const int64_t left = length - n * share;

        s->segment[s->count++] = (sps_segment){
            row, start + n * share, (int32_t)(left < share ? left : share),
            pieces > 1 ? (int32_t)s->slots++ : -1 };
    }
}

/* Range r begins at the first row before which r / ranges of the cost lies;
 * the cost before a row is at least its number, so ranges may be empty but
 * never miss a row. */
static void fill(sps_segments *s, int64_t nrow, const int64_t *rowptr,
                 int64_t cost)
{
    int64_t before = 0, r = 0;

    s->count = s->slots = s->joins = 0;
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];

        while (r < s->ranges && before >= r * cost / s->ranges)
            s->range[r++] = i;
        add_row(s, i, rowptr[i], length);
        before += SPS_SEGMENTS_ROW + (length > s->cut ? 0 : length);
    }
    while (r <= s->ranges) s->range[r++] = nrow;
}

sps_status spsi_segments_build(sps_context *ctx, int64_t nrow,
                               const int64_t *rowptr, int32_t cut,
                               int32_t most, int64_t ranges,
                               sps_segments **s_p)
{
    sps_status st;
    sps_segments *s = NULL;
    int64_t cost;

    *s_p = NULL;
    SPS_TRY(SPS_NEW(ctx, 1, &s));
    s->ctx = ctx;
    s->cut = cut;
    s->most = most;
    s->ranges = ranges > 0 ? ranges : 1;
    count(s, nrow, rowptr, &cost);
    SPS_REQUIRE(ctx, s->slots <= INT32_MAX, SPS_EUNFIT,
                "%lld segments of split rows: at most 2^31 - 1 are served",
                (long long)s->slots);
    SPS_TRY(SPS_NEW(ctx, s->count, &s->segment));
    SPS_TRY(SPS_NEW(ctx, s->joins, &s->join));
    SPS_TRY(SPS_NEW(ctx, s->ranges + 1, &s->range));
    fill(s, nrow, rowptr, cost);
    *s_p = s;
    return SPS_OK;

fail:
    spsi_segments_destroy(&s);
    return st;
}

void spsi_segments_destroy(sps_segments **s_p)
{
    sps_segments *s = *s_p;

    if (!s) return;
    spsi_free(s->ctx, s->segment);
    spsi_free(s->ctx, s->join);
    spsi_free(s->ctx, s->range);
    spsi_free(s->ctx, s);
    *s_p = NULL;
}
