/* SPDX-License-Identifier: BSD-3-Clause */
/* arnoldi.c - block Arnoldi with deflation (formulas in arnoldi.h). */
#include "solvers/arnoldi.h"

#include <float.h>
#include <math.h>

#include "block/single.h"
#include "core/timer.h"

/* A new block is orthogonalised against the basis again if *growth of
 * make_transform exceeds this. */
#define AMPLIFIED 1e2
/* A cycle with a basis in single precision ends, so that the true residual is
 * computed, once the residual of an open column is at most TRUST times that at
 * the start of the cycle. */
#define TRUST 1e-6

static bool single(const sps_arnoldi *a) { return a->V->dtype == SPS_F32; }

sps_status spsi_arnoldi_open(sps_linear *s, int columns, bool floats,
                             sps_arnoldi *a)
{
    int k = s->columns;
    const bool fit = k > 1 && k <= SPS_SINGLE_WIDEST;
    sps_small **square[] = { &a->G, &a->T, &a->S };
    sps_owner *own = &s->made.own;
    sps_status st;

    s->method.single = floats && fit;
    if (floats && !fit)
        spsi_note(s->ctx, "%s: the basis is in double precision, since single "
                  "precision supports 2 to %d right-hand sides",
                  s->method.type->name, SPS_SINGLE_WIDEST);
    SPS_TRY(spsi_own_block_of(own, s->n, columns,
                              s->method.single ? SPS_F32 : SPS_F64, &a->V));
    spsi_linear_note_single(s, a->V);
    SPS_TRY(spsi_reserve(s->ctx, s->n, (int)ceil(sqrt((double)columns * k))));
    SPS_TRY(spsi_own_small(own, columns, k, &a->h));
    SPS_TRY(spsi_own_small(own, columns, k, &a->again));
    for (size_t i = 0; i < sizeof square / sizeof *square; i++)
        SPS_TRY(spsi_own_small(own, k, k, square[i]));
    SPS_TRY(SPS_OWN(own, k, &a->before));
    SPS_TRY(SPS_OWN(own, k, &a->begun));
fail:
    return st;
}

/* Computes from G = W'W a T such that W T is orthonormal; columns of W at
 * rounding level, relative to a->before, are dropped.  *growth is the largest
 * of 1 and sum_c |T_ci| before_c over i, a bound of the factor by which the
 * rounding errors of W are amplified in column i of W T. */
