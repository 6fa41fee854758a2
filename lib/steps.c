/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.c - see steps.h: memory of steps, their queue, and its recording.
 *
 * A recording (a CUDA graph) holds one step with r = k and is replayed while
 * blocks and values stay where they are.  It pays where launches take longer
 * than the work, so large blocks go without; there the phases of a step are
 * timed, which a recording does not tell apart. */
#include "steps.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "columns.h"
#include "solver.h"
#include "timer.h"

_Static_assert(SPS_SOLVER_AHEAD <= SPS_STEPS_AHEAD, "norms of all steps");

/* Numbers of a block up to which steps are recorded. */
#define RECORDED (INT64_C(1) << 23)

#define PART 0.7

enum {
    STATE = 8,               /* doubles that the state takes */
    PLAIN = 3                /* steps queued before one is recorded */
};

/* ------------------------------------------------------------------- memory */

/* Doubles of S and C, all parts. */
static int64_t in_S(const sps_steps *w)
{
    return w->columns ? 0 : 2 * (int64_t)w->most_parts * w->most * w->most;
}

/* Lays the arrays out; returns how many doubles they take. */
static int64_t lay_out(sps_steps *w, double *at)
{
    int64_t k = w->most, square = w->columns ? k : k * k, used = 0;
    int64_t parts = w->most_parts;
    struct { double **p; int64_t count; } array[] = {
        { &w->norms, SPS_STEPS_AHEAD * k }, { &w->last, k },
        { &w->C, square }, { &w->limit, k }, { &w->G, parts * square },
        { &w->F, square }, { &w->a, square }, { &w->b, square },
        { &w->W, parts * (square + k) }, { &w->S, in_S(w) },
    };

    w->state = (sps_steps_state *)(void *)at;
    used = STATE;
    for (size_t i = 0; i < sizeof array / sizeof *array; i++) {
        if (at) *array[i].p = at + used;
        used += array[i].count;
    }
    return used;
}

/* Doubles that come back: state, norms, last, and C with own scalars. */
static int64_t seen(const sps_steps *w)
{
    return STATE + (SPS_STEPS_AHEAD + (w->columns ? 2 : 1)) *
                   (int64_t)w->most;
}

sps_status spsi_steps_create(sps_context *ctx, int k, bool columns,
                             double condition, sps_steps **w_p)
{
    sps_status st = SPS_OK;
    sps_steps *w = NULL;
    void *room = NULL;
    double *zeros = NULL;

    *w_p = NULL;
    if (!ctx->backend->steps_lengths || ctx->opt.reduce ||
        (columns ? !ctx->backend->steps_columns : k > SPS_STEPS_WIDEST))
        return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, 1, &w));
    w->ctx = ctx;
    w->columns = columns;
    w->most = k;
    w->condition = condition;
    w->near = SPS_STEPS_NEAR;
    w->most_parts = columns || k > SPS_STEPS_NARROW ? 1 : SPS_STEPS_PARTS;
    w->bytes = (size_t)lay_out(w, NULL) * sizeof(double);
    SPS_TRY(SPS_NEW(ctx, seen(w), &w->seen));
    SPS_TRY(SPS_NEW(ctx, k, &w->limits));
    SPS_TRY(SPS_NEW(ctx, k, &w->far));
    SPS_TRY(SPS_NEW(ctx, 2, &w->kept));
    SPS_TRY(SPS_NEW(ctx, in_S(w), &w->sums));
    for (int j = 0; j < k; j++) w->limits[j] = -1;   /* none yet */
    SPS_TRY(ctx->backend->alloc(ctx, w->bytes, &room));
    lay_out(w, room);
    /* Zeros, for passes read sums before they know whether these are asked for,
     * and what comes back comes before the first step, too. */
    SPS_TRY(SPS_NEW(ctx, (int64_t)(w->bytes / sizeof *zeros), &zeros));
    SPS_TRY(ctx->backend->upload(ctx, room, zeros, w->bytes));
    spsi_free(ctx, zeros);
    *w_p = w;
    return SPS_OK;

