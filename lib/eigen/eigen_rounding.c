/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_rounding.c - the effect of rounding on the residual of an eigenpair.
 *
 * With g = |A||x| + |lambda||M||x|, row by row, and u = 2^-53:
 *
 *   least   u ||g||.  An eigenvector rounded to doubles is x_i (1 + d_i),
 *           |d_i| <= u, so that A x - lambda M x may be as large as u g; about
 *           half of it is usual.
 *   most    u ||(nu_i + 3) g||, nu_i the terms of row i: rounding errors of
 *           forming the residual are included (Higham, Accuracy and Stability,
 *           2002, section 3.5), one more of x and two of lambda.
 *
 * A tolerance below `least` cannot be met in doubles except by chance, and a
 * residual up to `most` is explained by rounding.  ||A|| ||x|| would be far
 * above both where units are mixed, since large rows of A meet small numbers
 * of x there.
 *
 * The entries of a callback are not known, and its norm replaces them.  On the
 * host, from the caller's arrays: two passes of 12 bytes an entry for each
 * column. */
#include "eigen/eigen_pencil.h"

#include <float.h>
#include <math.h>

#include "core/team.h"

#define UNIT (DBL_EPSILON / 2)

/* Returns the sum of |a_ij| |x_j| over row i (of the identity if A is NULL);
 * adds its number of terms to *nu. */
static double row_of(const sps_csr *A, int64_t i, const double *x, int64_t *nu)
{
    double sum = 0;

    if (!A) return ++*nu, fabs(x[i]);
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        sum += fabs(spsi_csr_value(A, p) * x[A->col[p]]);
    *nu += A->rowptr[i + 1] - A->rowptr[i];
    return sum;
}

static double norm_of(const double *v, int64_t n)
{
    double most = 0, sum = 0;

    for (int64_t i = 0; i < n; i++) most = fmax(most, v[i]);
    for (int64_t i = 0; most > 0 && i < n; i++)
        sum += (v[i] / most) * (v[i] / most);
    return most * sqrt(sum);
}

/* Returns the nanoseconds for a product with A and M, row by row. */
static int64_t rows_ns(const sps_pencil *p)
{
    return p->A->A->nnz + (p->M ? p->M->A->nnz : 0) +
           2 * p->n;
}

/* r = g = |A||x| + l |M||x| by rows; in pass 1 multiplied by nu_i + 3. */
typedef struct rows_job {
    const sps_csr *A, *M;
    const double *x;
    double l, *r;
    int pass;
} rows_job;

static void bound_rows(void *data, int64_t first, int64_t last)
{
    const rows_job *j = data;

    for (int64_t i = first; i < last; i++) {
        int64_t nu = 3;
        double sum = row_of(j->A, i, j->x, &nu) +
                     j->l * row_of(j->M, i, j->x, &nu);

        j->r[i] = j->pass ? (double)nu * sum : sum;
    }
}

sps_status spsi_pencil_rounding(sps_pencil *p, const sps_block *X, int j,
                               double lambda, double *least, double *most)
{
    const sps_csr *A = p->A->A, *M = p->M ? p->M->A : NULL;
    const double l = fabs(lambda);
    double *x = p->host_x, *g = p->host_g, norm;
    sps_status st = SPS_OK;
    sps_block column;

    if (!spsi_pencil_entries(p)) {
        spsi_block_view(X, j, 1, &column);
        SPS_TRY(spsi_norms(&column, &norm));
        *least = 4 * UNIT * (p->norm_A + l * p->norm_M) * norm;
        *most = 250 * *least;
        return SPS_OK;
    }
    SPS_TRY(spsi_operator_fetch(p->A));
    if (p->M) SPS_TRY(spsi_operator_fetch(p->M));
    SPS_TRY(sps_block_get(X, j, 1, x, p->n, SPS_COL_MAJOR, SPS_HOST));
    for (int pass = 0; pass < 2; pass++) {
        spsi_team_run(p->ctx, p->n, rows_ns(p), bound_rows,
                      &(rows_job){ A, M, x, l, g, pass });
        *(pass ? most : least) = UNIT * norm_of(g, p->n);
    }
fail:
    return st;
}
