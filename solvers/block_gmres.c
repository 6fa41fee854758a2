/* SPDX-License-Identifier: BSD-3-Clause */
/* block_gmres.c - restarted block GMRES (Vital 1990; Simoncini and Gallopoulos,
 * Linear Algebra Appl. 247, 1996): all columns minimise over one block Krylov
 * space.  Right preconditioning; with option flexible the preconditioned
 * blocks are kept as well.
 *
 *     V_0 S = orth(R);   W = A M V_j;   twice: h = V'W, W -= V h;
 *     V_(j+1) S = orth(W);   X += M V Y,  Y = argmin || E_1 S - H Y ||.
 *
 * orth reveals the rank: directions below rank_tolerance, relative to their
 * block with unit columns, are left out, and the blocks get narrower (Robbe and
 * Sadkane, Linear Algebra Appl. 419, 2006).  What is left out makes the
 * residual of the least-squares problem wrong by as much; the driver starts
 * each cycle from the true one, and columns that are done leave then.
 *
 * The basis is one wide row-major block, so that V'W and W - V h are matrix
 * products.  A step in n x k block reads and writes, j blocks before it: SpMM
 * 2, M 2, orthogonalisation 4 (j + 1) + 6, orth 8. */
#include "solver.h"

#include <float.h>
#include <math.h>

#include "least_squares.h"
#include "timer.h"

/* Columns of the basis at most: the least-squares problem is solved on the
 * host, in their square. */
#define WIDEST 4096
/* Above this amplification of rounding a new block is made orthogonal to the
 * basis again. */
#define AMPLIFIED 1e2

struct block_gmres {
    sps_block *V;        /* n x (m + 1) k; the first `columns` are the basis */
    sps_block *Z;        /* M V; flexible alone */
    sps_least_squares q;
    sps_small *first, *again;   /* V'W of the two passes */
    sps_small *G, *T, *S;       /* k x k */
    sps_small *Y;
    double *before;      /* k: norms of A M v before the orthogonalisation */
    int m, j, columns;   /* columns: of V */
    bool pending;
};

static bool plain(const sps_solver *s)
{
    return !s->null && (!s->M || s->M->identity);
}

static sps_status setup(sps_solver *s, void *method)
{
    struct block_gmres *m = method;
    sps_status st = SPS_OK;
    int k = s->columns, most;
    sps_small **all[] = { &m->G, &m->T, &m->S };

    m->m = s->n < s->opt.restart ? (int)s->n : s->opt.restart;
    if (m->m > WIDEST / k) m->m = WIDEST / k;
    if (m->m < 1) m->m = 1;
    most = (m->m + 1) * k;
    SPS_TRY(spsi_block_create(s->ctx, s->n, most, SPS_F64, &m->V));
    if (s->opt.flexible)
        SPS_TRY(spsi_block_create(s->ctx, s->n, m->m * k, SPS_F64, &m->Z));
    SPS_TRY(spsi_reserve(s->ctx, s->n, (int)ceil(sqrt((double)most * k))));
    SPS_TRY(spsi_least_squares_open(s->ctx, most, m->m * k, k, &m->q));
    SPS_TRY(spsi_small_create(s->ctx, most, k, &m->first));
    SPS_TRY(spsi_small_create(s->ctx, most, k, &m->again));
    SPS_TRY(spsi_small_create(s->ctx, m->m * k, k, &m->Y));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        SPS_TRY(spsi_small_create(s->ctx, k, k, all[i]));
    SPS_TRY(SPS_NEW(s->ctx, k, &m->before));
fail:
    return st;
}

/* --- orth */

/* From G = W'W: T such that W T is orthonormal, columns that are rounding
 * alone taken for zero.  *growth: how much rounding of A M v the new columns
 * may carry. */
