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

/* The first of the pairs wanted, among w[0] <= w[1] <= ... */
static int first_wanted(const sps_eigen *e, int left)
{
    const double *w = e->dense_w;
    int from = 0;

    if (!e->nearest) return e->sign > 0 ? 0 : left - e->count;
    while (from + e->count < left &&
           fabs(w[from + e->count] - e->opt.sigma) <
               fabs(w[from] - e->opt.sigma))
        from++;
    return from;
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
    e->stop = SPS_STOP_CONVERGED;
    e->locked = e->count;
fail:
    return st;
}
