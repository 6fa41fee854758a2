/* SPDX-License-Identifier: BSD-3-Clause */
/* halo.c - see halo.h: finds out which process needs which rows of which other,
 * and exchanges them. */
#include "halo/halo.h"

#include <string.h>

#include "core/backend.h"
#include "core/team.h"
#include "core/timer.h"
#include "plan/kernel.h"

/* Returns the first index of an ascending array whose element is not below
 * `wanted`, or `count`. */
static int64_t lower_bound(const int64_t *array, int64_t count, int64_t wanted)
{
    int64_t low = 0, high = count;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (array[middle] < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

int spsi_halo_owner(const sps_halo *h, int64_t row)
{
    const int size = spsi_comm_size(h->ctx);

    return (int)lower_bound(h->offset, size + 1, row + 1) - 1;
}

int64_t spsi_halo_ghost(const sps_halo *h, int64_t row)
{
    const int64_t at = lower_bound(h->ghost, h->ghosts, row);

    return at < h->ghosts && h->ghost[at] == row ? at : -1;
}

/* ----------------------------------------------------------------- creation */

/* Gathers the first row of each process; row numbers below 2^53 are exact as
 * doubles. */
static sps_status gather_offsets(sps_halo *h)
{
    sps_context *ctx = h->ctx;
    const int size = spsi_comm_size(ctx);
    double *all = NULL;
    int64_t end = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &all));
    SPS_TRY(SPS_OWN(&h->own, size + 1, &h->offset));
    SPS_TRY(spsi_comm_gather(ctx, (double)h->first, all));
    SPS_TRY(spsi_comm_gather(ctx, (double)h->n, all + size));
    for (int r = 0; r < size; r++) {
        SPS_REQUIRE(ctx, all[r] == (double)end, SPS_EINVAL, "the rows of "
                    "process %d begin at %.0f, those before it end at %lld: "
                    "each process has the rows that follow those of the one "
                    "before it", r, all[r], (long long)end);
        h->offset[r] = end;
        end += (int64_t)all[size + r];
    }
    SPS_REQUIRE(ctx, end == h->whole, SPS_EINVAL, "the processes have %lld "
                "rows, the whole matrix %lld", (long long)end,
                (long long)h->whole);
    h->offset[size] = end;
fail:
    spsi_free(ctx, all);
    return st;
}

/* Sets given[r] to the number of own rows that process r needs, which process r
 * sends: it is the number of its ghosts that this process owns. */
static sps_status trade_counts(sps_halo *h, int64_t *given)
{
    const int size = spsi_comm_size(h->ctx), own = spsi_comm_rank(h->ctx);
    int64_t *wanted = NULL;
    sps_message *m = NULL;
    int others = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, size, &wanted));
    SPS_TRY(SPS_NEW(h->ctx, 2 * (int64_t)size, &m));
    for (int64_t g = 0; g < h->ghosts; g++)
        wanted[spsi_halo_owner(h, h->ghost[g])]++;
    for (int r = 0; r < size; r++) {
        if (r == own) continue;
        m[others] = (sps_message){ r, &wanted[r], sizeof *wanted };
        m[size + others++] = (sps_message){ r, &given[r], sizeof *given };
    }
    SPS_TRY(spsi_comm_exchange(h->ctx, m, others, m + size, others));
    for (int r = 0; r < size; r++) {
        if (wanted[r] == 0 && given[r] == 0) continue;
        h->peer[h->neighbours++] = r;
        h->ghost_at[h->neighbours] = h->ghost_at[h->neighbours - 1] + wanted[r];
        h->send_at[h->neighbours] = h->send_at[h->neighbours - 1] + given[r];
    }
fail:
    spsi_free(h->ctx, wanted);
    spsi_free(h->ctx, m);
    return st;
}

int spsi_halo_messages(const sps_halo *h, const int64_t *at, void *items,
                       size_t each, sps_message *m)
{
    int count = 0;

    for (int i = 0; i < h->neighbours; i++) {
        const size_t length = (size_t)(at[i + 1] - at[i]);

        if (length > 0)
            m[count++] = (sps_message){
                h->peer[i], (char *)items + (size_t)at[i] * each,
                length * each };
    }
    return count;
}

int64_t spsi_halo_row(const sps_halo *h, int64_t col)
{
    if (col < h->low) return h->ghost[col];
    return col < h->low + h->n ? h->first + col - h->low : h->ghost[col - h->n];
}

typedef struct naming {
    const sps_halo *h;
    const int32_t *col;
    int64_t *global;
} naming;

