/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_transform.h - the spectral transformation: the operator that the method
 * uses, which is A or (A - sigma M)^-1 M (eigen_transform.c), and the choice of
 * its shift (eigen_transform_shift.c). */
#ifndef SPS_EIGEN_TRANSFORM_H
#define SPS_EIGEN_TRANSFORM_H

#include "eigen/eigen_ritz.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sps_transform {
    sps_subspace *space;
    const sps_selection *wanted;
    const struct sps_eigen_policy *policy;
    double max_seconds;          /* limit of an inner solve */
    bool direct;                 /* sparse direct factors may be used */
    bool inverted;               /* shift and invert: Ritz values are values
                                    of nu */
    double shift;                /* the sigma of A - sigma M, which may
                                    differ from the one to which pairs are to
                                    be nearest */
    double unit;                 /* lambda = shift + unit / nu */
    sps_csr *matrix;             /* D (A - sigma M) D */
    sps_operator *shifted;       /* operator of `matrix` */
    sps_precond *factors;        /* sparse direct factors, or NULL */
    sps_solver *solver;          /* solver of systems with `shifted` */
    sps_block *B, *X;            /* right-hand sides and solutions */
    sps_block *D;                /* unit^(1/2) D, n x 1 */
    sps_block *border;           /* (A - sigma M)^-1 M Y of constraints Y */
    sps_small *border_inverse;   /* (Y'M border)^-1 */
    sps_small *border_part;      /* border_inverse Y'M X, scratch memory */
    int64_t inner_iterations;    /* iterations of all inner solves */
    int failures;                /* consecutive inner solves that failed */
    int moves;                   /* number of changes of the shift */
    double largest;              /* largest |nu| since the last change */
    int waited;                  /* iterations that waited for a nearer pair
                                    although all wanted columns had converged */
    double *spread;              /* m: squared residuals of nu, in the norm
                                    of M */
} sps_transform;

/* spsi_transform_open forms and factors A - sigma M with sigma = t->shift (if
 * that fails, with one next to it; t->shift is updated), allocates the blocks,
 * and computes (A - sigma M)^-1 M Y for constraints Y; spsi_transform_close
 * frees all of this. */
sps_status spsi_transform_open(sps_transform *t, sps_search *search);
void spsi_transform_close(sps_transform *t);
/* Y = A X, or Y = (A - sigma M)^-1 M X. */
sps_status spsi_transform_apply(sps_transform *t, const sps_block *X,
                                sps_block *Y, sps_search *search);
/* Returns the lambda of A x = lambda M x for an eigenvalue of the operator. */
double spsi_transform_back(const sps_transform *t, double value);
/* If inverted: computes theta and the residuals of (A - sigma M)^-1 M X. */
sps_status spsi_transform_residuals(sps_transform *t, sps_ritz *r);

/* Returns the unit of changes of the shift while no pairs are known: |sigma|,
 * or 1e-3 ||A|| / ||M|| if sigma = 0. */
double spsi_transform_scale(const sps_transform *t);
/* Called between two iterations, or after one has failed: moves the shift away
 * from where it prevents convergence. */
sps_status spsi_transform_move(sps_transform *t, const sps_ritz *r,
                               sps_search *search, bool *moved);
/* Returns whether residuals show that an eigenvalue is, or may be, nearer to
 * the shift than the last wanted pair of the block. */
bool spsi_transform_hides(const sps_transform *t, const sps_ritz *r);

#ifdef __cplusplus
}
#endif
#endif
