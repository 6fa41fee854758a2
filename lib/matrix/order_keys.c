/* SPDX-License-Identifier: BSD-3-Clause */
/* order_keys.c - sorts what orders are made of: numbers with a place, pairs,
 * the columns of a row; and makes a permutation from an order. */
#include <stdlib.h>

#include "matrix/order.h"

enum { SHORT_ROW = 48 };

int spsi_by_key(const void *a, const void *b)
{
    const sps_keyed *x = a, *y = b;

    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

int spsi_by_pair(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;

    if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
    return x[1] < y[1] ? -1 : x[1] > y[1];
}

static int ascending(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

void spsi_sort_columns(int32_t *col, int64_t count)
{
    if (count > SHORT_ROW) {
        qsort(col, (size_t)count, sizeof *col, ascending);
        return;
    }
    for (int64_t p = 1; p < count; p++) {
        const int32_t j = col[p];
        int64_t q = p;

        for (; q > 0 && col[q - 1] > j; q--) col[q] = col[q - 1];
        col[q] = j;
    }
}

sps_status spsi_permutation(sps_context *ctx, int64_t n, const int32_t *order,
                            sps_csr **P_p)
{
    sps_status st;

    SPS_TRY(sps_csr_create(ctx, n, n, n, SPS_F64, P_p));
    for (int64_t i = 0; i < n; i++) {
        (*P_p)->rowptr[i + 1] = i + 1;
        (*P_p)->col[i] = order ? order[i] : (int32_t)i;
        ((double *)(*P_p)->val)[i] = 1;
    }
fail:
    return st;
}
