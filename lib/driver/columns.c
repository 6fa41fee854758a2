/* SPDX-License-Identifier: BSD-3-Clause */
/* columns.c - see columns.h. */
#include "driver/columns.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/fused_cg.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void spsi_columns_sort(double *x, int k)
{
    qsort(x, (size_t)k, sizeof *x, by_value);
}

sps_status spsi_linear_flush(sps_linear *s)
{
    const sps_linear_type *type = s->method.type;
    sps_status st = SPS_OK;

    if (s->course.begun < 0) return SPS_OK;
    if (type->settle) SPS_TRY(type->settle(s, s->method.data));
    if (type->flush) SPS_TRY(type->flush(s, s->method.data));
fail:
    return st;
}

/* ------------------------------------------------------------------ opening */

/* Clears the columns that are not iterated on because b = 0 or b is not finite,
 * and guesses that are not finite. */
static sps_status clear_columns(sps_linear *s, sps_block *X)
{
    sps_status st = SPS_OK;
    double *norm_x = s->scratch.numbers;
    bool bad_b, bad_x;

    SPS_TRY(spsi_norms(X, norm_x));
    for (int j = 0; j < s->columns; j++) {
        bad_b = !isfinite(s->rhs.norm[j]);
        bad_x = !isfinite(norm_x[j] * s->rhs.scale[j]);
        s->result.column[j] = bad_b ? SPS_STOP_NOT_FINITE : SPS_STOP_RUNNING;
        if (bad_b)
            spsi_note(s->ctx, "right-hand side %d is not finite; x = 0 is "
                      "returned for it", j + 1);
        else if (bad_x)
            spsi_note(s->ctx, "the initial guess in column %d %s; zero was "
                      "used", j + 1, isfinite(norm_x[j])
                      ? "exceeds the range of doubles when it is scaled like "
                        "its right-hand side" : "is not finite");
        if (bad_b || bad_x || s->rhs.norm[j] == 0) {
            SPS_TRY(spsi_columns_zero(X, j));
            norm_x[j] = 0;
        }
        s->rhs.norm_x[j] = norm_x[j] * s->rhs.scale[j];
    }
fail:
    return st;
}

/* Makes *V a block of n rows and k columns in the memory of work[i], with the
 * ld of a block of k columns. */
static void close_rows(const sps_linear *s, int i, int64_t n, int k,
                       sps_block *V)
{
    spsi_linear_room(s, i, n, k, V);
    if (spsi_block_ld(k) < V->ld) V->ld = spsi_block_ld(k);
}

/* Estimates s->made.norm_A with blocks of k columns. */
static sps_status estimate_norm(sps_linear *s, int k)
{
    double *numbers = s->scratch.numbers;
    sps_block V, W;

    close_rows(s, 0, s->n, k, &V);
    close_rows(s, 1, s->least.nrow, k, &W);
    if (s->least.T)
        return spsi_norm_estimate_pair(s->A, s->least.T, s->least.both, &V, &W,
                                       numbers, &s->made.norm_A);
    return spsi_norm_estimate(s->A, &V, &W, numbers, &s->made.norm_A);
}

/* Returns the number of columns for the estimate of the norm.  Each is a start
 * of its own, and the largest ratio counts; more columns hardly raise it and
 * cost six products each.  With a time limit there are two, so that more time
 * is left for iterations. */
static int columns_for_norm(const sps_linear *s)
{
    const int most = s->opt.max_seconds > 0 ? 2 : 4;

    return s->columns < most ? s->columns : most;
}

