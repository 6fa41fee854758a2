/* SPDX-License-Identifier: BSD-3-Clause */
/* hessenberg.h - the least-squares problems of k simultaneous GMRES cycles:
 *
 *     min over y of || beta e_1 - H y ||,   H upper Hessenberg,
 *
 * each by Givens rotations as its columns are appended (Saad and Schultz, SISSC
 * 7, 1986, section 3.2).  All arithmetic is on the host, O(m) operations for
 * each column and step. */
#ifndef SPS_HESSENBERG_H
#define SPS_HESSENBERG_H

#include "driver/linear.h"

typedef struct sps_hessenberg {
    int k, m;        /* number of problems; largest number of columns of each */
    double *r;       /* k upper triangular factors, m x m, column-major */
    double *cosine, *sine;   /* rotations: k times m elements */
    double *g;       /* rotated right-hand sides: k times m + 1 elements */
    int *size;       /* k elements: number of columns appended so far */
    double *room;    /* scratch, 2 m elements */
} sps_hessenberg;

/* Allocates k problems of m columns. */
sps_status spsi_hessenberg_open(sps_owner *o, int k, int m,
                                sps_hessenberg *h);
/* Starts problem p with right-hand side beta e_1 and no columns. */
void spsi_hessenberg_start(sps_hessenberg *h, int p, double beta);
/* Appends column h->size[p] of problem p: `top` contains its first size + 1
 * elements, `below` its subdiagonal element.  Returns the norm of the
 * residual. */
double spsi_hessenberg_append(sps_hessenberg *h, int p, const double *top,
                              double below);
/* Computes y of problem p, h->size[p] elements, by spsi_small_solve_steps: R
 * may be singular, and y may use fewer steps. */
sps_status spsi_hessenberg_solve(sps_context *ctx, const sps_hessenberg *h,
                                 int p, double *y);

#endif
