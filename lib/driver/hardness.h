/* SPDX-License-Identifier: BSD-3-Clause */
/* hardness.h - measurements of a symmetric matrix with a positive diagonal,
 * made before a strong preconditioner is built for it: whether its smooth
 * vectors are known, and whether it is ill-conditioned.
 *
 * The smooth vectors that can be known without coordinates are the constants of
 * the unknowns of a node.  They count as smooth in a row that maps them to at
 * most SPS_ROW_KNOWN of its diagonal, or whose sum is not negative and whose
 * positive couplings add up to less than SPS_ROW_POSITIVE of the diagonal, as beside a boundary,
 * where smooth vectors vanish.  This holds for the rows of grids, meshes,
 * networks and elastic bodies.  It does not hold for half of the rows of
 * shells, whose rotations are not constant, nor for any row of a mass matrix:
 * in two or three dimensions its positive couplings are 1 to 2.4 times the
 * diagonal. */
#ifndef SPS_HARDNESS_H
#define SPS_HARDNESS_H

#include "driver/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_hardness {
    double known;             /* fraction of the rows in which the constants
                                 count as smooth */
    double condition;         /* lower bound of the condition of D^-1 A
                                 outside its null space */
} sps_hardness;

/* Returns the number of rows of a node, 2, 3 or 6, or else 1: by the nodes'
 * coordinates, or, if they are NULL, by the pattern. */
int spsi_hardness_node(const sps_operator *A, const sps_block *coords);

/* Finds the fraction of rows in which the constants count as smooth, for nodes
 * of b rows, by one read of A where it is stored. */
sps_status spsi_hardness_known(const sps_operator *A, int b, double *known);

/* Estimates the condition by 28 Lanczos steps on one random column.  A single
 * eigenvalue near zero, which conjugate gradients soon remove, is ignored: the
 * two smallest Ritz values of a spectrum without a gap at its lower end have a
 * ratio of about 1 : 9, and a larger ratio indicates a gap.  SPS_EUNFIT after a
 * tenth of the time to the context's deadline. */
sps_status spsi_hardness_condition(const sps_operator *A,
                                   const sps_nullspace *null,
                                   double *condition);

/* Predicts the iterations to 1e-8 that block conjugate gradients with D^-1 need
 * for k columns, within a factor of 2 on most of 40 systems.  The classical
 * bound is J = 9.5 sqrt(condition).  For a body of n rows in two or three
 * dimensions, whose k lowest eigenvectors the block resolves by itself,
 * J = 6 (n / k)^(1/2) or 6 (n / k)^(1/3).  If the condition is below 400, the
 * Lanczos steps have found the lower end of the spectrum or nearly so, and the
 * bound is used, reduced for small n / k.  Otherwise the end lies lower, and the
 * first estimate is used, limited by the two others. */
double spsi_hardness_iterations(int64_t n, int k, double condition);

#define SPS_HARDNESS_DEEP 400

/* Number of iterations up to which a higher degree of a polynomial
 * preconditioner gains nothing: it leaves a condition of 2.7. */
#define SPS_HARDNESS_POLYNOMIAL 13.5

#ifdef __cplusplus
}
#endif
#endif
