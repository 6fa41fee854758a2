/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_policy.h - the functions of the table in eigen_policy.c, and limits
 * that several of them use. */
#ifndef SPS_EIGEN_POLICY_H
#define SPS_EIGEN_POLICY_H

#include "eigen/eigen.h"

/* Largest number of rows for which A - sigma M is inverted densely, and largest
 * number for which it is factored. */
#define SPS_EIGEN_DENSE 2000
#define SPS_EIGEN_FACTORS 50000

/* eigen_inner.c: creates t->solver for A - sigma M.  If not `any`, returns
 * SPS_EUNFIT where nearly complete factors are possible but fail. */
sps_status spsi_eigen_invert(sps_transform *t, bool any);
/* Creates a solver for M by conjugate gradients. */
sps_status spsi_eigen_solve_mass(const sps_operator *M, int columns,
                                 sps_solver **s_p);

/* eigen_precond.c: checks and takes the caller's preconditioner, or, if it is
 * NULL, makes one by the options.  If not `used`, the method needs none. */
sps_status spsi_eigen_take_precond(sps_eigen_precond *t, sps_precond *given,
                                   bool used);
/* Makes the preconditioner again with another sigma where the Ritz values r
 * require it; called once an iteration. */
sps_status spsi_eigen_move_precond(sps_eigen_precond *t, const sps_ritz *r,
                                   sps_search *search);
/* eigen_amg.c: sets t->T to multigrid for op.  Returns SPS_EUNFIT if multigrid
 * is not predicted to be effective or its measured convergence is too slow.
 * passes: cost of an iteration of the eigensolver, in reads and writes of a
 * block. */
sps_status spsi_eigen_multigrid(sps_eigen_precond *t, const sps_operator *op,
                                int passes);
/* Returns whether sparse factors of A have few entries. */
bool spsi_eigen_fills_little(const sps_deflation *d);

/* eigen_dense.c: returns the method that computes all pairs by LAPACK, or NULL
 * where it is too expensive. */
const sps_eigen_type *spsi_eigen_dense_type(const sps_pencil *p, int count,
                                            double max_seconds);

/* D = A (or M) as a dense matrix on the host; columns of s are used as
 * scratch. */
sps_status spsi_eigen_densify(sps_subspace *s, const sps_operator *A,
                              sps_small *D);

/* eigen_count.c: sets e->proof.missed to the number of eigenvalues missed among
 * the pairs found, if it can be found; count_reserve checks at set-up that
 * there is memory for that. */
sps_status spsi_eigen_count(sps_eigen *e);
sps_status spsi_eigen_count_reserve(sps_eigen *e);

#endif
