/* SPDX-License-Identifier: BSD-3-Clause */
/* coarsest.c - the dense inverse of the coarsest matrix C = S A S, which has a
 * unit diagonal, by Gauss-Jordan elimination: unknown after unknown is
 * exchanged with its right-hand side.  The pivots are diagonal entries, which
 * are the squares of the diagonal of the Cholesky factor.
 *
 * If A is singular, its null vectors b among the near-null vectors (C b = 0:
 * the constant, the motions of a free body) are removed from the null space by
 * adding b b' / b'b to C; the components of the result along b are projected
 * away by the solver.  If C is still singular, as for a graph with several
 * components, its pseudoinverse is computed by eigenvalues: null vectors then
 * get no coarse correction, and the smoother keeps the cycle positive definite.
 *
 * A matrix that is far from symmetric is inverted by LU factors.
 *
 * A backend that has the level computes the same bits, since each product and
 * each sum is rounded; a singular matrix is copied to the host.
 *
 * The set-up takes n^3 multiplications and additions, or 9 n^3 with
 * eigenvalues; an application is a product with n^2 entries. */
#include "solvers/amg/amg.h"

#include <math.h>
#include <string.h>

/* Relative to the largest eigenvalue: eigenvalues below NULL_VALUE count as
 * zero, those below INDEFINITE as negative. */
#define NULL_VALUE 1e-12
#define INDEFINITE -1e-8

/* C = S A S, with 1 on the diagonal of rows whose scale s_i is 0. */
static void load(const amg_level *l, sps_small *C)
{
    const double *val = l->A->val;

    spsi_small_clear(C);
    for (int64_t i = 0; i < l->n; i++) {
        for (int64_t p = l->A->rowptr[i]; p < l->A->rowptr[i + 1]; p++)
            *spsi_small_at(C, (int)i, l->A->col[p]) =
                val[p] * l->scale[i] * l->scale[l->A->col[p]];
        if (l->scale[i] == 0) *spsi_small_at(C, (int)i, (int)i) = 1;
    }
    if (!l->nonsymmetric) spsi_small_symmetrise(C);
}

/* b = S^-1 times near-null vector v; returns whether C b = 0, with the product
 * formed as S (A near). */
static bool is_null(const amg_level *l, int v, double *b)
{
    const double *val = l->A->val;
    double length = 0, image = 0;

    for (int64_t i = 0; i < l->n; i++) {
        double sum = 0;

        for (int64_t p = l->A->rowptr[i]; p < l->A->rowptr[i + 1]; p++)
            sum += val[p] * l->near[(int64_t)l->A->col[p] * l->vectors + v];
        b[i] = l->scale[i] > 0 ? l->near[i * l->vectors + v] / l->scale[i] : 0;
        length += b[i] * b[i];
        image += sum * l->scale[i] * sum * l->scale[i];
    }
    return length > 0 && image <= SPS_COARSE_ZERO * SPS_COARSE_ZERO * length;
}

/* C += b b' / b'b for the near-null vectors b with C b = 0. */
static void lift(const amg_level *l, double *b, sps_small *C)
{
    const int n = (int)l->n;

    for (int v = 0; v < l->vectors; v++) {
        double length = 0;

        if (!is_null(l, v, b)) continue;
        for (int i = 0; i < n; i++) length += b[i] * b[i];
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                *spsi_small_at(C, i, j) += b[i] * b[j] / length;
    }
}

/* Returns whether no element of the inverse Z of C exceeds SPS_COARSE_LARGE;
 * since C has a unit diagonal, larger ones mean that it is singular up to
 * rounding. */
static bool bounded(const sps_small *Z)
{
    for (int64_t e = 0; e < (int64_t)Z->rows * Z->cols; e++)
        if (!(fabs(Z->v[e]) <= SPS_COARSE_LARGE)) return false;
    return true;
}

/* Exchanges unknown k in column j of Z; f = z_kj / z_kk. */
static void exchange(double *restrict column, const double *restrict pivots,
                     int n, int k, double f)
{
    for (int i = 0; i < n; i++) column[i] -= pivots[i] * f;
    column[k] = f;
}

/* Replaces Z by its inverse; returns false if a pivot is not positive. room: n
 * doubles of scratch. */
static bool eliminate(sps_small *Z, double *room)
{
    const int n = Z->rows;

    for (int k = 0; k < n; k++) {
        double *own = spsi_small_at(Z, 0, k);
        const double pivot = own[k], r = 1 / pivot;

        if (!(pivot > 0)) return false;
        memcpy(room, own, (size_t)n * sizeof *room);
        for (int j = 0; j < n; j++)
            if (j != k)
                exchange(spsi_small_at(Z, 0, j), room, n, k,
                         *spsi_small_at(Z, k, j) * r);
        for (int i = 0; i < n; i++) own[i] = i == k ? r : -(room[i] * r);
    }
    return true;
}

/* Z = C^-1; *regular is false if C is singular up to rounding. */
static sps_status invert(sps_context *ctx, const amg_level *l, sps_small *Z,
                         bool *regular)
{
    double *b = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, l->n, &b));
    load(l, Z);
    lift(l, b, Z);
    *regular = eliminate(Z, b) && bounded(Z);
fail:
    spsi_free(ctx, b);
    return st;
}

/* Z = V diag(1 / w) V', with the eigenvalues w of C that are not zero and their
 * eigenvectors V. */
