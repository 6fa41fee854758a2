/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks_symmetric.c - determines whether a distributed matrix equals its
 * transpose.  The diagonal block of each process is compared locally.  An entry
 * in a ghost column is sent to the owner of that column, which compares it with
 * its mirror image; an entry whose mirror image is not stored is found in the
 * same way from the other side. */
#include "operator/operator_ranks.h"

#include <math.h>
#include <string.h>

typedef struct original {
    int64_t row, col;
    double value;
    double diagonal;          /* diagonal entry of the row */
} original;

typedef struct trade {
    sps_context *ctx;
    const sps_ranks *r;
    int64_t *sent, *got;      /* for each neighbour: where its entries begin in
                                 `out` and in `in` */
    original *out, *in;       /* entries sent, and received */
    sps_message *messages;    /* the first half is sent, the other received */
} trade;

static double entry(const sps_csr *A, int64_t i, int32_t j)
{
    const int64_t p = spsi_csr_find(A, i, j);

    return p < 0 ? 0.0 : spsi_csr_value(A, p);
}

/* Returns the number of own row i among the boundary rows, or -1. */
static int64_t boundary_row(const sps_ranks *r, int32_t i)
{
    int64_t low = 0, high = r->rows;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (r->row[middle] < i) low = middle + 1;
        else high = middle;
    }
    return low < r->rows && r->row[low] == i ? low : -1;
}

/* Returns the neighbour that owns a column of edge, or -1 for this process. */
static int neighbour_of(const sps_ranks *r, int32_t col)
{
    const sps_halo *h = r->halo;
    int64_t g = col < h->low ? col : col - r->touched;
    int i = 0;

    if (col >= h->low && col < h->low + r->touched) return -1;
    while (h->ghost_at[i + 1] <= g) i++;
    return i;
}

static void exchange_messages(trade *t, const int64_t *at, void *items,
                              size_t each, sps_message *m)
{
    for (int i = 0; i < t->r->halo->neighbours; i++)
        m[i] = (sps_message){ t->r->halo->peer[i],
                              (char *)items + (size_t)at[i] * each,
                              (size_t)(at[i + 1] - at[i]) * each };
}

static sps_status send_originals(trade *t)
{
    const sps_ranks *r = t->r;
    const sps_halo *h = r->halo;
    const int count = h->neighbours;
    int64_t *next = t->sent + count + 1;

    memcpy(next, t->sent, (size_t)count * sizeof *next);
    for (int64_t b = 0; b < r->rows; b++)
        for (int64_t p = r->edge->rowptr[b]; p < r->edge->rowptr[b + 1]; p++) {
            const int32_t col = r->edge->col[p];
            const int i = neighbour_of(r, col);

            if (i < 0) continue;
            t->out[next[i]++] = (original){
                h->first + r->row[b],
                h->ghost[col < h->low ? col : col - r->touched],
                spsi_csr_value(r->edge, p),
                entry(r->diagonal, r->row[b], r->row[b]) };
        }
    exchange_messages(t, t->sent, t->out, sizeof *t->out, t->messages);
    exchange_messages(t, t->got, t->in, sizeof *t->in, t->messages + count);
    return spsi_comm_exchange(t->ctx, t->messages, count, t->messages + count,
                              count);
}

/* Exchanges the numbers of entries between neighbours. */
static sps_status count_originals(trade *t)
{
    const sps_halo *h = t->r->halo;
    int64_t *mine = t->sent + h->neighbours + 1;
    int64_t *theirs = t->got + h->neighbours + 1;
    sps_status st;

    for (int64_t p = 0; p < t->r->edge->nnz; p++) {
        const int i = neighbour_of(t->r, t->r->edge->col[p]);

        if (i >= 0) mine[i]++;
    }
    for (int i = 0; i < h->neighbours; i++) {
        t->messages[i] = (sps_message){ h->peer[i], &mine[i], sizeof *mine };
        t->messages[h->neighbours + i] =
            (sps_message){ h->peer[i], &theirs[i], sizeof *theirs };
    }
    SPS_TRY(spsi_comm_exchange(t->ctx, t->messages, h->neighbours,
                               t->messages + h->neighbours, h->neighbours));
    for (int i = 0; i < h->neighbours; i++) {
        t->sent[i + 1] = t->sent[i] + mine[i];
        t->got[i + 1] = t->got[i] + theirs[i];
    }
fail:
    return st;
}

/* Compares received entries a_ij with own entries a_ji. */
static bool compare(const trade *t, double tol, double *worst)
{
    const sps_ranks *r = t->r;
    const sps_halo *h = r->halo;
    bool same = true;

    for (int64_t q = 0; q < t->got[h->neighbours]; q++) {
        const original *o = &t->in[q];
        const int32_t j = (int32_t)(o->col - h->first);
        const int64_t g = spsi_halo_ghost(h, o->row);
        const int32_t col = (int32_t)(g < h->low ? g : g + r->touched);
        const int64_t b = boundary_row(r, j);
        const double image = g < 0 || b < 0 ? 0.0 : entry(r->edge, b, col);

        same = spsi_csr_alike(o->value, image, sqrt(fabs(o->diagonal)) *
                              sqrt(fabs(entry(r->diagonal, j, j))), tol,
                              worst) && same;
    }
    return same;
}

sps_status spsi_ranks_symmetric(const sps_operator *op, double tol,
                                bool *symmetric, double *difference)
{
    const int64_t count = op->ranks->halo->neighbours;
    trade t = { .ctx = op->ctx, .r = op->ranks };
    const sps_operator *own;
    double *all = NULL, worst = 0, broken;
    bool same = false;
    sps_status st;

    SPS_TRY(spsi_ranks_own(op, &own));
    SPS_TRY(sps_csr_symmetric(op->ctx, own->A, tol, &same, &worst));
    SPS_TRY(SPS_NEW(op->ctx, spsi_comm_size(op->ctx), &all));
    SPS_TRY(SPS_NEW(op->ctx, 2 * count + 1, &t.sent));
    SPS_TRY(SPS_NEW(op->ctx, 2 * count + 1, &t.got));
    SPS_TRY(SPS_NEW(op->ctx, 2 * count, &t.messages));
    SPS_TRY(count_originals(&t));
    SPS_TRY(SPS_NEW(op->ctx, t.sent[count], &t.out));
    SPS_TRY(SPS_NEW(op->ctx, t.got[count], &t.in));
    SPS_TRY(send_originals(&t));
    broken = !(compare(&t, tol, &worst) && same);
    SPS_TRY(spsi_reduce(op->ctx, &broken, 1));
    SPS_TRY(spsi_comm_gather(op->ctx, worst, all));
    for (int r = 0; r < spsi_comm_size(op->ctx); r++)
        worst = fmax(worst, all[r]);
    *symmetric = broken == 0;
    *difference = worst;
fail:
    spsi_free(op->ctx, all);
    spsi_free(op->ctx, t.sent);
    spsi_free(op->ctx, t.got);
    spsi_free(op->ctx, t.out);
    spsi_free(op->ctx, t.in);
    spsi_free(op->ctx, t.messages);
    return st;
}
