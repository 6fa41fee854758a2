/* SPDX-License-Identifier: BSD-3-Clause */
/* trade.h - items that each process sends to any others, and rows of matrices.
 * Items for process r are number at[r] to at[r + 1] - 1 of an array; `at` has
 * one element more than there are processes.  All calls are collective. */
#ifndef SPS_TRADE_H
#define SPS_TRADE_H

#include "halo/halo.h"

/* in_at is set to the offsets of what is received if out_at has those of what
 * is sent. */
sps_status spsi_trade_counts(sps_context *ctx, const int64_t *out_at,
                             int64_t *in_at);
/* Sends the items of `out`, of `each` bytes, and receives those of `in`. */
sps_status spsi_trade(sps_context *ctx, const int64_t *out_at, const void *out,
                      const int64_t *in_at, void *in, size_t each);

/* Rows of a matrix, one after another. */
typedef struct spsi_row_list {
    int64_t *length, entries; /* entries of each row, and of all */
    int64_t *at;              /* offset of the entries of neighbour i */
    int64_t *col;             /* global columns */
    double *val;
} spsi_row_list;

/* Receives the rows that the ghosts of h number, in their order, and sends
 * those of A that other processes need.  A has the own rows, with values in
 * double precision and global columns, or columns that count from `first`. */
sps_status spsi_trade_rows(const sps_halo *h, const sps_csr *A, int64_t first,
                           spsi_row_list *in);
/* The same for a matrix of just the rows h->send, in this order. */
sps_status spsi_trade_picked(const sps_halo *h, const sps_csr *rows,
                             int64_t first, spsi_row_list *in);
void spsi_row_list_clear(sps_context *ctx, spsi_row_list *t);

#endif
