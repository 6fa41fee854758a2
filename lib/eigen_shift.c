/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_shift.c - the spectrum near sigma brought to the outside (Ericsson and
 * Ruhe, Math. Comp. 35, 1980): with (A - sigma M)^-1 M x = nu x the pairs with
 * the largest |nu| are those nearest to sigma, lambda = sigma + 1 / nu.  The
 * operator is symmetric in the inner product of M, so the method stays as it
 * is; it must only be handed this operator and be asked for both ends.
 *
 * A - sigma M is a matrix of its own, and one product is a block solve by the
 * library's linear methods, to a backward error that a direct solver would
 * have.  Pairs are judged by A and M as ever.  nu is in units of ||M|| / ||A||:
 * lambda = sigma + unit / nu, unit a power of four, so that 1e250 is no other
 * number than 1.
 *
 * Null vectors that A and M share are left out of right-hand sides and
 * solutions, and the matrix is grounded (eigen_fix.c): D is zero in those rows,
 * which with a diagonal of one there says x = 0. */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "order.h"

#define BACKWARD 1e-13   /* of the inner solves */
#define ENTRIES 8e7      /* of L and of U, at most */
#define PLANE 3e8        /* the same if all rows were as long as the longest */
#define TINY 1e-8        /* of ||A|| / ||M||: so far from the zeros of null
                            vectors */

static bool next_of(const sps_csr *A, int64_t i, int64_t p)
{
    return p < A->rowptr[i + 1];
}

/* Row i of sign A - sigma M, both sorted; M NULL: the identity.  Returns the
 * count; col NULL: only that. */
static int64_t merge(const sps_eigen *e, double sigma, int64_t i, int32_t *col,
                     double *val)
{
    const sps_csr *A = e->A->A, *M = e->M ? e->M->A : NULL;
    int64_t a = A->rowptr[i], m = M ? M->rowptr[i] : 0, count = 0;
    bool unit = !M;

    for (;; count++) {
        bool in_a = next_of(A, i, a), in_m = M ? next_of(M, i, m) : unit;
        int64_t ca = in_a ? A->col[a] : INT64_MAX;
        int64_t cm = !in_m ? INT64_MAX : M ? M->col[m] : i;
        double v = 0;

        if (!in_a && !in_m) return count;
        if (ca <= cm) v += e->sign * spsi_csr_value(A, a++);
        if (cm <= ca) {
            v -= sigma * (M ? spsi_csr_value(M, m++) : 1);
            unit = false;
        }
        if (!col) continue;
        col[count] = (int32_t)(ca < cm ? ca : cm);
        val[count] = v;
    }
}

sps_status spsi_eigen_subtract(const sps_eigen *e, double sigma,
                               sps_csr **C_p)
{
    const int threads = e->ctx->threads;
    sps_status st;
    int64_t nnz = 0, *rowptr;
    sps_csr *C;

    SPS_TRY(spsi_operator_fetch(e->A));
    if (e->M) SPS_TRY(spsi_operator_fetch(e->M));
#pragma omp parallel for num_threads(threads) reduction(+ : nnz)
    for (int64_t i = 0; i < e->n; i++) nnz += merge(e, sigma, i, NULL, NULL);
    SPS_TRY(sps_csr_create(e->ctx, e->n, e->n, nnz, SPS_F64, C_p));
    C = *C_p;
    rowptr = C->rowptr;
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < e->n; i++)
        rowptr[i + 1] = merge(e, sigma, i, NULL, NULL);
    for (int64_t i = 0; i < e->n; i++) rowptr[i + 1] += rowptr[i];
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < e->n; i++)
        merge(e, sigma, i, C->col + rowptr[i], (double *)C->val + rowptr[i]);
    C->props = SPS_SYMMETRIC;
fail:
    return st;
}

/* a_ii and the sum of the other magnitudes of row i. */
static double row_of(const sps_csr *A, int64_t i, double *others)
{
    double d = 0;

    *others = 0;
    for (int64_t p = A->rowptr[i]; next_of(A, i, p); p++)
        if (A->col[p] == i) d = spsi_csr_value(A, p);
        else *others += fabs(spsi_csr_value(A, p));
    return d;
}

void spsi_eigen_outside(sps_eigen *e)
{
    double low = INFINITY, high = -INFINITY, r;

    if (e->M || !e->A->A) return;
    for (int64_t i = 0; i < e->n; i++) {
        double d = row_of(e->A->A, i, &r);

        if (!isfinite(d + r)) return;
        low = fmin(low, d - r);
        high = fmax(high, d + r);
    }
    if (e->opt.sigma > low && e->opt.sigma < high) return;
    e->nearest = false;
    e->sign = e->opt.sigma > low ? -1 : 1;
    spsi_note(e->ctx, "no eigenvalue lies %s sigma: the nearest are the %s",
              e->sign < 0 ? "above" : "below",
              e->sign < 0 ? "largest" : "smallest");
}

