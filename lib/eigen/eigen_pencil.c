/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_pencil.c - the pencil: requirements on A and M, products with them,
 * their norms, and the tolerances that follow from these. */
#include "eigen/eigen_pencil.h"

#include <float.h>
#include <math.h>

#include "core/timer.h"
#include "driver/precond.h"

#define ATTAINABLE (8 * DBL_EPSILON)  /* fraction of the reference of
                                         backward errors */

static sps_status check_symmetric(const sps_operator *A, const char *name)
{
    sps_status st = SPS_OK;
    bool symmetric = (A->props & (SPS_SYMMETRIC | SPS_SPD)) != 0;
    double difference = 0;

    SPS_REQUIRE(A->ctx, A->n == A->ncol, SPS_EUNFIT,
                "%s is %lld x %lld; eigenvalues need a square one", name,
                (long long)A->n, (long long)A->ncol);
    SPS_REQUIRE(A->ctx, symmetric || A->A, SPS_EUNFIT,
                "%s must be symmetric; if it is symmetric, declare it "
                "SPS_SYMMETRIC",
                name);
    if (!symmetric)
        SPS_TRY(spsi_operator_symmetric(A, &symmetric, &difference));
    SPS_REQUIRE(A->ctx, symmetric, SPS_EUNFIT,
                "%s is not symmetric: it differs from its transpose by up to "
                "%.3g; eigenvalues of nonsymmetric matrices are not supported",
                name, difference);
fail:
    return st;
}

sps_status spsi_pencil_check_matrix(const sps_pencil *p)
{
    return check_symmetric(p->A, "A");
}

static sps_status check_diagonal(const sps_operator *M)
{
    sps_status st = SPS_OK;
    double *d = NULL;

    if (!M->A) return SPS_OK;
    SPS_TRY(SPS_NEW(M->ctx, M->n, &d));
    SPS_TRY(spsi_matrix_diagonal(M, d));
    for (int64_t i = 0; i < M->n; i++)
        SPS_REQUIRE(M->ctx, d[i] > 0, SPS_EUNFIT,
                    "M is not positive definite: its diagonal entry in row "
                    "%lld is %.3g; %s", (long long)i + 1, d[i],
                    d[i] == 0  ? "eliminate massless unknowns first"
                    : d[i] < 0 ? SPS_PENCIL_SWAP
                               : "that is not a number");
fail:
    spsi_free(M->ctx, d);
    return st;
}

sps_status spsi_pencil_check_mass(const sps_pencil *p)
{
    sps_status st = SPS_OK;
    const sps_operator *A = p->A, *M = p->M;

    if (!M) return SPS_OK;
    SPS_REQUIRE(p->ctx, M->ctx == p->ctx, SPS_EINVAL,
                "A and M belong to different contexts");
    SPS_REQUIRE(p->ctx, M->n == A->n, SPS_ESHAPE, "A has %lld rows, M has %lld",
                (long long)A->n, (long long)M->n);
    SPS_TRY(check_symmetric(M, "M"));
    SPS_TRY(check_diagonal(M));
fail:
    return st;
}

static sps_status make_root_mass(sps_pencil *p)
{
    sps_status st = SPS_OK;
    double *d = NULL;

    if (!p->M || !p->M->A) return SPS_OK;
    SPS_TRY(SPS_NEW(p->ctx, p->n, &d));
    SPS_TRY(spsi_matrix_diagonal(p->M, d));
    for (int64_t i = 0; i < p->n; i++) d[i] = sqrt(d[i]);
    SPS_TRY(spsi_own_block(p->own, p->n, 1, &p->root_mass));
    SPS_TRY(sps_block_set(p->root_mass, 0, 1, d, 1, SPS_ROW_MAJOR, SPS_HOST));
fail:
    spsi_free(p->ctx, d);
    return st;
}

sps_status spsi_pencil_measure(sps_pencil *p, sps_block *V, sps_block *W)
{
    sps_status st = SPS_OK;
    double scratch[8];

    spsi_block_narrow(V, V->width < 4 ? V->width : 4);
    spsi_block_narrow(W, V->k);
    SPS_TRY(spsi_norm_estimate(p->A, V, W, scratch, &p->norm_A));
    p->norm_M = 1;
    if (p->M) SPS_TRY(spsi_norm_estimate(p->M, V, W, scratch, &p->norm_M));
    SPS_TRY(make_root_mass(p));
    if (!spsi_pencil_entries(p)) return SPS_OK;
    SPS_TRY(SPS_OWN(p->own, p->n, &p->host_x));
    SPS_TRY(SPS_OWN(p->own, p->n, &p->host_g));
fail:
    return st;
}

static sps_status multiply(sps_context *ctx, const sps_operator *B,
                           const sps_block *X, sps_block *Y, int64_t *applies)
{
    sps_status st;

    spsi_phase_begin(ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(B, 1.0, X, 0.0, Y);
    spsi_phase_end(ctx, SPS_PHASE_SPMM);
    ++*applies;
    return st;
}

sps_status spsi_pencil_apply(sps_pencil *p, const sps_block *X, sps_block *Y)
{
    return multiply(p->ctx, p->A, X, Y, &p->applies_A);
}

sps_status spsi_pencil_mass(sps_pencil *p, const sps_block *X, sps_block *Y)
{
    if (!p->M) return X->data == Y->data ? SPS_OK : spsi_copy(X, Y);
    return multiply(p->ctx, p->M, X, Y, &p->applies_M);
}

double spsi_pencil_unit(const sps_pencil *p)
{
    return p->norm_A / (p->norm_M > 0 ? p->norm_M : 1);
}

double spsi_pencil_reference(const sps_pencil *p, double lambda, double xnorm)
{
    return (p->norm_A + fabs(lambda) * p->norm_M) * xnorm;
}

double spsi_pencil_tolerance(const sps_pencil *p, const sps_options *opt,
                             double lambda, double xnorm, double mnorm)
{
    double relative = opt->rtol * fabs(lambda) * mnorm;

    if (opt->norm == SPS_NORM_BACKWARD)
        relative = opt->rtol * spsi_pencil_reference(p, lambda, xnorm);
    if (opt->norm == SPS_NORM_ABSOLUTE) relative = 0;
    return fmax(relative, opt->atol * mnorm);
}

double spsi_pencil_attainable(const sps_pencil *p, double lambda, double xnorm)
{
    return ATTAINABLE * spsi_pencil_reference(p, lambda, xnorm);
}

double spsi_pencil_forming_error(const sps_pencil *p, int constraints,
                                 double lambda, double xnorm)
{
    double terms = 4;   /* terms of a row, assumed for a callback */

    if (spsi_pencil_entries(p))
        terms = 3.0 + constraints + (double)p->A->f.max_length +
                (double)(p->M ? p->M->f.max_length : 1);
    return terms * (DBL_EPSILON / 2) * spsi_pencil_reference(p, lambda, xnorm);
}
