/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocks_omp.c - Y = alpha A X + beta Y of the CPU on node blocks
 * (kernels/formats/node_blocks.h).
 *
 * b rows of Y are made at once, in registers: each row of X that a block names
 * is loaded once for them, and the b numbers that meet it lie side by side.
 * The columns of Y go in the widest vectors whose b sums the registers hold;
 * a sum takes its products in the order of the columns at every width, so that
 * a column gets the same bits whatever columns stand beside it.
 *
 * Bytes: 8 + 4 / b^2 a stored number once for 16 columns (from the second cache
 * after that), X as the caches allow, Y once.  A NaN in X meets the zeros of
 * its blocks: it reaches all b rows, in its own column. */
#include "rows.h"
#include "kernels/formats/node_blocks.h"

#include <stdio.h>

typedef struct blocks_plan {
    sps_node_plan base;
    int64_t pieces;
    int64_t *piece;      /* pieces + 1 block rows */
} blocks_plan;

enum { PIECES = 16 };    /* for each thread */

typedef struct task {
    const sps_node_blocks *n;
    double alpha, beta;
    const double *x;
    int64_t ldx;
    double *y;
    int64_t ldy;
    int k;
    int64_t first, last; /* block rows */
} task;

/* Numbers of block s as doubles. */
INLINE const double *block_at(const sps_node_blocks *n, int64_t s,
                              const int size, double *room)
{
    const float *from = (const float *)n->val + s * size;

    if (n->dtype == SPS_F64) return (const double *)n->val + s * size;
    for (int e = 0; e < size; e++) room[e] = from[e];
    return room;
}

/* Rows of Y from columns j on, w each, out of `sum`. */
INLINE void finish(const task *t, int64_t row, int j, const int B, const int w,
                   const double *sum)
{
    const int64_t left = t->n->nrow - row;

    for (int r = 0; r < B && r < left; r++, sum += w) {
        double *y = t->y + (row + r) * t->ldy + j;

        if (t->beta != 0)
            for (int e = 0; e < w; e++)
                y[e] = t->alpha * sum[e] + t->beta * y[e];
        else
            for (int e = 0; e < w; e++) y[e] = t->alpha * sum[e];
    }
}

/* The block rows of the task for N vectors V of columns, the first j.  B and N
 * are constants where this is inlined. */
#define BLOCK_ROWS(name, V)                                                    \
    INLINE void name(const task *t, const int B, const int N, int j)           \
    {                                                                          \
        const sps_node_blocks *n = t->n;                                       \
        enum { W = sizeof(V) / sizeof(double) };                               \
        double room[64], made[8 * 2 * W];                                      \
                                                                               \
        for (int64_t i = t->first; i < t->last; i++) {                         \
            V sum[8][2];                                                       \
                                                                               \
            UNROLL for (int r = 0; r < B; r++)                                 \
                UNROLL for (int v = 0; v < N; v++) sum[r][v] = (V){0};         \
            for (int64_t s = n->start[i]; s < n->start[i + 1]; s++) {          \
                const int64_t column = (int64_t)n->column[s] * B;              \
                const int64_t some = n->ncol - column;                         \
                const double *x = t->x + column * t->ldx + j;                  \
                const double *a = block_at(n, s, B * B, room);                 \
                                                                               \
                for (int c = 0; c < B && c < some; c++, a += B, x += t->ldx)   \
                    UNROLL for (int r = 0; r < B; r++)                         \
                        UNROLL for (int v = 0; v < N; v++)                     \
                            sum[r][v] += a[r] * *(const V *)(x + v * W);       \
            }                                                                  \
            UNROLL for (int r = 0; r < B; r++)                                 \
                UNROLL for (int v = 0; v < N; v++)                             \
                    *(V *)(made + (r * N + v) * W) = sum[r][v];                \
            finish(t, i * B, j, B, N * W, made);                               \
        }                                                                      \
    }
#define UNROLL _Pragma("GCC unroll 8")

BLOCK_ROWS(rows8, v8)
BLOCK_ROWS(rows4, v4)
BLOCK_ROWS(rows1, v1)

/* The columns of the task from j on in vectors of which B sums fit 16 registers
 * of four numbers. */
INLINE void columns(const task *t, const int B, int j)
{
    if (B <= 4)
        for (; j + 8 <= t->k; j += 8) rows4(t, B, 2, j);
    for (; j + 4 <= t->k; j += 4) rows4(t, B, 1, j);
    for (; j < t->k; j++) rows1(t, B, 1, j);
}

/* The same for 32 registers of eight. */
INLINE void wide_columns(const task *t, const int B)
{
    int j = 0;

    for (; j + 16 <= t->k; j += 16) rows8(t, B, 2, j);
    for (; j + 8 <= t->k; j += 8) rows8(t, B, 1, j);
    for (; j + 4 <= t->k; j += 4) rows4(t, B, 1, j);
    for (; j < t->k; j++) rows1(t, B, 1, j);
}

#define FOR_EACH_SIZE(call)                                                    \
    switch (t->n->b) {                                                         \
    case 2: call(2); break;                                                    \
    case 3: call(3); break;                                                    \
    case 4: call(4); break;                                                    \
    case 5: call(5); break;                                                    \
    case 6: call(6); break;                                                    \
    case 7: call(7); break;                                                    \
    default: call(8); break;                                                   \
    }

