/* SPDX-License-Identifier: BSD-3-Clause */
/* incomplete.h - common parts of incomplete factorisations: Z = U^-1 L^-1 R
 * with a unit lower and an upper triangle, and the factorisation in the pattern
 * of the matrix. */
#ifndef SPS_INCOMPLETE_H
#define SPS_INCOMPLETE_H

#include "driver/precond.h"

/* Two triangles, and a block for the intermediate result. */
struct factors {
    sps_triangle *L, *U;
    sps_block *W;             /* n x width */
};
sps_status spsi_factors_apply(const struct factors *f, const sps_block *R,
                              sps_block *Z);
void spsi_factors_clear(struct factors *f);

/* L U ~ A + alpha diag(s) in the pattern of A and the diagonal. */
struct incomplete {
    sps_precond super;
    struct factors f;
    sps_csr *F;               /* that pattern; values L + U - I */
    int64_t *diagonal;        /* n: offset of (i, i) in F */
    int64_t *cursor;          /* n: scratch of split */
    sps_levels levels;        /* of F's lower triangle */
    bool symmetric;           /* U is D L', pivots must be positive */
};
/* Pattern and factors F, without the triangles f: for a preconditioner that
 * uses the factors in another way (isai). */
sps_status spsi_incomplete_open(sps_precond *M, bool symmetric);
/* Factors F again, for new values of A. */
sps_status spsi_incomplete_factor(sps_precond *M);
/* spsi_incomplete_open and the triangles. */
sps_status spsi_incomplete_build(sps_precond *M, bool symmetric);
/* Adds a note if scaling or an order is requested, which factors in the pattern
 * of A do not support. */
void spsi_incomplete_unordered(sps_precond *M, const sps_options *opt);
sps_status spsi_incomplete_update(sps_precond *M);
sps_status spsi_incomplete_apply(const sps_precond *M, const sps_block *R,
                                 sps_block *Z);
void spsi_incomplete_destroy(sps_precond *M);

#endif
