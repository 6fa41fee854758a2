/* SPDX-License-Identifier: BSD-3-Clause */
/* small_least_squares.h - solves min over Y of || G - H Y ||, column by column
 * of G, for an H that a block Arnoldi process extends by columns and rows:
 *
 *     H = [ H  top   ]     G = [ G ]
 *         [ 0  below ],        [ 0 ].
 *
 * One Householder reflection is made for each column, over the rows present
 * when it was appended.  All arithmetic is on the host; a new column takes
 * O(rows columns) operations. */
#ifndef SPS_LEAST_SQUARES_H
#define SPS_LEAST_SQUARES_H

#include "driver/linear.h"

typedef struct sps_least_squares {
    int max_rows, max_columns, k;
    int rows, columns;   /* current size of H */
    double *r;           /* max_rows x max_columns, column-major: R, and the
                            reflections below its diagonal */
    double *scale;       /* max_columns elements: 2 / v'v */
    int *end;            /* max_columns elements: number of rows to which the
                            reflection applies */
    double *g;           /* max_rows x k: Q'G */
    double *lanes;       /* scratch for new columns, interleaved; 8 max_rows
                            elements */
} sps_least_squares;

sps_status spsi_least_squares_open(sps_owner *o, int max_rows, int max_columns,
                                   int k, sps_least_squares *q);
/* Sets G (rows x k), with no columns of H yet. */
void spsi_least_squares_start(sps_least_squares *q, const sps_small *G);
/* Appends columns to H.  `below` contains their new rows; `top` contains `skip`
 * rows that are ignored, then q->rows rows.  Both have the same number of
 * columns. */
void spsi_least_squares_append(sps_least_squares *q, const sps_small *top,
                               int skip, const sps_small *below);
/* Returns the norm of column c of G - H Y for the best Y. */
double spsi_least_squares_residual(const sps_least_squares *q, int c);
/* Computes the best Y, q->columns x k, by spsi_small_solve_steps: R may be
 * singular, and a column of Y may use fewer steps. */
sps_status spsi_least_squares_solve(const sps_least_squares *q, sps_small *Y);
/* Compute x = R^-1 x and x = R'^-1 x with H = Q R, for q->columns elements; x_i
 * = 0 where the pivot r_ii is zero to working precision. */
void spsi_least_squares_solve_r(const sps_least_squares *q, double *x);
void spsi_least_squares_solve_rt(const sps_least_squares *q, double *x);
/* x = H x; x has q->columns elements on entry and q->rows on return. */
void spsi_least_squares_multiply(const sps_least_squares *q, double *x);

#endif
