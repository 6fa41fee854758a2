/* SPDX-License-Identifier: BSD-3-Clause */
/* cg.c - conjugate gradients (Hestenes and Stiefel 1952) for many right-hand
 * sides at once: one shared SpMM, scalars by column.
 *
 *     Q = A P;  a_j = r_j'z_j / p_j'q_j;  X += P diag(a);  R -= Q diag(a);
 *     Z = M R;  b_j = r_j'z_j (new) / r_j'z_j (old);  P = Z + P diag(b).
 *
 * Reads and writes of n x k blocks in a step: SpMM 2 | p'q 2 | R 3 | X 3 | Z =
 * D^-1 R 2 | r'z 2 (neither if M is a multiple of I) | Z + P b 3. */
#include "driver/linear.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "driver/fused_cg.h"
#include "core/timer.h"

struct cg {
    double *rz, *a, *b, *pq, *norm2, *one;   /* k elements each */
    sps_fused_cg *steps;   /* fused steps of the backend, or NULL */
    bool ready;         /* the fused steps have computed rz */
    int why;            /* why the fused steps stopped: bits SPS_FUSED_... */
};

static sps_status setup(sps_linear *s, void *method)
{
    struct cg *m = method;
    sps_status st = SPS_OK;
    double **const all[] = { &m->rz, &m->a, &m->b, &m->pq, &m->norm2, &m->one,
                             NULL };

    SPS_TRY(spsi_own_numbers(&s->made.own, s->columns, all));
    for (int j = 0; j < s->columns; j++) m->one[j] = 1;
    SPS_TRY(spsi_fused_cg_create(&s->made.own, s->columns, true, 0,
                                 &m->steps));
fail:
    return st;
}

static sps_status timed_dots(sps_linear *s, const sps_block *X,
                             const sps_block *Y, double *out)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_dots(X, Y, out);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    struct cg *m = method;
    sps_block *P = s->work[0];
    sps_status st = SPS_OK;

    spsi_block_narrow(P, s->k);
    SPS_TRY(spsi_linear_precondition(s, &s->R, P));
    SPS_TRY(timed_dots(s, &s->R, P, m->rz));
    m->ready = false;
    m->why = 0;
    s->width = s->k;
fail:
    return st;
}

/* Performs up to *count fused steps.  *taken = 0 where fused steps cannot be
 * used or some p'Ap is not positive: step() then performs that step. */
static sps_status queue(sps_linear *s, void *method, int *count, int *taken,
                        double *norms)
{
    struct cg *m = method;
    sps_fused_cg_task t;
    sps_status st = SPS_OK;

    *taken = 0;
    if (!spsi_linear_fused(s, s->work[0], s->work[1], &t)) return st;
    if (!spsi_fused_cg_serve(m->steps, &t)) return st;
    if (m->why & SPS_FUSED_BROKEN) s->stop = SPS_STOP_NOT_FINITE;
    if (s->stop || m->why & SPS_FUSED_LENGTHS) return st;
    if (!m->ready) SPS_TRY(spsi_fused_cg_begin(m->steps, &t, m->rz));
    m->ready = true;
    SPS_TRY(spsi_fused_cg_take(m->steps, &t, count, taken, norms, &m->why));
    spsi_linear_count(s, *taken);
    if (*taken == 0) {
        if (m->why & SPS_FUSED_BROKEN) s->stop = SPS_STOP_NOT_FINITE;
        return st;
    }
    spsi_fused_cg_scalars(m->steps, m->rz);
    s->width = 0;
    for (int p = 0; p < s->k; p++) s->width += !s->at.done[p];
fail:
    return st;
}

/* Finds out why some p'Ap is not positive.  If it is negative beyond rounding,
 * A is indefinite.  If A is semidefinite, ||A p||^2 <= ||A|| p'A p, so an A p
 * that is zero up to rounding means that p is in the null space; a larger one
 * means that A is indefinite as well. */
static sps_status name_flat(sps_linear *s, struct cg *m, const sps_block *P,
                            const sps_block *Q)
{
    const double rounding = 1e3 * DBL_EPSILON * s->made.norm_A;
    sps_status st = SPS_OK;

    SPS_TRY(timed_dots(s, P, P, m->b));
    SPS_TRY(timed_dots(s, Q, Q, m->norm2));
    for (int p = 0; p < s->k; p++) {
        if (s->at.done[p] || m->pq[p] > 0) continue;
        s->stop = m->pq[p] < -rounding * m->b[p] ||
                  m->norm2[p] > 16 * rounding * s->made.norm_A * m->b[p]
                      ? SPS_STOP_INDEFINITE
                      : SPS_STOP_SINGULAR;
        if (s->stop == SPS_STOP_INDEFINITE) break;
    }
fail:
    return st;
}

