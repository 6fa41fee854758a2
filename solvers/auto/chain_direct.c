/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_direct.c - iterative refinement (Wilkinson 1963), which solver auto
 * uses with factors, that is, with M = A^-1 up to rounding:
 *
 *     T = X + M R;  R = B - A T;  X = T where the norm of R has decreased.
 *
 * R is the true residual of the rounded T, not that of a recurrence, so a
 * column never gets an X whose residual is larger, and X is its best iterate
 * after every step.  A step applies the factors once; a Krylov method applies
 * them once more in all and needs Gram products.  A step that does not halve
 * the residual of some column ends the refinement: the Krylov method of this
 * step of the chain continues, which also minimises the residual where A is
 * singular. */
#include "solvers/auto/chain.h"

#include "core/timer.h"
#include "driver/columns.h"

struct direct {
    double *take, *keep;      /* of k elements each: coefficients of T and X */
    double *next;             /* norms of the columns of R */
};

static sps_status setup(sps_linear *s, void *method)
{
    struct direct *m = method;
    sps_status st;

    SPS_TRY(SPS_OWN(&s->made.own, s->columns, &m->take));
    SPS_TRY(SPS_OWN(&s->made.own, s->columns, &m->keep));
    SPS_TRY(SPS_OWN(&s->made.own, s->columns, &m->next));
fail:
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    (void)method;
    s->width = s->k;
    return SPS_OK;
}

/* R = B - A T with its norms. */
static sps_status residual(sps_linear *s, const sps_block *T, double *norm)
{
    const sps_block X = s->X;
    sps_status st;

    s->X = *T;
    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = spsi_columns_true_norms(s, &s->R, norm);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    s->X = X;
    return st;
}

/* Decides which columns accept T.  A column that does not keeps its X and its
 * norm; T is cleared there, since it need not be finite. */
static sps_status judge(sps_linear *s, struct direct *m, sps_block *T)
{
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++) {
        const bool open = !s->at.done[p];
        const bool gains = open && m->next[p] < s->resnorm[p];

        if (open && !(m->next[p] <= 0.5 * s->resnorm[p]))
            s->stop = SPS_STOP_STAGNATED;
        m->take[p] = gains;
        m->keep[p] = !gains;
        if (gains) continue;
        m->next[p] = s->resnorm[p];
        SPS_TRY(spsi_columns_zero(T, p));
    }
fail:
    return st;
}

static sps_status step(sps_linear *s, void *method)
{
    struct direct *m = method;
    sps_block T;
    sps_status st;

    spsi_linear_room(s, 0, s->n, s->k, &T);
    SPS_TRY(spsi_linear_precondition(s, &s->R, &T));
    SPS_TRY(spsi_axpby(1.0, &s->X, 1.0, &T));
    SPS_TRY(residual(s, &T, m->next));
    SPS_TRY(judge(s, m, &T));
    SPS_TRY(spsi_axpby_cols(m->take, &T, m->keep, &s->X));
    spsi_best_record(s, m->next);
fail:
    return st;
}

/* This method cannot be chosen by name: it converges with no other
 * preconditioner than factors. */
static const sps_linear_type direct = {
    .name = "direct", .size = sizeof(struct direct), .blocks = 2,
    .setup = setup, .start = start, .step = step,
};

sps_status spsi_chain_direct(const sps_linear_args *a, const char *fallback,
                             sps_linear **s_p)
{
    sps_linear_args chosen = *a;

    chosen.type = &direct;
    chosen.fallback = spsi_linear_type(fallback);
    return spsi_linear_create(&chosen, s_p);
}
