/* SPDX-License-Identifier: BSD-3-Clause */
/* best.c - the best iterate of each right-hand side.
 *
 * A method knows the norm of the next residual before it changes X (R is
 * updated first).  If an update would replace the best iterate of a column by
 * one of larger residual, the column is first copied to s->best.block.  While
 * residuals decrease nothing is copied.  With m the lowest norm of a column so
 * far, n that of the next iterate and b that of the stored copy,
 *
 *     copy where  n > (1 + SPS_SLACK) m  and  b > (1 + SPS_SLACK) m
 *
 * maintains min(n, b) <= (1 + SPS_SLACK) m.  A column is copied at most once
 * for each factor 1 + SPS_SLACK by which its residual decreases, however much
 * it oscillates.  All columns that are better than their copies are copied
 * together: blocks are row-major, so the cache lines of a row are read anyway.
 *
 * Norms of a recurrence deviate from the true ones by accumulated rounding; the
 * deviation at the last check of the true residual, `gap`, is added to them.
 * Where rounding may affect an iterate to be stored, the true residual is
 * computed again.  Such checks store their iterates, too, and at the end true
 * residuals decide. */
#include "driver/columns.h"

#include <float.h>
#include <math.h>

#include "driver/fused_cg.h"

/* Makes T a view of the driver's work block with the first `count` columns and
 * the rows of X. */
static void work_columns(sps_linear *s, int count, sps_block *T)
{
    spsi_linear_room(s, 1, s->n, count, T);
}

void spsi_best_open(sps_linear *s)
{
    for (int j = 0; j < s->columns; j++) {
        s->resnorm[j] = INFINITY;
        s->best.norm[j] = s->best.checked[j] = s->best.least[j] = INFINITY;
        s->best.gap[j] = s->best.peak[j] = 0;
    }
}

/* ------------------------------------------------------------------ copies */

/* Returns whether the column at position p is finite in the caller's units. */
static bool fits(const sps_linear *s, int p, double norm_x)
{
    return isfinite(norm_x / s->rhs.scale[s->at.column[p]]);
}

/* X must be tested itself, because finite residuals do not guarantee that X is
 * finite: A may have no entry for an unknown. */
sps_status spsi_best_fits(sps_linear *s, const sps_block *X, bool *fit)
{
    double *norm_x = s->scratch.numbers + s->columns;
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++) fit[p] = true;
    if (s->course.zero) return SPS_OK;
    SPS_TRY(spsi_norms(X, norm_x));
    for (int p = 0; p < s->k; p++) fit[p] = fits(s, p, norm_x[p]);
fail:
    return st;
}

/* Stores columns of X: best.block(:, to[i]) = X(:, from[i]) for i < count. */
static sps_status copy_columns(sps_linear *s, const sps_block *X,
                               const int *from, const int *to, int count)
{
    sps_status st = SPS_OK;
    sps_block T;
    bool straight = count == s->best.block->k;

    for (int i = 0; i < count; i++) straight = straight && to[i] == i;
    if (count == 0) return SPS_OK;
    if (straight && s->course.zero) return spsi_fill(s->best.block, 0.0);
    if (straight) return spsi_copy(X, s->best.block);
    if (count == X->k) return spsi_scatter(X, to, s->best.block);
    work_columns(s, count, &T);
    SPS_TRY(spsi_gather(X, from, &T));
    SPS_TRY(spsi_scatter(&T, to, s->best.block));
fail:
    return st;
}

bool spsi_best_due(sps_linear *s, const double *norm)
{
    bool any = false;

    for (int p = 0; p < s->k; p++) {
        const int j = s->at.column[p];
        const bool better = s->resnorm[p] + s->best.gap[j] < s->best.norm[j];

        s->best.due[p] = better;
        any = any || (better && SPS_BEST_LOST(norm[p] + s->best.gap[j],
                                              s->best.least[j],
                                              s->best.norm[j]));
    }
    return any;
}

void spsi_best_record(sps_linear *s, const double *norm)
{
    for (int p = 0; p < s->k; p++) {
        const int j = s->at.column[p];

        s->resnorm[p] = norm[p];
        s->best.peak[j] = fmax(s->best.peak[j], norm[p]);
        s->best.least[j] = fmin(s->best.least[j], norm[p] + s->best.gap[j]);
    }
}

/* ------------------------------------------------- checks of true residuals */

sps_status spsi_best_check(sps_linear *s, const double *true_norm)
{
    int *from = s->at.order + s->columns, *to = from + s->columns, m = 0;
    sps_status st = SPS_OK;
    bool fit[SPS_BLOCK_MAX];

    SPS_TRY(spsi_best_fits(s, &s->X, fit));
    for (int p = 0; p < s->k; p++) {
        const int j = s->at.column[p];

        s->best.gap[j] = fmax(0, true_norm[p] - s->resnorm[p]);
        s->best.peak[j] = 0;
        if (fit[p] && true_norm[p] < s->best.norm[j]) {
            s->best.norm[j] = true_norm[p];
            from[m] = p;
            to[m++] = j;
        }
        s->best.least[j] = fmin(s->best.norm[j], true_norm[p]);
    }
    SPS_TRY(copy_columns(s, &s->X, from, to, m));
fail:
    return st;
}

/* --------------------------------------------------------- before X changes */

/* Computes the true residuals of X and stores improved columns; s->X is
 * replaced by X during the call. */
static sps_status check_at(sps_linear *s, const sps_block *X)
{
    const sps_block held = s->X;
    sps_status st = SPS_OK;
    sps_block T;

    s->X = *X;
    spsi_linear_room(s, 1, s->least.nrow, s->k, &T);
    SPS_TRY(spsi_columns_true_norms(s, &T, s->scratch.numbers));
    SPS_TRY(spsi_best_check(s, s->scratch.numbers));
fail:
    s->X = held;
    return st;
}

