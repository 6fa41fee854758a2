/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks.h - what over_ranks.c and over_ranks_p.c share: amg of a matrix
 * whose rows are spread over processes. */
#ifndef SPS_AMG_OVER_RANKS_H
#define SPS_AMG_OVER_RANKS_H

#include "operator/operator_ranks.h"
#include "solvers/amg/amg.h"

typedef struct over_ranks {
    amg fine;                 /* the preconditioner; level[0] makes P */
    amg_span span;
    bool spread;              /* the next level is spread over processes, too */
    sps_csr *rows;            /* then: its own rows, with global columns */
    sps_operator *coarse;     /* A_c */
    sps_precond *below;       /* amg of A_c; NULL: nobody has an aggregate */
    sps_operator *prolong, *restrict_op;
    sps_block *near;          /* near-null vectors of A_c, of its rows here */
    sps_block *inverse;       /* n x 1: D^-1 */
    sps_block *first;         /* n x 1: D^-1 / root[0] */
    sps_block *other, *rest;  /* n x width */
    sps_block *all;           /* restricted residuals of all processes, or of
                                 this one if `spread`, */
    sps_block *x;             /* and what `below` makes of them */
    int64_t *at;              /* where those of process r begin; size + 1 */
    sps_message *out, *in;    /* one for each process */
} over_ranks;

/* over_ranks_p.c: P of own rows, A_c and its near-null vectors, of the values
 * that A has now; again: on the aggregates that exist. */
sps_status spsi_amg_project(over_ranks *w, bool again);

#endif
