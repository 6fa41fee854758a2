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

/* What row i adds to the totals of s. */
static void add(sps_segments *s, int64_t length)
{
    const int64_t pieces = spsi_segments_of(length, s->cut, s->most);

    s->count += pieces;
    s->slots += pieces > 1 ? pieces : 0;
    s->joins += pieces > 1;
}

/* Range r begins at the first row before which r / ranges of the cost lies;
 * every row costs something, so ranges may be empty but never miss a row. */
static void fill(sps_segments *s, int64_t nrow, const int64_t *rowptr,
                 int64_t cost)
{
    int64_t before = 0, r = 0;

    s->count = s->slots = s->joins = 0;
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t length = rowptr[i + 1] - rowptr[i];

        while (r < s->ranges && before >= r * cost / s->ranges)
            s->range[r++] = i;
        spsi_segments_row(s, i, rowptr[i], length, s->count, s->slots,
                          s->joins);
        add(s, length);
        before += spsi_segments_cost(length, s->cut);
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
    int64_t cost = 0;

    *s_p = NULL;
    SPS_TRY(SPS_NEW(ctx, 1, &s));
    s->ctx = ctx;
    s->cut = cut;
    s->most = most;
    s->ranges = ranges > 0 ? ranges : 1;
    for (int64_t i = 0; i < nrow; i++) {
        add(s, rowptr[i + 1] - rowptr[i]);
        cost += spsi_segments_cost(rowptr[i + 1] - rowptr[i], cut);
    }
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
