/* SPDX-License-Identifier: BSD-3-Clause */
/* partition.h - a new order of the rows of a distributed matrix, in which the
 * rows of each process are near each other.
 *
 * Nodes of `unknowns` consecutive rows stay whole.  They are sorted by a key,
 * nodes of one key by their number: the key is a place on Morton's curve
 * through the coordinates, or the part that METIS assigns.  Each process keeps
 * its number of rows, so that blocks of the old order and of the new one have
 * the same shape; where METIS makes parts of other sizes, a process has rows of
 * the neighbouring parts. */
#ifndef SPS_PARTITION_H
#define SPS_PARTITION_H

#include "operator/operator.h"

typedef struct sps_partition {
    sps_context *ctx;
    int unknowns;             /* rows of a node */
    int64_t first, nodes;     /* own nodes; they and the following ones count
                                 nodes, not rows */
    int64_t *offset;          /* first node of each process, size + 1 */
    int64_t *given;           /* own nodes, by the process that gets them */
    int64_t *given_at;        /* size + 1 */
    int64_t *taken;           /* global old numbers of the nodes that this
                                 process gets, in the order of their senders */
    int64_t *taken_at;        /* size + 1 */
    int64_t *to;              /* the new own node that taken[i] becomes */
    int64_t *place;           /* global new number of each own old node */
} sps_partition;

/* Finds the new order for the operator of a distributed matrix; collective.
 * `how` is "morton", with the coordinates of the own nodes, or "metis".
 * EINVAL without coordinates; ESHAPE if they do not fit the rows, or processes
 * begin within a node; EABSENT or EUNFIT without METIS. */
sps_status spsi_partition_find(const sps_operator *op, const char *how,
                               const sps_options *o, sps_partition *p);
void spsi_partition_clear(sps_partition *p);

/* key[i] = the part that METIS assigns to own node i; collective. */
sps_status spsi_partition_metis(const sps_operator *op, const sps_partition *p,
                                uint64_t *key);

#endif
