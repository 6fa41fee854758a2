/* SPDX-License-Identifier: BSD-3-Clause */
/* incomplete.h - common parts of incomplete factorisations: Z = U^-1 L^-1 R
 * with a unit lower and an upper triangle, and the factorisation in the pattern
 * of the matrix. */
#ifndef SPS_INCOMPLETE_H
#define SPS_INCOMPLETE_H

#include "solvers/precond/near_rows.h"

/* Two triangles, and a block for the intermediate result. */
struct factors {
    sps_triangle *L, *U;
    sps_block *W;             /* n x width */
};
sps_status spsi_factors_apply(const struct factors *f, const sps_block *R,
                              sps_block *Z);
void spsi_factors_clear(struct factors *f);

/* L U ~ A + alpha diag(s) in the pattern of A and the diagonal.  Of a matrix
 * that is distributed over processes (isai with across_ranks) F has the near
 * rows, and the own rows are factored when those of the lower processes have
 * been received. */
struct incomplete {
    sps_precond super;
    struct factors f;
    const sps_csr *A;         /* that is factored: super.A->A or near.A */
    struct near_rows near;
    int64_t *global;          /* the global columns of F */
    sps_csr *F;               /* pattern of A with its complete diagonal; values
                                 L + U - I */
    int64_t *diagonal;        /* n elements: offset of entry (i, i) in F */
    int64_t *cursor;          /* n elements: scratch of split() */
    sps_levels levels;        /* level sets of F's lower triangle */
    bool symmetric;           /* U is D L', and pivots must be positive */
};
/* Makes pattern and factors F without the triangles f, for a preconditioner
 * that uses the factors in another way (isai). */
sps_status spsi_incomplete_open(sps_precond *M, bool symmetric);
/* Computes the factors F again, for new values of A. */
sps_status spsi_incomplete_factor(sps_precond *M);
/* Calls spsi_incomplete_open and makes the triangles. */
sps_status spsi_incomplete_build(sps_precond *M, bool symmetric);
/* Adds a note if scaling or an ordering is requested, which factors in the
 * pattern of A do not support. */
void spsi_incomplete_unordered(sps_precond *M, const sps_options *opt);
sps_status spsi_incomplete_update(sps_precond *M);
sps_status spsi_incomplete_apply(const sps_precond *M, const sps_block *R,
                                 sps_block *Z);
void spsi_incomplete_destroy(sps_precond *M);

#endif