fail:
    spsi_free(ctx, zeros);
    spsi_steps_destroy(&w);
    return st;
}

static void drop(sps_steps *w)
{
    if (w->recording) w->ctx->backend->record_drop(w->ctx, w->recording);
    w->recording = NULL;
}

void spsi_steps_destroy(sps_steps **w_p)
{
    sps_steps *w = *w_p;

    *w_p = NULL;
    if (!w) return;
    drop(w);
    if (w->state) w->ctx->backend->release(w->ctx, w->state, w->bytes);
    spsi_free(w->ctx, w->seen);
    spsi_free(w->ctx, w->limits);
    spsi_free(w->ctx, w->far);
    spsi_free(w->ctx, w->kept);
    spsi_free(w->ctx, w->sums);
    spsi_free(w->ctx, w);
}

/* ------------------------------------------------------------------- shapes */

static bool aligned(const sps_block *X)
{
    return X->ld % 2 == 0 && (uintptr_t)X->data % 16 == 0;
}

bool spsi_steps_serve(const sps_solver *s, const sps_steps *w)
{
    if (!w || s->null || s->n == 0 || s->k == 0) return false;
    if (s->M && !s->M->identity && !s->M->diagonal) return false;
    return w->columns || (aligned(&s->X) && aligned(&s->R));
}

/* Open columns at which the queue stops; those that stay do not stop it. */
static int few_of(const sps_solver *s)
{
    return spsi_columns_wait(s) ? 0 : spsi_columns_few(s);
}

/* The shapes of the next step. */
static void shape(const sps_solver *s, sps_steps *w, int r)
{
    w->r = r;
    w->k = s->k;
    w->few = few_of(s);
    w->D = s->M && !s->M->identity ? s->M->diagonal->data : NULL;
}

/* A matrix of the step as block operations take it. */
static sps_small small_of(const sps_steps *w, double *v, int rows, int cols)
{
    return (sps_small){ .ctx = w->ctx, .place = w->ctx->backend->place,
                        .rows = rows, .cols = cols, .max_rows = rows,
                        .max_cols = cols, .v = v };
}

sps_status spsi_steps_begin(sps_solver *s, sps_steps *w, const sps_block *P,
                            const double *c)
{
    const sps_backend *f = w->ctx->backend;
    size_t row = (size_t)s->k * sizeof(double);
    sps_status st = SPS_OK;

    shape(s, w, P->k);
    if (w->columns) {
        SPS_TRY(f->upload(w->ctx, w->C, c, row));
    } else {
        sps_small C = small_of(w, w->C, P->k, s->k);

        SPS_TRY(spsi_gram(P, &s->R, &C));
    }
    SPS_TRY(f->upload(w->ctx, w->last, s->resnorm, row));
    w->given = !w->columns;
    w->unseen = 0;
    w->stopped = true;   /* S, if there is one, belongs to another P */
fail:
    return st;
}

sps_status spsi_steps_start(sps_solver *s, sps_steps *w, const sps_block *P)
{
    const size_t square = (size_t)P->k * (size_t)P->k;
    sps_block all = { .ctx = w->ctx, .n = in_S(w), .k = 1, .ld = 1,
                      .dtype = SPS_F64, .data = w->S };
    sps_small S, C;
    sps_status st = SPS_OK;

    shape(s, w, P->k);
    SPS_TRY(spsi_fill(&all, 0.0));   /* one part, and nothing in the others */
    S = small_of(w, w->S, P->k, P->k);
    C = small_of(w, w->S + square, P->k, P->k);
    SPS_TRY(spsi_gram_pair(P, P, &s->R, &S, &C));
    SPS_TRY(w->ctx->backend->upload(w->ctx, w->last, s->resnorm,
                                    (size_t)s->k * sizeof(double)));
    w->given = w->since = 0;
    w->parts = w->unseen = 1;
    w->stopped = true;
fail:
    return st;
}

