/* SPDX-License-Identifier: BSD-3-Clause */
/* roots.h - finds independent nodes of a graph, from which aggregates grow. */
#ifndef SPS_AMG_ROOTS_H
#define SPS_AMG_ROOTS_H

#include "solvers/amg/amg.h"

#ifdef __cplusplus
extern "C" {
#endif

/* aggregate[i] of a node that belongs to no aggregate yet and may still be
 * assigned to one. */
enum { AMG_NONE = -1 };
/* Values of t for a root, and for a node that is not a root. */
#define AMG_ROOT UINT64_MAX
#define AMG_NO_ROOT 0

typedef struct amg_roots_room {
    uint64_t *t, *u;          /* g->n elements each */
    int32_t *open, *near;     /* g->n elements each; free for other use
                                 afterwards */
} amg_roots_room;

/* Sets room->t to AMG_ROOT or AMG_NO_ROOT for each node of the graph of the
 * nodes without an aggregate.  The roots are a maximal set of nodes that are at
 * least 3 edges apart, among the nodes whose t is not AMG_NO_ROOT on entry. */
sps_status spsi_amg_roots(sps_context *ctx, const amg_graph *g,
                          const int32_t *aggregate, const amg_roots_room *room);

#ifdef __cplusplus
}
#endif
#endif
