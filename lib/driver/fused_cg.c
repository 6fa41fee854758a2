/* SPDX-License-Identifier: BSD-3-Clause */
/* fused_cg.c - see fused_cg.h: memory of the steps, their queue, and its
 * recording.
 *
 * A recording (a CUDA graph) contains one step with r = k and is replayed as
 * long as blocks and values keep their addresses.  It is faster where launches
 * take longer than the work.  Steps of large blocks are not recorded; their
 * phases are timed, which is not possible within a recording. */
#include "driver/fused_cg.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/backend.h"
#include "core/comm.h"
#include "driver/columns.h"
#include "core/timer.h"

_Static_assert(SPS_LINEAR_QUEUE <= SPS_FUSED_QUEUE, "norms of all steps");

/* Largest number of block elements with which steps are recorded. */
#define RECORDED (INT64_C(1) << 23)

#define PART 0.7         /* fraction of predicted steps (limit_by_rate) */

enum {
    STATE = 8,               /* size of the state in doubles */
    PLAIN = 3,               /* steps queued before one is recorded */
    TAKEN = 0x3fffffff       /* steps are counted modulo this + 1 */
};

/* ------------------------------------------------------------------- memory */

/* Returns the number of doubles of S and C with all their partial sums. */
static int64_t in_S(const sps_fused_cg *w)
{
    return w->columns ? 0 : 2 * (int64_t)w->most_parts * w->most * w->most;
}

/* Lays the arrays out from address `at` on, or, if it is NULL, only counts;
 * returns the number of doubles. */
static int64_t lay_out(sps_fused_cg *w, double *at)
{
    int64_t k = w->most, square = w->columns ? k : k * k, used = 0;
    int64_t parts = w->most_parts, many = spsi_comm_many(w->ctx);
    struct { double **p; int64_t count; } array[] = {
        { &w->norms, SPS_FUSED_QUEUE * k }, { &w->last, k },
        { &w->C, square }, { &w->known.limit, k }, { &w->known.least, k },
        { &w->known.kept_norm, k }, { &w->known.gap, k }, { &w->F, square },
        { &w->a, square }, { &w->b, square },
        { &w->W, parts * (square + k) }, { &w->S, in_S(w) },
        { &w->G, parts * square },
        /* With several processes S, C and G are summed together. */
        { &w->own.W, many * (square + k) }, { &w->own.S, many * in_S(w) },
        { &w->own.G, many * square },
    };

    w->state = (sps_fused_cg_state *)(void *)at;
    used = STATE;
    for (size_t i = 0; i < sizeof array / sizeof *array; i++) {
        if (at) *array[i].p = at + used;
        used += array[i].count;
    }
    if (!many) {
        w->own.G = w->G;
        w->own.W = w->W;
        w->own.S = w->S;
    }
    return used;
}

/* Returns the number of doubles to download: state, norms, last, and, with
 * scalars by column, C. */
static int64_t seen(const sps_fused_cg *w)
{
    return STATE + (SPS_FUSED_QUEUE + (w->columns ? 2 : 1)) *
                   (int64_t)w->most;
}

static void drop(sps_fused_cg *w)
{
    void **recording = &w->queue.recording;

    if (*recording) w->ctx->backend->record_drop(w->ctx, *recording);
    *recording = NULL;
}

static void release(sps_context *ctx, void *place)
{
    sps_fused_cg **w_p = place, *w = *w_p;

    *w_p = NULL;
    if (!w) return;
    drop(w);
    if (w->state) ctx->backend->release(ctx, w->state, w->host.bytes);
    spsi_free(ctx, w);
}

/* Returns whether the sums of a step are completed in the memory of the blocks.
 * They are not if messages between several processes are staged.  Scalars by
 * column are computed in the kernels that add up the sums of one process. */
static bool sums_here(const sps_context *ctx, bool columns)
{
    const sps_wire *wire = spsi_wire(ctx);

    return !spsi_comm_many(ctx) || (!columns && (!wire || wire->queued(ctx)));
}

