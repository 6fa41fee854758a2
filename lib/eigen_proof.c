/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_proof.c - what is true of eigenpairs, recomputed in double from A, M
 * and X by the plain kernel, whatever the method believed:
 *
 *   lambda = x'Ax / x'Mx, r = A x - lambda M x, residual
 *   ||r|| / |lambda| ||Mx||, backward error ||r|| / (||A|| + |lambda| ||M||) ||x||,
 *   an eigenvalue within ||r||_{M^-1} / ||x||_M of lambda (Parlett, The
 *   Symmetric Eigenvalue Problem, 1998, theorem 15.9.1), and max |X'MX - I|.
 *
 * Where rounding may be a good part of r, or decide, lambda and r are formed in
 * twice the precision (eigen_rounding.c); elsewhere, and for callbacks, what it
 * may hide of ||r|| is added to all that is said.
 *
 * A pair is converged by this residual alone.  Where the tolerance lies below
 * what rounding leaves of r, and r is no more than that, the pair is "limited
 * by rounding" (eigen_rounding.c); one that stopped above has "stagnated". */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define FLOOR (8 * DBL_EPSILON)     /* what rounding leaves of ||r|| */
#define SLICE 8                     /* columns of a solve with M */

static double size_of(const sps_eigen *e, double theta, double xnorm)
{
    return (e->norm_A + fabs(theta) * e->norm_M) * xnorm;
}

double spsi_eigen_floor(const sps_eigen *e, double theta, double xnorm)
{
    return FLOOR * size_of(e, theta, xnorm);
}

double spsi_eigen_unseen(const sps_eigen *e, double theta, double xnorm)
{
    double terms = 4;   /* of a callback nobody knows */

    if (spsi_eigen_entries(e))
        terms = 3.0 + e->given + (double)e->A->f.max_length +
                (double)(e->M ? e->M->f.max_length : 1);
    return terms * (DBL_EPSILON / 2) * size_of(e, theta, xnorm);
}

double spsi_eigen_limit(const sps_eigen *e, double theta, double xnorm,
                        double mnorm)
{
    double relative = e->opt.rtol * fabs(theta) * mnorm;

    if (e->opt.norm == SPS_NORM_BACKWARD)
        relative = e->opt.rtol * size_of(e, theta, xnorm);
    if (e->opt.norm == SPS_NORM_ABSOLUTE) relative = 0;
    return fmax(relative, e->opt.atol * mnorm);
}

/* Conjugate gradients on random columns meet a direction with x'M x < 0 when
 * M has one: they see all eigenvectors that the columns have a part of, and
 * the extreme ones first.  Without it the method would find pairs that are
 * true and still not the smallest: some would have negative norms. */
static sps_status check_mass(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_result result = { .struct_size = sizeof result };
    sps_block B;

    spsi_block_view(e->room, 0, e->Z->k, &B);
    SPS_TRY(sps_block_random(&B, 11));
    /* In the units of the unknowns, as the columns of M are. */
    if (e->root_mass) SPS_TRY(spsi_scale_rows(e->root_mass, &B, &B));
    SPS_TRY(spsi_eigen_project(e, &B));
    SPS_TRY(sps_solver_linear(e->mass_solver, &B, e->Z, &result));
    SPS_REQUIRE(e->ctx, result.stop != SPS_STOP_INDEFINITE, SPS_EUNFIT,
                "M is not positive definite: x'M x is negative for some x; "
                SPS_EIGEN_SWAP);
    SPS_REQUIRE(e->ctx, result.stop == SPS_STOP_CONVERGED, SPS_EUNFIT,
                "M is singular or nearly so: a solve with it ends at a "
                "residual of %.1e (%s); eliminate massless unknowns, or if "
                "A and M have the same null vectors name those (nullspace)",
                result.worst_residual, sps_stop_string(result.stop));
fail:
    return st;
}

/* The M of bounds: itself, or where the squares of its numbers would leave the
 * range of doubles, M / mass_scale, a power of two. */
static sps_status scaled_mass(sps_eigen *e, const sps_operator **M_p)
{
    const sps_csr *M = e->M->A;
    sps_status st = SPS_OK;
    int power;

    *M_p = e->M;
    e->mass_scale = 1;
    if (!M || (e->norm_M > 1e-70 && e->norm_M < 1e70)) return SPS_OK;
    (void)frexp(e->norm_M, &power);
    e->mass_scale = ldexp(1, power);
    SPS_TRY(sps_csr_create(e->ctx, M->nrow, M->ncol, M->nnz, SPS_F64,
                           &e->mass));
    memcpy(e->mass->rowptr, M->rowptr,
           (size_t)(M->nrow + 1) * sizeof *M->rowptr);
    memcpy(e->mass->col, M->col, (size_t)M->nnz * sizeof *M->col);
    for (int64_t p = 0; p < M->nnz; p++)
        ((double *)e->mass->val)[p] = spsi_csr_value(M, p) / e->mass_scale;
    e->mass->props = SPS_SYMMETRIC;
    SPS_TRY(sps_operator_csr(e->ctx, e->mass, e->width, NULL, &e->mass_op));
    *M_p = e->mass_op;
fail:
    return st;
}