CLONES void spsi_cpu_block_rows(const task *t);

CLONES void spsi_cpu_block_rows(const task *t)
{
#define SIZE(B) columns(t, B, 0)
    FOR_EACH_SIZE(SIZE)
}

/* Apart, because there is no use for eight numbers in other registers. */
WIDE_ONLY static void wide_block_rows(const task *t)
{
#define WIDE(B) wide_columns(t, B)
    FOR_EACH_SIZE(WIDE)
}

/* alpha = 0: neither A nor X is read. */
static void scale_rows(const task *t)
{
    const int64_t last = t->last * t->n->b;

    for (int64_t i = t->first * t->n->b; i < last && i < t->n->nrow; i++)
        for (int j = 0; j < t->k; j++) {
            double *y = t->y + i * t->ldy + j;

            *y = t->beta != 0 ? t->beta * *y : 0;
        }
}

/* Several passes over the columns: in strips of block rows whose numbers stay
 * in the second cache. */
static void run_piece(const task *whole, int64_t first, int64_t last)
{
    const int64_t *start = whole->n->start;
    const int64_t limit = whole->k > 8
        ? 32768 / (whole->n->b * whole->n->b) : INT64_MAX;
    task t = *whole;

    while (first < last) {
        t.first = first;
        do first++;
        while (first < last && start[first + 1] - start[t.first] < limit);
        t.last = first;
        if (t.alpha == 0) scale_rows(&t);
        else if (WIDE_REGISTERS) wide_block_rows(&t);
        else spsi_cpu_block_rows(&t);
    }
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const blocks_plan *self = (const blocks_plan *)plan;
    task t = {
        .n = &self->base.blocks,
        .alpha = spsi_alpha(args), .beta = spsi_beta(args),
        .x = args->X->data, .ldx = args->X->ld,
        .y = args->Y->data, .ldy = args->Y->ld, .k = args->Y->k,
    };

#pragma omp parallel for num_threads(plan->ctx->threads) schedule(dynamic)     \
    if (self->pieces > 1 && pays(plan->A->nnz + plan->A->nrow, t.k))
    for (int64_t i = 0; i < self->pieces; i++)
        run_piece(&t, self->piece[i], self->piece[i + 1]);
    return SPS_OK;
}

/* --- plan */

static bool fits(const sps_problem *p, const char **why_not)
{
    return spsi_node_fits(p, why_not);
}

/* At the floor of the blocks, but for rows of X that come from memory more than
 * once. */
static double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const int b = spsi_node_choose(f, value);
    const double saved = value + 4.0 - spsi_node_bytes(b, f->fill[b], value);
    const double again = 8.0 * p->k * (double)f->nnz * f->distinct64 * 0.25;

    return (1.3 * (spsi_spmm_floor(p) - saved * (double)f->nnz) + again / b) /
           p->bandwidth;
}

/* Block rows are dealt out in pieces of about equal blocks. */
static void cut(const sps_node_blocks *n, int64_t pieces, int64_t *piece)
{
    int64_t i = 0;

    for (int64_t p = 0; p < pieces; p++) {
        const int64_t share = (n->count + n->mb) / pieces * p;

        while (i < n->mb && n->start[i] + i < share) i++;
        piece[p] = i;
    }
    piece[pieces] = n->mb;
}

static sps_status plan(sps_context *ctx, const sps_problem *p,
                       sps_plan **plan_p);

static sps_status refresh(sps_plan *plan)
{
    spsi_node_refresh(plan->A, &((blocks_plan *)plan)->base.blocks,
                      plan->ctx->threads);
    return SPS_OK;
}

static void destroy(sps_plan *plan)
{
    blocks_plan *self = (blocks_plan *)plan;

    spsi_node_clear(plan->ctx, &self->base.blocks);
    spsi_free(plan->ctx, self->piece);
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_blocks_omp) = {
    .name = "spmm.blocks_omp",
    .op = SPS_OP_SPMM,
    .where = SPS_HOST,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION,
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .refresh = refresh,
    .destroy = destroy,
};

static sps_status plan(sps_context *ctx, const sps_problem *p,
                       sps_plan **plan_p)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);
    blocks_plan *self;
    sps_node_blocks *n;
    sps_status st;

    SPS_TRY(spsi_plan_new(ctx, &spsi_kernel_spmm_blocks_omp, p, sizeof *self,
                          plan_p));
    self = (blocks_plan *)*plan_p;
    n = &self->base.blocks;
    SPS_TRY(spsi_node_from_csr(ctx, p->local, spsi_node_choose(p->f, value),
                               n));
    self->pieces = (int64_t)PIECES * ctx->threads;
    if (self->pieces > n->mb) self->pieces = n->mb;
    SPS_TRY(SPS_NEW(ctx, self->pieces + 1, &self->piece));
    cut(n, self->pieces, self->piece);
    self->base.super.bytes = spsi_node_size(n);
    snprintf(self->base.super.detail, sizeof self->base.super.detail,
             "%d x %d blocks, %.3g %% full", n->b, n->b,
             100.0 * (double)p->f->nnz / ((double)n->count * n->b * n->b));
fail:
    return st;
}
