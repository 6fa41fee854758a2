/* SPDX-License-Identifier: BSD-3-Clause */
/* gmres.c - restarted GMRES (Saad and Schultz, SISSC 7, 1986) for many
 * right-hand sides side by side: products with A and passes over the basis are
 * shared, each column has a Krylov space and a Hessenberg matrix of its own.
 * Right preconditioning; with option flexible the preconditioned vectors are
 * kept as well, so that M may change from step to step (Saad, SISC 14, 1993).
 *
 *     W = A M v_j;   twice: h = V'W, W -= V h;   v_(j+1) = W / ||W||;
 *     X += M V y  with  y = argmin || beta e_1 - H y ||.
 *
 * Classical Gram-Schmidt twice keeps V orthonormal to working precision
 * (Giraud et al., Numer. Math. 101, 2005) with two passes of block operations.
 *
 * X is brought up to date only when a cycle ends (flush); until then resnorm
 * is the residual of the least-squares problem.  The driver starts each cycle
 * from the true residual.
 *
 * The basis may be stored in floats (option basis; Aliaga et al., Int. J. High
 * Perform. Comput. Appl. 37, 2023): W, sums and products stay doubles, and the
 * product takes what was stored, so that A M v_j = V h holds up to the rounding
 * of v_(j+1) alone.  A cycle then ends where that would show.  Where one brings
 * nothing the next has its basis in doubles, whose room is taken then.
 *
 * Step j = 0 .. m-1 in n x k block reads and writes: SpMM 2, M 2,
 * orthogonalisation 4 (j + 1) + 6, v_(j+1) 2; a cycle of m = 50: 5,500 for
 * the orthogonalisation (floats: 2,900), 200 for the rest, and A m times. */
#include <float.h>
#include <math.h>

#include "basis.h"
#include "hessenberg.h"
#include "single.h"
#include "timer.h"

/* Of a basis in floats: a residual below this part of the cycle's first is
 * looked at. */
#define TRUST 1e-6

struct gmres {
    sps_basis *V;       /* m + 1 blocks */
    sps_basis *Z;       /* m blocks M v_j; flexible alone */
    sps_block *v;       /* v_j in doubles while V is in floats; or NULL */
    double *begun;      /* k: norms at the cycle's begin */
    sps_hessenberg h;
    sps_small *first, *again;   /* m x k: V'W of the two passes */
    double *below, *inverse;    /* k: norms of the new vectors, and 1 / them */
    bool *still;        /* k: the column's space is invariant, or empty */
    int m, j;           /* steps of a cycle, steps taken */
};

/* Whether M changes nothing but a factor, which drops out. */
static bool plain(const sps_solver *s)
{
    return !s->null && (!s->M || s->M->identity);
}

static bool floats(const struct gmres *m)
{
    return m->V->all->dtype == SPS_F32;
}

static sps_status setup(sps_solver *s, void *method)
{
    struct gmres *m = method;
    sps_status st = SPS_OK;
    int k = s->columns;

    m->m = s->n < s->opt.restart ? (int)s->n : s->opt.restart;
    if (m->m < 1) m->m = 1;
    SPS_TRY(spsi_basis_create(s->ctx, s->n, k, m->m + 1,
                              s->single ? SPS_F32 : SPS_F64, &m->V));
    spsi_solver_tell_floats(s, m->V->all);
    if (s->opt.flexible)
        SPS_TRY(spsi_basis_create(s->ctx, s->n, k, m->m, SPS_F64,
                                  &m->Z));
    if (s->single) SPS_TRY(sps_block_create(s->ctx, s->n, k, &m->v));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->begun));
    SPS_TRY(spsi_hessenberg_open(s->ctx, k, m->m, &m->h));
    SPS_TRY(spsi_small_create(s->ctx, m->m, k, &m->first));
    SPS_TRY(spsi_small_create(s->ctx, m->m, k, &m->again));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->below));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->inverse));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->still));
fail:
    return st;
}

/* Where v_l, or the W that is to become it, is worked on: its place in the
 * basis, or a block of doubles beside it. */