static sps_status make_transform(sps_linear *s, sps_arnoldi *a, int *rank,
                                 double *growth)
{
    sps_status st = SPS_OK;
    double condition, sum;

    *rank = 0;
    *growth = 1;
    if (!spsi_small_finite(a->G)) {
        s->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    for (int c = 0; c < a->G->cols; c++) {
        double *d = spsi_small_at(a->G, c, c);

        if (sqrt(*d) <= 16 * DBL_EPSILON * a->before[c]) *d = 0;
    }
    SPS_TRY(spsi_small_orthonormaliser(a->G, s->opt.rank_tolerance, a->T, rank,
                                       &condition));
    for (int i = 0; i < *rank; i++) {
        sum = 0;
        for (int c = 0; c < a->T->rows; c++)
            sum += fabs(*spsi_small_at(a->T, c, i)) * a->before[c];
        *growth = fmax(*growth, sum);
    }
fail:
    return st;
}

/* h = V'W, W -= V h. */
static sps_status project(sps_arnoldi *a, sps_small *h, sps_block *W)
{
    sps_block V;
    sps_status st = SPS_OK;

    spsi_small_shape(h, a->last - a->first, W->k);
    if (a->last == a->first) return SPS_OK;
    spsi_block_view(a->V, a->first, a->last - a->first, &V);
    SPS_TRY(spsi_gram(&V, W, h));
    SPS_TRY(spsi_mul_small(-1.0, &V, h, 1.0, W));
fail:
    return st;
}

/* P = an orthonormal basis of the span of W, orthogonal to V as well; S = P'W.
 * a->before contains the norms of W before it was orthogonalised against V. */
static sps_status orth(sps_linear *s, sps_arnoldi *a, const sps_block *W,
                       sps_block *P)
{
    sps_status st = SPS_OK;
    sps_block narrow;
    double growth;
    int rank;

    spsi_small_shape(a->S, 0, W->k);
    SPS_TRY(spsi_gram(W, W, a->G));
    SPS_TRY(make_transform(s, a, &rank, &growth));
    spsi_block_narrow(P, rank);
    if (s->stop || rank == 0) return st;
    SPS_TRY(spsi_mul_small(1.0, W, a->T, 0.0, P));
    for (int pass = 0; pass < 2 && growth > AMPLIFIED && P->k; pass++) {
        SPS_TRY(project(a, a->again, P));
        for (int c = 0; c < P->k; c++) a->before[c] = 1;
        SPS_TRY(spsi_gram(P, P, a->G));
        SPS_TRY(make_transform(s, a, &rank, &growth));
        if (s->stop) return st;
        spsi_block_view(P, 0, rank, &narrow);
        if (rank) SPS_TRY(spsi_mul_small(1.0, P, a->T, 0.0, &narrow));
        spsi_block_narrow(P, rank);
    }
    if (P->k) SPS_TRY(spsi_gram(P, W, a->S));
fail:
    return st;
}

static sps_status append(sps_arnoldi *a, sps_block *P)
{
    sps_block place;
    sps_status st = SPS_OK;

    if (P->k == 0) return SPS_OK;
    spsi_block_view(a->V, a->last, P->k, &place);
    SPS_TRY(spsi_copy(P, &place));
    if (single(a)) SPS_TRY(spsi_copy(&place, P));
    a->last += P->k;
fail:
    return st;
}

sps_status spsi_arnoldi_start(sps_linear *s, sps_arnoldi *a, int first,
                              int last, const sps_block *R, sps_block *P)
{
    sps_status st;

    SPS_TRY(spsi_block_retype(a->V, s->method.floats ? SPS_F32 : SPS_F64));
    a->first = first;
    a->last = last;
    SPS_TRY(spsi_norms(R, a->before));
    for (int c = 0; c < R->k; c++) a->begun[c] = a->before[c];
    SPS_TRY(orth(s, a, R, P));
    if (!s->stop) SPS_TRY(append(a, P));
fail:
    return st;
}

/* h += again, both of `rows` elements; returns the norm of h with one more
 * element, `below`, at its end. */
static double add_column(double below, int rows, double *restrict h,
                         const double *restrict again)
{
    double sum = below * below;

#pragma omp simd reduction(+ : sum)
    for (int l = 0; l < rows; l++) {
        h[l] += again[l];
        sum += h[l] * h[l];
    }
    if (sum > 1e-280 && sum < 1e280) return sqrt(sum);
    for (int l = 0; l < rows; l++) below = hypot(below, h[l]);
    return below;
}

sps_status spsi_arnoldi_extend(sps_linear *s, sps_arnoldi *a, sps_block *W,
                               sps_block *P)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    SPS_TRY(project(a, a->h, W));
    SPS_TRY(project(a, a->again, W));
    SPS_TRY(spsi_norms(W, a->before));
    for (int c = 0; c < W->k && a->h->rows; c++)
        a->before[c] = add_column(a->before[c], a->h->rows,
                                  spsi_small_at(a->h, 0, c),
                                  spsi_small_at(a->again, 0, c));
    if (!spsi_small_finite(a->h)) s->stop = SPS_STOP_NOT_FINITE;
    if (!s->stop) SPS_TRY(orth(s, a, W, P));
    if (!s->stop) SPS_TRY(append(a, P));
fail:
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    return st;
}

void spsi_arnoldi_finish_step(sps_linear *s, const sps_arnoldi *a,
                              const sps_least_squares *q, int rank, bool full)
{
    bool stuck = false, lost = false;

    for (int c = 0; c < s->k; c++) {
        s->resnorm[c] = spsi_least_squares_residual(q, c);
        if (s->at.done[c]) continue;
        stuck = stuck || s->resnorm[c] > s->rhs.threshold[s->at.column[c]];
        lost = lost || (single(a) && s->resnorm[c] <= TRUST * a->begun[c]);
    }
    s->width = rank;
    if (rank == 0 && stuck) s->stop = SPS_STOP_SINGULAR;
    s->renew = rank == 0 || full || lost;
}