sps_status spsi_eigen_prepare_proof(sps_eigen *e)
{
    sps_status st = SPS_OK;
    const sps_operator *M;
    sps_options o;
    int few = e->count < e->width ? e->count : e->width;
    int most = few < SLICE ? few : SLICE;

    SPS_TRY(spsi_small_create(e->ctx, e->count, e->width, &e->E));
    if (spsi_eigen_entries(e)) {
        SPS_TRY(SPS_NEW(e->ctx, e->n, &e->host_x));
        SPS_TRY(SPS_NEW(e->ctx, e->n, &e->host_g));
    }
    if (!e->M) return SPS_OK;
    sps_options_default(&o);
    o.solver = "cg";
    o.precond = e->M->A ? "jacobi" : "none";
    o.nullspace = "none";
    o.rtol = 1e-6;
    o.max_iterations = 3000;
    SPS_TRY(sps_block_create(e->ctx, e->n, most, &e->Z));
    SPS_TRY(scaled_mass(e, &M));
    SPS_TRY(spsi_solver_create_step(M, NULL, most, &o, &e->mass_solver));
    SPS_TRY(check_mass(e));
fail:
    return st;
}

/* bound[j] = sqrt(r_j' M^-1 r_j) of k columns of R. */
static sps_status dual_norms(sps_eigen *e, const sps_block *R, double *bound)
{
    sps_status st = SPS_OK;
    sps_result result = { .struct_size = sizeof result };
    int slice = e->Z->k;
    sps_block part, given, right, *B = &right;

    spsi_block_narrow(e->room, e->room->width);
    spsi_block_view(e->room, 0, slice, B);
    for (int first = 0; first < R->k; first += slice) {
        int k = R->k - first < slice ? R->k - first : slice;

        SPS_TRY(spsi_fill(B, 0));
        SPS_TRY(spsi_fill(e->Z, 0));
        spsi_block_view(R, first, k, &given);
        spsi_block_view(B, 0, k, &part);
        SPS_TRY(spsi_copy(&given, &part));
        /* The rest is rounding, and M has no solution for it. */
        SPS_TRY(spsi_eigen_leave_nulls(e, &part));
        SPS_TRY(sps_solver_linear(e->mass_solver, B, e->Z, &result));
        SPS_TRY(spsi_dots(B, e->Z, e->scratch));
        for (int j = 0; j < k; j++)
            bound[first + j] = result.column[j] == SPS_STOP_CONVERGED
                                   ? 1.001 * sqrt(fmax(0, e->scratch[j])) /
                                         sqrt(e->mass_scale)
                                   : INFINITY;
    }
fail:
    return st;
}

/* max |X'MX - I| of columns first .. against all of them. */
static sps_status look_at_orthogonality(sps_eigen *e, const sps_block *X,
                                        int first, const sps_block *MX)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_gram(X, MX, e->E));
    for (int j = 0; j < MX->k; j++)
        for (int i = 0; i < X->k; i++) {
            double d = fabs(*spsi_small_at(e->E, i, j) - (i == first + j));

            e->orthogonality = isnan(d) ? INFINITY
                                        : fmax(e->orthogonality, d);
        }
fail:
    return st;
}

/* r without its part along M Y of the constraints: the pencil that is solved
 * is that of their complement. */
sps_status spsi_eigen_constrain(sps_eigen *e, sps_block *R)
{
    sps_status st = SPS_OK;
    sps_block Y, dual;

    if (!e->opt.constraints || R->k == 0) return SPS_OK;
    spsi_block_view(e->fixed, 0, e->given, &Y);
    spsi_block_view(e->dual, 0, e->given, &dual);
    SPS_TRY(spsi_gram(&Y, R, e->F));
    SPS_TRY(spsi_mul_small(-1.0, &dual, e->F, 1.0, R));
fail:
    return st;
}