static sps_status pseudoinvert(sps_context *ctx, const amg_level *l,
                               sps_small *C, sps_small *Z)
{
    const int n = (int)l->n;
    double *w = NULL, largest;
    sps_status st;

    load(l, C);
    SPS_TRY(SPS_NEW(ctx, n, &w));
    SPS_REQUIRE(ctx, spsi_small_finite(C), SPS_EUNFIT, "amg: the coarsest "
                "matrix is not finite");
    SPS_TRY(spsi_small_eigen(C, w));
    largest = w[n - 1];
    SPS_REQUIRE(ctx, w[0] >= INDEFINITE * largest, SPS_EUNFIT, "amg needs a "
                "matrix without negative eigenvalues; scaled to unit diagonal, "
                "its coarsest form has %.3g: use another preconditioner, for "
                "an indefinite matrix ilut", w[0]);
    for (int j = 0; j < n; j++) {
        const double f = w[j] > NULL_VALUE * largest ? 1 / sqrt(w[j]) : 0;

        for (int i = 0; i < n; i++) *spsi_small_at(C, i, j) *= f;
    }
    SPS_TRY(spsi_small_mul(1.0, C, false, C, true, 0.0, Z));
fail:
    spsi_free(ctx, w);
    return st;
}

/* Z = C^-1 for a C that is not symmetric. */
static sps_status invert_general(sps_context *ctx, const amg_level *l,
                                 sps_small *Z)
{
    int info;
    sps_status st;

    load(l, Z);
    SPS_TRY(spsi_small_invert(Z, &info));
    SPS_REQUIRE(ctx, info == 0 && bounded(Z), SPS_EUNFIT, "amg: the coarsest "
                "matrix, of %d rows, is singular: use ilut", Z->rows);
fail:
    return st;
}

/* Z = C^-1 for a symmetric C, or its pseudoinverse. */
static sps_status invert_symmetric(sps_context *ctx, const amg_level *l,
                                   sps_small *C, sps_small *Z)
{
    bool regular;
    sps_status st;

    SPS_TRY(invert(ctx, l, Z, &regular));
    if (!regular) SPS_TRY(pseudoinvert(ctx, l, C, Z));
    spsi_small_symmetrise(Z);
fail:
    return st;
}

/* Makes a csr with all n^2 entries, without setting values. */
static sps_status full_pattern(sps_context *ctx, int64_t n, sps_csr **F_p)
{
    sps_csr *F;
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, n, n, n * n, SPS_F64, F_p));
    F = *F_p;
    for (int64_t p = 0; p < n * n; p++) F->col[p] = (int32_t)(p % n);
    for (int64_t i = 0; i <= n; i++) F->rowptr[i] = i * n;
fail:
    return st;
}

/* val = S Z S, row-major; rows without a scale (l->scale is 0) have s_i = 1. */
static void store(const amg_level *l, const sps_small *Z, double *val)
{
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = 0; j < l->n; j++) {
            const double s = l->scale[i] > 0 ? l->scale[i] : 1;
            const double t = l->scale[j] > 0 ? l->scale[j] : 1;

            val[i * l->n + j] = s * *spsi_small_at(Z, (int)i, (int)j) * t;
        }
}

/* val = the inverse of the matrix of l, which is on the host. */
static sps_status invert_level(const amg *m, const amg_level *l, double *val)
{
    sps_context *ctx = m->super.ctx;
    const int n = (int)l->n;
    sps_small *C = NULL, *Z = NULL;
    sps_status st = SPS_OK;

    SPS_TRY(spsi_small_create(ctx, n, n, &C));
    SPS_TRY(spsi_small_create(ctx, n, n, &Z));
    spsi_small_shape(C, n, n);
    spsi_small_shape(Z, n, n);
    SPS_TRY(l->nonsymmetric ? invert_general(ctx, l, Z)
                            : invert_symmetric(ctx, l, C, Z));
    store(l, Z, val);
fail:
    spsi_small_destroy(&C);
    spsi_small_destroy(&Z);
    return st;
}

/* Computes m->inverse on the host, from a copy of l there, and stores it in the
 * place of l. */
static sps_status invert_singular(amg *m, const amg_level *l)
{
    sps_context *ctx = m->super.ctx;
    const size_t bytes = (size_t)(l->n * l->n) * sizeof(double);
    amg_level host = { 0 };
    void *val = NULL;
    sps_status st;

    SPS_TRY(spsi_amg_bring(m, l, &host));
    SPS_TRY(spsi_new(ctx, bytes, &val));
    SPS_TRY(invert_level(m, &host, val));
    SPS_TRY(ctx->backend->upload(ctx, m->inverse->val, val, bytes));
fail:
    spsi_free(ctx, val);
    sps_csr_destroy(ctx, &host.own);
    spsi_free(ctx, host.scale);
    spsi_free(ctx, host.near);
    return st;
}

sps_status spsi_amg_coarsest(amg *m)
{
    const amg_level *l = &m->level[m->levels - 1];
    bool regular = false;
    sps_status st;

    if (l->n > AMG_DENSE || l->n == 0) return SPS_OK;
    if (!l->part) {
        if (!m->inverse)
            SPS_TRY(full_pattern(m->super.ctx, l->n, &m->inverse));
        return invert_level(m, l, m->inverse->val);
    }
    SPS_TRY(m->device->invert(l->part, &m->inverse, &regular));
    if (!regular) SPS_TRY(invert_singular(m, l));
fail:
    return st;
}
