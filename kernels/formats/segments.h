/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.h - the work of a product by rows, shared out where rows differ
 * much in length, or come in groups that store the same columns.
 *
 * After RoDe (Pang et al., Proc. PPoPP 2024), which splits every row into
 * blocks and a residue; here a row has one owner, and only a row longer than
 * `most` has several:
 *   - short rows, of at most `cut` entries, lie in ranges of consecutive rows
 *     of about equal cost; a range is walked by one block of threads;
 *   - a longer row is one segment, or, beyond `most` entries, several of about
 *     equal length; a segment is the work of one warp.  The segments of one row
 *     follow each other and have slots, rows of a workspace, for their sums;
 *     a join adds them in order;
 *   - where `group` > 1 rows i group .. i group + group - 1 are walked together
 *     if they are alike, that is, store the same columns (the unknowns of one
 *     node); rows of other groups are segments, whatever their length.
 *
 * Invariant: each row is in one range; the segments of a row that is not short
 * cover its entries once, ascending (an empty row has one, too); a short row
 * has none; a slot belongs to one segment, -1 says that the segment is a whole
 * row. */
#ifndef SPS_SEGMENTS_H
#define SPS_SEGMENTS_H

#include "lib/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_segment {
    int64_t row, start;        /* start: of its entries, in the matrix */
    int32_t length, slot;
} sps_segment;

/* Slots first .. first + count - 1 add up to the row. */
typedef struct sps_join {
    int64_t row;
    int32_t first, count;
} sps_join;

typedef struct sps_segments_limits {
    int32_t cut, most, group;
} sps_segments_limits;

typedef struct sps_segments {
    sps_context *ctx;
    sps_segments_limits limits;
    int64_t count, joins, slots;
    sps_segment *segment;      /* count */
    sps_join *join;            /* joins */
    int64_t ranges;            /* none where rows come in groups */
    int64_t *range;            /* ranges + 1 first rows, ascending */
    int64_t groups, odd;       /* whole groups; those not alike */
    uint8_t *alike;            /* groups + 1, the last 0 for what is left; NULL
                                  where group = 1 */
} sps_segments;

/* A plan that begins like this can be looked into. */
typedef struct sps_segments_plan {
    sps_plan super;
    sps_segments parts;        /* arrays in the place, ctx NULL */
} sps_segments_plan;

/* Beside its entries a row costs as much as so many: offsets, its Y. */
#define SPS_SEGMENTS_ROW 6

#ifdef __CUDACC__
#define SPS_SEGMENTS_BOTH __host__ __device__ static inline
#else
#define SPS_SEGMENTS_BOTH static inline
#endif

/* Whether lengths differ so much that a list pays; *l: the limits to build
 * with, rows one by one. */
bool spsi_segments_uneven(const sps_features *f, sps_segments_limits *l);
/* Whether lengths differ so much, or rows are so much alike, that a list pays;
 * else every row is short.  *l: the limits to build with. */
bool spsi_segments_pay(const sps_features *f, sps_segments_limits *l);

/* Segments of a row so long; alike: as the other rows of its group. */
SPS_SEGMENTS_BOTH int64_t spsi_segments_of(int64_t length, bool alike,
                                           sps_segments_limits l)
{
    if (alike && length <= l.cut) return 0;
    return length > 0 ? (length + l.most - 1) / l.most : 1;
}
/* Entries of each of them but the last, which may have fewer: equal shares,
 * up to whole loads of a warp. */
SPS_SEGMENTS_BOTH int32_t spsi_segments_share(int64_t length, int64_t pieces)
{
    int64_t share = (length + pieces - 1) / pieces;

    return (int32_t)((share + 31) / 32 * 32);
}
/* What the row costs the range that it lies in. */
SPS_SEGMENTS_BOTH int32_t spsi_segments_cost(int64_t length,
                                             sps_segments_limits l)
{
    return SPS_SEGMENTS_ROW + (length > l.cut ? 0 : (int32_t)length);
}
/* Writes the segments of a row to s->segment[count ..], their slots beginning
 * with `slots`, and its join, if it is several, to s->join[joins]. */
SPS_SEGMENTS_BOTH void spsi_segments_row(const sps_segments *s, int64_t row,
                                         int64_t start, int64_t length,
                                         bool alike, int64_t count,
                                         int64_t slots, int64_t joins)
{
    const int64_t pieces = spsi_segments_of(length, alike, s->limits);
    const int32_t share = pieces ? spsi_segments_share(length, pieces) : 0;

    for (int64_t n = 0; n < pieces; n++) {
        const int64_t left = length - n * share;
        sps_segment *t = s->segment + count + n;

        t->row = row;
        t->start = start + n * share;
        t->length = (int32_t)(left < share ? left : share);
        t->slot = pieces > 1 ? (int32_t)(slots + n) : -1;
    }
    if (pieces > 1) {
        s->join[joins].row = row;
        s->join[joins].first = (int32_t)slots;
        s->join[joins].count = (int32_t)pieces;
    }
}

/* rowptr, col: of the matrix, on the host; col is looked at for groups alone;
 * most: a multiple of 32. */
sps_status spsi_segments_build(sps_context *ctx, int64_t nrow,
                               const int64_t *rowptr, const int32_t *col,
                               sps_segments_limits limits, int64_t ranges,
                               sps_segments **s_p);
void spsi_segments_destroy(sps_segments **s_p);

#ifdef __cplusplus
}
#endif
#endif