bool spsi_eigen_uniform(const sps_csr *A)
{
    double low = INFINITY, high = 0, r;

    for (int64_t i = 0; i < A->nrow; i++) {
        double d = fabs(row_of(A, i, &r));

        low = fmin(low, d);
        high = fmax(high, d);
    }
    return high <= 100 * low;
}

static sps_status make_solver(sps_eigen *e, const sps_options *o)
{
    return sps_solver_create(e->shifted, NULL, e->width, o, &e->shift_solver);
}

/* The linear solver: with a preconditioner that is as good as a factorisation
 * where that can be had, else what auto makes of it if it may. */
static sps_status choose_solver(sps_eigen *e, bool any)
{
    bool factors = e->n <= SPS_EIGEN_FACTORS || spsi_eigen_fills_little(e);
    sps_status st = SPS_EUNFIT;
    sps_options o;

    sps_options_default(&o);
    o.norm = SPS_NORM_BACKWARD;
    o.rtol = BACKWARD;
    o.nullspace = "none";
    o.max_iterations = 1000;
    o.max_seconds = e->opt.max_seconds;
    o.solver = "gmres";
    o.restart = 10;
    o.precond = "dense";
    if (e->n <= SPS_EIGEN_DENSE) st = make_solver(e, &o);
    o.precond = "ilut";
    o.droptol = 1e-12;
    o.fill = fmin(1e6, fmax(10, (spsi_eigen_fills_little(e) ? PLANE : ENTRIES) /
                                    (double)(e->shift->nnz + 1)));
    if (st != SPS_OK && factors)
        st = make_solver(e, &o);
    o.solver = o.precond = "auto";
    if (st != SPS_OK && (any || !factors))
        st = make_solver(e, &o);
    return st;
}

/* e->shift = D (A - sigma M) D, D of powers of two, whose rows have largest
 * entries near 1; ones on the diagonal of grounded rows.  e->shift_D is
 * unit^(1/2) D. */
static sps_status equilibrate(sps_eigen *e)
{
    sps_csr *C = e->shift;
    double *d = NULL, *same = NULL, *val = C->val;
    double root = sqrt(e->shift_unit);
    sps_status st = SPS_OK;

    SPS_TRY(SPS_NEW(e->ctx, e->n, &d));
    SPS_TRY(SPS_NEW(e->ctx, e->n, &same));
    SPS_TRY(spsi_equilibrate(e->ctx, C, d, same));
    for (int t = 0; e->ground && t < e->null_columns; t++) d[e->ground[t]] = 0;
    for (int64_t i = 0; i < e->n; i++)
        for (int64_t p = C->rowptr[i]; next_of(C, i, p); p++)
            val[p] = d[i] == 0 && C->col[p] == i ? 1
                                                 : val[p] * d[i] * d[C->col[p]];
    for (int64_t i = 0; i < e->n; i++) d[i] *= root;
    SPS_TRY(sps_block_create(e->ctx, e->n, 1, &e->shift_D));
    SPS_TRY(sps_block_set(e->shift_D, 0, 1, d, 1, SPS_ROW_MAJOR, SPS_HOST));
fail:
    spsi_free(e->ctx, d);
    spsi_free(e->ctx, same);
    return st;
}

/* ||A|| / ||M||, the unit of eigenvalues, as a power of four. */
static double power_of_four(double size)
{
    int power = 0;

    if (size > 0 && isfinite(size)) (void)frexp(size, &power);
    return ldexp(1, power - power % 2);
}

/* From e->pole on: where it is an eigenvalue there are no factors, and a place
 * beside it is taken, a little further each time.  Zero is one where null
 * vectors are known: A less a negative multiple of M is definite if A is
 * semidefinite, and what solves make of the null vectors is projected away.
 * Pairs are still ordered by their distance from sigma. */
