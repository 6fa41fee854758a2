/* SPDX-License-Identifier: BSD-3-Clause */
/* auto_least.c - solver auto for least squares: lsmr, and where it does not
 * converge soon, dense factors.
 *
 * lsmr takes as many steps as conjugate gradients on A'A: of an ill-conditioned
 * or numerically deficient A too many.  If A is small enough, it therefore gets
 * as many steps as take about the time of dense factors, so that the whole
 * takes at most some twice the time of the faster one.  These are QR factors
 * with column pivoting, which reveal the rank, by LAPACKE_dgelsy:
 *
 *     X += S^+ R,    S = [A; d I],  R = [B; 0] - S X,
 *
 * repeated, as refinement, while a step halves what is measured.  S^+ R lies in
 * the range of S', as do the steps of lsmr: from the guess 0 X is the solution
 * of least norm, from another one the nearest to it.
 *
 * Times are counts times the rates of core/rates.h, so that the choice
 * repeats. */
#include "solvers/auto/chain.h"

#include <math.h>
#include <string.h>

#include "core/timer.h"
#include "driver/columns.h"
#include "operator/operator_matrix.h"

/* Seconds and bytes that dense factors may take; the least number of steps of
 * lsmr before them. */
#define MOST_SECONDS 30
#define MOST_BYTES 0x1p30
enum { LEAST_STEPS = 50 };
/* What is below CUT rtol ||S|| in the factors counts as zero: so the second
 * rule of normal.c holds, and x stays short.  (Singular values of this size
 * would give an x whose rounding alone breaks it.) */
#define CUT 0.0625

struct dense {
    sps_small *S;             /* S, then its factors */
    double *B;                /* R, then S^+ R; column-major */
    double *next;             /* norms of the columns of R */
    int32_t *order;           /* of the columns of S */
};

/* ------------------------------------------------------------ predictions */

static double dense_rows(const sps_operator *A, const sps_options *o)
{
    return (double)A->n + (o->damp > 0 ? (double)A->ncol : 0);
}

static double dense_seconds(const sps_operator *A, const sps_options *o)
{
    const double m = dense_rows(A, o), n = (double)A->ncol;
    const double few = fmin(m, n);

    return fmax(m, n) * few * few / A->ctx->machine.core.dense_factor;
}

/* Returns the bytes of S and B. */
static double dense_bytes(const sps_operator *A, const sps_options *o, int k)
{
    const double m = dense_rows(A, o), n = (double)A->ncol;

    return 8 * (m * n + fmax(m, n) * k);
}

/* A step of lsmr reads A twice and moves 3 M + 13 N numbers of each column. */
static double step_seconds(const sps_operator *A, int k)
{
    const sps_core *c = &A->ctx->machine.core;

    return c->iteration + (24 * (double)A->A->nnz + 8.0 * k *
           (3 * (double)A->n + 13 * (double)A->ncol)) / c->copy;
}

/* A scaling of the columns changes which solution has the least norm. */
static bool possible(const sps_linear_args *a)
{
    const sps_operator *A = a->A;
    const sps_options *o = a->opt;

    return A->A && !A->ranks && !a->M && A->n > 0 && A->ncol > 0 &&
           !strcmp(o->dense, "auto") && o->norm != SPS_NORM_START &&
           (!strcmp(o->precond, "auto") || !strcmp(o->precond, "none")) &&
           dense_seconds(A, o) <= MOST_SECONDS &&
           dense_bytes(A, o, a->k) <= MOST_BYTES;
}

/* Counts the memory of the factors, which are not computed.  If there is too
 * little, they will not be either. */
static void foresee(const sps_linear_args *a)
{
    sps_context *ctx = a->A->ctx;
    const size_t bytes = (size_t)dense_bytes(a->A, a->opt, a->k);

    if (spsi_claim(ctx, bytes, "dense factors") == SPS_OK)
        spsi_unclaim(ctx, bytes);
}

/* ----------------------------------------------------------- dense factors */

/* Called when lsmr has had its steps: what there is no time or no memory for
 * is not begun. */
static sps_status setup(sps_linear *s, void *method)
{
    struct dense *m = method;
    const int rows = (int)dense_rows(s->A, &s->opt), cols = (int)s->n;
    const int most = rows > cols ? rows : cols;
    const double left = s->opt.max_seconds - s->made.setup -
                        (spsi_agreed_now(s->ctx) - s->course.started);
    sps_status st;

    SPS_REQUIRE(s->ctx, s->opt.max_seconds <= 0 ||
                dense_seconds(s->A, &s->opt) <= left, SPS_EUNFIT,
                "dense factors are predicted to take longer than the time "
                "that is left");
    SPS_TRY(spsi_operator_fetch(s->A));
    SPS_TRY(SPS_OWN(&s->made.own, s->columns, &m->next));
    SPS_TRY(SPS_OWN(&s->made.own, cols, &m->order));
    SPS_TRY(SPS_OWN(&s->made.own, (int64_t)most * s->columns, &m->B));
    SPS_TRY(spsi_own_small(&s->made.own, rows, cols, &m->S));
fail:
    return st;
}

