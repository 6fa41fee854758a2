/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_parts.h - shared by the files that make an operator over processes
 * (operator_ranks.h) and read what it holds. */
#ifndef SPS_RANKS_PARTS_H
#define SPS_RANKS_PARTS_H

#include "operator/operator_ranks.h"

/* Rows whose columns are those of the whole, or, with h, those of
 * spsi_ranks_rows. */
typedef struct spsi_rows_there {
    const sps_csr *X;
    const sps_halo *h;
} spsi_rows_there;

/* What an operator is made for. */
typedef struct spsi_uses {
    int64_t cols;             /* own columns */
    int width;
    sps_dtype blocks;
    bool inner;               /* see sps_operator */
    const spsi_rows_there *there;  /* the rows, if they are in device memory */
} spsi_uses;

/* operator_ranks.c: creates an operator made by the library from A, whose rows
 * and columns are known to be good. */
sps_status spsi_ranks_make(sps_context *ctx, const sps_csr *A,
                           const spsi_uses *u, sps_operator **op_p);

/* *op_p = an operator for blocks of type `blocks` that shares everything with
 * `of` but the operators of the rows, which are still to be made. */
sps_status spsi_ranks_share(const sps_operator *of, sps_dtype blocks,
                            sps_operator **op_p);
/* EBUG for an operator that shares the rows of another, which alone owns them
 * and what is made of them. */
sps_status spsi_ranks_not_shared(const sps_operator *op);
/* Sets r->adds; r->boundary exists. */
void spsi_ranks_choose_adds(sps_ranks *r);

/* ranks_divide.c.  Makes the matrices of interior and boundary rows, and the
 * halo.  The other function copies values of all rows, in the order of r->A, to
 * both. */
sps_status spsi_ranks_divide(sps_context *ctx, sps_ranks *r,
                             const spsi_uses *u);
void spsi_ranks_split_values(sps_ranks *r, const void *val);
/* Returns the number of boundary rows before row i. */
int64_t spsi_ranks_edges_before(const sps_ranks *r, int64_t i);

/* ranks_there.c: makes r->row, r->edge and r->inner; *global_p: the columns of
 * r->edge, which the caller frees. */
sps_status spsi_ranks_take_there(sps_context *ctx, sps_ranks *r,
                                 const spsi_rows_there *t, int64_t **global_p);

#endif