static void vector(const sps_solver *s, const struct gmres *m, int l,
                   sps_block *view)
{
    if (!floats(m)) spsi_basis_block(m->V, l, view);
    else spsi_block_view(m->v, 0, s->k, view);
}

/* A vector beside the basis goes there, and is what went there from now on. */
static sps_status store(struct gmres *m, int l, sps_block *v)
{
    sps_status st = SPS_OK;
    sps_block place;

    if (!floats(m)) return st;
    spsi_basis_block(m->V, l, &place);
    SPS_TRY(spsi_copy(v, &place));
    SPS_TRY(spsi_copy(&place, v));
fail:
    return st;
}

static sps_status start(sps_solver *s, void *method)
{
    struct gmres *m = method;
    sps_status st = SPS_OK;
    sps_block v;

    SPS_TRY(spsi_block_retype(m->V->all, s->floats ? SPS_F32 : SPS_F64));
    spsi_basis_narrow(m->V, s->k);
    if (m->Z) spsi_basis_narrow(m->Z, s->k);
    vector(s, m, 0, &v);
    SPS_TRY(spsi_norms(&s->R, m->below));
    for (int c = 0; c < s->k; c++) {
        m->still[c] = !(m->below[c] > 0);
        m->inverse[c] = m->still[c] ? 0 : 1 / m->below[c];
        m->begun[c] = m->below[c];
        spsi_hessenberg_start(&m->h, c, m->below[c]);
    }
    SPS_TRY(spsi_axpby_cols(m->inverse, &s->R, NULL, &v));
    SPS_TRY(store(m, 0, &v));
    m->j = 0;
    s->width = s->k;
fail:
    return st;
}

/* W = A M v_j. */
static sps_status multiply(sps_solver *s, struct gmres *m, sps_block *W)
{
    sps_status st = SPS_OK;
    const sps_block *z;
    sps_block v, room;

    vector(s, m, m->j, &v);
    if (m->Z) spsi_basis_block(m->Z, m->j, &room);
    else spsi_block_view(s->work[0], 0, s->k, &room);
    SPS_TRY(spsi_solver_direction(s, &v, &room, &z));
    SPS_TRY(spsi_solver_apply(s, z, W));
fail:
    return st;
}

/* Orthogonalises W against v_0 .. v_j: coefficients in first, norms of what is
 * left in below. */
static sps_status orthogonalise(sps_solver *s, struct gmres *m, sps_block *W)
{
    int count = m->j + 1;
    bool safe = true;
    sps_status st;

    SPS_TRY(spsi_basis_dots(m->V, count, W, m->first));
    SPS_TRY(spsi_basis_update(-1.0, m->V, count, m->first, true, W, NULL));
    SPS_TRY(spsi_basis_dots(m->V, count, W, m->again));
    SPS_TRY(spsi_basis_update(-1.0, m->V, count, m->again, true, W, m->below));
    for (int c = 0; c < s->k; c++) {
        for (int l = 0; l < count; l++)
            *spsi_small_at(m->first, l, c) += *spsi_small_at(m->again, l, c);
        /* Squares that left the range of doubles. */
        if (!m->still[c] && !(m->below[c] > 1e-280 && m->below[c] < 1e280))
            safe = false;
        m->below[c] = sqrt(m->below[c]);
    }
    if (!safe) SPS_TRY(spsi_norms(W, m->below));
fail:
    return st;
}

/* Takes the new column of each Hessenberg matrix.  A vector of which rounding
 * alone is left ends the column's space: it is invariant, and its solution the
 * last one ("happy breakdown") unless A is singular on it. */
static void take(sps_solver *s, struct gmres *m)
{
    for (int c = 0; c < s->k; c++) {
        const double *top = spsi_small_at(m->first, 0, c);
        double length = m->below[c];

        m->inverse[c] = 0;
        if (m->still[c]) continue;
        for (int l = 0; l <= m->j; l++) length = hypot(length, top[l]);
        if (!isfinite(length)) {
            s->stop = SPS_STOP_NOT_FINITE;
            continue;
        }
        if (m->below[c] <= 16 * DBL_EPSILON * length) m->below[c] = 0;
        m->still[c] = m->below[c] == 0;
        if (!m->still[c]) m->inverse[c] = 1 / m->below[c];
        s->resnorm[c] = spsi_hessenberg_append(&m->h, c, top, m->below[c]);
    }
}

