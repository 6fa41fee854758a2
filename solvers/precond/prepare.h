/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.h - the matrix to be factored: B = P D_r A D_c Q, scaled by powers of
 * two and permuted, and the conversion of its factors to factors of A. */
#ifndef SPS_PREPARE_H
#define SPS_PREPARE_H

#include "driver/precond.h"
#include "matrix/order.h"

struct prepared {
    sps_csr *B;               /* rows sorted, values in double precision */
    int32_t *from, *to;       /* row i of B is row from[i] of A, column i of B
                                 is column to[i] of A */
    double *row, *col;        /* D_r and D_c, by rows and columns of A */
    bool scaled, ordered;
    sps_fill fill;            /* predicted size of complete factors, after a
                                 minimum degree order */
    bool matched;             /* the rows were permuted by a matching */
};

/* Makes m->B by opt->scale and opt->order.  low_fill: option order=auto expects
 * factors with little fill. */
sps_status spsi_prepare(sps_precond *M, const sps_options *opt, bool low_fill,
                        struct prepared *m);
void spsi_prepared_clear(sps_context *ctx, struct prepared *m);
/* Make the triangles that solve with the factors of A from the factors L (unit)
 * and U of B.  The triangles become owners of L, of U and of `inverse`, which
 * contains 1 / u_ii.  Column i of U is column column[i] of B, or i if `column`
 * is NULL. */
sps_status spsi_prepared_lower(sps_context *ctx, const struct prepared *m,
                               sps_csr *L, sps_triangle **t_p);
sps_status spsi_prepared_upper(sps_context *ctx, const struct prepared *m,
                               sps_csr *U, double *inverse,
                               const int32_t *column, sps_triangle **t_p);

#endif
