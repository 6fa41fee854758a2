/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_omp.c - the fast Y = alpha A X + beta Y on the CPU.
 *
 * A row of Y is computed in registers: up to 64 columns at once (32 if there
 * are few registers), each entry of A is loaded once for them.  Even and odd
 * entries of a row are summed separately and then added, at every width, so
 * that a column gets the same bits whatever the other columns are.  Rows are
 * divided into pieces with about equal numbers of nonzeros; each row is
 * processed by one thread.
 *
 * Bytes: A once for 64 columns, X as the caches allow, Y once. */
#include "cpu/rows.h"
#include "plan/kernel.h"

typedef struct omp_plan {
    sps_plan super;
    int64_t pieces;
    int64_t *start;      /* pieces + 1 rows */
} omp_plan;

/* Pieces per thread: enough to balance costs that the nonzeros do not
 * predict. */
#define PIECES 16

/* Vectors of floats at any 4-byte address. */
typedef float f16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float f2 __attribute__((vector_size(8), aligned(4), may_alias));
typedef float f1 __attribute__((may_alias));

/* 1.3 times the minimal bytes, plus rows of X that are read from memory more
 * than once. */
static double cost(const sps_problem *p)
{
    const double row = (double)spsi_dtype_size(p->block) * p->k;
    const double again = row * (double)p->f->nnz * p->f->distinct64 * 0.25;

    return (1.3 * spsi_spmm_floor(p) + again) / p->machine->copy;
}

/* --- rows */

typedef struct task {
    const sps_csr_local *A;
    double alpha, beta;
    const void *x;         /* in double precision, or `single` */
    int64_t ldx;
    void *y;
    int64_t ldy;
    int k;
    bool single;           /* x and y are in single precision */
    const sps_epilogue *e;
    int64_t first, last;   /* rows */
} task;

INLINE double load(const void *val, const bool f32, int64_t p)
{
    return f32 ? (double)((const float *)val)[p] : ((const double *)val)[p];
}

/* Row i from column j on: y = d (alpha s + gamma w) + beta y + delta x, in T;
 * operands with a zero factor are not read. */
#define STORE(V, T, i, j, s)                                                   \
    do {                                                                       \
        V *out_ = (V *)((T *)t->y + (i) * t->ldy + (j));                       \
        V sum_ = (T)t->alpha * (s);                                            \
        const sps_epilogue *e = t->e;                                          \
                                                                               \
        if (e && e->W)                                                         \
            sum_ += (T)e->gamma *                                              \
                    *(const V *)((const T *)e->W->data + (i) * e->W->ld + (j));\
        if (e && e->D) sum_ *= (T)*row_of(e->D, i);                            \
        if (t->beta != 0) sum_ += (T)t->beta * *out_;                          \
        if (e && e->delta != 0)                                                \
            sum_ += (T)e->delta *                                              \
                    *(const V *)((const T *)t->x + (i) * t->ldx + (j));        \
        *out_ = sum_;                                                          \
    } while (0)

/* All rows of the task for N vectors V of T beginning at column j.  N and f32
 * are constants after inlining.  Prefetching the rows of X was tried: no gain
 * on irregular matrices, a loss on regular ones. */
#define ROWS(name, V, T)                                                       \
    INLINE void name(const task *t, const int N, const bool f32, int j)        \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(T) };                                    \
        const int32_t *col = t->A->col;                                        \
        const void *val = t->A->val;                                           \
        const T *x = (const T *)t->x + j;                                      \
        const int64_t ldx = t->ldx;                                            \
                                                                               \
        for (int64_t i = t->first; i < t->last; i++) {                         \
            int64_t p = t->A->rowptr[i], stop = t->A->rowptr[i + 1];           \
            V even[8] = {0}, odd[8] = {0};                                     \
                                                                               \
            for (; p + 2 <= stop; p += 2) {                                    \
                const T *x0 = x + col[p] * ldx, *x1 = x + col[p + 1] * ldx;    \
                T a0 = (T)load(val, f32, p), a1 = (T)load(val, f32, p + 1);    \
                                                                               \
                _Pragma("GCC unroll 8") for (int v = 0; v < N; v++)            \
                {                                                              \
                    even[v] += a0 * *(const V *)(x0 + v * W);                  \
                    odd[v] += a1 * *(const V *)(x1 + v * W);                   \
                }                                                              \
            }                                                                  \
            if (p < stop) {                                                    \
                const T *x0 = x + col[p] * ldx;                                \
                T a0 = (T)load(val, f32, p);                                   \
                                                                               \
                _Pragma("GCC unroll 8") for (int v = 0; v < N; v++)            \
                    even[v] += a0 * *(const V *)(x0 + v * W);                  \
            }                                                                  \
            _Pragma("GCC unroll 8") for (int v = 0; v < N; v++)                \
                STORE(V, T, i, j + v * W, even[v] + odd[v]);                   \
        }                                                                      \
    }

ROWS(rows8, v8, double)
ROWS(rows4, v4, double)
ROWS(rows2, v2, double)
ROWS(rows1, v1, double)
ROWS(singles16, f16, float)
ROWS(singles8, f8, float)
ROWS(singles4, f4, float)
ROWS(singles2, f2, float)
ROWS(singles1, f1, float)

