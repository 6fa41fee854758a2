/* SPDX-License-Identifier: BSD-3-Clause */
/* planner.c - collects bids of kernels and chooses one, whose plan is made by
 * plan.c.
 *
 * A kernel says whether it fits and predicts the time of a run; there are no
 * thresholds here.  "auto" takes the lowest prediction, "measure" times the
 * best three (measure.c), a name pins a kernel.  The table of bids records the
 * choice, and why the others were rejected. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/deadline.h"
#include "io/number/nearest.h"
#include "plan/measure.h"

/* ------------------------------------------------------------------- bids */

/* Returns the name of a required guarantee that is missing, or NULL. */
static const char *lacking(unsigned need, unsigned gives)
{
    if (need & ~gives & SPS_REPRODUCIBLE)
        return "does not give the same bits in every run";
    if (need & ~gives & SPS_FULL_PRECISION) return "drops bits of the values";
    if (need & ~gives & SPS_NAN_STAYS_IN_ROW)
        return "lets NaN spread to other rows";
    return NULL;
}

/* Returns the seconds of the multiply-adds of a product in double precision on
 * a GPU where they take longer than memory traffic; they are the same for all
 * kernels that keep full precision. */
static double arithmetic(const sps_kernel *kernel, const sps_problem *p)
{
    if (p->block != SPS_F64 || kernel->roundoff > 0) return 0;
    return (double)p->f->nnz * p->k * p->machine->slow_fma;
}

static void ask(const sps_kernel *kernel, const sps_problem *p, sps_bid *bid)
{
    bid->kernel = kernel;
    bid->why_not = lacking(p->need, kernel->gives);
    if (bid->why_not) return;
    bid->why_not = "A does not fit into GPU memory";
    if (p->local && p->local->far && !(kernel->gives & SPS_STREAMS)) return;
    if (!spsi_kernel_fits(kernel, p, &bid->why_not)) return;
    bid->why_not = NULL;
    bid->predicted = kernel->cost(p) + arithmetic(kernel, p);
}

/* The order of the table: bids before rejections, bids by predicted time; equal
 * ones in the order of the list. */
static bool before(const sps_bid *a, const sps_bid *b)
{
    if (!a->why_not != !b->why_not) return !a->why_not;
    return !a->why_not && a->predicted < b->predicted;
}

static sps_status collect(sps_context *ctx, const sps_problem *p,
                          sps_bids *bids)
{
    sps_status st;
    const sps_kernel *kernel;
    int count = 0;

    *bids = (sps_bids){ .op = p->op, .k = p->k };
    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++)
        count += kernel->op == p->op;
    SPS_TRY(SPS_NEW(ctx, count, &bids->bid));
    for (int i = 0; (kernel = spsi_registry_kernel(ctx, i)); i++) {
        sps_bid bid = { 0 };
        int at = bids->count;

        if (kernel->op != p->op) continue;
        ask(kernel, p, &bid);
        for (; at > 0 && before(&bid, &bids->bid[at - 1]); at--)
            bids->bid[at] = bids->bid[at - 1];
        bids->bid[at] = bid;
        bids->count++;
    }
fail:
    return st;
}

void spsi_bids_clear(sps_context *ctx, sps_bids *bids)
{
    spsi_free(ctx, bids->bid);
    memset(bids, 0, sizeof *bids);
}

/* ---------------------------------------------------------------- choices */

static void mark(sps_bids *bids, int i, const sps_plan *plan)
{
    bids->bid[i].chosen = true;
    bids->bid[i].plan = plan;
}

/* Returns whether the failure st to make its plan concerns this bid only
 * (memory, or EUNFIT), so that others may be tried; if so, the bid is marked as
 * rejected. */
static bool may_try_next(sps_status st, sps_bid *bid)
{
    if (st != SPS_ENOMEM && st != SPS_EDEVMEM && st != SPS_EUNFIT)
        return false;
    bid->why_not = st == SPS_EUNFIT ? "its plan was rejected"
                                    : "no memory for its plan";
    return true;
}

