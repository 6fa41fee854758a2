/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks.h - declarations shared by over_ranks.c and over_ranks_p.c: amg of
 * a matrix whose rows are spread over processes. */
#ifndef SPS_AMG_OVER_RANKS_H
#define SPS_AMG_OVER_RANKS_H

#include "operator/operator_ranks.h"
#include "solvers/amg/amg.h"

typedef struct over_ranks {
    amg fine;                 /* the preconditioner itself; level[0] has the
                                 aggregates of own rows from which P is made */
    amg_span span;
    bool spread;              /* the next level is spread over processes as
                                 well */
    sps_csr *rows;            /* if `spread`, this process's rows of A_c, with
                                 global columns */
    sps_operator *coarse;     /* operator of A_c */
    sps_precond *below;       /* amg of A_c; NULL if no process has an
                                 aggregate */
    sps_operator *prolong, *restrict_op;
    sps_block *near;          /* near-null vectors of A_c, for its rows on this
                                 process */
    sps_block *inverse;       /* n x 1: D^-1 */
    sps_block *first;         /* n x 1: D^-1 / root[0] */
    sps_block *other, *rest;  /* n x width */
    sps_block *all;           /* restricted residuals of all processes, or of
                                 this one if `spread` */
    sps_block *x;             /* the result of `below` for the residuals in
                                 `all` */
    int64_t *at;              /* size + 1 elements: first row of each process in
                                 `all` */
    sps_message *out, *in;    /* one message for each process */
} over_ranks;

/* over_ranks_p.c: makes P of own rows, A_c and its near-null vectors from the
 * values that A has now; if `again`, for the existing aggregates. */
sps_status spsi_amg_project(over_ranks *w, bool again);

#endif
