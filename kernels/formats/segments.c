/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.c - shares rows out; one pass over the columns where rows come in
 * groups, two over the offsets, one to count and one to fill. */
#include "segments.h"

#include <string.h>

enum { ENTRIES = 512, SHORTEST = 32, FEW = 1 << 14 };

/* With a heavy tail rows above the mean are few and hold most entries: they
 * are better off with a warp each.  Else only what is far out is cut. */
bool spsi_segments_uneven(const sps_features *f, sps_segments_limits *l)
{
    const bool heavy = f->deviation > f->mean_length;
    const double from = f->mean_length + (heavy ? 0.0 : 6.0 * f->deviation);

    l->group = 1;
    l->most = ENTRIES;
    l->cut = from > ENTRIES ? ENTRIES : from < SHORTEST ? SHORTEST
                                                        : (int32_t)from;
    return f->max_length > ENTRIES || f->max_length > 4 * l->cut;
}

/* Where rows are too few to keep a large machine busy by parts of warps, all
 * but short ones get a warp or more. */
bool spsi_segments_pay(const sps_features *f, sps_segments_limits *l)
{
    bool list = spsi_segments_uneven(f, l);

    if (f->nrow < FEW && (list || f->mean_length > SHORTEST)) {
        l->cut = SHORTEST;
        l->most = ENTRIES / 4;
        list = true;
    }
    l->group = f->block % 3 == 0 ? 3 : f->block % 2 == 0 ? 2 : 1;
    if (!list) l->cut = ENTRIES;
    return list || l->group > 1;
}

static int64_t length_of(const int64_t *rowptr, int64_t i)
{
    return rowptr[i + 1] - rowptr[i];
}

/* Finds the groups whose rows store the same columns. */
static void compare(sps_segments *s, const int64_t *rowptr, const int32_t *col)
{
    const int64_t size = s->limits.group;

    for (int64_t g = 0; s->alike && g < s->groups; g++) {
        const int64_t first = g * size, length = length_of(rowptr, first);
        bool same = true;

        for (int64_t i = first + 1; same && i < first + size; i++)
            same = length_of(rowptr, i) == length &&
                   !memcmp(col + rowptr[i], col + rowptr[first],
                           (size_t)length * sizeof *col);
        s->alike[g] = same;
        s->odd += !same;
    }
}

static bool is_alike(const sps_segments *s, int64_t i)
{
    return !s->alike || s->alike[i / s->limits.group];
}

/* What row i adds to the totals of s. */
static void add(sps_segments *s, int64_t i, int64_t length)
{
    const int64_t pieces = spsi_segments_of(length, is_alike(s, i), s->limits);

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
        const int64_t length = length_of(rowptr, i);

        while (r < s->ranges && before >= r * cost / s->ranges)
            s->range[r++] = i;
        spsi_segments_row(s, i, rowptr[i], length, is_alike(s, i), s->count,
                          s->slots, s->joins);
        add(s, i, length);
        before += spsi_segments_cost(length, s->limits);
    }
    while (s->range && r <= s->ranges) s->range[r++] = nrow;
}

sps_status spsi_segments_build(sps_context *ctx, int64_t nrow,
                               const int64_t *rowptr, const int32_t *col,
                               sps_segments_limits limits, int64_t ranges,
                               sps_segments **s_p)
{
    sps_status st;
    sps_segments *s = NULL;
    int64_t cost = 0;

    *s_p = NULL;
    SPS_TRY(SPS_NEW(ctx, 1, &s));
    s->ctx = ctx;
    s->limits = limits;
    if (limits.group > 1) {
        s->groups = nrow / limits.group;
        SPS_TRY(SPS_NEW(ctx, s->groups + 1, &s->alike));
        compare(s, rowptr, col);
    } else {
        s->ranges = ranges > 0 ? ranges : 1;
        SPS_TRY(SPS_NEW(ctx, s->ranges + 1, &s->range));
    }
    for (int64_t i = 0; i < nrow; i++) {
        add(s, i, length_of(rowptr, i));
        cost += spsi_segments_cost(length_of(rowptr, i), limits);
    }
    SPS_REQUIRE(ctx, s->slots <= INT32_MAX, SPS_EUNFIT,
                "%lld segments of split rows: at most 2^31 - 1 are served",
                (long long)s->slots);
    SPS_TRY(SPS_NEW(ctx, s->count, &s->segment));
    SPS_TRY(SPS_NEW(ctx, s->joins, &s->join));
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
    spsi_free(s->ctx, s->alike);
    spsi_free(s->ctx, s);
    *s_p = NULL;
}
