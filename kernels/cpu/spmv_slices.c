/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_slices.c - Y = alpha A X + beta Y on the CPU for one or four right-hand
 * sides and rows in slices of eight (kernels/formats/slices.h); suits any
 * pattern.
 *
 * Eight rows are summed side by side, so that short rows need no reduction, and
 * the branch at the end of a row is taken once for 8 rows and mostly predicted.
 * With AVX-512 an entry of each row is loaded by one gather; elsewhere x is
 * loaded element by element, which on AVX2 is not slower than its gathers.  A
 * sum adds the entries of its row in order, at every width.
 *
 * Bytes: 10 or 12 for each entry (6 or 8 in single precision), x again whenever
 * the caches have evicted it, y once, not in order but within windows of 4096
 * rows. */
#include "cpu/host_product.h"
#include "formats/slices.h"

#include <stdio.h>
#if SPS_X86_CLONES
#include <immintrin.h>
#endif

typedef struct slices_plan {
    sps_plan super;
    sps_slices slices;
    pieces pieces;
} slices_plan;

typedef struct task {
    product p;
    const sps_slices *f;
    const int64_t *rowptr; /* row offsets of A */
    int64_t first, last;   /* range of slices */
} task;

/* Returns the column of entry q, or its distance from base if `near`. */
INLINE int64_t column(const sps_slices *f, const bool near, int64_t q)
{
    return near ? (int64_t)f->near[q] : (int64_t)f->col[q];
}

/* Returns entry q in double precision, times its element of x. */
INLINE double term(const sps_slices *f, const bool f32, const bool near,
                   const double *x, int64_t ldx, int64_t q)
{
    return load(f->val, f32, q) * x[column(f, near, q) * ldx];
}

/* Sets sum[r] to the sum over the leading entries of row r of slice s, as many
 * as every row of the slice has. */
INLINE void common_entries(const sps_slices *f, const bool f32, const bool near,
                           const double *x, int64_t ldx, int64_t s, double *sum)
{
    const int64_t end = f->start[s] + SPS_SLICE * (int64_t)f->full[s];
    double part[SPS_SLICE] = { 0 };

    for (int64_t q = f->start[s]; q < end; q += SPS_SLICE) {
        fetch_ahead((const char *)f->val + q * (f32 ? 4 : 8));
        UNROLL for (int r = 0; r < SPS_SLICE; r++)
            part[r] += term(f, f32, near, x, ldx, q + r);
    }
    UNROLL for (int r = 0; r < SPS_SLICE; r++) sum[r] = part[r];
}

#if SPS_X86_CLONES
/* common_entries() for x without gaps: eight elements of x are loaded by one
 * gather. */
#define GATHERED(name, COLUMNS, VALUES, T)                                     \
    FOR_AVX512 static void name(const sps_slices *f, const double *x,          \
                                int64_t s, double *sum)                        \
    {                                                                          \
        const int64_t end = f->start[s] + SPS_SLICE * (int64_t)f->full[s];     \
        __m512d part = _mm512_setzero_pd();                                    \
                                                                               \
        for (int64_t q = f->start[s]; q < end; q += SPS_SLICE) {               \
            fetch_ahead((const T *)f->val + q);                                \
            part = _mm512_fmadd_pd(VALUES,                                     \
                                   _mm512_i32gather_pd(COLUMNS, x, 8), part);  \
        }                                                                      \
        _mm512_storeu_pd(sum, part);                                           \
    }
#define FAR _mm256_loadu_si256((const __m256i *)(f->col + q))
#define NEAR _mm256_cvtepu16_epi32(                                            \
        _mm_loadu_si128((const __m128i *)(f->near + q)))
#define DOUBLES _mm512_loadu_pd((const double *)f->val + q)
#define FLOATS _mm512_cvtps_pd(_mm256_loadu_ps((const float *)f->val + q))

GATHERED(far_doubles, FAR, DOUBLES, double)
GATHERED(near_doubles, NEAR, DOUBLES, double)
GATHERED(far_floats, FAR, FLOATS, float)
GATHERED(near_floats, NEAR, FLOATS, float)