static sps_status find_pole(sps_eigen *e)
{
    double size = spsi_eigen_unit(e), step = 1e-9 * spsi_eigen_pole_scale(e);
    double sigma = e->pole;
    bool zero = e->nulls && !e->blind && !e->pole_moves &&
                fabs(sigma) < TINY * size;
    sps_status st = SPS_OK;

    e->shift_unit = power_of_four(size);
    if (zero) sigma = -TINY * size;
    for (int attempt = 0; attempt < 4; attempt++) {
        SPS_TRY(spsi_eigen_subtract(e, sigma, &e->shift));
        SPS_TRY(equilibrate(e));
        SPS_TRY(sps_operator_csr(e->ctx, e->shift, e->width, NULL,
                                 &e->shifted));
        st = choose_solver(e, attempt == 3);
        if (st == SPS_OK || attempt == 3) break;
        spsi_eigen_unshift(e);
        sigma += step;
        step = fmax(100 * step, 1e-12 * size);
    }
    e->pole = sigma;
    if (st == SPS_OK && sigma != e->opt.sigma)
        spsi_note(e->ctx, "%s: sigma %+.3g was taken in its place",
                  zero ? "sigma is zero or nearly so, the eigenvalue of null "
                         "vectors"
                  : e->pole_moves ? "sigma is an eigenvalue or all but one"
                  : "A - sigma M could not be factored, sigma may be an "
                    "eigenvalue", sigma - e->opt.sigma);
fail:
    return st;
}

/* shift_X = (A - sigma M)^-1 shift_B, k columns; those beside are zero, and
 * cost nothing. */
static sps_status inner_solve(sps_eigen *e)
{
    sps_result result = { .struct_size = sizeof result };
    double phase[SPS_PHASES];
    sps_status st = SPS_OK;

    SPS_TRY(spsi_fill(e->shift_X, 0));
    SPS_TRY(spsi_eigen_leave_nulls(e, e->shift_B));
    memcpy(phase, e->ctx->phase_seconds, sizeof phase);
    SPS_TRY(spsi_scale_rows(e->shift_D, e->shift_B, e->shift_B));
    SPS_TRY(sps_solver_linear(e->shift_solver, e->shift_B, e->shift_X,
                              &result));
    SPS_TRY(spsi_scale_rows(e->shift_D, e->shift_X, e->shift_X));
    SPS_TRY(spsi_eigen_leave_nulls(e, e->shift_X));
    for (int i = 0; i < SPS_PHASES; i++)
        e->ctx->phase_seconds[i] += phase[i];
    e->applies_T += result.iterations;
    if (result.stop < 0 && !(result.worst_backward <= 1e-10))
        e->shift_failures++;
    else
        e->shift_failures = 0;
    if (e->shift_failures == 1) e->event = "an inner solve did not converge";
    if (e->shift_failures > 1) e->stop = SPS_STOP_STAGNATED;
    if (result.stop == SPS_STOP_INTERRUPTED) e->stop = SPS_STOP_INTERRUPTED;
fail:
    return st;
}

/* Columns of fixed that have a border: shared null vectors are left out of
 * every solution already. */
static int bordered(const sps_eigen *e, sps_block *dual)
{
    int first = e->blind ? e->null_columns : 0;

    spsi_block_view(e->dual, first, e->given - first, dual);
    return e->given - first;
}

/* What constraints Y take: border Z = (A - sigma M)^-1 M Y, (Y'M Z)^-1. */
static sps_status make_border(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_block dual, part, D, Z;
    int info = 0, all = bordered(e, &dual);

    if (!e->opt.constraints || all == 0) return SPS_OK;
    SPS_TRY(sps_block_create(e->ctx, e->n, all, &e->border));
    SPS_TRY(spsi_small_create(e->ctx, all, all, &e->border_inverse));
    for (int first = 0; first < all; first += e->width) {
        int k = all - first < e->width ? all - first : e->width;

        SPS_TRY(spsi_fill(e->shift_B, 0));
        spsi_block_view(&dual, first, k, &D);
        spsi_block_view(e->shift_B, 0, k, &part);
        SPS_TRY(spsi_copy(&D, &part));
        SPS_TRY(inner_solve(e));
        spsi_block_view(e->shift_X, 0, k, &part);
        spsi_block_view(e->border, first, k, &Z);
        SPS_TRY(spsi_copy(&part, &Z));
    }
    SPS_TRY(spsi_gram(&dual, e->border, e->border_inverse));
    SPS_TRY(spsi_small_invert(e->border_inverse, &info));
    SPS_REQUIRE(e->ctx, info == 0 && !e->stop, SPS_EUNFIT,
                "beside the constraints, sigma is an eigenvalue: move it");
fail:
    return st;
}

sps_status spsi_eigen_shift(sps_eigen *e)
{
    sps_status st = SPS_OK;

    SPS_REQUIRE(e->ctx, e->A->A && (!e->M || e->M->A), SPS_EUNFIT,
                "which=nearest needs the entries of A and M, and one of them "
                "is a callback");
    SPS_TRY(find_pole(e));
    SPS_TRY(sps_block_create(e->ctx, e->n, e->width, &e->shift_B));
    SPS_TRY(sps_block_create(e->ctx, e->n, e->width, &e->shift_X));
    SPS_TRY(make_border(e));
fail:
    return st;
}