/* lambda = x'Ax / x'Mx, and R = A X - M X diag(lambda). */
static sps_status quotients(sps_eigen *e, const sps_block *X,
                            const sps_block *AX, const sps_block *MX,
                            double *lambda, sps_block *R)
{
    sps_status st = SPS_OK;
    double *mass = e->xmx, *minus = e->scratch, *one = minus + X->k;

    SPS_TRY(spsi_dots(X, AX, lambda));
    SPS_TRY(spsi_dots(X, MX, mass));
    for (int j = 0; j < X->k; j++) {
        lambda[j] = mass[j] != 0 ? lambda[j] / mass[j] : lambda[j];
        minus[j] = -lambda[j];
        one[j] = 1;
    }
    SPS_TRY(spsi_copy(AX, R));
    SPS_TRY(spsi_axpby_cols(minus, MX, one, R));
    SPS_TRY(spsi_eigen_constrain(e, R));
fail:
    return st;
}

/* Column j of the slice beside those before it: a copy of one of them would
 * be a true pair and no new one. */
static bool independent(const sps_eigen *e, int first, int j)
{
    for (int i = 0; i <= first + j; i++)
        if (!(fabs(*spsi_small_at(e->E, i, j) - (i == first + j)) <= 1e-6))
            return false;
    return true;
}

/* The same in twice the precision for residuals that rounding may be a good part
 * of, or that it may bring above the limit.  Of x on a stiff spring lambda and
 * the residual come from the same rounded product: nothing is left of the
 * residual, and as little is right in lambda. */
static sps_status sharpen(sps_eigen *e, const sps_block *X, double *lambda)
{
    sps_status st = SPS_OK;
    sps_block r;

    for (int j = 0; j < X->k; j++) {
        double size = e->resnorm[j], l = lambda[j];
        double limit = spsi_eigen_limit(e, l, e->xnorm[j], e->mnorm[j]);
        double *unseen = &e->unseen[j];
        bool open;

        *unseen = spsi_eigen_unseen(e, l, e->xnorm[j]);
        open = size <= limit && size + *unseen > limit;
        if (!spsi_eigen_entries(e) || !isfinite(size) || !isfinite(l) ||
            !(e->mnorm[j] > 0) || !(open || *unseen > 0.1 * size))
            continue;
        SPS_TRY(spsi_eigen_twofold(e, X, j, e->xmx[j], &lambda[j], e->R));
        spsi_block_view(e->R, j, 1, &r);
        SPS_TRY(spsi_eigen_constrain(e, &r));
        SPS_TRY(spsi_norms(&r, &e->resnorm[j]));
        *unseen = 0;
    }
fail:
    return st;
}

/* Pair i, column j of X, is above its limit: whether it cannot be below. */
static sps_status look_at_rounding(sps_eigen *e, const sps_block *X, int j,
                                   int i, double limit)
{
    sps_status st = SPS_OK;
    double least, most;

    if (!isfinite(e->resnorm[j])) return SPS_OK;
    SPS_TRY(spsi_eigen_rounding(e, X, j, e->lambda[i], &least, &most));
    if (limit < least && e->resnorm[j] <= most)
        e->pair[i] = SPS_STOP_ROUNDING;
fail:
    return st;
}

/* Products that are not finite leave no pair: numbers without a NaN, and a
 * vector without one. */
static sps_status leave_nothing(sps_eigen *e, const sps_block *all, int i)
{
    sps_block x;
    double norm;
    sps_status st = SPS_OK;

    e->lambda[i] = 0;
    e->residual[i] = e->backward[i] = e->bound[i] = INFINITY;
    e->pair[i] = SPS_STOP_NOT_FINITE;
    spsi_block_view(all, i, 1, &x);
    SPS_TRY(spsi_norms(&x, &norm));
    if (!isfinite(norm)) SPS_TRY(spsi_fill(&x, 0));
fail:
    return st;
}

/* What is said of pair i = first + j, column j of X; bound is ||r||, or
 * ||r||_{M^-1}, of the residual as it was formed.  What rounding may hide is
 * added, and the last digit of lambda. */
static sps_status judge(sps_eigen *e, const sps_block *X, int first, int j)
{
    int i = first + j;
    double l = fabs(e->lambda[i]), m = e->mnorm[j], x = e->xnorm[j];
    double formed = e->resnorm[j], r = formed + e->unseen[j];
    double size = size_of(e, l, x), limit = spsi_eigen_limit(e, l, x, m);
    double *bound = &e->bound[i];

    e->residual[i] = r == 0 ? 0 : r / (l * m);
    e->backward[i] = size > 0 ? r / size : r;
    e->pair[i] = SPS_STOP_RUNNING;
    if (!(m > 0 && e->xmx[j] > 0)) {   /* no vector, no pair */
        e->residual[i] = e->backward[i] = *bound = INFINITY;
        return SPS_OK;
    }
    x = sqrt(e->xmx[j]);
    *bound = formed > 0 ? *bound / x * (r / formed) : r / m;
    *bound += DBL_EPSILON * l;
    if (!(r <= limit)) return look_at_rounding(e, X, j, i, limit);
    if (independent(e, first, j)) e->pair[i] = SPS_STOP_CONVERGED;
    return SPS_OK;
}

