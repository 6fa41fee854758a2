/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare.h - the matrix to be factored: B = P D_r A D_c Q, scaled by powers of
 * two and permuted, and the conversion of its factors to factors of A. */
#ifndef SPS_PREPARE_H
#define SPS_PREPARE_H

#include "driver/precond.h"

struct prepared {
    sps_csr *B;               /* rows sorted, doubles */
    int32_t *from, *to;       /* row i of B is row from[i] of A, column i is
                                 column to[i] */
    double *row, *col;        /* scalings, by rows and columns of A */
    bool scaled, ordered;
};

/* Prepares by opt->scale and opt->order.  low_fill: whether auto expects little
 * fill. */
sps_status spsi_prepare(sps_precond *M, const sps_options *opt, bool low_fill,
                        struct prepared *m);
void spsi_prepared_clear(sps_context *ctx, struct prepared *m);
/* The triangles that solve with the factors of A, from the factors L (unit) and
 * U of B; they take ownership of L, of U and of `inverse`, 1 / u_ii.  Column i
 * of U is column column[i] of B, or i if `column` is NULL. */
sps_status spsi_prepared_lower(sps_context *ctx, const struct prepared *m,
                               sps_csr *L, sps_triangle **t_p);
sps_status spsi_prepared_upper(sps_context *ctx, const struct prepared *m,
                               sps_csr *U, double *inverse,
                               const int32_t *column, sps_triangle **t_p);

#endif