void spsi_eigen_unshift(sps_eigen *e)
{
    sps_solver_destroy(&e->shift_solver);
    sps_operator_destroy(&e->shifted);
    sps_block_destroy(&e->shift_B);
    sps_block_destroy(&e->shift_X);
    sps_block_destroy(&e->shift_D);
    sps_block_destroy(&e->border);
    spsi_small_destroy(&e->border_inverse);
    if (e->shift) sps_csr_destroy(e->ctx, &e->shift);
}

/* Y -= Z (Y0'M Z)^-1 Y0'M Y, constraints Y0 and their border Z: the inverse of
 * A - sigma M on the complement is not the inverse kept to it. */
static sps_status without_border(sps_eigen *e, sps_block *Y)
{
    sps_status st = SPS_OK;
    sps_block D;

    if (!e->border) return SPS_OK;
    (void)bordered(e, &D);
    SPS_TRY(spsi_gram(&D, Y, e->F));
    SPS_TRY(spsi_small_mul(1.0, e->border_inverse, false, e->F, false, 0.0,
                           e->C));
    SPS_TRY(spsi_mul_small(-1.0, e->border, e->C, 1.0, Y));
fail:
    return st;
}

sps_status spsi_eigen_invert(sps_eigen *e, const sps_block *X, sps_block *Y)
{
    sps_status st = SPS_OK;
    sps_block part;

    SPS_TRY(spsi_fill(e->shift_B, 0));
    spsi_block_view(e->shift_B, 0, X->k, &part);
    SPS_TRY(spsi_eigen_mass(e, X, &part));
    SPS_TRY(inner_solve(e));
    spsi_block_view(e->shift_X, 0, X->k, &part);
    SPS_TRY(spsi_copy(&part, Y));
    SPS_TRY(without_border(e, Y));
fail:
    return st;
}

/* R = (A - sigma M)^-1 M X - X diag(nu), and theta and the residuals of the
 * pencil for Y = (A - sigma M)^-1 M X diag(1 / nu), which X becomes when it is
 * started again: (A - sigma M) y = M x / nu and x = y - r / nu, so that
 *
 *     A y - theta M y = -M r / nu^2,   theta = sigma + 1 / nu
 *
 * (both times the unit of nu).
 *
 * X itself carries parts along vectors of huge lambda, which nu, about zero,
 * does not show and A makes large of; Y has none (Nour-Omid, Parlett, Ericsson
 * and Jensen, Math. Comp. 48, 1987). */
sps_status spsi_eigen_shift_residuals(sps_eigen *e)
{
    sps_status st = SPS_OK;
    sps_block *MR = e->M ? e->room : e->R;
    double *minus = e->scratch, *one = e->scratch + e->m;

    for (int j = 0; j < e->m; j++) {
        minus[j] = -e->ritz[j];
        one[j] = 1;
    }
    spsi_block_narrow(e->R, e->m);
    spsi_block_narrow(e->room, e->m);
    SPS_TRY(spsi_copy(&e->AX, e->R));
    SPS_TRY(spsi_axpby_cols(minus, &e->X, one, e->R));
    if (e->M) SPS_TRY(spsi_eigen_mass(e, e->R, MR));
    SPS_TRY(spsi_dots(e->R, MR, e->spread));
    SPS_TRY(spsi_norms(MR, e->resnorm));
    for (int j = 0; j < e->m; j++) {
        double nu = e->ritz[j];
        bool far = fabs(nu) < 1e-150;

        e->theta[j] = e->pole + (far ? 0 : e->shift_unit / nu);
        e->resnorm[j] = far ? DBL_MAX
                            : e->resnorm[j] / nu * (e->shift_unit / nu);
    }
fail:
    return st;
}

/* The same of X itself, by A and M alone. */
sps_status spsi_eigen_shift_test(sps_eigen *e)
{
    sps_status st = SPS_OK;
    double *minus = e->scratch, *one = e->scratch + e->m;

    spsi_block_narrow(e->room, e->m);
    SPS_TRY(sps_operator_apply(e->A, 1.0, &e->X, 0.0, e->room));
    SPS_TRY(spsi_dots(&e->X, e->room, e->theta));
    for (int j = 0; j < e->m; j++) {
        minus[j] = -e->theta[j];
        one[j] = 1;
    }
    SPS_TRY(spsi_axpby_cols(minus, &e->MX, one, e->room));
    SPS_TRY(spsi_eigen_constrain(e, e->room));
    SPS_TRY(spsi_norms(e->room, e->resnorm));
fail:
    return st;
}
