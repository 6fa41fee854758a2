/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_blocks_omp.c - Y = alpha A X + beta Y on the CPU for node blocks
 * (kernels/formats/node_blocks.h).
 *
 * For b x b blocks, b rows of Y are computed at once, in registers: each row of
 * X that a block uses is loaded once for them, and the b values that multiply
 * it are contiguous.  A block row is processed for as many columns of Y as have
 * their b sums in registers, and then for the next ones, while its blocks are
 * in the L1 cache.  With a single right-hand side, a column of a block is
 * loaded as one vector.  At every width k a sum adds its products in the order
 * of the columns of A, so that a column of Y has the same bits whatever the
 * other columns are.
 *
 * Bytes: 8 + 4 / b^2 for each stored value (8.4 for 3 x 3 blocks, where CSR
 * needs 12), X again whenever the caches have evicted it, Y once.  A NaN in X
 * is multiplied by the explicit zeros of its blocks: it reaches all b rows, in
 * its own column. */
#include "cpu/host_product.h"
#include "formats/node_blocks.h"

#include <stdio.h>

typedef struct blocks_plan {
    sps_node_plan base;
    pieces pieces;           /* ranges of block rows */
} blocks_plan;

typedef struct task {
    product p;
    const sps_node_blocks *n;
    int64_t first, last;     /* range of block rows */
} task;

/* Returns the values of block s in double precision. */
INLINE const double *block_at(const sps_node_blocks *n, const bool f32,
                              int64_t s, const int size, double *room)
{
    const float *from = (const float *)n->val + s * size;

    if (!f32) return (const double *)n->val + s * size;
    for (int e = 0; e < size; e++) room[e] = from[e];
    return room;
}

/* Fetches the values that follow block s. */
INLINE void fetch_values(const sps_node_blocks *n, const bool f32, int64_t s,
                         const int size)
{
    const int bytes = size * (f32 ? 4 : 8);

    for (int b = 0; b < bytes; b += 64)
        fetch_ahead((const char *)n->val + s * bytes + b);
}

/* Computes block row i and N W columns of Y from column j on, in N SIMD vectors
 * of type V with W columns each.  B and N are constants after inlining.  The
 * columns of X for the next call are prefetched. */
#define BLOCK_ROWS(name, V)                                                    \
    INLINE void name(const task *t, int64_t i, const int B, const int N,       \
                     const bool f32, int j)                                    \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(double) };                               \
        const sps_node_blocks *n = t->n;                                       \
        const int64_t ldx = t->p.ldx, left = n->nrow - i * B;                  \
        const bool ahead = N * W >= 8 && W < 8 && j + 2 * N * W <= t->p.k;     \
        double room[64];                                                       \
        V sum[8][8];                                                           \
                                                                               \
        UNROLL for (int r = 0; r < B; r++)                                     \
            UNROLL for (int v = 0; v < N; v++) sum[r][v] = (V){0};             \
        for (int64_t s = n->start[i]; s < n->start[i + 1]; s++) {              \
            const int64_t column = (int64_t)n->column[s] * B;                  \
            const int64_t some = n->ncol - column;                             \
            const double *x = (const double *)t->p.x + column * ldx + j;       \
            const double *a = block_at(n, f32, s, B * B, room);                \
                                                                               \
            if (j == 0) fetch_values(n, f32, s, B * B);                        \
            for (int c = 0; c < B && c < some; c++, a += B, x += ldx) {        \
                if (ahead)                                                     \
                    for (int v = 0; v < N * W; v += 8)                         \
                        __builtin_prefetch(x + N * W + v);                     \
                UNROLL for (int r = 0; r < B; r++)                             \
                    UNROLL for (int v = 0; v < N; v++)                         \
                        sum[r][v] += a[r] * *(const V *)(x + v * W);           \
            }                                                                  \
        }                                                                      \
        STORE_SUMS(V, &t->p, i * B, left < B ? (int)left : B, B, N, j);        \
    }

BLOCK_ROWS(rows8, v8)
BLOCK_ROWS(rows4, v4)
BLOCK_ROWS(rows2, v2)
BLOCK_ROWS(rows1, v1)

/* Computes block row i for a single right-hand side: B rows in H SIMD vectors V
 * of W doubles.  Elements of the last vector beyond row B are loaded (arrays
 * are padded for that) but not stored.  (Vectors wider than a register would
 * be kept in memory.)  `whole` (constant): x has no gaps, and all blocks have B
 * columns in A.  Each sum waits for its last product: there must be few
 * instructions to a block, and no detour of sums through memory, so that the
 * next rows are begun meanwhile. */
