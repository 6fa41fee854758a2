/* SPDX-License-Identifier: BSD-3-Clause */
/* ahead.c - iterations that a method takes without the driver's eye on each of
 * them (solver.h, `ahead`).  The driver sees them one after another all the
 * same: their norms wait here until it is their turn, and X and R are as the
 * last of them left them.  Nothing has to be decided before that one. */
#include "columns.h"

#include <string.h>

#include "timer.h"

/* Iterations that may be taken before the loop has to do something that only
 * it knows of. */
static int stretch(const sps_solver *s)
{
    int every = s->opt.true_residual_every;
    int count = every - s->iteration % every;
    int stay = spsi_columns_stay(s);

    if (stay > 0 && count > stay) count = stay;
    if (count > s->stride) count = s->stride;
    if (count > s->opt.max_iterations - s->iteration)
        count = s->opt.max_iterations - s->iteration;
    return count;
}

/* Takes some iterations ahead.  The stride grows while all that were asked for
 * were taken, and soon enough for somebody who wants to interrupt (it begins as
 * it may be where iterations are known to be short); no result depends on it. */
static sps_status take_ahead(sps_solver *s)
{
    const double soon = 0.02;
    double began = spsi_now();
    int count = stretch(s);
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++)
        s->limit[p] = SPS_SOLVER_AIM * s->threshold[s->column[p]];
    s->ahead = s->ahead_seen = 0;
    SPS_TRY(s->type->ahead(s, s->method, &count, &s->ahead, s->ahead_norms));
    if (s->ahead < count) s->stride = 1;
    else if (spsi_now() - began < soon) s->stride *= 2;
    if (s->stride > s->opt.check_every) s->stride = s->opt.check_every;
fail:
    return st;
}

sps_status spsi_solver_advance(sps_solver *s)
{
    sps_status st = SPS_OK;

    if (s->ahead_seen == s->ahead && s->type->ahead) SPS_TRY(take_ahead(s));
    if (s->stop) return st;
    if (s->ahead_seen == s->ahead) {
        SPS_TRY(s->type->step(s, s->method));
    } else {
        memcpy(s->resnorm,
               s->ahead_norms + (size_t)s->ahead_seen * (size_t)s->k,
               (size_t)s->k * sizeof *s->resnorm);
        s->ahead_seen++;
    }
    s->iteration++;
fail:
    return st;
}

void spsi_solver_catch_up(sps_solver *s)
{
    if (s->ahead_seen == s->ahead) return;
    s->iteration += s->ahead - s->ahead_seen;
    memcpy(s->resnorm, s->ahead_norms + (size_t)(s->ahead - 1) * (size_t)s->k,
           (size_t)s->k * sizeof *s->resnorm);
    s->ahead_seen = s->ahead;
}
