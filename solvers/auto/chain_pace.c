/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_pace.c - whether a step of solver auto is too slow: its convergence so
 * far predicts the iterations to the tolerance. */
#include "solvers/auto/chain.h"

#include <float.h>
#include <math.h>

/* Returns the iterations in which a residual falls from `from` to rtol, if it
 * has fallen to `to` in `count` of them. */
static double extrapolate(const sps_chain *l, double from, double to, int count)
{
    const double gain = log(from / to);

    return gain > 0 ? count * log(from / fmax(l->opt.rtol, DBL_MIN)) / gain
                    : INFINITY;
}

/* Predicts the iterations of the whole step from its convergence since its
 * start.  If the largest residual was in the first half of the iterations, the
 * convergence since then counts as well, and the smaller prediction is taken:
 * where entries differ by many orders of magnitude, residuals grow in the first
 * iterations and may fall fast after them. */
static double predicted(const sps_chain *l, int iteration)
{
    const sps_chain_pace *p = &l->pace;
    const double all = extrapolate(l, p->first, p->best, iteration);

    if (2 * p->since > iteration) return all;
    return fmin(all, p->since + extrapolate(l, p->peak, p->now,
                                            iteration - p->since));
}

/* A step that has used up its share of the time continues if it is predicted to
 * converge within half of the time that remains. */
static bool ends_in_time(const sps_chain *l, int iteration)
{
    const double each = (spsi_agreed_now(l->ctx) - l->pace.begun) / iteration;

    return each * (predicted(l, iteration) - iteration) <
           0.5 * (l->opt.max_seconds - spsi_chain_spent(l));
}

bool spsi_chain_too_slow(sps_chain *l, const sps_progress *p)
{
    const sps_step *step = &l->step[l->at];
    sps_chain_pace *pace = &l->pace;
    const int degree = l->now->M ? l->now->M->products + 1 : 1;
    const int every = step->grace < 10 ? step->grace : 10;

    if (p->iteration == 0)
        pace->first = pace->best = pace->peak = p->worst;
    if (p->worst < pace->best) pace->best = p->worst;
    if (p->iteration == 0 || p->worst > pace->peak) {
        pace->peak = p->worst;
        pace->since = p->iteration;
    }
    pace->now = p->worst;
    if (!pace->may_abandon || !step->patience || p->iteration < 1) return false;
    if (pace->allowed > 0 &&
        spsi_agreed_now(l->ctx) - pace->begun > pace->allowed)
        return !ends_in_time(l, p->iteration);
    /* With a polynomial of A as preconditioner, an iteration counts as many
     * times as it has products with A. */
    return p->iteration >= step->grace / degree && p->iteration % every == 0 &&
           predicted(l, p->iteration) > (double)step->patience / degree;
}
