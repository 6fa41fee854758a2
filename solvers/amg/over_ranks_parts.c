/* SPDX-License-Identifier: BSD-3-Clause */
/* over_ranks_parts.c - operators and blocks of the cycle on a level that is
 * spread over processes, as those of cycle_parts.c: D^-1 A, D_c^-1 P'D, and P
 * or P - D^-1 A P / root[0].  Their values are scaled on the host, unless they
 * are in device memory (over_ranks_device.c). */
#include "solvers/amg/over_ranks.h"

#include <math.h>

#include "core/team.h"

#define SPREAD 1e20          /* see cycle_parts.c */

static sps_dtype type_of(const over_ranks *w)
{
    return w->fine.floats ? SPS_F32 : SPS_F64;
}

/* Factors of the rows and divisors of the columns of T; NULL stands for 1. */
typedef struct factors {
    const sps_csr *T;
    const double *row, *col;
    double *val;
} factors;

static void scale_rows(void *data, int64_t first, int64_t last)
{
    const factors *f = data;
    const double *from = f->T->val;

    for (int64_t i = first; i < last; i++)
        for (int64_t p = f->T->rowptr[i]; p < f->T->rowptr[i + 1]; p++)
            f->val[p] = from[p] * (f->row ? f->row[i] : 1) /
                        (f->col ? f->col[f->T->col[p]] : 1);
}

/* Allocates *val_p for the values row[i] t_ij / col[j] of T; NULL stands for a
 * vector of ones. */
static sps_status scaled(const over_ranks *w, const sps_csr *T,
                         const double *row, const double *col, double **val_p)
{
    sps_context *ctx = w->fine.super.ctx;
    factors f = { T, row, col, NULL };
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, T->nnz + 1, &f.val));
    spsi_team_run(ctx, T->nrow, 2 * T->nnz, scale_rows, &f);
    if (w->fine.floats) spsi_amg_clear_tiny(ctx, f.val, T->nnz);
    *val_p = f.val;
fail:
    return st;
}

/* Makes *op_p, the operator of `rows` with values `val`, whose columns are
 * `whole` from all processes, and `cols` from `first` on of this process. */
static sps_status make_across(const over_ranks *w, const sps_csr *rows,
                              int64_t *global, double *val, int64_t first,
                              int64_t cols, int64_t whole, sps_operator **op_p)
{
    const sps_precond *M = &w->fine.super;
    sps_csr S = *rows;

    S.struct_size = sizeof S;
    S.ncol = S.whole = whole;
    S.first = first;
    S.col = NULL;
    S.global = global;
    S.val = val;
    S.props = 0;
    return spsi_operator_across(M->ctx, &S, cols, M->width, type_of(w), op_p);
}

/* ---------------------------------------------------------------- D^-1 A */

static sps_status set_own(over_ranks *w, const double *inverse)
{
    const sps_precond *M = &w->fine.super;
    sps_csr S = *M->A->ranks->A;
    double *val = NULL;
    sps_status st;

    if (w->fine.floats)
        return spsi_ranks_scaled(M->A, inverse,
                                 &w->fine.level[0].parts.own_op);
    SPS_TRY(scaled(w, w->span.rows, inverse, NULL, &val));
    S.struct_size = sizeof S;
    S.val = val;
    S.dtype = SPS_F64;
    S.props = 0;
    SPS_TRY(spsi_operator_valued(M->ctx, &S, M->width, type_of(w),
                                 &w->fine.level[0].parts.own_op));
fail:
    spsi_free(M->ctx, val);
    return st;
}

/* ------------------------------------------------------------- restriction */

