/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_pencil.h - A x = lambda M x: products and norms (eigen_pencil.c), the
 * entries of A and M (eigen_entries.c), and the effect of rounding on residuals
 * (eigen_rounding.c). */
#ifndef SPS_EIGEN_PENCIL_H
#define SPS_EIGEN_PENCIL_H

#include "driver/linear.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Advice for error texts when M is not positive definite. */
#define SPS_PENCIL_SWAP \
    "if A is, change the two: M x = mu A x, mu = 1 / lambda"

typedef struct sps_pencil {
    sps_context *ctx;
    sps_owner *own;              /* releases what the objects of a solver
                                    have created */
    const sps_operator *A, *M;   /* M is NULL for the identity */
    int64_t n, rows;             /* rows of this process, and of all */
    double norm_A, norm_M;       /* lower estimates; norm_M is 1 without M */
    sps_block *root_mass;        /* n x 1: diag(M)^(1/2), or NULL if the
                                    entries of M are not known */
    double *host_x, *host_g;     /* n each, for spsi_pencil_rounding: a
                                    column x and |A||x| + |lambda||M||x| */
    int64_t applies_A, applies_M;   /* products so far, counted in blocks */
} sps_pencil;

/* Fails if A is not symmetric. */
sps_status spsi_pencil_check_matrix(const sps_pencil *p);
/* Fails if M has another context or size than A, is not symmetric, or has a
 * diagonal entry that is not positive. */
sps_status spsi_pencil_check_mass(const sps_pencil *p);
/* Computes norm_A, norm_M and root_mass, and allocates memory for
 * spsi_pencil_rounding.  V and W are scratch blocks of the same shape. */
sps_status spsi_pencil_measure(sps_pencil *p, sps_block *V, sps_block *W);

/* Y = A X, and Y = M X (a copy without M), counted and timed. */
sps_status spsi_pencil_apply(sps_pencil *p, const sps_block *X, sps_block *Y);
sps_status spsi_pencil_mass(sps_pencil *p, const sps_block *X, sps_block *Y);

/* Returns the unit of eigenvalues, ||A|| / ||M||. */
double spsi_pencil_unit(const sps_pencil *p);
/* Returns (||A|| + |lambda| ||M||) ||x||, the reference of backward errors. */
double spsi_pencil_reference(const sps_pencil *p, double lambda, double xnorm);
/* Returns the residual norm at which a pair has converged, by the tolerances of
 * opt. */
double spsi_pencil_tolerance(const sps_pencil *p, const sps_options *opt,
                             double lambda, double xnorm, double mnorm);
/* Returns an upper estimate, from norms, of the smallest residual norm that a
 * pair in doubles can reach. */
double spsi_pencil_attainable(const sps_pencil *p, double lambda,
                              double xnorm);
/* Returns an upper estimate, from norms, of the rounding error of a residual
 * that is formed in doubles, with `constraints` vectors projected out. */
double spsi_pencil_forming_error(const sps_pencil *p, int constraints,
                                 double lambda, double xnorm);
/* For x, column j of X: *least is the ||A x - lambda M x|| that rounding of x
 * to doubles may cause, *most the largest that rounding explains
 * (eigen_rounding.c).  Computed from the entries of A and M, or from norms
 * where entries are not known. */
sps_status spsi_pencil_rounding(sps_pencil *p, const sps_block *X, int j,
                                double lambda, double *least, double *most);

/* Returns whether the entries of A and M are known: neither is a callback. */
bool spsi_pencil_entries(const sps_pencil *p);
/* Creates C = sign A - sigma M. */
sps_status spsi_pencil_combine(const sps_pencil *p, double sign, double sigma,
                               sps_csr **C_p);
/* Returns whether sigma lies outside Gershgorin's discs of A (M being the
 * identity), so that the pairs nearest to it are at an end of the spectrum: the
 * largest, and *sign is -1, or the smallest, and *sign is 1. */
bool spsi_pencil_outside(const sps_pencil *p, double sigma, double *sign);
/* Returns whether the diagonal entries of A are within a factor of 100. */
bool spsi_pencil_uniform(const sps_pencil *p);

#ifdef __cplusplus
}
#endif
#endif
