/* SPDX-License-Identifier: BSD-3-Clause */
/* triangle.h - sparse triangular systems on blocks: T X = B, T = S + D with S
 * strictly triangular and D diagonal.
 *
 * Row i depends on the rows of its entries: rows are grouped into levels
 * (Anderson and Saad, Int. J. High Speed Comput. 1, 1989), and those of one
 * level are independent.  The pattern is analysed once; new values cost one
 * pass.  Each element of X is one sum in the order of the row's entries,
 * whatever the schedule, so results do not depend on threads. */
#ifndef SPS_TRIANGLE_H
#define SPS_TRIANGLE_H

#include "block/block.h"
#include "matrix/csr.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows by level, ascending within a level: those of level l are row[start[l]]
 * .. row[start[l+1]-1]. */
typedef struct sps_levels {
    int64_t count;
    int64_t *start;           /* count + 1 */
    int32_t *row;             /* n */
} sps_levels;

/* Finds the levels of the rows of A, a csr in host memory, from the entries
 * left of the diagonal, or right of it if `upper`. */
sps_status spsi_levels_find(sps_context *ctx, const sps_csr *A, bool upper,
                            sps_levels *levels);
void spsi_levels_clear(sps_context *ctx, sps_levels *levels);

/* The parts of a triangle, in host arrays.  A factor of a permuted matrix
 * includes the permutations: equation i reads row from[i] of B and determines
 * row to[i] of X. */
typedef struct sps_triangle_parts {
    bool upper;
    sps_csr *S;               /* strict triangle, rows sorted */
    double *inverse;          /* n, inverse diagonal; NULL stands for ones */
    int32_t *from, *to;       /* n; NULL for the identity */
} sps_triangle_parts;

typedef struct sps_triangle {
    sps_context *ctx;
    int64_t n;
    sps_triangle_parts part;  /* columns of S are rows of X: to[] is applied */
    sps_levels levels;        /* the equations by level */
    void *local;              /* owned by the backend */
} sps_triangle;

/* Creates a triangle, which takes ownership of the parts, even on failure. */
sps_status spsi_triangle_create(sps_context *ctx,
                                const sps_triangle_parts *part,
                                sps_triangle **t_p);
/* Must be called after part.S->val and part.inverse have changed. */
sps_status spsi_triangle_refresh(sps_triangle *t);
/* X = T^-1 B; X and B must differ. */
sps_status spsi_triangle_solve(const sps_triangle *t, const sps_block *B,
                               sps_block *X);
void spsi_triangle_destroy(sps_triangle **t_p);

#ifdef __cplusplus
}
#endif
#endif
