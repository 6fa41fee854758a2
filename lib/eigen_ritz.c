/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_ritz.c - Rayleigh-Ritz, as all methods share it: the small symmetric
 * eigenproblem, the rotation of the stacks by its vectors, the begin from any
 * block, and a first look at the ends of the spectrum. */
#include "eigen.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "timer.h"

/* How far the eigenvalue of a Ritz value of the method's operator lies from
 * sigma, which need not be the pole. */
static double away(const sps_eigen *e, double w)
{
    double theta = e->inverted ? e->pole + e->shift_unit / w : w;

    return fabs(theta - e->opt.sigma);
}

/* Columns a and b of V and w change places. */
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

/* Among the guards of X one is to lie on the other side of the pole than the
 * last pair wanted, if there is one: a multiple eigenvalue fills all of them, and
 * what comes next on the other side, still on its way, would never be kept. */
static void guard_other_side(const sps_eigen *e, sps_small *V, double *w)
{
    int last = spsi_eigen_target(e) - 1, j = last + 1;

    while (j < V->cols && w[j] * w[last] >= 0) j++;
    if (j < V->cols && j >= e->m && e->m - 1 > last) swap(V, w, j, e->m - 1);
}

/* Columns of V and w by their distance from sigma, nearest first: w are Ritz
 * values of A then, or if inverted nu, the largest |nu| first.  Both ends of w
 * are looked at from outside. */
static sps_status by_distance(sps_eigen *e, sps_small *V, double *w)
{
    sps_status st = SPS_OK;
    int s = V->rows, low = 0, high = s - 1;

    spsi_small_shape(e->U, s, s);
    for (int t = 0; t < s; t++) {
        bool nearer = away(e, w[low]) <= away(e, w[high]);
        int from = nearer == e->inverted ? low++ : high--;
        int c = e->inverted ? t : s - 1 - t;

        memcpy(spsi_small_at(e->U, 0, c), spsi_small_at(V, 0, from),
               (size_t)s * sizeof *w);
        e->scratch[c] = w[from];
    }
    memcpy(w, e->scratch, (size_t)s * sizeof *w);
    SPS_TRY(spsi_small_copy(e->U, V));
    if (e->inverted) guard_other_side(e, V, w);
fail:
    return st;
}

