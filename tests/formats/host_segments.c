/* SPDX-License-Identifier: BSD-3-Clause */
/* host_segments.c - divides rows into ranges and segments: one pass over the
 * columns where rows come in groups, two over the offsets, one to count and one
 * to fill. */
#include "tests/formats/host_formats.h"

#include <string.h>

static int64_t length_of(const int64_t *rowptr, int64_t i)
{
    return rowptr[i + 1] - rowptr[i];
}

/* Finds the groups of rows with the same columns. */
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

/* Adds row i to the totals of s. */
static void add(sps_segments *s, int64_t i, int64_t length)
{
    const int64_t pieces = spsi_segments_of(length, is_alike(s, i), s->limits);

    s->count += pieces;
    s->slots += pieces > 1 ? pieces : 0;
    s->joins += pieces > 1;
}

/* Range r begins at the first row with at least r / ranges of the total cost
 * before it; every row has a positive cost, so ranges may be empty but cover
 * all rows. */
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
                "%lld segments of split rows: at most 2^31 - 1 are supported",
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