sps_status spsi_best_store_flushed(sps_linear *s)
{
    const sps_status st = spsi_linear_flush(s);

    return st == SPS_OK ? check_at(s, &s->X) : st;
}

/* Returns whether rounding of X, and of the largest residual since the last
 * check, may affect the norm of the column at position p. */
static bool doubtful(const sps_linear *s, int p, double norm_x)
{
    const double size = s->made.norm_A * norm_x + s->best.peak[s->at.column[p]];

    return 16 * DBL_EPSILON * size > 0.01 * s->resnorm[p];
}

sps_status spsi_best_store(sps_linear *s, const sps_block *X)
{
    int *from = s->at.order + s->columns, *to = from + s->columns, m = 0, j;
    double *norm_x = s->scratch.numbers + s->columns;
    sps_status st = SPS_OK;
    bool doubt = false;

    SPS_TRY(spsi_norms(X, norm_x));
    for (int p = 0; p < s->k; p++) {
        if (!isfinite(norm_x[p])) s->stop = SPS_STOP_NOT_FINITE;
        if (s->best.due[p] && doubtful(s, p, norm_x[p])) doubt = true;
    }
    if (s->stop) return st;
    if (doubt) return check_at(s, X);
    for (int p = 0; p < s->k; p++) {
        if (!s->best.due[p] || !fits(s, p, norm_x[p])) continue;
        j = s->at.column[p];
        s->best.norm[j] = s->resnorm[p] + s->best.gap[j];
        from[m] = p;
        to[m++] = j;
    }
    SPS_TRY(copy_columns(s, X, from, to, m));
fail:
    return st;
}

sps_status spsi_best_update(sps_linear *s, const double *norm)
{
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++)
        if (!isfinite(norm[p])) s->stop = SPS_STOP_NOT_FINITE;
    if (s->stop) return st;
    if (spsi_best_due(s, norm)) SPS_TRY(spsi_best_store(s, &s->X));
    if (!s->stop) spsi_best_record(s, norm);
fail:
    return st;
}

/* --------------------------------------------------------------- the answer */

/* Sets resnorm to the true residual norms of X, unless they are there already
 * (`known`); they are infinite where X is not finite in the caller's units. */
static sps_status measure(sps_linear *s, bool known)
{
    double *norm_x = s->scratch.numbers + s->columns;
    sps_status st = SPS_OK;

    if (!known) {
        SPS_TRY(spsi_columns_residual(s, &s->R, true));
        SPS_TRY(spsi_least_norms(s, &s->X, &s->R, s->resnorm));
    }
    SPS_TRY(spsi_norms(&s->X, norm_x));
    for (int p = 0; p < s->k; p++)
        if (isnan(s->resnorm[p]) || !fits(s, p, norm_x[p]))
            s->resnorm[p] = INFINITY;
fail:
    return st;
}

/* Swaps X(:, from[i]) and best(:, to[i]), and their norms. */
static sps_status exchange(sps_linear *s, const int *from, const int *to,
                           int count)
{
    sps_status st = SPS_OK;
    sps_block T, U;

    work_columns(s, count, &T);
    spsi_block_view(&s->R, 0, count, &U);
    U.n = s->n;               /* linear.c allocates enough memory for both
                                 shapes */
    SPS_TRY(spsi_gather(&s->X, from, &T));
    SPS_TRY(spsi_gather(s->best.block, to, &U));
    SPS_TRY(spsi_scatter(&U, from, &s->X));
    SPS_TRY(spsi_scatter(&T, to, s->best.block));
    for (int i = 0; i < count; i++) {
        const double norm = s->resnorm[from[i]];

        s->resnorm[from[i]] = s->best.norm[to[i]];
        s->best.norm[to[i]] = norm;
    }
fail:
    return st;
}

/* Swaps in those columns of `best` whose norms are below those of X.  Near a
 * least-squares solution x' the norm does not distinguish iterates, since
 * ||r||^2 = ||r'||^2 + ||S (x - x')||^2; the later one is used then. */
static sps_status take_better(sps_linear *s, int *count)
{
    int *from = s->at.order + s->columns, *to = from + s->columns;

    *count = 0;
    for (int p = 0; p < s->k; p++) {
        const double norm = s->least.T ? s->resnorm[p] * (1 - 1e-12)
                                 : s->resnorm[p];

        if (!(s->best.norm[s->at.column[p]] < norm)) continue;
        from[*count] = p;
        to[(*count)++] = s->at.column[p];
    }
    return *count ? exchange(s, from, to, *count) : SPS_OK;
}

/* Clears columns that are still not finite in the caller's units. */
static sps_status clear_invalid(sps_linear *s)
{
    double *norm_x = s->scratch.numbers + s->columns;
    sps_status st = SPS_OK;
    sps_block x;

    SPS_TRY(spsi_norms(&s->X, norm_x));
    for (int p = 0; p < s->k; p++) {
        if (fits(s, p, norm_x[p])) continue;
        spsi_block_view(&s->X, p, 1, &x);
        SPS_TRY(spsi_fill(&x, 0.0));
    }
fail:
    return st;
}

sps_status spsi_best_restore(sps_linear *s, bool failed)
{
    sps_status st = SPS_OK;
    int count;

    spsi_columns_widen(s);
    SPS_TRY(measure(s, failed));
    SPS_TRY(take_better(s, &count));
    if (count > 0) {
        SPS_TRY(measure(s, failed));
        SPS_TRY(take_better(s, &count));
    }
    SPS_TRY(clear_invalid(s));
fail:
    return st;
}