sps_status spsi_steps_basis(sps_steps *w, sps_small *S)
{
    const size_t square = (size_t)w->k * (size_t)w->k;
    const double *part = w->sums;
    sps_status st = SPS_OK;

    SPS_TRY(w->ctx->backend->download(w->ctx, w->sums, w->S,
                                      2 * (size_t)w->parts * square *
                                      sizeof(double)));
    spsi_small_shape(S, w->k, w->k);
    spsi_small_clear(S);
    for (int p = 0; p < w->parts; p++, part += 2 * square)
        for (size_t e = 0; e < square; e++) S->v[e] += part[e];
fail:
    return st;
}

void spsi_steps_scalars(const sps_steps *w, double *c)
{
    memcpy(c, w->seen + seen(w) - w->most, (size_t)w->k * sizeof *c);
}

/* -------------------------------------------------------------------- queue */

static sps_status queue_passes(sps_solver *s, sps_steps *w, sps_block *P,
                               sps_block *Q)
{
    const sps_backend *f = w->ctx->backend;
    sps_status st = SPS_OK;

    SPS_TRY(f->steps_lengths(w, P, Q));
    SPS_TRY(f->steps_residual(w, Q, &s->R));
    SPS_TRY(f->steps_directions(w, P, &s->X, &s->R));
fail:
    return st;
}

static sps_status queue_timed(sps_solver *s, sps_steps *w, sps_block *P,
                              sps_block *Q)
{
    sps_status st = SPS_OK;

    spsi_phase_begin(s->ctx, SPS_PHASE_SPMM);
    st = sps_operator_apply(s->A, 1.0, P, 0.0, Q);
    spsi_phase_end(s->ctx, SPS_PHASE_SPMM);
    if (st != SPS_OK) return st;
    spsi_phase_begin(s->ctx, SPS_PHASE_GRAM);
    st = queue_passes(s, w, P, Q);
    spsi_phase_end(s->ctx, SPS_PHASE_GRAM);
    return st;
}

/* Whether the steps that were counted, and recorded, are these.  A recording
 * names scratch of the context and of the product, which moves when another
 * solver wants more: not unless device memory is freed.  (`few`, which is in it,
 * too, follows from k.) */
static bool alike(const sps_solver *s, const sps_steps *w)
{
    const struct sps_steps_key *key = &w->key;

    return key->X == s->X.data && key->ld == s->X.ld &&
           key->R == s->R.data && key->D == w->D && key->k == w->k &&
           key->version == s->A->version &&
           key->frees == w->ctx->device_frees;
}

/* Keeps a step instead of running it.  Where that fails steps of this key go
 * without: what failed for want of memory may do when some was freed. */
static sps_status record(sps_solver *s, sps_steps *w, sps_block *P,
                         sps_block *Q)
{
    const sps_backend *f = w->ctx->backend;
    sps_status st, ended;

    SPS_TRY(f->record_begin(w->ctx));
    st = sps_operator_apply(s->A, 1.0, P, 0.0, Q);
    if (st == SPS_OK) st = queue_passes(s, w, P, Q);
    ended = f->record_end(w->ctx, &w->recording);
    if (st == SPS_OK) st = ended;
fail:
    if (st != SPS_OK) drop(w);
    if (st != SPS_OK && !w->ctx->dead)
        spsi_note(w->ctx, "iterations are queued one by one, not recorded: %s",
                  sps_context_error(w->ctx));
    return w->ctx->dead ? st : SPS_OK;
}

/* A step of this kind was queued as it is; PLAIN of them, and it is recorded. */
static sps_status count_plain(sps_solver *s, sps_steps *w, sps_block *P,
                              sps_block *Q)
{
    if (!alike(s, w)) {
        drop(w);
        w->plain = 0;
        w->key = (struct sps_steps_key){ s->X.data, s->R.data, w->D, s->X.ld,
                                         w->k, s->A->version,
                                         w->ctx->device_frees };
    }
    return ++w->plain == PLAIN ? record(s, w, P, Q) : SPS_OK;
}

/* One step.  The first ones of a kind run as they are: whatever has to grow does
 * so outside of the recording, which is made while they are at work. */