sps_status spsi_fused_cg_create(sps_owner *o, int k, bool columns,
                                double condition, sps_fused_cg **w_p)
{
    sps_context *ctx = o->ctx;
    sps_status st = SPS_OK;
    sps_fused_cg *w;
    void *room = NULL;
    double *zeros = NULL;

    if (!ctx->backend->fused_cg_lengths || spsi_comm_ordered(ctx) ||
        !sums_here(ctx, columns) ||
        (columns ? !ctx->backend->fused_cg_columns : k > SPS_FUSED_WIDEST))
        return SPS_OK;
    SPS_TRY(spsi_own(o, release, w_p));
    SPS_TRY(SPS_NEW(ctx, 1, w_p));
    w = *w_p;
    w->ctx = ctx;
    w->columns = columns;
    w->most = k;
    w->condition = condition;
    /* Each process would add up partial sums only of its own rows. */
    w->cached = spsi_comm_many(ctx) ? 0 : SPS_FUSED_CACHED;
    w->queue.burst = SPS_FUSED_QUEUE;
    w->most_parts = columns || k > SPS_FUSED_NARROW || spsi_comm_many(ctx)
                  ? 1 : SPS_FUSED_PARTS;
    w->host.bytes = (size_t)lay_out(w, NULL) * sizeof(double);
    SPS_TRY(SPS_OWN(o, seen(w), &w->host.seen));
    SPS_TRY(SPS_OWN(o, 4 * (int64_t)k, &w->host.limits));
    SPS_TRY(SPS_OWN(o, k, &w->host.far));
    SPS_TRY(SPS_OWN(o, 2, &w->kept));
    SPS_TRY(SPS_OWN(o, in_S(w), &w->host.sums));
    for (int j = 0; j < 4 * k; j++) w->host.limits[j] = -1;   /* none yet */
    SPS_TRY(ctx->backend->alloc(ctx, w->host.bytes, &room));
    lay_out(w, room);
    /* Zeroed, because passes read sums before they know whether they are
     * needed, and the state is downloaded before the first step, too. */
    SPS_TRY(SPS_NEW(ctx, (int64_t)(w->host.bytes / sizeof *zeros), &zeros));
    SPS_TRY(ctx->backend->upload(ctx, room, zeros, w->host.bytes));
fail:
    spsi_free(ctx, zeros);
    return st;
}

/* --------------------------------- blocks that the fused passes can work on */

static bool aligned(const sps_block *X)
{
    return X->ld % 2 == 0 && (uintptr_t)X->data % 16 == 0;
}

bool spsi_fused_cg_serve(const sps_fused_cg *w, const sps_fused_cg_task *t)
{
    return w && (w->columns || (aligned(t->X) && aligned(t->R)));
}

/* Returns the residual norms after step number `taken`. */
static const double *row_of(const sps_fused_cg *w, int taken)
{
    return w->host.seen + STATE + taken % SPS_FUSED_QUEUE * w->most;
}

/* Sets the numbers of columns of the next step; P has r columns. */
static void shape(sps_fused_cg *w, const sps_fused_cg_task *t, int r)
{
    w->r = r;
    w->k = t->X->k;
    w->few = t->few;
    w->D = t->D ? t->D->data : NULL;
}

/* Wraps an array of the step as an argument of block operations. */
static sps_small small_of(const sps_fused_cg *w, double *v, int rows, int cols)
{
    return (sps_small){ .ctx = w->ctx, .place = w->ctx->backend->place,
                        .rows = rows, .cols = cols, .max_rows = rows,
                        .max_cols = cols, .v = v };
}

/* Queues to = the sum of `from` over the processes, on a GPU by its wire. */
static sps_status sum(const sps_fused_cg *w, const double *from, double *to,
                      int count)
{
    const sps_wire *wire = spsi_wire(w->ctx);

    if (!spsi_comm_many(w->ctx)) return SPS_OK;
    if (wire) return wire->sum(w->ctx, from, to, count);
    if (to != from) memcpy(to, from, (size_t)count * sizeof *to);
    return spsi_reduce(w->ctx, to, count);
}

sps_status spsi_fused_cg_begin(sps_fused_cg *w, const sps_fused_cg_task *t,
                               const double *c)
{
    const sps_backend *f = w->ctx->backend;
    size_t row = (size_t)t->X->k * sizeof(double);
    sps_status st = SPS_OK;

    shape(w, t, t->P->k);
    if (w->columns) {
        SPS_TRY(f->upload(w->ctx, w->C, c, row));
    } else {
        sps_small C = small_of(w, w->C, t->P->k, t->X->k);

        SPS_TRY(f->gram(t->P, t->R, &C));
        SPS_TRY(sum(w, w->C, w->C, C.rows * C.cols));
    }
    SPS_TRY(f->upload(w->ctx, w->last, t->of->resnorm, row));
    w->queue.given = !w->columns;
    w->queue.unchecked = 0;
    w->queue.stopped = true;   /* S, if there is one, belongs to another P */
fail:
    return st;
}

