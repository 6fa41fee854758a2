/* SPDX-License-Identifier: BSD-3-Clause */
/* block_gmres.c - restarted block GMRES (Vital 1990; Simoncini and Gallopoulos,
 * Linear Algebra Appl. 247, 1996): all columns minimise over one block Krylov
 * space.  The preconditioner is applied from the right; with option flexible
 * the preconditioned blocks are stored as well.
 *
 *     V_0 S = orth(R);   W = A M V_j;   V_(j+1) by block Arnoldi (arnoldi.h);
 *     X += M V Y,  Y = argmin || E_1 S - H Y ||.
 *
 * A block becomes narrower where its columns are linearly dependent.  The
 * residual of the least-squares problem lacks the parts that were dropped; the
 * driver starts each cycle from the true residual, and converged columns are
 * deflated then.
 *
 * The basis may be stored in single precision (option precision), as in gmres.
 *
 * n x k block reads and writes of a step, if the basis has j blocks before it:
 * SpMM 2, M 2, orthogonalisation 4 (j + 1) + 6 (basis in single precision: 2 (j
 * + 1) + 6), orth 8; and 4 n (j + 1) k^2 multiply-adds. */
#include "solvers/arnoldi.h"
#include "block/single.h"
#include "core/timer.h"

/* Largest number of columns of the basis: the least-squares problem is solved
 * on the host, in O(rows columns) operations for each new column. */
#define WIDEST 4096

struct block_gmres {
    sps_arnoldi a;
    sps_block *Z;        /* M V, with option flexible only */
    sps_least_squares q;
    sps_small *Y;
    int m, j;            /* m: number of steps of a cycle; j: steps of this
                            cycle so far */
};

static sps_status setup(sps_linear *s, void *method)
{
    struct block_gmres *m = method;
    sps_owner *own = &s->made.own;
    sps_status st = SPS_OK;
    int k = s->columns, most;

    m->m = s->rows < s->opt.restart ? (int)s->rows : s->opt.restart;
    if (m->m > WIDEST / k) m->m = WIDEST / k;
    if (m->m < 1) m->m = 1;
    most = (m->m + 1) * k;
    SPS_TRY(spsi_arnoldi_open(s, most, s->method.single, &m->a));
    if (s->opt.flexible)
        SPS_TRY(spsi_own_block_of(own, s->n, m->m * k, SPS_F64, &m->Z));
    SPS_TRY(spsi_least_squares_open(own, most, m->m * k, k, &m->q));
    SPS_TRY(spsi_own_small(own, m->m * k, k, &m->Y));
fail:
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    struct block_gmres *m = method;
    sps_block *P = s->work[0];
    sps_status st = SPS_OK;

    m->j = 0;
    SPS_TRY(spsi_arnoldi_start(s, &m->a, 0, 0, &s->R, P));
    spsi_least_squares_start(&m->q, m->a.S);
    s->width = P->k;
fail:
    return st;
}

/* W = A M P; with option flexible M P is stored. */
static sps_status multiply(sps_linear *s, struct block_gmres *m,
                           const sps_block *P, sps_block *W)
{
    sps_status st = SPS_OK;
    sps_block room, *work = s->work[2];
    const sps_block *z;

    spsi_block_narrow(work, P->k);
    spsi_block_narrow(W, P->k);
    SPS_TRY(spsi_linear_direction(s, P, work, &z));
    if (m->Z && z == work) {
        spsi_block_view(m->Z, m->q.columns, P->k, &room);
        SPS_TRY(spsi_copy(z, &room));
    }
    SPS_TRY(spsi_linear_apply(s, z, W));
fail:
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct block_gmres *m = method;
    sps_block *P = s->work[0], *W = s->work[1];
    sps_status st = SPS_OK;

    /* No column of P is left: the residual is at rounding level. */
    if (P->k == 0) {
        s->stop = SPS_STOP_BREAKDOWN;
        return st;
    }
    SPS_TRY(multiply(s, m, P, W));
    SPS_TRY(spsi_arnoldi_extend(s, &m->a, W, P));
    if (s->stop) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_SMALL);
    spsi_least_squares_append(&m->q, m->a.h, 0, m->a.S);
    m->j++;
    spsi_arnoldi_finish_step(s, &m->a, &m->q, P->k, m->j == m->m);
    spsi_phase_end(s->ctx, SPS_PHASE_SMALL);
fail:
    return st;
}

/* X += M V Y. */
static sps_status flush(sps_linear *s, void *method)
{
    struct block_gmres *m = method;
    const bool plain = spsi_linear_plain(s);
    sps_block V, *U = s->work[1], *room = s->work[2];
    sps_status st = SPS_OK;

    if (m->j == 0) return SPS_OK;
    m->j = 0;
    spsi_small_shape(m->Y, m->q.columns, s->k);
    SPS_TRY(spsi_least_squares_solve(&m->q, m->Y));
    spsi_block_view(plain || !m->Z ? m->a.V : m->Z, 0, m->q.columns, &V);
    if (plain || m->Z) return spsi_mul_small(1.0, &V, m->Y, 1.0, &s->X);
    spsi_block_narrow(U, s->k);
    spsi_block_narrow(room, s->k);
    SPS_TRY(spsi_mul_small(1.0, &V, m->Y, 0.0, U));
    SPS_TRY(spsi_linear_add(s, U, room));
fail:
    return st;
}

static sps_status widen(sps_linear *s, void *method)
{
    struct block_gmres *m = method;

    (void)s;
    return spsi_block_widen(m->a.V);
}

SPS_DEFINE(sps_linear_type, spsi_solver_block_gmres) = {
    .name = "block_gmres",
    .size = sizeof(struct block_gmres),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .flush = flush,
    .widen = widen,
};
