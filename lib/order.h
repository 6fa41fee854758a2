/* SPDX-License-Identifier: BSD-3-Clause */
/* order.h - scalings and permutations that make a matrix fit to be factored.
 * All of it on host arrays, serial, the same for any number of threads.  What
 * may take long ends with SPS_EUNFIT at its deadline (of spsi_now(), 0: none).
 */
#ifndef SPS_ORDER_H
#define SPS_ORDER_H

#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The graph of A + A' without loops: neighbours of i are
 * next[start[i]] .. next[start[i+1]-1], ascending. */
typedef struct sps_graph {
    int64_t n;
    int64_t *start;
    int32_t *next;
} sps_graph;
sps_status spsi_graph_create(sps_context *ctx, const sps_csr *A, sps_graph *g);
void spsi_graph_clear(sps_context *ctx, sps_graph *g);

/* order[new] = old, n numbers.  Reverse Cuthill-McKee: small bandwidth. */
sps_status spsi_order_rcm(sps_context *ctx, const sps_graph *g,
                          int32_t *order);
/* By places: x, m nodes in d = 1 to 3 dimensions by rows, each of so many
 * unknowns side by side. */
sps_status spsi_order_morton(sps_context *ctx, const double *x, int64_t m,
                             int d, int unknowns, int32_t *order);
/* Minimum degree: little fill in complete factors. */
sps_status spsi_order_degree(sps_context *ctx, const sps_graph *g,
                             double deadline, int32_t *order);

/* Maximum product matching: column[i] is that of row i (-1: none), row and
 * col scalings with |row[i] a_ij col[j]| <= 1, about 1 on the matching; powers
 * of two.  *rank: rows matched, the structural rank; scalings are usable when
 * it is n. */
sps_status spsi_match(sps_context *ctx, const sps_csr *A, double deadline,
                      int32_t *column, double *row, double *col,
                      int64_t *rank);
/* Scalings, powers of two, that bring the largest |entry| of every row and
 * column near 1; row = col where A is symmetric. */
sps_status spsi_equilibrate(sps_context *ctx, const sps_csr *A, double *row,
                            double *col);

#ifdef __cplusplus
}
#endif
#endif
