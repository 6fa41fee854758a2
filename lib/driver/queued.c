/* SPDX-License-Identifier: BSD-3-Clause */
/* queued.c - iterations that a method queues without returning to the driver
 * after each (linear.h, `queue`).  The loop still processes them one by one:
 * their norms are stored here until it does, while X and R are those of the
 * last one.  Only the last one may require a decision of the driver. */
#include "driver/columns.h"
#include "driver/fused_cg.h"
#include "core/comm.h"

#include <string.h>

#include "core/timer.h"

bool spsi_linear_fused(sps_linear *s, sps_block *P, sps_block *Q,
                       sps_fused_cg_task *t)
{
    const bool identity = !s->M || s->M->identity;

    *t = (sps_fused_cg_task){
        .A = s->A, .D = identity ? NULL : s->M->diagonal, .P = P, .Q = Q,
        .X = &s->X, .R = &s->R, .limit = s->queue.limit, .of = s,
        .few = spsi_columns_latency(s) ? 0 : spsi_columns_few(s),
        .replay = s->opt.replay };
    return !s->made.null && s->n > 0 && s->k > 0 && (identity || t->D);
}

void spsi_linear_count(sps_linear *s, int taken)
{
    s->course.applies_A += taken;
    s->course.applies_M += s->M && !s->M->identity ? taken : 0;
}

/* Returns the number of iterations before the loop has to do what the queue
 * cannot: a check of the true residual, deflation, or the iteration limit. */
static int queue_length(const sps_linear *s)
{
    int every = s->opt.true_residual_every;
    int count = every - s->course.iteration % every;
    int stay = spsi_columns_delay(s);

    if (stay > 0 && count > stay) count = stay;
    if (count > s->queue.stride) count = s->queue.stride;
    if (count > s->opt.max_iterations - s->course.iteration)
        count = s->opt.max_iterations - s->course.iteration;
    return count;
}

/* Queues some iterations.  Their number is doubled as long as all that were
 * requested complete within 4 ms: short enough for an interrupt, and so that
 * few products of large blocks are queued after a step that stops the queue
 * (fused_cg.h, burst).  It begins at the maximum where iterations are known to
 * be short.  No result depends on it. */
static sps_status queue_iterations(sps_linear *s)
{
    const double soon = 0.004;
    const double began = spsi_now();
    const bool many = spsi_comm_many(s->ctx);
    sps_linear_queue *h = &s->queue;
    int count = queue_length(s);
    sps_status st = SPS_OK;

    for (int p = 0; p < s->k; p++)
        h->limit[p] = SPS_LINEAR_AIM * s->rhs.threshold[s->at.column[p]];
    h->taken = h->seen = 0;
    SPS_TRY(s->method.type->queue(s, s->method.data, &count, &h->taken,
                                  h->norms));
    if (many) return st; /* the stride must be equal on all processes, but
                            their clocks differ */
    if (h->taken < count) h->stride = 1;
    else if (spsi_now() - began < soon) h->stride *= 2;
    if (h->stride > s->opt.check_every) h->stride = s->opt.check_every;
fail:
    return st;
}

/* Returns the residual norms after queued iteration i. */
static const double *norms_of(const sps_linear *s, int i)
{
    return s->queue.norms + (size_t)i * (size_t)s->k;
}

sps_status spsi_linear_advance(sps_linear *s)
{
    const sps_linear_type *type = s->method.type;
    sps_linear_queue *h = &s->queue;
    sps_status st = SPS_OK;

    if (h->seen == h->taken && type->queue) SPS_TRY(queue_iterations(s));
    if (s->stop) return st;
    if (h->seen == h->taken)
        SPS_TRY(type->step(s, s->method.data));
    else
        spsi_best_record(s, norms_of(s, h->seen++));
    s->course.iteration++;
fail:
    return st;
}

void spsi_linear_drain(sps_linear *s)
{
    sps_linear_queue *h = &s->queue;

    if (h->seen == h->taken) return;
    s->course.iteration += h->taken - h->seen;
    memcpy(s->resnorm, norms_of(s, h->taken - 1),
           (size_t)s->k * sizeof *s->resnorm);
    h->seen = h->taken;
}
