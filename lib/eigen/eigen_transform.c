/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_transform.c - shift and invert (Ericsson and Ruhe, Math. Comp. 35,
 * 1980): with (A - sigma M)^-1 M x = nu x the pairs with the largest |nu| are
 * those nearest to sigma, lambda = sigma + 1 / nu.  The operator is symmetric
 * in the inner product of M, so that the method stays as it is; it takes this
 * operator, and pairs at both ends of its spectrum are wanted.
 *
 * A - sigma M is formed as a matrix, and one product is a block solve by the
 * library's linear methods, to the backward error of a direct solver.
 * Residuals of pairs are those of A and M as always.  nu is in units of ||M|| /
 * ||A||: lambda = sigma + unit / nu, unit a power of four, so that the units
 * of A and M change no bit of the iteration.
 *
 * Null vectors that A and M share are projected out of right-hand sides and
 * solutions, and the matrix is made regular by fixing rows
 * (eigen_deflation.c): D is zero there and the diagonal one, so that x is zero
 * in these rows. */
#include "eigen/eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "matrix/order.h"

#define TINY 1e-8        /* distance of the shift from the eigenvalue 0 of null
                            vectors, relative to ||A|| / ||M|| */

/* C = D C D, D = diag(d); where d is 0 (fixing rows), row and column become
 * those of the identity. */
static void scale_entries(sps_csr *C, const double *d)
{
    double *val = C->val;

    for (int64_t i = 0; i < C->nrow; i++)
        for (int64_t p = C->rowptr[i]; p < C->rowptr[i + 1]; p++)
            val[p] = d[i] == 0 && C->col[p] == i ? 1
                                                 : val[p] * d[i] * d[C->col[p]];
}

/* Computes t->matrix = D (A - sigma M) D, where D has powers of two that bring
 * the largest entry of each row near 1, and zero in fixing rows.  t->D is
 * unit^(1/2) D. */
static sps_status equilibrate(sps_transform *t)
{
    const sps_pencil *p = t->space->pencil;
    const sps_deflation *of = t->space->deflation;
    double *d = NULL, *same = NULL;
    double root = sqrt(t->unit);
    sps_status st = SPS_OK;

    SPS_TRY(SPS_NEW(p->ctx, p->n, &d));
    SPS_TRY(SPS_NEW(p->ctx, p->n, &same));
    SPS_TRY(spsi_equilibrate(p->ctx, t->matrix, d, same));
    for (int q = 0; of->fixing_rows && q < of->columns; q++)
        d[of->fixing_rows[q]] = 0;
    scale_entries(t->matrix, d);
    for (int64_t i = 0; i < p->n; i++) d[i] *= root;
    SPS_TRY(sps_block_create(p->ctx, p->n, 1, &t->D));
    SPS_TRY(sps_block_set(t->D, 0, 1, d, 1, SPS_ROW_MAJOR, SPS_HOST));
fail:
    spsi_free(p->ctx, d);
    spsi_free(p->ctx, same);
    return st;
}

/* Returns a power of four near `size`. */
static double power_of_four(double size)
{
    int power = 0;

    if (size > 0 && isfinite(size)) (void)frexp(size, &power);
    return ldexp(1, power - power % 2);
}

/* Finds the shift at which A - sigma M is factored, beginning with t->shift.
 * If that is an eigenvalue the factorisation fails, and shifts next to it are
 * tried, farther away each time.  If null vectors are known, zero is an
 * eigenvalue, and a negative shift replaces it: with a semidefinite A the
 * matrix is then definite, and components of solutions along the null vectors
 * are projected out.  Pairs are still ordered by their distance from sigma. */
static sps_status find_shift(sps_transform *t)
{
    const sps_pencil *p = t->space->pencil;
    const sps_deflation *d = t->space->deflation;
    double size = spsi_pencil_unit(p), step = 1e-9 * spsi_transform_scale(t);
    double sigma = t->shift;
    bool zero = d->nulls && !d->shared && !t->moves &&
                fabs(sigma) < TINY * size;
    sps_status st = SPS_OK;

    t->unit = power_of_four(size);
    if (zero) sigma = -TINY * size;
    for (int attempt = 0; attempt < 4; attempt++) {
        SPS_TRY(spsi_pencil_combine(p, t->wanted->sign, sigma, &t->matrix));
        SPS_TRY(equilibrate(t));
        SPS_TRY(sps_operator_csr(p->ctx, t->matrix, t->space->width, NULL,
                                 &t->shifted));
        st = t->policy->invert(t, attempt == 3);
        if (st == SPS_OK || attempt == 3) break;
        spsi_transform_close(t);
        sigma += step;
        step = fmax(100 * step, 1e-12 * size);
    }
    t->shift = sigma;
    if (st == SPS_OK && sigma != t->wanted->sigma)
        spsi_note(p->ctx, "%s: it was changed by %+.3g",
                  zero ? "sigma is (nearly) 0, the eigenvalue of null vectors"
                  : t->moves ? "sigma is (nearly) an eigenvalue"
                  : "A - sigma M could not be factored, so sigma may be an "
                    "eigenvalue", sigma - t->wanted->sigma);
fail:
    return st;
}

