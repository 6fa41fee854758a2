/* SPDX-License-Identifier: BSD-3-Clause */
/* trade.h - items that each process sends to any others.  Items for process r
 * are number at[r] to at[r + 1] - 1 of an array; `at` has one element more than
 * there are processes.  All calls are collective. */
#ifndef SPS_TRADE_H
#define SPS_TRADE_H

#include "core/comm.h"

/* in_at is set to the offsets of what is received if out_at has those of what
 * is sent. */
sps_status spsi_trade_counts(sps_context *ctx, const int64_t *out_at,
                             int64_t *in_at);
/* Sends the items of `out`, of `each` bytes, and receives those of `in`. */
sps_status spsi_trade(sps_context *ctx, const int64_t *out_at, const void *out,
                      const int64_t *in_at, void *in, size_t each);

#endif
