/* SPDX-License-Identifier: BSD-3-Clause */
/* gmres.c - restarted GMRES (Saad and Schultz, SISSC 7, 1986) for many
 * right-hand sides at once: products with A and passes over the basis are
 * shared, each column has its own Krylov space and Hessenberg matrix.  The
 * preconditioner is applied from the right; with option flexible the
 * preconditioned vectors are stored as well, so that M may change from step to
 * step (Saad, SISC 14, 1993).
 *
 *     W = A M v_j;   twice: h = V'W, W -= V h;   v_(j+1) = W / ||W||;
 *     X += M V y  with  y = argmin || beta e_1 - H y ||.
 *
 * Classical Gram-Schmidt twice keeps V orthonormal to working precision (Giraud
 * et al., Numer. Math. 101, 2005) with two passes of block operations.
 *
 * X is updated only when a cycle ends (flush); until then resnorm is the
 * residual of the least-squares problem.  The driver starts each cycle from the
 * true residual.
 *
 * The basis may be stored in single precision (option precision; Aliaga et al.,
 * Int. J. High Perform. Comput. Appl. 37, 2023).  W, sums and products stay
 * in double precision, and the product uses the stored (rounded) vector, so
 * that A M v_j = V h holds up to the rounding of v_(j+1) only.  A cycle ends
 * before this rounding affects the residual.  After a cycle without progress
 * the basis is reallocated in double precision.
 *
 * Reads and writes of n x k blocks in step j = 0 .. m-1: SpMM 2, M 2,
 * orthogonalisation 4 (j + 1) + 6, v_(j+1) 2.  A cycle of m = 50 steps has
 * 5,500 for the orthogonalisation (basis in single precision: 2,900) and 200
 * for the rest, and reads A m times. */
#include <float.h>
#include <math.h>

#include "block/basis.h"
#include "solvers/hessenberg.h"
#include "block/single.h"
#include "core/timer.h"

/* A cycle with a basis in single precision ends, so that the true residual is
 * computed, once the residual of an open column is at most TRUST times that at
 * the start of the cycle. */
#define TRUST 1e-6

struct gmres {
    sps_basis *V;       /* m + 1 blocks */
    sps_basis *Z;       /* m blocks M v_j, with option flexible only */
    sps_block *v;       /* v_j in double precision if V is in single precision,
                           else NULL */
    double *begun;      /* k elements: residual norms at the start of the
                           cycle */
    sps_hessenberg h;
    sps_small *first, *again;   /* m x k: V'W of the two passes */
    double *below, *inverse;    /* k elements: norms of the new vectors, and
                                   their inverses */
    bool *frozen;       /* k elements: the Krylov space of the column is
                           invariant, or its residual was zero */
    int m, j;           /* largest number of steps of a cycle; steps made in
                           this cycle */
};

static bool floats(const struct gmres *m)
{
    return m->V->all->dtype == SPS_F32;
}

static sps_status setup(sps_linear *s, void *method)
{
    struct gmres *m = method;
    sps_owner *own = &s->made.own;
    sps_status st = SPS_OK;
    int k = s->columns;

    m->m = s->rows < s->opt.restart ? (int)s->rows : s->opt.restart;
    if (m->m < 1) m->m = 1;
    SPS_TRY(spsi_own_basis(own, s->n, k, m->m + 1,
                           s->method.single ? SPS_F32 : SPS_F64, &m->V));
    spsi_linear_note_single(s, m->V->all);
    if (s->opt.flexible)
        SPS_TRY(spsi_own_basis(own, s->n, k, m->m, SPS_F64, &m->Z));
    if (s->method.single) SPS_TRY(spsi_own_block(own, s->n, k, &m->v));
    SPS_TRY(SPS_OWN(own, k, &m->begun));
    SPS_TRY(spsi_hessenberg_open(own, k, m->m, &m->h));
    SPS_TRY(spsi_own_small(own, m->m, k, &m->first));
    SPS_TRY(spsi_own_small(own, m->m, k, &m->again));
    SPS_TRY(SPS_OWN(own, k, &m->below));
    SPS_TRY(SPS_OWN(own, k, &m->inverse));
    SPS_TRY(SPS_OWN(own, k, &m->frozen));
fail:
    return st;
}

/* *view = the storage of v_l, or of the W that becomes v_l: in the basis, or a
 * separate block in double precision. */
static void vector(const sps_linear *s, const struct gmres *m, int l,
                   sps_block *view)
{
    if (!floats(m)) spsi_basis_block(m->V, l, view);
    else spsi_block_view(m->v, 0, s->k, view);
}

/* Copies a separate vector to the basis, and the stored (rounded) vector
 * back. */
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

