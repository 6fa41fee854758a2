/* SPDX-License-Identifier: BSD-3-Clause */
/* trade.c - see trade.h. */
#include "halo/trade.h"

#include <string.h>

sps_status spsi_trade_counts(sps_context *ctx, const int64_t *out_at,
                             int64_t *in_at)
{
    const int size = spsi_comm_size(ctx), rank = spsi_comm_rank(ctx);
    int64_t *count = NULL, *got;
    sps_message *m = NULL;
    int others = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &count));
    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &m));
    got = count + size;
    for (int r = 0; r < size; r++) {
        count[r] = out_at[r + 1] - out_at[r];
        if (r == rank) got[r] = count[r];
        if (r == rank) continue;
        m[others] = (sps_message){ r, &count[r], sizeof *count };
        m[size + others++] = (sps_message){ r, &got[r], sizeof *got };
    }
    SPS_TRY(spsi_comm_exchange(ctx, m, others, m + size, others));
    in_at[0] = 0;
    for (int r = 0; r < size; r++) in_at[r + 1] = in_at[r] + got[r];
fail:
    spsi_free(ctx, count);
    spsi_free(ctx, m);
    return st;
}

/* Makes a message for each other process that has items; returns how many. */
static int messages(sps_context *ctx, const int64_t *at, char *items,
                    size_t each, sps_message *m)
{
    int count = 0;

    for (int r = 0; r < spsi_comm_size(ctx); r++)
        if (r != spsi_comm_rank(ctx) && at[r + 1] > at[r])
            m[count++] = (sps_message){ r, items + (size_t)at[r] * each,
                                        (size_t)(at[r + 1] - at[r]) * each };
    return count;
}

sps_status spsi_trade(sps_context *ctx, const int64_t *out_at, const void *out,
                      const int64_t *in_at, void *in, size_t each)
{
    const int size = spsi_comm_size(ctx), rank = spsi_comm_rank(ctx);
    const size_t own = (size_t)(out_at[rank + 1] - out_at[rank]) * each;
    sps_message *m = NULL;
    int sends, receives;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, 2 * (int64_t)size, &m));
    sends = messages(ctx, out_at, (char *)out, each, m);
    receives = messages(ctx, in_at, in, each, m + size);
    if (own > 0)
        memcpy((char *)in + (size_t)in_at[rank] * each,
               (const char *)out + (size_t)out_at[rank] * each, own);
    SPS_TRY(spsi_comm_exchange(ctx, m, sends, m + size, receives));
fail:
    spsi_free(ctx, m);
    return st;
}

/* ------------------------------------------------------------ rows of a csr */

void spsi_row_list_clear(sps_context *ctx, spsi_row_list *t)
{
    spsi_free(ctx, t->length);
    spsi_free(ctx, t->at);
    spsi_free(ctx, t->col);
    spsi_free(ctx, t->val);
    *t = (spsi_row_list){ 0 };
}

/* Allocates the entries of rows whose lengths are known; row_at[i]: first row
 * that is exchanged with neighbour i. */
static sps_status make_room(const sps_halo *h, const int64_t *row_at,
                            spsi_row_list *t)
{
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, h->neighbours + 1, &t->at));
    for (int i = 0; i < h->neighbours; i++) {
        t->at[i + 1] = t->at[i];
        for (int64_t g = row_at[i]; g < row_at[i + 1]; g++)
            t->at[i + 1] += t->length[g];
    }
    t->entries = t->at[h->neighbours];
    SPS_TRY(SPS_NEW(h->ctx, t->entries, &t->col));
    SPS_TRY(SPS_NEW(h->ctx, t->entries, &t->val));
fail:
    return st;
}

/* Packs the rows that other processes need: those of A that h->send lists, or
 * all. */
static sps_status pack(const sps_halo *h, const sps_csr *A, bool all,
                       int64_t first, spsi_row_list *t)
{
    const int64_t count = h->send_at[h->neighbours];
    int64_t q = 0;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, count, &t->length));
    for (int64_t g = 0; g < count; g++) {
        const int64_t i = all ? g : h->send[g];

        t->length[g] = A->rowptr[i + 1] - A->rowptr[i];
    }
    SPS_TRY(make_room(h, h->send_at, t));
    for (int64_t g = 0; g < count; g++)
        for (int64_t p = A->rowptr[all ? g : h->send[g]], u = 0;
             u < t->length[g]; p++, q++, u++) {
            t->col[q] = A->global ? A->global[p] : first + A->col[p];
            t->val[q] = ((const double *)A->val)[p];
        }
fail:
    return st;
}

static sps_status send_items(const sps_halo *h, const int64_t *out_at,
                             void *out, const int64_t *in_at, void *in)
{
    return spsi_comm_exchange(
        h->ctx, h->out, spsi_halo_messages(h, out_at, out, 8, h->out),
        h->in, spsi_halo_messages(h, in_at, in, 8, h->in));
}

static sps_status trade(const sps_halo *h, const sps_csr *A, bool all,
                        int64_t first, spsi_row_list *in)
{
    spsi_row_list out = { 0 };
    sps_status st;

    SPS_TRY(pack(h, A, all, first, &out));
    SPS_TRY(SPS_NEW(h->ctx, h->ghosts, &in->length));
    SPS_TRY(send_items(h, h->send_at, out.length, h->ghost_at, in->length));
    SPS_TRY(make_room(h, h->ghost_at, in));
    SPS_TRY(send_items(h, out.at, out.col, in->at, in->col));
    SPS_TRY(send_items(h, out.at, out.val, in->at, in->val));
fail:
    spsi_row_list_clear(h->ctx, &out);
    return st;
}

sps_status spsi_trade_rows(const sps_halo *h, const sps_csr *A, int64_t first,
                           spsi_row_list *in)
{
    return trade(h, A, false, first, in);
}

sps_status spsi_trade_picked(const sps_halo *h, const sps_csr *rows,
                             int64_t first, spsi_row_list *in)
{
    return trade(h, rows, true, first, in);
}
