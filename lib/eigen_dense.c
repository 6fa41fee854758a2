/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_dense.c - small eigenproblems, or those that ask for a good part of
 * all pairs: LAPACK finds every pair of the dense pencil, in 2 n^2 numbers and
 * some 10 n^3 operations.  What comes out passes the same proof. */
#include "eigen.h"

#include <math.h>
#include <string.h>

#include "backend.h"

#define ROWS 512       /* up to here always */
#define SHARE 5        /* and where so many times the pairs pass n, */
#define MOST 8000      /* up to here */
#define RATE 1e8       /* n^3 in a second: 10 n^3 operations, and no stop */

static const sps_eigen_type lapack = { .name = "lapack", .stack = 1 };

const sps_eigen_type *spsi_eigen_dense_type(const sps_eigen *e)
{
    bool small = e->n <= ROWS;
    bool many = (int64_t)SHARE * e->count > e->n && e->n <= MOST;

    double n = (double)e->n, seconds = e->opt.max_seconds;

    if (!small && !many) return NULL;
    if (!small && seconds > 0 && n * n * n / RATE > seconds) return NULL;
    spsi_note(e->ctx, small ? "solver auto: LAPACK, since %lld rows are few"
                            : "solver auto: LAPACK, since of %lld pairs a good "
                              "part is asked", (long long)e->n);
    return &lapack;
}

sps_status spsi_eigen_dense_reserve(sps_eigen *e)
{
    sps_status st = SPS_OK;
    int n = (int)e->n, q = e->given + (e->means ? e->nulls : 0);
    double *work = NULL;

    SPS_TRY(spsi_small_create(e->ctx, n, n, &e->dense_A));
    if (e->M) SPS_TRY(spsi_small_create(e->ctx, n, n, &e->dense_M));
    SPS_TRY(spsi_small_create(e->ctx, n, q, &e->dense_D));
    SPS_TRY(spsi_small_create(e->ctx, n, e->width, &e->dense_R));
    SPS_TRY(spsi_small_create(e->ctx, n, e->width, &e->dense_C));
    SPS_TRY(SPS_NEW(e->ctx, n, &e->dense_w));
    /* LAPACK will take 2 n^2 numbers of its own: asked for once, so that the
     * peak stated before a run covers them. */
    SPS_TRY(SPS_NEW(e->ctx, 2 * (int64_t)n * n, &work));
fail:
    spsi_free(e->ctx, work);
    return st;
}

/* D = the columns of the identity, `width` at a time through A. */
sps_status spsi_eigen_densify(sps_eigen *e, const sps_operator *A,
                              sps_small *D)
{
    sps_status st = SPS_OK;
    double *unit = NULL;
    int n = (int)e->n, w = e->width;

    SPS_TRY(SPS_NEW(e->ctx, (int64_t)n * w, &unit));
    spsi_small_shape(D, n, n);
    for (int first = 0; first < n; first += w) {
        int k = n - first < w ? n - first : w;
        sps_block X, Y;

        spsi_block_view(e->S, 0, k, &X);
        spsi_block_view(e->AS, 0, k, &Y);
        for (int j = 0; j < k; j++) unit[(int64_t)j * n + first + j] = 1;
        SPS_TRY(sps_block_set(&X, 0, k, unit, n, SPS_COL_MAJOR, SPS_HOST));
        SPS_TRY(spsi_operator_apply_plain(A, 1.0, &X, 0.0, &Y));
        SPS_TRY(sps_block_get(&Y, 0, k, spsi_small_at(D, 0, first), n,
                              SPS_COL_MAJOR, SPS_HOST));
        for (int j = 0; j < k; j++) unit[(int64_t)j * n + first + j] = 0;
    }
    spsi_small_symmetrise(D);
fail:
    spsi_free(e->ctx, unit);
    return st;
}