/* S = P'P and C = P'R, summed over the rows of this process. */
static sps_status own_pair(const sps_fused_cg_task *t, sps_small *S,
                           sps_small *C)
{
    const sps_backend *f = t->P->ctx->backend;
    sps_status st;

    if (f->gram_pair) return f->gram_pair(t->P, t->P, t->R, S, C);
    SPS_TRY(f->gram(t->P, t->P, S));
    SPS_TRY(f->gram(t->P, t->R, C));
fail:
    return st;
}

sps_status spsi_fused_cg_start(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    const size_t square = (size_t)t->P->k * (size_t)t->P->k;
    sps_block all = { .ctx = w->ctx, .n = in_S(w), .k = 1, .ld = 1,
                      .dtype = SPS_F64, .data = w->own.S };
    sps_small S, C;
    sps_status st = SPS_OK;

    shape(w, t, t->P->k);
    SPS_TRY(spsi_fill(&all, 0.0));   /* one partial sum; the others are zero */
    S = small_of(w, w->own.S, t->P->k, t->P->k);
    C = small_of(w, w->own.S + square, t->P->k, t->P->k);
    SPS_TRY(own_pair(t, &S, &C));
    SPS_TRY(w->ctx->backend->upload(w->ctx, w->last, t->of->resnorm,
                                    (size_t)t->X->k * sizeof(double)));
    w->queue.given = w->queue.since = 0;
    w->queue.parts = w->queue.unchecked = 1;
    w->queue.stopped = true;
fail:
    return st;
}

sps_status spsi_fused_cg_basis(sps_fused_cg *w, sps_small *S)
{
    const size_t square = (size_t)w->k * (size_t)w->k;
    const double *part = w->host.sums;
    sps_status st = SPS_OK;

    SPS_TRY(w->ctx->backend->download(w->ctx, w->host.sums, w->own.S,
                                      2 * (size_t)w->queue.parts * square *
                                      sizeof(double)));
    spsi_small_shape(S, w->k, w->k);
    spsi_small_clear(S);
    for (int p = 0; p < w->queue.parts; p++, part += 2 * square)
        for (size_t e = 0; e < square; e++) S->v[e] += part[e];
    SPS_TRY(spsi_small_reduce(S));
fail:
    return st;
}

void spsi_fused_cg_scalars(const sps_fused_cg *w, double *c)
{
    memcpy(c, w->host.seen + seen(w) - w->most, (size_t)w->k * sizeof *c);
}

/* -------------------------------------------------------------------- queue */

static sps_status queue_passes(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    const sps_backend *f = w->ctx->backend;
    sps_status st = SPS_OK;

    SPS_TRY(f->fused_cg_lengths(w, t->P, t->Q));
    SPS_TRY(sum(w, w->own.S, w->S, (int)(in_S(w) + w->most * w->most)));
    SPS_TRY(f->fused_cg_residual(w, t->Q, t->R));
    SPS_TRY(sum(w, w->own.W, w->W, (w->r + 1) * w->k));
    SPS_TRY(f->fused_cg_directions(w, t->P, t->X, t->R));
fail:
    return st;
}