static void gathered(const sps_slices *f, const bool f32, const bool near,
                     const double *x, int64_t s, double *sum)
{
    if (near) (f32 ? near_floats : near_doubles)(f, x, s, sum);
    else (f32 ? far_floats : far_doubles)(f, x, s, sum);
}
#else
static void gathered(const sps_slices *f, const bool f32, const bool near,
                     const double *x, int64_t s, double *sum)
{
    common_entries(f, f32, near, x, 1, s, sum);
}
#endif

/* Adds to sum[r] the entries of row r of slice s after its first f->full[s]
 * ones, which common_entries() has added. */
INLINE void further_entries(const task *t, const bool f32, const bool near,
                            const double *x, int64_t s, int rows, double *sum)
{
    const sps_slices *f = t->f;
    int64_t q = f->start[s] + SPS_SLICE * (int64_t)f->full[s];

    for (int r = 0; r < rows && q < f->start[s + 1]; r++) {
        const int64_t i = f->row[s * SPS_SLICE + r];
        const int64_t end = q + t->rowptr[i + 1] - t->rowptr[i] - f->full[s];

        for (; q < end; q++) sum[r] += term(f, f32, near, x, t->p.ldx, q);
    }
}

/* Stores row i of Y from column j on, a vector V, from the sum of A X. */
#define STORE_ROW(V, t, i, j, part)                                            \
    do {                                                                       \
        enum { W_ = sizeof(V) / sizeof(double) };                              \
        double made_[W_];                                                      \
                                                                               \
        if (is_plain(t))                                                       \
            *(V *)((double *)(t)->y + (i) * (t)->ldy + (j)) =                  \
                (t)->alpha * (part);                                           \
        else {                                                                 \
            *(V *)made_ = (part);                                              \
            spsi_cpu_product_rows(t, i, 1, j, W_, made_);                      \
        }                                                                      \
    } while (0)

/* Computes slice s for W columns from column j on: a vector V in each row. */
#define COLUMNS(name, V, W)                                                    \
    INLINE void name##_common(const task *t, const bool f32, const bool near,  \
                              const double *x, int64_t s, double *sum)         \
    {                                                                          \
        const sps_slices *f = t->f;                                            \
        const int64_t end = f->start[s] + SPS_SLICE * (int64_t)f->full[s];     \
        V part[SPS_SLICE] = { 0 };                                             \
                                                                               \
        for (int64_t q = f->start[s]; q < end; q += SPS_SLICE) {               \
            fetch_ahead((const char *)f->val + q * (f32 ? 4 : 8));             \
            UNROLL for (int r = 0; r < SPS_SLICE; r++)                         \
                part[r] += load(f->val, f32, q + r) *                          \
                    *(const V *)(x + column(f, near, q + r) * t->p.ldx);       \
        }                                                                      \
        UNROLL for (int r = 0; r < SPS_SLICE; r++)                             \
            *(V *)(sum + r * W) = part[r];                                     \
    }                                                                          \
    INLINE void name(const task *t, const bool f32, const bool near,           \
                     int64_t s, int rows, int j)                               \
    {                                                                          \
        const sps_slices *f = t->f;                                            \
        const double *x = (const double *)t->p.x + j +                         \
                          (near ? f->base[s] * t->p.ldx : 0);                  \
        int64_t q = f->start[s] + SPS_SLICE * (int64_t)f->full[s];             \
        double sum[SPS_SLICE * W];                                             \
                                                                               \
        name##_common(t, f32, near, x, s, sum);                                \
        for (int r = 0; r < rows; r++) {                                       \
            const int64_t i = f->row[s * SPS_SLICE + r];                       \
            const int64_t end = q + t->rowptr[i + 1] - t->rowptr[i] -          \
                                f->full[s];                                    \
            V part = *(V *)(sum + r * W);                                      \
                                                                               \
            for (; q < end; q++)                                               \
                part += load(f->val, f32, q) *                                 \
                        *(const V *)(x + column(f, near, q) * t->p.ldx);       \
            STORE_ROW(V, &t->p, i, j, part);                                   \
        }                                                                      \
    }

COLUMNS(columns4, v4, 4)
COLUMNS(columns2, v2, 2)
COLUMNS(columns1, v1, 1)