sps_status spsi_columns_open(sps_linear *s, const sps_block *B, sps_block *X)
{
    sps_status st = SPS_OK;

    s->k = s->columns;
    spsi_best_open(s);
    for (int j = 0; j < s->columns; j++) {
        s->at.column[j] = j;
        s->rhs.relative[j] = 0;
        s->rhs.scale[j] = 1;
        s->rhs.threshold[j] = 0;
        s->at.done[j] = false;
    }
    spsi_block_view(X, 0, s->columns, &s->X);
    spsi_block_view(s->scratch.residual, 0, s->columns, &s->R);
    SPS_TRY(estimate_norm(s, columns_for_norm(s)));
    SPS_TRY(spsi_rhs_open(s, B));
    SPS_TRY(clear_columns(s, X));
    s->course.zero = s->A->A && s->made.norm_A > 0 && isfinite(s->made.norm_A);
    for (int j = 0; j < s->columns; j++)
        s->course.zero = s->course.zero && s->rhs.norm_x[j] == 0;
    if (!s->course.zero) SPS_TRY(spsi_axpby_cols(s->rhs.scale, X, NULL, X));
    if (s->opt.norm == SPS_NORM_START) {
        SPS_TRY(spsi_columns_residual(s, &s->R, true));
        SPS_TRY(spsi_least_norms(s, &s->X, &s->R, s->rhs.norm_start));
    }
    SPS_TRY(spsi_columns_thresholds(s));
fail:
    return st;
}

/* ---------------------------------------------------------------- residuals */

/* Sets R to the active columns of B, scaled. */
static sps_status take_rhs(sps_linear *s, sps_block *R)
{
    sps_status st = SPS_OK;
    double *scale = s->scratch.numbers;
    bool straight = s->k == s->columns;

    for (int p = 0; p < s->k; p++) {
        scale[p] = s->made.null ? 1 : s->rhs.scale[s->at.column[p]];
        straight = straight && s->at.column[p] == p;
    }
    if (straight) {
        SPS_TRY(spsi_axpby_cols(scale, s->rhs.B, NULL, R));
    } else {
        SPS_TRY(spsi_gather(s->rhs.B, s->at.column, R));
        SPS_TRY(spsi_axpby_cols(scale, R, NULL, R));
    }
    for (int p = 0; p < s->k; p++)
        if (s->result.column[s->at.column[p]] == SPS_STOP_NOT_FINITE)
            SPS_TRY(spsi_columns_zero(R, p));
fail:
    return st;
}

sps_status spsi_columns_residual(sps_linear *s, sps_block *R, bool twofold)
{
    sps_status st = SPS_OK;
    sps_block room;

    SPS_TRY(take_rhs(s, R));
    if (s->course.zero) return SPS_OK;
    s->course.applies_A++;
    if (!twofold) return sps_operator_apply(s->A, -1.0, &s->X, 1.0, R);
    spsi_linear_room(s, 1, s->least.nrow, s->k, &room);
    return spsi_operator_twofold(s->A, &(sps_twofold_args){
        .X = &s->X, .W = R, .H = R }, &room);

fail:
    return st;
}

sps_status spsi_columns_true_norms(sps_linear *s, sps_block *R, double *norm)
{
    double *norm_x = s->scratch.numbers + s->columns;
    bool doubt = false;
    sps_status st;

    SPS_TRY(spsi_columns_residual(s, R, false));
    SPS_TRY(spsi_least_norms(s, &s->X, R, norm));
    /* Callbacks and matrices in single precision have no product in twice the
     * working precision. */
    if (s->A->callback.apply || s->A->dtype != SPS_F64) return st;
    SPS_TRY(spsi_norms(&s->X, norm_x));
    for (int p = 0; p < s->k; p++)
        doubt = doubt ||
                16 * DBL_EPSILON * s->made.norm_A * norm_x[p] > 0.01 * norm[p];
    if (!doubt) return st;
    SPS_TRY(spsi_columns_residual(s, R, true));
    SPS_TRY(spsi_least_norms(s, &s->X, R, norm));
fail:
    return st;
}

/* ---------------------------------------------------------------- the guess */

/* No column has been permuted yet: position j holds right-hand side j. */
sps_status spsi_columns_keep_guess(sps_linear *s)
{
    sps_block *guess = s->work[SPS_LINEAR_GUESS];

    spsi_block_narrow(guess, s->columns);
    return spsi_copy(&s->X, guess);
}

