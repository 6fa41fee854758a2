/* SPDX-License-Identifier: BSD-3-Clause */
/* near_rows.h - the rows of a distributed matrix that a process owns, with
 * those of other processes near them, for preconditioners whose rows are made
 * from rows nearby, whoever owns these.  The near rows are numbered in the
 * order of the whole matrix: `halo->low` rows of lower processes, the own rows,
 * rows of higher processes.  All calls but the last three are collective. */
#ifndef SPS_NEAR_ROWS_H
#define SPS_NEAR_ROWS_H

#include "driver/precond.h"
#include "operator/operator_ranks.h"

struct near_rows {
    sps_halo *halo;           /* its ghosts are the rows of other processes */
    sps_csr *A;               /* square: without entries in other columns */
};

/* Finds the rows within `distance` >= 1 in the graph of the own rows of A, in
 * doubles and with global columns. */
sps_status spsi_near_rows(sps_context *ctx, const sps_csr *A, int distance,
                          struct near_rows *w);
/* The same for the matrix of a distributed operator, with present values. */
sps_status spsi_near_rows_of(const sps_operator *A, int distance,
                             struct near_rows *w);
/* Makes a distributed matrix of G, which has the own rows, with the values
 * given, in columns that are numbered as the near rows. */
sps_status spsi_near_spread(const sps_halo *h, const sps_csr *G,
                            const double *val, sps_csr **own_p);
/* Makes the own rows of the transpose of that matrix. */
sps_status spsi_near_transpose(const sps_halo *h, const sps_csr *G,
                               const double *val, sps_csr **own_p);
/* Returns the global number of near row j. */
int64_t spsi_near_global(const sps_halo *h, int64_t j);
/* Returns the number among the near rows of a row of the whole, or -1. */
int64_t spsi_near_number(const sps_halo *h, int64_t row);
void spsi_near_clear(sps_context *ctx, struct near_rows *w);

#endif