/* Whether the cycle is over: no room, or no open column that can go on.  One
 * whose space ended short of its threshold says that A is singular. */
static void look_round(sps_solver *s, struct gmres *m)
{
    bool moving = false, stuck = false, lost = false;

    s->width = 0;
    for (int c = 0; c < s->k; c++) {
        if (s->done[c]) continue;
        s->width += !m->still[c];
        moving = moving || !m->still[c];
        lost = lost || (floats(m) && s->resnorm[c] <= TRUST * m->begun[c]);
        if (m->still[c] && s->resnorm[c] > s->threshold[s->column[c]])
            stuck = true;
    }
    if (!moving && stuck) s->stop = SPS_STOP_SINGULAR;
    if (!moving || lost || m->j == m->m) s->renew = true;
}

static sps_status step(sps_solver *s, void *method)
{
    struct gmres *m = method;
    sps_status st = SPS_OK;
    sps_block W, next;

    if (floats(m)) spsi_block_view(s->work[1], 0, s->k, &W);
    else spsi_basis_block(m->V, m->j + 1, &W);
    SPS_TRY(multiply(s, m, &W));
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = orthogonalise(s, m, &W);
    if (st == SPS_OK) take(s, m);
    if (st == SPS_OK && !s->stop) {
        vector(s, m, m->j + 1, &next);
        st = spsi_axpby_cols(m->inverse, &W, NULL, &next);
    }
    if (st == SPS_OK && !s->stop) st = store(m, m->j + 1, &next);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK) return st;
    m->j++;
    if (!s->stop) look_round(s, m);
fail:
    return st;
}

/* X += M V y. */
static sps_status flush(sps_solver *s, void *method)
{
    struct gmres *m = method;
    sps_small *Y = m->first;
    sps_block U, room;
    const sps_block *z;
    sps_status st = SPS_OK;
    int most = 0;

    for (int c = 0; c < s->k && m->j > 0; c++)
        if (m->h.size[c] > most) most = m->h.size[c];
    m->j = 0;
    if (most == 0) return SPS_OK;
    spsi_small_shape(Y, most, s->k);
    spsi_small_clear(Y);
    for (int c = 0; c < s->k; c++)
        SPS_TRY(spsi_hessenberg_solve(s->ctx, &m->h, c,
                                      spsi_small_at(Y, 0, c)));
    if (plain(s))
        return spsi_basis_update(1.0, m->V, most, Y, true, &s->X, NULL);
    if (m->Z)
        return spsi_basis_update(1.0, m->Z, most, Y, true, &s->X, NULL);
    spsi_block_view(s->work[1], 0, s->k, &U);
    spsi_block_view(s->work[0], 0, s->k, &room);
    SPS_TRY(spsi_basis_update(1.0, m->V, most, Y, false, &U, NULL));
    SPS_TRY(spsi_solver_direction(s, &U, &room, &z));
    SPS_TRY(spsi_axpby(1.0, z, 1.0, &s->X));
fail:
    return st;
}

static sps_status widen(sps_solver *s, void *method)
{
    struct gmres *m = method;

    (void)s;
    return spsi_block_widen(m->V->all);
}

static void destroy(sps_solver *s, void *method)
{
    struct gmres *m = method;

    spsi_basis_destroy(&m->V);
    spsi_basis_destroy(&m->Z);
    sps_block_destroy(&m->v);
    spsi_free(s->ctx, m->begun);
    spsi_hessenberg_close(s->ctx, &m->h);
    spsi_small_destroy(&m->first);
    spsi_small_destroy(&m->again);
    spsi_free(s->ctx, m->below);
    spsi_free(s->ctx, m->inverse);
    spsi_free(s->ctx, m->still);
}

SPS_DEFINE(sps_solver_type, spsi_solver_gmres) = {
    .name = "gmres",
    .size = sizeof(struct gmres),
    .blocks = 2,
    .setup = setup,
    .start = start,
    .step = step,
    .flush = flush,
    .widen = widen,
    .destroy = destroy,
};