static sps_status start(sps_linear *s, void *method)
{
    struct gmres *m = method;
    sps_status st = SPS_OK;
    sps_block v;

    SPS_TRY(spsi_block_retype(m->V->all, s->method.floats ? SPS_F32 : SPS_F64));
    spsi_basis_narrow(m->V, s->k);
    if (m->Z) spsi_basis_narrow(m->Z, s->k);
    vector(s, m, 0, &v);
    SPS_TRY(spsi_norms(&s->R, m->below));
    for (int c = 0; c < s->k; c++) {
        m->frozen[c] = !(m->below[c] > 0);
        m->inverse[c] = m->frozen[c] ? 0 : 1 / m->below[c];
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
static sps_status multiply(sps_linear *s, struct gmres *m, sps_block *W)
{
    sps_block v, room;

    vector(s, m, m->j, &v);
    if (m->Z) spsi_basis_block(m->Z, m->j, &room);
    else spsi_block_view(s->work[0], 0, s->k, &room);
    return spsi_linear_multiply(s, &v, &room, W);
}

/* Orthogonalises W against v_0 .. v_j.  The coefficients are stored in
 * m->first, the norms of the result in m->below. */
static sps_status orthogonalise(sps_linear *s, struct gmres *m, sps_block *W)
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
        /* The square of the norm may have overflowed or underflowed: norms
         * are then computed again, with scaling. */
        if (!m->frozen[c] && !(m->below[c] > 1e-280 && m->below[c] < 1e280))
            safe = false;
        m->below[c] = sqrt(m->below[c]);
    }
    if (!safe) SPS_TRY(spsi_norms(W, m->below));
fail:
    return st;
}

/* Appends the new column to each Hessenberg matrix.  If the new vector is at
 * rounding level, the column's space is invariant and contains the solution
 * ("happy breakdown"), unless A is singular on it. */
static void take(sps_linear *s, struct gmres *m)
{
    for (int c = 0; c < s->k; c++) {
        const double *top = spsi_small_at(m->first, 0, c);
        double length = m->below[c];

        m->inverse[c] = 0;
        if (m->frozen[c]) continue;
        for (int l = 0; l <= m->j; l++) length = hypot(length, top[l]);
        if (!isfinite(length)) {
            s->stop = SPS_STOP_NOT_FINITE;
            continue;
        }
        if (m->below[c] <= 16 * DBL_EPSILON * length) m->below[c] = 0;
        m->frozen[c] = m->below[c] == 0;
        if (!m->frozen[c]) m->inverse[c] = 1 / m->below[c];
        s->resnorm[c] = spsi_hessenberg_append(&m->h, c, top, m->below[c]);
    }
}

/* Ends the cycle if the basis is full, or if no open column can continue.  If
 * an invariant space does not contain the solution, A is singular. */
static void finish_step(sps_linear *s, struct gmres *m)
{
    bool moving = false, stuck = false, lost = false;

    s->width = 0;
    for (int c = 0; c < s->k; c++) {
        if (s->at.done[c]) continue;
        s->width += !m->frozen[c];
        moving = moving || !m->frozen[c];
        lost = lost || (floats(m) && s->resnorm[c] <= TRUST * m->begun[c]);
        if (m->frozen[c] && s->resnorm[c] > s->rhs.threshold[s->at.column[c]])
            stuck = true;
    }
    if (!moving && stuck) s->stop = SPS_STOP_SINGULAR;
    if (!moving || lost || m->j == m->m) s->renew = true;
}

static sps_status step(sps_linear *s, void *method)
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
    if (!s->stop) finish_step(s, m);
fail:
    return st;
}

/* X += M V y. */
static sps_status flush(sps_linear *s, void *method)
{
    struct gmres *m = method;
    sps_small *Y = m->first;
    sps_block U, room;
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
    if (spsi_linear_plain(s))
        return spsi_basis_update(1.0, m->V, most, Y, true, &s->X, NULL);
    if (m->Z)
        return spsi_basis_update(1.0, m->Z, most, Y, true, &s->X, NULL);
    spsi_block_view(s->work[1], 0, s->k, &U);
    spsi_block_view(s->work[0], 0, s->k, &room);
    SPS_TRY(spsi_basis_update(1.0, m->V, most, Y, false, &U, NULL));
    SPS_TRY(spsi_linear_add(s, &U, &room));
fail:
    return st;
}

static sps_status widen(sps_linear *s, void *method)
{
    struct gmres *m = method;

    (void)s;
    return spsi_block_widen(m->V->all);
}

SPS_DEFINE(sps_linear_type, spsi_solver_gmres) = {
    .name = "gmres",
    .size = sizeof(struct gmres),
    .blocks = 2,
    .setup = setup,
    .start = start,
    .step = step,
    .flush = flush,
    .widen = widen,
};
