/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.h - work lists of a product that is computed row by row, for rows
 * that differ much in length or that come in groups with the same columns.
 *
 * After RoDe (Pang et al., Proc. PPoPP 2024), which divides every row into
 * blocks and a residue; here a row is processed by one group of lanes, and only
 * a row longer than `most` entries by several:
 *   - short rows, of at most `cut` entries, form ranges of consecutive rows
 *     of about equal cost; a range is processed by one thread block;
 *   - a longer row is one segment or, beyond `most` entries, several of about
 *     equal length; a segment is processed by one warp.  The segments of a row
 *     are consecutive; each has a slot, a row of a workspace, for its partial
 *     sum; a join adds these in order;
 *   - if `group` > 1, rows i group .. i group + group - 1 are processed
 *     together if they are alike, that is, have the same columns (the unknowns
 *     of one node); rows of other groups are segments, whatever their length.
 *
 * Invariants: each row is in one range; the segments of a row that is not short
 * cover its entries once, in ascending order (an empty row has one, too); a
 * short row has none; a slot belongs to one segment, and slot -1 means that the
 * segment is a whole row. */
#ifndef SPS_SEGMENTS_H
#define SPS_SEGMENTS_H

#include "plan/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_segment {
    int64_t row, start;        /* start: index of the segment's first entry in
                                  the matrix */
    int32_t length, slot;
} sps_segment;

/* The sums in slots first .. first + count - 1 add up to the row. */
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
    sps_segment *segment;      /* count elements */
    sps_join *join;            /* joins elements */
    int64_t ranges;            /* number of ranges; 0 if rows come in groups */
    int64_t *range;            /* ranges + 1 elements: first rows, in ascending
                                  order */
    int64_t groups, odd;       /* number of complete groups, and of those that
                                  are not alike */
    uint8_t *alike;            /* groups + 1 elements, the last is 0 for the
                                  incomplete group; NULL if group = 1 */
} sps_segments;

/* First members of a plan that tests can inspect. */
typedef struct sps_segments_plan {
    sps_plan super;
    sps_segments parts;        /* its arrays are in the memory of the backend,
                                  ctx is NULL */
} sps_segments_plan;

/* Cost of a row in addition to its entries, as a number of entries: its offsets
 * and its row of Y. */
#define SPS_SEGMENTS_ROW 6

#ifdef __CUDACC__
#define SPS_SEGMENTS_BOTH __host__ __device__ static inline
#else
#define SPS_SEGMENTS_BOTH static inline
#endif

/* Returns whether row lengths differ so much, or so many rows have the same
 * columns, that a list is faster; otherwise every row is short.  *l receives
 * the limits to build it with. */
bool spsi_segments_pay(const sps_features *f, sps_segments_limits *l);

/* Returns the number of segments of a row; alike: the rows of its group have
 * the same columns. */
SPS_SEGMENTS_BOTH int64_t spsi_segments_of(int64_t length, bool alike,
                                           sps_segments_limits l)
{
    if (alike && length <= l.cut) return 0;
    return length > 0 ? (length + l.most - 1) / l.most : 1;
}
/* Returns the entries of each segment except the last, which may have fewer:
 * equal parts, rounded up to whole loads of a warp. */
SPS_SEGMENTS_BOTH int32_t spsi_segments_share(int64_t length, int64_t pieces)
{
    int64_t share = (length + pieces - 1) / pieces;

    return (int32_t)((share + 31) / 32 * 32);
}
/* Returns the cost of a row within its range. */
SPS_SEGMENTS_BOTH int32_t spsi_segments_cost(int64_t length,
                                             sps_segments_limits l)
{
    return SPS_SEGMENTS_ROW + (length > l.cut ? 0 : (int32_t)length);
}
/* Writes the segments of a row to s->segment[count ..], with slots from `slots`
 * on, and, if there are several, its join to s->join[joins]. */
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

#ifdef __cplusplus
}
#endif
#endif
