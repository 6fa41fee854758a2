/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_deflation.h - the vectors to which the search is kept orthogonal: null
 * vectors, constraints and locked pairs (eigen_deflation.c). */
#ifndef SPS_EIGEN_DEFLATION_H
#define SPS_EIGEN_DEFLATION_H

#include "eigen/eigen_pencil.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_subspace sps_subspace;

/* These vectors are removed from a block V by V -= fixed (dual'V), where dual =
 * M fixed; for null vectors that A and M share, dual = fixed. */
typedef struct sps_deflation {
    sps_pencil *pencil;
    const sps_block *constraints; /* the caller's block, or NULL */
    int pairs;                   /* requested number, for which columns are
                                    reserved */
    sps_block *fixed, *dual;     /* dual == fixed if there is no M */
    int given, locked;           /* columns of fixed in use: for null vectors
                                    and constraints, then for locked pairs */
    struct sps_nullspace *null;  /* null space of A; kept after set-up only
                                    with `means` */
    int nulls, columns;          /* dimension of `null`; number of columns of
                                    fixed with null vectors */
    bool means;                  /* there is no M, and the null vectors are
                                    indicators of components: `null` projects
                                    out the means over these, and no column
                                    of fixed is used for them */
    bool shared;                 /* M maps the null vectors of A to zero */
    int64_t *fixing_rows;        /* if shared: `columns` row numbers, see
                                    eigen_deflation.c */
    sps_small *F;                /* dual'V */
} sps_deflation;

/* Gets the null space that opt specifies, counts its vectors and the
 * constraints, and allocates columns of fixed and dual for these and the
 * pairs. */
sps_status spsi_deflation_gather(sps_deflation *d, const sps_options *opt);
/* Copies null vectors and constraints to fixed and makes them orthonormal,
 * using scratch memory of s; counts those that are independent. */
sps_status spsi_deflation_settle(sps_deflation *d, sps_subspace *s);
/* Allocates memory for projections of blocks of `columns` columns. */
sps_status spsi_deflation_reserve(sps_deflation *d, int columns);

/* Returns the dimension of the complement of null vectors and constraints. */
int64_t spsi_deflation_complement(const sps_deflation *d);
/* From now on the first `locked` columns of `fixed` after null vectors and
 * constraints are locked pairs, and no further columns are in use. */
void spsi_deflation_set_locked(sps_deflation *d, int locked);
/* Makes X and MX views of columns first .. first + k - 1 of fixed and dual,
 * counted from the end of null vectors and constraints: pairs, or memory for
 * them.  MX may be NULL. */
void spsi_deflation_pairs(const sps_deflation *d, int first, int k,
                          sps_block *X, sps_block *MX);
/* Makes *dual a view of the columns of dual that belong to null vectors and
 * constraints, without shared null vectors, which are projected out of
 * right-hand sides and solutions (remove_shared).  Returns their number. */
int spsi_deflation_dual(const sps_deflation *d, sps_block *dual);

/* W -= fixed (dual'W), and subtracts the means of components. */
sps_status spsi_deflation_project(const sps_deflation *d, sps_block *W);
/* R -= M Y Y'R: restricts residuals to the complement of the constraints Y. */
sps_status spsi_deflation_constrain(const sps_deflation *d, sps_block *R);
/* R -= N N'R if A and M share the null vectors N.  A right-hand side
 * then lies in the range of A - sigma M and of M; a solution becomes the one
 * orthogonal to N. */
sps_status spsi_deflation_remove_shared(const sps_deflation *d, sps_block *R);

#ifdef __cplusplus
}
#endif
#endif
