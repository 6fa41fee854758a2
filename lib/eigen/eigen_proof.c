/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_proof.c - verification of eigenpairs, recomputed from A, M and X
 * independently of the method:
 *
 *   lambda = x'Ax / x'Mx and r = A x - lambda M x,
 *   the residual ||r|| / (|lambda| ||M x||),
 *   the backward error ||r|| / ((||A|| + |lambda| ||M||) ||x||),
 *   an eigenvalue within ||r||_{M^-1} / ||x||_M of lambda (Parlett, The
 *   Symmetric Eigenvalue Problem, 1998, theorem 15.9.1), and max |X'MX - I|.
 *
 * lambda and r are formed in twice the working precision (eigen_residual.c);
 * for callbacks, whose products are doubles, the rounding error of forming r is
 * added to all of these.
 *
 * Whether a pair has converged is decided by this residual alone.  Where the
 * tolerance lies below the rounding error of r, and r is no more than that, the
 * pair is "limited by rounding" (eigen_rounding.c); one with a larger residual
 * has "stagnated". */
#include "eigen/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SLICE 8                     /* columns of a solve with M */

sps_status spsi_proof_allocate(sps_proof *q)
{
    sps_owner *own = q->space->pencil->own;
    int width = q->space->width;
    double **const of_pair[] = { &q->lambda, &q->residual, &q->backward,
                                 &q->bound, &q->scratch, NULL };
    double **const of_column[] = { &q->resnorm, &q->xnorm, &q->mnorm,
                                   &q->forming_error, &q->xmx, NULL };
    sps_status st = SPS_OK;

    SPS_TRY(spsi_own_numbers(own, q->count, of_pair));
    SPS_TRY(spsi_own_numbers(own, width, of_column));
    SPS_TRY(SPS_OWN(own, q->count, &q->pair));
    SPS_TRY(SPS_OWN(own, q->count, &q->order));
    SPS_TRY(spsi_own_small(own, q->count, width, &q->E));
fail:
    return st;
}

void spsi_proof_release(sps_proof *q)
{
    sps_context *ctx = q->space->pencil->ctx;

    sps_solver_destroy(&q->mass_solver);
    sps_operator_destroy(&q->mass_op);
    if (q->mass) sps_csr_destroy(ctx, &q->mass);
}

/* Tests M by conjugate gradients on random columns, which meet a direction with
 * x'M x < 0 if M has one: their Krylov space approximates the extreme
 * eigenvectors first.  Without this test the method could return true pairs
 * that are not the smallest ones, since others have negative norms. */
static sps_status check_mass(sps_proof *q)
{
    sps_subspace *s = q->space;
    const sps_pencil *p = s->pencil;
    sps_status st = SPS_OK;
    sps_result result = { .struct_size = sizeof result };
    sps_block B;

    spsi_block_view(s->work, 0, q->Z->k, &B);
    SPS_TRY(sps_block_random(&B, 11));
    /* Scales the columns to the units of the unknowns, as the columns of M
     * are. */
    if (p->root_mass) SPS_TRY(spsi_scale_rows(p->root_mass, &B, &B));
    SPS_TRY(spsi_deflation_project(s->deflation, &B));
    SPS_TRY(sps_solver_linear(q->mass_solver, &B, q->Z, &result));
    SPS_REQUIRE(p->ctx, result.stop != SPS_STOP_INDEFINITE, SPS_EUNFIT,
                "M is not positive definite: x'M x is negative for some x; "
                SPS_PENCIL_SWAP);
    SPS_REQUIRE(p->ctx, result.stop == SPS_STOP_CONVERGED, SPS_EUNFIT,
                "M is singular or nearly so: a solve with it ends at a "
                "residual of %.1e (%s); eliminate massless unknowns, or if "
                "A and M have the same null vectors name those (nullspace)",
                result.worst_residual, sps_stop_string(result.stop));
fail:
    return st;
}

/* Sets *M_p to the M used for error bounds: M itself, or, where squares of its
 * entries would leave the range of doubles, M / mass_scale with a power of
 * two. */
