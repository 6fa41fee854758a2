/* SPDX-License-Identifier: BSD-3-Clause */
/* hessenberg.h - the least-squares problems of k GMRES cycles side by side:
 *
 *     min over y of || beta e_1 - H y ||,   H upper Hessenberg,
 *
 * each by Givens rotations as its columns come (Saad and Schultz, SISSC 7,
 * 1986, section 3.2).  Host arithmetic, O(m) a column and step. */
#ifndef SPS_HESSENBERG_H
#define SPS_HESSENBERG_H

#include "solver.h"

typedef struct sps_hessenberg {
    int k, m;        /* problems, and columns that each may have */
    double *r;       /* k times m x m, column-major: the triangular factors */
    double *cosine, *sine;   /* k times m */
    double *g;       /* k times m + 1: the rotated right-hand sides */
    int *size;       /* k: columns that count in the solution */
} sps_hessenberg;

/* Arrays for k problems of m columns. */
sps_status spsi_hessenberg_open(sps_context *ctx, int k, int m,
                                sps_hessenberg *h);
void spsi_hessenberg_close(sps_context *ctx, sps_hessenberg *h);
/* Problem p starts with right-hand side beta e_1 and no column. */
void spsi_hessenberg_start(sps_hessenberg *h, int p, double beta);
/* Appends column number h->size[p], top its first size + 1 numbers and below
 * the one under the diagonal; the norm of the residual is returned. */
double spsi_hessenberg_append(sps_hessenberg *h, int p, const double *top,
                              double below);
/* y of problem p, h->size[p] numbers, by spsi_small_solve_upper: R may be
 * singular. */
sps_status spsi_hessenberg_solve(sps_context *ctx, const sps_hessenberg *h,
                                 int p, double *y);

#endif
