/* SPDX-License-Identifier: BSD-3-Clause */
/* lanczos.c - Ritz values of D^-1 A from conjugate gradients preconditioned by
 * D: with their alpha = 1 / c and beta the Lanczos matrix is tridiagonal,
 * t_ii = c_i + beta_(i-1) c_(i-1), t_i,i+1 = sqrt(beta_i) c_i. */
#include "driver/lanczos.h"

#include <math.h>
#include <string.h>

#include "core/comm.h"
#include "block/small.h"

enum { STEPS = SPS_LANCZOS_STEPS, WIDTH = SPS_LANCZOS_WIDTH };
/* The steps end where conjugate gradients have reduced r'z, the square of a
 * norm, by this factor: what is left of R has hardly any part in directions
 * that the steps have not found, and further ones would be rounding. */
#define CONVERGED 1e-12

/* Coefficients by step and column: curvature = p'Ap / r'z (1 / alpha) and beta.
 * The iterate X is not needed.  A column ends at a curvature of zero: its p is
 * a null vector of A (alpha would be infinite, but the Lanczos matrix can
 * include it). */
typedef struct course {
    int k, steps[WIDTH];
    bool cut;
    bool ended[WIDTH];
    double curvature[STEPS][WIDTH];
    double beta[STEPS][WIDTH];
} course;

/* Records step t of column j; returns its alpha, or 0 if there is none. */
static double record(course *l, int t, int j, double pq, double rz)
{
    double c = pq > 0 ? pq / rz : 0, largest = 0;

    if (l->ended[j] || !(rz > 0) || !isfinite(c)) {
        l->ended[j] = true;
        return 0;
    }
    for (int i = 0; i < t; i++) largest = fmax(largest, l->curvature[i][j]);
    l->curvature[t][j] = c;
    l->steps[j] = t + 1;
    l->ended[j] = c <= 1e-12 * largest;
    return l->ended[j] || c == 0 ? 0 : 1 / c;
}

/* Returns whether r'z of every column is small relative to its first value. */
static bool converged(const course *l, const double *rz, const double *first)
{
    for (int j = 0; j < l->k; j++)
        if (!(rz[j] <= CONVERGED * first[j])) return false;
    return true;
}

static sps_status run(const sps_operator *A, const sps_block *inverse,
                      sps_block *R, sps_block *P, sps_block *Q,
                      double deadline, int least, course *l)
{
    sps_status st = SPS_OK;
    double rz[WIDTH], pq[WIDTH], a[WIDTH], b[WIDTH], one[WIDTH], first[WIDTH];

    SPS_TRY(spsi_scale_rows(inverse, R, P));
    SPS_TRY(spsi_dots(R, P, rz));
    memcpy(first, rz, (size_t)l->k * sizeof *first);
    for (int t = 0; t < STEPS && !converged(l, rz, first); t++) {
        l->cut = t >= least && deadline > 0 &&
                 spsi_agreed_now(A->ctx) > deadline;
        if (l->cut) break;
        SPS_TRY(sps_operator_apply(A, 1.0, P, 0.0, Q));
        SPS_TRY(spsi_dots(P, Q, pq));
        for (int j = 0; j < l->k; j++) {
            a[j] = -record(l, t, j, pq[j], rz[j]);
            one[j] = 1;
        }
        SPS_TRY(spsi_axpby_cols(a, Q, one, R));
        SPS_TRY(spsi_scale_rows(inverse, R, Q));
        SPS_TRY(spsi_dots(R, Q, pq));
        for (int j = 0; j < l->k; j++) {
            b[j] = rz[j] > 0 ? pq[j] / rz[j] : 0;
            l->beta[t][j] = b[j];
            rz[j] = pq[j];
        }
        SPS_TRY(spsi_axpby_cols(one, Q, b, P));
    }
fail:
    return st;
}

/* Computes the eigenvalues of the tridiagonal matrix of column j. */
static sps_status ritz(sps_context *ctx, const course *l, int j,
                       sps_lanczos *result)
{
    sps_status st = SPS_OK;
    sps_small *T = NULL;
    double w[STEPS], c, b;
    const int steps = l->steps[j];

    if (steps == 0) return SPS_OK;
    SPS_TRY(spsi_small_create(ctx, steps, steps, &T));
    spsi_small_shape(T, steps, steps);
    spsi_small_clear(T);
    for (int i = 0; i < steps; i++) {
        c = l->curvature[i][j];
        b = l->beta[i][j];
        *spsi_small_at(T, i, i) += c;
        if (i + 1 == steps) break;
        *spsi_small_at(T, i + 1, i + 1) += b * c;
        *spsi_small_at(T, i, i + 1) = *spsi_small_at(T, i + 1, i) =
            sqrt(b) * c;
    }
    SPS_TRY(spsi_small_eigen(T, w));
    result->largest = fmax(result->largest, w[steps - 1]);
    result->smallest = fmin(result->smallest, w[0]);
    result->second = fmin(result->second, w[steps > 1]);
fail:
    spsi_small_destroy(&T);
    return st;
}

sps_status spsi_lanczos(const sps_operator *A, const sps_block *inverse,
                        sps_block *R, sps_block *P, sps_block *Q,
                        double deadline, int least, sps_lanczos *result)
{
    course l = { .k = R->k };
    sps_status st;

    *result = (sps_lanczos){ .smallest = INFINITY, .second = INFINITY };
    SPS_TRY(run(A, inverse, R, P, Q, deadline, least, &l));
    for (int j = 0; j < l.k; j++) SPS_TRY(ritz(A->ctx, &l, j, result));
    result->cut = l.cut;
fail:
    return st;
}