#define BLOCK_VECTOR(name, V, W)                                               \
    INLINE void name(const task *t, int64_t i, const int B, const bool f32,    \
                     const bool whole)                                         \
    {                                                                          \
        const int H = (B + W - 1) / W;                                         \
        const sps_node_blocks *n = t->n;                                       \
        const int64_t ldx = whole ? 1 : t->p.ldx, ldy = t->p.ldy;              \
        const int64_t left = n->nrow - i * B;                                  \
        double room[64 + SPS_NODE_MAX];                                        \
        V sum[SPS_NODE_MAX / W] = {0};                                         \
                                                                               \
        for (int64_t s = n->start[i]; s < n->start[i + 1]; s++) {              \
            const int64_t column = (int64_t)n->column[s] * B;                  \
            const int64_t some = n->ncol - column;                             \
            const double *x = (const double *)t->p.x + column * ldx;           \
            const double *a = block_at(n, f32, s, B * B, room);                \
                                                                               \
            fetch_values(n, f32, s, B * B);                                    \
            UNROLL for (int c = 0; c < B; c++)                                 \
                if (whole || c < some)                                         \
                    UNROLL for (int h = 0; h < H; h++)                         \
                        sum[h] += x[c * ldx] *                                 \
                                  *(const V *)(a + c * B + h * W);             \
        }                                                                      \
        if (left >= B && is_plain(&t->p))                                      \
            UNROLL for (int r = 0; r < B; r++)                                 \
                ((double *)t->p.y)[(i * B + r) * ldy] =                        \
                    t->p.alpha * sum[r / W][r % W];                            \
        else {                                                                 \
            /* a copy: sum stays in registers */                               \
            UNROLL for (int h = 0; h < H; h++) *(V *)(room + h * W) = sum[h];  \
            spsi_cpu_product_rows(&t->p, i * B, left < B ? (int)left : B, 0,   \
                                  1, room);                                    \
        }                                                                      \
    }

BLOCK_VECTOR(vector8, v8, 8)
BLOCK_VECTOR(vector4, v4, 4)
BLOCK_VECTOR(vector2, v2, 2)

#define COLUMNS(name, N, W)                                                    \
    for (; j + N * W <= t->p.k; j += N * W) name(t, i, B, N, f32, j)

/* Computes a block row with as many vectors at once as there are registers for
 * B sums of each. */
INLINE void block_row(const sps_isa isa, const task *t, int64_t i, const int B,
                      const bool f32)
{
    int j = 0;

    if (isa == SPS_ISA_AVX512) {
        if (B <= 6) COLUMNS(rows8, 4, 8);
        COLUMNS(rows8, 2, 8);
        COLUMNS(rows8, 1, 8);
    }
    if (isa == SPS_ISA_AVX2) {
        if (B <= 3) COLUMNS(rows4, 4, 4);
        if (B <= 6) COLUMNS(rows4, 2, 4);
    }
    if (isa == SPS_ISA_PLAIN) {
        if (B <= 3) COLUMNS(rows2, 4, 2);
        if (B <= 6) COLUMNS(rows2, 2, 2);
        COLUMNS(rows2, 1, 2);
    }
    if (isa != SPS_ISA_PLAIN) COLUMNS(rows4, 1, 4);
    COLUMNS(rows1, 1, 1);
}

INLINE void vectors(const sps_isa isa, const task *t, const int B,
                    const bool f32, const bool whole)
{
    for (int64_t i = t->first; i < t->last; i++)
        if (B <= 2 || isa == SPS_ISA_PLAIN) vector2(t, i, B, f32, whole);
        else if (B <= 4 || isa == SPS_ISA_AVX2) vector4(t, i, B, f32, whole);
        else vector8(t, i, B, f32, whole);
}

INLINE void block_rows(const sps_isa isa, const task *t, const int B,
                       const bool f32)
{
    if (t->p.k == 1 && t->p.ldx == 1 && t->n->ncol % B == 0)
        vectors(isa, t, B, f32, true);
    else if (t->p.k == 1)
        vectors(isa, t, B, f32, false);
    else
        for (int64_t i = t->first; i < t->last; i++)
            block_row(isa, t, i, B, f32);
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

INLINE void all_rows_of(const sps_isa isa, const task *t)
{
#define DOUBLES(B) block_rows(isa, t, B, false)
#define FLOATS(B) block_rows(isa, t, B, true)
    if (t->n->dtype == SPS_F64) FOR_EACH_SIZE(DOUBLES)
    else FOR_EACH_SIZE(FLOATS)
}
CLONED_BY_ISA(static, all_rows, (const task *t), (t))

static void piece(const void *format, const product *p, int64_t first,
                  int64_t last)
{
    all_rows(&(task){ *p, format, first, last });
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const blocks_plan *self = (const blocks_plan *)plan;

    return spsi_cpu_product_run(plan, args, &self->pieces, piece,
                                &self->base.blocks);
}

/* --- plan */

/* The predicted bytes are 1.3 times the minimal bytes of the blocks, plus the
 * rows of X that are read from memory more than once. */
static double cost(const sps_problem *p)
{
    const sps_features *f = p->f;
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const int b = spsi_node_choose(f, value);
    const double saved = value + 4.0 - spsi_node_bytes(b, f->fill[b], value);

    return (1.3 * (spsi_spmm_floor(p) - saved * (double)f->nnz) +
            spsi_cpu_product_again(p) / b) / p->machine->copy;
}

static sps_status refresh(sps_plan *plan)
{
    spsi_node_refresh(plan->ctx, plan->A,
                      &((blocks_plan *)plan)->base.blocks);
    return SPS_OK;
}

static void destroy(sps_plan *plan)
{
    spsi_node_clear(plan->ctx, &((blocks_plan *)plan)->base.blocks);
}

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);
    blocks_plan *self = (blocks_plan *)super;
    sps_node_blocks *n = &self->base.blocks;
    sps_status st;

    SPS_TRY(spsi_node_from_csr(super->ctx, p->local,
                               spsi_node_choose(p->f, value), n));
    SPS_TRY(spsi_cpu_pieces_of_grid(super, p, n->start, n->b, 1,
                                    &self->pieces));
    self->base.super.bytes += spsi_node_size(n);
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
    .fuses = true,
    .size = sizeof(blocks_plan),
    .fits = spsi_node_fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .refresh = refresh,
    .destroy = destroy,
};
