/* SPDX-License-Identifier: BSD-3-Clause */
/* spmv_diagonals.c - Y = alpha A X + beta Y on the CPU for one right-hand side
 * and a matrix stored by diagonals (kernels/formats/diagonals.h).
 *
 * 32 rows are summed side by side, diagonal after diagonal; nothing is
 * gathered, and no columns are read.  A sum adds the entries of its row in
 * order.
 *
 * Bytes: 8 (4 in single precision) for each row and stored diagonal, of which a
 * symmetric matrix has about half; x and y once. */
#include "cpu/host_product.h"
#include "formats/diagonals.h"

#include <stdio.h>

enum { GROUP = 32,             /* rows summed side by side */
       FEW = 16,               /* diagonals that gain in any grid */
       KEPT = 1 << 18 };       /* bytes that stay in a near cache */

typedef struct diagonals_plan {
    sps_plan super;
    sps_diagonals diagonals;
    size_t counted;            /* bytes of `diagonals` within super.bytes */
    pieces pieces;
} diagonals_plan;

typedef struct task {
    const product *p;
    const sps_diagonals *f;
    int64_t first, last;       /* range of groups */
} task;

/* Computes row i entry by entry. */
INLINE void one_row(const task *t, const bool f32, int64_t i)
{
    const sps_diagonals *f = t->f;
    const double *x = t->p->x;
    double sum = 0;

    for (int d = 0; d < f->count; d++) {
        const int64_t j = i + f->distance[d];

        if (j >= 0 && j < f->ncol)
            sum += load(f->val, f32, f->at[d] + i) * x[j * t->p->ldx];
    }
    if (is_plain(t->p))
        ((double *)t->p->y)[i * t->p->ldy] = t->p->alpha * sum;
    else
        spsi_cpu_product_rows(t->p, i, 1, 0, 1, &sum);
}

/* Computes R W rows from row i on by the diagonals low .. high - 1, in R
 * vectors of type V, of W doubles each, F of floats. */
#define ROWS(name, V, F, W, R)                                                 \
    INLINE void name(const task *t, const bool f32, int64_t i, int low,        \
                     int high)                                                 \
    {                                                                          \
        typedef float F __attribute__((vector_size(4 * W), aligned(4),         \
                                       may_alias));                            \
        const sps_diagonals *f = t->f;                                         \
        const double *x = (const double *)t->p->x + i;                         \
        V sum[R] = {0};                                                        \
                                                                               \
        for (int d = low; d < high; d++) {                                     \
            const int64_t at = f->at[d] + i;                                   \
            const double *xd = x + f->distance[d];                             \
                                                                               \
            UNROLL for (int r = 0; r < R; r++) {                               \
                const V xr = *(const V *)(xd + r * W);                         \
                                                                               \
                if (f32)                                                       \
                    sum[r] += __builtin_convertvector(                         \
                        *(const F *)((const float *)f->val + at + r * W), V) * \
                        xr;                                                    \
                else                                                           \
                    sum[r] += *(const V *)((const double *)f->val + at +       \
                                           r * W) * xr;                        \
            }                                                                  \
        }                                                                      \
        if (is_plain(t->p)) {                                                  \
            UNROLL for (int r = 0; r < R; r++)                                 \
                *(V *)((double *)t->p->y + i + r * W) = t->p->alpha * sum[r];  \
        } else {                                                               \
            double part[R * W]; /* a copy: sum stays in registers */           \
                                                                               \
            UNROLL for (int r = 0; r < R; r++)                                 \
                *(V *)(part + r * W) = sum[r];                                 \
            spsi_cpu_product_rows(t->p, i, R * W, 0, 1, part);                 \
        }                                                                      \
    }

ROWS(rows8, v8, f8, 8, 4)
ROWS(rows4, v4, f4, 4, 4)
ROWS(rows2, v2, f2, 2, 4)

INLINE void group(const sps_isa isa, const task *t, const bool f32, int64_t i,
                  int low, int high)
{
    if (isa == SPS_ISA_AVX512)
        rows8(t, f32, i, low, high);
    else if (isa == SPS_ISA_AVX2)
        for (int r = 0; r < GROUP; r += 16) rows4(t, f32, i + r, low, high);
    else
        for (int r = 0; r < GROUP; r += 8) rows2(t, f32, i + r, low, high);
}

/* Groups all of whose rows have the diagonals low .. high - 1 and no others
 * are computed side by side, the rest row by row. */
INLINE void groups(const sps_isa isa, const task *t, const bool f32)
{
    const sps_diagonals *f = t->f;
    const bool gaps = t->p->ldx != 1 || t->p->ldy != 1;
    int low = f->count, high = f->count;

    for (int64_t g = t->first; g < t->last; g++) {
        const int64_t i = g * GROUP, last = i + GROUP - 1;

        while (low > 0 && i + f->distance[low - 1] >= 0) low--;
        while (high > 0 && last + f->distance[high - 1] >= f->ncol) high--;
        if (gaps || last >= f->nrow ||
            (low > 0 && last + f->distance[low - 1] >= 0) ||
            (high < f->count && i + f->distance[high] < f->ncol))
            for (int64_t r = i; r <= last && r < f->nrow; r++)
                one_row(t, f32, r);
        else
            group(isa, t, f32, i, low, high);
    }
}

