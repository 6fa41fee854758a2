/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_report.c - names of the steps of solver auto in notes, and what their
 * results make together: counts and seconds add up, and why a column stopped
 * follows from all steps. */
#include "solvers/auto/chain.h"

#include <math.h>
#include <string.h>

#include "driver/columns.h"

bool spsi_chain_has_factors(const sps_chain *l, int at)
{
    return !l->M && (l->step[at].complete ||
                     !strcmp(l->step[at].precond, "factor"));
}

const char *spsi_chain_method(const sps_chain *l, int at)
{
    const char *solver = l->step[at].solver;

    return strcmp(solver, "auto") ? solver : l->k > 1 ? "block_cg" : "cg";
}

const char *spsi_chain_name(const sps_chain *l, int at)
{
    return spsi_chain_has_factors(l, at) ? "direct" : spsi_chain_method(l, at);
}

void spsi_chain_add_up(sps_result *sum, const sps_result *r)
{
    const sps_result before = *sum;

    *sum = *r;
    sum->iterations += before.iterations;
    sum->restarts += before.restarts;
    sum->applies_A += before.applies_A;
    sum->applies_M += before.applies_M;
    sum->seconds.verify += before.seconds.verify;
    sum->seconds.spmm += before.seconds.spmm;
    sum->seconds.precond += before.seconds.precond;
    sum->seconds.gram += before.seconds.gram;
    sum->seconds.small += before.seconds.small;
}

void spsi_chain_replace_stop(sps_chain *l, sps_result *r, sps_stop stop)
{
    r->stop = stop;
    for (int j = 0; j < l->k; j++)
        if (l->now->result.column[j] == SPS_STOP_INTERRUPTED)
            l->now->result.column[j] = stop;
}

/* Returns whether another step may improve column j: it has not converged, its
 * x is not a least-squares solution, and its b is finite. */
static bool wants_more(const sps_chain *l, int j)
{
    const sps_stop why = l->now->result.column[j];

    return why < 0 && why != SPS_STOP_LEAST_SQUARES &&
           isfinite(l->now->rhs.norm[j]);
}

bool spsi_chain_worked(const sps_chain *l)
{
    for (int j = 0; j < l->k; j++)
        if (wants_more(l, j)) return false;
    return true;
}

bool spsi_chain_limited(const sps_chain *l)
{
    for (int j = 0; j < l->k; j++)
        if (wants_more(l, j) && l->now->result.column[j] != SPS_STOP_ROUNDING)
            return false;
    return true;
}

void spsi_chain_report_limit(sps_chain *l, sps_result *r)
{
    r->stop = l->solve.iterations >= l->opt.max_iterations
                  ? SPS_STOP_MAX_ITERATIONS : SPS_STOP_MAX_TIME;
    for (int j = 0; j < l->k; j++)
        if (wants_more(l, j)) l->now->result.column[j] = r->stop;
}

/* Returns why column j stopped, with what a step with factors has found about
 * its b, which later steps do not know: they call a part outside the range of A
 * stagnation, and a residual that rounding keeps from falling a singular A. */
static sps_stop reason(const sps_chain *l, int j)
{
    const sps_stop now = l->now->result.column[j], then = l->solve.ranged[j];
    const bool inside = then == SPS_STOP_STAGNATED ||
                        then == SPS_STOP_ROUNDING;

    if (then == SPS_STOP_SINGULAR && now == SPS_STOP_STAGNATED &&
        !spsi_columns_accurate(l->now, j))
        return then;
    return inside && now == SPS_STOP_SINGULAR ? then : now;
}

/* Reports these reasons.  The whole ends with SPS_STOP_SINGULAR if a column
 * does, else as before if a column still does, else with the first reason other
 * than a least-squares solution. */
void spsi_chain_report_range(sps_chain *l, sps_result *r)
{
    bool singular = false, same = false;
    sps_stop other = SPS_STOP_LEAST_SQUARES;

    for (int j = 0; j < l->k; j++) {
        const sps_stop why = reason(l, j);

        l->now->result.column[j] = why;
        singular = singular || why == SPS_STOP_SINGULAR;
        same = same || why == r->stop;
        if (why < 0 && other == SPS_STOP_LEAST_SQUARES) other = why;
    }
    if (singular) r->stop = SPS_STOP_SINGULAR;
    else if (!same) r->stop = other;
}

void spsi_chain_record_range(sps_chain *l)
{
    if (!l->now->M || l->now->M->zero_pivots <= 0) return;
    for (int j = 0; j < l->k; j++)
        l->solve.ranged[j] = l->now->result.column[j];
}
