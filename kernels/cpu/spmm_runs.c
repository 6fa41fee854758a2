/* SPDX-License-Identifier: BSD-3-Clause */
/* spmm_runs.c - Y = alpha A X + beta Y on the CPU for runs along diagonals
 * (kernels/formats/runs.h): stencils, bands, most matrices of grids.
 *
 * With one right-hand side, a run is a vector of A times a vector of X, without
 * gathers; with two or four, AVX-512 and no gaps, so are these columns of a few
 * rows together.  With others, R rows of a slice and N vectors of columns are
 * summed at once in registers; a value of A is loaded once for them, an index
 * once for 8 values.  At every width k a sum adds the runs in order and then
 * the rest of its row, so that a column of Y has the same bits whatever the
 * other columns are.
 *
 * Bytes: 8.5 (4.5 in single precision) for each value in a run, X again
 * whenever the caches have evicted it, Y once.  For k = 1 a row of a 7-point
 * stencil takes 75 + 8 bytes, where CSR takes 112 + 8.  A NaN in X is
 * multiplied by the explicit zeros of runs: it may reach up to 7 neighbouring
 * rows, in its own column. */
#include "cpu/host_product.h"
#include "formats/runs.h"

#include <stdio.h>

typedef struct runs_plan {
    sps_plan super;
    sps_runs runs;
    size_t counted;            /* bytes of `runs` within super.bytes */
    pieces pieces;
} runs_plan;

typedef struct task {
    product p;
    const sps_runs *f;
    int64_t first, last;   /* range of slices */
} task;

/* Fetches the values that follow run q. */
INLINE void fetch_values(const sps_runs *f, const bool f32, int64_t q)
{
    fetch_ahead((const char *)f->val + q * SPS_RUN * (f32 ? 4 : 8));
}

/* Computes rows r0 .. r0+R-1 of slice s (8 rows, runs.h) and N W columns of Y
 * from column j on, in N SIMD vectors of type V with W columns each.  R, N and
 * f32 are constants after inlining. */
#define RUN_ROWS(name, V)                                                      \
    INLINE void name(const task *t, int64_t s, int r0, const int R,            \
                     const int N, const bool f32, int j)                       \
    {                                                                          \
        enum { W = sizeof(V) / sizeof(double) };                               \
        const sps_runs *f = t->f;                                              \
        const int64_t ldx = t->p.ldx, run = f->run[s + 1];                     \
        const double *x = (const double *)t->p.x + j;                          \
        int64_t e = f->rest[s], end = f->rest[s + 1];                          \
        V sum[8][8];                                                           \
                                                                               \
        UNROLL for (int r = 0; r < R; r++)                                     \
            UNROLL for (int v = 0; v < N; v++) sum[r][v] = (V){0};             \
        for (int64_t q = f->run[s]; q < run; q++) {                            \
            const double *xr = x + (f->base[q] + r0) * ldx;                    \
                                                                               \
            if (N * W <= 32 && r0 + j == 0) fetch_values(f, f32, q);           \
            UNROLL for (int r = 0; r < R; r++, xr += ldx) {                    \
                const double a = load(f->val, f32, q * SPS_RUN + r0 + r);      \
                                                                               \
                UNROLL for (int v = 0; v < N; v++)                             \
                    sum[r][v] += a * *(const V *)(xr + v * W);                 \
            }                                                                  \
        }                                                                      \
        while (e < end && f->rest_row[e] < r0) e++;                            \
        UNROLL for (int r = 0; r < R; r++)                                     \
            for (; e < end && f->rest_row[e] == r0 + r; e++) {                 \
                const double a = load(f->rest_val, f32, e);                    \
                const double *xr = x + f->rest_col[e] * ldx;                   \
                                                                               \
                UNROLL for (int v = 0; v < N; v++)                             \
                    sum[r][v] += a * *(const V *)(xr + v * W);                 \
            }                                                                  \
        STORE_SUMS(V, &t->p, s * SPS_RUN + r0, R, R, N, j);                    \
    }