/* Indicators of the components, on the host. */
static sps_status indicators(sps_eigen *e, sps_small *D, int at)
{
    const sps_components *c = e->null->components;
    sps_status st = SPS_OK;
    int32_t *row = NULL;

    SPS_TRY(SPS_NEW(e->ctx, c->rows, &row));
    SPS_TRY(e->ctx->backend->download(e->ctx, row, c->row,
                                      (size_t)c->rows * sizeof *row));
    for (int64_t t = 0; t < c->count; t++)
        for (int64_t i = c->host_start[t]; i < c->host_start[t + 1]; i++)
            *spsi_small_at(D, row[i], at + (int)t) = 1;
fail:
    spsi_free(e->ctx, row);
    return st;
}

/* The duals of what is left out. */
static sps_status left_out(sps_eigen *e, sps_small *D)
{
    sps_status st = SPS_OK;
    int n = (int)e->n, q = e->given;

    spsi_small_shape(D, n, q + (e->means ? e->nulls : 0));
    spsi_small_clear(D);
    if (q) SPS_TRY(sps_block_get(e->dual, 0, q, D->v, n, SPS_COL_MAJOR,
                                 SPS_HOST));
    if (e->means) SPS_TRY(indicators(e, D, q));
fail:
    return st;
}

/* The first of the pairs wanted, among w[0] <= w[1] <= ...; equal ones do not
 * end the way to sigma. */
static int first_wanted(const sps_eigen *e, int left)
{
    const double *w = e->dense_w;
    int from = 0;

    if (!e->nearest) return e->sign > 0 ? 0 : left - e->count;
    while (from + e->count < left &&
           fabs(w[from + e->count] - e->opt.sigma) <=
               fabs(w[from] - e->opt.sigma))
        from++;
    return from;
}

/* R = A X - M X diag(x'A x / x'M x), on the host; *enough: all columns are
 * below their limits. */
static sps_status residuals(sps_eigen *e, const sps_block *X, bool *enough)
{
    sps_status st = SPS_OK;
    double *w = e->theta, *minus = e->scratch, *one = e->scratch + X->k;
    sps_block R, MX = *X;

    spsi_block_view(e->AS, 0, X->k, &R);
    if (e->M) spsi_block_view(e->MS, 0, X->k, &MX);
    SPS_TRY(spsi_operator_apply_plain(e->A, 1.0, X, 0.0, &R));
    if (e->M) SPS_TRY(spsi_operator_apply_plain(e->M, 1.0, X, 0.0, &MX));
    SPS_TRY(spsi_dots(X, &R, w));
    SPS_TRY(spsi_dots(X, &MX, minus));
    for (int j = 0; j < X->k; j++) {
        w[j] /= minus[j];
        minus[j] = -w[j];
        one[j] = 1;
    }
    SPS_TRY(spsi_axpby_cols(minus, &MX, one, &R));
    SPS_TRY(spsi_eigen_constrain(e, &R));
    SPS_TRY(spsi_norms(X, e->xnorm));
    SPS_TRY(spsi_norms(&MX, e->mnorm));
    SPS_TRY(spsi_norms(&R, e->resnorm));
    *enough = true;
    for (int j = 0; j < X->k; j++)
        if (!(e->resnorm[j] <= 0.5 * spsi_eigen_limit(e, w[j], e->xnorm[j],
                                                      e->mnorm[j])))
            *enough = false;
    spsi_small_shape(e->dense_R, (int)e->n, X->k);
    SPS_TRY(sps_block_get(&R, 0, X->k, e->dense_R->v, (int)e->n,
                          SPS_COL_MAJOR, SPS_HOST));
fail:
    return st;
}

/* X += V C, c_ij = v_i'r_j / (w_j - w_i): what x_j lacks of v_i, to first
 * order, but for eigenvalues as good as equal. */
static sps_status add_lacking(sps_eigen *e, const sps_small *V, sps_block *X,
                              bool *enough)
{
    sps_small *R = e->dense_R, *C = e->dense_C;
    const double *w = e->theta;
    sps_status st = SPS_OK;
    sps_block more;

    SPS_TRY(residuals(e, X, enough));
    if (*enough) return SPS_OK;
    SPS_TRY(spsi_small_mul(1.0, V, true, R, false, 0.0, C));
    for (int j = 0; j < C->cols; j++)
        for (int i = 0; i < C->rows; i++) {
            double *c = spsi_small_at(C, i, j), gap = w[j] - e->dense_w[i];

            *c = fabs(gap) > 1e-6 * fabs(w[j]) ? *c / gap : 0;
        }
    SPS_TRY(spsi_small_mul(1.0, V, false, C, false, 0.0, R));
    spsi_block_view(e->AS, 0, X->k, &more);
    SPS_TRY(sps_block_set(&more, 0, X->k, R->v, (int)e->n, SPS_COL_MAJOR,
                          SPS_HOST));
    SPS_TRY(spsi_axpby(1.0, &more, 1.0, X));
fail:
    return st;
}

