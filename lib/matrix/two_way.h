/* SPDX-License-Identifier: BSD-3-Clause */
/* two_way.h - products with A and A' in one pass over A, for
 * bidiagonalisation: U = A X diag(c) - U and, while the rows of U are in the
 * cache, S = A'U.
 *
 * The order of the rows of U is free, so rows are sorted by their first and
 * last columns: those with the same columns become neighbours (a group, whose
 * columns are stored once) and read the same rows of X.  Pieces of
 * consecutive groups are independent of each other: each has rows of S of its
 * own, a slot for each column that occurs in it, and the second pass adds the
 * slots of a column.  The division depends on the pattern only, so results do
 * not depend on the number of threads.
 *
 * Bytes of both passes: 8 for each entry of A, U twice, 4 rows for each slot,
 * X once, Z twice.  Separate products read A and A' (12 bytes for each entry)
 * and U once more, and take rows of U in the order of the entries of A'. */
#ifndef SPS_TWO_WAY_H
#define SPS_TWO_WAY_H

#include "block/block.h"
#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_two_way {
    sps_context *ctx;
    int64_t nrow, ncol;
    int32_t *order;           /* row i of U belongs to row order[i] of A */
    /* Group g has rows row[g] .. row[g+1]-1 of U, the slots of its columns are
     * slot[entry[g]] .., and its values are val[value[g]] .., row by row. */
    int64_t groups, *row, *entry, *value;
    int32_t *slot;
    double *val;
    /* Piece p has groups piece[p] .. and slots first[p] .. */
    int64_t pieces, *piece, *first;
    int32_t *column;          /* of each slot */
    int64_t *start;           /* slots of column j: where[start[j]] .. */
    int32_t *where;
    sps_block *S;             /* one row for each slot */
} sps_two_way;

/* Prepares A, sorted and in host memory, for blocks of up to k columns; *w_p
 * remains NULL if the backend has no such passes or they would not pay. */
sps_status spsi_two_way_create(sps_context *ctx, const sps_csr *A, int k,
                               sps_two_way **w_p);
/* Takes new values of A. */
void spsi_two_way_refresh(sps_two_way *w, const sps_csr *A);
void spsi_two_way_destroy(sps_two_way **w_p);
/* U = A X diag(c) - U with the rows of U in the order of w, and its norms; the
 * sums of A'U are kept in w. */
sps_status spsi_two_way_there(const sps_two_way *w, const double *c,
                              const sps_block *X, sps_block *U, double *norm);
/* Z = (A'U + d V) diag(a) + Z diag(b) for the last U, and its norms; without
 * V if V is NULL, without the old Z if b is NULL. */
sps_status spsi_two_way_back(const sps_two_way *w, const double *a, double d,
                             const sps_block *V, const double *b, sps_block *Z,
                             double *norm);

#ifdef __cplusplus
}
#endif
#endif