RUN_ROWS(rows8, v8)
RUN_ROWS(rows4, v4)
RUN_ROWS(rows2, v2)
RUN_ROWS(rows1, v1)

/* Computes `rows` rows of slice s, R at a time (a divisor of 8), for all groups
 * of N vectors that remain from column *j on; a slice of fewer than 8 rows is
 * computed row by row. */
#define COLUMNS(name, R, N, W)                                                 \
    for (; j + N * W <= t->p.k; j += N * W)                                    \
        for (int r = 0; r < SPS_RUN; r += R) name(t, s, r, R, N, f32, j)

/* Computes slice s row by row, as many whole groups of 8 vectors as there are,
 * so that rows of X are read from one end to the other.  (A part of each row at
 * a time took up to four times as long: doc/log/cpu_products.md.) */
#define WIDE(name, W)                                                          \
    for (int r = 0; r < SPS_RUN; r++)                                          \
        for (j = 0; j + 8 * W <= t->p.k; j += 8 * W)                           \
            name(t, s, r, 1, 8, f32, j)

/* Computes all columns of slice s, with as many sums at once as there are
 * registers. */
INLINE void slice(const sps_isa isa, const task *t, int64_t s, const bool f32)
{
    int j = 0;

    if (isa == SPS_ISA_AVX512) {
        COLUMNS(rows8, 2, 8, 8);
        COLUMNS(rows8, 4, 4, 8);
        COLUMNS(rows8, 8, 2, 8);
        COLUMNS(rows8, 8, 1, 8);
    } else if (isa == SPS_ISA_AVX2) {
        WIDE(rows4, 4);
        COLUMNS(rows4, 2, 4, 4);
        COLUMNS(rows4, 4, 2, 4);
    } else {
        WIDE(rows2, 2);
        COLUMNS(rows2, 2, 4, 2);
        COLUMNS(rows2, 4, 2, 2);
    }
    if (isa != SPS_ISA_PLAIN) COLUMNS(rows4, 8, 1, 4);
    COLUMNS(rows2, 8, 1, 2);
    COLUMNS(rows1, 8, 1, 1);
}

/* Computes all columns of the last slice, which has fewer than 8 rows. */
INLINE void last_slice(const task *t, int64_t s, const bool f32)
{
    const int rows = (int)(t->f->nrow - s * SPS_RUN);

    for (int r = 0; r < rows; r++) {
        int j = 0;

        for (; j + 2 <= t->p.k; j += 2) rows2(t, s, r, 1, 1, f32, j);
        for (; j < t->p.k; j++) rows1(t, s, r, 1, 1, f32, j);
    }
}

/* Adds the entries of slice s that are not in runs to the sums, and stores
 * them. */
static void add_rest(const task *t, int64_t s, const bool f32,
                     double *part)
{
    const sps_runs *f = t->f;
    const double *x = t->p.x;

    for (int64_t q = f->rest[s]; q < f->rest[s + 1]; q++)
        part[f->rest_row[q]] += load(f->rest_val, f32, q) * x[f->rest_col[q]];
    spsi_cpu_product_rows(&t->p, s * SPS_RUN, SPS_RUN, 0, 1, part);
}

/* Computes slice s for a single right-hand side; x and y have no gaps.  V is a
 * vector of W doubles, F of W floats.  (Vectors wider than registers would be
 * kept in memory.) */
