/* SPDX-License-Identifier: BSD-3-Clause */
/* verdict.c - the stop reasons of a solve, from residuals of the caller's B and
 * the returned X, computed once and in twice the working precision: which
 * columns converged, and why the others did not. */
#include "core/abi.h"
#include "driver/columns.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Norms indexed by right-hand side, scaled. */
typedef struct norms {
    double r[SPS_BLOCK_MAX];        /* b - A x */
    double x[SPS_BLOCK_MAX];        /* x */
    double range[SPS_BLOCK_MAX];    /* P b - A x where b is inconsistent */
    double normal[SPS_BLOCK_MAX];   /* A (b - A x), where it was computed;
                                       S'r for a method of least squares */
    bool outside[SPS_BLOCK_MAX];    /* whether a singular A may be the reason */
} norms;

static bool below(double norm, double threshold)
{
    return isfinite(norm) && norm <= threshold;
}

/* Returns whether zero pivots of factors may be why the solve stagnated. */
static bool stopped_by_pivots(const sps_linear *s)
{
    return s->stop == SPS_STOP_SINGULAR && s->M && s->M->zero_pivots > 0;
}

/* Returns whether the stop reason is a singular A, so that X may be a
 * least-squares solution: for a symmetric A it is one if A (b - A x) = 0. */
static bool wants_normal(const sps_linear *s)
{
    return s->stop == SPS_STOP_SINGULAR &&
           (s->method.type->needs & SPS_NEEDS_SYMMETRIC ||
            s->A->props & (SPS_SYMMETRIC | SPS_SPD));
}

static sps_status scaled_norms(const sps_linear *s, const sps_block *R,
                               const double *unit, double *norm)
{
    const sps_status st = spsi_norms(R, norm);

    for (int j = 0; j < s->columns; j++) norm[j] *= unit[j];
    return st;
}

/* Computes v->range: ||P b - A x|| of each column if some b is inconsistent,
 * otherwise a copy of v->r. */
static sps_status measure_range(sps_linear *s, const sps_block *X, norms *v)
{
    sps_block *R = s->scratch.residual, Y, room;
    bool any = false;
    sps_status st = SPS_OK;

    for (int j = 0; s->made.null && j < s->columns; j++)
        any = any || spsi_columns_inconsistent(s, j, v->x[j]);
    memcpy(v->range, v->r, sizeof v->range);
    if (!any) return SPS_OK;
    spsi_block_view(s->work[0], 0, s->columns, &Y);
    spsi_block_view(s->work[1], 0, s->columns, &room);
    SPS_TRY(spsi_axpby_cols(s->rhs.scale, X, NULL, &Y));
    SPS_TRY(spsi_operator_twofold(s->A, &(sps_twofold_args){
        .X = &Y, .W = s->rhs.projected, .H = R }, &room));
    SPS_TRY(spsi_norms(R, v->range));
fail:
    return st;
}

/* Computes v->normal = ||S'r|| from R = b - A x and v->range = ||r||. */
static sps_status measure_least(sps_linear *s, const sps_block *X,
                                const double *unit, norms *v)
{
    const double f = spsi_columns_unit(spsi_least_size(s));
    const double even = fmin(fmax(f, 1), 0x1p500);
    double lift[SPS_BLOCK_MAX], by[SPS_BLOCK_MAX];
    sps_status st;

    /* S'R leaves the range of doubles where R or A is near its ends. */
    for (int j = 0; j < s->columns; j++) {
        by[j] = spsi_columns_unit(v->r[j] / unit[j]) * even;
        lift[j] = s->rhs.scale[j] / unit[j] * by[j];
    }
    SPS_TRY(spsi_axpby_cols(by, s->scratch.residual, NULL,
                            s->scratch.residual));
    SPS_TRY(spsi_least_normal(s, X, lift, s->scratch.residual, v->normal));
    for (int j = 0; j < s->columns; j++) {
        v->normal[j] = v->normal[j] / even * (unit[j] / (by[j] / even));
        v->range[j] = hypot(v->r[j], s->opt.damp * v->x[j]);
    }
fail:
    return st;
}

/* Sets v->outside for columns with a part above their threshold that factors
 * with zero pivots leave of R, in the rows of these pivots: b has this part
 * outside the range of A. */
static sps_status measure_outside(sps_linear *s, const double *unit, norms *v)
{
    const sps_precond *M = s->M;
    sps_block Z, Q;
    double *q = NULL;
    sps_status st;

    spsi_block_view(s->work[0], 0, s->columns, &Z);
    spsi_block_view(s->work[1], 0, s->columns, &Q);
    SPS_TRY(SPS_NEW(s->ctx, s->n + 1, &q));
    SPS_TRY(spsi_linear_precondition(s, s->scratch.residual, &Z));
    SPS_TRY(spsi_copy(s->scratch.residual, &Q));
    SPS_TRY(sps_operator_apply(s->A, -1.0, &Z, 1.0, &Q));
    for (int j = 0; j < s->columns; j++) {
        double sum = 0;

        SPS_TRY(sps_block_get(&Q, j, 1, q, s->n, SPS_COL_MAJOR, SPS_HOST));
        for (int64_t i = 0; i < M->zero_pivots; i++)
            sum = hypot(sum, q[M->zero_rows[i] - 1] * unit[j]);
        v->outside[j] = !below(sum, spsi_columns_own_threshold(s, j, v->x[j]));
    }
fail:
    spsi_free(s->ctx, q);
    return st;
}

