/* SPDX-License-Identifier: BSD-3-Clause */
/* triangle.h - sparse triangular systems on blocks: T X = B, T = S + D with S
 * strictly triangular and D diagonal.
 *
 * Row i can be solved once the rows of its entries are: rows fall into levels
 * (Anderson and Saad, Int. J. High Speed Comput. 1, 1989), those of one level
 * are independent.  The pattern is looked at once; new values cost one pass.
 * Each element of X is one sum in the order of the row's entries, whatever
 * the schedule, so results do not depend on threads. */
#ifndef SPS_TRIANGLE_H
#define SPS_TRIANGLE_H

#include "block.h"
#include "csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows by level, ascending inside one: row[start[l]] .. row[start[l+1]-1]. */
typedef struct sps_levels {
    int64_t count;
    int64_t *start;           /* count + 1 */
    int32_t *row;             /* n */
} sps_levels;

/* Levels of the rows of A, counting entries left of the diagonal (upper:
 * right of it) alone.  A: host csr. */
sps_status spsi_levels_find(sps_context *ctx, const sps_csr *A, bool upper,
                            sps_levels *levels);
void spsi_levels_clear(sps_context *ctx, sps_levels *levels);

/* What a triangle is made of; host arrays.  A factor of a permuted matrix
 * takes its permutations along: equation i reads row from[i] of B and gives
 * row to[i] of X. */
typedef struct sps_triangle_parts {
    bool upper;
    sps_csr *S;               /* strict triangle, rows sorted */
    double *inverse;          /* n, inverse diagonal; NULL: ones */
    int32_t *from, *to;       /* n; NULL: i itself */
} sps_triangle_parts;

typedef struct sps_triangle {
    sps_context *ctx;
    int64_t n;
    sps_triangle_parts part;  /* columns of S are rows of X: to[] is applied */
    sps_levels levels;        /* of equations */
    void *local;              /* what the backend keeps of it */
} sps_triangle;

/* Owns the parts from here on, also when it fails. */
sps_status spsi_triangle_create(sps_context *ctx,
                                const sps_triangle_parts *part,
                                sps_triangle **t_p);
/* After part.S->val and part.inverse were written anew. */
sps_status spsi_triangle_refresh(sps_triangle *t);
/* X = T^-1 B; X != B. */
sps_status spsi_triangle_solve(const sps_triangle *t, const sps_block *B,
                               sps_block *X);
void spsi_triangle_destroy(sps_triangle **t_p);

#ifdef __cplusplus
}
#endif
#endif
