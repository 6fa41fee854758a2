/* SPDX-License-Identifier: BSD-3-Clause */
/* host_product.c - what the products of the host have in common: storing rows
 * of Y, and dividing rows among threads. */
#include "cpu/host_product.h"

enum { PIECES = 16 };      /* pieces of rows per thread: enough to balance costs
                              that the numbers of entries do not predict */

static void scale_rows(void *data, int64_t first, int64_t last)
{
    const product *t = data;

    for (int64_t i = first; i < last; i++)
        for (int j = 0; j < t->k; j++) {
            const int64_t at = i * t->ldy + j;
            double *y = (double *)t->y + at;
            float *single = (float *)t->y + at;

            if (t->single)
                *single = t->beta != 0 ? (float)t->beta * *single : 0;
            else
                *y = t->beta != 0 ? t->beta * *y : 0;
        }
}

INLINE void row(const product *t, int64_t i, int j, int w, const double *sum)
{
    const sps_epilogue *e = t->e;
    const double d = e && e->D ? *row_of(e->D, i) : 1;
    const double *z = e && e->W ? row_of(e->W, i) + j : NULL;
    const double *x = e && e->delta != 0
        ? (const double *)t->x + i * t->ldx + j : NULL;
    double *y = (double *)t->y + i * t->ldy + j;

    for (int q = 0; q < w; q++) {
        double a = t->alpha * sum[q];

        if (z) a += e->gamma * z[q];
        a *= d;
        if (t->beta != 0) a += t->beta * y[q];
        if (x) a += e->delta * x[q];
        y[q] = a;
    }
}

INLINE void spsi_cpu_product_rows_of(const product *t, int64_t i, int rows,
                                     int j, int w, const double *sum)
{
    for (int r = 0; r < rows; r++, sum += w) row(t, i + r, j, w, sum);
}
CLONED(, spsi_cpu_product_rows,
       (const product *t, int64_t i, int rows, int j, int w,
        const double *sum),
       (t, i, rows, j, w, sum))

/* Returns the first row i with start[i] + each i >= share times the total. */
static int64_t find_row(const int64_t *start, int64_t rows, int64_t each,
                        double share)
{
    const double all = (double)start[rows] + (double)each * (double)rows;
    int64_t low = 0, high = rows;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if ((double)start[middle] + (double)each * (double)middle < share * all)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

sps_status spsi_cpu_pieces_open(sps_plan *plan, const int64_t *start,
                                int64_t rows, int64_t each, pieces *p)
{
    const int64_t most = 1 + (start[rows] + rows) / 2048;
    sps_status st;

    p->count = (int64_t)PIECES * plan->ctx->threads;
    if (p->count > most) p->count = most;
    SPS_TRY(spsi_plan_take(plan, (size_t)(p->count + 1) * sizeof *p->row,
                           (void **)&p->row));
    p->row[0] = 0;
    for (int64_t i = 1; i < p->count; i++)
        p->row[i] = find_row(start, rows, each,
                             (double)i / (double)p->count);
    p->row[p->count] = rows;
fail:
    return st;
}

typedef struct run_job {
    const product *t;
    const pieces *p;
    product_fn *fn;
    const void *format;
} run_job;

static void run_pieces(void *data, int64_t first, int64_t last)
{
    const run_job *j = data;

    j->fn(j->format, j->t, j->p->row[first], j->p->row[last]);
}

sps_status spsi_cpu_product_run(const sps_plan *plan,
                                const sps_spmm_args *args, const pieces *p,
                                product_fn *fn, const void *format)
{
    product t = {
        .alpha = spsi_alpha(args), .beta = spsi_beta(args),
        .x = args->X->data, .ldx = args->X->ld, .y = args->Y->data,
        .ldy = args->Y->ld, .k = args->Y->k,
        .single = args->Y->dtype == SPS_F32, .e = args->epilogue,
    };
    const int64_t store = work_ns(plan->A->nrow, 2 * t.k, 0);

    if (t.alpha == 0 || t.k == 0)
        spsi_team_run(plan->ctx, plan->A->nrow, store, scale_rows, &t);
    else
        spsi_team_run(plan->ctx, p->count,
                      work_ns(plan->A->nnz, 1, t.k) + store, run_pieces,
                      &(run_job){ &t, p, fn, format });
    return SPS_OK;
}

double spsi_cpu_product_again(const sps_problem *p)
{
    const double row = (double)spsi_dtype_size(p->block) * p->k;

    return row * (double)p->f->nnz * p->f->distinct64 * 0.25;
}
