/* SPDX-License-Identifier: BSD-3-Clause */
/* dense.c - Z = A^-1 R by dense factors of the equilibrated matrix, for
 * matrices that are tiny or nearly full, and for small ones on which all other
 * preconditioners fail.  They are Cholesky factors (LAPACKE dpotrf) of a
 * symmetric positive definite matrix, LU factors with row pivoting (dgetrf) of
 * others.  On the host the set-up takes n^3 / 6 or n^3 / 3 multiply-adds and
 * 8 n^2 bytes, an application n^2 multiply-adds for each column.  On a GPU the
 * inverse is formed (dgetri), n^3 multiply-adds and 20 n^2 bytes, and an
 * application is one product with n^2 entries.  The iteration corrects the
 * rounding errors. */
#include "driver/precond.h"

#include <float.h>
#include <math.h>

#include "matrix/order.h"

enum { LARGEST = 5000 };

struct dense {
    sps_precond super;
    double *row, *col;        /* powers of two that scale the rows and columns
                                 of A */
    bool regular;             /* a pivot that is zero up to rounding is an
                                 error, since the caller has another method */
    /* On the host: */
    sps_small *F;             /* factors of D_r A D_c */
    bool definite;            /* they are Cholesky factors */
    int32_t *pivot;           /* n elements: row exchanges (dgetrf) */
    double *X;                /* n x width, column-major: R, then Z */
    /* On a GPU: */
    sps_csr *csr;             /* the inverse */
    sps_operator *op;
};

/* C = D_r A D_c. */
static void load(const struct dense *m, sps_small *C)
{
    const sps_csr *A = m->super.A->A;
    const int n = (int)A->nrow;

    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) *spsi_small_at(C, i, j) = 0;
    for (int i = 0; i < n; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            *spsi_small_at(C, i, A->col[p]) +=
                m->row[i] * spsi_csr_value(A, p) * m->col[A->col[p]];
}

/* Returns whether a pivot is zero up to the rounding of the largest one.
 * Those of Cholesky factors are the squares of the diagonal. */
static bool nearly_singular(const struct dense *m)
{
    const sps_small *F = m->F;
    double least = INFINITY, most = 0;

    for (int i = 0; i < F->rows; i++) {
        least = fmin(least, fabs(*spsi_small_at(F, i, i)));
        most = fmax(most, fabs(*spsi_small_at(F, i, i)));
    }
    return m->definite ? least * least <= DBL_EPSILON * most * most
                       : least <= DBL_EPSILON * most;
}

/* Returns whether F equals its transpose to the last bit and has a positive
 * diagonal. */
static bool may_be_definite(const sps_small *F)
{
    for (int j = 0; j < F->cols; j++) {
        if (!(*spsi_small_at(F, j, j) > 0)) return false;
        for (int i = j + 1; i < F->rows; i++)
            if (*spsi_small_at(F, i, j) != *spsi_small_at(F, j, i))
                return false;
    }
    return true;
}

static sps_status factor(struct dense *m)
{
    sps_precond *M = &m->super;
    bool definite;
    sps_status st;
    int info = 1;

    SPS_TRY(spsi_equilibrate(M->ctx, M->A->A, m->row, m->col));
    load(m, m->F);
    definite = may_be_definite(m->F);
    if (definite) SPS_TRY(spsi_small_cholesky(m->F, &info));
    m->definite = definite && info == 0;
    if (definite && !m->definite) load(m, m->F);
    if (!m->definite) SPS_TRY(spsi_small_factor(m->F, m->pivot, &info));
    SPS_REQUIRE(M->ctx, info == 0, SPS_EUNFIT, "dense: the matrix is singular: "
                "pivot %d of %d is zero or not finite", info, (int)M->n);
    SPS_REQUIRE(M->ctx, !m->regular || !nearly_singular(m), SPS_EUNFIT,
                "dense: the matrix is singular to working precision: a pivot "
                "is zero up to rounding");
fail:
    return st;
}

