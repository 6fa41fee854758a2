/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_ritz.h - the projected problem: Ritz values, the residuals of their
 * vectors, and the small matrices of Rayleigh-Ritz (eigen_ritz.c). */
#ifndef SPS_EIGEN_RITZ_H
#define SPS_EIGEN_RITZ_H

#include "eigen/eigen_search.h"
#include "eigen/eigen_subspace.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_transform;

typedef struct sps_ritz {
    sps_subspace *space;
    const sps_selection *wanted;
    const sps_options *opt;      /* tolerances */
    double *value;               /* m: Ritz values of the method's operator */
    double *theta, *resnorm;     /* m: values of the pencil, and ||r_j|| */
    double *xnorm, *mnorm;       /* m: ||x_j||, ||M x_j|| */
    bool *done;                  /* m: converged (soft locking) */
    int *order;                  /* m: scratch memory for permutations */
    double *scratch;             /* one element for each column of a stack */
    sps_small *H;                /* projected operator, then its vectors */
    sps_small *U, *C;            /* scratch memory of that shape */
} sps_ritz;

sps_status spsi_ritz_allocate(sps_ritz *r, int stack);
/* Makes room for as many columns of S as the longest one has. */
sps_status spsi_ritz_extend(sps_ritz *r);

/* Solves sign H V = V diag(w), with V in place of H and the pairs in the order
 * wanted; sign w are the Ritz values of the operator of the transformation.
 * Only the first `pairs` columns of V and elements of w are needed; the others
 * may be undefined. */
sps_status spsi_ritz_solve(sps_ritz *r, const struct sps_transform *t,
                           sps_small *H, int pairs, double *w, sps_stop *stop);
/* Computes R = A X - M X diag(theta) with theta = value, and resnorm. */
sps_status spsi_ritz_residuals(sps_ritz *r);
/* Computes xnorm and mnorm.  Sets *stop if x'M x = 1 requires an x so large
 * that M is singular within rounding, or if a residual is not finite. */
sps_status spsi_ritz_norms(sps_ritz *r, sps_stop *stop);
/* Computes theta = x'A x and the residuals of X with A and M, for methods whose
 * operator is another. */
sps_status spsi_ritz_pencil_residuals(sps_ritz *r);
/* After new products: computes theta and resnorm of the leading `count` columns
 * of X in twice the working precision, with R as scratch.  They are not changed
 * where rounding cannot bring resnorm above the tolerance, or where the entries
 * of A or M are not known. */
sps_status spsi_ritz_confirm(sps_ritz *r, int count, sps_block *R);

/* Returns the residual norm at which the iteration aims for column j. */
double spsi_ritz_tolerance(const sps_ritz *r, int j);
/* Returns whether the residuals of all target columns (spsi_subspace_target)
 * are below their tolerances. */
bool spsi_ritz_converged(const sps_ritz *r);
/* Returns the sum of log(||r_j|| / tolerance_j) over the wanted columns whose
 * residual is above the tolerance. */
double spsi_ritz_excess(const sps_ritz *r);
/* Moves the converged ones among the leading columns of X to the front, and
 * those of M X. */
sps_status spsi_ritz_converged_first(sps_ritz *r);

#ifdef __cplusplus
}
#endif
#endif
