/* SPDX-License-Identifier: BSD-3-Clause */
/* roots.h - independent nodes of a graph, from which aggregates grow. */
#ifndef SPS_AMG_ROOTS_H
#define SPS_AMG_ROOTS_H

#include "solvers/amg/amg.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In place of an aggregate: none yet, the node is in the graph. */
enum { AMG_NONE = -1 };
/* t of a root, and of a node that is none. */
#define AMG_ROOT UINT64_MAX
#define AMG_NO_ROOT 0

typedef struct amg_roots_room {
    uint64_t *t, *u;          /* g->n numbers each */
    int32_t *open, *near;     /* the same; free afterwards */
} amg_roots_room;

/* room->t becomes AMG_ROOT or AMG_NO_ROOT: a maximal set of nodes, at least 3
 * edges apart, in the graph of the nodes without an aggregate, from those whose
 * t is not AMG_NO_ROOT on entry. */
sps_status spsi_amg_roots(sps_context *ctx, const amg_graph *g,
                          const int32_t *aggregate, const amg_roots_room *room);

#ifdef __cplusplus
}
#endif
#endif