static sps_status make_transform(sps_solver *s, struct block_gmres *m,
                                 int *rank, double *growth)
{
    sps_status st = SPS_OK;
    double condition, sum;

    *rank = 0;
    *growth = 1;
    if (!spsi_small_finite(m->G)) {
        s->stop = SPS_STOP_NOT_FINITE;
        return SPS_OK;
    }
    for (int c = 0; c < m->G->cols; c++) {
        double *d = spsi_small_at(m->G, c, c);

        if (sqrt(*d) <= 16 * DBL_EPSILON * m->before[c]) *d = 0;
    }
    SPS_TRY(spsi_small_orthonormaliser(m->G, s->opt.rank_tolerance, m->T, rank,
                                       &condition));
    for (int i = 0; i < *rank; i++) {
        sum = 0;
        for (int c = 0; c < m->T->rows; c++)
            sum += fabs(*spsi_small_at(m->T, c, i)) * m->before[c];
        *growth = fmax(*growth, sum);
    }
fail:
    return st;
}

/* W -= V (V'W), coefficients in h (NULL: not wanted, m->again serves). */
static sps_status project(struct block_gmres *m, sps_small *h, sps_block *W)
{
    sps_block V;
    sps_status st = SPS_OK;

    if (m->columns == 0) return SPS_OK;
    spsi_block_view(m->V, 0, m->columns, &V);
    SPS_TRY(spsi_gram(&V, W, h));
    SPS_TRY(spsi_mul_small(-1.0, &V, h, 1.0, W));
fail:
    return st;
}

/* P = an orthonormal basis of the span of W, orthogonal to V as well; S = P'W.
 * P has no column when W is rounding alone. */
static sps_status orth(sps_solver *s, struct block_gmres *m, const sps_block *W,
                       sps_block *P)
{
    sps_status st = SPS_OK;
    double growth;
    int rank;

    SPS_TRY(spsi_gram(W, W, m->G));
    SPS_TRY(make_transform(s, m, &rank, &growth));
    spsi_block_narrow(P, rank);
    if (s->stop || rank == 0) return st;
    SPS_TRY(spsi_mul_small(1.0, W, m->T, 0.0, P));
    for (int pass = 0; pass < 2 && growth > AMPLIFIED && !s->stop; pass++) {
        sps_block narrow;

        SPS_TRY(project(m, m->again, P));
        for (int c = 0; c < P->k; c++) m->before[c] = 1;
        SPS_TRY(spsi_gram(P, P, m->G));
        SPS_TRY(make_transform(s, m, &rank, &growth));
        spsi_block_view(P, 0, rank, &narrow);
        if (rank) SPS_TRY(spsi_mul_small(1.0, P, m->T, 0.0, &narrow));
        spsi_block_narrow(P, rank);
    }
    if (!s->stop && P->k) SPS_TRY(spsi_gram(P, W, m->S));
fail:
    return st;
}

/* Puts the block P behind the basis. */
static sps_status append(struct block_gmres *m, const sps_block *P)
{
    sps_block place;
    sps_status st = SPS_OK;

    if (P->k == 0) return SPS_OK;
    spsi_block_view(m->V, m->columns, P->k, &place);
    SPS_TRY(spsi_copy(P, &place));
    m->columns += P->k;
fail:
    return st;
}

/* --- the method */

static sps_status start(sps_solver *s, void *method)
{
    struct block_gmres *m = method;
    sps_block *P = s->work[0];
    sps_status st = SPS_OK;

    m->j = m->columns = 0;
    m->pending = false;
    SPS_TRY(spsi_norms(&s->R, m->before));
    SPS_TRY(orth(s, m, &s->R, P));
    SPS_TRY(append(m, P));
    if (P->k == 0) spsi_small_shape(m->S, 0, s->k);
    spsi_least_squares_start(&m->q, m->S);
    s->width = P->k;
fail:
    return st;
}

/* W = A M P; what M P takes in the flexible form is kept. */
static sps_status multiply(sps_solver *s, struct block_gmres *m,
                           const sps_block *P, sps_block *W)
{
    sps_status st = SPS_OK;
    sps_block room, *work = s->work[2];
    const sps_block *z;

    spsi_block_narrow(work, P->k);
    spsi_block_narrow(W, P->k);
    SPS_TRY(spsi_solver_direction(s, P, work, &z));
    if (m->Z && z == work) {
        spsi_block_view(m->Z, m->q.columns, P->k, &room);
        SPS_TRY(spsi_copy(z, &room));
    }
    SPS_TRY(spsi_solver_apply(s, z, W));
fail:
    return st;
}

