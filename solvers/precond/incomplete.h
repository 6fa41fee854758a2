/* SPDX-License-Identifier: BSD-3-Clause */
/* incomplete.h - what incomplete factorisations share: Z = U^-1 L^-1 R with a
 * unit lower and an upper triangle, and the factorisation in the pattern of
 * the matrix. */
#ifndef SPS_INCOMPLETE_H
#define SPS_INCOMPLETE_H

#include "precond.h"

/* Two triangles and the block between them. */
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
    sps_csr *F;               /* that pattern; L + U - I by values */
    int64_t *diagonal;        /* n: where (i, i) stands in F */
    int64_t *cursor;          /* n: scratch of split */
    sps_levels levels;        /* of F's lower triangle */
    bool symmetric;           /* U is D L', positive pivots are wanted */
};
/* The factors alone, without triangles to solve with; and those of new
 * values. */
sps_status spsi_incomplete_open(sps_precond *M, bool symmetric);
sps_status spsi_incomplete_factor(sps_precond *M);
sps_status spsi_incomplete_build(sps_precond *M, bool symmetric);
/* Factors in the pattern of A take the system as it is: a note where scaling or
 * an order was asked for. */
void spsi_incomplete_unordered(sps_precond *M, const sps_options *opt);
sps_status spsi_incomplete_update(sps_precond *M);
sps_status spsi_incomplete_apply(const sps_precond *M, const sps_block *R,
                                 sps_block *Z);
void spsi_incomplete_destroy(sps_precond *M);

#endif
