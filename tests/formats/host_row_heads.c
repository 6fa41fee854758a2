/* SPDX-License-Identifier: BSD-3-Clause */
/* host_row_heads.c - marks the first entry of each row; see row_heads.h. */
#include "tests/formats/host_formats.h"

sps_status spsi_row_heads_make(sps_context *ctx, const sps_csr *A,
                               sps_row_heads *h)
{
    sps_status st;
    int64_t full = 0, empty;

    *h = (sps_row_heads){ .nrow = A->nrow, .nnz = A->nnz };
    SPS_TRY(SPS_NEW(ctx, spsi_row_heads_words(A->nnz), &h->heads));
    SPS_TRY(SPS_NEW(ctx, A->nrow, &h->row));
    for (int64_t i = 0; i < A->nrow; i++)
        h->filled += A->rowptr[i] < A->rowptr[i + 1];
    empty = h->filled;
    for (int64_t i = 0; i < A->nrow; i++) {
        const int64_t p = A->rowptr[i];
        const bool has = p < A->rowptr[i + 1];

        h->row[has ? full++ : empty++] = (int32_t)i;
        if (has) h->heads[p / 64] |= UINT64_C(1) << p % 64;
    }
    return SPS_OK;

fail:
    spsi_row_heads_free(ctx, h);
    return st;
}

void spsi_row_heads_expand(const sps_row_heads *h, int64_t *rowptr)
{
    int64_t rank = 0, next = 0;

    for (int64_t p = 0; p < h->nnz; p++)
        if (h->heads[p / 64] >> p % 64 & 1)
            /* Rows up to this one begin here; the ones before it are empty. */
            for (const int64_t i = h->row[rank++]; next <= i; next++)
                rowptr[next] = p;
    for (; next <= h->nrow; next++) rowptr[next] = h->nnz;
}

void spsi_row_heads_free(sps_context *ctx, sps_row_heads *h)
{
    spsi_free(ctx, h->heads);
    spsi_free(ctx, h->row);
    *h = (sps_row_heads){ 0 };
}