/* Chooses the cheapest bid whose plan can be made. */
static sps_status choose_cheapest(sps_context *ctx, const sps_problem *p,
                                  sps_bids *bids, sps_plan **plan_p)
{
    sps_status st = SPS_OK;
    const char *why = bids->count > 0 ? bids->bid[0].why_not : NULL;

    for (int i = 0; i < bids->count; i++) {
        if (bids->bid[i].why_not) continue;
        st = spsi_planner_take(ctx, p, &bids->bid[i], plan_p);
        if (st == SPS_OK) {
            mark(bids, i, *plan_p);
            return SPS_OK;
        }
        if (!may_try_next(st, &bids->bid[i])) return st;
    }
    if (st != SPS_OK) return st;
    return spsi_fail(ctx, SPS_EUNFIT, "no kernel fits: the first one says "
                     "\"%s\"", why ? why : "nothing is built in");
}

/* Returns the number of the bid of the kernel `name`, or -1 if there is none or
 * it was rejected. */
static int bidder(const sps_bids *bids, const char *name)
{
    for (int i = 0; name && i < bids->count; i++)
        if (!bids->bid[i].why_not &&
            strcmp(bids->bid[i].kernel->name, name) == 0)
            return i;
    return -1;
}

/* Sets *done if wisdom names a kernel that bids, and its plan was made.  If
 * there is no memory for it this time, it is rejected, and the other bids are
 * considered. */
static sps_status choose_remembered(sps_context *ctx, const sps_problem *p,
                                    const char *wisdom, sps_bids *bids,
                                    sps_plan **plan_p, bool *done)
{
    sps_status st = SPS_OK;
    double seconds = 0.0;
    const int i = bidder(bids, spsi_wisdom_find(ctx, wisdom, p, &seconds));

    *done = i >= 0;
    if (i < 0) return SPS_OK;
    st = spsi_planner_take(ctx, p, &bids->bid[i], plan_p);
    if (st != SPS_OK) {
        *done = false;
        return may_try_next(st, &bids->bid[i]) ? SPS_OK : st;
    }
    bids->bid[i].remembered = true;
    bids->bid[i].measured = seconds;
    mark(bids, i, *plan_p);
    return SPS_OK;
}

static sps_status choose_measured(sps_context *ctx, const sps_problem *p,
                                  const char *wisdom, sps_bids *bids,
                                  sps_plan **plan_p)
{
    sps_status st;
    int best = -1;

    SPS_TRY(spsi_measure_bids(ctx, p, bids, plan_p, &best));
    if (best < 0) return choose_cheapest(ctx, p, bids, plan_p);
    mark(bids, best, *plan_p);
    if (!spsi_expired(ctx))
        SPS_TRY(spsi_wisdom_add(ctx, wisdom, p, bids->bid[best].kernel->name,
                                bids->bid[best].measured));
    return SPS_OK;

fail:
    spsi_plan_destroy(plan_p);
    return st;
}

static bool listed(sps_place place, const char *name)
{
    const char *known;

    for (int i = 0; (known = spsi_kernel_name(NULL, place, i)); i++)
        if (strcmp(known, name) == 0) return true;
    return false;
}

static const char *nearest(const sps_context *ctx, sps_place place,
                           const char *name)
{
    const char *known, *near = NULL;
    int limit = INT_MAX;

    for (int i = 0; (known = spsi_kernel_name(ctx, place, i)); i++)
        if (spsi_nearer(name, known, &limit)) near = known;
    return near;
}

static sps_status fail_unknown(sps_context *ctx, const char *name)
{
    const bool host = ctx->backend->place == SPS_HOST;
    const char *kind = host ? "kernel.cpu" : "kernel.cuda";
    const char *near = nearest(ctx, host ? SPS_HOST : SPS_CUDA, name);

    if (listed(host ? SPS_CUDA : SPS_HOST, name))
        return spsi_fail(ctx, SPS_EUNFIT, "kernel %s runs on %s, and this "
                         "context is on %s", name, host ? "a GPU" : "the host",
                         host ? "the host" : "a GPU");
    if (near)
        return spsi_fail(ctx, SPS_EINVAL, "unknown kernel \"%s\": did you "
                         "mean \"%s\"?", name, near);
    return spsi_fail(ctx, SPS_EINVAL, "unknown kernel \"%s\": use auto, "
                     "measure, or a name that sps_list(ctx, \"%s\", i) "
                     "returns",
                     name, kind);
}

/* Makes the plan of a kernel that was requested by name, even if it lacks a
 * required guarantee (with a note) or its predicted time is high.  If it has
 * several algorithms, its plan may time them (sps_problem.timed). */