sps_status spsi_columns_guess(sps_linear *s)
{
    spsi_columns_widen(s);
    for (int p = 0; p < s->k; p++) s->resnorm[p] = INFINITY;
    return spsi_gather(s->work[SPS_LINEAR_GUESS], s->at.column, &s->X);
}

/* -------------------------------------------------------------------- order */

/* X(:, p) = X(:, from[p]) for the active columns. */
static sps_status reorder(sps_linear *s, const int *from, sps_block *X)
{
    sps_status st = SPS_OK;
    sps_block T;

    spsi_linear_room(s, 1, X->n, X->k, &T);
    SPS_TRY(spsi_gather(X, from, &T));
    SPS_TRY(spsi_copy(&T, X));
fail:
    return st;
}

/* Reorders the arrays indexed by position: element p becomes the one of
 * position from[p]. */
static void reorder_arrays(sps_linear *s, const int *from)
{
    int *column = s->at.order + s->columns;
    double *norm = s->scratch.numbers;
    bool *done = (bool *)(s->at.order + 2 * s->columns);

    for (int p = 0; p < s->k; p++) {
        column[p] = s->at.column[from[p]];
        norm[p] = s->resnorm[from[p]];
        done[p] = s->at.done[from[p]];
    }
    for (int p = 0; p < s->k; p++)
        s->scratch.numbers[s->columns + p] = s->least.normal[from[p]];
    memcpy(s->least.normal, s->scratch.numbers + s->columns,
           (size_t)s->k * sizeof *s->least.normal);
    memcpy(s->at.column, column, (size_t)s->k * sizeof *column);
    memcpy(s->resnorm, norm, (size_t)s->k * sizeof *norm);
    memcpy(s->at.done, done, (size_t)s->k * sizeof *done);
}

/* Delay of deflation.  With up to DELAYED block elements, queued iterations
 * (fused_cg.h) on a GPU are bound by latency.  Such an iteration spends about
 * 30 us of an H200 on launches and dependent reductions, whatever the width;
 * its 12 block passes need as long with 1.3 million elements (4.2 TB/s).
 * Deflating converged columns costs about 0.4 ms there: columns are moved, and
 * a step of the new width is recorded.  Converged columns are therefore kept
 * for DELAY more iterations, within which most solves end.  The memory traffic
 * of keeping them costs 0.2 ms with 2^20 elements and twice that with 2^21: by
 * the ski-rental rule (Karlin et al., Algorithmica 3, 1988) the total is at
 * most twice the optimal cost. */
#define DELAYED (INT64_C(1) << 21)
#define DELAY 16

_Static_assert(DELAY >= SPS_LINEAR_QUEUE, "deflation is delayed by at "
               "least one queue of iterations");

bool spsi_columns_latency(const sps_linear *s)
{
    const sps_linear_type *type = s->method.type;

    return s->ctx->backend->replay && type->queue && !type->flush &&
           s->columns <= SPS_FUSED_WIDEST && s->rows * s->columns <= DELAYED;
}

int spsi_columns_few(const sps_linear *s)
{
    /* Methods that have flush and no permute deflate at the end of a cycle. */
    if (s->method.type->flush && !s->method.type->permute) return 0;
    return spsi_columns_latency(s) ? s->k / 4 : 3 * s->k / 4;
}

bool spsi_linear_frozen(sps_linear *s, const bool *frozen)
{
    bool stuck = false;

    s->width = 0;
    for (int p = 0; p < s->k; p++) {
        if (s->at.done[p]) continue;
        s->width += !frozen[p];
        if (s->resnorm[p] > s->rhs.threshold[s->at.column[p]]) stuck = true;
    }
    if (s->width) return false;
    s->renew = true;
    return stuck;
}

void spsi_columns_track(sps_linear *s, int open)
{
    if (open == s->k || open > spsi_columns_few(s)) s->at.few_since = -1;
    else if (s->at.few_since < 0) s->at.few_since = s->course.iteration;
}

int spsi_columns_delay(const sps_linear *s)
{
    if (s->at.few_since < 0 || !spsi_columns_latency(s)) return 0;
    return s->at.few_since + DELAY - s->course.iteration;
}