/* t->X = (A - sigma M)^-1 t->B; zero columns of B cost nothing. */
static sps_status inner_solve(sps_transform *t, sps_search *search)
{
    const sps_deflation *d = t->space->deflation;
    sps_context *ctx = t->space->pencil->ctx;
    sps_result result = { .struct_size = sizeof result };
    double phase[SPS_PHASES];
    sps_status st = SPS_OK;

    SPS_TRY(spsi_fill(t->X, 0));
    SPS_TRY(spsi_deflation_remove_shared(d, t->B));
    memcpy(phase, ctx->phase_seconds, sizeof phase);
    SPS_TRY(spsi_scale_rows(t->D, t->B, t->B));
    SPS_TRY(sps_solver_linear(t->solver, t->B, t->X, &result));
    SPS_TRY(spsi_scale_rows(t->D, t->X, t->X));
    SPS_TRY(spsi_deflation_remove_shared(d, t->X));
    for (int i = 0; i < SPS_PHASES; i++) ctx->phase_seconds[i] += phase[i];
    t->inner_iterations += result.iterations;
    if (result.stop < 0 && !(result.worst_backward <= 1e-10))
        t->failures++;
    else t->failures = 0;
    if (t->failures == 1) search->event = "an inner solve did not converge";
    if (t->failures > 1) search->stop = SPS_STOP_STAGNATED;
    if (result.stop == SPS_STOP_INTERRUPTED)
        search->stop = SPS_STOP_INTERRUPTED;
fail:
    return st;
}

/* For constraints Y: computes border = Z = (A - sigma M)^-1 M Y and
 * border_inverse = (Y'M Z)^-1, which without_border() uses. */
static sps_status make_border(sps_transform *t, sps_search *search)
{
    const sps_pencil *p = t->space->pencil;
    const sps_deflation *d = t->space->deflation;
    sps_status st = SPS_OK;
    sps_block dual, part, D, Z;
    int info = 0, all = spsi_deflation_dual(d, &dual);

    if (!d->constraints || all == 0) return SPS_OK;
    SPS_TRY(sps_block_create(p->ctx, p->n, all, &t->border));
    SPS_TRY(spsi_small_create(p->ctx, all, all, &t->border_inverse));
    SPS_TRY(spsi_small_create(p->ctx, all, t->space->width, &t->border_part));
    for (int first = 0; first < all; first += t->space->width) {
        int k = all - first < t->space->width ? all - first : t->space->width;

        SPS_TRY(spsi_fill(t->B, 0));
        spsi_block_view(&dual, first, k, &D);
        spsi_block_view(t->B, 0, k, &part);
        SPS_TRY(spsi_copy(&D, &part));
        SPS_TRY(inner_solve(t, search));
        spsi_block_view(t->X, 0, k, &part);
        spsi_block_view(t->border, first, k, &Z);
        SPS_TRY(spsi_copy(&part, &Z));
    }
    SPS_TRY(spsi_gram(&dual, t->border, t->border_inverse));
    SPS_TRY(spsi_small_invert(t->border_inverse, &info));
    SPS_REQUIRE(p->ctx, info == 0 && !search->stop, SPS_EUNFIT,
                "sigma is an eigenvalue on the complement of the constraints: "
                "choose another one");
fail:
    return st;
}

sps_status spsi_transform_open(sps_transform *t, sps_search *search)
{
    const sps_pencil *p = t->space->pencil;
    sps_status st = SPS_OK;

    SPS_REQUIRE(p->ctx, spsi_pencil_entries(p), SPS_EUNFIT,
                "which=nearest needs the entries of A and M, and one of them "
                "is a callback");
    SPS_TRY(find_shift(t));
    SPS_TRY(sps_block_create(p->ctx, p->n, t->space->width, &t->B));
    SPS_TRY(sps_block_create(p->ctx, p->n, t->space->width, &t->X));
    SPS_TRY(make_border(t, search));
fail:
    return st;
}

