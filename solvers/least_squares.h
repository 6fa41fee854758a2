/* SPDX-License-Identifier: BSD-3-Clause */
/* least_squares.h - min over Y of || G - H Y ||, column by column of G, for an
 * H that grows by columns and rows as a block Arnoldi process goes on:
 *
 *     H = [ H  top   ]     G = [ G ]
 *         [ 0  below ],        [ 0 ].
 *
 * A Householder reflection for each column, over the rows there were when it
 * came.  Host arithmetic; O(rows columns) a new column. */
#ifndef SPS_LEAST_SQUARES_H
#define SPS_LEAST_SQUARES_H

#include "solver.h"

typedef struct sps_least_squares {
    int max_rows, max_columns, k;
    int rows, columns;   /* of H now */
    double *r;           /* max_rows x max_columns: R, reflections below */
    double *scale;       /* max_columns: 2 / v'v */
    int *end;            /* max_columns: rows that the reflection covers */
    double *g;           /* max_rows x k: Q'G */
    double *lanes;       /* scratch: new columns side by side */
} sps_least_squares;

sps_status spsi_least_squares_open(sps_context *ctx, int max_rows,
                                   int max_columns, int k,
                                   sps_least_squares *q);
void spsi_least_squares_close(sps_context *ctx, sps_least_squares *q);
/* G (rows x k), and no column of H yet. */
void spsi_least_squares_start(sps_least_squares *q, const sps_small *G);
/* top has q->rows rows behind `skip` others, below as many as come; either as
 * many columns. */
void spsi_least_squares_append(sps_least_squares *q, const sps_small *top,
                               int skip, const sps_small *below);
/* Norm of column c of G - H Y for the best Y. */
double spsi_least_squares_residual(const sps_least_squares *q, int c);
/* The best Y, q->columns x k, by spsi_small_solve_upper: R may be singular. */
sps_status spsi_least_squares_solve(const sps_least_squares *q, sps_small *Y);
/* With H = Q R: x (q->columns numbers) = R^-1 x, R'^-1 x (directions with a
 * pivot that is zero to working precision left out) or R x, and x
 * (q->columns numbers, q->rows on return) = H x. */
void spsi_least_squares_solve_r(const sps_least_squares *q, double *x);
void spsi_least_squares_solve_rt(const sps_least_squares *q, double *x);
void spsi_least_squares_multiply_r(const sps_least_squares *q, double *x);
void spsi_least_squares_multiply(const sps_least_squares *q, double *x);

#endif