static sps_status scaled_mass(sps_proof *q, const sps_operator **M_p)
{
    const sps_pencil *p = q->space->pencil;
    const sps_csr *M = p->M->A;
    sps_status st = SPS_OK;
    int power;

    *M_p = p->M;
    q->mass_scale = 1;
    if (!M || (p->norm_M > 1e-70 && p->norm_M < 1e70)) return SPS_OK;
    (void)frexp(p->norm_M, &power);
    q->mass_scale = ldexp(1, power);
    SPS_TRY(sps_csr_create(p->ctx, M->nrow, M->ncol, M->nnz, SPS_F64,
                           &q->mass));
    memcpy(q->mass->rowptr, M->rowptr,
           (size_t)(M->nrow + 1) * sizeof *M->rowptr);
    memcpy(q->mass->col, M->col, (size_t)M->nnz * sizeof *M->col);
    for (int64_t i = 0; i < M->nnz; i++)
        ((double *)q->mass->val)[i] = spsi_csr_value(M, i) / q->mass_scale;
    q->mass->props = SPS_SYMMETRIC;
    SPS_TRY(sps_operator_csr(p->ctx, q->mass, q->space->width, NULL,
                             &q->mass_op));
    *M_p = q->mass_op;
fail:
    return st;
}

sps_status spsi_proof_prepare(sps_proof *q, const sps_eigen_policy *policy)
{
    sps_subspace *s = q->space;
    const sps_pencil *p = s->pencil;
    sps_status st = SPS_OK;
    const sps_operator *M;
    int few = q->count < s->width ? q->count : s->width;
    int most = few < SLICE ? few : SLICE;

    if (!spsi_pencil_entries(p))
        spsi_note(p->ctx, "A or M is a callback, or distributed over "
                  "processes: residuals of pairs are computed in doubles, "
                  "by one more product, and a bound of the rounding "
                  "errors is added to each residual");
    if (!p->M) return SPS_OK;
    SPS_TRY(spsi_own_block(p->own, p->n, most, &q->Z));
    SPS_TRY(scaled_mass(q, &M));
    SPS_TRY(policy->solve_mass(M, most, &q->mass_solver));
    SPS_TRY(check_mass(q));
fail:
    return st;
}

/* bound[j] = sqrt(r_j' M^-1 r_j) for the k columns of R. */
static sps_status dual_norms(sps_proof *q, const sps_block *R, double *bound)
{
    sps_subspace *s = q->space;
    sps_status st = SPS_OK;
    sps_result result = { .struct_size = sizeof result };
    int slice = q->Z->k;
    sps_block part, given, right, *B = &right;

    spsi_block_narrow(s->work, s->work->width);
    spsi_block_view(s->work, 0, slice, B);
    for (int first = 0; first < R->k; first += slice) {
        int k = R->k - first < slice ? R->k - first : slice;

        SPS_TRY(spsi_fill(B, 0));
        SPS_TRY(spsi_fill(q->Z, 0));
        spsi_block_view(R, first, k, &given);
        spsi_block_view(B, 0, k, &part);
        SPS_TRY(spsi_copy(&given, &part));
        /* Rounding errors outside the range of M would make the system
         * inconsistent. */
        SPS_TRY(spsi_deflation_remove_shared(s->deflation, &part));
        SPS_TRY(sps_solver_linear(q->mass_solver, B, q->Z, &result));
        SPS_TRY(spsi_dots(B, q->Z, q->scratch));
        for (int j = 0; j < k; j++)
            bound[first + j] = result.column[j] == SPS_STOP_CONVERGED
                                   ? 1.001 * sqrt(fmax(0, q->scratch[j])) /
                                         sqrt(q->mass_scale)
                                   : INFINITY;
    }
fail:
    return st;
}

/* Computes max |X'MX - I| of the columns from `first` on against all of
 * them. */
static sps_status measure_orthogonality(sps_proof *q, const sps_block *X,
                                        int first, const sps_block *MX)
{
    sps_status st = SPS_OK;

    SPS_TRY(spsi_gram(X, MX, q->E));
    for (int j = 0; j < MX->k; j++)
        for (int i = 0; i < X->k; i++) {
            double d = fabs(*spsi_small_at(q->E, i, j) - (i == first + j));

            q->orthogonality = isnan(d) ? INFINITY
                                        : fmax(q->orthogonality, d);
        }
fail:
    return st;
}

