/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_deflation.h - the vectors that the search is kept orthogonal to: null
 * vectors, constraints and locked pairs (eigen_deflation.c). */
#ifndef SPS_EIGEN_DEFLATION_H
#define SPS_EIGEN_DEFLATION_H

#include "eigen/eigen_pencil.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_subspace sps_subspace;

/* They are removed from V by V -= fixed (dual'V), dual = M fixed; for null
 * vectors that A and M share dual = fixed. */
typedef struct sps_deflation {
    sps_pencil *pencil;
    const sps_block *constraints; /* the caller's; NULL: none */
    int pairs;                   /* asked for: columns kept for them */
    sps_block *fixed, *dual;     /* dual == fixed without M */
    int given, locked;           /* columns of fixed in use: null vectors and
                                    constraints, then locked pairs */
    struct sps_nullspace *null;  /* of A; after set-up only with `means` */
    int nulls, columns;          /* its dimension; columns of fixed for it */
    bool means;                  /* without M: its vectors are indicators of
                                    components; means over these are projected
                                    out by `null`, with no column of fixed */
    bool shared;                 /* M maps the null vectors of A to zero */
    int64_t *fixing_rows;        /* if shared: `columns` rows, see
                                    eigen_deflation.c */
    sps_small *F;                /* dual'V */
} sps_deflation;

/* Takes the null space that opt names, counts its vectors and the constraints,
 * and allocates columns of fixed and dual for these and the pairs. */
sps_status spsi_deflation_gather(sps_deflation *d, const sps_options *opt);
/* Copies null vectors and constraints to fixed and makes them orthonormal, with
 * scratch of s; counts those that are independent. */
sps_status spsi_deflation_settle(sps_deflation *d, sps_subspace *s);
/* Memory for projections of blocks of so many columns. */
sps_status spsi_deflation_reserve(sps_deflation *d, int columns);

/* The dimension of the complement of null vectors and constraints. */
int64_t spsi_deflation_complement(const sps_deflation *d);
/* From now on the first `locked` columns of fixed behind null vectors and
 * constraints are locked pairs, and fixed ends with them. */
void spsi_deflation_set_locked(sps_deflation *d, int locked);
/* X, MX: views of columns first .. first + k - 1 of fixed and dual, counted
 * behind null vectors and constraints: pairs, or room for them.  MX may be
 * NULL. */
void spsi_deflation_pairs(const sps_deflation *d, int first, int k,
                          sps_block *X, sps_block *MX);
/* *dual: the columns of dual that belong to null vectors and constraints;
 * without shared null vectors, which are projected out of right-hand sides and
 * solutions (remove_shared).  Returns their number. */
int spsi_deflation_dual(const sps_deflation *d, sps_block *dual);

/* W -= fixed (dual'W), and the means of components. */
sps_status spsi_deflation_project(const sps_deflation *d, sps_block *W);
/* R -= M Y Y'R: residuals in the complement of the constraints Y. */
sps_status spsi_deflation_constrain(const sps_deflation *d, sps_block *R);
/* R -= N N'R where A and M share the null vectors N: a right-hand side is then
 * in the range of A - sigma M and of M, a solution the one orthogonal to N. */
sps_status spsi_deflation_remove_shared(const sps_deflation *d, sps_block *R);

#ifdef __cplusplus
}
#endif
#endif
