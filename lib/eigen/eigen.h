/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen.h - eigenpairs of A x = lambda M x: the driver's state, and the
 * contract of a method.
 *
 * The driver (eigen_solve.c) owns the loop: guess, test, monitor, locking, and
 * the verification of what is returned.  A method improves the block X, whose
 * m columns are M-orthonormal Ritz vectors in the order wanted.
 *
 *   setup  once: small matrices; n x m blocks are the columns of S, AS, MS.
 *   start  from any X: makes it orthonormal, also to what is deflated, forms
 *          A X and M X by new products and replaces X by its Ritz vectors; all
 *          search directions are dropped.
 *   step   one iteration.  It may set e->search.stop to a negative reason.
 *
 * start and step call spsi_eigen_residuals: R = A X - M X diag(theta).
 *
 * S, AS, MS: stacks of `stack` m columns, of which X, A X, M X are the first
 * m; MS is S itself where M is the identity. */
#ifndef SPS_EIGEN_H
#define SPS_EIGEN_H

#include "eigen/eigen_deflation.h"
#include "eigen/eigen_pencil.h"
#include "eigen/eigen_preconditioner.h"
#include "eigen/eigen_proof.h"
#include "eigen/eigen_ritz.h"
#include "eigen/eigen_search.h"
#include "eigen/eigen_subspace.h"
#include "eigen/eigen_transform.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_eigen sps_eigen;

typedef struct sps_eigen_type {
    const char *name;
    size_t size;              /* sizeof its own struct */
    int stack;                /* columns of S, in units of m */
    int longest;              /* most columns that spsi_subspace_extend gives
                                 S; 0: S is never extended */
    bool preconditioned;      /* uses the preconditioner T */
    bool folds;               /* finds the nearest pairs without factors */
    sps_status (*setup)(sps_eigen *e, void *method);
    sps_status (*start)(sps_eigen *e, void *method);
    sps_status (*step)(sps_eigen *e, void *method);
    /* Replaces start and step: computes all pairs at once into
     * deflation.fixed. */
    sps_status (*solve)(sps_eigen *e, void *method);
} sps_eigen_type;

extern const sps_eigen_type *const spsi_eigensolvers[]; /* by registry.sh */

/* Decisions that name methods or preconditioners; solvers/eigen makes them. */
typedef struct sps_eigen_policy {
    /* Chooses the method for solver auto. */
    const sps_eigen_type *(*choose)(const sps_eigen *e);
    /* Sets T->T to the caller's `given`, or, if the method uses a
     * preconditioner (`used`), to one created here. */
    sps_status (*take_precond)(sps_eigen_precond *T, sps_precond *given,
                               bool used);
    /* Replaces a preconditioner created here by one for another shift, if the
     * Ritz values show that this is necessary. */
    sps_status (*move_precond)(sps_eigen_precond *T, const sps_ritz *r,
                               sps_search *search);
    /* Creates t->solver for systems with t->shifted, preconditioned by factors
     * if their size allows.  If these fail: EUNFIT, or, with `any`, another
     * solver. */
    sps_status (*invert)(sps_transform *t, bool any);
    /* Creates the solver of M for error bounds, for blocks of `columns`
     * columns. */
    sps_status (*solve_mass)(const sps_operator *M, int columns,
                             sps_solver **s_p);
    /* Allocates the memory that `count` needs once at set-up and frees it, so
     * that a lack of memory is found early and the peak reported before a run
     * includes it. */
    sps_status (*count_reserve)(sps_eigen *e);
    /* After verification: computes proof.missed, by inertia or by another
     * search in the complement of all pairs found. */
    sps_status (*count)(sps_eigen *e);
} sps_eigen_policy;

extern const sps_eigen_policy *const spsi_eigen_policies[]; /* by registry.sh */

struct sps_eigen {
    sps_context *ctx;
    sps_owner own;               /* releases what its objects and the method
                                    have created */
    sps_options opt;
    int count;                   /* number of requested pairs */
    sps_selection wanted;
    const sps_eigen_policy *policy;
    const sps_eigen_type *type;
    void *method;

    sps_pencil pencil;
    sps_deflation deflation;
    sps_subspace space;
    sps_ritz ritz;
    sps_transform transform;
    sps_eigen_precond precond;
    sps_proof proof;
    sps_search search;

    double *relative, *sorted;   /* count: residuals, for the monitor */
};

/* eigen_start.c */

/* Fills X(:, 0 .. m - 1) with the caller's guesses, and random columns for the
 * rest. */
sps_status spsi_eigen_guess(sps_eigen *e, const sps_block *guess);
/* Makes X orthonormal and of full rank, forms A X and M X by new products, and
 * computes the Ritz pairs of X and their residuals.  w has m elements, the Ritz
 * values times wanted.sign. */
sps_status spsi_eigen_begin(sps_eigen *e, double *w);
/* Computes R, theta, resnorm, xnorm and mnorm from X, AX, MX and ritz.value. */
sps_status spsi_eigen_residuals(sps_eigen *e);

/* eigen_monitor.c */

/* Calls the monitor with rtol ||r_j|| / tolerance_j of each pair; returns false
 * if the caller requests a stop. */
bool spsi_eigen_report(sps_eigen *e);
/* Returns the limit that has been reached, or SPS_STOP_RUNNING. */
sps_stop spsi_eigen_limit(const sps_eigen *e);

/* eigen_result.c */
void spsi_eigen_result(const sps_eigen *e, const sps_seconds *seconds,
                       sps_eigen_result *r);

/* eigen_solve.c */
sps_status spsi_eigen_solve(sps_eigen *e, sps_block *X, double *lambda,
                            sps_eigen_result *result);

#ifdef __cplusplus
}
#endif
#endif