/* Returns whether column j of the slice is orthogonal to all columns before it;
 * a copy of one of them would be a true pair, but not another one. */
static bool independent(const sps_proof *q, int first, int j)
{
    for (int i = 0; i <= first + j; i++)
        if (!(fabs(*spsi_small_at(q->E, i, j) - (i == first + j)) <= 1e-6))
            return false;
    return true;
}

/* For pair i, column j of X, whose residual is above its tolerance: sets
 * SPS_STOP_ROUNDING if rounding explains it. */
static sps_status test_rounding(sps_proof *q, const sps_block *X, int j,
                                int i, double limit)
{
    sps_status st = SPS_OK;
    double least, most;

    if (!isfinite(q->resnorm[j])) return SPS_OK;
    SPS_TRY(spsi_pencil_rounding(q->space->pencil, X, j, q->lambda[i], &least,
                                 &most));
    if (limit < least && q->resnorm[j] <= most) q->pair[i] = SPS_STOP_ROUNDING;
fail:
    return st;
}

/* Clears pair i, because its products are not finite: no NaN is returned,
 * neither in values nor in the vector. */
static sps_status clear_pair(sps_proof *q, const sps_block *all, int i)
{
    sps_block x;
    double norm;
    sps_status st = SPS_OK;

    q->lambda[i] = 0;
    q->residual[i] = q->backward[i] = q->bound[i] = INFINITY;
    q->pair[i] = SPS_STOP_NOT_FINITE;
    spsi_block_view(all, i, 1, &x);
    SPS_TRY(spsi_norms(&x, &norm));
    if (!isfinite(norm)) SPS_TRY(spsi_fill(&x, 0));
fail:
    return st;
}

/* Computes the results for pair i = first + j, column j of X.  bound[i] is
 * ||r||, or with M ||r||_{M^-1}, of the residual as formed; it is divided by
 * ||x||_M, and the error of forming r and the rounding error of lambda are
 * added. */
static sps_status assess(sps_proof *q, const sps_block *X, int first, int j)
{
    const sps_pencil *p = q->space->pencil;
    int i = first + j;
    double l = fabs(q->lambda[i]), m = q->mnorm[j], x = q->xnorm[j];
    double formed = q->resnorm[j], r = formed + q->forming_error[j];
    double size = spsi_pencil_reference(p, l, x);
    double limit = spsi_pencil_tolerance(p, q->opt, l, x, m);
    double *bound = &q->bound[i];

    q->residual[i] = r == 0 ? 0 : r / (l * m);
    q->backward[i] = size > 0 ? r / size : r;
    q->pair[i] = SPS_STOP_RUNNING;
    if (!(m > 0 && q->xmx[j] > 0)) {   /* not an eigenvector */
        q->residual[i] = q->backward[i] = *bound = INFINITY;
        return SPS_OK;
    }
    x = sqrt(q->xmx[j]);
    *bound = formed > 0 ? *bound / x * (r / formed) : r / m;
    *bound += DBL_EPSILON * l;
    if (!(r <= limit)) return test_rounding(q, X, j, i, limit);
    if (independent(q, first, j)) q->pair[i] = SPS_STOP_CONVERGED;
    return SPS_OK;
}

/* Verifies columns first .. first + k - 1 of X. */
static sps_status verify_slice(sps_proof *q, const sps_block *all, int first,
                               int k)
{
    sps_subspace *s = q->space;
    const sps_pencil *p = s->pencil;
    sps_status st = SPS_OK;
    double *r = q->resnorm, *lambda = q->lambda + first;
    sps_block X, MX;

    spsi_block_view(all, first, k, &X);
    spsi_block_view(s->MS, 0, k, &MX);
    spsi_block_narrow(s->R, k);
    if (!p->M) MX = X;
    SPS_TRY(spsi_true_residuals(s, &X, &MX, lambda, q->xmx, s->R));
    SPS_TRY(spsi_norms(s->R, r));
    SPS_TRY(spsi_norms(&X, q->xnorm));
    SPS_TRY(spsi_norms(&MX, q->mnorm));
    for (int j = 0; j < k; j++)
        q->forming_error[j] =
            spsi_pencil_entries(p)
                ? 0
                : spsi_pencil_forming_error(p, s->deflation->given, lambda[j],
                                            q->xnorm[j]);
    SPS_TRY(measure_orthogonality(q, all, first, &MX));
    memcpy(q->bound + first, r, (size_t)k * sizeof *r);
    if (p->M) SPS_TRY(dual_norms(q, s->R, q->bound + first));
    for (int j = 0; j < k; j++)
        SPS_TRY(isfinite(lambda[j]) && isfinite(r[j])
                    ? assess(q, &X, first, j)
                    : clear_pair(q, all, first + j));
fail:
    return st;
}

