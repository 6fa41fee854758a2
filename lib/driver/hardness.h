/* SPDX-License-Identifier: BSD-3-Clause */
/* hardness.h - what is measured of a symmetric matrix with a positive diagonal
 * before a strong preconditioner is made for it: whether its smooth vectors are
 * known, and whether it is ill-conditioned.
 *
 * Smooth vectors are the constants of the unknowns of a node.  A row knows them
 * if it maps them to at most KNOWN of its diagonal, or if its sum is positive
 * and its positive couplings add up to less than POSITIVE of the diagonal, as
 * beside a boundary: there smooth vectors vanish.  So do rows of grids, meshes,
 * networks and elastic bodies; half of the rows of shells, whose rotations are
 * no constants, do not, and none of a mass matrix: in two or three dimensions
 * its positive couplings are 1 to 2.4 times the diagonal. */
#ifndef SPS_HARDNESS_H
#define SPS_HARDNESS_H

#include "driver/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_hardness {
    double known;             /* fraction of the rows that know them */
    double condition;         /* of D^-1 A beside its null space, at least */
} sps_hardness;

/* Rows of a node: 2, 3 or 6, else 1; by the nodes' coordinates (or NULL) or by
 * the pattern. */
int spsi_hardness_node(const sps_operator *A, const sps_block *coords);

/* The fraction of rows that know the constants, for nodes of b rows.  One read
 * of A; host arrays. */
double spsi_hardness_known(sps_context *ctx, const sps_csr *A, int b);

/* 28 Lanczos steps on one random column.  A single eigenvalue near zero, which
 * conjugate gradients soon remove, does not count: Ritz values of a spectrum
 * that reaches down without a gap are as 1 : 9, and more than that is a gap.
 * SPS_EUNFIT after a tenth of the time to the context's deadline. */
sps_status spsi_hardness_condition(const sps_operator *A,
                                   const sps_nullspace *null,
                                   double *condition);

/* Iterations to 1e-8 that block CG with Jacobi needs for k columns, within a
 * factor of 2 on most of 40 systems.  The bound is J = 9.5 sqrt(condition).  In
 * a body of n rows in two or three dimensions, whose k lowest vectors are the
 * block's own, J = 6 (n / k)^(1/2) or 6 (n / k)^(1/3).  Where the Lanczos steps
 * have found the low end of the spectrum, or nearly so, the condition is below
 * 400, and the bound holds, less for small n / k; elsewhere the end lies lower,
 * and the first holds, but within the two others. */
double spsi_hardness_iterations(int64_t n, int k, double condition);

#define SPS_HARDNESS_DEEP 400

/* Iterations after which a polynomial gains nothing by its degree: it leaves a
 * condition of 2.7. */
#define SPS_HARDNESS_POLYNOMIAL 13.5

#ifdef __cplusplus
}
#endif
#endif
