/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.h - the matrix that is factored: B = P D_r A D_c Q, scaled by powers
 * of two and permuted, and how a factor of B becomes one of A. */
#ifndef SPS_PREPARE_H
#define SPS_PREPARE_H

#include "precond.h"

struct prepared {
    sps_csr *B;               /* rows sorted, doubles */
    int32_t *from, *to;       /* row i of B is row from[i] of A, column i is
                                 column to[i] */
    double *row, *col;        /* scalings, by rows and columns of A */
    bool scaled, matched, ordered;
};

/* By opt->scale and opt->order.  low_fill: what auto orders for; deadline: of
 * spsi_now(), 0 none. */
sps_status spsi_prepare(sps_precond *M, const sps_options *opt,
                        double deadline, bool low_fill, struct prepared *m);
void spsi_prepared_clear(sps_context *ctx, struct prepared *m);
/* Triangles of A from factors of B with column i of B standing at place i of
 * the factors' column[i] (NULL: unpermuted).  L: unit; both are owned by the
 * triangles from here on. */
sps_status spsi_prepared_lower(sps_context *ctx, const struct prepared *m,
                               sps_csr *L, sps_triangle **t_p);
sps_status spsi_prepared_upper(sps_context *ctx, const struct prepared *m,
                               sps_csr *U, double *inverse,
                               const int32_t *column, sps_triangle **t_p);

#endif