/* Returns why pair i has not converged; `stop` is why the search ended. */
static sps_stop reason(const sps_proof *q, sps_stop stop, int i)
{
    if (q->pair[i] == SPS_STOP_NOT_FINITE) return SPS_STOP_NOT_FINITE;
    if (stop < 0 && stop != SPS_STOP_STAGNATED) return stop;
    return q->pair[i] == SPS_STOP_ROUNDING ? SPS_STOP_ROUNDING
                                           : SPS_STOP_STAGNATED;
}

static void verdict(sps_proof *q, sps_stop stop)
{
    sps_stop worst = SPS_STOP_CONVERGED;

    for (int i = 0; i < q->count; i++) {
        if (q->pair[i] != SPS_STOP_CONVERGED) q->pair[i] = reason(q, stop, i);
        if (q->pair[i] == SPS_STOP_CONVERGED) continue;
        if (worst == SPS_STOP_CONVERGED || worst == SPS_STOP_ROUNDING)
            worst = q->pair[i];
    }
    q->verdict = worst;
}

/* Values whose error bound contains 0, and which no relative tolerance lets
 * converge, are told with what would leave them out. */
static void tell_zeros(const sps_proof *q)
{
    int zeros = 0;

    for (int i = 0; i < q->count; i++)
        zeros += q->pair[i] == SPS_STOP_ROUNDING &&
                 fabs(q->lambda[i]) <= q->bound[i] && isfinite(q->bound[i]);
    if (zeros)
        spsi_note(q->space->pencil->ctx, "%d of the eigenvalues %s 0 but for "
                  "rounding, which a relative tolerance cannot prove: where "
                  "the null space of A is given, they are left out "
                  "(nullspace=components for a Laplacian, nullspace_basis for "
                  "the rigid body modes of a structure)",
                  zeros, zeros > 1 ? "are" : "is");
}

/* Sorts the pairs into the order wanted, q->order; equal ones keep their
 * order. */
static void sort(sps_proof *q)
{
    for (int i = 0; i < q->count; i++) {
        double rank = spsi_selection_rank(q->wanted, q->lambda[i]);
        int p = i;

        for (; p > 0 && spsi_selection_rank(
                            q->wanted, q->lambda[q->order[p - 1]]) > rank; p--)
            q->order[p] = q->order[p - 1];
        q->order[p] = i;
    }
}

static void permute(sps_proof *q, double *v)
{
    for (int i = 0; i < q->count; i++) q->scratch[i] = v[q->order[i]];
    memcpy(v, q->scratch, (size_t)q->count * sizeof *v);
}

sps_status spsi_proof_make(sps_proof *q, sps_stop stop, sps_block *X)
{
    sps_status st = SPS_OK;
    sps_deflation *d = q->space->deflation;
    double *of_pair[] = { q->lambda, q->residual, q->backward, q->bound };
    int width = q->space->width;
    sps_block all;

    q->orthogonality = 0;
    spsi_deflation_pairs(d, 0, q->count, &all, NULL);
    spsi_block_narrow(d->fixed, d->given);
    for (int first = 0; first < q->count; first += width) {
        int left = q->count - first;

        SPS_TRY(verify_slice(q, &all, first, left < width ? left : width));
    }
    sort(q);
    SPS_TRY(spsi_gather(&all, q->order, X));
    for (int i = 0; i < q->count; i++)
        q->scratch[i] = q->pair[q->order[i]];
    for (int i = 0; i < q->count; i++) q->pair[i] = (sps_stop)q->scratch[i];
    for (size_t i = 0; i < sizeof of_pair / sizeof *of_pair; i++)
        permute(q, of_pair[i]);
    verdict(q, stop);
    tell_zeros(q);
fail:
    return st;
}
