/* SPDX-License-Identifier: BSD-3-Clause */
/* deadline.c - see deadline.h. */
#include "core/deadline.h"

#include "core/comm.h"

double spsi_deadline_begin(sps_context *ctx, double seconds)
{
    const double before = ctx->deadline;
    const double own = seconds > 0 ? spsi_agreed_now(ctx) + seconds : 0;

    if (own > 0 && !(before > 0 && before < own)) ctx->deadline = own;
    return before;
}

void spsi_deadline_end(sps_context *ctx, double before)
{
    ctx->deadline = before;
}

static bool over(const sps_context *ctx)
{
    return ctx->deadline > 0 && spsi_agreed_now(ctx) >= ctx->deadline;
}

bool spsi_expired(const sps_context *ctx)
{
    return over(ctx) || spsi_agreed_cancel(ctx);
}

sps_status spsi_check_deadline(sps_context *ctx, const char *what)
{
    if (spsi_agreed_cancel(ctx))
        return spsi_fail(ctx, SPS_EUNFIT, "%s: interrupted by sps_cancel",
                         what);
    if (over(ctx))
        return spsi_fail(ctx, SPS_EUNFIT, "%s: not finished within the time "
                         "limit", what);
    return SPS_OK;
}

sps_status spsi_rejoin(sps_context *ctx, sps_comm *of, sps_status st)
{
    const bool apart = of && !ctx->opt.comm;
    const bool gave_up = st == SPS_EUNFIT && spsi_expired(ctx);
    double some = gave_up;
    sps_status sum;

    spsi_comm_back(ctx, of);
    /* If it failed otherwise, the other processes learn that at the end of
     * the call. */
    if (!apart || (st != SPS_OK && !gave_up)) return st;
    sum = spsi_reduce(ctx, &some, 1);
    if (sum != SPS_OK || some == 0) return sum;
    if (!spsi_agreed_cancel(ctx)) spsi_comm_pass(ctx, ctx->deadline);
    if (gave_up) return st;
    return spsi_fail(ctx, SPS_EUNFIT, "a process was interrupted, or not "
                     "finished within the time limit");
}

/* A range of the items, starting at `first`, that is run by itself. */
typedef struct piece {
    spsi_team_fn *fn;
    void *data;
    int64_t first;
} piece;

static void do_piece(void *data, int64_t first, int64_t last)
{
    const piece *p = data;

    p->fn(p->data, p->first + first, p->first + last);
}

sps_status spsi_team_run_in_time(sps_context *ctx, int64_t count, int64_t ns,
                                 spsi_team_fn *fn, void *data,
                                 const char *what)
{
    const int64_t pieces = 1 + ns / SPS_DEADLINE_PIECE;
    const int64_t length = (count + pieces - 1) / pieces;
    piece p = { fn, data, 0 };
    sps_status st = SPS_OK;

    for (; p.first < count; p.first += length) {
        const int64_t left = count - p.first;
        const int64_t items = left < length ? left : length;

        spsi_team_run(ctx, items, ns / pieces, do_piece, &p);
        SPS_TRY(spsi_check_deadline(ctx, what));
    }
fail:
    return st;
}