/* *d_p = D_c^-1 of own rows, or NULL if A_c is solved by a dense inverse. */
static sps_status coarse_inverse(const over_ranks *w, double **d_p)
{
    const amg *b = (const amg *)w->below;
    const sps_block *D = b->level[0].parts.inverse;
    sps_context *ctx = w->fine.super.ctx;
    double *all = NULL;
    sps_status st = SPS_OK;

    if (!D) return SPS_OK;
    SPS_TRY(SPS_NEW(ctx, D->n + 1, &all));
    SPS_TRY(SPS_NEW(ctx, w->span.own_columns + 1, d_p));
    if (D->n > 0)
        SPS_TRY(sps_block_get(D, 0, 1, all, D->n, SPS_COL_MAJOR, SPS_HOST));
    for (int64_t i = 0; i < w->span.own_columns; i++)
        (*d_p)[i] = all[(w->spread ? 0 : w->span.first) + i];
fail:
    spsi_free(ctx, all);
    return st;
}

/* Sets all[j] to D^-1 of column j of span.rows. */
static sps_status spread_inverse(const over_ranks *w, const double *own,
                                 double *all)
{
    sps_halo *h = w->fine.super.A->ranks->halo;
    double *ghost = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, h->ghosts + 1, &ghost));
    SPS_TRY(spsi_halo_trade(h, own, sizeof *own, ghost));
    for (int64_t j = 0; j < h->ghosts; j++)
        all[j < h->low ? j : j + h->n] = ghost[j];
    for (int64_t i = 0; i < h->n; i++) all[h->low + i] = own[i];
fail:
    spsi_free(h->ctx, ghost);
    return st;
}

static sps_status set_restriction(over_ranks *w, const double *inverse)
{
    const sps_halo *h = w->fine.super.A->ranks->halo;
    amg_level *l = w->fine.level;
    const sps_csr *R = l->R;
    double *below = NULL, *all = NULL, *val = NULL;
    int64_t *global = NULL;
    sps_status st;

    SPS_TRY(SPS_NEW(h->ctx, h->n + h->ghosts + 1, &all));
    SPS_TRY(spread_inverse(w, inverse, all));
    SPS_TRY(coarse_inverse(w, &below));
    SPS_TRY(scaled(w, R, below, all, &val));
    SPS_TRY(SPS_NEW(h->ctx, R->nnz + 1, &global));
    spsi_halo_rows(h->ctx, h, R->col, R->nnz, global);
    SPS_TRY(make_across(w, R, global, val, h->first, h->n, h->whole,
                        &l->parts.restrict_op));
fail:
    spsi_free(h->ctx, below);
    spsi_free(h->ctx, all);
    spsi_free(h->ctx, val);
    spsi_free(h->ctx, global);
    return st;
}

/* ------------------------------------------------------------ prolongation */

/* Makes *op_p, the operator of T with values `val`; each process has all rows
 * of the level below, or those that it has of A_c. */
static sps_status make_upward(const over_ranks *w, const sps_csr *T,
                              double *val, sps_operator **op_p)
{
    const amg_span *s = &w->span;
    sps_context *ctx = w->fine.super.ctx;
    sps_csr S = *T;
    int64_t *global = NULL;
    sps_status st;

    S.val = val;
    if (!w->spread)
        return spsi_operator_valued(ctx, &S, w->fine.super.width, type_of(w),
                                    op_p);
    SPS_TRY(SPS_NEW(ctx, T->nnz + 1, &global));
    spsi_halo_rows(ctx, NULL, T->col, T->nnz, global);
    SPS_TRY(make_across(w, T, global, val, s->first, s->own_columns,
                        s->columns, op_p));
fail:
    spsi_free(ctx, global);
    return st;
}

/* Makes parts.ahead, if on each process the pattern of A P has all entries of
 * P. */
static sps_status set_ahead(over_ranks *w)
{
    amg_level *l = w->fine.level;
    sps_context *ctx = w->fine.super.ctx;
    sps_csr S = *l->AP;
    double *val = NULL;
    bool within = true, never;
    sps_status st;

    SPS_TRY(SPS_NEW(ctx, S.nnz + 1, &val));
    S.val = val;
    SPS_TRY(spsi_amg_ahead(&w->fine, l, &S, &within));
    SPS_TRY(spsi_comm_any(ctx, !within, &never));
    if (w->fine.floats) spsi_amg_clear_tiny(ctx, val, S.nnz);
    if (!never) SPS_TRY(make_upward(w, l->AP, val, &l->parts.ahead));
fail:
    spsi_free(ctx, val);
    return st;
}

