/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_omp.c - the fast Y = alpha A X + beta Y on the CPU.
 *
 * A row of Y is computed in registers, up to 64 columns at once (32 or 16 if
 * there are few registers), and each entry of A is loaded once for them.  Even
 * and odd entries of a row are summed separately and then added, at every width
 * k, so that a column of Y has the same bits whatever the other columns are.
 * Rows are divided into pieces with about equal numbers of nonzeros; each row
 * is processed by one thread.
 *
 * Bytes: A once, X again whenever the caches have evicted it, Y once.
 */
#include "cpu/host_product.h"

typedef struct omp_plan {
    sps_plan super;
    pieces pieces;
} omp_plan;

/* Vectors of floats that may be at any 4-byte address. */
typedef float f16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float f8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float f4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef float f2 __attribute__((vector_size(8), aligned(4), may_alias));
typedef float f1 __attribute__((may_alias));

/* The predicted bytes are 1.3 times the minimal bytes, plus the rows of X that
 * are read from memory more than once. */
static double cost(const sps_problem *p)
{
    return (1.3 * spsi_spmm_floor(p) + spsi_cpu_product_again(p)) /
           p->machine->copy;
}

/* --- rows */

typedef struct task {
    product p;
    const sps_csr_local *A;
    int64_t first, last;   /* range of rows */
} task;

/* Computes all rows of the task and N W columns of Y from column j on, in N
 * SIMD vectors V of W elements T each.  N and f32 are constants after inlining.
 * Prefetching the rows of X was tried: it gains nothing on irregular matrices
 * and loses on regular ones. */
#define ROWS(name, V, T)                                                       \
    INLINE void name(const task *t, const int N, const bool f32, int j)        \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(T) };                                    \
        const int32_t *col = t->A->col;                                        \
        const void *val = t->A->val;                                           \
        const T *x = (const T *)t->p.x + j;                                    \
        const int64_t ldx = t->p.ldx;                                          \
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
                STORE(V, T, &t->p, i, j + v * W, even[v] + odd[v]);            \
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

/* Computes all rows of the task and as many whole groups of 8 vectors V as
 * there are, row by row, so that rows of X are read from one end to the other.
 * There are registers for 8 sums: even entries are summed first, then odd
 * ones.  Returns the number of columns. */
#define WIDE(name, V)                                                          \
    INLINE void name##_half(const task *t, int64_t p, int64_t stop,            \
                            const bool f32, const double *x, double *part)     \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(double) };                               \
        V sum[8] = {0};                                                        \
                                                                               \
        for (; p < stop; p += 2) {                                             \
            const double *xp = x + t->A->col[p] * t->p.ldx;                    \
            const double a = load(t->A->val, f32, p);                          \
                                                                               \
            UNROLL for (int v = 0; v < 8; v++)                                 \
                sum[v] += a * *(const V *)(xp + v * W);                        \
        }                                                                      \
        UNROLL for (int v = 0; v < 8; v++) *(V *)(part + v * W) = sum[v];      \
    }                                                                          \
    INLINE int name(const task *t, const bool f32)                             \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(double), ALL = 8 * W };                  \
        const int k = t->p.k / ALL * ALL;                                      \
                                                                               \
        for (int64_t i = t->first; i < t->last; i++)                           \
            for (int j = 0; j < k; j += ALL) {                                 \
                const int64_t p = t->A->rowptr[i], stop = t->A->rowptr[i + 1]; \
                const double *x = (const double *)t->p.x + j;                  \
                double even[ALL], odd[ALL];                                    \
                                                                               \
                name##_half(t, p, stop, f32, x, even);                         \
                name##_half(t, p + 1, stop, f32, x, odd);                      \
                UNROLL for (int v = 0; v < ALL; v += W)                        \
                    STORE(V, double, &t->p, i, j + v,                          \
                          *(V *)(even + v) + *(V *)(odd + v));                 \
            }                                                                  \
        return k;                                                              \
    }

WIDE(wide4, v4)
WIDE(wide2, v2)

#define COLUMNS(name, N, W, f32)                                               \
    for (; j + N * W <= t->p.k; j += N * W) name(t, N, f32, j)

/* Computes all columns of the task, in as many vectors at once as there are
 * registers for two sums of each. */
INLINE void columns(const sps_isa isa, const task *t, const bool f32)
{
    int j = 0;

    if (isa == SPS_ISA_AVX512) {
        COLUMNS(rows8, 8, 8, f32);
        COLUMNS(rows8, 4, 8, f32);
        COLUMNS(rows8, 2, 8, f32);
        COLUMNS(rows8, 1, 8, f32);
    } else if (isa == SPS_ISA_AVX2) {
        j = wide4(t, f32);
        COLUMNS(rows4, 4, 4, f32);
        COLUMNS(rows4, 2, 4, f32);
    } else {
        j = wide2(t, f32);
        COLUMNS(rows2, 4, 2, f32);
    }
    if (isa != SPS_ISA_PLAIN) COLUMNS(rows4, 1, 4, f32);
    COLUMNS(rows2, 1, 2, f32);
    COLUMNS(rows1, 1, 1, f32);
}

/* columns() for X and Y in single precision. */
INLINE void columns_single(const sps_isa isa, const task *t)
{
    int j = 0;

    if (isa == SPS_ISA_AVX512) {
        COLUMNS(singles16, 4, 16, true);
        COLUMNS(singles16, 2, 16, true);
        COLUMNS(singles16, 1, 16, true);
    } else if (isa == SPS_ISA_AVX2) {
        COLUMNS(singles8, 4, 8, true);
        COLUMNS(singles8, 2, 8, true);
    } else {
        COLUMNS(singles4, 4, 4, true);
    }
    if (isa != SPS_ISA_PLAIN) COLUMNS(singles8, 1, 8, true);
    COLUMNS(singles4, 1, 4, true);
    COLUMNS(singles2, 1, 2, true);
    COLUMNS(singles1, 1, 1, true);
}

INLINE void all_rows_of(const sps_isa isa, const task *t)
{
    if (t->p.single)
        columns_single(isa, t);
    else if (t->A->dtype == SPS_F64)
        columns(isa, t, false);
    else
        columns(isa, t, true);
}
CLONED_BY_ISA(static, all_rows, (const task *t), (t))

/* Wide blocks need several passes over A.  This function processes ranges of
 * rows whose entries, and mostly their rows of X, stay in the L2 cache, so that
 * they are read from memory once. */
static void piece(const void *format, const product *p, int64_t first,
                  int64_t last)
{
    const int64_t limit = p->k > 32 ? 1024 : INT64_MAX;
    const sps_csr_local *A = format;

    while (first < last) {
        task t = { *p, A, first, first };

        do first++;
        while (first < last && A->rowptr[first + 1] - A->rowptr[t.first] <
                                   limit);
        t.last = first;
        all_rows(&t);
    }
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const omp_plan *self = (const omp_plan *)plan;

    return spsi_cpu_product_run(plan, args, &self->pieces, piece, plan->A);
}

/* --- plan */

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    return spsi_cpu_pieces_of_grid(super, p, p->local->rowptr, 1, 2,
                                   &((omp_plan *)super)->pieces);
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
};