/* Rayleigh-Ritz within X tells those apart. */
static sps_status turn_within(sps_eigen *e, sps_block *X, sps_block *MX)
{
    sps_status st = SPS_OK;
    sps_block Y;

    spsi_block_view(e->AS, 0, X->k, &Y);
    SPS_TRY(spsi_operator_apply_plain(e->A, 1.0, X, 0.0, &Y));
    SPS_TRY(spsi_gram(X, &Y, e->G));
    SPS_TRY(spsi_eigen_ritz(e, e->G, e->ritz));
    if (e->stop) return st;
    SPS_TRY(spsi_mul_small(1.0, X, e->G, 0.0, &Y));
    SPS_TRY(spsi_copy(&Y, X));
    if (!e->M) return st;
    SPS_TRY(spsi_mul_small(1.0, MX, e->G, 0.0, &Y));
    SPS_TRY(spsi_copy(&Y, MX));
fail:
    return st;
}

/* LAPACK's error is eps of the largest eigenvalue, and its vectors are
 * M-orthonormal to eps times the condition of M.  Where that is too much one
 * step of perturbation theory gives small eigenvalues their digits (Ogita and
 * Aishima, Japan J. Indust. Appl. Math. 35, 2018), and another Gram-Schmidt X
 * its own: 4 n^2 + 2 n k operations a pair.  (A second step would take its gaps
 * from eigenvalues that have not got theirs.) */
static sps_status improve(sps_eigen *e, const sps_small *V)
{
    sps_status st = SPS_OK;
    sps_block none, X, MX;
    bool enough;

    spsi_block_view(e->fixed, 0, 0, &none);
    for (int at = 0, k; at < e->count; at += k) {
        k = e->count - at < e->width ? e->count - at : e->width;
        spsi_block_narrow(e->fixed, e->given + at);
        spsi_block_narrow(e->dual, e->given + at);
        spsi_block_view(e->fixed, e->given + at, k, &X);
        spsi_block_view(e->dual, e->given + at, k, &MX);
        SPS_TRY(add_lacking(e, V, &X, &enough));
        SPS_TRY(spsi_eigen_orth(e, &none, &none, &X, e->M ? &MX : &X));
        if (!enough && !e->stop) SPS_TRY(turn_within(e, &X, &MX));
    }
fail:
    return st;
}

sps_status spsi_eigen_dense(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_small *A = e->dense_A, *M = e->M ? e->dense_M : NULL;
    int n = (int)e->n, left, from, info = 0;
    sps_block X;

    SPS_TRY(spsi_eigen_densify(e, e->A, A));
    if (M) SPS_TRY(spsi_eigen_densify(e, e->M, M));
    SPS_TRY(left_out(e, e->dense_D));
    left = n - e->dense_D->cols;
    e->applies_A = (n + e->width - 1) / e->width;
    SPS_TRY(spsi_small_eigen_pencil(A, M, e->dense_D, e->dense_w, &info));
    if (info > 0) {
        e->stop = SPS_STOP_MASS_INDEFINITE;
        return SPS_OK;
    }
    if (info < 0) {
        e->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    from = first_wanted(e, left);
    spsi_block_view(e->fixed, e->given, e->count, &X);
    SPS_TRY(sps_block_set(&X, 0, e->count, spsi_small_at(A, 0, from), n,
                          SPS_COL_MAJOR, SPS_HOST));
    spsi_small_shape(A, n, left);
    SPS_TRY(improve(e, A));
    if (!e->stop) e->stop = SPS_STOP_CONVERGED;
    e->locked = e->count;
fail:
    return st;
}