/* a_j = rz_j / p_j'q_j; sets s->stop where that is not possible. */
static sps_status lengths(sps_linear *s, struct cg *m, const sps_block *P,
                          const sps_block *Q)
{
    sps_status st = SPS_OK;
    bool flat = false;

    s->width = 0;
    for (int p = 0; p < s->k; p++) {
        m->a[p] = 0;
        if (s->at.done[p]) continue;
        s->width++;
        if (!isfinite(m->pq[p]) || !isfinite(m->rz[p]))
            s->stop = SPS_STOP_NOT_FINITE;
        else if (m->rz[p] < 0)
            s->stop = SPS_STOP_PRECOND_INDEFINITE;
        else if (m->pq[p] <= 0)
            flat = true;
        else
            m->a[p] = m->rz[p] / m->pq[p];
    }
    if (flat && !s->stop) st = name_flat(s, m, P, Q);
    return st;
}

/* P = Z + P diag(b).  If Z is R, r'z are the squared residual norms, which are
 * known. */
static sps_status redirect(sps_linear *s, struct cg *m, sps_block *P,
                           sps_block *room)
{
    sps_status st = SPS_OK;
    const sps_block *Z;

    SPS_TRY(spsi_linear_direction(s, &s->R, room, &Z));
    if (Z == room)
        SPS_TRY(timed_dots(s, &s->R, Z, m->pq));
    else
        memcpy(m->pq, m->norm2, (size_t)s->k * sizeof *m->pq);
    for (int p = 0; p < s->k; p++) {
        m->b[p] = m->rz[p] > 0 ? m->pq[p] / m->rz[p] : 0;
        m->rz[p] = m->pq[p];
    }
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = spsi_axpby_cols(m->one, Z, m->b, P);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
fail:
    return st;
}

/* R -= Q diag(a), X += P diag(a). */
static sps_status advance(sps_linear *s, struct cg *m, const sps_block *P,
                          const sps_block *Q)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    SPS_TRY(spsi_subtract_cols(Q, m->a, &s->R, m->norm2));
    for (int p = 0; p < s->k; p++) m->b[p] = sqrt(m->norm2[p]);
    SPS_TRY(spsi_best_update(s, m->b));
    if (!s->stop) SPS_TRY(spsi_axpby_cols(m->a, P, m->one, &s->X));
fail:
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct cg *m = method;
    sps_block *P = s->work[0], *Q = s->work[1], *Z = s->work[2];
    sps_status st = SPS_OK;

    m->ready = false;
    m->why = 0;
    spsi_block_narrow(Q, s->k);
    spsi_block_narrow(Z, s->k);
    SPS_TRY(spsi_linear_apply(s, P, Q));
    SPS_TRY(timed_dots(s, P, Q, m->pq));
    SPS_TRY(lengths(s, m, P, Q));
    if (s->stop) return st;
    SPS_TRY(advance(s, m, P, Q));
    if (!s->stop) SPS_TRY(redirect(s, m, P, Z));
fail:
    return st;
}

/* Directions belong to columns and are permuted with them. */
static sps_status permute(sps_linear *s, void *method, const int *from,
                          int count)
{
    struct cg *m = method;
    sps_block *P = s->work[0], *T = s->work[1];
    sps_status st = SPS_OK;

    spsi_block_narrow(T, count);
    SPS_TRY(spsi_gather(P, from, T));
    spsi_block_narrow(P, count);
    SPS_TRY(spsi_copy(T, P));
    for (int p = 0; p < count; p++) m->b[p] = m->rz[from[p]];
    for (int p = 0; p < count; p++) m->rz[p] = m->b[p];
    m->ready = false;
fail:
    return st;
}

SPS_DEFINE(sps_linear_type, spsi_solver_cg) = {
    .name = "cg",
    .mixed = "refinement",
    .needs = SPS_NEEDS_SPD | SPS_NEEDS_SYMMETRIC,
    .size = sizeof(struct cg),
    .blocks = 3,
    .setup = setup,
    .start = start,
    .step = step,
    .queue = queue,
    .permute = permute,
};
