/* SPDX-License-Identifier: BSD-3-Clause */
/* order.h - scalings and permutations for factorisations.  All functions work
 * on host arrays, in one thread; long computations return SPS_EUNFIT after the
 * deadline (deadline.h). */
#ifndef SPS_ORDER_H
#define SPS_ORDER_H

#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is sorted by a number, and where it was. */
typedef struct sps_keyed {
    int64_t key, at;
} sps_keyed;
/* Compares two sps_keyed, or structs that begin with one, for qsort: by key,
 * and those with equal keys by their place. */
int spsi_by_key(const void *a, const void *b);
/* Compares two pairs of int32_t: by the first, then by the second. */
int spsi_by_pair(const void *a, const void *b);
/* Sorts the columns of a row, most of which are short or sorted already. */
void spsi_sort_columns(int32_t *col, int64_t count);
/* Creates the n x n permutation whose row i has a 1 in column order[i]; for an
 * order of NULL, the identity. */
sps_status spsi_permutation(sps_context *ctx, int64_t n, const int32_t *order,
                            sps_csr **P_p);

/* The graph of A + A' without loops: the neighbours of vertex i are
 * next[start[i]] .. next[start[i+1]-1], ascending. */
typedef struct sps_graph {
    int64_t n;
    int64_t *start;
    int32_t *next;
} sps_graph;
sps_status spsi_graph_create(sps_context *ctx, const sps_csr *A, sps_graph *g);
void spsi_graph_clear(sps_context *ctx, sps_graph *g);

/* Reverse Cuthill-McKee order, for a small bandwidth: order[new] = old, n
 * elements. */
sps_status spsi_order_rcm(sps_context *ctx, const sps_graph *g,
                          int32_t *order);
/* The bounding box of nodes. */
typedef struct sps_box {
    double low[3], high[3];
} sps_box;
/* Finds the box of m nodes in d dimensions, m x d, row-major; EINVAL for
 * coordinates that are not finite. */
sps_status spsi_morton_box(sps_context *ctx, const double *x, int64_t m, int d,
                           sps_box *box);
/* Returns the interleaved bits of the cell of the box with the node at x, at
 * most 63 of them: its place on Morton's curve. */
uint64_t spsi_morton_key(const sps_box *box, const double *x, int d);
/* Order along Morton's curve: order[new] = old.  x has the coordinates of m
 * nodes, m x d with d = 1 to 3, row-major; the `unknowns` unknowns of a node
 * are consecutive. */
sps_status spsi_order_morton(sps_context *ctx, const double *x, int64_t m,
                             int d, int unknowns, int32_t *order);
/* Off-diagonal entries of the lower triangle of complete factors in an order,
 * and the sum of the squares of its column lengths: the multiply-adds of L U
 * without pivoting. */
typedef struct sps_fill {
    double entries, operations;
} sps_fill;
/* Minimum degree order, for little fill in complete factors: order[new] =
 * old.  Adds up *fill, if it is not NULL, as upper bounds. */
sps_status spsi_order_degree(sps_context *ctx, const sps_graph *g,
                             int32_t *order, sps_fill *fill);

/* Matching with maximum product: column[i] is matched to row i, or -1.  row and
 * col are scalings by powers of two with |row[i] a_ij col[j]| <= 1, about 1 on
 * the matching.  *rank is the number of matched rows, the structural rank; the
 * scalings are usable if it is n. */
sps_status spsi_match(sps_context *ctx, const sps_csr *A, int32_t *column,
                      double *row, double *col, int64_t *rank);
/* Computes scalings by powers of two that bring the largest |entry| of every
 * row and column near 1; row = col if A is symmetric. */
sps_status spsi_equilibrate(sps_context *ctx, const sps_csr *A, double *row,
                            double *col);

#ifdef __cplusplus
}
#endif
#endif