/* The columns of the task in the widest vectors that fit. */
INLINE void columns(const task *t, const bool f32)
{
    int j = 0;

    if (WIDE_REGISTERS)
        for (; j + 64 <= t->k; j += 64) rows8(t, 8, f32, j);
    for (; j + 32 <= t->k; j += 32) rows8(t, 4, f32, j);
    if (t->k & 16) {
        rows8(t, 2, f32, j);
        j += 16;
    }
    if (t->k & 8) {
        rows8(t, 1, f32, j);
        j += 8;
    }
    if (t->k & 4) {
        rows4(t, 1, f32, j);
        j += 4;
    }
    if (t->k & 2) {
        rows2(t, 1, f32, j);
        j += 2;
    }
    if (t->k & 1) rows1(t, 1, f32, j);
}

/* The same in single precision. */
INLINE void columns_single(const task *t)
{
    int j = 0;

    if (WIDE_REGISTERS)
        for (; j + 64 <= t->k; j += 64) singles16(t, 4, true, j);
    for (; j + 32 <= t->k; j += 32) singles16(t, 2, true, j);
    if (t->k & 16) {
        singles16(t, 1, true, j);
        j += 16;
    }
    if (t->k & 8) {
        singles8(t, 1, true, j);
        j += 8;
    }
    if (t->k & 4) {
        singles4(t, 1, true, j);
        j += 4;
    }
    if (t->k & 2) {
        singles2(t, 1, true, j);
        j += 2;
    }
    if (t->k & 1) singles1(t, 1, true, j);
}

CLONES void spsi_cpu_spmm_single_rows(const task *t);

CLONES void spsi_cpu_spmm_single_rows(const task *t)
{
    columns_single(t);
}

CLONES void spsi_cpu_spmm_rows(const task *t);

CLONES void spsi_cpu_spmm_rows(const task *t)
{
    if (t->A->dtype == SPS_F64)
        columns(t, false);
    else
        columns(t, true);
}

/* alpha = 0: neither A nor X is read. */
static void scale_rows(const task *t)
{
    for (int64_t i = t->first; i < t->last; i++)
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

/* Wide blocks need several passes over A: processes ranges of rows whose
 * entries stay in the L2 cache. */
static void run_piece(const task *whole, int64_t first, int64_t last)
{
    const int64_t limit = whole->k > 32 ? 16384 : INT64_MAX;
    const int64_t *rowptr = whole->A->rowptr;
    task t = *whole;

    while (first < last) {
        t.first = first;
        do first++;
        while (first < last && rowptr[first + 1] - rowptr[t.first] < limit);
        t.last = first;
        if (t.alpha == 0)
            scale_rows(&t);
        else if (t.single)
            spsi_cpu_spmm_single_rows(&t);
        else
            spsi_cpu_spmm_rows(&t);
    }
}

typedef struct job {
    const task *t;
    const int64_t *start;    /* rows of the pieces */
} job;

static void run_pieces(void *data, int64_t first, int64_t last)
{
    const job *j = data;

    for (int64_t i = first; i < last; i++)
        run_piece(j->t, j->start[i], j->start[i + 1]);
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const omp_plan *self = (const omp_plan *)plan;
    task t = {
        .A = plan->A, .alpha = spsi_alpha(args), .beta = spsi_beta(args),
        .x = args->X->data, .ldx = args->X->ld,
        .y = args->Y->data, .ldy = args->Y->ld, .k = args->Y->k,
        .single = args->Y->dtype == SPS_F32, .e = args->epilogue,
    };

    spsi_team_run(plan->ctx, self->pieces,
                  work_ns(plan->A->nnz, 1, t.k) +
                      work_ns(plan->A->nrow, 2 * t.k, 0), run_pieces,
                  &(job){ &t, self->start });
    return SPS_OK;
}

/* --- plan */

/* The first row i with rowptr[i] + 2 i >= share (nnz + 2 nrow). */
static int64_t find_row(const sps_csr_local *A, double share)
{
    double total = (double)A->nnz + 2.0 * (double)A->nrow;
    int64_t low = 0, high = A->nrow;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        double sum = (double)A->rowptr[middle] + 2.0 * (double)middle;

        if (sum < share * total) low = middle + 1;
        else high = middle;
    }
    return low;
}

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    sps_status st;
    sps_context *ctx = super->ctx;
    omp_plan *self = (omp_plan *)super;
    int64_t pieces = (int64_t)PIECES * ctx->threads;
    int64_t most = 1 + (p->local->nnz + p->local->nrow) / 2048;

    self->pieces = pieces < most ? pieces : most;
    SPS_TRY(SPS_NEW(ctx, self->pieces + 1, &self->start));
    for (int64_t i = 1; i < self->pieces; i++)
        self->start[i] =
            find_row(p->local, (double)i / (double)self->pieces);
    self->start[self->pieces] = p->local->nrow;
    self->super.bytes = (size_t)(self->pieces + 1) * sizeof *self->start;
fail:
    return st;
}

static void destroy(sps_plan *plan)
{
    spsi_free(plan->ctx, ((omp_plan *)plan)->start);
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_omp) = {
    .name = "spmm.omp",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW |
             SPS_SINGLE_BLOCKS,
    .fuses = true,
    .size = sizeof(omp_plan),
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .destroy = destroy,
};
