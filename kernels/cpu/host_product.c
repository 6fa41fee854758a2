/* SPDX-License-Identifier: BSD-3-Clause */
/* host_product.c - what the products of the host have in common: storing rows
 * of Y, and dividing rows among threads. */
#include "cpu/host_product.h"

#include <stdlib.h>
#include <unistd.h>

enum { NEAR = 2 << 20,     /* bytes of a second-level cache */
       PIECES = 16,        /* pieces of rows per thread: enough to balance costs
                              that the numbers of entries do not predict */
       LEAST = 128 };      /* rows of a part of a plane: its neighbours in other
                              parts are read twice */

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
    SPS_TRY(spsi_plan_take(plan, (size_t)p->count * sizeof *p->at,
                           (void **)&p->at));
    p->at[0].first = 0;
    for (int64_t i = 1; i < p->count; i++)
        p->at[i].first = p->at[i - 1].last =
            find_row(start, rows, each, (double)i / (double)p->count);
    p->at[p->count - 1].last = rows;
fail:
    return st;
}

/* Returns the mean distance from the diagonal of the farther entries of row
 * i: in a stencil, the distance of two planes. */
static int64_t distance(const sps_csr_local *A, int64_t i)
{
    int64_t far = 0, sum = 0, count = 0;

    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (llabs(A->col[p] - i) > far) far = llabs(A->col[p] - i);
    for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++)
        if (llabs(A->col[p] - i) > far / 2) {
            sum += llabs(A->col[p] - i);
            count++;
        }
    return count ? (sum + count / 2) / count : 0;
}

/* Returns the distance of two planes of a grid if A is a stencil that couples
 * neighbouring planes: in some of its rows, more than 7 of 8 entries are within
 * a quarter of that distance from the diagonal or from the same place in a
 * neighbouring plane.  Otherwise returns 0. */
static int64_t plane_of(const sps_csr_local *A)
{
    enum { SOME = 63 };
    int64_t plane, entries = 0, astray = 0;

    if (A->nrow < SOME) return 0;
    plane = distance(A, A->nrow / 2);
    for (int s = 0; s < SOME; s++) {
        const int64_t i = (2 * s + 1) * A->nrow / (2 * SOME);

        entries += A->rowptr[i + 1] - A->rowptr[i];
        for (int64_t p = A->rowptr[i]; p < A->rowptr[i + 1]; p++) {
            const int64_t d = llabs(A->col[p] - i);

            astray += d > plane / 4 && llabs(d - plane) > plane / 4;
        }
    }
    return 8 * astray < entries ? plane : 0;
}

/* Divides `rows` groups into parts of planes of `plane` groups, each of `part`
 * groups. */
static sps_status parts_of_planes(sps_plan *plan, int64_t rows, int64_t plane,
                                  int64_t part, pieces *p)
{
    const int64_t planes = (rows + plane - 1) / plane;
    const int64_t most = planes * ((plane + part - 1) / part);
    sps_status st;

    p->count = 0;
    SPS_TRY(spsi_plan_take(plan, (size_t)most * sizeof *p->at,
                           (void **)&p->at));
    for (int64_t from = 0; from < plane; from += part) {
        const int64_t to = from + part < plane ? from + part : plane;

        for (int64_t i = 0; i + from < rows; i += plane)
            p->at[p->count++] = (struct range){
                i + from, i + to < rows ? i + to : rows
            };
    }
fail:
    return st;
}

/* Returns the bytes of X that stay in the second-level cache with Y and A;
 * INT64_MAX if it is smaller than 2 MB, where parts of planes were slower. */
static int64_t near_bytes(void)
{
    int64_t cache = 0;

#ifdef _SC_LEVEL2_CACHE_SIZE
    cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return cache >= 2 << 20 ? 3 * cache / 8 : INT64_MAX;
}

sps_status spsi_cpu_pieces_of_grid(sps_plan *plan, const sps_problem *problem,
                                   const int64_t *start, int group,
                                   int64_t each, pieces *p)
{
    const int64_t rows = (problem->local->nrow + group - 1) / group;
    const int64_t row = (int64_t)spsi_dtype_size(problem->block) *
                        (1 + (int64_t)problem->k);
    const int64_t plane = plane_of(problem->local) / group;
    int64_t part = near_bytes() / 3 / (row * group);

    if (part * group < LEAST) part = (LEAST + group - 1) / group;
    if (plane <= part || rows < 4 * plane)
        return spsi_cpu_pieces_open(plan, start, rows, each, p);
    part = plane / ((plane + part - 1) / part) + 1;
    return parts_of_planes(plan, rows, plane, part, p);
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

    for (int64_t i = first; i < last; i++)
        j->fn(j->format, j->t, j->p->at[i].first, j->p->at[i].last);
#if SPS_X86_CLONES
    if (j->t->stream) __asm__ volatile("sfence" ::: "memory");
#endif
}

/* Returns whether Y is to be stored past the caches: it is not read, it exceeds
 * the second-level cache, and it begins at a cache line, as its rows do unless
 * they are shorter. */
static bool past_caches(const product *t, int64_t rows)
{
    const size_t row = t->k < 8 ? 0 : (size_t)t->ldy * sizeof(double);

    return is_plain(t) && !t->single && spsi_cpu_isa() == SPS_ISA_AVX512 &&
           ((uintptr_t)t->y | row) % 64 == 0 &&
           rows * t->k * (int64_t)sizeof(double) > NEAR;
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

    t.stream = past_caches(&t, plan->A->nrow);
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
