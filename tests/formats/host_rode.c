/* SPDX-License-Identifier: BSD-3-Clause */
/* host_rode.c - the decomposition of rows on the host, and conversion back to
 * CSR. */
#include "tests/formats/host_formats.h"

#include <string.h>

sps_status spsi_rode_build(sps_context *ctx, int64_t nrow,
                           const int64_t *rowptr, spsi_rode *R)
{
    sps_status st;
    int64_t b = 0, r = 0;

    *R = (spsi_rode){ 0 };
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t slots = spsi_rode_slots(rowptr[i], rowptr[i + 1]);

        R->blocks += spsi_rode_blocks(slots);
        R->residuals += spsi_rode_residuals(slots);
    }
    SPS_TRY(SPS_NEW(ctx, R->blocks, &R->block));
    SPS_TRY(SPS_NEW(ctx, R->residuals, &R->residual));
    for (int64_t i = 0; i < nrow; i++) {
        const int64_t slots = spsi_rode_slots(rowptr[i], rowptr[i + 1]);

        spsi_rode_row((int32_t)i, rowptr[i], rowptr[i + 1], R->block + b,
                      R->residual + r);
        b += spsi_rode_blocks(slots);
        r += spsi_rode_residuals(slots);
    }
    return SPS_OK;

fail:
    spsi_rode_clear(ctx, R);
    return st;
}

void spsi_rode_clear(sps_context *ctx, spsi_rode *R)
{
    spsi_free(ctx, R->block);
    spsi_free(ctx, R->residual);
    memset(R, 0, sizeof *R);
}

/* The next item in the order of entries: rows ascending, and of each row the
 * residual last. */
static const spsi_rode_item *next(const spsi_rode *R, int64_t *b, int64_t *r)
{
    const bool block = *b < R->blocks;

    if (block && (*r >= R->residuals ||
                  R->block[*b].row <= R->residual[*r].row))
        return &R->block[(*b)++];
    return &R->residual[(*r)++];
}

sps_status spsi_rode_offsets(sps_context *ctx, const spsi_rode *R,
                             int64_t nrow, int64_t *rowptr)
{
    sps_status st = SPS_OK;
    int64_t b = 0, r = 0, row = 0, at = 0;

    rowptr[0] = 0;
    while (b < R->blocks || r < R->residuals) {
        const spsi_rode_item *item = next(R, &b, &r);

        SPS_REQUIRE(ctx, item->row >= row && item->row < nrow &&
                    item->start == at && item->length > 0, SPS_EMATRIX,
                    "rode: entries %lld on belong to row %d, expected %lld in "
                    "row %lld or later", (long long)item->start, item->row,
                    (long long)at, (long long)row);
        while (row < item->row) rowptr[++row] = at;
        at += item->length;
    }
    while (row < nrow) rowptr[++row] = at;
fail:
    return st;
}
