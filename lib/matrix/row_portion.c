/* SPDX-License-Identifier: BSD-3-Clause */
/* row_portion.c - computes rows in parallel, and copies them together.  Bytes
 * moved: those of the rows twice, once by the source and once by the copy. */
#include <string.h>

#include "core/team.h"
#include "matrix/row_portion.h"

enum { PARTS = 256 };            /* number of parts of a full portion */

static int64_t parts(const sps_row_portion *q)
{
    return (q->count + q->part - 1) / q->part;
}

static int64_t rows_in(const sps_row_portion *q, int64_t part)
{
    const int64_t left = q->count - part * q->part;

    return left < q->part ? left : q->part;
}

/* Returns the array of q->part + 1 offsets of part i. */
static int64_t *offsets(const sps_row_portion *q, int64_t i)
{
    return q->rowptr + i * (q->part + 1);
}

sps_status spsi_row_portion_open(sps_context *ctx, sps_row_portion *q,
                                 const sps_row_source *source, int64_t most,
                                 size_t value_bytes)
{
    sps_status st;

    *q = (sps_row_portion){ .source = source, .most = most > 0 ? most : 1,
                            .longest = source->longest > 0 ? source->longest
                                                           : 1,
                            .value = value_bytes };
    q->part = (q->most + PARTS - 1) / PARTS;
    SPS_TRY(SPS_NEW(ctx, PARTS * (q->part + 1), &q->rowptr));
    SPS_TRY(SPS_NEW(ctx, PARTS, &q->begin));
    SPS_TRY(SPS_NEW(ctx, q->most * q->longest, &q->col));
    SPS_TRY(spsi_new(ctx, (size_t)(q->most * q->longest) * value_bytes,
                     (void **)&q->val));
    return SPS_OK;

fail:
    spsi_row_portion_close(ctx, q);
    return st;
}

static void make_parts(void *data, int64_t from, int64_t to)
{
    const sps_row_portion *q = data;

    for (int64_t i = from; i < to; i++) {
        const int64_t row = i * q->part, at = row * q->longest;

        q->source->make(q->source->data, q->first + row, rows_in(q, i),
                        offsets(q, i), q->col + at,
                        q->val + (size_t)at * q->value);
    }
}

void spsi_row_portion_make(sps_context *ctx, sps_row_portion *q, int64_t first,
                           int64_t count)
{
    q->first = first;
    q->count = count;
    q->entries = 0;
    spsi_team_run(ctx, parts(q), 20 * count * q->longest, make_parts, q);
    for (int64_t i = 0; i < parts(q); i++) {
        q->begin[i] = q->entries;
        q->entries += offsets(q, i)[rows_in(q, i)];
    }
}

typedef struct put_job {
    const sps_row_portion *q;
    int64_t base, *rowptr;
    int32_t *col;
    char *val;
} put_job;

static void put_parts(void *data, int64_t from, int64_t to)
{
    const put_job *j = data;
    const sps_row_portion *q = j->q;

    for (int64_t i = from; i < to; i++) {
        const int64_t row = i * q->part, rows = rows_in(q, i);
        const int64_t *ptr = offsets(q, i), at = row * q->longest;
        const size_t some = (size_t)ptr[rows], to_entry = (size_t)q->begin[i];

        memcpy(j->col + to_entry, q->col + at, some * sizeof *q->col);
        memcpy(j->val + to_entry * q->value, q->val + (size_t)at * q->value,
               some * q->value);
        for (int64_t r = 0; r < rows; r++)
            j->rowptr[row + r] = j->base + q->begin[i] + ptr[r];
    }
}

void spsi_row_portion_put(sps_context *ctx, const sps_row_portion *q,
                          int64_t base, int64_t *rowptr, int32_t *col,
                          void *val)
{
    put_job j = { q, base, rowptr, col, val };

    spsi_team_run(ctx, parts(q), 2 * q->entries, put_parts, &j);
    rowptr[q->count] = base + q->entries;
}

void spsi_row_portion_close(sps_context *ctx, sps_row_portion *q)
{
    spsi_free(ctx, q->rowptr);
    spsi_free(ctx, q->begin);
    spsi_free(ctx, q->col);
    spsi_free(ctx, q->val);
    q->rowptr = q->begin = NULL;
    q->col = NULL;
    q->val = NULL;
}