static sps_status set_prolongation(over_ranks *w)
{
    amg_level *l = w->fine.level;
    double *val = NULL;
    sps_status st = SPS_OK;

    if (w->ahead) SPS_TRY(set_ahead(w));
    if (l->parts.ahead) return st;
    SPS_TRY(scaled(w, l->P, NULL, NULL, &val));
    SPS_TRY(make_upward(w, l->P, val, &l->parts.prolong));
fail:
    spsi_free(w->fine.super.ctx, val);
    return st;
}

/* ------------------------------------------------------------------ blocks */

static sps_status new_block(const over_ranks *w, int64_t n, sps_block **X_p)
{
    sps_block_destroy(X_p);
    return spsi_block_create(w->fine.super.ctx, n, w->fine.super.width,
                             type_of(w), X_p);
}

static sps_status open_blocks(over_ranks *w)
{
    amg_level *l = w->fine.level;
    const amg *b = (const amg *)w->below;
    sps_status st;

    SPS_TRY(new_block(w, l->n, &l->parts.r));
    SPS_TRY(new_block(w, l->n, &l->parts.t));
    if (w->fine.floats) SPS_TRY(new_block(w, l->n, &l->parts.x));
    else sps_block_destroy(&l->parts.x);
    sps_block_destroy(&w->x);
    if (b && !b->level[0].parts.x)
        SPS_TRY(new_block(w, b->level[0].n, &w->x));
fail:
    return st;
}

/* As that of cycle_parts.c, for the diagonal of the whole. */
static sps_status set_unit(amg *m)
{
    double most[2];
    sps_status st;

    SPS_TRY(spsi_amg_spread(m, m->level, most));
    for (int i = 0; i < 2; i++)
        SPS_TRY(spsi_comm_largest(m->super.ctx, &most[i]));
    m->unit = most[0] > 0 ? ilogb(most[1] / most[0]) : 0;
    if (most[0] * most[1] > sqrt(SPREAD)) st = SPS_EUNFIT;
fail:
    return st;
}

static void close(amg_parts *p)
{
    sps_operator_destroy(&p->own_op);
    sps_operator_destroy(&p->prolong);
    sps_operator_destroy(&p->ahead);
    sps_operator_destroy(&p->restrict_op);
}

static sps_status set_operators(over_ranks *w)
{
    amg *m = &w->fine;
    double *inverse = NULL;
    sps_status st;

    if (w->there) return spsi_amg_open_there(w);
    SPS_TRY(SPS_NEW(m->super.ctx, m->super.n + 1, &inverse));
    for (int64_t i = 0; i < m->super.n; i++) {
        const double s = m->level[0].scale[i];

        inverse[i] = s > 0 ? s * s : 1;
    }
    SPS_TRY(set_own(w, inverse));
    if (!w->below) goto fail;
    SPS_TRY(set_restriction(w, inverse));
    SPS_TRY(set_prolongation(w));
fail:
    spsi_free(m->super.ctx, inverse);
    return st;
}

sps_status spsi_amg_open_across(over_ranks *w)
{
    amg *m = &w->fine;
    sps_status st;
    bool unfit;

    close(&m->level[0].parts);
    SPS_TRY(open_blocks(w));
    if (m->floats) SPS_TRY(set_unit(m));
    st = set_operators(w);
    /* A matrix of this process alone may not fit on some processes only. */
    if (st != SPS_OK && st != SPS_EUNFIT) return st;
    unfit = st == SPS_EUNFIT;
    SPS_TRY(spsi_comm_any(m->super.ctx, unfit, &unfit));
    if (unfit) st = SPS_EUNFIT;
fail:
    return st;
}
