/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks_spectrum.c - bounds of the spectrum of D^-1 A on a level that is
 * spread over processes: the steps and the row sums of spectrum.c, for own rows
 * with the columns of span.rows, on the host or in device memory.  A step takes
 * an exchange and two sums; where messages are queued, the host waits once. */
#include "solvers/amg/over_ranks.h"

#include <math.h>
#include <string.h>

typedef struct filling {
    const over_ranks *w;
    sps_block *packed;        /* elements to be sent, in device memory */
    double *ghost;            /* elements received, in host memory */
} filling;

static sps_status fill_here(void *data, double *y)
{
    const filling *f = data;
    sps_halo *h = f->w->fine.super.A->ranks->halo;
    const size_t low = (size_t)h->low, high = (size_t)(h->ghosts - h->low);
    sps_status st;

    SPS_TRY(spsi_halo_trade(h, y + h->low, sizeof *y, f->ghost));
    if (low > 0) memcpy(y, f->ghost, low * sizeof *y);
    if (high > 0)
        memcpy(y + h->low + h->n, f->ghost + low, high * sizeof *y);
fail:
    return st;
}

static sps_status sum_here(void *data, double *x)
{
    const filling *f = data;

    return spsi_reduce(f->w->fine.super.ctx, x, 1);
}

/* The product that needs the elements of others is the next one, so they do not
 * pass beside one. */
static sps_status fill_there(void *data, double *y)
{
    const filling *f = data;
    const sps_ranks *r = f->w->fine.super.A->ranks;
    sps_halo *h = r->halo;
    const bool aside = h->aside;
    sps_block all = { .ctx = h->ctx, .n = h->n + h->ghosts, .k = 1, .ld = 1,
                      .width = 1, .dtype = SPS_F64, .data = y };
    sps_block own = all;
    sps_status st;

    own.n = h->n;
    own.data = y + h->low;
    SPS_TRY(spsi_take_rows(&own, r->at.send, f->packed));
    h->aside = false;
    st = spsi_halo_start(h, f->packed, false, &all);
    if (st == SPS_OK) st = spsi_halo_finish(h);
    h->aside = aside;
fail:
    return st;
}

static sps_status sum_there(void *data, double *x)
{
    const filling *f = data;
    sps_context *ctx = f->w->fine.super.ctx;
    const sps_wire *wire = spsi_wire(ctx);
    double here = 0;
    sps_status st;

    if (wire->queued(ctx)) return wire->sum(ctx, x, x, 1);
    SPS_TRY(ctx->backend->download(ctx, &here, x, sizeof here));
    SPS_TRY(spsi_reduce(ctx, &here, 1));
    SPS_TRY(ctx->backend->upload(ctx, x, &here, sizeof here));
fail:
    return st;
}

static sps_status open(filling *f)
{
    const sps_halo *h = f->w->fine.super.A->ranks->halo;
    sps_status st;

    if (f->w->there)
        SPS_TRY(sps_block_create(h->ctx, h->send_at[h->neighbours], 1,
                                 &f->packed));
    else
        SPS_TRY(SPS_NEW(h->ctx, h->ghosts + 1, &f->ghost));
fail:
    return st;
}

/* The coefficients of Lanczos and the bounds by row sums; those of own rows
 * only. */
static sps_status run(over_ranks *w, filling *f, double *diagonal, double *off,
                      double bound[2])
{
    const sps_halo *h = w->fine.super.A->ranks->halo;
    const amg_level *l = w->fine.level;
    const spsi_coarse_across x = {
        .first = h->first, .low = h->low, .data = f,
        .fill = w->there ? fill_there : fill_here,
        .sum = w->there ? sum_there : sum_here };

    return w->there
        ? w->fine.device->lanczos_across(l->part, w->span.rows, &x, diagonal,
                                         off, bound)
        : spsi_amg_lanczos_across(h->ctx, w->span.rows, l->scale, &x, diagonal,
                                  off, bound);
}

sps_status spsi_amg_bounds_across(over_ranks *w, double *bound)
{
    sps_context *ctx = w->fine.super.ctx;
    double diagonal[SPS_COARSE_STEPS], off[SPS_COARSE_STEPS - 1], both[2];
    filling f = { .w = w };
    sps_status st;

    SPS_TRY(open(&f));
    SPS_TRY(run(w, &f, diagonal, off, both));
    for (int i = 0; i < 2; i++) SPS_TRY(spsi_comm_largest(ctx, &both[i]));
    *bound = fmin(both[0], both[1]);
    SPS_TRY(spsi_amg_ritz(ctx, diagonal, off, &w->fine.level[0].rho));
fail:
    sps_block_destroy(&f.packed);
    spsi_free(ctx, f.ghost);
    return st;
}