INLINE void all_groups_of(const sps_isa isa, const task *t)
{
    if (t->f->dtype == SPS_F64) groups(isa, t, false);
    else groups(isa, t, true);
}
CLONED_BY_ISA(static, all_groups, (const task *t), (t))

static void piece(const void *format, const product *p, int64_t first,
                  int64_t last)
{
    all_groups(&(task){ p, format, first, last });
}

static sps_status spmm(const sps_plan *plan, const sps_spmm_args *args)
{
    const diagonals_plan *self = (const diagonals_plan *)plan;

    return spsi_cpu_product_run(plan, args, &self->pieces, piece,
                                &self->diagonals);
}

/* --- plan */

/* Returns whether the format gains: symmetric values on full diagonals, of
 * which many only where the values that a row shares with the next plane are
 * still in a near cache (27-point grids of 80^3 took 1.5 times as long as by
 * runs, those of 40^3 0.7 to 1 times). */
static bool gains(const sps_diagonals *f, int64_t nnz)
{
    const int64_t between = f->count > 0
        ? f->distance[f->count - 1] * f->stored * 8 : 0;

    return f->half && 4 * f->stored * f->nrow <= 3 * nnz &&
           (f->count <= FEW || between <= KEPT);
}

static bool fits(const sps_problem *p, const char **why_not)
{
    sps_diagonals f;

    *why_not = "supports one column, and entries on few diagonals only";
    if (p->k != 1 || !spsi_diagonals_survey(p->local, &f)) return false;
    if (!p->pinned && !gains(&f, p->A->nnz)) {
        *why_not = "would gain only from symmetric values on full diagonals";
        return false;
    }
    return spsi_diagonals_hold(&f, p->local);
}

/* The predicted bytes are 1.3 times the minimal bytes in this format.  Rows
 * computed one by one, those where diagonals begin or end, take about 2 ns an
 * entry. */
static double cost(const sps_problem *p)
{
    const double value = (double)spsi_dtype_size(p->A->dtype);
    sps_diagonals f;

    (void)spsi_diagonals_survey(p->local, &f);
    return 1.3 * (spsi_spmm_floor(p) - (value + 4) * (double)p->A->nnz +
                  value * (double)f.stored * (double)f.nrow) /
           p->machine->copy + 2e-9 * GROUP * f.count * f.count;
}

/* Sets the bytes and the text of the plan, which depend on the values. */
static void tell(diagonals_plan *self)
{
    const sps_diagonals *f = &self->diagonals;
    const size_t bytes = spsi_diagonals_size(f);
    sps_plan *super = &self->super;

    super->bytes += bytes - self->counted;
    self->counted = bytes;
    snprintf(super->detail, sizeof super->detail, "%d diagonals, %d stored%s",
             f->count, f->stored,
             f->dtype != super->A->dtype ? ", floats" : "");
}

static sps_status refresh(sps_plan *plan)
{
    diagonals_plan *self = (diagonals_plan *)plan;
    sps_status st;

    SPS_TRY(spsi_diagonals_refresh(plan->ctx, plan->A, &self->diagonals));
    tell(self);
fail:
    return st;
}

static void destroy(sps_plan *plan)
{
    spsi_diagonals_clear(plan->ctx, &((diagonals_plan *)plan)->diagonals);
}

/* Sets start[g] to the number of entries before group g. */
static void count_entries(const sps_csr_local *A, int64_t groups,
                          int64_t *start)
{
    for (int64_t g = 0; g <= groups; g++)
        start[g] = A->rowptr[g * GROUP < A->nrow ? g * GROUP : A->nrow];
}

static sps_status plan(sps_plan *super, const sps_problem *p)
{
    diagonals_plan *self = (diagonals_plan *)super;
    sps_diagonals *f = &self->diagonals;
    const int64_t groups = (p->A->nrow + GROUP - 1) / GROUP;
    int64_t *start = NULL;
    sps_status st;

    SPS_TRY(spsi_diagonals_from_csr(super->ctx, p->local, f));
    SPS_TRY(SPS_NEW(super->ctx, groups + 1, &start));
    count_entries(p->local, groups, start);
    SPS_TRY(spsi_cpu_pieces_open(super, start, groups, GROUP, &self->pieces));
    tell(self);
fail:
    spsi_free(super->ctx, start);
    return st;
}

SPS_DEFINE(sps_kernel, spsi_kernel_spmv_diagonals) = {
    .name = "spmv.diagonals",
    .op = SPS_OP_SPMM,
    .gives = SPS_REPRODUCIBLE | SPS_FULL_PRECISION,
    .fuses = true,
    .size = sizeof(diagonals_plan),
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .spmm = spmm,
    .refresh = refresh,
    .destroy = destroy,
};