#define VECTOR(name, V, F, W)                                                  \
    INLINE void name(const task *t, int64_t s, const bool f32)                 \
    {                                                                          \
        typedef float F __attribute__((vector_size(4 * W), aligned(4),         \
                                       may_alias));                            \
        const sps_runs *f = t->f;                                              \
        const int64_t i = s * SPS_RUN, run = f->run[s + 1];                    \
        const double *x = t->p.x;                                              \
        V sum[SPS_RUN / W] = {0};                                              \
                                                                               \
        for (int64_t q = f->run[s]; q < run; q++) {                            \
            fetch_values(f, f32, q);                                           \
            UNROLL for (int h = 0; h < SPS_RUN / W; h++) {                     \
                const V xh = *(const V *)(x + f->base[q] + h * W);             \
                const int64_t at = q * SPS_RUN + h * W;                        \
                                                                               \
                if (f32)                                                       \
                    sum[h] += __builtin_convertvector(                         \
                        *(const F *)((const float *)f->val + at), V) * xh;     \
                else                                                           \
                    sum[h] += *(const V *)((const double *)f->val + at) * xh;  \
            }                                                                  \
        }                                                                      \
        if (f->rest[s] == f->rest[s + 1] && is_plain(&t->p))                   \
            UNROLL for (int h = 0; h < SPS_RUN / W; h++)                       \
                *(V *)((double *)t->p.y + i + h * W) = t->p.alpha * sum[h];    \
        else {                                                                 \
            double part[SPS_RUN]; /* a copy: sum stays in registers */         \
                                                                               \
            UNROLL for (int h = 0; h < SPS_RUN / W; h++)                       \
                *(V *)(part + h * W) = sum[h];                                 \
            add_rest(t, s, f32, part);                                         \
        }                                                                      \
    }

VECTOR(vector8, v8, f8, 8)
VECTOR(vector4, v4, f4, 4)
VECTOR(vector2, v2, f2, 2)

INLINE void vector(const sps_isa isa, const task *t, int64_t s, const bool f32)
{
    if (isa == SPS_ISA_AVX512) vector8(t, s, f32);
    else if (isa == SPS_ISA_AVX2) vector4(t, s, f32);
    else vector2(t, s, f32);
}

#if SPS_X86_CLONES
/* Computes slice s for K = 2 or 4 right-hand sides, in K vectors of 8 / K rows
 * each; x and y have no gaps. */
INLINE void folded(const task *t, int64_t s, const int K, const bool f32)
{
    typedef float f8 __attribute__((vector_size(32), aligned(4), may_alias));
    typedef int64_t i8 __attribute__((vector_size(64)));
    const i8 lane = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const sps_runs *f = t->f;
    const double *x = t->p.x;
    double part[SPS_RUN * 4];
    v8 sum[4] = {0};

    for (int64_t q = f->run[s]; q < f->run[s + 1]; q++) {
        const int64_t at = q * SPS_RUN;
        const v8 a = f32
            ? __builtin_convertvector(*(f8 *)((float *)f->val + at), v8)
            : *(v8 *)((double *)f->val + at);

        fetch_values(f, f32, q);
        UNROLL for (int h = 0; h < K; h++)
            sum[h] += (v8)__builtin_shuffle(a, (lane + 8 * h) / K) *
                      *(const v8 *)(x + f->base[q] * (int64_t)K + 8 * h);
    }
    if (f->rest[s] == f->rest[s + 1] && is_plain(&t->p)) {
        double *y = (double *)t->p.y + s * SPS_RUN * K;

        if (t->p.stream)
            UNROLL for (int h = 0; h < K; h++)
                PAST_CACHES(v8, y + 8 * h, t->p.alpha * sum[h]);
        else
            UNROLL for (int h = 0; h < K; h++)
                *(v8 *)(y + 8 * h) = t->p.alpha * sum[h];
        return;
    }
    UNROLL for (int h = 0; h < K; h++) *(v8 *)(part + 8 * h) = sum[h];
    for (int64_t e = f->rest[s]; e < f->rest[s + 1]; e++)
        for (int j = 0; j < K; j++)
            part[f->rest_row[e] * K + j] += load(f->rest_val, f32, e) *
                                            x[f->rest_col[e] * (int64_t)K + j];
    spsi_cpu_product_rows(&t->p, s * SPS_RUN, SPS_RUN, 0, K, part);
}
#else
#define folded(t, s, K, f32) slice(SPS_ISA_PLAIN, t, s, f32)
#endif

/* Fetches into the caches the last rows of X that slice s needs, of k columns
 * without gaps: in a grid, the others are there from earlier slices. */
