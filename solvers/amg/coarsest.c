/* SPDX-License-Identifier: BSD-3-Clause */
/* coarsest.c - the dense inverse of the coarsest matrix, C = S A S with unit
 * diagonal, by Cholesky factors.
 *
 * For a singular A near-null vectors b with C b = 0 (the constant, the motions
 * of a free body) are taken out of the null space by C + b b' / b'b; what the
 * inverse does to them is projected away by the solver.  Where C is singular
 * even so, as for a graph of several components, the pseudoinverse by
 * eigenvalues is taken: such vectors get no coarse correction, and the smoother
 * keeps the cycle positive definite.
 *
 * A matrix that is far from symmetric is inverted by LU factors.
 *
 * Once n^3 / 3 + n^3 multiply-adds and 20 n^2 bytes, or 9 n^3; an application
 * is a product with n^2 entries. */
#include "solvers/amg/amg.h"

#include <math.h>

/* Entries of the inverse beyond LARGE mean that C is singular; eigenvalues
 * below NULL_VALUE of the largest count as zero, below INDEFINITE of it as
 * negative. */
#define LARGE 1e11
#define NULL_VALUE 1e-12
#define INDEFINITE -1e-8
#define ZERO 1e-11           /* ||C b|| / ||b|| of a null vector, at most */

/* C = S A S; 1 on the diagonal of rows without a scale. */
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

/* b = S^-1 near-null vector v; whether C b = 0, the product formed as
 * S (A near). */
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
    return length > 0 && image <= ZERO * ZERO * length;
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

/* Whether Z is the inverse of a regular matrix of unit diagonal. */
static bool bounded(const sps_small *Z)
{
    for (int64_t e = 0; e < (int64_t)Z->rows * Z->cols; e++)
        if (!(fabs(Z->v[e]) <= LARGE)) return false;
    return true;
}

/* Z = C^-1; false: C is singular up to rounding. */
static sps_status invert(sps_context *ctx, const amg_level *l, sps_small *C,
                         sps_small *Z, bool *regular)
{
    const int n = (int)l->n;
    double *b = NULL;
    int info;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, n, &b));
    load(l, C);
    lift(l, b, C);
    spsi_small_clear(Z);
    for (int i = 0; i < n; i++) *spsi_small_at(Z, i, i) = 1;
    SPS_TRY(spsi_small_solve_spd(C, Z, &info));
    *regular = info == 0 && bounded(Z);
fail:
    spsi_free(ctx, b);
    return st;
}

/* Z = V diag(1 / w) V', the eigenvalues w that are not zero. */
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

    SPS_TRY(invert(ctx, l, C, Z, &regular));
    if (!regular) SPS_TRY(pseudoinvert(ctx, l, C, Z));
    spsi_small_symmetrise(Z);
fail:
    return st;
}

/* The csr of all entries, values not set. */
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

/* val = S Z S, by rows; 1 for the scale of a row that has none. */
static void store(const amg_level *l, const sps_small *Z, double *val)
{
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t j = 0; j < l->n; j++) {
            const double s = l->scale[i] > 0 ? l->scale[i] : 1;
            const double t = l->scale[j] > 0 ? l->scale[j] : 1;

            val[i * l->n + j] = s * *spsi_small_at(Z, (int)i, (int)j) * t;
        }
}

static sps_status invert_level(amg *m, const amg_level *l)
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
    if (!m->inverse) SPS_TRY(full_pattern(ctx, n, &m->inverse));
    store(l, Z, m->inverse->val);
fail:
    spsi_small_destroy(&C);
    spsi_small_destroy(&Z);
    return st;
}

sps_status spsi_amg_coarsest(amg *m)
{
    const amg_level *l = &m->level[m->levels - 1];
    amg_level host = { 0 };
    sps_status st;

    if (l->n > AMG_DENSE || l->n == 0) return SPS_OK;
    if (!l->part) return invert_level(m, l);
    SPS_TRY(spsi_amg_bring(m, l, &host));
    SPS_TRY(invert_level(m, &host));
fail:
    sps_csr_destroy(m->super.ctx, &host.own);
    spsi_free(m->super.ctx, host.scale);
    spsi_free(m->super.ctx, host.near);
    return st;
}
