/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_proof.h - verification of the pairs handed back, recomputed from A, M
 * and X (eigen_proof.c), with residuals in twice the precision
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
    int count;                   /* pairs */
    /* Of each pair. */
    double *lambda, *residual, *backward, *bound;
    sps_stop *pair;
    int *order;
    double *scratch;
    /* Of each of the columns verified together, at most the width. */
    double *resnorm, *xnorm, *mnorm;
    double *forming_error;       /* of ||r_j||, where it is formed in doubles */
    double *xmx;                 /* x_j'M x_j */
    sps_solver *mass_solver;     /* of M, for bounds */
    sps_csr *mass;               /* M / mass_scale where ||M|| is far from 1 */
    sps_operator *mass_op;
    double mass_scale;
    sps_block *Z;                /* solutions of mass_solver */
    sps_small *E;                /* X'M X, width columns of it */
    double orthogonality;        /* max |X'M X - I| */
    int missed;                  /* pairs, -1: not known */
    sps_stop verdict;            /* of all pairs */
} sps_proof;

sps_status spsi_proof_allocate(sps_proof *q);
/* Makes the solver of M, and checks by it that M is positive definite. */
sps_status spsi_proof_prepare(sps_proof *q,
                              const struct sps_eigen_policy *policy);
void spsi_proof_release(sps_proof *q);
/* Computes Rayleigh quotients, residuals, bounds, orthogonality and the verdict
 * of the locked pairs; X = their vectors in the order wanted.  stop: why the
 * search ended. */
sps_status spsi_proof_make(sps_proof *q, sps_stop stop, sps_block *X);

/* lambda = x'A x / x'M x and R = A X - M X diag(lambda) in twice the working
 * precision, within the complement of constraints; MX becomes M X (is X without
 * M), xmx x'M x.  s->work and s->scratch are overwritten. */
sps_status spsi_true_residuals(sps_subspace *s, const sps_block *X,
                               sps_block *MX, double *lambda, double *xmx,
                               sps_block *R);

#ifdef __cplusplus
}
#endif
#endif
