/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.c - decides whether a list of segments reduces the run time of a
 * product, and with which limits to build it. */
#include "formats/segments.h"

enum { ENTRIES = 512, SHORTEST = 32, FEW = 1 << 14 };

/* Returns whether row lengths differ so much that a list is faster; *l receives
 * the limits to build it with, for single rows.  In a heavy-tailed distribution
 * rows longer than the mean are few and have most entries: each of them is
 * processed by a warp.  Otherwise only outliers are divided. */
static bool uneven(const sps_features *f, sps_segments_limits *l)
{
    const bool heavy = f->deviation > f->mean_length;
    const double from = f->mean_length + (heavy ? 0.0 : 6.0 * f->deviation);

    l->group = 1;
    l->most = ENTRIES;
    l->cut = from > ENTRIES ? ENTRIES : from < SHORTEST ? SHORTEST
                                                        : (int32_t)from;
    return f->max_length > ENTRIES || f->max_length > 4 * l->cut;
}

/* If rows are too few to occupy a large GPU with several rows per warp, each
 * row that is not short is processed by a warp or several. */
bool spsi_segments_pay(const sps_features *f, sps_segments_limits *l)
{
    bool list = uneven(f, l);

    if (f->nrow < FEW && (list || f->mean_length > SHORTEST)) {
        l->cut = SHORTEST;
        l->most = ENTRIES / 4;
        list = true;
    }
    l->group = f->block % 3 == 0 ? 3 : f->block % 2 == 0 ? 2 : 1;
    if (!list) l->cut = ENTRIES;
    return list || l->group > 1;
}
