/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_proof.h - verification of the pairs to be returned, recomputed from A,
 * M and X (eigen_proof.c), with residuals in twice the working precision
 * (eigen_residual.c). */
#ifndef SPS_EIGEN_PROOF_H
#define SPS_EIGEN_PROOF_H

#include "eigen/eigen_ritz.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sps_eigen_policy;

typedef struct sps_proof {
    sps_subspace *space;
    const sps_selection *wanted;
    const sps_options *opt;
    int count;                   /* number of pairs */
    /* One element for each pair. */
    double *lambda, *residual, *backward, *bound;
    sps_stop *pair;
    int *order;                  /* numbers of the pairs in the order wanted */
    double *scratch;
    /* One element for each of the columns verified together, at most the width
     * of the block. */
    double *resnorm, *xnorm, *mnorm;
    double *forming_error;       /* error bound of ||r_j|| formed in doubles */
    double *xmx;                 /* x_j'M x_j */
    sps_solver *mass_solver;     /* solver of M, for error bounds */
    sps_csr *mass;               /* M / mass_scale, if ||M|| is far from 1 */
    sps_operator *mass_op;
    double mass_scale;
    sps_block *Z;                /* solutions of mass_solver */
    sps_small *E;                /* columns of X'M X, as many as the width */
    double orthogonality;        /* max |X'M X - I| */
    int missed;                  /* number of wanted pairs that were not found,
                                    or -1 if it was not determined */
    sps_stop verdict;            /* verdict on all pairs together */
} sps_proof;

sps_status spsi_proof_allocate(sps_proof *q);
/* Creates the solver of M, and checks with it that M is positive definite. */
sps_status spsi_proof_prepare(sps_proof *q,
                              const struct sps_eigen_policy *policy);
void spsi_proof_release(sps_proof *q);
/* Computes Rayleigh quotients, residuals, bounds, orthogonality and the verdict
 * of the locked pairs; X receives their vectors in the order wanted.  `stop` is
 * why the search ended. */
sps_status spsi_proof_make(sps_proof *q, sps_stop stop, sps_block *X);

/* Computes lambda = x'A x / x'M x and R = A X - M X diag(lambda) in twice the
 * working precision, within the complement of constraints; MX becomes M X (it
 * is X if there is no M), and xmx x'M x.  s->work and s->scratch are
 * overwritten. */
sps_status spsi_true_residuals(sps_subspace *s, const sps_block *X,
                               sps_block *MX, double *lambda, double *xmx,
                               sps_block *R);

#ifdef __cplusplus
}
#endif
#endif