static sps_status queue_one(sps_solver *s, sps_steps *w, sps_block *P,
                            sps_block *Q)
{
    bool small = s->opt.replay && s->ctx->backend->replay &&
                 P->k == s->k && !s->A->apply && s->n * s->X.ld <= RECORDED;
    sps_status st = SPS_OK;

    shape(s, w, P->k);
    spsi_block_narrow(Q, P->k);
    if (small && w->recording && alike(s, w))
        return w->ctx->backend->replay(w->ctx, w->recording);
    SPS_TRY(queue_timed(s, w, P, Q));
    if (small) SPS_TRY(count_plain(s, w, P, Q));
    spsi_block_narrow(P, s->k);
fail:
    return st;
}

/* What columns have to reach, when that changed. */
static sps_status send_limits(sps_solver *s, sps_steps *w)
{
    size_t bytes = (size_t)s->k * sizeof(double);

    if (!memcmp(w->limits, s->limit, bytes)) return SPS_OK;
    memcpy(w->limits, s->limit, bytes);
    return w->ctx->backend->upload(w->ctx, w->limit, w->limits, bytes);
}

/* No reason to stop any more; the count goes on. */
static sps_status resume(sps_steps *w)
{
    sps_steps_state state = { .taken = w->taken, .given = w->given,
                              .unseen = w->unseen, .parts = w->parts };

    if (!w->stopped) return SPS_OK;
    w->stopped = false;
    return w->ctx->backend->upload(w->ctx, w->state, &state, sizeof state);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of the column that is the first to stop the queue when it is done, since with
 * it all but `few` are: log(||r|| / limit). */
static double distance(const sps_solver *s, sps_steps *w)
{
    const int few = few_of(s);

    for (int j = 0; j < s->k; j++)
        w->far[j] = log(s->resnorm[j] / fmax(s->limit[j], DBL_MIN));
    qsort(w->far, (size_t)s->k, sizeof *w->far, by_value);
    return w->far[s->k - 1 - few];
}

/* What is queued behind the step that stops the queue does nothing, but its
 * products run.  So no more steps than PART of what is left to do at the rate
 * of the last ones: residuals of conjugate directions do not fall evenly.  To
 * wait once more costs less than a product of a large block. */
static void foresee(const sps_solver *s, sps_steps *w, int *count)
{
    const double left = distance(s, w), gained = w->distance - left;
    const double steps = PART * left / gained * w->since;

    w->distance = left;
    if (left > 0 && gained > 0 && w->since > 0 && steps < *count)
        *count = steps < 1 ? 1 : (int)steps;
}

sps_status spsi_steps_take(sps_solver *s, sps_steps *w, sps_block *P,
                           sps_block *Q, int *count, int *taken, double *norms,
                           int *why)
{
    sps_steps_state state;
    sps_status st = SPS_OK;
    int r = P->k;

    SPS_TRY(resume(w));
    SPS_TRY(send_limits(s, w));
    foresee(s, w, count);
    for (int i = 0; i < *count; i++) SPS_TRY(queue_one(s, w, P, Q));
    SPS_TRY(w->ctx->backend->download(w->ctx, w->seen, w->state,
                                      (size_t)seen(w) * sizeof(double)));
    memcpy(&state, w->seen, sizeof state);
    *taken = (state.taken - w->taken) & 0x3fffffff;
    *why = state.stop;
    if (*taken == 0) spsi_block_narrow(P, r);
    for (int i = 0; i < *taken; i++)
        memcpy(norms + (size_t)i * (size_t)s->k,
               w->seen + STATE + (w->taken + i) % SPS_STEPS_AHEAD * w->most,
               (size_t)s->k * sizeof *norms);
    w->since = *taken;
    w->taken = state.taken;
    w->given = state.given;
    w->unseen = state.unseen;
    w->parts = state.parts;
    w->stopped = *why != 0;
    s->applies_A += *taken;
    s->applies_M += w->D ? *taken : 0;
fail:
    return st;
}