/* Computes slice s for several columns, in vectors as wide as registers. */
INLINE void several(const sps_isa isa, const task *t, const bool f32,
                    const bool near, int64_t s, int rows)
{
    const int k = t->p.k;
    int j = 0;

    if (isa != SPS_ISA_PLAIN)
        for (; j + 4 <= k; j += 4) columns4(t, f32, near, s, rows, j);
    for (; j + 2 <= k; j += 2) columns2(t, f32, near, s, rows, j);
    if (j < k) columns1(t, f32, near, s, rows, j);
}

INLINE void slices(const sps_isa isa, const task *t, const bool f32,
                   const bool near)
{
    const sps_slices *f = t->f;

    for (int64_t s = t->first; s < t->last; s++) {
        const int64_t left = f->nrow - s * SPS_SLICE;
        const int rows = left < SPS_SLICE ? (int)left : SPS_SLICE;
        const double *x = (const double *)t->p.x +
                          (near ? f->base[s] * t->p.ldx : 0);
        const int32_t *row = f->row + s * SPS_SLICE;
        double sum[SPS_SLICE];

        if (t->p.k > 1) {
            several(isa, t, f32, near, s, rows);
            continue;
        }
        if (isa == SPS_ISA_AVX512 && t->p.ldx == 1)
            gathered(f, f32, near, x, s, sum);
        else
            common_entries(f, f32, near, x, t->p.ldx, s, sum);
        further_entries(t, f32, near, x, s, rows, sum);
        if (is_plain(&t->p))
            for (int r = 0; r < rows; r++)
                ((double *)t->p.y)[row[r] * t->p.ldy] = t->p.alpha * sum[r];
        else
            for (int r = 0; r < rows; r++)
                spsi_cpu_product_rows(&t->p, row[r], 1, 0, 1, sum + r);
    }
}

INLINE void all_slices_of(const sps_isa isa, const task *t)
{
    const bool f32 = t->f->dtype == SPS_F32;

    if (t->f->col) slices(isa, t, f32, false);
    else slices(isa, t, f32, true);
}
CLONED_BY_ISA(static, all_slices, (const task *t), (t))

/* Computes slices first .. last - 1; format is the plan. */
static void piece(const void *format, const product *p, int64_t first,
                  int64_t last)
{
    const slices_plan *self = format;

    all_slices(&(task){ *p, &self->slices, self->super.A->rowptr, first,
                        last });
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const slices_plan *self = (const slices_plan *)plan;

    return spsi_cpu_product_run(plan, args, &self->pieces, piece, self);
}

/* --- plan */

static bool fits(const sps_problem *p, const char **why_not)
{
    *why_not = "supports only 1 and 4 columns, and fewer than 2^31 rows";
    return (p->k == 1 || p->k == 4) && p->A->nrow < INT32_MAX;
}

/* The predicted bytes are 1.2 times the minimal bytes, plus 5 a row for the
 * order of rows, plus 8 for each number of X that is read from memory
 * again. */
static double cost(const sps_problem *p)
{
    return (1.2 * spsi_spmm_floor(p) + 5.0 * (double)p->f->nrow +
            spsi_cpu_product_again(p)) / p->machine->copy;
}

static sps_status refresh(sps_plan *plan)
{
    slices_plan *self = (slices_plan *)plan;

    return spsi_slices_refresh(plan->ctx, plan->A, &self->slices);
}

static void destroy(sps_plan *plan)
{
    spsi_slices_clear(plan->ctx, &((slices_plan *)plan)->slices);
}

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    slices_plan *self = (slices_plan *)super;
    sps_slices *f = &self->slices;
    sps_status st;

    SPS_TRY(spsi_slices_from_csr(super->ctx, p->local, f));
    SPS_TRY(spsi_cpu_pieces_open(super, f->start, f->slices, 8, &self->pieces));
    super->bytes += spsi_slices_size(f);
    snprintf(super->detail, sizeof super->detail, "%.3g bytes per entry",
             (double)spsi_slices_size(f) / (double)(f->nnz > 0 ? f->nnz : 1));
fail:
    return st;
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_slices) = {
    .name = "spmv.slices",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION | SPS_NAN_STAYS_IN_ROW,
    .fuses = true,
    .size = sizeof(slices_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .refresh = refresh,
    .destroy = destroy,
};
