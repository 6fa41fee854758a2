/* SPDX-License-Identifier: BSD-3-Clause */
/* host_column_order.c - sorts the columns of a CSR matrix by number of uses;
 * rules in column_order.h. */
#include "tests/formats/host_formats.h"

/* Positions of the columns in the order, from their numbers of entries. */
static void place(int64_t ncol, const uint32_t *uses, sps_column_order *order)
{
    int64_t next[SPS_COLUMN_KEYS + 1] = { 0 };

    for (int64_t j = 0; j < ncol; j++) next[spsi_column_key(uses[j]) + 1]++;
    for (int k = 1; k < SPS_COLUMN_KEYS; k++) next[k] += next[k - 1];
    for (int64_t j = 0; j < ncol; j++) {
        const int64_t at = next[spsi_column_key(uses[j])]++;

        order->rank[j] = (int32_t)at;
        order->column[at] = (int32_t)j;
    }
}

sps_status spsi_column_order_make(sps_context *ctx, const sps_csr *A,
                                  sps_column_order *order)
{
    sps_status st;
    uint32_t *uses = NULL;

    *order = (sps_column_order){ 0 };
    SPS_TRY(SPS_NEW(ctx, A->ncol, &uses));
    SPS_TRY(SPS_NEW(ctx, A->ncol, &order->column));
    SPS_TRY(SPS_NEW(ctx, A->ncol, &order->rank));
    for (int64_t p = 0; p < A->nnz; p++) uses[A->col[p]]++;
    place(A->ncol, uses, order);
    spsi_free(ctx, uses);
    return SPS_OK;

fail:
    spsi_free(ctx, uses);
    spsi_column_order_free(ctx, order);
    return st;
}

void spsi_column_order_free(sps_context *ctx, sps_column_order *order)
{
    spsi_free(ctx, order->column);
    spsi_free(ctx, order->rank);
    *order = (sps_column_order){ 0 };
}