static sps_status choose_pinned(sps_context *ctx, const sps_problem *p,
                                const sps_kernel *kernel, sps_bids *bids,
                                sps_plan **plan_p)
{
    const char *lack = lacking(p->need, kernel->gives);
    const char *refusal = NULL;
    sps_problem asked = *p;
    sps_bid own = { .kernel = kernel };
    sps_status st;

    asked.timed = asked.pinned = true;
    SPS_TRY(spsi_planner_take(ctx, &asked, &own, plan_p));
    for (int i = 0; i < bids->count; i++) {
        sps_bid *bid = &bids->bid[i];

        if (bid->kernel != kernel) continue;
        if (bid->why_not)
            bid->predicted = kernel->cost(&asked) +
                             arithmetic(kernel, &asked);
        if (bid->why_not && !lack) refusal = bid->why_not;
        bid->why_not = NULL;
        bid->planning = own.planning;
        mark(bids, i, *plan_p);
    }
    if (lack)
        spsi_note(ctx, "kernel %s was requested by name, although it %s",
                  kernel->name, lack);
    if (refusal)
        spsi_note(ctx, "kernel %s was requested by name; auto would not "
                  "choose it: %s", kernel->name, refusal);
fail:
    return st;
}

static sps_status choose(sps_context *ctx, const sps_problem *p,
                         const char *name, const char *wisdom, sps_bids *bids,
                         sps_plan **plan_p)
{
    const bool measure = strcmp(name, "measure") == 0;
    const sps_kernel *pinned = NULL;
    sps_status st;
    bool done = false;

    if (!measure && strcmp(name, "auto") != 0) {
        pinned = spsi_kernel_named(ctx, name);
        if (!pinned) return fail_unknown(ctx, name);
    }
    SPS_TRY(collect(ctx, p, bids));
    if (pinned && pinned->op == p->op)
        return choose_pinned(ctx, p, pinned, bids, plan_p);
    if (measure || wisdom)
        SPS_TRY(choose_remembered(ctx, p, wisdom, bids, plan_p, &done));
    if (done) return SPS_OK;
    if (measure) return choose_measured(ctx, p, wisdom, bids, plan_p);
    return choose_cheapest(ctx, p, bids, plan_p);

fail:
    return st;
}

sps_status spsi_planner_choose(sps_context *ctx, const sps_problem *p,
                               const char *name, const char *wisdom,
                               sps_bids *bids, sps_plan **plan_p)
{
    char error[SPS_ERROR_SIZE];
    sps_plan *plan = NULL;
    sps_status st;

    memcpy(error, ctx->error, sizeof error);
    memset(bids, 0, sizeof *bids);
    SPS_TRY(choose(ctx, p, name ? name : "auto", wisdom, bids, &plan));
    /* A failed plan that was replaced by another is not an error. */
    memcpy(ctx->error, error, sizeof error);
    *plan_p = plan;
    return SPS_OK;

fail:
    spsi_plan_destroy(&plan);
    spsi_bids_clear(ctx, bids);
    return st;
}

/* ------------------------------------------------------------------ table */

/* Like snprintf at the end of a text that may be too short: the returned length
 * is that of the whole, so that the caller knows the size needed. */
static size_t print_bid(const sps_bid *b, char *text, size_t size)
{
    const double seconds = b->measured > 0.0 ? b->measured : b->predicted;
    const char *detail = b->plan ? b->plan->detail : b->detail;
    const char *how = b->remembered ? "remembered"
                      : b->measured > 0.0 ? "measured" : "predicted";
    char planned[32] = "";
    int n;

    if (b->planning > 0.0)
        snprintf(planned, sizeof planned, "  planned in %.3g ms",
                 1e3 * b->planning);
    if (b->why_not)
        n = snprintf(text, size, "  %-24s no: %s\n", b->kernel->name,
                     b->why_not);
    else
        n = snprintf(text, size, "  %-24s %10.1f us %-10s%s%s%s%s\n",
                     b->kernel->name, 1e6 * seconds, how,
                     b->chosen ? " chosen" : "", detail[0] ? "  " : "",
                     detail, planned);
    return n > 0 ? (size_t)n : 0;
}

size_t spsi_bids_print(const sps_bids *bids, char *text, size_t size)
{
    const int n = snprintf(text, size, "%s k=%d\n",
                           bids->op == SPS_OP_SPMM ? "spmm" : "sddmm",
                           bids->k);
    size_t length = n > 0 ? (size_t)n : 0;

    for (int i = 0; i < bids->count; i++) {
        const bool room = length < size;

        length += print_bid(&bids->bid[i], room ? text + length : NULL,
                            room ? size - length : 0);
    }
    return length;
}