static sps_status measure(sps_linear *s, const sps_block *X, norms *v)
{
    sps_block *R = s->scratch.residual, Y;
    double unit[SPS_BLOCK_MAX];
    sps_status st;

    spsi_block_narrow(R, s->columns);
    SPS_TRY(spsi_verify(s, X, R, unit));
    SPS_TRY(scaled_norms(s, R, unit, v->r));
    SPS_TRY(scaled_norms(s, X, s->rhs.scale, v->x));
    if (s->least.T) return measure_least(s, X, unit, v);
    if (stopped_by_pivots(s)) SPS_TRY(measure_outside(s, unit, v));
    if (wants_normal(s)) {
        spsi_block_view(s->work[0], 0, s->columns, &Y);
        SPS_TRY(sps_operator_apply(s->A, 1.0, R, 0.0, &Y));
        SPS_TRY(scaled_norms(s, &Y, unit, v->normal));
    }
    SPS_TRY(measure_range(s, X, v));
fail:
    return st;
}

static void record_normal(sps_linear *s, int j, const norms *v)
{
    const double base = spsi_least_size(s) * v->range[j];

    s->result.range[j] = s->result.residual[j];
    s->result.normal[j] = v->normal[j] == 0 ? 0 : v->normal[j] / base;
}

static void record(sps_linear *s, int j, const norms *v)
{
    const double b = s->rhs.norm_own[j], part = s->rhs.norm[j];
    const double base = s->made.norm_A * v->x[j] + b;

    s->result.residual[j] = b > 0 ? v->r[j] / b : v->r[j];
    s->result.backward[j] = base > 0 && isfinite(base) ? v->r[j] / base
                                                       : s->result.residual[j];
    s->result.range[j] = part > 0 ? v->range[j] / part : v->range[j];
    if (s->least.T) record_normal(s, j, v);
}

/* Returns whether X is a least-squares solution of an inconsistent system. */
static sps_stop least_squares(const sps_linear *s, int j, const norms *v)
{
    const bool named = s->made.null && s->made.null->named;

    if (s->made.null && spsi_columns_inconsistent(s, j, v->x[j]) &&
        below(v->range[j], spsi_columns_threshold(s, j, v->x[j])))
        return named ? SPS_STOP_CONVERGED_LEAST_SQUARES
                     : SPS_STOP_LEAST_SQUARES;
    return wants_normal(s) && v->normal[j] <= 1e-8 * s->made.norm_A * v->r[j]
               ? SPS_STOP_LEAST_SQUARES : SPS_STOP_RUNNING;
}

/* Returns whether the residual is explained by rounding of the exact x to
 * doubles: a backward error of 16 units roundoff, plus, for entries of x below
 * DBL_MIN, half of the smallest double.  Where rounding of x exceeds b, x may
 * have grown along null vectors of A, and what is left may be a part of b
 * outside of its range: then rounding explains only stagnation, of a residual
 * so far below b that such a part is improbable. */
static bool at_rounding(const sps_linear *s, int j, const norms *v,
                        bool stagnated)
{
    const double norm_A = s->made.norm_A;
    const double size = norm_A * v->x[j], b = s->rhs.norm_own[j];
    const double least = 0x1p-1074 * s->rhs.scale[j] * sqrt((double)s->rows);
    const double most = stagnated ? 1e-6 * b : 0;

    return (DBL_EPSILON * size <= b || v->range[j] <= most) &&
           v->range[j] <= 16 * DBL_EPSILON * (size + b) + norm_A * least;
}

bool spsi_columns_accurate(const sps_linear *s, int j)
{
    return s->result.backward[j] <= 1e3 * DBL_EPSILON &&
           s->result.residual[j] <= 1e-8;
}

/* Returns why column j is not converged.  A breakdown, a singular A or an
 * indefinite preconditioner is not reported as the reason where rounding
 * explains the residual by itself, or where x is accurate already; nor is a
 * singular A where b has no part outside its range. */
