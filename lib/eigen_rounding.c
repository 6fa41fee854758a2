/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_rounding.c - what rounding leaves of the residual of an eigenpair.
 *
 * With g = |A||x| + |lambda||M||x|, row by row, and u = 2^-53:
 *
 *   least   u ||g||.  The doubles next to an eigenvector are x_i (1 + d_i),
 *           |d_i| <= u, so that A x - lambda M x is anything up to u g; half of
 *           it is met as a rule.
 *   most    u ||(nu_i + 3) g||, nu_i the terms of row i: forming the residual
 *           as well (Higham, Accuracy and Stability, 2002, section 3.5), one
 *           more rounding of x and two for lambda.
 *
 * A limit below `least` cannot be met in doubles but by luck, and a residual up
 * to `most` is rounding.  ||A|| ||x|| would be far above both where units are
 * mixed: large rows of A meet small numbers of x there.
 *
 * Of a callback no entries are known: its norm stands for them.  On the host,
 * from the caller's arrays: 12 bytes an entry for a column.
 *
 * And the residual itself, as if formed in twice the precision: an error of
 * u ||r|| + (nu u)^2 ||g||, where products of doubles leave nu u ||g|| (Dot2 of
 * Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26(6), 2005). */
#include "eigen.h"

#include <float.h>
#include <math.h>

#define UNIT (DBL_EPSILON / 2)

/* sum |a_ij| |x_j| of row i; M NULL: the identity. */
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

bool spsi_eigen_entries(const sps_eigen *e)
{
    return e->A->A && (!e->M || e->M->A);
}

sps_status spsi_eigen_rounding(sps_eigen *e, const sps_block *X, int j,
                               double lambda, double *least, double *most)
{
    const sps_csr *A = e->A->A, *M = e->M ? e->M->A : NULL;
    const int threads = e->ctx->threads;
    const double l = fabs(lambda);
    double *x = e->host_x, *g = e->host_g, norm;
    sps_status st = SPS_OK;
    sps_block column;

    if (!spsi_eigen_entries(e)) {
        spsi_block_view(X, j, 1, &column);
        SPS_TRY(spsi_norms(&column, &norm));
        *least = 4 * UNIT * (e->norm_A + l * e->norm_M) * norm;
        *most = 250 * *least;
        return SPS_OK;
    }
    SPS_TRY(sps_block_get(X, j, 1, x, e->n, SPS_COL_MAJOR, SPS_HOST));
    for (int pass = 0; pass < 2; pass++) {
#pragma omp parallel for num_threads(threads)
        for (int64_t i = 0; i < e->n; i++) {
            int64_t nu = 3;
            double sum = row_of(A, i, x, &nu) + l * row_of(M, i, x, &nu);

            g[i] = pass ? (double)nu * sum : sum;
        }
        *(pass ? most : least) = UNIT * norm_of(g, e->n);
    }
fail:
    return st;
}

/* high + low: a sum and what rounding has left out of it. */
typedef struct twofold { double high, low; } twofold;

/* s + a b; errors of product and sum are doubles, and exact. */
static twofold plus_product(twofold s, double a, double b)
{
    double p = a * b, sum = s.high + p, part = sum - s.high;
    double left = (s.high - (sum - part)) + (p - part);

    return (twofold){ sum, s.low + (left + fma(a, b, -p)) };
}

/* (A x)_i; A NULL: the identity. */
static twofold product_of(const sps_csr *A, int64_t i, const double *x)
{
    twofold s = { 0, 0 };

    if (!A) return (twofold){ x[i], 0 };
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        s = plus_product(s, spsi_csr_value(A, p), x[A->col[p]]);
    return s;
}

sps_status spsi_eigen_twofold(sps_eigen *e, const sps_block *X, int j,
                              double mass, double *lambda, sps_block *R)
{
    const sps_csr *A = e->A->A, *M = e->M ? e->M->A : NULL;
    const int threads = e->ctx->threads;
    double *x = e->host_x, *r = e->host_g;
    sps_status st = SPS_OK;

    SPS_TRY(sps_block_get(X, j, 1, x, e->n, SPS_COL_MAJOR, SPS_HOST));
    for (int pass = 0; pass < 2; pass++) {
        double l = *lambda, along = 0;

#pragma omp parallel for num_threads(threads)
        for (int64_t i = 0; i < e->n; i++) {
            twofold a = product_of(A, i, x), m = product_of(M, i, x);

            a = plus_product(a, -l, m.high);
            r[i] = a.high + (a.low - l * m.low);
        }
        /* x'r is as good as r, so that lambda is rounded once. */
        for (int64_t i = 0; !pass && i < e->n; i++) along += x[i] * r[i];
        if (!pass) *lambda += along / mass;
    }
    SPS_TRY(sps_block_set(R, j, 1, r, e->n, SPS_COL_MAJOR, SPS_HOST));
fail:
    return st;
}
