/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_ritz.c - Rayleigh-Ritz for all methods: solves the small symmetric
 * eigenproblem, to high relative accuracy if the wanted eigenvalues are small
 * beside others, and orders its pairs. */
#include "eigen/eigen_transform.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "block/small_first.h"
#include "core/timer.h"

sps_status spsi_ritz_allocate(sps_ritz *r, int stack)
{
    sps_owner *own = r->space->pencil->own;
    int w = r->space->width, most = stack * w;
    double **const real[] = { &r->value, &r->theta, &r->resnorm, &r->xnorm,
                              &r->mnorm, NULL };
    sps_small **small[] = { &r->H, &r->U, &r->C };
    sps_status st = SPS_OK;

    SPS_TRY(spsi_own_numbers(own, w, real));
    SPS_TRY(SPS_OWN(own, w, &r->done));
    SPS_TRY(SPS_OWN(own, w, &r->order));
    SPS_TRY(SPS_OWN(own, r->space->longest, &r->scratch));
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        SPS_TRY(spsi_own_small(own, most, most, small[i]));
fail:
    return st;
}

sps_status spsi_ritz_extend(sps_ritz *r)
{
    int most = r->space->longest;
    sps_status st;

    SPS_TRY(spsi_small_enlarge(&r->H, most, most));
    SPS_TRY(spsi_small_enlarge(&r->U, most, most));
    SPS_TRY(spsi_small_enlarge(&r->C, most, most));
fail:
    return st;
}

/* Swaps columns a and b of V and w. */
static void swap(sps_small *V, double *w, int a, int b)
{
    double *x = spsi_small_at(V, 0, a), *y = spsi_small_at(V, 0, b), old = w[a];

    w[a] = w[b];
    w[b] = old;
    for (int i = 0; i < V->rows; i++) {
        old = x[i];
        x[i] = y[i];
        y[i] = old;
    }
}

/* Makes one of the guard columns of X lie on the other side of the shift than
 * the last wanted pair, if there is one.  Otherwise a multiple eigenvalue could
 * occupy all of them, and the next vector of the other side, which has not
 * converged, would never be kept. */
static void guard_other_side(const sps_subspace *s, sps_small *V, double *w)
{
    int last = spsi_subspace_target(s) - 1, j = last + 1;

    while (j < V->cols && w[j] * w[last] >= 0) j++;
    if (j < V->cols && j >= s->m && s->m - 1 > last) swap(V, w, j, s->m - 1);
}

/* Returns |lambda - sigma|, where lambda is the eigenvalue for the Ritz value w
 * of the operator; sigma need not be the shift. */
static double distance(const sps_ritz *r, const sps_transform *t, double w)
{
    return fabs(spsi_transform_back(t, w) - r->wanted->sigma);
}

/* Sorts the columns of V and w by distance() from sigma, nearest first.  w is
 * ascending at first, so that the next one is at one of its two ends.  If
 * inverted, w are values of nu, and the nearer end comes next; otherwise the
 * farther end does, and the order is filled from its end. */
static sps_status by_distance(sps_ritz *r, const sps_transform *t,
                              sps_small *V, double *w)
{
    sps_status st = SPS_OK;
    int s = V->rows, low = 0, high = s - 1;

    spsi_small_shape(r->U, s, s);
    for (int i = 0; i < s; i++) {
        bool nearer = distance(r, t, w[low]) <= distance(r, t, w[high]);
        int from = nearer == t->inverted ? low++ : high--;
        int c = t->inverted ? i : s - 1 - i;

        memcpy(spsi_small_at(r->U, 0, c), spsi_small_at(V, 0, from),
               (size_t)s * sizeof *w);
        r->scratch[c] = w[from];
    }
    memcpy(w, r->scratch, (size_t)s * sizeof *w);
    SPS_TRY(spsi_small_copy(r->U, V));
    if (t->inverted) guard_other_side(r->space, V, w);
fail:
    return st;
}

