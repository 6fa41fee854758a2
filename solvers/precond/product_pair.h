/* SPDX-License-Identifier: BSD-3-Clause */
/* product_pair.h - Z = V G R by two sparse products, for factored approximate
 * inverses. */
#ifndef SPS_PRODUCT_PAIR_H
#define SPS_PRODUCT_PAIR_H

#include "driver/precond.h"

struct product_pair {
    sps_csr *G, *V;           /* lower and upper triangular; the preconditioner
                                 makes them */
    sps_operator *lower, *upper;
    sps_block *W;             /* n x width */
};

/* *symmetric: A is marked as symmetric, or is so to within 1e-10. */
sps_status spsi_pair_symmetric(const sps_operator *A, bool *symmetric);
/* Called before G and V are made: M will release them. */
sps_status spsi_pair_open(sps_precond *M, struct product_pair *m);
/* Makes the operators of G and V. */
sps_status spsi_pair_build(sps_precond *M, struct product_pair *m);
/* Informs the operators that the values of G have changed and those of V are
 * v. */
sps_status spsi_pair_values(sps_precond *M, struct product_pair *m,
                            double *v);
sps_status spsi_pair_apply(const struct product_pair *m, const sps_block *R,
                           sps_block *Z);

#endif
