/* SPDX-License-Identifier: BSD-3-Clause */
/* chunks.c - work on chunks of rows: their scratch memory, parallel calls, the
 * sums of their partial results in a fixed order, and the conversion of strips
 * of single-precision blocks. */
#include "cpu/rows.h"

/* ------------------------------------------------------------------ memory */

sps_status spsi_cpu_scratch(sps_context *ctx, int64_t doubles, double **p_p)
{
    sps_status st;
    cpu_state *s = ctx->backend_data;

    if (doubles > s->doubles) {
        void *p = NULL;

        SPS_TRY(spsi_new_raw(ctx, (size_t)doubles * sizeof(double), &p));
        spsi_free(ctx, s->scratch);
        s->scratch = p;
        s->doubles = doubles;
    }
    *p_p = s->scratch;
    return SPS_OK;

fail:
    return st;
}

/* ------------------------------------------------------------------- calls */

typedef struct chunks_job {
    chunks c;
    spsi_team_fn *fn;
    void *data;
} chunks_job;

static void run_chunks(void *data, int64_t first, int64_t last)
{
    const chunks_job *j = data;

    for (int64_t t = first; t < last; t++)
        j->fn(j->data, t * j->c.rows, chunk_end(j->c, t));
}

void spsi_cpu_over_chunks(sps_context *ctx, chunks c, int64_t ns,
                          spsi_team_fn *fn, void *data)
{
    chunks_job j = { c, fn, data };

    spsi_team_run(ctx, c.count, ns, run_chunks, &j);
}

/* -------------------------------------------------------------------- sums */

typedef struct sum_job {
    int64_t count, items;
    double *partial;
} sum_job;

/* Adds elements first .. last-1 of all partial results into the first. */
static void sum_numbers(const sum_job *j, int64_t first, int64_t last)
{
    const int64_t items = j->items;
    double *partial = j->partial;

    for (int64_t step = 1; step < j->count; step *= 2)
        for (int64_t c = 0; c + step < j->count; c += 2 * step)
#pragma omp simd
            for (int64_t t = first; t < last; t++)
                partial[c * items + t] += partial[(c + step) * items + t];
}

/* A work item is 64 elements of each partial result. */
static void sum_pieces(void *data, int64_t first, int64_t last)
{
    const sum_job *j = data;

    for (int64_t i = 64 * first; i < 64 * last; i += 64)
        sum_numbers(j, i, i + 64 < j->items ? i + 64 : j->items);
}

void spsi_cpu_sum_chunks(sps_context *ctx, int64_t count, int64_t items,
                         double *partial)
{
    spsi_team_run(ctx, (items + 63) / 64, work_ns(count, items, 0), sum_pieces,
                  &(sum_job){ count, items, partial });
}

/* ------------------------------------------------------------------ strips */

/* Single-precision blocks: half the bytes, sums in double precision.  A strip
 * of rows is converted to double precision into a buffer in the L1 cache,
 * processed there like a strip of a double-precision block, and rounded when it
 * is stored.  (Double-precision blocks pass through the same functions without
 * a copy.) */

INLINE void widen_of(int64_t m, int k, const float *x, int64_t ldx, double *y)
{
    const int64_t row = ldx == k ? m * k : k;   /* without padding all rows are
                                                   one long row */

    for (int64_t i = 0; i * row < m * k; i++)
#pragma omp simd
        for (int64_t j = 0; j < row; j++) y[i * row + j] = x[i * ldx + j];
}
CLONED(static, widen,
       (int64_t m, int k, const float *x, int64_t ldx, double *y),
       (m, k, x, ldx, y))

INLINE void round_rows_of(int64_t m, int k, const double *x, int64_t ldx,
                          float *y, int64_t ldy)
{
    const int64_t row = ldx == k && ldy == k ? m * k : k;

    for (int64_t i = 0; i * row < m * k; i++)
#pragma omp simd
        for (int64_t j = 0; j < row; j++)
            y[i * ldy + j] = (float)x[i * ldx + j];
}
CLONED(static, round_rows,
       (int64_t m, int k, const double *x, int64_t ldx, float *y, int64_t ldy),
       (m, k, x, ldx, y, ldy))

static float *floats_of(const sps_block *X, int64_t i)
{
    return (float *)X->data + i * X->ld;
}

double *spsi_cpu_strip_in(const sps_block *X, int64_t i, int64_t m,
                          double *room, int64_t *ld)
{
    *ld = X->dtype == SPS_F64 ? X->ld : X->k;
    if (X->dtype == SPS_F64) return row_of(X, i);
    widen(m, X->k, floats_of(X, i), X->ld, room);
    return room;
}

void spsi_cpu_strip_out(sps_block *X, int64_t i, int64_t m,
                        const double *rows, int64_t ld)
{
    if (X->dtype == SPS_F32)
        round_rows(m, X->k, rows, ld, floats_of(X, i), X->ld);
}