/* Rotates columns p and q of V by (c, s). */
static void turn(sps_small *V, int p, int q, double c, double s)
{
    double *a = spsi_small_at(V, 0, p), *b = spsi_small_at(V, 0, q);

    for (int i = 0; i < V->rows; i++) {
        double x = a[i], y = b[i];

        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* Makes s_pq zero by a Jacobi rotation J in the plane (p, q): S = J'S J, V = V
 * J. */
static void rotate(sps_small *S, sps_small *V, int p, int q)
{
    double off = *spsi_small_at(S, p, q);
    double half = (*spsi_small_at(S, q, q) - *spsi_small_at(S, p, p)) / 2;
    double t = off / (half + copysign(hypot(half, off), half));
    double c = 1 / sqrt(1 + t * t), s = t * c;

    turn(S, p, q, c, s);
    for (int j = 0; j < S->cols; j++) {
        double *x = spsi_small_at(S, p, j), *y = spsi_small_at(S, q, j);
        double old = *x;

        *x = c * old - s * *y;
        *y = s * old + c * *y;
    }
    turn(V, p, q, c, s);
}

/* Sorts the columns of V and w so that w is ascending; few are out of order. */
static void sort(sps_small *V, double *w)
{
    for (int t = 1; t < V->cols; t++)
        for (int p = t; p > 0 && w[p] < w[p - 1]; p--) swap(V, w, p, p - 1);
}

/* LAPACK's V has an error of eps times the largest |w|.  V'H V is nearly
 * diagonal, and graded where H is; Jacobi rotations have an error of eps
 * relative to each entry, so that small values become accurate (Demmel and
 * Veselic, SIAM J. Matrix Anal. Appl. 13, 1992).  H is overwritten; 6 s^3
 * operations and those of few rotations. */
static sps_status refine(sps_ritz *r, sps_small *H, sps_small *V, double *w)
{
    sps_status st = SPS_OK;
    int n = V->rows, turned = 1;

    SPS_TRY(spsi_small_mul(1.0, H, false, V, false, 0.0, r->C));
    SPS_TRY(spsi_small_mul(1.0, V, true, r->C, false, 0.0, H));
    spsi_small_symmetrise(H);
    for (int sweep = 0; turned && sweep < 4; sweep++) {
        turned = 0;
        for (int q = 1; q < n; q++)
            for (int p = 0; p < q; p++) {
                double a = *spsi_small_at(H, p, p), b = *spsi_small_at(H, q, q);
                double off = fabs(*spsi_small_at(H, p, q));

                if (off <= DBL_EPSILON * sqrt(fabs(a)) * sqrt(fabs(b)))
                    continue;
                rotate(H, V, p, q);
                turned++;
            }
    }
    for (int j = 0; j < n; j++) w[j] = *spsi_small_at(H, j, j);
    sort(V, w);
fail:
    return st;
}

/* Returns whether eps times `most`, the largest |w| or a bound of it, is above
 * a tenth of the tolerance of some pair of X, whose values are the first of the
 * n in w. */
static bool coarse(const sps_ritz *r, double most, const double *w, int n)
{
    double least = INFINITY;

    if (r->wanted->nearest || !isfinite(most)) return false;
    for (int j = 0; j < n && j < r->space->m; j++)
        least = fmin(least, fabs(w[j]));
    return DBL_EPSILON * most > 0.1 * r->opt->rtol * least;
}

/* Returns the largest sum of the moduli of a column, which bounds |w|. */
static double norm_of(const sps_small *H)
{
    double most = 0;

    for (int j = 0; j < H->cols; j++) {
        double sum = 0;

        for (int i = 0; i < H->rows; i++) sum += fabs(*spsi_small_at(H, i, j));
        most = fmax(most, sum);
    }
    return most;
}

/* Computes all pairs. */
static sps_status solve_all(sps_ritz *r, sps_small *H, double *w)
{
    int n = H->rows;
    sps_status st;

    SPS_TRY(spsi_small_eigen(H, w));
    if (coarse(r, fmax(fabs(w[0]), fabs(w[n - 1])), w, n))
        SPS_TRY(refine(r, r->U, H, w));
fail:
    return st;
}

/* Computes the first pairs only, or all where these would not be accurate
 * enough; r->U is a copy of H. */
static sps_status solve_first(sps_ritz *r, sps_small *H, int pairs, double *w)
{
    const double most = norm_of(H);
    sps_status st;
    bool made;

    spsi_small_shape(r->C, H->rows, pairs);
    SPS_TRY(spsi_small_eigen_first(H, w, r->C, &made));
    if (made && !coarse(r, most, w, pairs)) {
        memcpy(H->v, r->C->v,
               (size_t)H->rows * (size_t)pairs * sizeof *H->v);
        return SPS_OK;
    }
    SPS_TRY(spsi_small_copy(r->U, H));
    SPS_TRY(solve_all(r, H, w));
fail:
    return st;
}

sps_status spsi_ritz_solve(sps_ritz *r, const sps_transform *t, sps_small *H,
                           int pairs, double *w, sps_stop *stop)
{
    const bool all = pairs >= H->rows / 2 || r->wanted->nearest;
    int count = H->rows * H->cols;
    sps_status st = SPS_OK;

    if (!spsi_small_finite(H)) {
        *stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    spsi_small_symmetrise(H);
    for (int i = 0; r->wanted->sign < 0 && i < count; i++) H->v[i] = -H->v[i];
    SPS_TRY(spsi_small_copy(H, r->U));
    spsi_phase_begin(r->space->pencil->ctx, SPS_PHASE_SMALL);
    st = all ? solve_all(r, H, w) : solve_first(r, H, pairs, w);
    spsi_phase_end(r->space->pencil->ctx, SPS_PHASE_SMALL);
    for (int j = 0; j < (all ? H->rows : pairs); j++)
        if (!isfinite(w[j])) *stop = SPS_STOP_NOT_FINITE;
    if (st == SPS_OK && !*stop && r->wanted->nearest)
        st = by_distance(r, t, H, w);
fail:
    return st;
}