INLINE void fetch_rows(const task *t, int64_t s, const int k)
{
    const int64_t q = t->f->run[s + 1] - 1;
    const char *x;

    if (q < 0) return;
    x = (const char *)t->p.x + t->f->base[q] * (int64_t)k * 8;
    for (int b = 0; b < SPS_RUN * 8 * k; b += 64) __builtin_prefetch(x + b);
}

INLINE void slices(const sps_isa isa, const task *t, const bool f32)
{
    const int64_t whole = t->f->nrow / SPS_RUN;
    const int64_t last = t->last < whole ? t->last : whole;
    const product *p = &t->p;
    const int k = p->ldx == p->k && p->ldy == p->k ? p->k : 0; /* no gaps */

    /* A loop for each case: it has its own constants in registers. */
#define EACH(k, call)                                                          \
    for (int64_t s = t->first; s < last; s++) {                                \
        if ((k) > 0 && (k) <= 32 && s + 4 < last) fetch_rows(t, s + 4, k);     \
        call;                                                                  \
    }
    if (k == 1)
        EACH(1, vector(isa, t, s, f32))
    else if (k == 2 && isa == SPS_ISA_AVX512)
        EACH(2, folded(t, s, 2, f32))
    else if (k == 4 && isa == SPS_ISA_AVX512)
        EACH(4, folded(t, s, 4, f32))
    else
        EACH(k, slice(isa, t, s, f32))
    if (last < t->last) last_slice(t, last, f32);
}

INLINE void all_slices_of(const sps_isa isa, const task *t)
{
    if (t->f->dtype == SPS_F64) slices(isa, t, false);
    else slices(isa, t, true);
}
CLONED_BY_ISA(static, all_slices, (const task *t), (t))

static void piece(const void *format, const product *p, int64_t first,
                  int64_t last)
{
    all_slices(&(task){ *p, format, first, last });
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const runs_plan *self = (const runs_plan *)plan;

    return spsi_cpu_product_run(plan, args, &self->pieces, piece, &self->runs);
}

/* --- plan */

static bool fits(const sps_problem *p, const char **why_not)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);

    *why_not = "too few entries are in runs along diagonals";
    return p->pinned || spsi_runs_bytes(p->A) < 0.95 * (value + 4);
}

/* The predicted bytes are 1.3 times the minimal bytes in this format, plus the
 * rows of X that are read from memory more than once. */
static double cost(const sps_problem *p)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);
    const double saved = value + 4 - spsi_runs_bytes(p->A);

    return (1.3 * (spsi_spmm_floor(p) - saved * (double)p->f->nnz) +
            spsi_cpu_product_again(p)) / p->machine->copy;
}

/* Sets the bytes and the text of the plan, which depend on the values. */
static void tell(runs_plan *self)
{
    const size_t bytes = spsi_runs_size(&self->runs);
    sps_plan *super = &self->super;
    const sps_csr_local *A = super->A;

    super->bytes += bytes - self->counted;
    self->counted = bytes;
    snprintf(super->detail, sizeof super->detail, "%.3g bytes per entry%s",
             (double)bytes / (double)(A->nnz > 0 ? A->nnz : 1),
             self->runs.dtype != A->dtype ? ", floats" : "");
}

static sps_status refresh(sps_plan *plan)
{
    runs_plan *self = (runs_plan *)plan;
    sps_status st;

    SPS_TRY(spsi_runs_refresh(plan->ctx, plan->A, &self->runs));
    tell(self);
fail:
    return st;
}

static void destroy(sps_plan *plan)
{
    spsi_runs_clear(plan->ctx, &((runs_plan *)plan)->runs);
}

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    runs_plan *self = (runs_plan *)super;
    sps_runs *f = &self->runs;
    sps_status st;

    SPS_TRY(spsi_runs_from_csr(super->ctx, p->local, f));
    SPS_TRY(spsi_cpu_pieces_of_grid(super, p, f->run, SPS_RUN, 2,
                                    &self->pieces));
    tell(self);
fail:
    return st;
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmm_runs) = {
    .name = "spmm.runs",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION,
    .fuses = true,
    .size = sizeof(runs_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .refresh = refresh,
    .destroy = destroy,
};
