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

/* Ritz values over all columns; if there are none, smallest is INFINITY and
 * largest is 0. */
typedef struct sps_lanczos {
    double smallest, largest;
    double second;            /* minimum over the columns of the second
                                 smallest Ritz value */
    bool cut;                 /* stopped by the deadline */
} sps_lanczos;

/* Starts from the columns of R, at most SPS_LANCZOS_WIDTH of them.  R, P and Q,
 * of the same shape, are overwritten; `inverse` is D^-1, n x 1.  If A is
 * singular, R should have no component in its null space.  After `deadline` (of
 * the agreed clock; 0 for none) no step beyond number `least` is made. */
sps_status spsi_lanczos(const sps_operator *A, const sps_block *inverse,
                        sps_block *R, sps_block *P, sps_block *Q,
                        double deadline, int least, sps_lanczos *result);

#ifdef __cplusplus
}
#endif
#endif