static void name_entries(void *data, int64_t first, int64_t last)
{
    const naming *j = data;

    for (int64_t p = first; p < last; p++)
        j->global[p] = j->h ? spsi_halo_row(j->h, j->col[p]) : j->col[p];
}

void spsi_halo_rows(sps_context *ctx, const sps_halo *h, const int32_t *col,
                    int64_t count, int64_t *global)
{
    spsi_team_run(ctx, count, count, name_entries, &(naming){ h, col, global });
}

sps_status spsi_halo_trade_packed(sps_halo *h, const void *out, size_t each,
                                  void *ghost)
{
    return spsi_comm_exchange(
        h->ctx, h->out,
        spsi_halo_messages(h, h->send_at, (void *)(uintptr_t)out, each, h->out),
        h->in, spsi_halo_messages(h, h->ghost_at, ghost, each, h->in));
}

sps_status spsi_halo_trade(sps_halo *h, const void *own, size_t each,
                           void *ghost)
{
    const int64_t count = h->send_at[h->neighbours];
    char *out = NULL;
    sps_status st;

    SPS_TRY(spsi_new(h->ctx, (size_t)count * each, (void **)&out));
    for (int64_t i = 0; i < count; i++)
        memcpy(out + (size_t)i * each,
               (const char *)own + (size_t)h->send[i] * each, each);
    SPS_TRY(spsi_halo_trade_packed(h, out, each, ghost));
fail:
    spsi_free(h->ctx, out);
    return st;
}

/* Sends to each neighbour the numbers of the ghosts that it owns, and receives
 * the numbers of the own rows that it needs. */
static sps_status trade_rows(sps_halo *h)
{
    const int64_t count = h->send_at[h->neighbours];
    int64_t *rows = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, count, &rows));
    SPS_TRY(SPS_OWN(&h->own, count, &h->send));
    SPS_TRY(spsi_comm_exchange(
        h->ctx, h->out,
        spsi_halo_messages(h, h->ghost_at, h->ghost, sizeof *rows, h->out),
        h->in, spsi_halo_messages(h, h->send_at, rows, sizeof *rows, h->in)));
    for (int64_t i = 0; i < count; i++) {
        SPS_REQUIRE(h->ctx, rows[i] >= h->first && rows[i] < h->first + h->n,
                    SPS_EBUG, "row %lld was requested from a process that "
                    "does not own it", (long long)rows[i]);
        h->send[i] = (int32_t)(rows[i] - h->first);
    }
fail:
    spsi_free(h->ctx, rows);
    return st;
}

static void look_for_runs(sps_halo *h)
{
    h->runs = true;
    for (int i = 0; i < h->neighbours; i++) {
        const int64_t at = h->send_at[i], last = h->send_at[i + 1] - 1;

        h->runs &= last < at || h->send[last] - h->send[at] == last - at;
    }
}

sps_status spsi_halo_create(sps_context *ctx, int64_t first, int64_t n,
                            int64_t whole, const int64_t *ghost, int64_t ghosts,
                            sps_halo **h_p)
{
    const int size = spsi_comm_size(ctx);
    int64_t *given = NULL;
    sps_halo *h = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 1, &h));
    *h = (sps_halo){ .ctx = ctx, .own = { .ctx = ctx }, .first = first, .n = n,
                     .whole = whole, .ghosts = ghosts };
    SPS_TRY(SPS_NEW(ctx, size, &given));
    SPS_TRY(SPS_OWN(&h->own, size, &h->peer));
    SPS_TRY(SPS_OWN(&h->own, size + 1, &h->send_at));
    SPS_TRY(SPS_OWN(&h->own, size + 1, &h->ghost_at));
    SPS_TRY(SPS_OWN(&h->own, size, &h->out));
    SPS_TRY(SPS_OWN(&h->own, size, &h->in));
    SPS_TRY(SPS_OWN(&h->own, ghosts, &h->ghost));
    if (ghosts > 0)
        memcpy(h->ghost, ghost, (size_t)ghosts * sizeof *ghost);
    h->low = lower_bound(h->ghost, ghosts, first);
    if (spsi_wire(ctx)) SPS_TRY(spsi_wire(ctx)->open(ctx));
    SPS_TRY(gather_offsets(h));
    SPS_TRY(trade_counts(h, given));
    SPS_TRY(trade_rows(h));
    look_for_runs(h);
    spsi_free(ctx, given);
    *h_p = h;
    return SPS_OK;

fail:
    spsi_free(ctx, given);
    spsi_halo_destroy(&h);
    return st;
}

