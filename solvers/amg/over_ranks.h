/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks.h - declarations shared by the files over_ranks*.c: amg of a
 * matrix whose rows are spread over processes. */
#ifndef SPS_AMG_OVER_RANKS_H
#define SPS_AMG_OVER_RANKS_H

#include "operator/operator_ranks.h"
#include "solvers/amg/amg.h"

typedef struct over_ranks {
    amg fine;                 /* the preconditioner itself: level[0] has the
                                 aggregates of own rows, own rows of P and A P,
                                 and own columns of P as rows of R */
    amg_span span;
    bool there;               /* the matrices of the level are in device
                                 memory, on all processes */
    bool spread;              /* the next level is spread over processes as
                                 well */
    bool ahead;               /* every process has A P for `ahead` */
    int node;                 /* rows of a node of A_c */
    unsigned char *strong;    /* which couplings to ghosts are strong, or NULL
                                 if all are */
    sps_csr *rows;            /* if `spread`, this process's rows of A_c,
                                 span.own, with the columns `global` */
    int64_t *global;
    sps_operator *coarse;     /* operator of A_c */
    sps_precond *below;       /* amg of A_c; NULL if no process has an
                                 aggregate */
    sps_block *near;          /* near-null vectors of A_c, for its rows on this
                                 process */
    sps_block *x;             /* the result of `below`, where that has no block
                                 for it */
    int64_t *at;              /* size + 1 elements: first row of each process in
                                 A_c */
    sps_message *out, *in;    /* one message for each process */
} over_ranks;

/* over_ranks_p.c.  The first function takes own rows and the diagonal block
 * with the values that A has now; the second makes A_c, its near-null vectors
 * and P from them; if `again`, for the existing aggregates. */
sps_status spsi_amg_take_rows(over_ranks *w);
sps_status spsi_amg_project(over_ranks *w, bool again);

/* over_ranks_filter.c: sets *E_p to A_F of own rows if some process drops
 * couplings, and *factor_p to the factors of its boundary rows (coarsening.h,
 * `smooth`), which the caller frees; *rho to the largest eigenvalue of D_F^-1
 * A_F: the largest of those of diagonal blocks. */
sps_status spsi_amg_filter_across(over_ranks *w, double *rho, sps_csr **E_p,
                                  double **factor_p);

/* over_ranks_spectrum.c: as spsi_amg_bounds, for the rows of all processes. */
sps_status spsi_amg_bounds_across(over_ranks *w, double *bound);

/* over_ranks_parts.c: makes the operators and blocks of the cycle in the
 * precision m->floats, again if they exist; w->span.rows are the own rows.
 * EUNFIT, on all processes, if values do not fit single precision. */
sps_status spsi_amg_open_across(over_ranks *w);
/* over_ranks_device.c: the first makes these operators, the second w->coarse,
 * from matrices in device memory. */
sps_status spsi_amg_open_there(over_ranks *w);
sps_status spsi_amg_coarse_there(over_ranks *w);

#endif