static void load(const sps_linear *s, sps_small *S)
{
    const sps_csr *A = s->A->A;
    const int n = (int)s->n, rows = (int)dense_rows(s->A, &s->opt);

    spsi_small_shape(S, rows, n);
    spsi_small_clear(S);
    for (int64_t i = 0; i < A->nrow; i++)
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
            *spsi_small_at(S, (int)i, A->col[p]) += spsi_csr_value(A, p);
    for (int j = 0; j < n && s->opt.damp > 0; j++)
        *spsi_small_at(S, (int)A->nrow + j, j) = s->opt.damp;
}

/* B = [R; -d X]. */
static sps_status fetch(const sps_linear *s, double *B, int64_t ld)
{
    sps_status st;

    memset(B, 0, (size_t)(ld * s->k) * sizeof *B);
    SPS_TRY(sps_block_get(&s->R, 0, s->k, B, ld, SPS_COL_MAJOR, SPS_HOST));
    if (s->opt.damp == 0) return st;
    SPS_TRY(sps_block_get(&s->X, 0, s->k, B + s->least.nrow, ld, SPS_COL_MAJOR,
                          SPS_HOST));
    for (int j = 0; j < s->k; j++)
        for (int64_t i = 0; i < s->n; i++)
            B[j * ld + s->least.nrow + i] *= -s->opt.damp;
fail:
    return st;
}

/* T = X + S^+ R. */
static sps_status correct(sps_linear *s, struct dense *m, sps_block *T)
{
    const int rows = (int)dense_rows(s->A, &s->opt), cols = (int)s->n;
    const int ld = rows > cols ? rows : cols;
    int rank = 0;
    sps_status st;

    load(s, m->S);
    SPS_TRY(fetch(s, m->B, ld));
    SPS_TRY(spsi_small_least_squares(m->S, m->B, ld, s->k, CUT * s->opt.rtol,
                                     m->order, &rank));
    if (rank < 0) s->stop = SPS_STOP_NOT_FINITE;
    if (s->stop) return st;
    spsi_note(s->ctx, "auto: dense QR factors with column pivoting: rank %d of "
              "the %d x %d matrix", rank, rows, cols);
    SPS_TRY(sps_block_set(T, 0, s->k, m->B, ld, SPS_COL_MAJOR, SPS_HOST));
    SPS_TRY(spsi_axpby(1.0, &s->X, 1.0, T));
fail:
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    (void)method;
    s->width = s->k;
    return spsi_least_normal(s, &s->X, NULL, &s->R, s->least.normal);
}

/* R = B - A T with the norms of both rules. */
static sps_status measure(sps_linear *s, struct dense *m, const sps_block *T)
{
    const sps_block X = s->X;
    sps_status st;

    s->X = *T;
    st = spsi_columns_true_norms(s, &s->R, m->next);
    if (st == SPS_OK)
        st = spsi_least_normal(s, T, NULL, &s->R, s->least.normal);
    s->X = X;
    return st;
}

/* ||r|| of a later X is the smaller one but for rounding, which best.c knows:
 * T is taken as it is.  A step that halves nothing is the last one. */
static sps_status step(sps_linear *s, void *method)
{
    struct dense *m = method;
    double before[SPS_BLOCK_MAX];
    sps_block T;
    sps_status st;

    for (int p = 0; p < s->k; p++) before[p] = spsi_least_level(s, p);
    spsi_linear_room(s, 0, s->n, s->k, &T);
    SPS_TRY(correct(s, m, &T));
    if (s->stop) return st;
    SPS_TRY(measure(s, m, &T));
    SPS_TRY(spsi_best_update(s, m->next));
    if (s->stop) return st;
    SPS_TRY(spsi_copy(&T, &s->X));
    for (int p = 0; p < s->k; p++)
        if (!s->at.done[p] && !(spsi_least_level(s, p) <= 0.5 * before[p]))
            s->stop = SPS_STOP_STAGNATED;
fail:
    return st;
}

/* This method cannot be chosen by name: it has neither limits nor progress. */
static const sps_linear_type dense = {
    .name = "dense_qr", .needs = SPS_LEAST_SQUARES,
    .size = sizeof(struct dense), .blocks = 2,
    .setup = setup, .start = start, .step = step,
};

sps_status spsi_auto_least(const sps_linear_args *a, sps_linear **s_p)
{
    sps_linear_args chosen = *a;
    sps_status st;

    if (!possible(a)) return spsi_linear_named(a, "lsmr", s_p);
    chosen.type = spsi_linear_type("lsmr");
    chosen.fallback = &dense;
    chosen.trial = (int)fmin(1e9, fmax(LEAST_STEPS,
                                       dense_seconds(a->A, a->opt) /
                                       step_seconds(a->A, a->k)));
    st = spsi_linear_create(&chosen, s_p);
    if (st == SPS_OK && !strcmp(a->opt->factors, "predict")) foresee(a);
    return st;
}