void spsi_transform_close(sps_transform *t)
{
    sps_solver_destroy(&t->solver);
    sps_precond_destroy(&t->factors);
    sps_operator_destroy(&t->shifted);
    sps_block_destroy(&t->B);
    sps_block_destroy(&t->X);
    sps_block_destroy(&t->D);
    sps_block_destroy(&t->border);
    spsi_small_destroy(&t->border_inverse);
    spsi_small_destroy(&t->border_part);
    if (t->matrix) sps_csr_destroy(t->space->pencil->ctx, &t->matrix);
}

/* Y -= Z (Y0'M Z)^-1 Y0'M Y for constraints Y0 and their border Z: the inverse
 * of A - sigma M restricted to the complement of Y0, which differs from the
 * restriction of the inverse. */
static sps_status without_border(sps_transform *t, sps_block *Y)
{
    const sps_deflation *d = t->space->deflation;
    sps_status st = SPS_OK;
    sps_block D;

    if (!t->border) return SPS_OK;
    spsi_deflation_dual(d, &D);
    SPS_TRY(spsi_gram(&D, Y, d->F));
    SPS_TRY(spsi_small_mul(1.0, t->border_inverse, false, d->F, false, 0.0,
                           t->border_part));
    SPS_TRY(spsi_mul_small(-1.0, t->border, t->border_part, 1.0, Y));
fail:
    return st;
}

static sps_status invert(sps_transform *t, const sps_block *X, sps_block *Y,
                         sps_search *search)
{
    sps_status st = SPS_OK;
    sps_block part;

    SPS_TRY(spsi_fill(t->B, 0));
    spsi_block_view(t->B, 0, X->k, &part);
    SPS_TRY(spsi_pencil_mass(t->space->pencil, X, &part));
    SPS_TRY(inner_solve(t, search));
    spsi_block_view(t->X, 0, X->k, &part);
    SPS_TRY(spsi_copy(&part, Y));
    SPS_TRY(without_border(t, Y));
fail:
    return st;
}

sps_status spsi_transform_apply(sps_transform *t, const sps_block *X,
                                sps_block *Y, sps_search *search)
{
    if (t->inverted) return invert(t, X, Y, search);
    return spsi_pencil_apply(t->space->pencil, X, Y);
}

double spsi_transform_back(const sps_transform *t, double value)
{
    return t->inverted ? t->shift + t->unit / value : value;
}

/* R = (A - sigma M)^-1 M X - X diag(nu), and theta and the residuals of the
 * pencil for Y = (A - sigma M)^-1 M X diag(1 / nu), which X becomes when it is
 * started again: (A - sigma M) y = M x / nu and x = y - r / nu, so that
 *
 *     A y - theta M y = -M r / nu^2,   theta = sigma + 1 / nu
 *
 * (both times the unit of nu).
 *
 * X itself has components along eigenvectors of huge lambda; their nu is about
 * zero, so that Ritz values do not show them, while A amplifies them.  Y has
 * none (Nour-Omid, Parlett, Ericsson and Jensen, Math. Comp. 48, 1987). */
sps_status spsi_transform_residuals(sps_transform *t, sps_ritz *r)
{
    sps_status st = SPS_OK;
    sps_subspace *s = r->space;
    sps_block *MR = s->pencil->M ? s->work : s->R;
    double *minus = s->scratch, *one = s->scratch + s->m;

    for (int j = 0; j < s->m; j++) {
        minus[j] = -r->value[j];
        one[j] = 1;
    }
    spsi_block_narrow(s->R, s->m);
    spsi_block_narrow(s->work, s->m);
    SPS_TRY(spsi_copy(&s->AX, s->R));
    SPS_TRY(spsi_axpby_cols(minus, &s->X, one, s->R));
    if (s->pencil->M) SPS_TRY(spsi_pencil_mass(s->pencil, s->R, MR));
    SPS_TRY(spsi_dots(s->R, MR, t->spread));
    SPS_TRY(spsi_norms(MR, r->resnorm));
    for (int j = 0; j < s->m; j++) {
        double nu = r->value[j];
        bool far = fabs(nu) < 1e-150;

        r->theta[j] = t->shift + (far ? 0 : t->unit / nu);
        r->resnorm[j] = far ? DBL_MAX : r->resnorm[j] / nu * (t->unit / nu);
    }
fail:
    return st;
}

double spsi_transform_scale(const sps_transform *t)
{
    return t->wanted->sigma != 0 ? fabs(t->wanted->sigma)
                                 : 1e-3 * spsi_pencil_unit(t->space->pencil);
}
