/* SPDX-License-Identifier: BSD-3-Clause */
/* eigen_monitor.c - the call of the caller's monitor, and the limits of
 * iterations and time. */
#include "driver/columns.h"
#include "eigen/eigen.h"

#include <string.h>

#include "core/comm.h"

bool spsi_eigen_report(sps_eigen *e)
{
    sps_progress g = { .iteration = e->search.iteration, .k = e->count,
                       .struct_size = sizeof g };
    double unit = e->opt.rtol > 0 ? e->opt.rtol : 1;

    if (!e->opt.monitor)
        return spsi_agreed_monitor(e->ctx, NULL, NULL, NULL);
    for (int j = 0; j < spsi_subspace_wanted(&e->space); j++) {
        double limit =
            spsi_pencil_tolerance(&e->pencil, &e->opt, e->ritz.theta[j],
                                  e->ritz.xnorm[j], e->ritz.mnorm[j]);

        e->relative[e->deflation.locked + j] =
            e->ritz.resnorm[j] == 0 ? 0 : unit * e->ritz.resnorm[j] / limit;
        g.converged += e->ritz.done[j];
    }
    memcpy(e->sorted, e->relative, (size_t)e->count * sizeof(double));
    spsi_columns_sort(e->sorted, e->count);
    g.residual = e->relative;
    g.worst = e->sorted[e->count - 1];
    g.median = e->sorted[e->count / 2];
    g.converged += e->deflation.locked;
    g.width = e->space.directions;
    g.seconds = spsi_agreed_now(e->ctx) - e->search.started;
    g.event = e->search.event;
    e->search.event = NULL;
    return spsi_agreed_monitor(e->ctx, e->opt.monitor, e->opt.monitor_data, &g);
}

sps_stop spsi_eigen_limit(const sps_eigen *e)
{
    if (spsi_agreed_cancel(e->ctx)) return SPS_STOP_INTERRUPTED;
    if (e->search.iteration >= e->opt.max_iterations)
        return SPS_STOP_MAX_ITERATIONS;
    if (e->opt.max_seconds > 0 &&
        spsi_agreed_now(e->ctx) - e->search.started >= e->opt.max_seconds)
        return SPS_STOP_MAX_TIME;
    return SPS_STOP_RUNNING;
}
