/* SPDX-License-Identifier: BSD-3-Clause */
/* host_row_blocks.c - groups the rows of a CSR matrix; rules in row_blocks.h.
 *
 * Two passes over the offsets: the blocks of each chunk of rows are counted,
 * the counts summed, and each chunk writes its blocks from its own offset on.
 * The result does not depend on the number of threads. */
#include "core/team.h"
#include "tests/formats/host_formats.h"

/* The row after the block that begins at row r, which is not a long row. */
static int64_t block_end(const int64_t *ptr, int64_t r, int64_t last,
                         const sps_row_rule *rule)
{
    int64_t i = r + 1;

    if (ptr[i] - ptr[r] > rule->alone) return i;
    while (i < last && i - r < rule->rows && ptr[i] - ptr[r] < rule->size &&
           ptr[i + 1] - ptr[r] <= rule->size &&
           ptr[i + 1] - ptr[i] <= rule->alone)
        i++;
    return i;
}

static int64_t workers(int64_t length, const sps_row_rule *rule)
{
    return (length + rule->reach - 1) / rule->reach;
}

/* Appends the blocks of rows first .. last-1 to b at *at; without b they are
 * only counted. */
static void group(const int64_t *ptr, int64_t first, int64_t last,
                  const sps_row_rule *rule, sps_row_tally *at,
                  sps_row_blocks *b)
{
    for (int64_t r = first, end; r < last; r = end) {
        const int64_t length = ptr[r + 1] - ptr[r];
        const bool is_long = length > rule->reach;
        const int64_t pieces = is_long ? workers(length, rule) : 1;

        end = is_long ? r + 1 : block_end(ptr, r, last, rule);
        for (int64_t w = 0; b && w < pieces; w++)
            b->block[at->blocks + w] = (sps_row_block){
                .first = ptr[r] + w * rule->reach, .row = (int32_t)r,
                .what = is_long
                    ? (uint32_t)SPS_ROWS_LONG << 30 | (uint32_t)at->longs
                    : spsi_row_block_what(end - r == 1 && length > 0
                                          ? SPS_ROWS_VECTOR : SPS_ROWS_STREAM,
                                          (uint32_t)(end - r),
                                          (uint32_t)(ptr[end] - ptr[r])) };
        at->blocks += pieces;
        if (!is_long) continue;
        if (b) b->part[at->longs] = at->parts;
        at->longs++;
        at->parts += pieces;
    }
}

typedef struct job {
    const sps_csr *A;
    const sps_row_rule *rule;
    sps_row_tally *tally;
    sps_row_blocks *b;
} job;

static void group_chunks(void *data, int64_t first, int64_t last)
{
    const job *j = data;
    const int64_t nrow = j->A->nrow;

    for (int64_t c = first; c < last; c++) {
        const int64_t row = c * SPS_ROW_CHUNK, next = row + SPS_ROW_CHUNK;

        group(j->A->rowptr, row, next < nrow ? next : nrow, j->rule,
              &j->tally[c], j->b);
    }
}

/* One pass: counts into tally, or, with b, writes blocks from tally on. */
static void pass(sps_context *ctx, const sps_csr *A, const sps_row_rule *rule,
                 sps_row_tally *tally, sps_row_blocks *b)
{
    spsi_team_run(ctx, spsi_row_blocks_chunks(A->nrow), 2 * A->nrow,
                  group_chunks, &(job){ A, rule, tally, b });
}

/* Replaces the tallies of `chunks` chunks by their exclusive prefix sums;
 * returns the total. */
static sps_row_tally scan(sps_row_tally *tally, int64_t chunks)
{
    sps_row_tally sum = { 0, 0, 0 };

    for (int64_t c = 0; c < chunks; c++) {
        const sps_row_tally own = tally[c];

        tally[c] = sum;
        sum.blocks += own.blocks;
        sum.longs += own.longs;
        sum.parts += own.parts;
    }
    return sum;
}

sps_status spsi_row_blocks_make(sps_context *ctx, const sps_csr *A,
                                const sps_row_rule *rule, sps_row_blocks *b)
{
    const int64_t chunks = spsi_row_blocks_chunks(A->nrow);
    sps_row_tally *tally = NULL, sum;
    sps_status st;

    *b = (sps_row_blocks){ 0 };
    SPS_TRY(SPS_NEW(ctx, chunks, &tally));
    pass(ctx, A, rule, tally, NULL);
    sum = scan(tally, chunks);
    b->count = sum.blocks;
    b->longs = sum.longs;
    b->parts = sum.parts;
    SPS_TRY(SPS_NEW(ctx, b->count, &b->block));
    SPS_TRY(SPS_NEW(ctx, b->longs + 1, &b->part));
    pass(ctx, A, rule, tally, b);
    b->part[b->longs] = b->parts;
    spsi_free(ctx, tally);
    return SPS_OK;

fail:
    spsi_free(ctx, tally);
    spsi_row_blocks_free(ctx, b);
    return st;
}

void spsi_row_blocks_free(sps_context *ctx, sps_row_blocks *b)
{
    spsi_free(ctx, b->block);
    spsi_free(ctx, b->part);
    *b = (sps_row_blocks){ 0 };
}
