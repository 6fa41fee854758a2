/* SPDX-License-Identifier: BSD-3-Clause */
/* lobpcg.h - the state of lobpcg, and what its files share: lobpcg.c makes the
 * steps, lobpcg_ritz.c solves the projected problem and replaces the basis by
 * the new one, lobpcg_extend.c makes the basis longer. */
#ifndef SPS_LOBPCG_H
#define SPS_LOBPCG_H

#include "eigen/eigen.h"

#define SPS_LOBPCG_STACK 3   /* blocks in S: X, P and W */
#define SPS_LOBPCG_CHECK 5   /* steps between two calls of spsi_lobpcg_extend */

typedef struct lobpcg {
    int p;                /* columns of P */
    int steps;            /* steps since the start */
    double excess;       /* spsi_ritz_excess at the last prediction */
    int *active;          /* columns of X that produce directions */
    double *w;            /* 3 m eigenvalues */
    sps_small *F;         /* (m + p) x (m + p): [X P]'A [X P] */
    sps_small *K;         /* s x (m + p): V1 and V2 B */
    sps_small *B, *N;     /* (s - m - kept) x p: the basis B, and scratch */
    sps_small *G, *T;     /* Gram matrices, and the factor of one */
    sps_small *Z;         /* s x w or s x s, or no columns: W, or S, stands for
                             S Z (spsi_subspace_join) */
    bool joins;           /* that has been possible since the start */
    double amplified;     /* growth of rounding errors since all columns were
                             joined, and in the last step */
    double factor;
} lobpcg;

/* Returns whether S has been extended. */
static inline bool spsi_lobpcg_extended(const sps_subspace *s)
{
    return s->AS->width > SPS_LOBPCG_STACK * s->width;
}

/* lobpcg.c */

/* Makes X orthonormal Ritz vectors, with new products; S has no other columns
 * from then on. */
sps_status spsi_lobpcg_begin(sps_eigen *e, lobpcg *l);
/* Makes W, the columns of S after X and P, orthonormal, to X and P too, and
 * computes A W and M W; W->k may become smaller. */
sps_status spsi_lobpcg_orthonormalise(sps_eigen *e, lobpcg *l, sps_block *W);

/* lobpcg_ritz.c */

/* Assembles ritz.H = S'AS from F and S'AW for the w columns of W. */
sps_status spsi_lobpcg_assemble(sps_eigen *e, lobpcg *l, int w);
/* Solves the projected problem in ritz.H, replaces S by the new [X P], and
 * computes the residuals; a is the number of active columns. */
sps_status spsi_lobpcg_ritz(sps_eigen *e, lobpcg *l, int a);

/* lobpcg_extend.c */

/* Called every SPS_LOBPCG_CHECK steps: extends S if the tolerance is predicted
 * to be far away. */
sps_status spsi_lobpcg_extend(sps_eigen *e, lobpcg *l);

#endif