/* Columns first .. first + k - 1 of X. */
static sps_status prove_slice(sps_eigen *e, const sps_block *all, int first,
                              int k)
{
    sps_status st = SPS_OK;
    double *r = e->resnorm;
    sps_block X, AX, MX;

    spsi_block_view(all, first, k, &X);
    spsi_block_view(e->AS, 0, k, &AX);
    spsi_block_view(e->MS, 0, k, &MX);
    spsi_block_narrow(e->R, k);
    SPS_TRY(spsi_operator_apply_plain(e->A, 1.0, &X, 0.0, &AX));
    if (e->M) SPS_TRY(spsi_operator_apply_plain(e->M, 1.0, &X, 0.0, &MX));
    else MX = X;
    SPS_TRY(quotients(e, &X, &AX, &MX, e->lambda + first, e->R));
    SPS_TRY(spsi_norms(e->R, r));
    SPS_TRY(spsi_norms(&X, e->xnorm));
    SPS_TRY(spsi_norms(&MX, e->mnorm));
    SPS_TRY(sharpen(e, &X, e->lambda + first));
    SPS_TRY(look_at_orthogonality(e, all, first, &MX));
    memcpy(e->bound + first, r, (size_t)k * sizeof *r);
    if (e->M) SPS_TRY(dual_norms(e, e->R, e->bound + first));
    for (int j = 0; j < k; j++)
        SPS_TRY(isfinite(e->lambda[first + j]) && isfinite(r[j])
                    ? judge(e, &X, first, j) : leave_nothing(e, all, first + j));
fail:
    return st;
}

/* Why a pair is not converged. */
static sps_stop reason(const sps_eigen *e, int i)
{
    if (e->pair[i] == SPS_STOP_NOT_FINITE) return SPS_STOP_NOT_FINITE;
    if (e->stop < 0 && e->stop != SPS_STOP_STAGNATED) return e->stop;
    return e->pair[i] == SPS_STOP_ROUNDING ? SPS_STOP_ROUNDING
                                           : SPS_STOP_STAGNATED;
}

static void verdict(sps_eigen *e)
{
    sps_stop worst = SPS_STOP_CONVERGED;

    for (int i = 0; i < e->count; i++) {
        if (e->pair[i] != SPS_STOP_CONVERGED) e->pair[i] = reason(e, i);
        if (e->pair[i] == SPS_STOP_CONVERGED) continue;
        if (worst == SPS_STOP_CONVERGED || worst == SPS_STOP_ROUNDING)
            worst = e->pair[i];
    }
    e->stop = worst;
}

static double rank_of(const sps_eigen *e, double lambda)
{
    return e->nearest ? fabs(lambda - e->opt.sigma) : e->sign * lambda;
}

/* The order of lambda as `which` wants it; equal ones keep theirs. */
static void sort(sps_eigen *e)
{
    for (int i = 0; i < e->count; i++) {
        int p = i;

        for (; p > 0 && rank_of(e, e->lambda[e->order[p - 1]]) >
                        rank_of(e, e->lambda[i]); p--)
            e->order[p] = e->order[p - 1];
        e->order[p] = i;
    }
}

static void permute(sps_eigen *e, double *v)
{
    for (int i = 0; i < e->count; i++) e->scratch[i] = v[e->order[i]];
    memcpy(v, e->scratch, (size_t)e->count * sizeof *v);
}

sps_status spsi_eigen_prove(sps_eigen *e, sps_block *X)
{
    sps_status st = SPS_OK;
    sps_block all;

    e->orthogonality = 0;
    spsi_block_narrow(e->fixed, e->given + e->count);
    spsi_block_view(e->fixed, e->given, e->count, &all);
    spsi_block_narrow(e->fixed, e->given);
    for (int first = 0; first < e->count; first += e->width) {
        int k = e->count - first < e->width ? e->count - first : e->width;

        SPS_TRY(prove_slice(e, &all, first, k));
    }
    sort(e);
    SPS_TRY(spsi_gather(&all, e->order, X));
    for (int i = 0; i < e->count; i++) e->scratch[i] = e->pair[e->order[i]];
    for (int i = 0; i < e->count; i++) e->pair[i] = (sps_stop)e->scratch[i];
    permute(e, e->lambda);
    permute(e, e->residual);
    permute(e, e->backward);
    permute(e, e->bound);
    verdict(e);
fail:
    return st;
}
