/* SPDX-License-Identifier: BSD-3-Clause */
/* lanczos.h - the ends of the spectrum of D^-1 A for symmetric A with a
 * positive diagonal D, from a few steps of conjugate gradients. */
#ifndef SPS_LANCZOS_H
#define SPS_LANCZOS_H

#include "operator/operator.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SPS_LANCZOS_STEPS = 28, SPS_LANCZOS_WIDTH = 4 };

/* Ritz values, over all columns; smallest INFINITY, largest 0 where there are
 * none. */
typedef struct sps_lanczos {
    double smallest, largest;
    double second;            /* the smallest one of the second Ritz values */
    bool cut;                 /* stopped by the deadline */
} sps_lanczos;

/* From the columns of R, SPS_LANCZOS_WIDTH at most, which are overwritten, as
 * are P and Q of the same shape; inverse: D^-1, n x 1.  Where A is singular R
 * should have no part in its null space.  After `deadline` (of the agreed
 * clock; 0: none) no step is made beyond number `least`. */
sps_status spsi_lanczos(const sps_operator *A, const sps_block *inverse,
                        sps_block *R, sps_block *P, sps_block *Q,
                        double deadline, int least, sps_lanczos *result);

#ifdef __cplusplus
}
#endif
#endif
