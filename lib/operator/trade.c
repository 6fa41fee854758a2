/* SPDX-License-Identifier: BSD-3-Clause */
/* trade.c - see trade.h. */
#include "operator/trade.h"

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
