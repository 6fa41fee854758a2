/* SPDX-License-Identifier: BSD-3-Clause */
/* rhs.c - the right-hand sides: scaling and norms, their component in the null
 * space, and the thresholds that follow from both.
 *
 * Column j is scaled to d_j b_j, where d_j is the power of two that brings
 * ||b_j|| near 1.  Norms are those of scaled columns, so that none overflows or
 * underflows as long as the entries are finite doubles.
 *
 * With a null space, where N is its orthonormal basis and P = I - N N', the
 * solve works on P b.  No x reduces the rest of b: if that is above the
 * tolerance, the system is inconsistent, and X is a least-squares solution once
 * P b - A x is small relative to P b. */
#include "driver/columns.h"

#include <float.h>
#include <math.h>

sps_status spsi_columns_zero(sps_block *X, int j)
{
    sps_block view;

    spsi_block_view(X, j, 1, &view);
    return spsi_fill(&view, 0.0);
}

/* --------------------------------------------------------------- thresholds */

/* Returns the threshold of a residual by opt.norm, from the norms of b, of the
 * initial residual and of x. */
static double threshold(const sps_linear *s, int j, double norm_b,
                        double norm_start, double norm_x)
{
    const double r = s->opt.rtol;
    double t = 0, whole;

    switch (s->opt.norm) {
    case SPS_NORM_RHS: t = r * norm_b; break;
    case SPS_NORM_BACKWARD:   /* r first: ||A|| ||x|| alone may overflow */
        whole = r * s->made.norm_A * norm_x + r * norm_b;
        t = isfinite(whole) ? whole : r * norm_b;
        break;
    case SPS_NORM_START: t = r * norm_start; break;
    case SPS_NORM_ABSOLUTE: break;
    }
    return fmax(t, s->opt.atol * s->rhs.scale[j]);
}

double spsi_columns_own_threshold(const sps_linear *s, int j, double norm_x)
{
    return threshold(s, j, s->rhs.norm_own[j],
                     hypot(s->rhs.norm_start[j], s->rhs.outside[j]), norm_x);
}

bool spsi_columns_inconsistent(const sps_linear *s, int j, double norm_x)
{
    return s->rhs.outside[j] > 0.99 * spsi_columns_own_threshold(s, j, norm_x);
}

/* Returns (t^2 - ||b - P b||^2)^(1/2), where t is the threshold of b - A x,
 * whose components b - P b and P b - A x are orthogonal.  For an inconsistent b
 * the threshold follows from the norm of P b. */
double spsi_columns_threshold(const sps_linear *s, int j, double norm_x)
{
    const double own = spsi_columns_own_threshold(s, j, norm_x);
    const double part = s->rhs.outside[j] / own;

    if (spsi_columns_inconsistent(s, j, norm_x))
        return threshold(s, j, s->rhs.norm[j], s->rhs.norm_start[j], norm_x);
    return part > 0 ? own * sqrt((1 - part) * (1 + part)) : own;
}

double spsi_columns_reference(const sps_linear *s, int j)
{
    switch (s->opt.norm) {
    case SPS_NORM_RHS: return s->rhs.norm[j];
    case SPS_NORM_BACKWARD:
        return s->made.norm_A * s->rhs.norm_x[j] + s->rhs.norm[j];
    case SPS_NORM_START: return s->rhs.norm_start[j];
    default: return s->rhs.scale[j];
    }
}

sps_status spsi_columns_thresholds(sps_linear *s)
{
    sps_status st = SPS_OK;
    double *norm = s->scratch.numbers + s->columns;

    if (s->opt.norm == SPS_NORM_BACKWARD) SPS_TRY(spsi_norms(&s->X, norm));
    for (int p = 0; p < s->k; p++) {
        const int j = s->at.column[p];

        if (s->opt.norm == SPS_NORM_BACKWARD) s->rhs.norm_x[j] = norm[p];
        s->rhs.threshold[j] = spsi_columns_threshold(s, j, s->rhs.norm_x[j]);
    }
fail:
    return st;
}

/* -------------------------------------------------------------------- units */

double spsi_columns_unit(double norm)
{
    int e = 0;

    if (!(norm > 0) || !isfinite(norm)) return 1.0;
    (void)frexp(norm, &e);
    if (e > 1000) e = 1000;
    if (e < -1000) e = -1000;
    return ldexp(1.0, -e);
}

/* Returns whether a norm is within the range in which norms are accurate to the
 * last bits. */
static bool ordinary(double norm)
{
    return norm == 0 || (norm > 1e-290 && norm < 1e300);
}