static sps_status queue_timed(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    sps_status st = SPS_OK;

    spsi_phase_begin(w->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(t->A, 1.0, t->P, 0.0, t->Q);
    spsi_phase_end(w->ctx, SPS_PHASE_SPMM);
    if (st != SPS_OK) return st;
    spsi_phase_begin(w->ctx, SPS_PHASE_GRAM);
    st = queue_passes(w, t);
    spsi_phase_end(w->ctx, SPS_PHASE_GRAM);
    return st;
}

/* Returns whether a step for t equals those that were counted and recorded.  A
 * recording contains addresses of scratch memory of the context and of the
 * product.  These change if another solver needs more scratch memory, but only
 * by freeing device memory, which `frees` counts.  (`few` is in the recording,
 * too; it follows from k.) */
static bool alike(const sps_fused_cg *w, const sps_fused_cg_task *t)
{
    const sps_fused_cg_key *key = &w->queue.key;

    return key->X == t->X->data && key->ld == t->X->ld &&
           key->R == t->R->data && key->D == w->D && key->k == w->k &&
           key->version == t->A->version &&
           key->frees == w->ctx->memory.device_frees;
}

/* Records a step instead of running it.  If that fails, steps with this key are
 * queued one by one, until memory has been freed and it is tried again. */
static sps_status record(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    const sps_backend *f = w->ctx->backend;
    sps_status st, ended;

    SPS_TRY(f->record_begin(w->ctx));
    st = sps_operator_apply(t->A, 1.0, t->P, 0.0, t->Q);
    if (st == SPS_OK) st = queue_passes(w, t);
    ended = f->record_end(w->ctx, &w->queue.recording);
    if (st == SPS_OK) st = ended;
fail:
    if (st != SPS_OK) drop(w);
    if (st != SPS_OK && !w->ctx->dead)
        spsi_note(w->ctx, "iterations are queued one by one, not recorded: %s",
                  sps_context_error(w->ctx));
    return w->ctx->dead ? st : SPS_OK;
}

/* Counts a step queued without recording; after PLAIN of them one is
 * recorded. */
static sps_status count_plain(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    if (!alike(w, t)) {
        drop(w);
        w->queue.plain = 0;
        w->queue.key = (sps_fused_cg_key){
            t->X->data, t->R->data, w->D, t->X->ld, w->k, t->A->version,
            w->ctx->memory.device_frees };
    }
    return ++w->queue.plain == PLAIN ? record(w, t) : SPS_OK;
}

/* Queues one step.  The first steps of a key are not recorded: scratch memory
 * grows during them, outside the recording, and the recording is made while
 * they run. */
static sps_status queue_one(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    bool small = t->replay && w->ctx->backend->replay &&
                 t->P->k == t->X->k && !t->A->callback.apply &&
                 !spsi_comm_many(w->ctx) &&
                 t->X->n * t->X->ld <= RECORDED;
    sps_status st = SPS_OK;

    shape(w, t, t->P->k);
    spsi_block_narrow(t->Q, t->P->k);
    if (small && w->queue.recording && alike(w, t))
        return w->ctx->backend->replay(w->ctx, w->queue.recording);
    SPS_TRY(queue_timed(w, t));
    if (small) SPS_TRY(count_plain(w, t));
    spsi_block_narrow(t->P, t->X->k);
fail:
    return st;
}

/* Uploads the limits of the columns and the norms of their best iterates, if
 * they differ from those in device memory. */
static sps_status send_limits(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    const sps_linear_best *best = &t->of->best;
    double *to[] = { w->known.limit, w->known.least, w->known.kept_norm,
                     w->known.gap };
    const size_t bytes = (size_t)t->X->k * sizeof(double);
    sps_status st = SPS_OK;

    for (int i = 0; i < 4; i++) {
        double *held = w->host.limits + i * w->most, now[SPS_BLOCK_MAX];

        for (int p = 0, j; p < t->X->k; p++) {
            j = t->of->at.column[p];
            now[p] = i == 0 ? t->limit[p] : i == 1 ? best->least[j]
                   : i == 2 ? best->norm[j] : best->gap[j];
        }
        if (!memcmp(held, now, bytes)) continue;
        memcpy(held, now, bytes);
        SPS_TRY(w->ctx->backend->upload(w->ctx, to[i], held, bytes));
    }
fail:
    return st;
}

/* Clears the stop reason in device memory; the counts continue. */
static sps_status resume(sps_fused_cg *w)
{
    sps_fused_cg_queue *q = &w->queue;
    sps_fused_cg_state state = { .taken = q->taken, .given = q->given,
                                .unchecked = q->unchecked, .parts = q->parts };

    if (!q->stopped) return SPS_OK;
    q->stopped = false;
    return w->ctx->backend->upload(w->ctx, w->state, &state, sizeof state);
}

/* Downloads the state.  *taken becomes the number of steps completed since the
 * last call; their norms are copied to `norms` and recorded by
 * spsi_best_record. */
static sps_status collect(sps_fused_cg *w, const sps_fused_cg_task *t,
                          double *norms, int *taken, sps_fused_cg_state *state)
{
    const sps_linear_best *best = &t->of->best;
    int *at = &w->queue.taken;
    sps_status st = SPS_OK;

    double none = 0;

    /* The sums of the steps have no control numbers; this sum informs the other
     * processes of failures, requests to stop and expired time limits, while
     * the steps run. */
    if (spsi_wire(w->ctx)) SPS_TRY(spsi_reduce(w->ctx, &none, 1));
    SPS_TRY(w->ctx->backend->download(w->ctx, w->host.seen, w->state,
                                      (size_t)seen(w) * sizeof(double)));
    memcpy(state, w->host.seen, sizeof *state);
    for (; *at != state->taken; *at = (*at + 1) & TAKEN) {
        double *row = norms + (size_t)*taken * (size_t)t->X->k;

        memcpy(row, row_of(w, *at), (size_t)t->X->k * sizeof *row);
        spsi_best_record(t->of, row);
        for (int p = 0; p < t->X->k; p++)
            w->host.limits[w->most + p] = best->least[t->of->at.column[p]];
        ++*taken;
    }
fail:
    return st;
}

/* Called after a step that stopped before it replaced best iterates in X:
 * stores these, and completes the step.  Its P has r columns. */
static sps_status complete_step(sps_fused_cg *w, const sps_fused_cg_task *t,
                                int r, const sps_fused_cg_state *stopped)
{
    sps_fused_cg_state state = *stopped;
    sps_status st = SPS_OK;

    if (spsi_best_due(t->of, row_of(w, w->queue.taken)))
        SPS_TRY(t->correction ? spsi_best_store_flushed(t->of)
                              : spsi_best_store(t->of, t->X));
    if (t->of->stop) return st;
    SPS_TRY(send_limits(w, t));
    state.stop = 0;
    state.go = 2;
    SPS_TRY(w->ctx->backend->upload(w->ctx, w->state, &state, sizeof state));
    spsi_block_narrow(t->P, r);
    shape(w, t, r);
    SPS_TRY(w->ctx->backend->fused_cg_directions(w, t->P, t->X, t->R));
    spsi_block_narrow(t->P, t->X->k);
fail:
    return st;
}

/* Returns log(||r|| / limit) of the column whose convergence stops the queue,
 * because all but `few` have converged then. */
static double distance(sps_fused_cg *w, const sps_fused_cg_task *t)
{
    for (int j = 0; j < t->X->k; j++)
        w->host.far[j] = log(t->of->resnorm[j] / fmax(t->limit[j], DBL_MIN));
    spsi_columns_sort(w->host.far, t->X->k);
    return w->host.far[t->X->k - 1 - t->few];
}

/* After the step that stops the queue, the steps queued do nothing, but their
 * products run.  The convergence rate of the last steps predicts how many steps
 * remain; a fraction PART of these is queued, since residuals do not decrease
 * evenly.  One more host synchronisation costs less than a product of a large
 * block. */
static void limit_by_rate(sps_fused_cg *w, const sps_fused_cg_task *t,
                          int *count)
{
    sps_fused_cg_queue *q = &w->queue;
    const double left = distance(w, t), gained = q->distance - left;
    const double steps = PART * left / gained * q->since;

    q->distance = left;
    if (left > 0 && gained > 0 && q->since > 0 && steps < *count)
        *count = steps < 1 ? 1 : (int)steps;
}

sps_status spsi_fused_cg_take(sps_fused_cg *w, const sps_fused_cg_task *t,
                              int *count, int *taken, double *norms, int *why)
{
    sps_fused_cg_queue *q = &w->queue;
    const bool host = w->ctx->backend->place == SPS_HOST;
    sps_fused_cg_state state = { 0 };
    sps_status st = SPS_OK, got;
    int r = t->P->k;

    *taken = 0;
    SPS_TRY(resume(w));
    SPS_TRY(send_limits(w, t));
    limit_by_rate(w, t, count);
    if (*count > q->burst) *count = q->burst;
    q->burst = q->burst > SPS_FUSED_QUEUE / 2 ? SPS_FUSED_QUEUE : 2 * q->burst;
    do {
        if (state.stop & SPS_FUSED_STORE) {
            *count = *taken + 1;
            q->burst = 1;
            SPS_TRY(complete_step(w, t, *taken ? t->X->k : r, &state));
            if (t->of->stop) return st;
        }
        for (int i = *taken + (state.stop != 0); i < *count && !st; i++) {
            if (host && w->state->stop) break;   /* visible without waiting */
            st = queue_one(w, t);
        }
        got = collect(w, t, norms, taken, &state);
        if (st != SPS_OK || got != SPS_OK) return st != SPS_OK ? st : got;
    } while (state.stop & SPS_FUSED_STORE);
    *why = state.stop;
    if (*taken == 0) spsi_block_narrow(t->P, r);
    q->since = *taken;
    q->given = state.given;
    q->unchecked = state.unchecked;
    q->parts = state.parts;
    q->stopped = *why != 0;
fail:
    return st;
}