static sps_stop reason(const sps_linear *s, int j, const norms *v)
{
    const sps_stop stop = s->stop == SPS_STOP_SINGULAR && !v->outside[j]
                              ? SPS_STOP_STAGNATED : s->stop;
    const bool rounding = s->least.T
                              ? spsi_least_rounding(s, v->normal[j], v->x[j],
                                                    s->rhs.norm_own[j])
                              : at_rounding(s, j, v,
                                            stop == SPS_STOP_STAGNATED);
    const bool blames = stop == SPS_STOP_SINGULAR ||
                        stop == SPS_STOP_PRECOND_INDEFINITE ||
                        stop == SPS_STOP_BREAKDOWN;

    if (stop < 0 && stop != SPS_STOP_STAGNATED && !blames) return stop;
    if (rounding) return SPS_STOP_ROUNDING;
    return blames && !spsi_columns_accurate(s, j) ? stop : SPS_STOP_STAGNATED;
}

/* Applies the two rules of normal.c. */
static sps_stop judge_least(const sps_linear *s, int j, const norms *v)
{
    const double r = v->range[j];

    if (below(r, spsi_columns_own_threshold(s, j, v->x[j])))
        return SPS_STOP_CONVERGED;
    if (isfinite(r) &&
        below(v->normal[j], s->opt.rtol * spsi_least_size(s) * r))
        return SPS_STOP_CONVERGED_LEAST_SQUARES;
    return reason(s, j, v);
}

static sps_stop judge(const sps_linear *s, int j, const norms *v)
{
    sps_stop why;

    if (s->result.column[j] == SPS_STOP_NOT_FINITE) return SPS_STOP_NOT_FINITE;
    if (s->least.T) return judge_least(s, j, v);
    if (below(v->r[j], spsi_columns_own_threshold(s, j, v->x[j])))
        return SPS_STOP_CONVERGED;
    why = least_squares(s, j, v);
    return why ? why : reason(s, j, v);
}

/* Returns the overall stop reason: that of the loop if a column that did not
 * converge has it, otherwise the most severe one among those columns. */
static sps_stop whole(const sps_linear *s)
{
    static const sps_stop order[] = {
        SPS_STOP_NOT_FINITE, SPS_STOP_STAGNATED, SPS_STOP_ROUNDING,
        SPS_STOP_LEAST_SQUARES, SPS_STOP_CONVERGED_LEAST_SQUARES };

    for (int j = 0; s->stop < 0 && j < s->columns; j++)
        if (s->result.column[j] == s->stop) return s->stop;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        for (int j = 0; j < s->columns; j++)
            if (s->result.column[j] == order[i]) return order[i];
    return SPS_STOP_CONVERGED;
}

sps_status spsi_columns_verdict(sps_linear *s, const sps_block *X)
{
    norms v;
    sps_status st;

    memset(v.outside, true, sizeof v.outside);
    if (s->stop == SPS_STOP_STAGNATED && s->M && s->M->zero_pivots > 0)
        s->stop = SPS_STOP_SINGULAR;
    SPS_TRY(measure(s, X, &v));
    for (int j = 0; j < s->columns; j++) {
        record(s, j, &v);
        s->result.column[j] = judge(s, j, &v);
    }
    s->stop = whole(s);
fail:
    return st;
}

/* Returns the largest element; NaN counts as infinite. */
static double worst_of(const double *v, int k)
{
    double worst = 0;

    for (int j = 0; j < k; j++) {
        double x = isnan(v[j]) ? INFINITY : v[j];
        if (x > worst) worst = x;
    }
    return worst;
}

void spsi_linear_result(const sps_linear *s, double solve_seconds,
                        double verify_seconds, sps_result *result)
{
    const double *phase = s->ctx->phase_seconds;
    sps_result all = { .struct_size = sizeof all }, *r = &all;

    r->stop = s->stop;
    r->k = s->columns;
    r->iterations = s->course.iteration;
    for (int j = 0; j < s->columns; j++)
        r->columns_converged += s->result.column[j] > 0;
    r->restarts = s->course.replaced;
    r->applies_A = s->course.applies_A;
    r->applies_M = s->course.applies_M;
    r->min_width = s->course.min_width;
    r->worst_residual = worst_of(s->result.residual, s->columns);
    r->worst_in_range = worst_of(s->result.range, s->columns);
    r->in_doubles = s->A->callback.apply != NULL;
    r->worst_backward = worst_of(s->result.backward, s->columns);
    r->norm_A = s->made.norm_A;
    r->removed = s->rhs.removed;
    r->nullspace = s->made.null ? (int)s->made.null->dimension : 0;
    r->residual = s->result.residual;
    r->normal = s->least.T ? s->result.normal : NULL;
    r->worst_normal = s->least.T ? worst_of(s->result.normal, s->columns) : 0;
    r->backward = s->result.backward;
    r->column = s->result.column;
    r->solver = s->method.type->name;
    r->precond = sps_precond_name(s->M);
    r->kernel = sps_operator_kernel(s->A);
    r->seconds = (sps_seconds){
        .solve = solve_seconds, .verify = verify_seconds,
        .spmm = phase[SPS_PHASE_SPMM], .precond = phase[SPS_PHASE_PRECOND],
        .gram = phase[SPS_PHASE_GRAM], .small = phase[SPS_PHASE_SMALL],
    };
    spsi_abi_copy(r, result);
}