/* Computes the scaling factors of the columns of B, and their scaled norms.
 * Norms near the ends of the range of doubles are computed from the scaled
 * column, which is stored in R. */
static sps_status take_units(sps_linear *s, const sps_block *B, sps_block *R)
{
    double *norm = s->rhs.norm_own, *size = s->scratch.numbers;
    bool odd = false;
    sps_status st;

    SPS_TRY(spsi_norms(B, norm));
    for (int j = 0; j < s->columns; j++) odd = odd || !ordinary(norm[j]);
    if (odd) SPS_TRY(spsi_largest(B, size));
    for (int j = 0; j < s->columns; j++)
        s->rhs.scale[j] = spsi_columns_unit(ordinary(norm[j]) ? norm[j]
                                                              : size[j]);
    if (odd) {
        SPS_TRY(spsi_axpby_cols(s->rhs.scale, B, NULL, R));
        SPS_TRY(spsi_norms(R, size));
    }
    for (int j = 0; j < s->columns; j++)
        norm[j] = ordinary(norm[j]) ? norm[j] * s->rhs.scale[j] : size[j];
fail:
    return st;
}

/* --------------------------------------------------------------- projection */

/* Computes s->rhs.projected = P B, scaled.  It is projected twice: where P b is
 * small, the rounding error of the first projection is large relative to it and
 * would make the system inconsistent.  A P b below the rounding error of b is
 * set to zero, and so is a column that is not finite, which has no
 * projection. */
static sps_status project(sps_linear *s, const sps_block *B)
{
    double *left = s->scratch.numbers;
    sps_status st;

    SPS_TRY(spsi_axpby_cols(s->rhs.scale, B, NULL, s->rhs.projected));
    for (int j = 0; j < s->columns; j++)
        if (!isfinite(s->rhs.norm_own[j]))
            SPS_TRY(spsi_columns_zero(s->rhs.projected, j));
    for (int pass = 0; pass < 2; pass++)
        SPS_TRY(spsi_nullspace_project(s->made.null, s->rhs.projected));
    SPS_TRY(spsi_norms(s->rhs.projected, left));
    for (int j = 0; j < s->columns; j++)
        if (!(left[j] > 8 * DBL_EPSILON * s->rhs.norm_own[j]))
            SPS_TRY(spsi_columns_zero(s->rhs.projected, j));
fail:
    return st;
}

/* Computes ||B - P B|| for each column, and its ratio to ||B||. */
static sps_status measure_outside(sps_linear *s, const sps_block *B,
                                  sps_block *R)
{
    double part = 0, whole = 0, least = INFINITY, one[SPS_BLOCK_MAX];
    sps_status st;

    for (int j = 0; j < s->columns; j++) {
        one[j] = -1;
        if (isfinite(s->rhs.norm_own[j])) least = fmin(least, s->rhs.scale[j]);
    }
    SPS_TRY(spsi_copy(s->rhs.projected, R));
    SPS_TRY(spsi_axpby_cols(s->rhs.scale, B, one, R));
    SPS_TRY(spsi_norms(R, s->rhs.outside));
    for (int j = 0; j < s->columns; j++) {
        const double unit = least / s->rhs.scale[j];

        if (!isfinite(s->rhs.norm_own[j])) {
            s->rhs.outside[j] = 0;
            continue;
        }
        part = hypot(part, s->rhs.outside[j] * unit);
        whole = hypot(whole, s->rhs.norm_own[j] * unit);
    }
    s->rhs.removed = whole > 0 ? part / whole : 0;
fail:
    return st;
}

sps_status spsi_rhs_open(sps_linear *s, const sps_block *B)
{
    sps_status st;

    s->rhs.own = s->rhs.B = B;
    s->rhs.removed = 0;
    SPS_TRY(take_units(s, B, s->scratch.residual));
    for (int j = 0; j < s->columns; j++) {
        s->rhs.norm[j] = s->rhs.norm_own[j];
        s->rhs.outside[j] = s->rhs.norm_start[j] = 0;
    }
    if (!s->made.null) return SPS_OK;
    SPS_TRY(project(s, B));
    SPS_TRY(measure_outside(s, B, s->scratch.residual));
    s->rhs.B = s->rhs.projected;
    SPS_TRY(spsi_norms(s->rhs.projected, s->rhs.norm));
    for (int j = 0; j < s->columns; j++)
        if (!isfinite(s->rhs.norm_own[j])) s->rhs.norm[j] = s->rhs.norm_own[j];
fail:
    return st;
}
