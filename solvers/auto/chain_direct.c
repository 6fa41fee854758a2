/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_direct.c - iterative refinement (Wilkinson 1963), which solver auto
 * uses with factors, that is, with M = A^-1 up to rounding:
 *
 *     Z = M R;  X += Z;  R -= A Z.
 *
 * A step applies the factors once; a Krylov method applies them once more in
 * all and needs Gram products.  A step that does not halve the residual of some
 * column ends the refinement: the Krylov method of this step of the chain
 * continues, which also minimises the residual where A is singular. */
#include "solvers/auto/chain.h"

#include <math.h>

#include "core/timer.h"

struct direct {
    double *a, *next, *one;   /* k elements each: coefficients of Z and X, and
                                 new norms */
};

static sps_status setup(sps_linear *s, void *method)
{
    struct direct *m = method;
    sps_status st;

    SPS_TRY(SPS_OWN(&s->made.own, s->columns, &m->a));
    SPS_TRY(SPS_OWN(&s->made.own, s->columns, &m->next));
    SPS_TRY(SPS_OWN(&s->made.own, s->columns, &m->one));
    for (int p = 0; p < s->columns; p++) m->one[p] = 1;
fail:
    return st;
}

static sps_status start(sps_linear *s, void *method)
{
    (void)method;
    s->width = s->k;
    return SPS_OK;
}

/* R -= A Z. */
static sps_status subtract(sps_linear *s, const sps_block *Z)
{
    sps_status st;

    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(s->A, -1.0, Z, 1.0, &s->R);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    s->course.applies_A++;
    return st;
}

/* Decides which columns accept the step; a column whose residual is not halved
 * keeps its X. */
static void judge(sps_linear *s, struct direct *m)
{
    for (int p = 0; p < s->k; p++) {
        const bool open = !s->at.done[p];
        const bool gains = open && m->next[p] <= 0.5 * s->resnorm[p];

        if (open && !isfinite(m->next[p])) s->stop = SPS_STOP_NOT_FINITE;
        else if (open && !gains && !s->stop) s->stop = SPS_STOP_STAGNATED;
        m->a[p] = gains;
        if (!gains) m->next[p] = s->resnorm[p];
    }
}

static sps_status step(sps_linear *s, void *method)
{
    struct direct *m = method;
    sps_block Z;
    sps_status st;

    spsi_linear_room(s, 0, s->n, s->k, &Z);
    SPS_TRY(spsi_linear_precondition(s, &s->R, &Z));
    SPS_TRY(subtract(s, &Z));
    SPS_TRY(spsi_norms(&s->R, m->next));
    judge(s, m);
    if (s->stop == SPS_STOP_NOT_FINITE) return st;
    SPS_TRY(spsi_best_update(s, m->next));
    SPS_TRY(spsi_axpby_cols(m->a, &Z, m->one, &s->X));
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
