/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocks_omp.c - Y = alpha A X + beta Y on the CPU for node blocks
 * (kernels/formats/node_blocks.h).
 *
 * b rows of Y are computed at once, in registers: each row of X that a block
 * uses is loaded once for them, and the b numbers that multiply it are
 * contiguous.  The columns of Y are processed in the widest vectors for which
 * the b sums fit the registers; at every width a sum adds its products in the
 * order of the columns, so that a column gets the same bits whatever the other
 * columns are.
 *
 * Bytes: 8 + 4 / b^2 per stored number once for 16 columns (afterwards from the
 * L2 cache), X as the caches allow, Y once.  A NaN in X is multiplied by the
 * explicit zeros of its blocks: it reaches all b rows, in its own column. */
#include "cpu/rows.h"
#include "formats/node_blocks.h"

#include <stdio.h>

typedef struct blocks_plan {
    sps_node_plan base;
    int64_t pieces;
    int64_t *piece;      /* pieces + 1 block rows */
} blocks_plan;

enum { PIECES = 16 };    /* per thread */

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

/* The numbers of block s in double precision. */
INLINE const double *block_at(const sps_node_blocks *n, int64_t s,
                              const int size, double *room)
{
    const float *from = (const float *)n->val + s * size;

    if (n->dtype == SPS_F64) return (const double *)n->val + s * size;
    for (int e = 0; e < size; e++) room[e] = from[e];
    return room;
}

/* Stores rows of Y from columns j on, w each, from `sum`. */
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

/* The block rows of the task for N vectors V of columns from j on.  B and N are
 * constants after inlining. */
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

/* The columns of the task from j on, in vectors for which B sums fit 16
 * registers of four numbers. */
INLINE void columns(const task *t, const int B, int j)
{
    if (B <= 4)
        for (; j + 8 <= t->k; j += 8) rows4(t, B, 2, j);
    for (; j + 4 <= t->k; j += 4) rows4(t, B, 1, j);
    for (; j < t->k; j++) rows1(t, B, 1, j);
}

/* The same for 32 registers of eight numbers. */
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

/* A separate function: vectors of eight numbers are used only with registers of
 * that size. */
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

/* If there are several passes over the columns: processes ranges of block rows
 * whose numbers stay in the L2 cache. */
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

typedef struct job {
    const task *t;
    const int64_t *piece;    /* block rows of the pieces */
} job;

static void run_pieces(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++)
        run_piece(j->t, j->piece[i], j->piece[i + 1]);
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

    spsi_team_run(plan->ctx, self->pieces,
                  work_ns(plan->A->nnz, 1, t.k) +
                      work_ns(plan->A->nrow, 2 * t.k, 0), run_pieces,
                  &(job){ &t, self->piece });
    return SPS_OK;
}

/* --- plan */

static bool fits(const sps_problem *p, const char **why_not)
{
    return spsi_node_fits(p, why_not);
}

/* 1.3 times the minimal bytes of the blocks, plus rows of X that are read from
 * memory more than once. */
static double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const int b = spsi_node_choose(f, value);
    const double saved = value + 4.0 - spsi_node_bytes(b, f->fill[b], value);
    const double again = 8.0 * p->k * (double)f->nnz * f->distinct64 * 0.25;

    return (1.3 * (spsi_spmm_floor(p) - saved * (double)f->nnz) + again / b) /
           p->machine->copy;
}

/* Divides the block rows into pieces with about equal numbers of blocks. */
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

static sps_status refresh(sps_plan *plan)
{
    spsi_node_refresh(plan->ctx, plan->A,
                      &((blocks_plan *)plan)->base.blocks);
    return SPS_OK;
}

static void destroy(sps_plan *plan)
{
    blocks_plan *self = (blocks_plan *)plan;

    spsi_node_clear(plan->ctx, &self->base.blocks);
    spsi_free(plan->ctx, self->piece);
}

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_context *ctx = super->ctx;
    const double value = (double)spsi_dtype_size(p->A->dtype);
    blocks_plan *self = (blocks_plan *)super;
    sps_node_blocks *n = &self->base.blocks;
    sps_status st;

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

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_blocks_omp) = {
    .name = "spmm.blocks_omp",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION,
    .size = sizeof(blocks_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .refresh = refresh,
    .destroy = destroy,
};
