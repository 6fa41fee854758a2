/* SPDX-License-Identifier: BSD-3-Clause */
/* dense.c - Z = A^-1 R with the dense inverse, by LU with row pivoting of the
 * equilibrated matrix (LAPACKE dgetrf, dgetri).  It is meant for small matrices
 * on which all other preconditioners fail.  The set-up takes n^3 multiply-adds
 * and 20 n^2 bytes, an application one product with n^2 entries.  The iteration
 * corrects the rounding errors of the inverse. */
#include "driver/precond.h"

#include "matrix/order.h"

enum { LARGEST = 5000 };

struct dense {
    sps_precond super;
    sps_csr *csr;             /* the inverse */
    double *row, *col;        /* powers of two that scale the rows and columns
                                 of A */
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
    SPS_REQUIRE(M->ctx, info == 0, SPS_EUNFIT, "dense: the matrix is singular, "
                "pivot %d of %d is zero or not finite", info, n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            val[(int64_t)i * n + j] =
                m->col[i] * *spsi_small_at(C, i, j) * m->row[j];
fail:
    spsi_small_destroy(&C);
    return st;
}

static sps_status build(sps_precond *M, const sps_options *opt)
{
    struct dense *m = (struct dense *)M;
    const int64_t n = M->n;
    sps_status st;

    (void)opt;
    SPS_REQUIRE(M->ctx, n <= LARGEST, SPS_EUNFIT, "dense supports at most %d "
                "rows; the matrix has %lld", LARGEST, (long long)n);
    SPS_TRY(SPS_OWN(&M->own, n, &m->row));
    SPS_TRY(SPS_OWN(&M->own, n, &m->col));
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

static sps_status update(sps_precond *M)
{
    struct dense *m = (struct dense *)M;
    sps_status st;
    double *val = NULL;

    SPS_TRY(SPS_NEW(M->ctx, M->n * M->n, &val));
    SPS_TRY(invert(m, val));
    SPS_TRY(sps_operator_set_values(m->op, val, SPS_HOST));
fail:
    spsi_free(M->ctx, val);
    return st;
}

static sps_status apply(const sps_precond *M, const sps_block *R, sps_block *Z)
{
    return sps_operator_apply(((const struct dense *)M)->op, 1.0, R, 0.0, Z);
}

SPS_DEFINE(sps_precond_type, spsi_precond_dense) = {
    .name = "dense", .needs = SPS_NEEDS_CSR, .size = sizeof(struct dense),
    .build = build, .update = update, .apply = apply,
};