/* Orthogonalises W against the basis twice; first gets the coefficients. */
static sps_status orthogonalise(sps_solver *s, struct block_gmres *m,
                                sps_block *W)
{
    sps_status st = SPS_OK;

    SPS_TRY(project(m, m->first, W));
    SPS_TRY(project(m, m->again, W));
    SPS_TRY(spsi_norms(W, m->before));
    for (int c = 0; c < W->k; c++)
        for (int l = 0; l < m->columns; l++) {
            double *h = spsi_small_at(m->first, l, c);

            *h += *spsi_small_at(m->again, l, c);
            m->before[c] = hypot(m->before[c], *h);
        }
    if (!spsi_small_finite(m->first)) s->stop = SPS_STOP_NOT_FINITE;
fail:
    return st;
}

/* Whether the cycle is over; a space that is invariant and does not hold the
 * solution says that A is singular. */
static void look_round(sps_solver *s, struct block_gmres *m, int rank)
{
    bool stuck = false;

    for (int c = 0; c < s->k; c++) {
        s->resnorm[c] = spsi_least_squares_residual(&m->q, c);
        if (!s->done[c] && s->resnorm[c] > s->threshold[s->column[c]])
            stuck = true;
    }
    s->width = rank;
    if (rank == 0 && stuck) s->stop = SPS_STOP_SINGULAR;
    if (rank == 0 || m->j == m->m) s->renew = true;
}

static sps_status extend(sps_solver *s, struct block_gmres *m, sps_block *P,
                         sps_block *W)
{
    sps_status st = SPS_OK;

    SPS_TRY(orthogonalise(s, m, W));
    if (s->stop) return st;
    SPS_TRY(orth(s, m, W, P));
    if (s->stop) return st;
    if (P->k == 0) spsi_small_shape(m->S, 0, W->k);
    SPS_TRY(append(m, P));
fail:
    return st;
}

static sps_status step(sps_solver *s, void *method)
{
    struct block_gmres *m = method;
    sps_block *P = s->work[0], *W = s->work[1];
    sps_status st = SPS_OK;

    if (P->k == 0) {   /* the residual itself is rounding */
        s->stop = SPS_STOP_BREAKDOWN;
        return st;
    }
    SPS_TRY(multiply(s, m, P, W));
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = extend(s, m, P, W);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    if (st != SPS_OK || s->stop) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_SMALL);
    spsi_least_squares_append(&m->q, m->first, m->S);
    m->j++;
    m->pending = true;
    look_round(s, m, P->k);
    spsi_phase_end(s->ctx, SPS_PHASE_SMALL);
fail:
    return st;
}

/* X += M V Y. */
static sps_status flush(sps_solver *s, void *method)
{
    struct block_gmres *m = method;
    sps_block V, *U = s->work[1], *room = s->work[2];
    const sps_block *z;
    sps_status st = SPS_OK;

    if (!m->pending) return SPS_OK;
    m->pending = false;
    spsi_small_shape(m->Y, m->q.columns, s->k);
    spsi_least_squares_solve(&m->q, m->Y);
    spsi_block_view(plain(s) || !m->Z ? m->V : m->Z, 0, m->q.columns, &V);
    if (plain(s) || m->Z) return spsi_mul_small(1.0, &V, m->Y, 1.0, &s->X);
    spsi_block_narrow(U, s->k);
    spsi_block_narrow(room, s->k);
    SPS_TRY(spsi_mul_small(1.0, &V, m->Y, 0.0, U));
    SPS_TRY(spsi_solver_direction(s, U, room, &z));
    SPS_TRY(spsi_axpby(1.0, z, 1.0, &s->X));
fail:
    return st;
}

static void destroy(sps_solver *s, void *method)
{
    struct block_gmres *m = method;

    sps_block_destroy(&m->V);
    sps_block_destroy(&m->Z);
    spsi_least_squares_close(s->ctx, &m->q);
    spsi_small_destroy(&m->first);
    spsi_small_destroy(&m->again);
    spsi_small_destroy(&m->G);
    spsi_small_destroy(&m->T);
    spsi_small_destroy(&m->S);
    spsi_small_destroy(&m->Y);
    spsi_free(s->ctx, m->before);
}

SPS_DEFINE(sps_solver_type, spsi_solver_block_gmres) = {
    .name = "block_gmres",
    .size = sizeof(struct block_gmres),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .flush = flush,
    .destroy = destroy,
};
