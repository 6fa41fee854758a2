/* SPDX-License-Identifier: BSD-3-Clause */
/* reorder.h - a second operator of the same matrix with reordered unknowns, for
 * solvers: P A P' (P x) = P b. */
#ifndef SPS_REORDER_H
#define SPS_REORDER_H

#include "operator/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_moves;

typedef struct sps_reordering {
    sps_csr *A, *P, *T;       /* P A P', P, P' */
    int64_t *entry;           /* entry p of A is entry[p] of the original */
    sps_operator *inner;      /* operator of P A P' */
    sps_operator *forth, *back;   /* operators of P and of P' */
    void *val;                /* scratch for new values */
    int unknowns;             /* nodes of so many rows stay whole, in the order
                                 of the nodes; 0 if they may be divided */
    struct sps_moves *moves;  /* of a distributed matrix, or NULL */
} sps_reordering;

/* Creates op->reordered if o->reorder requests it or auto predicts a gain; adds
 * a note. */
sps_status spsi_operator_reorder(sps_operator *op, const sps_options *o);
/* Updates the values of the inner operator. */
sps_status spsi_operator_reorder_values(sps_operator *op);
void spsi_operator_reorder_drop(sps_operator *op);

/* Checks the option coords: 1 to 3 finite coordinates for each node, and rows
 * of op that are a multiple of the nodes. */
sps_status spsi_coords_check(const sps_operator *op, const sps_options *o);

/* reorder_ranks.c: the same for the operator of a distributed matrix, whose
 * rows move between processes (partition.h); `how` is "morton" or "metis".
 * Each process keeps its number of rows.  Collective. */
sps_status spsi_ranks_reorder(sps_operator *op, const char *how,
                              const sps_options *o);
sps_status spsi_ranks_reorder_values(sps_operator *op, const void *val);
void spsi_moves_destroy(sps_context *ctx, struct sps_moves **moves_p);

#ifdef __cplusplus
}
#endif
#endif