sps_status spsi_columns_compact(sps_linear *s, bool forced)
{
    const sps_linear_type *type = s->method.type;
    sps_status st = SPS_OK;
    int *from = s->at.order, open = 0, at;
    bool moved = false;

    for (int p = 0; p < s->k; p++) open += !s->at.done[p];
    if (open == s->k || open == 0) return SPS_OK;
    if (!forced && open > spsi_columns_few(s)) return SPS_OK;
    if (!forced && spsi_columns_delay(s) > 0) return SPS_OK;
    s->at.few_since = -1;
    if (!forced) SPS_TRY(spsi_linear_flush(s));
    at = open;
    open = 0;
    for (int p = 0; p < s->k; p++) from[s->at.done[p] ? at++ : open++] = p;
    for (int p = 0; p < s->k; p++) moved = moved || from[p] != p;
    if (moved) {
        SPS_TRY(reorder(s, from, &s->X));
        SPS_TRY(reorder(s, from, &s->R));
        reorder_arrays(s, from);
    }
    s->k = open;
    spsi_block_narrow(&s->X, open);
    spsi_block_narrow(&s->R, open);
    if (!forced && type->permute)
        SPS_TRY(type->permute(s, s->method.data, from, open));
fail:
    return st;
}

void spsi_columns_widen(sps_linear *s)
{
    s->k = s->columns;
    spsi_block_narrow(&s->X, s->columns);
    spsi_block_narrow(&s->R, s->columns);
}

/* ------------------------------------------------------------------ closing */

/* Called after a callback failed in the middle of a step.  If the method can
 * still bring X up to date, the gap to the true residual is added to resnorm;
 * otherwise resnorm becomes infinite, since X has another residual. */
static void restore_norms(sps_linear *s)
{
    bool behind = spsi_linear_flush(s) != SPS_OK;

    for (int p = 0; p < s->columns; p++)
        s->resnorm[p] = behind ? INFINITY
                               : s->resnorm[p] + s->best.gap[s->at.column[p]];
}

/* Adds a note about solutions that are not finite although b is; *all: whether
 * that is so for every column. */
static void note_overflow(sps_linear *s, const bool *fit, bool *all)
{
    *all = true;
    for (int p = 0; p < s->columns; p++) {
        if (fit[p]) continue;
        *all = false;
        s->result.column[s->at.column[p]] = SPS_STOP_NOT_FINITE;
        spsi_note(s->ctx, "the solution of column %d is not finite in "
                  "doubles; the best iterate that is finite is returned",
                  s->at.column[p] + 1);
    }
}

sps_status spsi_columns_close(sps_linear *s, sps_block *X, bool failed)
{
    sps_status st = SPS_OK, asked = SPS_OK;
    double *unscale = s->scratch.numbers;
    int *where = s->at.order;
    bool moved = false, fit[SPS_BLOCK_MAX], all;

    /* The caller's functions may fail here, too; the stored columns, their
     * order and scale can be restored without them. */
    if (failed) restore_norms(s);
    spsi_columns_widen(s);
    SPS_TRY(spsi_best_fits(s, &s->X, fit));
    note_overflow(s, fit, &all);
    if (!all || s->stop != SPS_STOP_CONVERGED)
        asked = spsi_best_restore(s, failed);
    if (asked != SPS_OK) SPS_TRY(spsi_best_restore(s, true));
    for (int p = 0; p < s->k; p++) {
        where[s->at.column[p]] = p;
        moved = moved || s->at.column[p] != p;
    }
    if (moved) SPS_TRY(reorder(s, where, &s->X));
    for (int j = 0; j < s->columns; j++) unscale[j] = 1 / s->rhs.scale[j];
    SPS_TRY(spsi_axpby_cols(unscale, X, NULL, X));
    if (!all || s->stop != SPS_STOP_CONVERGED)   /* otherwise X has been
                                                    projected already */
        SPS_TRY(spsi_nullspace_project(s->made.null, X));
    return asked;

fail:
    return st;
}