static sps_status solve(const struct dense *m, const sps_block *R, sps_block *Z)
{
    const int64_t n = m->super.n, ld = n > 0 ? n : 1;
    sps_status st;

    SPS_TRY(sps_block_get(R, 0, R->k, m->X, ld, SPS_COL_MAJOR, SPS_HOST));
    for (int j = 0; j < R->k; j++)
        for (int64_t i = 0; i < n; i++) m->X[j * ld + i] *= m->row[i];
    SPS_TRY(spsi_small_solve(m->F, m->definite ? NULL : m->pivot, m->X,
                             R->k));
    for (int j = 0; j < R->k; j++)
        for (int64_t i = 0; i < n; i++) m->X[j * ld + i] *= m->col[i];
    SPS_TRY(sps_block_set(Z, 0, Z->k, m->X, ld, SPS_COL_MAJOR, SPS_HOST));
fail:
    return st;
}

/* Computes A^-1 = D_c (D_r A D_c)^-1 D_r as values of the csr. */
static sps_status invert(struct dense *m, double *val)
{
    sps_precond *M = &m->super;
    const int n = (int)M->n;
    sps_small *C = NULL;
    sps_status st;
    int info;

    SPS_TRY(spsi_equilibrate(M->ctx, M->A->A, m->row, m->col));
    SPS_TRY(spsi_small_create(M->ctx, n, n, &C));
    spsi_small_shape(C, n, n);
    load(m, C);
    SPS_TRY(spsi_small_invert(C, &info));
    SPS_REQUIRE(M->ctx, info == 0, SPS_EUNFIT, "dense: the matrix is singular: "
                "pivot %d of %d is zero or not finite", info, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            val[(int64_t)i * n + j] =
                m->col[i] * *spsi_small_at(C, i, j) * m->row[j];
fail:
    spsi_small_destroy(&C);
    return st;
}

static sps_status build_inverse(struct dense *m)
{
    sps_precond *M = &m->super;
    const int64_t n = M->n;
    sps_status st;

    SPS_TRY(spsi_own_csr(&M->own, &m->csr));
    SPS_TRY(sps_csr_create(M->ctx, n, n, n * n, SPS_F64, &m->csr));
    for (int64_t p = 0; p < n * n; p++) m->csr->col[p] = (int32_t)(p % n);
    for (int64_t i = 0; i <= n; i++) m->csr->rowptr[i] = i * n;
    SPS_TRY(invert(m, m->csr->val));
    SPS_TRY(spsi_own_operator(&M->own, &m->op));
    SPS_TRY(sps_operator_csr(M->ctx, m->csr, M->width, NULL, &m->op));
fail:
    return st;
}

static sps_status build_factors(struct dense *m)
{
    sps_precond *M = &m->super;
    const int n = (int)M->n;
    sps_status st;

    SPS_TRY(spsi_small_create(M->ctx, n, n, &m->F));
    spsi_small_shape(m->F, n, n);
    SPS_TRY(SPS_OWN(&M->own, n, &m->pivot));
    SPS_TRY(SPS_OWN(&M->own, (int64_t)n * M->width, &m->X));
    SPS_TRY(factor(m));
fail:
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct dense *m = (struct dense *)M;
    const int64_t n = M->n;
    sps_status st;

    (void)opt;
    SPS_REQUIRE(M->ctx, n <= LARGEST, SPS_EUNFIT, "dense supports at most %d "
                "rows; the matrix has %lld: use ilut or factor", LARGEST,
                (long long)n);
    m->regular = M->A->cache->worth > 0;
    SPS_TRY(SPS_OWN(&M->own, n, &m->row));
    SPS_TRY(SPS_OWN(&M->own, n, &m->col));
    SPS_TRY(M->ctx->opt.place == SPS_HOST ? build_factors(m)
                                          : build_inverse(m));
fail:
    return st;
}

static sps_status update(sps_precond *M)
{
    struct dense *m = (struct dense *)M;
    sps_status st;
    double *val = NULL;

    if (m->F) return factor(m);
    SPS_TRY(SPS_NEW(M->ctx, M->n * M->n, &val));
    SPS_TRY(invert(m, val));
    SPS_TRY(sps_operator_set_values(m->op, val, SPS_HOST));
fail:
    spsi_free(M->ctx, val);
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    const struct dense *m = (const struct dense *)M;

    return m->F ? solve(m, R, Z) : sps_operator_apply(m->op, 1.0, R, 0.0, Z);
}

static void destroy(sps_precond *M)
{
    spsi_small_destroy(&((struct dense *)M)->F);
}

SPS_DEFINE(sps_precond_type, spsi_precond_dense) = {
    .name = "dense", .needs = SPS_NEEDS_CSR, .size = sizeof(struct dense),
    .build = build, .update = update, .apply = apply, .destroy = destroy,
};
