/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.c - times kernels on the actual matrix.
 *
 * A plan is run on random blocks: once to warm up, and then for five samples,
 * whose median is its time.  A sample repeats short runs until they exceed the
 * clock's resolution, with one host synchronisation.  A candidate twice as slow
 * as the best so far is abandoned after its first sample.  After the deadline
 * the best so far wins. */
#include <string.h>

#include "block/block.h"
#include "plan/measure.h"
#include "core/deadline.h"
#include "core/timer.h"

enum { CANDIDATES = 3, SAMPLES = 5, REPEATS = 64 };

static const double SAMPLE_SECONDS = 2e-4;   /* enough for a clock of 1 us */

typedef struct bench {
    sps_context *ctx;
    sps_block *in, *other;     /* spmm: X, Y; sddmm: U, V */
    void *val;                 /* sddmm: the result */
    size_t val_bytes;
} bench;

static sps_status bench_open(sps_context *ctx, const sps_problem *p, bench *b)
{
    const bool spmm = p->op == SPS_OP_SPMM;
    sps_status st;

    b->ctx = ctx;
    SPS_TRY(spsi_block_create(ctx, spmm ? p->A->ncol : p->A->nrow, p->k,
                              p->block, &b->in));
    SPS_TRY(spsi_block_create(ctx, spmm ? p->A->nrow : p->A->ncol, p->k,
                              p->block, &b->other));
    if (p->block == SPS_F64) {       /* blocks of floats stay zero */
        SPS_TRY(sps_block_random(b->in, 1));
        SPS_TRY(sps_block_random(b->other, 2));
    }
    if (!spmm && p->A->nnz > 0) {
        const size_t bytes = (size_t)p->A->nnz * spsi_dtype_size(p->block);

        SPS_TRY(ctx->backend->alloc(ctx, bytes, &b->val));
        b->val_bytes = bytes;
    }
fail:
    return st;
}

static void bench_close(bench *b)
{
    sps_block_destroy(&b->in);
    sps_block_destroy(&b->other);
    if (b->val) b->ctx->backend->release(b->ctx, b->val, b->val_bytes);
}

static sps_status run_once(const bench *b, const sps_plan *plan)
{
    const sps_spmm_args m = { .alpha = 1.0, .X = b->in, .Y = b->other };
    const sps_sddmm_args s = { 1.0, b->in, b->other, false, 0.0, b->val };

    return plan->kernel->op == SPS_OP_SPMM ? plan->kernel->spmm(plan, &m)
                                           : plan->kernel->sddmm(plan, &s);
}

/* Measures the seconds of one run as the mean of `repeats`. */
static sps_status sample(const bench *b, const sps_plan *plan, int repeats,
                         double *seconds)
{
    const double start = spsi_now();
    sps_status st = SPS_OK;

    for (int i = 0; i < repeats; i++) SPS_TRY(run_once(b, plan));
    SPS_TRY(b->ctx->backend->sync(b->ctx));
    *seconds = (spsi_now() - start) / repeats;
fail:
    return st;
}

static double median(double *t, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && t[j] < t[j - 1]; j--) {
            const double swap = t[j];

            t[j] = t[j - 1];
            t[j - 1] = swap;
        }
    return n % 2 ? t[n / 2] : 0.5 * (t[n / 2 - 1] + t[n / 2]);
}

static sps_status time_plan(const bench *b, const sps_plan *plan, double best,
                            double *seconds)
{
    double t[SAMPLES], once;
    sps_status st;
    int repeats, n = 0;

    SPS_TRY(sample(b, plan, 1, &once));       /* warm-up */
    SPS_TRY(sample(b, plan, 1, &once));
    repeats = once * REPEATS < SAMPLE_SECONDS ? REPEATS
              : 1 + (int)(SAMPLE_SECONDS / once);
    do
        SPS_TRY(sample(b, plan, repeats, &t[n++]));
    while (n < SAMPLES && !(best > 0.0 && t[0] > 2.0 * best) &&
           !spsi_expired(b->ctx));
    *seconds = median(t, n);
fail:
    return st;
}

/* Makes and times the plan of bid i; if it is the fastest so far, *plan_p and
 * *best become this plan and i.  If its plan cannot be made, the bid is marked
 * as rejected, and *refused is the status. */
static sps_status try_bid(const bench *b, const sps_problem *p, sps_bids *bids,
                          int i, sps_plan **plan_p, int *best,
                          sps_status *refused)
{
    sps_bid *bid = &bids->bid[i];
    sps_plan *plan = NULL;
    sps_status st = spsi_planner_take(b->ctx, p, bid, &plan);

    if (st == SPS_ENOMEM || st == SPS_EDEVMEM || st == SPS_EUNFIT) {
        bid->why_not = st == SPS_EUNFIT ? "its plan was rejected"
                                        : "no memory for its plan";
        *refused = st;
        return SPS_OK;
    }
    if (st != SPS_OK) return st;
    SPS_TRY(time_plan(b, plan, *best >= 0 ? bids->bid[*best].measured : 0.0,
                      &bid->measured));
    memcpy(bid->detail, plan->detail, sizeof plan->detail);
    if (*best < 0 || bid->measured < bids->bid[*best].measured) {
        sps_plan *loser = *plan_p;

        *plan_p = plan;
        plan = loser;
        *best = i;
    }
fail:
    spsi_plan_destroy(&plan);
    return st;
}

sps_status spsi_measure_bids(sps_context *ctx, const sps_problem *p,
                             sps_bids *bids, sps_plan **plan_p, int *best)
{
    sps_problem timed = *p;
    sps_status st, refused = SPS_OK;
    bench b = { 0 };
    bool vendor = false;

    *best = -1;
    timed.timed = true;
    SPS_TRY(bench_open(ctx, &timed, &b));
    for (int i = 0, n = 0; i < bids->count; i++) {
        const bool theirs = bids->bid[i].kernel->gives & SPS_VENDOR;

        if (bids->bid[i].why_not) continue;
        if (n >= CANDIDATES && !(theirs && !vendor)) continue;
        if (*best >= 0 && spsi_expired(ctx)) break;
        SPS_TRY(try_bid(&b, &timed, bids, i, plan_p, best, &refused));
        n += !bids->bid[i].why_not;
        vendor = vendor || theirs;
    }
    if (*best < 0 && refused != SPS_OK && refused != SPS_EUNFIT)
        SPS_TRY(refused); /* the text is that of the last plan */
    bench_close(&b);
    return SPS_OK;

fail:
    bench_close(&b);
    spsi_plan_destroy(plan_p);
    return st;
}

sps_status spsi_measure_plan(sps_context *ctx, const sps_csr *A,
                             const sps_plan *plan, double *seconds)
{
    const sps_problem p = { .op = plan->kernel->op, .A = A, .k = plan->k,
                            .block = plan->block };
    sps_status st;
    bench b = { 0 };

    SPS_TRY(bench_open(ctx, &p, &b));
    SPS_TRY(time_plan(&b, plan, 0.0, seconds));
fail:
    bench_close(&b);
    return st;
}
