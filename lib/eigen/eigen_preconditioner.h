/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_preconditioner.h - the preconditioner T of methods that use one, an
 * approximation of (sign A - sigma M)^-1 (eigen_preconditioner.c; solvers/eigen
 * creates it). */
#ifndef SPS_EIGEN_PRECONDITIONER_H
#define SPS_EIGEN_PRECONDITIONER_H

#include "eigen/eigen_search.h"
#include "eigen/eigen_subspace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_eigen_precond {
    sps_subspace *space;
    const sps_selection *wanted;
    const sps_options *opt;
    sps_precond *T;              /* NULL if there is none */
    bool own;                    /* created here, not by the caller */
    bool suspended;              /* currently not applied */
    double sigma;                /* shift of a T that was created here */
    int moves;                   /* number of changes of sigma */
    sps_csr *matrix;             /* sign A - sigma M, if T was built from it,
                                    or NULL if from A */
    sps_operator *shifted;       /* the operator of `matrix` */
    int64_t applies;             /* applications of T so far, in blocks */
} sps_eigen_precond;

/* Returns whether T is applied. */
bool spsi_eigen_preconditioned(const sps_eigen_precond *t);
/* W = T R, counted and timed; a copy of R if there is no T.  R is in space->R
 * or in space->work; the other one of these may be overwritten.  norms:
 * approximate norms of the columns of R, or NULL. */
sps_status spsi_eigen_precondition(sps_eigen_precond *t, const sps_block *R,
                                   const double *norms, sps_block *W);
/* X = T times random columns; space->R is overwritten. */
sps_status spsi_eigen_draw(sps_eigen_precond *t, sps_block *X, uint64_t seed);
void spsi_eigen_precond_release(sps_eigen_precond *t);

#ifdef __cplusplus
}
#endif
#endif