/* Columns p and q of V turned by (c, s). */
static void turn(sps_small *V, int p, int q, double c, double s)
{
    double *a = spsi_small_at(V, 0, p), *b = spsi_small_at(V, 0, q);

    for (int i = 0; i < V->rows; i++) {
        double x = a[i], y = b[i];

        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* The rotation of p and q that makes s_pq zero, of S and of V's columns. */
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

/* Columns of V and w, w ascending: few are out of place. */
static void sort(sps_small *V, double *w)
{
    for (int t = 1; t < V->cols; t++)
        for (int p = t; p > 0 && w[p] < w[p - 1]; p--) swap(V, w, p, p - 1);
}

/* LAPACK's V is wrong by eps of the largest |w|.  S = V'H V is all but diagonal,
 * and graded where H is: Jacobi's rotations have an error of eps in each entry,
 * so small values get their digits (Demmel and Veselic, SIAM J. Matrix Anal.
 * Appl. 13, 1992).  H goes; 6 s^3 operations and those of few rotations. */
static sps_status refine(sps_eigen *e, sps_small *H, sps_small *V, double *w)
{
    sps_status st = SPS_OK;
    int n = V->rows, turned = 1;

    SPS_TRY(spsi_small_mul(1.0, H, false, V, false, 0.0, e->C));
    SPS_TRY(spsi_small_mul(1.0, V, true, e->C, false, 0.0, H));
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

/* Whether eps of the largest |w| is above a tenth of what a wanted pair of X may
 * have left. */
static bool coarse(const sps_eigen *e, const double *w, int n)
{
    double most = fmax(fabs(w[0]), fabs(w[n - 1])), least = INFINITY;

    if (e->nearest || !isfinite(most)) return false;
    for (int j = 0; j < n && j < e->m; j++) least = fmin(least, fabs(w[j]));
    return DBL_EPSILON * most > 0.1 * e->opt.rtol * least;
}

sps_status spsi_eigen_ritz(sps_eigen *e, sps_small *H, double *w)
{
    int count = H->rows * H->cols;
    sps_status st = SPS_OK;

    if (!spsi_small_finite(H)) {
        e->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    spsi_small_symmetrise(H);
    for (int t = 0; e->sign < 0 && t < count; t++) H->v[t] = -H->v[t];
    SPS_TRY(spsi_small_copy(H, e->U));
    spsi_phase_begin(e->ctx, SPS_PHASE_SMALL);
    st = spsi_small_eigen(H, w);
    if (st == SPS_OK && coarse(e, w, H->rows)) st = refine(e, e->U, H, w);
    spsi_phase_end(e->ctx, SPS_PHASE_SMALL);
    for (int j = 0; j < H->rows; j++)
        if (!isfinite(w[j])) e->stop = SPS_STOP_NOT_FINITE;
    if (st == SPS_OK && !e->stop && e->nearest) st = by_distance(e, H, w);
fail:
    return st;
}

/* X with m columns of full rank: random ones for what depends on others. */
static sps_status fill_up(sps_eigen *e, int m)
{
    sps_status st = SPS_OK;
    sps_block none, W, MW;

    spsi_block_view(e->S, 0, 0, &none);
    SPS_TRY(spsi_eigen_orth(e, &none, &none, &e->X, &e->MX));
    for (int attempt = 1; attempt < 6 && e->X.k < m && !e->stop; attempt++) {
        spsi_block_view(e->S, e->X.k, m - e->X.k, &W);
        spsi_block_view(e->MS, e->X.k, m - e->X.k, &MW);
        SPS_TRY(spsi_eigen_draw(e, &W, e->ctx->opt.seed + 1000 +
                                           (uint64_t)attempt));
        SPS_TRY(spsi_eigen_orth(e, &e->X, &e->MX, &W, &MW));
        spsi_block_view(e->S, 0, e->X.k + W.k, &e->X);
        spsi_block_view(e->MS, 0, e->X.k, &e->MX);
    }
    if (e->X.k < m && !e->stop) e->stop = SPS_STOP_BREAKDOWN;
fail:
    return st;
}

sps_status spsi_eigen_rotate(sps_eigen *e, const sps_small *K)
{
    sps_block *stack[3] = { e->S, e->AS, e->MS }, from, to;
    sps_status st = SPS_OK;

    spsi_phase_begin(e->ctx, SPS_PHASE_GRAM);
    for (int i = 0; st == SPS_OK && i < (e->M ? 3 : 2); i++) {
        spsi_block_view(stack[i], 0, K->rows, &from);
        spsi_block_view(stack[i], 0, K->cols, &to);
        st = spsi_mul_small(1.0, &from, K, 0.0, &to);
    }
    spsi_phase_end(e->ctx, SPS_PHASE_GRAM);
    return st;
}

sps_status spsi_eigen_begin(sps_eigen *e, double *w)
{
    sps_status st = SPS_OK;

    SPS_TRY(fill_up(e, e->m));
    if (e->stop) return st;
    SPS_TRY(spsi_eigen_apply(e, &e->X, &e->AX));
    SPS_TRY(spsi_gram(e->inverted ? &e->MX : &e->X, &e->AX, e->G));
    SPS_TRY(spsi_eigen_ritz(e, e->G, w));
    if (e->stop) return st;
    SPS_TRY(spsi_eigen_rotate(e, e->G));
    for (int j = 0; j < e->m; j++) e->ritz[j] = e->sign * w[j];
    SPS_TRY(spsi_eigen_residuals(e));
    if (e->inverted && !e->stop) SPS_TRY(spsi_eigen_shift_test(e));
fail:
    return st;
}

/* One step: W = sign A V - beta before, then less its part along V, *a, and
 * *beta = ||W||. */
static sps_status lanczos(sps_eigen *e, const sps_block *before,
                          const sps_block *V, sps_block *W, double *a,
                          double *beta)
{
    sps_status st = SPS_OK;
    double minus = -*beta, one = 1;

    SPS_TRY(sps_operator_apply(e->A, e->sign, V, 0.0, W));
    SPS_TRY(spsi_axpby_cols(&minus, before, &one, W));
    SPS_TRY(spsi_dots(V, W, a));
    minus = -*a;
    SPS_TRY(spsi_axpby_cols(&minus, V, &one, W));
    SPS_TRY(spsi_norms(W, beta));
fail:
    return st;
}

sps_status spsi_eigen_ends(sps_eigen *e, sps_small *T, double *low,
                           double *high, double *past)
{
    sps_status st = SPS_OK;
    int steps = e->n < SPS_EIGEN_LANCZOS ? (int)e->n : SPS_EIGEN_LANCZOS;
    double a, beta = 0, scale, zero = 0, w[SPS_EIGEN_LANCZOS];
    sps_block V, before, W;

    spsi_block_narrow(e->R, 1);
    spsi_block_narrow(e->room, 1);
    spsi_block_view(e->R, 0, 1, &V);
    spsi_block_view(e->AS, 0, 1, &W);
    spsi_block_view(e->room, 0, 1, &before);
    spsi_small_shape(T, steps, steps);
    spsi_small_clear(T);
    SPS_TRY(sps_block_random(&V, 3));
    SPS_TRY(spsi_norms(&V, &a));
    scale = 1 / a;
    SPS_TRY(spsi_axpby_cols(&scale, &V, NULL, &V));
    SPS_TRY(spsi_fill(&before, 0));
    for (int t = 0; t < steps; t++) {
        SPS_TRY(lanczos(e, &before, &V, &W, &a, &beta));
        *spsi_small_at(T, t, t) = a;
        if (t + 1 == steps || !(beta > 0)) break;
        *spsi_small_at(T, t, t + 1) = *spsi_small_at(T, t + 1, t) = beta;
        SPS_TRY(spsi_copy(&V, &before));
        scale = 1 / beta;
        SPS_TRY(spsi_axpby_cols(&scale, &W, &zero, &V));
    }
    SPS_TRY(spsi_small_eigen(T, w));
    *low = w[0];
    *high = w[steps - 1];
    *past = beta;
fail:
    return st;
}