void spsi_halo_destroy(sps_halo **h_p)
{
    sps_halo *h = *h_p;

    if (!h) return;
    spsi_owner_release(&h->own);
    spsi_free(h->ctx, h);
    *h_p = NULL;
}

/* ----------------------------------------------------------------- exchange */

sps_status spsi_halo_reserve(sps_halo *h, int width)
{
    const sps_wire *wire = spsi_wire(h->ctx);
    const size_t row = (size_t)spsi_block_ld(width) * sizeof(double);

    return wire ? wire->reserve(h->ctx,
                                (size_t)h->send_at[h->neighbours] * row,
                                (size_t)h->ghosts * row) : SPS_OK;
}

static sps_status time_exchange(sps_halo *h, bool aside,
                                const sps_block *packed, sps_block *operand,
                                double *seconds)
{
    enum { TIMES = 4 };
    sps_status st = SPS_OK;

    h->aside = aside;
    SPS_TRY(h->ctx->backend->sync(h->ctx));
    /* The first one opens connections; the least of the others is not that of
     * a process that came late. */
    for (int i = -1; i < TIMES; i++) {
        const double before = spsi_now();

        SPS_TRY(spsi_halo_start(h, packed, false, operand));
        SPS_TRY(spsi_halo_finish(h));
        SPS_TRY(h->ctx->backend->sync(h->ctx));
        if (i <= 0 || spsi_now() - before < *seconds)
            *seconds = spsi_now() - before;
    }
fail:
    return st;
}

/* Messages of a queued wire pass before the product, or beside it by few
 * multiprocessors, which takes several times as long (on an H200 3.3 MB 164 us,
 * before it 25).  A product beside messages is slower by the fraction LESS and
 * begins some microseconds later.  So messages pass beside it if they end
 * within the fraction HIDDEN of its time, if passing before it would cost more
 * than the fraction LESS, and if the product takes at least LEAST seconds. */
#define HIDDEN 0.8
#define LESS 0.02
#define LEAST 100e-6

sps_status spsi_halo_choose(sps_halo *h, double seconds,
                            const sps_block *packed, sps_block *operand)
{
    const sps_wire *wire = spsi_wire(h->ctx);
    const int size = spsi_comm_size(h->ctx);
    double sum[3] = { 0, 0, seconds };
    bool aside = true;
    sps_status st = SPS_OK;

    if (wire && wire->queued(h->ctx)) {
        SPS_TRY(spsi_reduce(h->ctx, &seconds, 1));
        aside = seconds > LEAST * size;
        if (aside) {
            SPS_TRY(time_exchange(h, false, packed, operand, &sum[0]));
            SPS_TRY(time_exchange(h, true, packed, operand, &sum[1]));
            SPS_TRY(spsi_reduce(h->ctx, sum, 3));
            aside = sum[1] < HIDDEN * sum[2] && sum[0] > LESS * sum[2];
        }
    }
    h->aside = aside;
fail:
    return st;
}

/* Directs messages made for packed rows to the rows of X, which are runs. */
static void send_runs(const sps_halo *h, const sps_block *X, size_t row)
{
    int m = 0;

    for (int i = 0; i < h->neighbours; i++)
        if (h->send_at[i + 1] > h->send_at[i])
            h->out[m++].p = (char *)X->data +
                            (size_t)h->send[h->send_at[i]] * row;
}

sps_status spsi_halo_start(sps_halo *h, const sps_block *from, bool whole,
                           sps_block *operand)
{
    const sps_wire *wire = spsi_wire(h->ctx);
    const size_t row = (size_t)from->ld * spsi_dtype_size(from->dtype);
    /* Ghost g is row g of the operand if its number is below the own rows,
     * otherwise row g + own. */
    const size_t own = (size_t)(operand->n - h->ghosts) * row;
    const int sends = spsi_halo_messages(h, h->send_at, from->data, row,
                                         h->out);
    const int receives = spsi_halo_messages(h, h->ghost_at, operand->data, row,
                                            h->in);

    if (whole) send_runs(h, from, row);
    for (int i = 0; i < receives; i++)
        if (h->in[i].peer > spsi_comm_rank(h->ctx))
            h->in[i].p = (char *)h->in[i].p + own;
    return wire ? wire->start(h->ctx, h->aside, h->out, sends, h->in, receives)
                : spsi_comm_start(h->ctx, h->out, sends, h->in, receives);
}

sps_status spsi_halo_finish(sps_halo *h)
{
    const sps_wire *wire = spsi_wire(h->ctx);

    return wire ? wire->finish(h->ctx) : spsi_comm_finish(h->ctx);
}
